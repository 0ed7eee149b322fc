"""The sequence that a model's weights were trained on, as far as this machine knows it.

It is the train split of the run's own data and, where the run began from other weights, of theirs.
A split counts as a whole, however much of it the training came to read.

How many of the bases that are scored are in it is told by the bases themselves. A contig that has
the same letters as a contig of the training data, on either strand, is that contig, and its scored
bases are counted where the train split lies. What its file and its records are called, how it is
packed, and the case of its letters are of no account, nor are the splits that it is scored by.
Contigs that the training data do not have as a whole are looked up by their 24-mers, on either
strand (`data.kmers`). What cannot be known is said, with the reason, and is never 0.
"""

import hashlib
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT, encode_bases
from genodiff.data.dna_store import build_dna_store, find_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.genomes.store import open_genomes
from genodiff.data.kmers import K, measure_shared_cover, shared_kmers
from genodiff.data.splits import Intervals, Rows, merge
from genodiff.data.store import Coded, Codes, Store, find_intervals, read_stretches
from genodiff.data.windows import Ints
from genodiff.errors import GenodiffError
from genodiff.io.file_kinds import sha256_array, sha256_json
from genodiff.io.kept_arrays import keep_array
from genodiff.runs.feed import find_recipe
from genodiff.runs.model import TrainedModel, collect_tensors, load_model
from genodiff.runs.sealed_files import sha256_tensors

_HARD = np.uint8(0xFF ^ SOFT)
_OTHER_STRAND = np.array(DNA.complement, np.uint8)
_PIECE = 1 << 24
_log = logging.getLogger("genodiff")
_KNOWN_NAMES = {r"caduceus-p[hs]_seqlen-\d+k": "hg38"}
"""Names of published weights, and what their authors say that they were trained on."""


class TrainPart(NamedTuple):
    """The train split of a store, as a model read it."""

    store: Store
    intervals: Intervals

    def stretches(self) -> list[Coded]:
        """Its sequence."""
        return read_stretches(self.store, self.intervals)

    def intervals_on(self, contig: int) -> Rows:
        """(0, start, end) of what lies on a contig."""
        mine = self.intervals.take(self.intervals.contig == contig)
        return [(0, *row) for row in zip(mine.start.tolist(), mine.end.tolist(), strict=True)]


class TrainedOn(NamedTuple):
    """What a model was trained on: a key of its content, how to open it, and what it is called.

    `open` takes a store that is open already, and serves where it is the model's own; it raises
    `GenodiffError` or `OSError` where the data are not on this machine. Where they cannot be known,
    `unknown` is the reason.
    """

    key: str
    open: Callable[[Store | None], list[TrainPart]]
    unknown: str = ""
    name: str = ""


def find_trained_on(model: TrainedModel) -> TrainedOn:
    """What a model was trained on; nothing is read but the cards of the runs it began from."""
    source = model.data.get("source")
    if isinstance(source, dict):
        return _unknown(_describe_published(source))
    if model.config.domain != DNA.domain:
        return _unknown("it was trained on text")
    if not model.data.get("fingerprint"):
        return _unknown("its run does not say on what data")
    before = None if model.config.init is None else _find_start(model)
    if before is not None and before.unknown:
        return before
    legacy = model.config.data.legacy_caduceus_tiling
    decisive = {"data": model.data["fingerprint"], "legacy": legacy}
    key = sha256_json(decisive | {"before": None if before is None else before.key})

    def open_all(store: Store | None = None) -> list[TrainPart]:
        recipe = find_recipe(model.config)
        if store is not None and store.fingerprint == model.data["fingerprint"]:
            pass
        elif model.config.genomes is None:
            store = find_dna_store(recipe, model.data) or build_dna_store(
                recipe, model.config.fasta, offline=True, remembered=model.data
            )
        else:
            store = open_genomes(model.config.genomes, offline=True, remembered=model.data)
        store.check_same(model.data)
        own = TrainPart(store, find_intervals(store, "train", legacy_caduceus_tiling=legacy))
        return [own] if before is None else [own, *before.open(None)]

    source = model.data.get("source") or model.config.genomes or model.config.recipe
    return TrainedOn(key, open_all, name=Path(str(source)).name)


def _unknown(reason: str) -> TrainedOn:
    return TrainedOn("", lambda store: [], reason)


