"""Which intervals train, validate and test: a recipe's rule, or a BED's, laid on the contigs that a
file really has.

Everything is 0-based half-open. In strict mode no base of train is in valid or test;
`legacy_caduceus_tiling` stretches every interval to 2^20 bases as the loader of published Caduceus
does (`hg38_dataset.py`), which breaks that on purpose.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.data.recipe import SPLITS, Recipe, find_recipe_of
from genodiff.errors import DataError, did_you_mean
from genodiff.io.bed import read_bed

LEGACY_LENGTH = 1 << 20
HELD_OUT = 20
"""A file without a split of its own gives one part in 20 to each held-out split."""

Rows = list[tuple[int, int, int]]
"""(contig number, start, end)"""

_ALIASES = {"val": "valid", "validation": "valid"}


@dataclass(frozen=True)
class Intervals:
    """Intervals in file order: contig number, start, end, and BED line (0: no line)."""

    contig: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    line: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows, lines: list[int] | None = None) -> "Intervals":
        """Rows as arrays; empty intervals are left out."""
        table = np.array(rows, np.int64).reshape(-1, 3)
        table = np.column_stack((table, np.array(lines or [0] * len(rows), np.int64)))
        return cls(*table[table[:, 2] > table[:, 1]].T.copy())

    def __len__(self) -> int:
        return len(self.contig)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> "Intervals":
        return Intervals(self.contig[index], self.start[index], self.end[index], self.line[index])

    @property
    def n_bases(self) -> int:
        return int((self.end - self.start).sum())


@dataclass(frozen=True)
class Splits:
    """The intervals of each split, and what a user should be told about how they came about."""

    intervals: dict[str, Intervals]
    notes: tuple[str, ...] = ()


def resolve(
    recipe: Recipe, contigs: dict[str, int], origin: str | Path, *, exact: bool = False
) -> Splits:
    """The splits of `recipe` on a file that holds `contigs` (name → length).

    A file may lack contigs of the recipe, or end them early (a partial genome): that is noted, not
    hidden. A contig that is longer than the recipe's is another assembly. A file that shares no
    contig with the recipe is split as a genome of its own; held-out splits that have no contig in
    the file are cut from the train contigs' ends. With `exact` every contig of the recipe must be
    there in full. Raises `DataError`.
    """
    if recipe.bed is not None:
        if exact:
            _compare(recipe, contigs, origin, exact)
        return _from_bed(recipe.bed, contigs)
    names = list(contigs)
    shared = [c for c in names if c in recipe.contigs]
    if exact or shared:
        notes = _compare(recipe, contigs, origin, exact)
    elif recipe.contigs:
        _refuse_other_names(recipe, contigs, origin)
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        note = f"none of its contigs ({shown}) is of the recipe {recipe.name}: it is split as a "
        notes = [f"{note}genome of its own"]
    else:
        shared, notes = names, []
    if not shared or recipe.splits is None:
        made = split_automatically(list(contigs.values()))
        notes = [*notes, _cut_note(made, len(names))]
        known = None if recipe.contigs else find_recipe_of(contigs)
        if known is not None:
            note = f"its contigs are those of the recipe {known.name}, whose test is "
            note += f"{', '.join(_names(known, 'test'))}: `genodiff train {known.name} --fasta "
            notes.append(f"{note}{origin}` splits it so")
        return Splits({s: Intervals.of(made[s]) for s in SPLITS}, tuple(notes))
    rows = _from_rule(recipe, {c: contigs[c] for c in names if c in shared}, names)
    missing = tuple(s for s in ("valid", "test") if not rows[s] and _names(recipe, s))
    if not rows["train"]:
        what = f"none of its contigs is in the train split: {', '.join(shared[:5])} are held out "
        fix = "give a file with more contigs, or your own splits with --bed"
        raise DataError(f"{what}by the recipe {recipe.name}", file=origin, fix=fix)
    if missing:
        rows |= _cut_ends(rows["train"], missing)
        absent = "; ".join(f"{s} ({', '.join(_names(recipe, s))})" for s in missing)
        note = f"it has no contig of {absent}: the ends of its train contigs are held out instead"
        notes.append(note)
    splits = {s: Intervals.of(rows[s]) for s in SPLITS}
    refuse_overlap(splits, names, f"recipe {recipe.name}")
    return Splits(splits, tuple(notes))


def stretch_intervals(intervals: Intervals, lengths: NDArray[np.int64]) -> Intervals:
    """Each interval as start..start + 2^20 within its contig, as published Caduceus does."""
    end = np.minimum(intervals.start + LEGACY_LENGTH, lengths[intervals.contig])
    return replace(intervals, end=end)


def split_automatically(lengths: list[int]) -> dict[str, Rows]:
    """Splits of contigs that come with none: 1/20 of the bases to valid and to test, the rest to
    train.

    From 20 contigs on, contigs are dealt whole, by length: of each 20 neighbours in length the
    tenth validates and the last tests. With fewer, the end of every contig is cut off.
    """
    if len(lengths) < HELD_OUT:
        return _cut_ends([(c, 0, n) for c, n in enumerate(lengths)], ("valid", "test"))
    rows: dict[str, Rows] = {s: [] for s in SPLITS}
    by_length = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    place = {9: "valid", 19: "test"}
    for rank, i in enumerate(by_length):
        rows[place.get(rank % HELD_OUT, "train")].append((i, 0, lengths[i]))
    return {s: sorted(r) for s, r in rows.items()}


def _cut_ends(train: Rows, held_out: tuple[str, ...]) -> dict[str, Rows]:
    cut: dict[str, Rows] = {"train": [], **{s: [] for s in held_out}}
    for contig, start, end in train:
        step = (end - start) // HELD_OUT
        edge = end - step * len(held_out)
        if edge > start:
            cut["train"].append((contig, start, edge))
        if step:
            for i, split in enumerate(held_out):
                cut[split].append((contig, edge + i * step, edge + (i + 1) * step))
    return cut


def _cut_note(rows: dict[str, Rows], n: int) -> str:
    size = {split: sum(end - start for _, start, end in own) for split, own in rows.items()}
    total = max(sum(size.values()), 1)
    parts = " and ".join(f"{size[held] / total:.1%} to {held}" for held in ("valid", "test"))
    if n < HELD_OUT:
        how = "the end of each contig is held out"
    else:
        how = "whole contigs are held out, one in 20 neighbours in length for each"
    return f"split without a rule: {parts}, the rest to train ({how}); give your own with --bed"


def _names(recipe: Recipe, split: str) -> list[str]:
    pieces = getattr(recipe.splits, split)
    return sorted({p if isinstance(p, str) else p[0] for p in pieces})


def _from_rule(recipe: Recipe, contigs: dict[str, int], names: list[str]) -> dict[str, Rows]:
    number = {c: i for i, c in enumerate(names)}
    rows: dict[str, Rows] = {}
    for split in SPLITS:
        pieces = getattr(recipe.splits, split)
        if pieces == "rest":
            named = {c for other in ("valid", "test") for c in _names(recipe, other)}
            pieces = tuple(c for c in contigs if c not in named)
        placed = [(p, 0, contigs.get(p, 0)) if isinstance(p, str) else p for p in pieces]
        here = [(c, a, min(b, contigs[c])) for c, a, b in placed if c in contigs]
        rows[split] = [(number[c], a, b) for c, a, b in here if a < contigs[c]]
    return rows


def _compare(recipe: Recipe, contigs: dict[str, int], origin: str | Path, exact: bool) -> list[str]:
    wrong = {c: n for c, n in contigs.items() if c in recipe.contigs and n != recipe.contigs[c]}
    longer = {c: n for c, n in wrong.items() if n > recipe.contigs[c]}
    if longer or (exact and wrong):
        contig, length = next(iter((longer or wrong).items()))
        what = f"has {length:,} bases, but {recipe.contigs[contig]:,} in {recipe.name}: this is "
        what += "another assembly"
        fix = f"give a FASTA of {recipe.name}, or your own splits with --bed"
        raise DataError(what, file=origin, record=contig, fix=fix)
    missing = [c for c in recipe.contigs if c not in contigs]
    if exact and missing:
        fix = "get the whole file again"
        raise DataError(f"lacks {_some(missing)} of {recipe.name}", file=origin, fix=fix)
    early = [f"{c} {n:,} of {recipe.contigs[c]:,}" for c, n in wrong.items()]
    foreign = [c for c in contigs if c not in recipe.contigs]
    notes = {
        f"lacks {len(missing)} of {recipe.name}'s {len(recipe.contigs)} contigs": missing,
        f"ends {len(wrong)} contigs before {recipe.name} does (bases)": early,
        f"{len(foreign)} contigs are not of {recipe.name} and are left out": foreign,
    }
    return [f"{note}: {_some(items)}" for note, items in notes.items() if items]


def _some(items: list[str], most: int = 8) -> str:
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")


def _refuse_other_names(recipe: Recipe, contigs: dict[str, int], origin: str | Path) -> None:
    """Raises `DataError` where the contigs are the recipe's under other names (1 for chr1)."""
    bare = {c.removeprefix("chr"): c for c in recipe.contigs}
    for name in contigs:
        known = bare.get(name.removeprefix("chr"))
        if known is not None:
            what = f"this contig is '{known}' in the recipe {recipe.name}"
            fix = f"rename the contigs as {recipe.name} has them, or give your own splits with"
            raise DataError(what, file=origin, record=name, fix=f"{fix} --bed")


