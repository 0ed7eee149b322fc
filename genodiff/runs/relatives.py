"""The genomes of relatives as memories: built from a list once, kept in the cache, found again.

A list of relatives is one of genomes (`data/genomes/listing.py`). Each becomes a `Memory` with a
sampled table, in a folder that is whole or absent. Its name is the hash of the file's sha256 and of
what the index depends on, so a build that was killed goes on with those that lack, and the bytes do
not depend on order or threads. The memory of a training genome is the case of one.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import encode_bases
from genodiff.data.genomes.build import build_each, check_room, find_genome_file, read_contents
from genodiff.data.genomes.listing import (
    WHOLE,
    GenomeList,
    GenomeRow,
    are_alike,
    find_several,
    name_species,
)
from genodiff.errors import DataError, format_count
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.io.input_file import is_planning, open_input
from genodiff.io.process import count_usable_cores, read_memory
from genodiff.io.target import cache_dir, lock_folder
from genodiff.memory.memory import (
    MANIFEST,
    Memory,
    identify_memory,
    open_memory,
    read_manifest,
    write_memory,
)
from genodiff.memory.tables import ORDER, STEP, TABLE_FORMAT
from genodiff.memory.text import MemoryText, TextWriter
from genodiff.runs.aligned_genomes import (
    AlignedGenome,
    AlignmentTarget,
    align_memory,
    read_maf_text,
)
from genodiff.runs.known_contigs import ContigRows, KnownContigs, LetterSource, hash_letters

BYTES_A_BASE = 2.5
"""About the memory that a build takes, of which the table is the largest part."""

_LETTERS = np.frombuffer(b"ACGTN", np.uint8)
_log = logging.getLogger("genodiff")


class Relative(NamedTuple):
    """A genome that is searched: its memory, its contigs, and what an output says of it."""

    name: str
    species: str
    weight: float
    memory: Memory
    contigs: KnownContigs
    told: dict[str, Any]


def open_relatives(
    listed: GenomeList,
    *,
    home: str | Path | None = None,
    jobs: int | None = None,
    offline: bool = False,
    target: LetterSource | None = None,
) -> list[Relative]:
    """The relatives of a list, in the order of their names; those that lack are built.

    `target` is the genome that alignments are to; without one they are not read. `home` is the
    folder that holds their folders (default: in the cache). `jobs` are built at a time (default: as
    many as there are cores and memory). Raises `DataError` naming the line of each file that cannot
    be read, when all others are built, and where two are the same genome; `MachineError`.

    >>> relatives = open_relatives(read_genome_list("yeasts.tsv"))  # doctest: +SKIP
    >>> [one.name for one in relatives]  # doctest: +SKIP
    ['Sarb_H6', 'Spar_CBS432']
    """
    build_relatives(listed, home=home, jobs=jobs, offline=offline)
    aligned = None
    if target is not None and any(row.alignment for row in listed.rows):
        aligned = AlignmentTarget(target, find_home(home))
    opened = [open_relative(row, home=home, offline=offline, target=aligned) for row in listed.rows]
    by_content: dict[str, Relative] = {}
    for one in opened:
        other = by_content.setdefault(one.told.get("letters", one.told["content"]), one)
        if other is not one and one.told.get("records"):
            _log.warning("%s is left out: the same bases as %s", one.name, other.name)
        elif other is not one:
            what = f"the relatives {other.name} and {one.name} are the same genome"
            raise DataError(what, file=listed.path, fix="leave one of their lines out")
    return list(by_content.values())


def identify_relatives(relatives: Sequence[Relative]) -> list[dict[str, Any]]:
    """What of relatives decides every bit, as JSON values: all but where they stand."""
    return [identify_memory(one.told) for one in relatives]


def build_relatives(
    listed: GenomeList,
    *,
    home: str | Path | None = None,
    jobs: int | None = None,
    offline: bool = False,
) -> list[str]:
    """Build what `home` lacks of a list; the names of those that were built. Errors as above."""
    waiting = [row for row in listed.rows if not is_built(row, home)]
    check_room(waiting, find_home(home))
    jobs = limit_jobs(waiting, min(jobs or count_usable_cores(), len(waiting)))
    build = partial(build_relative, home=home, offline=offline)
    for row in build_each(waiting, build, jobs, listed.path):
        _log.info("indexed %s", row.name)
    return [row.name for row in waiting]


def limit_jobs(rows: list[GenomeRow], jobs: int) -> int:
    """As many of the `jobs` as the free memory holds, and at least one."""
    free = read_memory()[1]
    sizes = sorted((guess_bases(row) for row in rows), reverse=True)
    while free is not None and jobs > 1 and sum(sizes[:jobs]) * BYTES_A_BASE > free:
        jobs -= 1
    return jobs


def is_built(row: GenomeRow, home: str | Path | None = None, *, reads: bool = True) -> bool:
    """Whether `home` has the memory of a row's file; unless it `reads`, no new file is hashed."""
    try:
        return find_memory(row, home, reads=reads).exists()
    except DataError:
        return False


