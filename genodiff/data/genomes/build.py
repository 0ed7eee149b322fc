"""How many genomes become stores: each in a folder of its own, several at a time, once.

    FOLDER/manifest.json     the genomes, their splits and what they are made from (collection.py)
    FOLDER/splits.npy        the intervals of each split
    FOLDER/NAME/             the store of a genome (dna_store.py says what its files are)
        manifest.json        its contigs, each with the sha256 of its sequence
        sketch.*             the sample of its k-mers (kmers.py)
        source.json          path and time of the file, by which a later build knows it again

A file is read once: it is judged, hashed, encoded and sketched on the way, in memory for one block.
A genome's folder is there whole or not at all, so a build that was killed goes on with those that
lack. Its bytes depend on the file alone, not on the order or the number of threads.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Event, local
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.data.dna_store import (
    FORMAT,
    Content,
    GenomeWriter,
    encode_contents,
    read_dna_manifest,
)
from genodiff.data.fetch import fetch_file, find_local_path, is_present
from genodiff.data.genomes.listing import GenomeList, GenomeRow, raise_last
from genodiff.data.genomes.parquet import PARQUET, read_parquet_contents
from genodiff.data.kmers import KMERS, PLACES, SCALE, SketchWriter
from genodiff.data.recipe import Source
from genodiff.data.store import MANIFEST
from genodiff.errors import DataError, MachineError
from genodiff.io import atomic
from genodiff.io.fasta import Header
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.io.input_file import InputFile, open_input
from genodiff.io.target import find_existing, read_json_object

log = logging.getLogger("genodiff")

SEEN = "source.json"


class HashedGenomeWriter(GenomeWriter):
    """A store in the making that also hashes the sequence of each contig, and sketches it."""

    def __init__(self, file: IO[bytes], sketch: SketchWriter) -> None:
        super().__init__(file)
        self.sketch = sketch
        self._contig: Any = None

    def begin(self, name: str) -> None:
        super().begin(name)
        self._contig = hashlib.sha256()
        self.sketch.begin(self.bases)

    def add(self, ids: NDArray[np.uint8], ambiguous: int) -> None:
        super().add(ids, ambiguous)
        self._contig.update((ids & ~np.uint8(SOFT)).data)
        self.sketch.add(ids)

    def end(self) -> None:
        super().end()
        if self._contig is not None:
            self.contigs[-1]["sha256"] = self._contig.hexdigest()
            self._contig = None


def build_genomes(
    listed: GenomeList, folder: Path, *, jobs: int = 1, offline: bool = False, force: bool = False
) -> list[str]:
    """Build the stores that `folder` lacks; the names of those that were built, in that order.

    `jobs` genomes at a time, each in a thread. Raises `DataError` naming the line of each
    genome that cannot be read, when all others are built; `MachineError`.
    """
    atomic.clear_leftovers(folder)
    waiting = [row for row in listed.rows if force or not is_built(row, folder / row.name)]
    if len(waiting) < len(listed.rows):
        done = len(listed.rows) - len(waiting)
        log.info("%s: %d of %d genomes are built", folder, done, len(listed.rows))
    check_room(waiting, folder)
    built: list[str] = []

    def build(row: GenomeRow) -> None:
        build_genome(row, folder / row.name, offline=offline)

    for row in build_each(waiting, build, jobs, listed.path):
        built.append(row.name)
        log.info("built %s (%d of %d)", row.name, len(built), len(waiting))
    return built


def check_room(waiting: list[GenomeRow], folder: Path) -> None:
    """Raises `MachineError` where the disk has less room than the genomes will certainly take."""
    needed = sum(estimate_bytes(row) for row in waiting)
    free = shutil.disk_usage(find_existing(folder)).free
    if needed > free:
        what = f"about {needed / 1e9:.1f} GB are needed, and {free / 1e9:.1f} GB are free"
        raise MachineError(what, file=folder, fix="make room, or give another folder with --out")


def estimate_bytes(row: GenomeRow) -> int:
    """About how many bytes the store of a genome takes: of a file that is not here, 0."""
    if row.is_remote:
        return 0
    bases = os.path.getsize(row.path)
    if row.path.endswith((".gz", ".bgz", PARQUET)):
        bases *= 3
    return bases + bases * 16 // SCALE


def is_built(row: GenomeRow, folder: Path) -> bool:
    """Whether `folder` has this row's store; a file whose time has changed is hashed again."""
    try:
        manifest = read_dna_manifest(folder)
        sizes = ((folder / name).stat().st_size for name in (KMERS, PLACES))
        if any(size != 8 * manifest["sketch"]["kmers"] for size in sizes):
            return False
        source = manifest["source"]
        seen = json.loads((folder / SEEN).read_text(encoding="utf-8"))
        if row.sha256 not in (None, source["sha256"]):
            return False
        if row.is_remote:
            return bool(seen["path"] == row.path)
        found = os.stat(row.path)
        if found.st_size != source["size"]:
            return False
        if (seen["path"], seen["mtime_ns"]) == (row.path, found.st_mtime_ns):
            return True
        return sha256_file(row.path) == source["sha256"]
    except (DataError, OSError, KeyError, TypeError, ValueError):
        return False


def is_store(folder: Path) -> bool:
    """Whether genodiff made this folder of a genome, be it whole or not."""
    return "ids_sha256" in read_json_object(folder / MANIFEST)