def _from_bed(bed: str, contigs: dict[str, int]) -> Splits:
    table = read_bed(bed, contigs)
    names = list(contigs)
    number = {c: i for i, c in enumerate(names)}
    rows: dict[str, Rows] = {s: [] for s in SPLITS}
    places: dict[str, list[int]] = {s: [] for s in SPLITS}
    columns = ("contig", "start", "end", "name", "line")
    for contig, start, end, label, line in table.select(columns).iter_rows():
        split = _ALIASES.get(str(label).lower(), str(label).lower())
        if split not in rows:
            what = f"has the split '{label}'; {did_you_mean(split, SPLITS)}"
            what = "has no 4th column" if label is None else what
            fix = "write train, valid or test in the 4th column"
            raise DataError(what, file=bed, line=line, fix=fix)
        rows[split].append((number[contig], start, end))
        places[split].append(line)
    given = {s: Intervals.of(rows[s], places[s]) for s in SPLITS}
    refuse_overlap(given, names, bed)
    merged = {s: merge(i) for s, i in given.items()}
    notes = [
        f"{bed}: {len(given[s]) - len(merged[s])} rows of {s} overlap or repeat others and are "
        f"merged with them"
        for s in SPLITS
        if len(merged[s]) < len(given[s])
    ]
    return Splits(merged, tuple(notes))


