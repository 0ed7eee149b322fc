"""The manifest of many genomes: which they are, how they are drawn, and what trains.

    manifest.json    {"format", "key", "genomes": [{"name", "key", "bases", "weight", "species",
                     "split", "contigs", "files": {name: sha256}}], "splits": sha256 of splits.npy,
                     "homology", "duplicates": how many of each kind, "notes"}
    splits.npy       (n, 4) int64: split (0 train, 1 valid, 2 test), contig, start, end; contigs are
                     numbered through all genomes
    duplicates.tsv   contigs of equal sequence, and assemblies that are alike

The key is the sha256 of all that decides what a run reads: contents, names, weights, labels,
splits. Genomes stand in the order of their names.

The last check of a split: no held-out tile has much of its sequence in train.

The sampled k-mers (homologs.py) find a tile that shares a tenth of its 24-mers four times in five.
So after them all 24-mers of what is held out are looked up in train: a tile of 1,024 bases with
more than a twentieth of its 24-mers there is left out, with its neighbours. Two neighbours that
pass have at most a tenth between them, so neither has a window that lies across both.

The held-out k-mers are in memory, `_GROUP` bases at a time; for each group train is read once, from
the stores that are built.
"""

import io
import json
import logging
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import encode_bases
from genodiff.data.dna_store import FORMAT as STORE_FORMAT
from genodiff.data.dna_store import read_dna_manifest
from genodiff.data.genomes.build import build_genomes, is_store
from genodiff.data.genomes.dealing import Contig, deal_contigs
from genodiff.data.genomes.homologs import (
    TILE,
    count_hits,
    cut_tiles,
    find_duplicates,
    leave_homologs_out,
    sum_bases,
)
from genodiff.data.genomes.listing import GenomeList
from genodiff.data.kmers import K, Words, canonical_kmers, find_streamed, keep_distinct, open_sketch
from genodiff.data.splits import Rows
from genodiff.data.store import MANIFEST, Coded
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.io.target import check_folder, lock_folder

MOST_SHARED = 0.05
_GROUP = 1 << 24  # held-out bases whose k-mers are in memory at once
_PIECE = 1 << 20
_SPAN = 1 << 32  # more tiles than a contig has


class ContigReader:
    """The stored bases of contigs, which are numbered through all genomes."""

    def __init__(self, folders: list[Path], contigs: list[Contig]) -> None:
        self._genome = [contig.genome for contig in contigs]
        self._flat = [np.memmap(folder / "genome.ids", np.uint8, "r") for folder in folders]
        self._start: list[int] = []
        ends = [0] * len(folders)
        for contig in contigs:
            self._start.append(ends[contig.genome])
            ends[contig.genome] += contig.length

    def read(self, contig: int, start: int, end: int) -> NDArray[np.uint8]:
        """The ids from `start` to `end` (0-based, half-open) of a contig; mapped, not read yet."""
        first = self._start[contig]
        return self._flat[self._genome[contig]][first + start : first + end]


def leave_leaks_out(
    rows: list[Rows], contigs: list[Contig], strict: list[bool], reader: ContigReader
) -> tuple[list[Rows], dict[str, int]]:
    """What is left of train, valid and test, and the bases that valid and test lose.

    Test is looked up in train, valid in train and in what is left of test. `strict` says of each
    genome whether its held-out sequence is judged.
    """
    kept, lost = [list(part) for part in rows], dict[str, int]()
    for name, mine, others in (("test", 2, [0]), ("valid", 1, [0, 2])):
        judged = [row for row in kept[mine] if strict[contigs[row[0]].genome]]
        drop = find_leaks(judged, [row for i in others for row in kept[i]], reader)
        before = sum_bases(kept[mine])
        kept[mine] = cut_tiles(kept[mine], drop)
        lost[name] = before - sum_bases(kept[mine])
    return kept, lost


