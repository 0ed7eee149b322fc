"""The figures of a scorecard: each with its rows for a terminal and a page, and its finding.

A finding needs two 95 % intervals that do not overlap, that of the samples and that of other real
sequence. This is stricter than a test at 5 %. No finding says only that none of these figures
can tell the samples from real DNA.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from genodiff.errors import format_count

Part = Mapping[str, Any]
_GRAVEST = ("train", "diversity", "discriminator", "words", "motifs", "embedding", "frames")


class SetValue(NamedTuple):
    """A value of a set with the ends of its 95 % interval."""

    value: float
    ends: tuple[float, float] | None


class Figure(NamedTuple):
    """A figure of a set; `read` gives text, or an estimate, which is `form`atted.

    `finding` is what it says where it is above the floor (or below it), by the name `short`.
    """

    group: str
    title: str
    says: str
    read: Callable[[Part], str | SetValue | None]
    finding: str = ""
    short: str = ""
    bad_above: bool = True
    form: str = ".3f"

    def show(self, part: Part, *, with_interval: bool) -> str:
        """The cell of a set."""
        found = self.read(part)
        if found is None or isinstance(found, str):
            return found or ""
        value, ends = found
        digits = 1 if self.form == ".1f" else 3 if abs(value) < 100 else 0
        shown = f"{value:.1%}" if self.form == ".1%" else f"{value:,.{digits}f}"
        if ends is None or not with_interval:
            return shown
        if self.form == ".1%":
            return f"{shown} [{100 * ends[0]:.0f},{100 * ends[1]:.0f}]"
        return f"{shown} ± {(ends[1] - ends[0]) / 2:,.{digits}f}"


def _error(found: Part | None, key: str = "value") -> SetValue | None:
    if found is None:
        return None
    value, error = found[key], found["se"]
    return SetValue(value, None if error is None else (value - 1.96 * error, value + 1.96 * error))


def _share(found: Part, name: str) -> SetValue:
    return SetValue(found[name], tuple(found[f"{name}_ci95"]))


def list_figures(part: Part) -> Iterator[Figure]:
    """The figures that a set with the keys of `part` has."""
    says = "Jensen-Shannon distance of k-mers, both strands; 0 is equal, 1 disjoint"
    for k in part["js"]:
        yield Figure("words", f"{k}-mers, distance", says, lambda p, k=k: _error(p["js"][k]),  # type: ignore[misc]
                     f"{k}-mer frequencies differ from real sequence", f"{k}-mers")  # fmt: skip
    says = "rank correlation over motifs of their frequencies; 1 is equal"
    yield Figure("motifs", "motifs, rank corr.", says, lambda p: _error(p["motifs"]),
                 "motif frequencies differ from real sequence", "motifs", False)  # fmt: skip
    says = "Frechet distance of a network's embeddings; never 0: compare with real sequence"
    yield Figure("embedding", "Frechet distance", says, lambda p: _error(p["fbd"]),
                 "embeddings are distributed differently from real sequence")  # fmt: skip
    says = "how well a classifier separates the set from real sequence; 0.5 is not at all"
    for by in part["auroc"]:
        yield Figure("discriminator", f"AUROC, {by}", says, lambda p, by=by: _error(p["auroc"][by]),  # type: ignore[misc]
                     "a classifier separates the samples from real sequence")  # fmt: skip
    yield Figure("composition", "GC", "share of G and C", lambda p: f"{p['gc']:.1%}")
    yield Figure(
        "composition", "GC, sd", "its spread over sequences", lambda p: f"{p['gc_sd']:.1%}"
    )
    says = "CpG, observed over expected"
    yield Figure("composition", "CpG, o/e", says, lambda p: f"{p['cpg']:.3f}")
    says = "bases in runs of one letter, 6 or more"
    yield Figure("composition", "runs of 6 and more", says, lambda p: f"{p['long_runs']:.2%}")
    says = "the longest stretch of codons without a stop, six frames, mean"
    yield Figure("frames", "open frame, codons", says, lambda p: _error(p["open_frame"], "mean"),
                 "open frames are shorter than those of real sequence", "open frame", False,
                 ".1f")  # fmt: skip
    says = "the longest ATG ... stop, six frames, mean"
    yield Figure("frames", "gene, codons", says, lambda p: _error(p["gene"], "mean"), form=".1f")
    says = "Jensen-Shannon distance of the codons of the longest open frames"
    yield Figure("frames", "codons, distance", says, lambda p: _error(p["codons"]),
                 "codon usage of the longest open frames differs", "codons")  # fmt: skip
    if part["match"] is not None:
        says = "longest substring shared with train (bp), on either strand"
        yield Figure("train", "match, median", says, lambda p: f"{p['match']['median']:g}")
        yield Figure("train", "match, 99 % (bp)", says, lambda p: f"{p['match']['p99']:.0f}")
        yield Figure("train", "match, longest", says, lambda p: f"{p['match']['max']}")
        says = "more samples than real sequences share 20 bases with train: copied"
        yield Figure("train", "match of 20 bases", "sequences with such a stretch",
                     lambda p: _share(p["match"], "long"), says, form=".1%")  # fmt: skip
        says = "the share of bases equal to the most similar stretch of train, median"
        yield Figure("train", "nearest in train", says, lambda p: f"{p['match']['identity']:.1%}")
        says = "sequences with 80 % of their bases equal to a stretch of train"
        yield Figure("train", "near copies, train", says, lambda p: _share(p["match"], "near"),
                     "more samples equal a stretch of train in 80 % of their bases: copied with "
                     "changes", form=".1%")  # fmt: skip
    says = "sequences already in the set, on either strand"
    yield Figure("diversity", "duplicates", says, lambda p: f"{p['duplicates']:,}")
    says = "share of a sequence's bases equal to its nearest neighbour in the set"
    yield Figure("diversity", "nearest in the set", says, lambda p: f"{p['within']['median']:.1%}")
    says = "sequences with 80 % of their bases equal to another one's"
    yield Figure("diversity", "near copies, set", says, lambda p: _share(p["within"], "near"),
                 "samples resemble one another: the generator has collapsed on few sequences",
                 form=".1%")  # fmt: skip
    says = "effective number of sequences by their 6-mers (Vendi), over their number"
    yield Figure("diversity", "effective share", says, lambda p: f"{p['effective']:.1%}")


def list_scorecard_rows(sets: Mapping[str, Part]) -> list[tuple[Figure, list[str]]]:
    """All figures that the sets have, with a cell of each set. The samples' cells have 95 %
    intervals where known.
    """
    rows = []
    for one in list_figures(next(iter(sets.values()))):
        cells = [one.show(p, with_interval=i == 0) for i, p in enumerate(sets.values())]
        if any(cells) or one.group == "discriminator":
            rows.append((one, cells))
    return rows


def list_sample_findings(sets: Mapping[str, Part]) -> list[dict[str, str]]:
    """The findings of `sets["samples"]` beside `sets["real"]`: the figure, and what it says."""
    found = []
    mine, floor = sets["samples"], sets["real"]
    judged = [one for one in list_figures(mine) if one.finding]
    for one in sorted(judged, key=lambda figure: _GRAVEST.index(figure.group)):
        value, beside = one.read(mine), one.read(floor)
        if not isinstance(value, SetValue) or not isinstance(beside, SetValue):
            continue
        if value.ends is None or beside.ends is None:
            continue
        (low, high), (least, most) = value.ends, beside.ends
        if low > most if one.bad_above else high < least:
            shown = f"{value.value:{one.form}}, and real sequence {beside.value:{one.form}}"
            found.append({"figure": one.short or one.title, "says": f"{one.finding} ({shown})"})
    if mine["duplicates"] > floor["duplicates"]:
        says = f"{mine['duplicates']:,} samples are duplicated, on either strand"
        found.insert(0, {"figure": "duplicates", "says": says})
    return found


def show_scorecard(found: dict[str, Any]) -> None:
    """Print the figures of samples, and what is said of them."""
    console = Console()
    sets = found["sets"]
    compared = format_count(found["compared"], "sequence")
    title = f"{compared} of {found['length']:,} bases each, against as many"
    table = Table(title=f"{title} real ones", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for name in sets:
        table.add_column(name, justify="right", no_wrap=True)
    for one, cells in list_scorecard_rows(sets):
        table.add_row(one.title, *map(escape, cells))
    said = [f"{each['figure']}: {each['says']}" for each in found["findings"]]
    console.print(table)
    nothing = "no figure differs from its baseline (few or short samples cannot show much)"
    for line in said or [nothing]:
        console.print(line, markup=False, highlight=False)