def merge(intervals: Intervals) -> Intervals:
    """Overlapping intervals merged, sorted by contig and start; those that touch stay apart."""
    if len(intervals) == 0:
        return intervals
    sorted_ = intervals.take(np.lexsort((intervals.start, intervals.contig)))
    # The reach is the furthest end so far within the contig; adding a contig's own offset keeps
    # contigs apart.
    offset = sorted_.contig * (int(sorted_.end.max()) + 1)
    reach = np.maximum.accumulate(sorted_.end + offset)
    first = np.concatenate(([True], (sorted_.start + offset)[1:] >= reach[:-1]))
    index = np.flatnonzero(first)
    ends = np.maximum.reduceat(sorted_.end, index)
    return Intervals(sorted_.contig[index], sorted_.start[index], ends, sorted_.line[index])


def refuse_overlap(splits: dict[str, Intervals], names: list[str], origin: str | Path) -> None:
    """Raises `DataError` naming both rows where intervals of two splits overlap."""
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        a, b = splits[one], splits[other]
        for contig in np.intersect1d(a.contig, b.contig):
            left, right = a.take(a.contig == contig), merge(b.take(b.contig == contig))
            # `right` is sorted and disjoint, so the last of its intervals that starts before an end
            # decides.
            at = np.searchsorted(right.start, left.end, "left") - 1
            clash = np.flatnonzero((at >= 0) & (right.end[at] > left.start))
            if clash.size:
                i = clash[0]
                meets = (b.start < left.end[i]) & (b.end > left.start[i])
                theirs = b.take((b.contig == contig) & meets)
                mine, their = _shown(left, i, names), _shown(theirs, 0, names)
                what = f"the {one} interval {mine} overlaps the {other} interval {their}"
                fix = "make the splits disjoint"
                raise DataError(what, file=origin, line=int(left.line[i]) or None, fix=fix)


def _shown(intervals: Intervals, i: int, names: list[str]) -> str:
    line, name = int(intervals.line[i]), names[int(intervals.contig[i])]
    place = f"{name}:{int(intervals.start[i]) + 1}-{int(intervals.end[i])}"
    return f"{place} of line {line}" if line else place


def keeps_contig(recipe: Recipe, contig: str) -> bool:
    """Whether a store of `recipe` keeps a contig of this name."""
    return not recipe.ignore or re.search(recipe.ignore, contig) is None
