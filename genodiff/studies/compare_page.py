"""A comparison as a page: tables and a figure, in Markdown, in HTML (one file) and as JSON."""

import csv
import html
import math
from pathlib import Path
from typing import Any

import numpy as np

from genodiff import __version__
from genodiff.domain import DOMAINS
from genodiff.io import atomic
from genodiff.reports.svg import INK, canvas, to_svg
from genodiff.scoring.interval import ratio
from genodiff.studies.compare import TrialResult, TrialScore, TrialSpec
from genodiff.studies.schedules import ScheduleFigure

_BITS = 1 / math.log(2)
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#777777", "#8b0000")
_CSS = """:root{--ink:#1a1a1a;--muted:#666;--grid:#ddd;--paper:#fff;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--ink:#eee;--muted:#aaa;--grid:#444;--paper:#111}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);\
max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--grid);text-align:right}
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}
p{color:var(--muted)}"""


def write_page(
    spec: TrialSpec, entries: list[TrialResult], figures: list[ScheduleFigure], out: Path
) -> list[dict[str, Any]]:
    """Write OUT/table.md, OUT/compare.html and OUT/results.json; return the rows."""
    rows = [_figures(entry, _against(spec, entries)) for entry in entries]
    tables = [_main_table(spec, rows), *([_schedule_table(figures)] if figures else [])]
    notes = _notes(spec, entries)
    text = [f"# {spec.title}", "", notes, ""]
    for title, head, body in tables:
        text += [
            f"## {title}",
            "",
            _line(head),
            "|---" * len(head) + "|",
            *(_line(row) for row in body),
            "",
        ]
    atomic.write_text(out / "table.md", "\n".join(text))
    page = [f"<h1>{html.escape(spec.title)}</h1><p>{html.escape(notes)}</p>"]
    for title, head, body in tables:
        cells = "".join(
            f"<tr>{''.join(f'<td>{html.escape(c)}</td>' for c in row)}</tr>" for row in body
        )
        heads = "".join(f"<th>{html.escape(c)}</th>" for c in head)
        page.append(f"<h2>{html.escape(title)}</h2><table><tr>{heads}</tr>{cells}</table>")
    page.append(
        f"<h2>While training</h2>{curves(entries)}<p>The figure on validation windows, averaged "
        f"weights, first seed.</p>"
    )
    body_html = "\n".join(page)
    atomic.write_text(
        out / "compare.html",
        f'<!doctype html><html lang="en"><meta '
        f'charset="utf-8"><title>{html.escape(spec.title)}</title>'
        f'<meta name="viewport" '
        f'content="width=device-width"><style>{_CSS}</style>{body_html}</html>\n',
    )
    about = {"genodiff": __version__, "spec": spec.model_dump(mode="json"), "rows": rows}
    about["schedules"] = [
        {
            "name": f.name,
            "row": f.row,
            "bits": f.bits.value,
            "ci95": f.bits.ci95,
            "variance": f.variance,
        }
        for f in figures
    ]
    atomic.write_json(out / "results.json", about)
    return rows


def _against(spec: TrialSpec, entries: list[TrialResult]) -> TrialResult:
    return next((entry for entry in entries if entry.row.name == spec.against), entries[0])


def _mean(entry: TrialResult) -> TrialScore:
    return entry.scores[0]._replace(nats=np.mean([score.nats for score in entry.scores], 0))


def _figures(entry: TrialResult, against: TrialResult) -> dict[str, Any]:
    """Bits per base or byte of a row: mean over seeds, interval over windows, paired difference."""
    mine, other = _mean(entry), _mean(against)
    bits = ratio(mine.nats, mine.size).scaled(_BITS)
    each = [float(score.nats.sum() / score.size.sum()) * _BITS for score in entry.scores]
    gap = ratio(mine.nats - other.nats, mine.size).scaled(_BITS)
    same = entry.row.name == against.row.name
    return {
        "name": entry.row.name,
        "objective": entry.config.diffusion.objective,
        "figure": entry.figure,
        "parameters": entry.parameters,
        "tokens": (entry.config.train.max_steps or 0)
        * entry.config.train.batch_size
        * entry.config.data.seq_len,
        "steps": entry.config.train.max_steps,
        "bits": bits.value,
        "ci95_bits": bits.ci95,
        "perplexity": math.exp(mine.nats.sum() / mine.tokens.sum()),
        "seeds_bits": each,
        "minus": None if same else {"row": against.row.name, "bits": gap.value, "ci95": gap.ci95},
        "published_perplexity": entry.row.published,
        "published_minus_bits": None
        if same
        else _published_gap(entry.row.published, against.row.published),
        "training_seconds": round(entry.seconds, 1),
        "runs": [run.name for run in entry.runs],
        "windows": len(mine.tokens),
        "scored_tokens": int(mine.tokens.sum()),
    }


