"""`report.html`: one run on one page that needs no network, no fonts and no scripts.

The page also says what is not known.

The page is made of plain values: `make_context` turns the parts of a run folder into them,
the template only lays them out, with everything escaped but the figures, which are ours.
The same inputs give the same bytes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from genodiff.domain import TEXT
from genodiff.io import atomic
from genodiff.io.progress import say_slow
from genodiff.io.target import seal_page
from genodiff.reports import blocks, figures, sample_figures
from genodiff.reports.comparison import Comparison
from genodiff.reports.evaluation import Evaluation
from genodiff.reports.findings import (
    list_evaluation_findings,
    list_findings,
    measure_gap_closed,
)
from genodiff.reports.folder import RunParts, read_folder
from genodiff.reports.reference import open_reference
from genodiff.reports.svg import draw_both_widths
from genodiff.reports.template import render_template
from genodiff.statistics.reasons import TOO_FEW
from genodiff.version import __version__

_OWN = "Other evaluations of the run's own data"
_FOREIGN = "On other data"


def write_report(
    run: Path, out: Path | None = None, *, samples: Path | None = None, offline: bool = True
) -> Path:
    """Write the report of the run folder `run`, atomically, and return its path.

    The default for `out` is `run`/report.html. `samples` is a file in place of the run's own.
    `offline`: real sequence to compare samples with is taken from data that are already here, never
    fetched. Raises CheckpointError where `run` is no run folder.
    """
    target = run / "report.html" if out is None else out
    with say_slow(f"drawing {target}"):
        folder = read_folder(run, samples)
        reference, note = open_reference(folder, offline=offline)
        comparison = None if reference is None else reference.comparison(folder)
        windows = [] if reference is None else reference.windows()
        page = render_page(folder, comparison, note, windows)
    atomic.write_text(target, seal_page(page))
    return target


def render_page(
    folder: RunParts,
    comparison: Comparison | None = None,
    note: str = "",
    windows: Sequence[tuple[str, str]] = (),
) -> str:
    """The page as text.

    `comparison` sets samples beside real DNA, and `note` says why there is none. `windows` has a
    line for each split.
    """
    return render_template("page.html.jinja", make_context(folder, comparison, note, list(windows)))


def make_context(
    folder: RunParts, comparison: Comparison | None, note: str, windows: list[tuple[str, str]]
) -> dict[str, Any]:
    """Everything that the template shows, as strings, numbers and lists."""
    evaluation = folder.evaluation
    lines = blocks.list_lines(evaluation) if evaluation is not None else []
    samples = folder.samples or []
    unit = folder.domain.size_unit
    return {
        "unit": unit,
        "is_text": folder.domain is TEXT,
        "version": __version__,
        "name": folder.path.resolve().name,
        "subtitle": blocks.subtitle(folder),
        "contents": [
            ("headline", f"Bits per {unit}"),
            ("training", "Training"),
            ("detail", "Where the bits are"),
            ("generated", folder.domain.samples_title),
            ("configuration", "Configuration"),
            ("provenance", "Provenance"),
        ],
        "commands": blocks.list_commands(folder),
        "again": f"genodiff report {blocks.quote_path(folder.path)}",
        "headline": blocks.make_headline(evaluation, folder.with_memory)
        if evaluation is not None
        else None,
        "others": list_other_tables(folder),
        "findings": list_findings(folder),
        "figures": {name: Markup(svg) for name, svg in _figures(folder, comparison, lines).items()},
        "lines": blocks.list_line_rows(evaluation, lines) if evaluation is not None else [],
        "training": blocks.describe_training(folder),
        "regions": blocks.list_region_rows(evaluation) if evaluation is not None else [],
        "soft_mask": blocks.describe_soft_mask(evaluation) if evaluation is not None else "",
        "contigs": blocks.list_contig_rows(evaluation) if evaluation is not None else [],
        "contigs_left": max(0, len(evaluation.contigs) - blocks.MOST_CONTIGS)
        if evaluation is not None
        else 0,
        "card": blocks.make_card(comparison) if comparison is not None else None,
        "card_note": note,
        "samples": [blocks.sample(s, folder.domain) for s in samples[: blocks.MOST_SAMPLES]],
        "samples_total": f"{len(samples):,}",
        "config": folder.config_text,
        "provenance": blocks.list_provenance(folder.provenance, windows),
    }


def _figures(
    folder: RunParts, comparison: Comparison | None, lines: list[figures.BitsLine]
) -> dict[str, str]:
    """The figures that these parts allow; the others are empty strings."""
    drawn = dict.fromkeys(("line", "curves", "mask_rate", "kmers", "js", "gc", "runs"), "")
    evaluation = folder.evaluation
    anchors = [x for x in lines if x.role != "model"] or [
        figures.BitsLine("uniform", "uniform", folder.domain.uniform_bits)
    ]
    unit = folder.domain.size_unit
    scale = evaluation.tokens_per_byte if evaluation is not None else 1.0
    model = next((x for x in lines if x.role == "model"), None)
    if evaluation is not None:
        drawn["line"] = draw_both_widths(
            figures.draw_number_line, lines, measure_gap_closed(evaluation), unit
        )
    if folder.metrics is not None and folder.metrics.get("loss_bits"):
        loss = [scale * bits for bits in folder.metrics["loss_bits"]]
        valid = [
            (step, scale * bits, scale * half)
            for step, bits, half in blocks.read_validations(folder)
        ]
        drawn["curves"] = draw_both_widths(
            figures.draw_curves, folder.metrics["step"], loss, valid, anchors, model, unit
        )
    if evaluation is not None and (curve := blocks.read_curve(evaluation)):
        rate, bits, half = zip(*curve, strict=True)
        drawn["mask_rate"] = draw_both_widths(
            figures.draw_mask_rate_curve, rate, bits, half, evaluation.bits_per_base, anchors, unit
        )
    if comparison is not None:
        drawn["kmers"] = draw_both_widths(
            sample_figures.draw_trinucleotides, comparison.words, comparison.spectra
        )
        card = comparison.card
        sets = [(sample_figures.Series("samples", "samples", card.js_samples), "samples")]
        if card.js_markov is not None:
            sets.append(
                (sample_figures.Series("markov", "markov", card.js_markov), comparison.markov_name)
            )
        sets.append(
            (sample_figures.Series("real", "real", card.js_floor), "other real sequence (floor)")
        )
        drawn["js"] = sample_figures.draw_distances(card.kmer_sizes, sets)
        drawn["gc"] = sample_figures.gc_histogram(blocks.make_series(comparison, "gc"))
        drawn["runs"] = sample_figures.draw_homopolymers(
            blocks.make_series(comparison, "homopolymers")
        )
    return drawn


def list_other_tables(folder: RunParts) -> list[dict[str, Any]]:
    """Title and rows of each other table; other data never stand in one with the run's own."""
    rows: dict[str, list[dict[str, Any]]] = {_OWN: [], _FOREIGN: []}
    for name, e in folder.evaluations.items():
        if name != folder.headline:
            rows[_OWN if folder.is_own(name) else _FOREIGN].append(
                _other_row(name, e, folder.weights)
            )
    return [{"title": title, "rows": found} for title, found in rows.items() if found]


def _other_row(name: str, e: Evaluation, weights: str) -> dict[str, Any]:
    best = e.best_line()
    return {
        "name": name,
        "scored": f"{e.tokens:,}",
        "windows": _windows(e),
        "bits": f"{'=' if e.figure == 'exact' else '≤'} {e.bits_per_base:.3f}",
        "interval": blocks.format_interval(e.ci95_bits) or TOO_FEW,
        "best": "" if best is None else f"{best.bits:.3f} ({best.kind.title})",
        "notes": " ".join(_notes(e, weights)),
    }


def _windows(e: Evaluation) -> str:
    if e.windows is None or e.windows_total is None:
        return ""
    again = f", {e.repeats} masks each" if e.repeats and e.repeats > 1 else ""
    return f"{e.windows:,} of {e.windows_total:,}{again}"


def _notes(e: Evaluation, weights: str) -> list[str]:
    said = [finding.text for finding in list_evaluation_findings(e)]
    if e.checkpoint and weights and not weights.startswith(e.checkpoint):
        step = "" if e.step is None else f" (step {e.step:,})"
        said.append(f"Made from other weights than model.safetensors{step}.")
    return said
