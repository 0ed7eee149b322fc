"""The rows of a scorecard, with their digits, for a terminal and for a page."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Part = Mapping[str, Any]


class FigureRow(NamedTuple):
    """One figure of all sets, in the order of `sets`, and what it says."""

    group: str
    title: str
    cells: list[str]
    says: str


_JS = "Jensen-Shannon distance of k-mers, both strands; 0 is equal, 1 disjoint"
_WITHIN = "share of a sequence's bases equal to its nearest neighbour in the set"


def list_scorecard_rows(sets: Mapping[str, Part]) -> list[FigureRow]:
    """All figures that the sets have. The samples' cells have 95 % half widths where known."""
    rows: list[FigureRow] = []
    first = next(iter(sets.values()))

    def add(group: str, title: str, says: str, show: Callable[[Part], str]) -> None:
        rows.append(FigureRow(group, title, [show(part) for part in sets.values()], says))

    def add_figure(
        group: str, title: str, says: str, pick: Callable[[Part], Any], key: str = "value"
    ) -> None:
        cells = [_show(pick(part), key, i == 0) for i, part in enumerate(sets.values())]
        if any(cells) or group == "discriminator":
            rows.append(FigureRow(group, title, cells, says))

    def add_share(title: str, says: str, table: str, name: str, group: str) -> None:
        cells = []
        for i, part in enumerate(sets.values()):
            low, high = part[table][f"{name}_ci95"]
            ends = f" [{100 * low:.0f},{100 * high:.0f}]" if i == 0 else ""
            cells.append(f"{part[table][name]:.1%}{ends}")
        rows.append(FigureRow(group, title, cells, says))

    for k in first["js"]:
        add_figure("words", f"{k}-mers, distance", _JS, lambda part, k=k: part["js"][k])  # type: ignore[misc]
    says = "rank correlation over motifs of their frequencies; 1 is equal"
    add_figure("motifs", "motifs, rank corr.", says, lambda part: part["motifs"])
    says = "Frechet distance of a network's embeddings; never 0: compare with real sequence"
    add_figure("embedding", "Frechet distance", says, lambda part: part["fbd"])
    for by in first["auroc"]:
        says = "how well a classifier separates the set from real sequence; 0.5 is not at all"
        add_figure("discriminator", f"AUROC, {by}", says, lambda part, by=by: part["auroc"][by])  # type: ignore[misc]
    add("composition", "GC", "share of G and C", lambda part: f"{part['gc']:.1%}")
    add("composition", "GC, sd", "its spread over sequences", lambda part: f"{part['gc_sd']:.1%}")
    add("composition", "CpG, o/e", "CpG, observed over expected", lambda part: f"{part['cpg']:.3f}")
    says = "bases in runs of one letter, 6 or more"
    add("composition", "runs of 6 and more", says, lambda part: f"{part['long_runs']:.2%}")
    says = "the longest stretch of codons without a stop, six frames, mean"
    add_figure("frames", "open frame, codons", says, lambda part: part["open_frame"], "mean")
    says = "the longest ATG ... stop, six frames, mean"
    add_figure("frames", "gene, codons", says, lambda part: part["gene"], "mean")
    says = "Jensen-Shannon distance of the codons of the longest open frames"
    add_figure("frames", "codons, distance", says, lambda part: part["codons"])
    if first["match"] is not None:
        says = "longest substring shared with train (bp), on either strand"
        add("train", "match, median", says, lambda part: f"{part['match']['median']:g}")
        add("train", "match, 99 % (bp)", says, lambda part: f"{part['match']['p99']:.0f}")
        add("train", "match, longest", says, lambda part: f"{part['match']['max']}")
        add_share("match of 20 bases", "sequences with such a stretch", "match", "long", "train")
        says = "the share of bases equal to the most similar stretch of train, median"
        add("train", "nearest in train", says, lambda part: f"{part['match']['identity']:.1%}")
        says = "sequences with 80 % of their bases equal to a stretch of train"
        add_share("near copies, train", says, "match", "near", "train")
    says = "sequences already in the set, on either strand"
    add("diversity", "duplicates", says, lambda part: f"{part['duplicates']:,}")
    add("diversity", "nearest in the set", _WITHIN, lambda part: f"{part['within']['median']:.1%}")
    says = "sequences with 80 % of their bases equal to another one's"
    add_share("near copies, set", says, "within", "near", "diversity")
    says = "effective number of sequences by their 6-mers (Vendi), over their number"
    add("diversity", "effective share", says, lambda part: f"{part['effective']:.1%}")
    return rows


def _show(figure: Mapping[str, Any] | None, key: str, error: bool) -> str:
    if figure is None:
        return ""
    value, half = figure[key], figure["se"]
    digits = 1 if key == "mean" else 3 if abs(value) < 100 else 0
    shown = f"{value:,.{digits}f}"
    return f"{shown} ± {1.96 * half:,.{digits}f}" if error and half is not None else shown
