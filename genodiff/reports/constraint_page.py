"""The page of `genodiff constraint`: what was scored, by which genomes, and what is conserved."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.conservation.elements import Element
from genodiff.maps.track_values import BaseTracks
from genodiff.reports.chart import Axis, Trace, draw_both_widths, draw_chart, make_rows
from genodiff.reports.shapes import Shape, move
from genodiff.reports.template import render_template

MOST_ELEMENTS = 12
_SMOOTH = 15  # bases that a track is averaged over in the figure


def render_constraint_page(
    told: Mapping[str, Any], assembly: str, strongest: Sequence[Element], around: BaseTracks | None
) -> str:
    """Render the page; `told` is the sidecar, `strongest` the elements by their score, and `around`
    the tracks around the first of them.
    """
    known, scored = max(told["known"], 1), told["scored"]
    classes = told.get("classes") or ()
    genomes, left_out = told["relatives"]["genomes"], told["relatives"].get("left_out", ())
    context: dict[str, Any] = {"name": assembly, "few": told.get("rs_values"), "smooth": _SMOOTH}
    context |= {"share": f"{scored / known:.1%}", "scored": f"{scored:,}", "known": f"{known:,}"}
    context |= {"elements": f"{told['elements']:,}", "fdr": f"{told['fdr']:g}"}
    context["element_share"] = f"{told['element_bases'] / max(scored, 1):.1%}"
    context["rate"] = f"{told['means']['rate']:.2f}"
    context["relatives"] = [_describe_relative(one, told) for one in genomes]
    context["species"] = any(one.get("species") for one in genomes)
    context["left_out"] = [one["name"] for one in left_out]
    context["strongest"] = [_describe_element(one) for one in strongest[:MOST_ELEMENTS]]
    context["place"] = "" if around is None else around.label
    context["profile"] = "" if around is None else draw_profile(around, strongest)
    context["by_class"] = draw_classes(classes) if classes else ""
    context["classes"] = [_describe_class(one) for one in classes]
    return render_template("constraint.html.jinja", context | {"facts": _list_facts(told)})


def _describe_element(one: Element) -> tuple[str, ...]:
    place, size = f"{one.contig}:{one.start + 1:,}-{one.end:,}", f"{one.end - one.start:,}"
    return place, size, f"{one.lod:.1f}", f"{one.q:.2g}"


def _describe_relative(one: Mapping[str, Any], told: Mapping[str, Any]) -> tuple[str, ...]:
    covered = told["covered"][one["name"]] / max(told["known"], 1)
    species, identity = str(one.get("species") or "").replace("_", " "), one.get("identity")
    alike = "" if identity is None else f"{identity:.1%}"
    return one["name"], species, alike, f"{covered:.1%}", f"{one['bases'] / 1e6:,.2f}"


def _describe_class(one: Mapping[str, Any]) -> tuple[str, ...]:
    name, scored, bases = one["class"].replace("_", " "), one["scored"], one["bases"]
    if not scored:
        return (name, f"{bases:,}", "0%", "", "", "", "")
    figures = f"{one['rate']:.2f}", f"{one['rs']:+.3f}", f"{one['conserved']:.2f}"
    within = f"{one['in_elements'] / bases:.1%}"
    return name, f"{bases:,}", f"{scored / bases:.1%}", *figures, within


def _list_facts(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    neutral = told["neutral"]
    facts = [
        ("rate 1", f"{neutral['source']}: {neutral['sites']:,.0f} positions"),
        ("transition/transversion rate ratio", f"{neutral['kappa']:.2f}"),
        ("tree, in substitutions per neutral site", told["tree"]),
        ("bases of a window", f"{told['context']:,}"),
    ]
    if told.get("genes"):
        facts.append(("genes", Path(told["genes"]).name))
    return facts


def draw_profile(around: BaseTracks, elements: Sequence[Element]) -> Markup:
    """The probability of the slow classes and `rs` around an element, elements as bars below."""
    at = around.start + 1 + np.arange(len(around.letters))
    conserved, rs = (
        _smooth(np.asarray(around.related[name], float)) for name in ("conserved", "rs")
    )
    x = Axis(around.contig, at[0], at[-1], form="{:,.0f}".format)
    least, most = float(np.nanmin(rs, initial=0)), float(np.nanmax(rs, initial=0))
    floor = least - 0.15 * (most - least)
    low = [Trace(at[[0, -1]], [0, 0], "muted", width=0.7), Trace(at, rs, "ink", width=1)]
    for one in elements:
        if one.contig == around.contig and one.start < at[-1] and one.end > at[0]:
            low.append(Trace([one.start + 1, one.end], [floor, floor], "markov", width=8))

    def draw(width: float) -> list[Shape]:
        y = Axis("conservation", 0, 1.02, room=24)
        top = draw_chart([Trace(at, conserved, floor=0)], x._replace(title=""), y, width, 75)
        return top + move(draw_chart(low, x, Axis("rs", floor, room=24), width, 75), 0, 105)

    return draw_both_widths(
        f"Probability of conservation and rejected substitutions, {around.label}", draw
    )


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over `_SMOOTH` bases, those without a value left out; NaN where there is none."""
    there, kernel = ~np.isnan(values), np.ones(_SMOOTH)
    sums = np.convolve(np.where(there, values, 0), kernel, "same")[: len(values)]
    counts = np.convolve(there, kernel, "same")[: len(values)]
    return np.where(there, sums / np.maximum(counts, 1), np.nan)


def draw_classes(classes: Sequence[Mapping[str, Any]]) -> Markup:
    """The mean rate of each class of bases."""
    rows = [one for one in classes if one["scored"]]
    names = make_rows(one["class"].replace("_", " ") for one in rows)
    rates, at = [one["rate"] for one in rows], list(range(len(rows)))
    bars = Trace(rates, at, ends=[(0, r) for r in rates], width=0, thick=11, sideways=True)
    traces = [bars, Trace([1, 1], [-0.6, len(rows) - 0.4], "muted", width=0.9)]
    x, height = Axis("mean rate; 1 is neutral", 0), 19 * len(rows)
    title = "Mean substitution rate by class of base"
    return draw_both_widths(title, lambda width: draw_chart(traces, x, names, width, height))