def find_leaks(rows: Rows, others: Rows, reader: ContigReader) -> dict[int, list[int]]:
    """The tiles, by contig, of which more than `MOST_SHARED` of the 24-mers stand in `others`."""
    drop: dict[int, list[int]] = defaultdict(list)
    for group in _group_pieces(rows):
        words, tiles = _collect_words(group, reader)
        wanted = keep_distinct(words)
        hit = find_streamed(wanted, (Coded(reader.read(*row)) for row in others))
        codes, n, hits = count_hits(tiles, hit[np.searchsorted(wanted, words)])
        for code in codes[hits > MOST_SHARED * n].tolist():
            drop[code // _SPAN].append(code % _SPAN)
    return drop


def _collect_words(pieces: Rows, reader: ContigReader) -> tuple[Words, NDArray[np.int64]]:
    """The canonical 24-mers of some pieces, by place, and the tile in which each begins."""
    words, tiles = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for contig, start, end in pieces:
        kmers, whole = canonical_kmers(encode_bases(reader.read(contig, start, end)), K)
        at = np.flatnonzero(whole)
        words.append(kmers[at])
        tiles.append(contig * _SPAN + (start + at) // TILE)
    return np.concatenate(words), np.concatenate(tiles)


def _group_pieces(rows: Rows) -> Iterator[Rows]:
    """Pieces of the intervals up to tile ends, `_GROUP` bases together; a k-mer is in one piece."""
    group: Rows = []
    size = 0
    for contig, start, end in rows:
        at = start
        while at < end:
            stop = min(at // _PIECE * _PIECE + _PIECE, end)
            group.append((contig, at, min(stop + K - 1, end)))
            size, at = size + stop - at, stop
            if size >= _GROUP:
                yield group
                group, size = [], 0
    if group:
        yield group


log = logging.getLogger("genodiff")

FORMAT = 1
SPLITS_FILE, DUPLICATES = "splits.npy", "duplicates.tsv"
CLUSTER = "cluster"


def build_collection(
    listed: GenomeList, folder: Path, *, jobs: int = 1, offline: bool = False, force: bool = False
) -> dict[str, Any]:
    """Build what `folder` lacks, in one process at a time, and its manifest, which is returned.
    Raises `DataError`, `MachineError`, and `UsageError` where `folder` holds what is not ours.
    """
    foreign = sorted(row.name for row in listed.rows if not is_store(folder / row.name))
    own = len(foreign) < len(listed.rows) or find_manifest(folder) is not None
    check_folder(folder, (MANIFEST, SPLITS_FILE, DUPLICATES), own=own, force=force)
    check_folder(folder, foreign, own=False, force=force)
    with lock_folder(folder, "builds the same genomes"):
        folder.mkdir(parents=True, exist_ok=True)
        built = build_genomes(listed, folder, jobs=jobs, offline=offline, force=force)
        rules = [sha256_file(r.split) if r.split.endswith(".bed") else r.split for r in listed.rows]
        rows = zip(listed.rows, rules, strict=True)
        decisive = [[r.name, r.weight, r.species, rule, r.sha256] for r, rule in rows]
        wanted, known = sha256_json(decisive, compact=True), find_manifest(folder)
        if not (built or force) and known is not None and known["list"] == wanted:
            return known
        return _write_manifest(listed, folder, wanted)


def find_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of the collection in `folder`; None where there is none that is whole."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] == FORMAT and isinstance(manifest["genomes"], list):
            return manifest
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def require_manifest(folder: Path, shown: str | Path) -> dict[str, Any]:
    """As `find_manifest`. Raises `DataError` where there is none, of a folder `shown` so."""
    if (manifest := find_manifest(folder)) is not None:
        return manifest
    what = f"holds no genomes (no sound {MANIFEST})"
    fix = "give a list, or a folder that `genodiff data genomes LIST --out FOLDER` built"
    raise DataError(what, file=shown, fix=fix)


def read_splits(folder: Path, manifest: dict[str, Any]) -> list[Rows]:
    """The intervals of train, valid and test. Raises `DataError` where their file was changed."""
    path = folder / SPLITS_FILE
    if sha256_file(path) != manifest["splits"]:
        fix = "build the genomes again, in another folder"
        raise DataError("is not what the manifest says", file=path, fix=fix)
    table = np.load(path, allow_pickle=False)
    return [[(int(c), int(a), int(b)) for s, c, a, b in table if s == i] for i in range(3)]


def _write_manifest(listed: GenomeList, folder: Path, wanted: str) -> dict[str, Any]:
    stores = [read_dna_manifest(folder / row.name) for row in listed.rows]
    names = [row.name for row in listed.rows]
    every = [(number, c) for number, store in enumerate(stores) for c in store["contigs"]]
    contigs = [Contig(number, c["name"], c["length"]) for number, c in every]
    digests = [c["sha256"] for _, c in every]
    sketches = [open_sketch(folder / name) for name in names]
    rules = [row.split for row in listed.rows]
    rows = deal_contigs(contigs, names, rules, sketches, listed.path)
    strict = [rule == CLUSTER for rule in rules]
    checked = leave_homologs_out(rows, contigs, strict, sketches)
    reader = ContigReader([folder / name for name in names], contigs)
    rows, lost = leave_leaks_out(checked.rows, contigs, strict, reader)
    for split, bases in lost.items():
        checked.told[split]["left_out"] += bases
        checked.told[split]["left_out_by_all_kmers"] = bases
    if not rows[0]:
        fix = "give some genomes the split train or cluster"
        raise DataError("none of its genomes is in the train split", file=listed.path, fix=fix)
    duplicates = find_duplicates(names, contigs, digests, sketches)
    notes = _describe(checked.told, duplicates, listed)
    table = [(s, *row) for s, part in enumerate(rows) for row in part]
    held = io.BytesIO()
    np.save(held, np.array(table, np.int64))
    atomic.write_bytes(folder / SPLITS_FILE, held.getvalue())
    columns = ("kind", "a", "b", "bases", "containment", "identity")
    lines = ["\t".join(columns), *("\t".join(str(d[c]) for c in columns) for d in duplicates)]
    atomic.write_text(folder / DUPLICATES, "\n".join(lines) + "\n")
    splits = sha256_file(folder / SPLITS_FILE)
    genomes = [
        {
            "name": row.name,
            "key": store["key"],
            "bases": store["bases"],
            "weight": row.weight,
            "species": row.species,
            "split": Path(row.split).name if row.split.endswith(".bed") else row.split,
            "contigs": [[c["name"], c["length"]] for c in store["contigs"]],
            "n_runs": store["n_runs"],
            "files": store["files"],
        }
        for row, store in zip(listed.rows, stores, strict=True)
    ]
    decisive = [[g["name"], g["key"], g["weight"], g["species"]] for g in genomes]
    manifest = {
        "format": FORMAT,
        "store_format": STORE_FORMAT,
        "key": sha256_json({"format": FORMAT, "genomes": decisive, "splits": splits}, compact=True),
        "list": wanted,
        "genomes": genomes,
        "splits": splits,
        "homology": checked.told,
        "duplicates": {k: sum(d["kind"] == k for d in duplicates) for k in ("contig", "assembly")},
        "notes": notes,
    }
    atomic.write_json(folder / MANIFEST, manifest)
    for note in notes:
        log.warning("%s: %s", listed.path, note)
    return manifest


def _describe(
    told: dict[str, Any], duplicates: list[dict[str, Any]], listed: GenomeList
) -> list[str]:
    notes = []
    for split in ("valid", "test"):
        found = told[split]
        if found["left_out"]:
            note = f"{found['left_out']:,} of {found['bases']:,} bases of {split} share sequence "
            note += f"with train and are left out ({found['left_out_by_all_kmers']:,} of them are "
            notes.append(f"{note}told only by all k-mers)")
        elif found["shared_tiles"] >= 0.01:
            note = f"{found['shared_tiles']:.1%} of {split} share sequence with train; the split "
            notes.append(f"{note}cluster leaves such out")
    nouns = {"contig": "contigs stand twice", "assembly": "pairs of genomes are alike"}
    for kind, noun in nouns.items():
        if some := [d for d in duplicates if d["kind"] == kind]:
            pair = f"{some[0]['a']} and {some[0]['b']}"
            notes.append(f"{len(some):,} {noun}, such as {pair}: see {DUPLICATES}")
    unpinned = sum(row.is_remote and row.sha256 is None for row in listed.rows)
    if unpinned:
        notes.append(f"{unpinned} URLs have no sha256: what came first is what counts")
    return notes