def find_memory(row: GenomeRow, home: str | Path | None = None, *, reads: bool = True) -> Path:
    """The folder of a row's memory, there or not. Raises `DataError` for a file not read yet."""
    return _find_folder(row, home, offline=True, reads=reads)[0]


def build_relative(
    row: GenomeRow, *, home: str | Path | None = None, offline: bool = False
) -> Path:
    """Build a row's memory if it is missing; its folder. Raises `DataError`, `MachineError`."""
    folder, path, sha256 = _find_folder(row, home, offline=offline)
    with lock_folder(folder, "builds the same memory"):
        if folder.exists():
            return folder
        atomic.clear_leftovers(folder.parent)
        _log.info("indexing %s (cached in %s)", row.name, folder)
        read = read_maf_text if row.alignment == row.path else read_genome_text
        text, contigs, found = read(path, row.records)
        if found != sha256:
            raise DataError("changed while it was being read", file=path, fix="run it again")
        _check_letters(row, contigs, path)
        memory = Memory.build_sampled(text, searched=not row.alignment)
        made_from = {"format": TABLE_FORMAT, "content": sha256_json(contigs, compact=True)}
        write_memory(folder, memory, made_from | _describe_kind(row), contigs=contigs)
    return folder


def open_relative(
    row: GenomeRow,
    *,
    home: str | Path | None = None,
    offline: bool = False,
    target: AlignmentTarget | None = None,
) -> Relative:
    """A relative that is built, with its alignment to `target`. Raises `DataError` unless whole."""
    folder, path, _ = _find_folder(row, home, offline=offline)
    manifest, memory = read_manifest(folder), open_memory(folder)
    rows = [(str(name), int(length), str(digest)) for name, length, digest in manifest["contigs"]]
    _check_letters(row, rows, path)
    if not row.records and are_alike([length for _, length, _ in rows]):
        what = "%s is read as one genome: its %s have about one length; if each is a genome of its "
        what += "own, give split:%s, and whole:%s if not"
        _log.warning(what, row.name, format_count(len(rows), "record"), path, path)
    contigs = KnownContigs.of_rows(rows)
    told = {
        "name": row.name,
        "species": row.species,
        "weight": row.weight,
        **({"records": row.records, "letters": hash_letters(rows)} if row.records else {}),
        "folder": str(folder),
        "fingerprint": sha256_json(manifest, compact=True),
        "source": str(path),
        "content": manifest["made_from"]["content"],
        "bases": memory.text.n_bases,
        "numbers": memory.numbers.model_dump(mode="json"),
        "effort": asdict(memory.effort),
    }
    if row.alignment and target is not None:
        names = frozenset(filter(None, (row.name, row.species, row.records)))
        genome = AlignedGenome(memory, names, contigs.lengths, row.alignment == row.path)
        sha256 = _find_sha256(Path(row.alignment), reads=True)
        memory, key = align_memory(genome, Path(row.alignment), sha256, told["fingerprint"], target)
        told |= {"alignment": key, "fingerprint": sha256_json([told["fingerprint"], key])}
        _log.info("%s: aligned as %s says, without a search", row.name, row.alignment)
    return Relative(row.name, row.species, row.weight, memory, contigs, told)