def _published_gap(perplexity: float | None, other: float | None) -> float | None:
    """Bits by which a published perplexity stands above another."""
    return None if perplexity is None or other is None else math.log2(perplexity / other)


def _main_table(
    spec: TrialSpec, rows: list[dict[str, Any]]
) -> tuple[str, list[str], list[list[str]]]:
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
    head += ["over seeds"] * several + ([f"minus {other}"] if other else [])
    head += ["published perplexity", *([f"published, minus {other}"] if gaps else []), "minutes"]
    body = []
    for row in rows:
        sign = "=" if row["figure"] == "exact" else "≤"
        cells = [
            row["name"],
            f"{row['parameters']:,}",
            f"{sign} {row['bits']:.4f}",
            _ends(row["ci95_bits"]),
            f"{row['perplexity']:.3f}",
        ]
        if several:
            cells.append(f"{min(row['seeds_bits']):.4f} – {max(row['seeds_bits']):.4f}")
        if other:
            gap = row["minus"]
            cells.append(
                ""
                if gap is None
                else f"{gap['bits']:+.4f}"
                + (f" [{_ends(gap['ci95'], '+.4f')}]" if gap["ci95"] else "")
            )
        published = row["published_perplexity"]
        cells.append("" if published is None else f"{published:g}")
        if gaps:
            gap = row["published_minus_bits"]
            cells.append("" if gap is None else f"{gap:+.4f}")
        body.append([*cells, f"{row['training_seconds'] / 60:.1f}"])
    return f"Bits per {per}", head, body


def _schedule_table(figures: list[ScheduleFigure]) -> tuple[str, list[str], list[list[str]]]:
    body = [
        [f.name, f"{f.bits.value:.4f}", _ends(f.bits.ci95), f"{f.variance:.4f}"] for f in figures
    ]
    title = f"The bound of one network ({figures[0].row}) under each schedule"
    return title, ["", "bits per token", "95 % interval", "variance of a draw"], body


def _notes(spec: TrialSpec, entries: list[TrialResult]) -> str:
    tokens = {
        (e.config.train.max_steps or 0) * e.config.train.batch_size * e.config.data.seq_len
        for e in entries
    }
    scored = int(entries[0].scores[0].tokens.sum())
    seeds = ", ".join(map(str, spec.seeds))
    return (
        f"{spec.recipe}: each run sees {' or '.join(f'{t:,}' for t in sorted(tokens))} tokens; "
        f"seeds {seeds}; "
        f"{scored:,} tokens of the split {spec.split} are scored, {spec.repeats} draws per "
        f"window. Intervals are over blocks of windows "
        f'(not over training seeds); differences are taken window by window. "=" is an exact '
        f'likelihood, "≤" a bound.'
    )


def _ends(pair: Any, form: str = ".4f") -> str:
    return "" if pair is None else f"{pair[0]:{form}} – {pair[1]:{form}}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def curves(entries: list[TrialResult]) -> str:
    """Validation figures by tokens seen, one line for each row, as SVG."""
    with canvas(7.4, 3.4) as figure:
        ax = figure.add_subplot()
        for i, entry in enumerate(entries):
            tokens, bits = _validations(entry.runs[0])
            ax.plot(
                tokens,
                bits,
                marker="o",
                markersize=3,
                color=_COLOURS[i % len(_COLOURS)],
                label=entry.row.name,
            )
        ax.set_xlabel("tokens", color=INK)
        ax.set_ylabel("bits per token", color=INK)
        ax.legend(loc="upper right", ncols=2)
        return to_svg(figure, "fig-compare", "Validation figure by tokens seen")


def _validations(run: Path) -> tuple[list[int], list[float]]:
    with (run / "metrics.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["valid_bits"]]
    return [int(row["tokens"]) for row in rows], [float(row["valid_bits"]) for row in rows]