def _find_start(model: TrainedModel) -> TrainedOn:
    path = str(model.config.init)
    what = f"it started from the weights in {Path(path).name}"
    try:
        start = load_model(path)
    except GenodiffError as fault:
        return _unknown(f"{what}, and of those it is not known ({fault.what})")
    if sha256_tensors(collect_tensors(start.backbone)) != model.config.init_sha256:
        return _unknown(f"{what}, and those are others today")
    found = find_trained_on(start)
    return _unknown(f"{what}: {found.unknown}") if found.unknown else found


def _describe_published(source: dict[str, Any]) -> str:
    config = source.get("config")
    named = config.get("_name_or_path") if isinstance(config, dict) else None
    names = Path(str(source.get("path"))).name, str(named).rpartition("/")[2]
    for pattern, data in _KNOWN_NAMES.items():
        if any(re.match(pattern, name) for name in names):
            return f"published weights, trained on {data} by their authors"
    return "published weights: their training data are not recorded"


class SeenBases(NamedTuple):
    """What was found of the scored bases; `reason` says why where that is not known."""

    bases: int
    """All that are scored."""
    in_train: int = 0
    """Of contigs that the training data have as well: those of its train split."""
    other_bases: int = 0
    """Those of other contigs."""
    in_kmers: int = 0
    """Of these, the ones that lie in 24-mers of the train split."""
    reason: str = ""

    def to_json(self, name: str, source: str, *, own: bool) -> dict[str, Any]:
        """As plain values, with a sentence under `note`; that of `own` data unseen is empty.

        `name` is what the model is called, and `source` the data that it was trained on.
        """
        if self.reason:
            note = f"it is not known what {name} saw of it in training: {self.reason}"
            return {"not_known": self.reason, "note": note}
        direct = f"{self.in_train:,} of {self.bases:,} scored bases were in its train split"
        words = f"{self.in_kmers:,} of {self.other_bases:,}"
        if self.other_bases == self.bases:
            direct = f"it has none of these contigs, and {words} scored bases lie in {K}-mers of "
            direct += "its train split"
        elif self.other_bases:
            direct += f", and {words} in contigs that it does not have lie in {K}-mers of it"
        note = f"{name} was trained on {source}: {direct}"
        quiet = own and not self.in_train and not self.in_kmers
        values = {key: value for key, value in self._asdict().items() if key != "reason"}
        return values | {"k": K, "note": "" if quiet else note}


def describe_seen_bases(
    model: TrainedModel,
    name: str,
    windows: DnaWindows,
    counted: NDArray[np.float64],
    *,
    soft_masked: bool = True,
) -> dict[str, Any]:
    """What `measure_seen_bases` finds of a model that is called `name`, as plain values."""
    if not model.reads_network:  # `none` was trained on nothing
        return SeenBases(int(counted.sum())).to_json(name, "", own=True)
    trained_on = find_trained_on(model)
    seen = measure_seen_bases(trained_on, windows, counted, soft_masked=soft_masked)
    own = windows.store.fingerprint == model.data.get("fingerprint")
    return seen.to_json(name, trained_on.name, own=own)


def measure_seen_bases(
    trained_on: TrainedOn,
    windows: DnaWindows,
    counted: NDArray[np.float64],
    *,
    soft_masked: bool = True,
) -> SeenBases:
    """What training saw of these windows; `counted` (windows,) are the bases scored in each.

    Without `soft_masked` those in lower case are not among them. The train split is read only
    where a contig is not one of its own.
    """
    bases = int(counted.sum())
    if trained_on.unknown:
        return SeenBases(bases, reason=trained_on.unknown)
    try:
        parts = trained_on.open(windows.store)
    except (GenodiffError, OSError) as fault:
        return SeenBases(bases, reason=f"what it was trained on is not on this machine: {fault}")
    contigs = np.unique(windows.contig_index)
    places = _find_contigs(windows.store, contigs.tolist(), parts)
    known = np.isin(windows.contig_index, np.array([*places], np.int64))
    seen = 0
    for contig, edges in places.items():
        rows = np.flatnonzero(windows.contig_index == contig)
        seen += _count_inside(windows, rows, edges, counted, soft_masked)
    if known.all():
        return SeenBases(bases, seen)
    others = windows.take(np.flatnonzero(~known))

    def look_up() -> NDArray[np.float64]:
        train = [stretch for part in parts for stretch in part.stretches()]
        size = sum(map(len, train))
        _log.info("looking for %d windows in %d bases of training data", len(others), size)
        shared = shared_kmers(_iterate_codes(others), train)
        return measure_shared_cover(_iterate_codes(others), shared)

    made_from = [K, trained_on.key, others.store.manifest["key"]]
    made_from += [sha256_array(part) for part in (others.flat_start, others.length)]
    cover = keep_array("seen", made_from, (len(others),), look_up)
    of_others = counted[~known]
    return SeenBases(bases, seen, int(of_others.sum()), round(float((cover * of_others).sum())))