def read_genome_text(path: Path, records: str = "") -> tuple[MemoryText, ContigRows, str]:
    """The text of a genome's file; name, length and sha256 of each contig; sha256 of the file.

    With `records`, only those of this species or name are read. The file is read once, and memory
    holds 3 bits a base of it. Raises `DataError`, also for a file that looks like several species.
    """
    writer, empty, name = TextWriter(), 0, ""
    headers: dict[str, str] = {}
    contigs: list[tuple[str, Any]] = []
    with open_input(path, digest=True) as source:
        for piece in read_contents(path, source, headers):
            if isinstance(piece, str):
                own = piece, name_species(piece, headers.get(piece, ""))
                wanted = records in ("", WHOLE, *own)
                name, empty = piece, empty + wanted
                continue
            if not wanted:
                continue
            codes = encode_bases(piece[0])
            if not len(codes):
                continue
            if not contigs or contigs[-1][0] != name:
                empty -= 1
                writer.begin(name)
                contigs.append((name, hashlib.sha256()))
            writer.add(codes)
            contigs[-1][1].update(_LETTERS[codes].data)
    text = writer.finish()
    if not records and (several := find_several(headers)):
        shown = ", ".join(several[:3]) + (", ..." if len(several) > 3 else "")
        what = f"looks like the genomes of {len(several):,} species ({shown}), and is given as one"
        fix = f"give split:{path} to read each as a genome, or whole:{path} if it is one genome"
        raise DataError(what, file=path, fix=fix)
    if not text.n_bases:
        what = f"holds no base of {records}" if records not in ("", WHOLE) else "holds no base"
        raise DataError(what, file=path, fix="give a file with DNA")
    if empty:
        _log.warning("%s: %s left out", path, format_count(empty, "empty contig"))
    lengths = [stretch.length for stretch in text.sources]
    rows = [(name, n, sha.hexdigest()) for (name, sha), n in zip(contigs, lengths, strict=True)]
    assert source.sha256 is not None
    return text, rows, source.sha256.hexdigest()


def guess_bases(row: GenomeRow) -> int:
    """About the bases of a row: what its list says, or told from the file; 0 where none does."""
    if row.bases:
        return row.bases
    try:
        size = Path(row.path).stat().st_size
    except OSError:
        return 0
    return size * 4 if row.path.endswith((".gz", ".bgz")) else size


def _describe_kind(row: GenomeRow) -> dict[str, Any]:
    kind: dict[str, Any] = {} if row.alignment else {"step": STEP}
    kind |= {"order": ORDER, "kind": "aligned" if row.alignment else "relative"}
    return kind | ({"records": row.records} if row.records else {})


def find_home(home: str | Path | None) -> Path:
    """The folder that holds the memories' folders: `home`, or one in the cache."""
    return cache_dir() / "memories" if home is None else Path(home)


def _find_folder(
    row: GenomeRow, home: str | Path | None, *, offline: bool, reads: bool = True
) -> tuple[Path, Path, str]:
    """The folder of a row's memory, the file that it is made from, and the file's sha256."""
    path = find_genome_file(row, offline=offline)
    if (path / MANIFEST).is_file():  # a memory that was built, and is opened where it stands
        return path, path, ""
    sha256 = _find_sha256(path, reads=reads)
    row.check_sha256(sha256, path)
    key = sha256_json({"format": TABLE_FORMAT, "file": sha256} | _describe_kind(row), compact=True)
    return find_home(home) / key[:32], path, sha256


def _check_letters(row: GenomeRow, contigs: ContigRows, path: Path) -> None:
    if row.letters not in (None, found := hash_letters(contigs)):
        what = f"its bases have the sha256 {found}, not {row.letters}"
        raise DataError(what, file=path, fix="get the file again, or correct the list")


def _find_sha256(path: Path, *, reads: bool) -> str:
    """The sha256 of a file, which is read again only where its size or time is another."""
    try:
        found = path.stat()
    except OSError as fault:
        what, fix = f"cannot be read ({fault.strerror})", "correct the path, or leave the line out"
        raise DataError(what, file=path, fix=fix) from None
    stamp = [str(path.absolute()), found.st_size, found.st_mtime_ns, found.st_ino]
    seen = cache_dir() / "hashes" / f"{sha256_json(str(path.absolute()))[:32]}.json"
    try:
        known = json.loads(seen.read_text(encoding="utf-8"))
        if known["stamp"] == stamp:
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    if not reads or is_planning():
        raise DataError("was not read yet", file=path)
    sha256 = sha256_file(path)
    atomic.write_json(seen, {"stamp": stamp, "sha256": sha256})
    return sha256