def build_genome(row: GenomeRow, folder: Path, *, offline: bool = False) -> None:
    """Write the store of a row's file, whole or not at all. Raises `DataError`, `MachineError`."""
    path = fetch_genome(row, offline=offline) if row.is_remote else Path(row.path)
    with (
        atomic.atomic_directory(folder, aside=True, replace=is_store(folder)) as temporary,
        open_input(path, digest=True) as source,
        open(temporary / "genome.ids", "wb") as ids,
        open(temporary / KMERS, "wb") as kmers,
        open(temporary / PLACES, "wb") as places,
    ):
        writer = HashedGenomeWriter(ids, SketchWriter(kmers, places))
        writer.write_contigs(read_contents(path, source))
        if not writer.bases:
            raise DataError("holds no sequence", file=path, fix="give a file with DNA")
        assert source.sha256 is not None
        sha256 = source.sha256.hexdigest()
        row.check_sha256(sha256, path)
        np.save(temporary / "n_runs.npy", np.concatenate(writer.runs))
        alphabet, digest = DNA.fingerprint(), writer.sha.hexdigest()
        runs = sha256_file(temporary / "n_runs.npy")
        content = {"format": FORMAT, "alphabet": alphabet, "ids": digest}
        contigs = [[c["name"], c["length"]] for c in writer.contigs]
        manifest = {  # a function of the file's content
            "format": FORMAT,
            "key": sha256_json(content | {"contigs": contigs}, compact=True),
            "alphabet": alphabet,
            "ids_sha256": digest,
            "bases": writer.bases,
            "n_runs": sum(map(len, writer.runs)),
            "contigs": writer.contigs,
            "sketch": {"kmers": writer.sketch.n, "sha256": writer.sketch.digests()},
            "source": {"size": source.stat.st_size, "sha256": sha256},
            "files": {"genome.ids": digest, "n_runs.npy": runs},
        }
        text = json.dumps(manifest, indent=1, sort_keys=True)
        (temporary / MANIFEST).write_text(text, encoding="utf-8")
        seen = {"path": row.path, "mtime_ns": source.stat.st_mtime_ns}
        (temporary / SEEN).write_text(json.dumps(seen), encoding="utf-8")


def read_contents(
    path: Path, source: InputFile, headers: dict[str, str] | None = None
) -> Iterator[Content]:
    """The contigs of a genome's file, in pieces; `headers` takes the rest of FASTA headers."""
    if path.name.lower().endswith(PARQUET):
        yield from read_parquet_contents(path, source)
        return

    def keeps(header: Header) -> bool:
        if headers is not None:
            headers[header.name] = header.description
        return True

    def stops() -> bool:
        if (stop := getattr(_thread, "stop", None)) and stop.is_set():
            raise MachineError("stopped before its end", file=path, fix="run it again")
        return False

    yield from encode_contents(source, keeps, stops)


def find_genome_file(row: GenomeRow, *, offline: bool) -> Path:
    """A row's file, fetched where needed and then not hashed again. Raises `DataError`."""
    if not row.is_remote:
        return Path(row.path)
    source = _describe_source(row)
    return find_local_path(source) if is_present(source) else fetch_genome(row, offline=offline)


def is_genome_here(row: GenomeRow) -> bool:
    """Whether the file of a row need not be fetched."""
    return not row.is_remote or is_present(_describe_source(row))


def fetch_genome(row: GenomeRow, *, offline: bool) -> Path:
    """The file of a row that is remote, on this machine. Raises `DataError`."""
    source = _describe_source(row)
    owner = f"the genome {row.name}"
    if not row.is_tried:
        owner += " (from a URL that nobody has tried yet)"
    return fetch_file(source, owner, "a path in the list:", offline=offline)


def _describe_source(row: GenomeRow) -> Source:
    name = row.path.rsplit("/", 1)[-1].split("?")[0] or "genome.fa"
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip("._-") or "genome"
    return Source(url=row.path, filename=name, sha256=row.sha256, licence="not stated")


def build_each(
    rows: list[GenomeRow], build: Callable[[GenomeRow], object], jobs: int, shown: str
) -> Iterator[GenomeRow]:
    """Call `build` for each row, `jobs` at a time in threads: reading, hashing and the C library
    run without the interpreter's lock, and no process is started.

    Yields each row that is built. What is wrong with a file is said at the end, with its line in
    the list `shown`; the last of these is raised. After another error or Ctrl-C, builds that have
    begun stop at their next piece.
    """
    faults: list[DataError] = []
    for row, fault in _build_all(rows, build, jobs, shown):
        if fault is None:
            yield row
        else:
            faults.append(fault)
    raise_last(faults)


def _build_all(
    rows: list[GenomeRow], build: Callable[[GenomeRow], object], jobs: int, shown: str
) -> Iterator[tuple[GenomeRow, DataError | None]]:
    if min(jobs, len(rows)) < 2:
        for row in rows:
            yield row, _build_one(build, row, shown)
        return
    # Large files first: else the last one runs alone.
    rows = sorted(rows, key=lambda r: (-estimate_bytes(r), r.name))
    stop = Event()
    jobs = min(jobs, len(rows))
    pool = ThreadPoolExecutor(jobs, "genodiff-genomes", lambda: setattr(_thread, "stop", stop))
    try:
        futures = {pool.submit(_build_one, build, row, shown): row for row in rows}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


_thread = local()
"""Of a thread that builds: `stop`, an event after which its work is of no use."""


def _build_one(
    build: Callable[[GenomeRow], object], row: GenomeRow, shown: str
) -> DataError | None:
    try:
        build(row)
    except DataError as fault:
        file, line, record = fault.file, fault.line, fault.record
        if not row.line:  # a file that stands in no list
            file = file or row.path
            return DataError(fault.what, fix=fault.fix, file=file, line=line, record=record)
        what = f"the genome {row.name} cannot be used: {fault.what}"
        what += f" (line {line} of the file)" if line else ""
        what += f" (record {record})" if record else ""
        fix = fault.fix or "give another file, or leave the line out"
        return DataError(what, file=shown, line=row.line, fix=fix)
    return None
