"""The page of `genodiff constraint`: what was scored, by which genomes, and what is conserved."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from genodiff.conservation.elements import Element
from genodiff.maps.track_values import BaseTracks
from genodiff.reports.figures import NARROW, TALL, WIDE
from genodiff.reports.svg import INK, MARKOV, MODEL, MUTED, draw_both_widths, open_canvas, to_svg
from genodiff.reports.template import render_template
from genodiff.version import __version__

MOST_ELEMENTS = 12
_SMOOTH = 15  # bases that a track is averaged over in the figure


def render_constraint_page(
    told: Mapping[str, Any],
    assembly: str,
    strongest: Sequence[Element],
    around: BaseTracks | None,
) -> str:
    """Render the page; `told` is the sidecar, `strongest` the elements by their score, and `around`
    the tracks around the first of them.
    """
    known, scored = max(told["known"], 1), told["scored"]
    classes = told.get("classes") or ()
    drawn = None if around is None else draw_both_widths(draw_profile, around, strongest)
    return render_template(
        "constraint.html.jinja",
        {
            "version": __version__,
            "name": assembly,
            "share": f"{scored / known:.1%}",
            "scored": f"{scored:,}",
            "known": f"{known:,}",
            "elements": f"{told['elements']:,}",
            "element_share": f"{told['element_bases'] / max(scored, 1):.1%}",
            "fdr": f"{told['fdr']:g}",
            "rate": f"{told['means']['rate']:.2f}",
            "relatives": [_describe_relative(one, told) for one in told["relatives"]["genomes"]],
            "species": any(one.get("species") for one in told["relatives"]["genomes"]),
            "few": told.get("rs_values"),
            "smooth": _SMOOTH,
            "left_out": [one["name"] for one in told["relatives"].get("left_out", ())],
            "strongest": [
                (f"{one.contig}:{one.start + 1:,}-{one.end:,}", f"{one.end - one.start:,}",
                 f"{one.lod:.1f}", f"{one.q:.2g}")
                for one in strongest[:MOST_ELEMENTS]
            ],
            "place": "" if around is None else _name_place(around),
            "profile": Markup(drawn or ""),
            "by_class": Markup(draw_both_widths(draw_classes, classes)) if classes else "",
            "classes": [_describe_class(one) for one in classes],
            "facts": _list_facts(told),
        },
    )  # fmt: skip


def _describe_relative(one: Mapping[str, Any], told: Mapping[str, Any]) -> tuple[str, ...]:
    covered = told["covered"][one["name"]] / max(told["known"], 1)
    species = str(one.get("species") or "").replace("_", " ")
    identity = one.get("identity")
    return (
        one["name"], species, "" if identity is None else f"{identity:.1%}", f"{covered:.1%}",
        f"{one['bases'] / 1e6:,.2f}",
    )  # fmt: skip


def _describe_class(one: Mapping[str, Any]) -> tuple[str, ...]:
    name, scored, bases = one["class"].replace("_", " "), one["scored"], one["bases"]
    if not scored:
        return (name, f"{bases:,}", "0%", "", "", "", "")
    return (
        name, f"{bases:,}", f"{scored / bases:.1%}", f"{one['rate']:.2f}",
        f"{one['rs']:+.3f}", f"{one['conserved']:.2f}", f"{one['in_elements'] / bases:.1%}",
    )  # fmt: skip


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


def _name_place(one: BaseTracks) -> str:
    return f"{one.contig}:{one.start + 1:,}-{one.start + len(one.letters):,}"


def draw_profile(around: BaseTracks, elements: Sequence[Element], *, narrow: bool = False) -> str:
    """The probability of the slow classes and `rs` around an element, elements as bars below."""
    n = len(around.letters)
    at = around.start + 1 + np.arange(n)
    with open_canvas(NARROW if narrow else WIDE, TALL) as figure:
        top, low = figure.subplots(2, 1, sharex=True)
        conserved, rs = (
            _smooth(np.asarray(around.related[name], float)) for name in ("conserved", "rs")
        )
        top.fill_between(at, 0, conserved, color=MODEL, linewidth=0)
        top.set_ylim(0, 1.02)
        top.set_ylabel("probability of\nconservation")
        low.axhline(0, color=MUTED, linewidth=0.7)
        low.plot(at, rs, color=INK, linewidth=1)
        for one in elements:
            if one.contig == around.contig and one.start < at[-1] and one.end > at[0]:
                low.axvspan(one.start + 1, one.end, 0, 0.06, color=MARKOV, linewidth=0)
        low.set_ylabel("rejected\nsubstitutions")
        low.set_xlim(at[0], at[-1])
        low.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        low.set_xlabel(around.contig)
        title = f"Probability of conservation and rejected substitutions, {_name_place(around)}"
        return to_svg(figure, "fig-profile-narrow" if narrow else "fig-profile", title)


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over `_SMOOTH` bases, those without a value left out; NaN where there is none."""
    there, kernel = ~np.isnan(values), np.ones(_SMOOTH)
    sums = np.convolve(np.where(there, values, 0), kernel, "same")[: len(values)]
    counts = np.convolve(there, kernel, "same")[: len(values)]
    return np.where(there, sums / np.maximum(counts, 1), np.nan)


def draw_classes(classes: Sequence[Mapping[str, Any]], *, narrow: bool = False) -> str:
    """The mean rate of each class of bases."""
    rows = [one for one in classes if one["scored"]]
    with open_canvas(NARROW if narrow else WIDE, 0.9 + 0.28 * len(rows)) as figure:
        ax = figure.add_subplot()
        ax.axvline(1, color=MUTED, linewidth=0.9)
        ax.barh(range(len(rows)), [one["rate"] for one in rows], 0.6, color=MODEL)
        ax.set_yticks(range(len(rows)), [one["class"].replace("_", " ") for one in rows])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.grid(visible=False, axis="y")
        ax.set_xlabel("mean rate; 1 is neutral")
        name = "fig-classes-narrow" if narrow else "fig-classes"
        return to_svg(figure, name, "Mean substitution rate by class of base")
