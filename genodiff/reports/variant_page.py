"""The page of scored variants: counts, distributions, calibration, and the least likely ones.

It is made of what `scored_tally` counted and what the scores' sidecar says. Logos and the second
draws of standard errors ask the model; without it the page says so.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from genodiff.io.variants import Unscorable
from genodiff.reports.ism_page import weigh_by_information
from genodiff.reports.logo import draw_logo
from genodiff.reports.svg import draw_both_widths
from genodiff.reports.template import render_template
from genodiff.reports.variant_figures import (
    ConsequenceScores,
    Distribution,
    PercentileLine,
    draw_calibration,
    draw_consequences,
    draw_distributions,
    draw_places,
)
from genodiff.variants.consequences import TERMS
from genodiff.variants.logos import RelativesAround, SpellingLogo
from genodiff.variants.scored_file import ScoredRow
from genodiff.variants.scored_tally import ClassScores, ScoredTally, list_grid, measure_ks
from genodiff.variants.scored_variants import NATS_PER_BIT
from genodiff.version import __version__

_MOST_CLASSES, _MOST_ROWS = 6, 30  # with a picture, and in the table
_FEW = 20  # percentiles of a kind that has no line of its own
_NOTES = {
    "too_rare": "no percentile: the genome has too few variants of its kind",
    "se_above_wanted": "the standard error is above --se",
    "moves_with_context": "another score at double context",
}


class TopVariant(NamedTuple):
    """A row of the list, with the logos of both spellings where a model was asked, and what its
    relatives have around it.
    """

    row: ScoredRow
    logos: tuple[SpellingLogo, SpellingLogo] | None = None
    around: RelativesAround | None = None


def render_variant_page(
    name: str,
    tally: ScoredTally,
    told: Mapping[str, Any],
    top: Sequence[TopVariant],
    *,
    changed: bool,
    why_no_model: str,
) -> str:
    """The page as text.

    `told` is the sidecar (without one, the unit alone), and `changed` whether the file was changed
    since.
    `why_no_model` stands where logos would.
    """
    unit = str(told["requested"].get("unit", "nats"))
    background = told.get("background") or {}
    return render_template(
        "variants.html.jinja",
        {
            "version": __version__,
            "name": name,
            "balance": _describe_balance(tally, told, changed),
            "kinds": [(kind, f"{n:,}") for kind, n in tally.scored.most_common()],
            "reasons": [
                (reason, _explain_reason(reason), f"{n:,}")
                for reason, n in tally.unscored.most_common()
            ],
            "notes": [
                (note, _NOTES.get(note, ""), f"{n:,}") for note, n in tally.notes.most_common()
            ],
            "methods": ", ".join(f"{n:,} {one}" for one, n in tally.methods.most_common()),
            "scored": f"{tally.n_scored:,}",
            "ranked": tally.ranked,
            "unit": unit,
            **_show_classes(tally, background, unit),
            **_show_places(tally, unit),
            **_show_calibration(tally, background),
            "top": [_show_top(one, number) for number, one in enumerate(top, 1)],
            "why_no_model": why_no_model,
            "facts": _list_facts(told),
        },
    )


def _describe_balance(tally: ScoredTally, told: Mapping[str, Any], changed: bool) -> list[str]:
    lost = sum(tally.unscored.values())
    said = [
        f"{tally.rows:,} ALTs: {tally.n_scored:,} with a score, {lost:,} without, each with its "
        "reason."
    ]
    if changed:
        said.append(
            "The file was changed since genodiff wrote it; counts refer to the present file"
        )
    elif "scored" in told:
        expected = told["scored"] + sum(told["unscored"].values())
        if expected != tally.rows:
            said.append(f"The file holds {tally.rows:,} of the {expected:,} ALTs that were read.")
    else:
        said.append("There is no sidecar beside the file, so the input is not known.")
    return said


def _explain_reason(reason: str) -> str:
    return Unscorable(reason).meaning if reason in list(Unscorable) else ""


def _show_classes(tally: ScoredTally, background: Mapping[str, Any], unit: str) -> dict[str, Any]:
    classes = sorted(tally.classes.values(), key=lambda one: (-one.n, one.size))
    known = background.get("classes", {})
    shown = [_make_distribution(one, known.get(one.size.name), unit) for one in classes]
    rows = []
    for one, drawn in zip(classes[:_MOST_ROWS], shown, strict=False):
        share = np.cumsum(drawn.counts) / drawn.counts.sum()
        low, middle, high = (
            f"{drawn.middles[np.searchsorted(share, x)]:.2f}" for x in (0.05, 0.5, 0.95)
        )
        random = "–" if drawn.quantiles is None else f"{drawn.quantiles[50]:.2f}"
        rows.append([one.size.name, f"{one.n:,}", middle, f"{low} to {high}", random])
    return {
        "distributions": Markup(draw_both_widths(draw_distributions, shown[:_MOST_CLASSES]))
        if shown
        else "",
        "classes": rows,
        "classes_left": max(0, len(classes) - _MOST_ROWS),
        "has_background": bool(known),
    }


def _show_places(tally: ScoredTally, unit: str) -> dict[str, Any]:
    """Where the scores lie on the genome, and by what they do to genes."""
    by_term = []
    for term in sorted({*TERMS} & {*tally.consequences}, key=TERMS.index):
        middles, counts = list_grid(tally.consequences[term])
        share = np.cumsum(counts) / counts.sum()
        low, middle, high = (float(middles[np.searchsorted(share, x)]) for x in (0.05, 0.5, 0.95))
        by_term.append(ConsequenceScores(term, int(counts.sum()), low, middle, high))
    places, left = tally.places, tally.places.left_out
    return {
        "places": Markup(draw_both_widths(draw_places, places, unit)) if places.ends else "",
        "places_said": f"Each point is the lowest score of {places.width:,} bases"
        + (f"; {left:,} ALTs are on other contigs." if left else "."),
        "consequences": Markup(draw_both_widths(draw_consequences, by_term, unit))
        if by_term
        else "",
    }


def _make_distribution(
    one: ClassScores, known: Mapping[str, Any] | None, unit: str
) -> Distribution:
    middles, counts = one.list_scores()
    quantiles = None
    if known and known.get("quantiles"):
        quantiles = np.array(known["quantiles"]) / (1.0 if unit == "nats" else NATS_PER_BIT)
    name = f"{unit} per base" if one.size.per_base else unit
    return Distribution(one.size.name, middles, counts, quantiles, name)


def _show_calibration(tally: ScoredTally, background: Mapping[str, Any]) -> dict[str, Any]:
    if not tally.ranked:
        return {"calibration": "", "ks": []}
    every = np.sum(list(tally.percentiles.values()), 0)
    lines = [PercentileLine("all", every)]
    if len(tally.percentiles) > 1:
        by_size = sorted(tally.percentiles.items(), key=lambda one: -float(one[1].sum()))
        lines += [PercentileLine(*one) for one in by_size[:3] if one[1].sum() >= _FEW]
    held = [one["held_out"]["bins"] for one in background.get("classes", {}).values()]
    counts = np.sum(held, 0).astype(float) if held else np.zeros(0)
    random = PercentileLine("random, held out", counts) if counts.sum() >= _FEW else None
    rows = []
    for line in [*lines, *([random] if random else [])]:
        distance, band = measure_ks(line.counts)
        low, n = float(line.counts[: max(1, len(line.counts) // 20)].sum()), line.n
        verdict = "inside" if distance <= band else "outside"
        rows.append(
            [line.name, f"{n:,}", f"{distance:.3f}", f"{band:.3f}", verdict, f"{low / n:.1%}"]
        )
    return {
        "calibration": Markup(draw_both_widths(draw_calibration, lines, random)),
        "ks": rows,
    }


def _show_top(one: TopVariant, number: int) -> dict[str, Any]:
    row = one.row
    facts = [f"score {row.score:.3f}" + (f" ± {row.se:.3f}" if row.se else "")]
    if row.percentile is not None:
        z = "" if row.z is None else f", z {row.z:.1f}"
        facts.append(f"percentile {row.percentile:.2f}{z}")
        facts.append(f"among {row.n_background:,} random {row.background}")
    facts += [f"{row.kind}, {row.method}", *row.flags]
    what = row.consequence.replace("_variant", "").replace("_", " ").replace("&", ", ")
    facts = [one for one in (what, row.gene, row.protein) if one] + facts
    logos = []
    heights = [weigh_by_information(np.nan_to_num(x.logs, nan=-np.log(4))) for x in one.logos or ()]
    top = np.ceil(10 * max([0.3, *(float(some.sum(1).max()) for some in heights)])) / 10
    for label, logo, some in zip(("REF", "ALT"), one.logos or (), heights, strict=False):
        picture = draw_logo(
            some,
            name=f"top-{number}-{label.lower()}",
            title=f"{label} of {row.chrom}:{row.pos} {row.ref}>{row.alt}",
            first=logo.first, limits=(0.0, top), column=18.0, height=64.0, marked=logo.span,
        )  # fmt: skip
        left, right = logo.span.start, logo.span.stop
        letters = (logo.letters[:left], logo.letters[left:right], logo.letters[right:])
        logos.append({"label": label, "letters": letters, "svg": Markup(picture)})
    return {
        "number": number,
        "name": f"{row.chrom}:{row.pos:,} {_cut(row.ref)}>{_cut(row.alt)}",
        "id": "" if row.id == "." else row.id,
        "facts": facts,
        "logos": logos,
        "around": None if one.around is None else _show_around(one.around),
    }


def _show_around(around: RelativesAround) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Of the genome itself and of each relative: name, species, and letters with their classes.

    A letter that is the genome's own is a dot.
    """
    rows = [("", "", [(letter, "own") for letter in around.letters])]
    for one in around.rows:
        cells = []
        for own, letter in zip(around.letters, one.letters, strict=True):
            same = letter == own.upper()
            cells.append(("·", "") if same else (letter, letter if letter in "ACGT" else ""))
        rows.append((one.name, one.species.replace("_", " "), cells))
    return [
        (name, species, [(x, f"{c} at" if i in around.span else c) for i, (x, c) in enumerate(row)])
        for name, species, row in rows
    ]