def have_same_contigs(one: Store, other: Store) -> bool:
    """Whether two stores of DNA have contigs of the same names and letters, whatever their case."""
    return one.contigs == other.contigs and all(
        hash_contig(one, one.names.index(name)) == hash_contig(other, other.names.index(name))
        for name in one.names
    )


def hash_contig(store: Store, contig: int, *, turned: bool = False) -> str:
    """The sha256 of a contig's letters, without their case; `turned`, of its other strand."""
    start, end = int(store.offsets[contig]), int(store.offsets[contig + 1])
    digest = hashlib.sha256()
    for at in range(0, end - start, _PIECE):
        size = min(_PIECE, end - start - at)
        first = end - at - size if turned else start + at
        ids = np.asarray(store.flat[first : first + size]) & _HARD
        digest.update(np.ascontiguousarray(_OTHER_STRAND[ids[::-1]] if turned else ids).data)
    return digest.hexdigest()


def _find_contigs(
    store: Store, contigs: Sequence[int], parts: Sequence[TrainPart]
) -> dict[int, NDArray[np.int64]]:
    """Of those contigs that the training data have too: where on them the train split lies.

    That is (2 n,) starts and ends in turn, sorted, of intervals that do not overlap.
    Nothing is hashed where a length alone tells that a contig is the data's own, or no contig.
    """
    by_length: dict[int, list[tuple[TrainPart, int]]] = defaultdict(list)
    for part in parts:
        for i, length in enumerate(part.store.lengths.tolist()):
            by_length[length].append((part, i))

    @cache
    def group_by_hash(length: int) -> dict[str, list[tuple[TrainPart, int]]]:
        groups: dict[str, list[tuple[TrainPart, int]]] = defaultdict(list)
        for part, i in by_length[length]:
            groups[hash_contig(part.store, i)].append((part, i))
        return groups

    found, key = {}, store.manifest["key"]
    for contig in contigs:
        length = int(store.lengths[contig])
        alike = by_length.get(length, [])
        if [(part.store.manifest["key"], i) for part, i in alike] == [(key, contig)]:
            found[contig] = _join(alike[0][0].intervals_on(contig))
        elif alike:
            same = group_by_hash(length).get(hash_contig(store, contig), [])
            turned = group_by_hash(length).get(hash_contig(store, contig, turned=True), [])
            rows = [row for part, i in same for row in part.intervals_on(i)]
            back = [row for part, i in turned for row in part.intervals_on(i)]
            if same or turned:
                found[contig] = _join([*rows, *((0, length - b, length - a) for _, a, b in back)])
    return found


def _join(rows: Rows) -> NDArray[np.int64]:
    joined = merge(Intervals.of(rows))
    return np.stack([joined.start, joined.end], 1).ravel()


def _count_inside(
    windows: DnaWindows,
    rows: Ints,
    edges: NDArray[np.int64],
    counted: NDArray[np.float64],
    soft_masked: bool,
) -> int:
    """How many of the counted bases of some windows of one contig lie between the edges."""
    start, length = windows.start[rows], windows.length[rows]
    first = np.searchsorted(edges, start, "right")
    last = np.searchsorted(edges, start + length, "left")
    whole = (first == last) & (first % 2 == 1)
    total = int(counted[rows[whole]].sum())
    for i in np.flatnonzero(first != last).tolist():
        flat = int(windows.flat_start[rows[i]])
        data = windows.store.flat[flat : flat + int(length[i])]
        place = int(start[i]) + np.arange(len(data))
        inside = np.searchsorted(edges, place, "right") % 2 == 1
        scored = (encode_bases(data) < len("ACGT")) & (soft_masked | (data < SOFT))
        total += int(np.count_nonzero(inside & scored))
    return total


def _iterate_codes(windows: DnaWindows, rows: int = 256) -> Iterator[Codes]:
    for first in range(0, len(windows), rows):
        some = slice(first, first + rows)
        start, length = windows.flat_start[some], windows.length[some]
        yield from encode_bases(windows.gather(start, length, windows.pad_id))
