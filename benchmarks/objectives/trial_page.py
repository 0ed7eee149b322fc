"""A comparison as a page: tables and a figure, in Markdown, in HTML (one file) and as JSON."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from trial_schedules import ScheduleFigure
from trials import TrialResult, TrialSpec

from genodiff.domain import DOMAINS
from genodiff.reports.chart import Axis, Trace, draw_both_widths, draw_chart
from genodiff.statistics.comparisons import JudgedDifference
from genodiff.statistics.interval import (
    BITS,
    Floats,
    compare_models,
    estimate_fixed_ratio,
    estimate_ratio,
)
from genodiff.studies.comparison_page import (
    ComparisonFigure,
    ComparisonTable,
    describe_correction,
    describe_pairs,
    make_pair_table,
    show_difference,
    show_ends,
    write_comparison,
)
from genodiff.studies.run_comparison import TrialScore

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#777777", "#8b0000")


def write_page(
    spec: TrialSpec,
    entries: list[TrialResult],
    figures: list[ScheduleFigure],
    out: Path,
    margin: float | None = None,
) -> list[dict[str, Any]]:
    """Write OUT/table.md, OUT/compare.html and OUT/results.json; return the rows.

    Rows whose difference is shown to be within `margin` bits are called equivalent.
    """
    pairs = describe_pairs(_judge(entries, margin))
    rows = [_figures(entry, _against(spec, entries), pairs) for entry in entries]
    tables = [_main_table(spec, rows), *([make_pair_table(pairs)] if pairs else [])]
    tables += [_schedule_table(figures)] if figures else []
    caption = "The figure on validation windows, averaged weights, first seed."
    curve = ComparisonFigure("While training", draw_curves(entries), caption)
    estimates = [
        {
            "name": f.name,
            "row": f.row,
            "bits": f.bits.value,
            "ci95": f.bits.ci95,
            "variance": f.variance,
        }
        for f in figures
    ]
    results = {"spec": spec.model_dump(mode="json"), "rows": rows, "schedules": estimates}
    results |= {"pairs": pairs}
    write_comparison(out, spec.title, [_notes(spec, entries, pairs)], tables, [curve], results)
    return rows


def _against(spec: TrialSpec, entries: list[TrialResult]) -> TrialResult:
    return next((entry for entry in entries if entry.row.name == spec.against), entries[0])


def _mean(entry: TrialResult) -> TrialScore:
    return entry.scores[0]._replace(nats=np.mean([score.nats for score in entry.scores], 0))


def _judge(entries: list[TrialResult], margin: float | None) -> list[JudgedDifference]:
    """Every two rows: over seeds and windows, or with one seed of each over windows."""
    nats = {entry.row.name: _stack(entry) for entry in entries}
    return compare_models(nats, entries[0].scores[0].size, margin=margin)


def _stack(entry: TrialResult) -> Floats:
    """Nats of all seeds on all windows, (seeds, windows)."""
    return np.stack([score.nats for score in entry.scores])


def _figures(
    entry: TrialResult, against: TrialResult, pairs: list[dict[str, Any]]
) -> dict[str, Any]:
    """Bits per base or byte of a row: mean over seeds, its interval, paired difference.

    Intervals are over seeds and windows; of one seed, over windows.
    """
    mine = _mean(entry)
    joint = estimate_ratio if len(entry.scores) > 1 else estimate_fixed_ratio
    bits = joint(_stack(entry), mine.size).scaled(BITS)
    each = [float(score.nats.sum() / score.size.sum()) * BITS for score in entry.scores]
    same = entry.row.name == against.row.name
    return {
        "name": entry.row.name,
        "objective": entry.config.diffusion.objective,
        "figure": entry.figure,
        "parameters": entry.parameters,
        "tokens": _count_tokens(entry),
        "steps": entry.config.train.max_steps,
        "passes": entry.passes,
        "compute": _count_compute(entry) / _count_compute(against),
        "bits": bits.value,
        "ci95_bits": bits.ci95,
        "perplexity": math.exp(mine.nats.sum() / mine.tokens.sum()),
        "seeds_bits": each,
        "minus": None if same else _minus(entry.row.name, against.row.name, pairs),
        "published_perplexity": entry.row.published,
        "published_minus_bits": None
        if same
        else _published_gap(entry.row.published, against.row.published),
        "training_seconds": round(entry.seconds, 1),
        "runs": [run.name for run in entry.runs],
        "windows": len(mine.tokens),
        "scored_tokens": int(mine.tokens.sum()),
    }


def _count_tokens(entry: TrialResult) -> int:
    train = entry.config.train
    return (train.max_steps or 0) * train.batch_size * entry.config.data.seq_len


def _count_compute(entry: TrialResult) -> int:
    """In multiply-adds but for a factor: tokens x weights x passes of the network over each."""
    return _count_tokens(entry) * entry.parameters * entry.passes


def _minus(name: str, other: str, pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """The judged difference of two rows, as the first minus the second."""
    (pair,) = [pair for pair in pairs if {pair["a"], pair["b"]} == {name, other}]
    sign = 1 if pair["a"] == name else -1
    ends = pair["ci95"] and sorted(sign * end for end in pair["ci95"])
    found = {"row": other, "bits": sign * pair["bits"], "ci95": ends}
    return found | {"p": pair["p"], "p_holm": pair["p_holm"]}


def _published_gap(perplexity: float | None, other: float | None) -> float | None:
    """Bits by which a published perplexity stands above another."""
    return None if perplexity is None or other is None else math.log2(perplexity / other)


def _main_table(spec: TrialSpec, rows: list[dict[str, Any]]) -> ComparisonTable:
    several, per = len(spec.seeds) > 1, DOMAINS[spec.domain].size_unit
    other = next((row["minus"]["row"] for row in rows if row["minus"]), None)
    head = [
        "",
        "parameters",
        f"bits per {per}",
        "95 % interval",
        "perplexity" if per == "base" else f"perplexity per {DOMAINS[spec.domain].unit}",
    ]
    gaps = any(row["published_minus_bits"] is not None for row in rows)
    unequal = any(abs(row["compute"] - 1) > 0.05 for row in rows)
    known = any(row["published_perplexity"] is not None for row in rows)
    head += ["over seeds"] * several + ([f"minus {other}"] if other else [])
    head += ["compute"] * unequal + ["published perplexity"] * known
    head += [*([f"published, minus {other}"] if gaps else []), "minutes"]
    body = []
    for row in rows:
        sign = "=" if row["figure"] == "exact" else "≤"
        cells = [
            row["name"],
            f"{row['parameters']:,}",
            f"{sign} {row['bits']:.4f}",
            show_ends(row["ci95_bits"]),
            f"{row['perplexity']:.3f}",
        ]
        if several:
            cells.append(f"{min(row['seeds_bits']):.4f} – {max(row['seeds_bits']):.4f}")
        if other:
            gap = row["minus"]
            cells.append(show_difference(gap))
        published = row["published_perplexity"]
        if unequal:
            cells.append(f"{row['compute']:.2f}")
        if known:
            cells.append("" if published is None else f"{published:g}")
        if gaps:
            gap = row["published_minus_bits"]
            cells.append("" if gap is None else f"{gap:+.4f}")
        body.append([*cells, f"{row['training_seconds'] / 60:.1f}"])
    return ComparisonTable(f"Bits per {per}", head, body)


def _schedule_table(figures: list[ScheduleFigure]) -> ComparisonTable:
    body = [
        [f.name, f"{f.bits.value:.4f}", show_ends(f.bits.ci95), f"{f.variance:.4f}"]
        for f in figures
    ]
    title = f"The bound of one network ({figures[0].row}) under each schedule"
    head = ["", "bits per token", "95 % interval", "variance of a draw"]
    return ComparisonTable(title, head, body)


def _notes(spec: TrialSpec, entries: list[TrialResult], pairs: list[dict[str, Any]]) -> str:
    tokens = {_count_tokens(entry) for entry in entries}
    scored = int(entries[0].scores[0].tokens.sum())
    seeds = ", ".join(map(str, spec.seeds))
    over = "training seeds and blocks of windows together"
    if len(spec.seeds) == 1:
        over = "blocks of windows (not over training seeds)"
    return (
        f"{spec.recipe}: each run sees {' or '.join(f'{t:,}' for t in sorted(tokens))} tokens; "
        f"seeds {seeds}; "
        f"{scored:,} tokens of the split {spec.split} are scored, {spec.repeats} draws per "
        f"window. Intervals are over {over}; differences are taken window by window"
        f"{' and seed by seed' if len(spec.seeds) > 1 else ''}. {describe_correction(pairs)}"
        f'"=" is an exact likelihood, "≤" a bound. Compute is counted: tokens x weights x passes '
        f"of the network over each."
    )


def draw_curves(entries: list[TrialResult]) -> str:
    """Bits per token on validation windows by tokens seen, of each row's first seed."""
    traces = []
    for i, entry in enumerate(entries):
        seen, bits = _validations(entry.runs[0])
        colour, dash = _COLOURS[i % len(_COLOURS)], ((), (4, 2), (1, 2))[i // len(_COLOURS) % 3]
        traces.append(Trace(seen, bits, colour, entry.row.name, 1.3, dash, "o", 1.8))
    axes = Axis("tokens"), Axis("bits per token")
    title = "Validation figure by tokens seen"
    return draw_both_widths(title, lambda width: draw_chart(traces, *axes, width))


def _validations(run: Path) -> tuple[list[int], list[float]]:
    with (run / "metrics.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["valid_bits"]]
    return [int(row["tokens"]) for row in rows], [float(row["valid_bits"]) for row in rows]