def _cut(letters: str) -> str:
    return letters if len(letters) <= 24 else f"{letters[:20]}… ({len(letters):,})"


def _list_facts(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    if "scored" not in told:
        return []
    asked = told["requested"]
    facts = [
        ("variants", Path(told["variants"]["path"]).name),
        ("genome", f"{Path(told['fasta']['path']).name} ({told['fasta']['sha256'][:12]})"),
        ("model", f"{Path(told['model']).name} ({told['checkpoint']})"),
        ("method", f"{asked['method']}, wanted standard error {asked['se']:g} nats"),
        ("unit", asked["unit"]),
        ("seed", str(asked["seed"])),
        ("evaluations of the network", f"{told['evaluations']:,}"),
        ("written", str(told["created"])),
    ]
    if told.get("relatives"):
        facts.append(("relatives", ", ".join(one["name"] for one in told["relatives"]["genomes"])))
    background = told.get("background")
    if background:
        drawn = sum(one["scores"] for one in background["classes"].values())
        drawn += sum(sum(one.get("rare", {}).values()) for one in background["classes"].values())
        facts.append(("random variants", f"{drawn:,} scores, {background['n']:,} places of SNVs"))
    if told.get("shards"):
        facts.append(("merged from", f"{len(told['shards'])} shards"))
    facts.append(("genodiff", json.dumps(told["genodiff"]).strip('"')))
    return facts
