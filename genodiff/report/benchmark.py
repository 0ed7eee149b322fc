"""A sweep's RESULTS.md and report.html, from its rows, its tasks' audits and its units'
predictions; nothing is run again.

Rows of one (task, split, model, method, settings) are one line of a table: mean over seeds, max −
min, and the bootstrap interval of the mean over test examples. Published values stand beside the
official split only. Under every table stands the audit.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from genodiff import __version__
from genodiff.errors import GenodiffError
from genodiff.finetune.results import read_results
from genodiff.finetune.scored_unit import read_predictions
from genodiff.finetune.sweep import SESSIONS, read_tasks
from genodiff.finetune.unit import RESULT, UNITS
from genodiff.io import atomic
from genodiff.report import benchmark_figures as figures
from genodiff.report.blocks import duration
from genodiff.runs.weights import read_json
from genodiff.tasks import metrics
from genodiff.tasks.audit import audit_lines
from genodiff.tasks.published_scores import PublishedValue, find_published

RESULTS, PAGE = "RESULTS.md", "report.html"
_DRAWN = 5  # models in a figure of one task


class Line(NamedTuple):
    """One model on one task: its rows, one per seed, and what they come to."""

    name: str
    role: str
    rows: list[dict[str, Any]]
    spread: metrics.Spread | None
    units: list[dict[str, Any]]

    @property
    def mean(self) -> float:
        """The mean of the task's first metric over seeds; NaN where one has none."""
        return float(np.mean([np.nan if r["value"] is None else r["value"] for r in self.rows]))

    @property
    def range(self) -> float:
        """Max − min over seeds."""
        values = [r["value"] for r in self.rows if r["value"] is not None]
        return float(np.ptp(values)) if values else float("nan")


class Panel(NamedTuple):
    """One task on one split."""

    suite: str
    task: str
    split: str
    about: dict[str, Any]
    lines: list[Line]
    published: list[PublishedValue]
    predictions: dict[str, tuple[Any, Any, Any]]


def grouped(
    rows: Sequence[dict[str, Any]],
) -> dict[tuple[str, str, str, str], dict[tuple[str, ...], list[dict[str, Any]]]]:
    """Rows by task and data, then by model, method and settings."""
    found: dict[tuple[str, str, str, str], dict[tuple[str, ...], list[dict[str, Any]]]] = {}
    for row in rows:
        where = (row["suite"], row["task"], row["split"], row["data"])
        who = (
            row["model"],
            row["method"],
            row["setting"],
            row.get("digest", ""),
            json.dumps(row.get("settings"), sort_keys=True),
        )
        found.setdefault(where, {}).setdefault(who, []).append(row)
    return found


def names_of(groups: dict[tuple[str, ...], list[dict[str, Any]]]) -> list[str]:
    """A name for each group: the model, with its method, setting, digest and settings as far as
    they tell groups apart.
    """
    keys = list(groups)
    found = []
    for key in keys:
        same = [k for k in keys if k[0] == key[0]]
        more = [key[i] for i in (1, 2, 3) if len({k[i] for k in same}) > 1 and key[i]]
        more += _apart(key[4], [k[4] for k in same if k[:4] == key[:4]])
        if key[1] == "probe" and "probe" not in more:
            more.insert(0, "probe")
        found.append(f"{key[0]} ({', '.join(more)})" if more else key[0])
    twice = {name for name in found if found.count(name) > 1}
    return [
        f"{name} #{found[:i].count(name) + 1}" if name in twice else name
        for i, name in enumerate(found)
    ]


def _apart(own: str, all_of_them: Sequence[str]) -> list[str]:
    """What tells settings (as JSON) from the others, as words: `rc none`, `lr 0.002`."""
    mine, *others = [json.loads(settings) or {} for settings in (own, *all_of_them)]
    return [
        f"{name} {value}"
        for name, value in mine.items()
        if any(other.get(name, value) != value for other in others)
    ]


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The rows as lines for a terminal: task, model, mean, max − min, seeds."""
    lines = []
    for (_, task, split, _), groups in grouped(rows).items():
        lines.append(f"{task}, split {split}, {next(iter(groups.values()))[0]['metric']}")
        for name, of in zip(names_of(groups), groups.values(), strict=True):
            line = Line(name, "", of, None, [])
            lines.append(
                f"  {name:34s} {line.mean:.4f} ± {line.range:.4f} (max − min, {len(of)} seeds)"
            )
    return lines


def read_sweep(out: Path) -> list[Panel]:
    """Everything that the report shows of a sweep's folder."""
    tasks = read_tasks(out)
    panels = []
    for (suite, task, split, data), groups in grouped(read_results(out)).items():
        about = tasks.get(
            f"{suite} {task} {split} {data}",
            {"kind": "binary", "classes": [], "metric": "", "audit": None, "notes": []},
        )
        lines, seen = [], {}
        for name, rows in zip(names_of(groups), groups.values(), strict=True):
            folders = [out / UNITS / row["key"] for row in rows]
            units, given = [], []
            for folder in folders:
                try:
                    units.append(read_json(folder / RESULT))
                    given.append(read_predictions(folder))
                except GenodiffError:
                    units.append({})
            spread = None
            if len(given) == len(rows):
                spread = metrics.measure_spread(
                    rows[0]["metric"], about["kind"], given[0][1], [g[0] for g in given]
                )
                seen[name] = given[0]
            role = {"checkpoint": "model", "scratch": "scratch"}.get(rows[0]["kind"], "baseline")
            lines.append(Line(name, role, rows, spread, units))
        order = {"baseline": 0, "scratch": 1, "model": 2}
        lines.sort(key=lambda line: (order[line.role], line.mean))
        panels.append(
            Panel(suite, task, split, about, lines, find_published(suite, task, split), seen)
        )
    return panels


def write_benchmark(out: Path) -> list[Path]:
    """Write OUT/RESULTS.md and OUT/report.html; returns both."""
    panels = read_sweep(out)
    sessions = read_sessions(out)
    atomic.write_text(out / RESULTS, "\n".join(markdown(panels, sessions)) + "\n")
    atomic.write_text(out / PAGE, page(panels, sessions, out.resolve().name))
    return [out / RESULTS, out / PAGE]


def read_sessions(out: Path) -> list[dict[str, Any]]:
    """The commands that wrote into the folder, oldest first."""
    try:
        found = json.loads((out / SESSIONS).read_text(encoding="utf-8"))["sessions"]
        return [s for s in found if isinstance(s, dict)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def cell(line: Line) -> str:
    """`0.8123 ± 0.0040`."""
    return f"{line.mean:.4f} ± {line.range:.4f}" if len(line.rows) > 1 else f"{line.mean:.4f}"


def _interval(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"{pair[0]:.4f} to {pair[1]:.4f}"


def table_of(panel: Panel) -> list[dict[str, str]]:
    """A task's table: baselines, networks and published values, each from the worst to the best."""
    rows = [
        {
            "role": line.role, "name": line.name, "value": cell(line), "interval": _interval(line.spread.ci95 if line.spread else None),
            "seeds": str(len(line.rows)), "valid": _mean(r["valid"] for r in line.rows),
            "others": ", ".join(f"{k} {_mean(r['metrics'].get(k) for r in line.rows)}" for k in panel.about.get("metrics", [])[1:]),
            "setting": _setting(line.rows[0], panel.about.get("domain", "dna")),
            "seconds": duration(float(np.mean([r["seconds"] for r in line.rows]))),
        }
        for line in panel.lines
    ]  # fmt: skip
    empty = dict.fromkeys(("interval", "seeds", "valid", "others", "seconds"), "")
    for value in sorted(panel.published, key=lambda v: v.mean):
        shown = f"{value.mean:.3f}" + ("" if value.range is None else f" ± {value.range:.3f}")
        rows.append(
            {
                "role": "published",
                "name": value.name,
                "value": shown,
                **empty,
                "setting": value.source,
            }
        )
    return rows


def _mean(values: Any) -> str:
    found = [np.nan if v is None else v for v in values]
    return "" if not found or not np.isfinite(found).all() else f"{np.mean(found):.4f}"


def _setting(row: dict[str, Any], domain: str) -> str:
    s = row.get("settings")
    if not s:
        return ""
    what = f"{row.get('parameters', 0):,} weights" + (f", rc {s['rc']}" if domain == "dna" else "")
    what += f", {s['parts']} parts" if s.get("parts", 1) > 1 else ""
    if row["method"] == "probe":
        return f"{what}, frozen"
    length = f"{s['max_steps']:,} steps" if s["max_steps"] else f"{s['epochs']} epochs"
    return f"{what}, {length}, batch {s['batch_size']}, lr {s['lr']:g}"


def cuts(panel: Panel) -> list[str]:
    """What was shortened beyond what the task's own note says."""
    found = []
    for line in panel.lines:
        row = line.rows[0]
        if row.get("cut_train") or row.get("cut_test"):
            found.append(
                f"{line.name}: {row['cut_train']:,} train and {row['cut_test']:,} of "
                f"{row['n_test']:,} test sequences "
                f"were cut to {row['max_length']:,} "
                f"{'tokens' if panel.about.get('domain') == 'text' else 'bases'}"
            )
    return list(dict.fromkeys(found))


def audited(panel: Panel) -> list[str]:
    """The audit in words."""
    if not panel.about["audit"]:
        return ["not made"]
    try:
        return audit_lines(panel.about["audit"])
    except (KeyError, TypeError, ValueError):
        return ["made by another version of genodiff: give the command of the sweep again"]


def markdown(panels: Sequence[Panel], sessions: Sequence[dict[str, Any]]) -> list[str]:
    """RESULTS.md as lines."""
    out = ["# Fine-tuning results", ""]
    out.append(
        "Mean over seeds ± (max − min), as the papers print it; the interval is a bootstrap "
        "over test examples of that mean."
    )
    out.append(
        "The test part is scored once for each line and seed; validation alone chose a line's "
        "epoch, and what --grid tried."
    )
    for split in dict.fromkeys((p.suite, p.split) for p in panels):
        some = [p for p in panels if (p.suite, p.split) == split]
        names = list(dict.fromkeys(line.name for p in some for line in p.lines))
        out += [
            "",
            f"## {split[0]}, split {split[1]}",
            "",
            f"| task | metric | {' | '.join(names)} |",
            f"|---|---|{'---|' * len(names)}",
        ]
        for p in some:
            cells = {line.name: cell(line) for line in p.lines}
            out.append(
                f"| {p.task} | {p.about['metric']} | "
                f"{' | '.join(cells.get(name, '') for name in names)} |"
            )
    for p in panels:
        out += ["", f"### {p.suite} · {p.task} · split {p.split}", ""]
        out.append(
            f"| model | {p.about['metric']} | 95 % interval | seeds | validation | other "
            f"metrics | setting or source | time |"
        )
        out.append("|---|---|---|---|---|---|---|---|")
        out += [
            f"| {r['name']}{' (published)' if r['role'] == 'published' else ''} | {r['value']} "
            f"| {r['interval']} | {r['seeds']} "
            f"| {r['valid']} | {r['others']} | {r['setting']} | {r['seconds']} |"
            for r in table_of(p)
        ]
        out += ["", "Audit:", "```", *audited(p), "```", *cuts(p)]
    out += ["", "## How", ""]
    for session in sessions:
        commit, version = str(session.get("git") or "not known")[:12], session.get("genodiff", "")
        where = f"{session.get('hardware', '')}, {session.get('threads', '?')} threads"
        out.append(
            f"- `{session.get('command', '')}`: commit {commit}, genodiff {version}, {where}, "
            f"{session.get('started', '')}"
        )
    return out


def page(panels: Sequence[Panel], sessions: Sequence[dict[str, Any]], name: str) -> str:
    """report.html as text."""
    environment = Environment(
        loader=PackageLoader("genodiff", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    context = {
        "version": __version__,
        "name": name,
        "panels": [_shown(p, i) for i, p in enumerate(panels)],
        "sessions": list(sessions),
    }
    return environment.get_template("benchmark.html.jinja").render(context)


def _shown(panel: Panel, number: int) -> dict[str, Any]:
    """What the template shows of a task."""
    best = sorted(panel.lines, key=lambda line: -line.mean)
    networks = [line for line in best if line.role != "baseline"]
    drawn = [
        line.name
        for line in (networks + [line for line in best if line.role == "baseline"])[:_DRAWN]
    ]
    return {
        "id": f"task-{number}", "title": panel.task, "suite": panel.suite, "split": panel.split,
        "metric": panel.about["metric"],
        "rows": table_of(panel), "audit": audited(panel), "cuts": cuts(panel),
        "figures": {k: Markup(v) for k, v in _figures(panel, f"task-{number}", networks,
        drawn).items()},
        "confusions": _confusions(panel, [n for n in drawn if n in panel.predictions][:3]),
        "saliency": next((u["saliency"] for line in networks for u in line.units if "saliency" in u), None),
        "classes": panel.about["classes"], "official": panel.split == "official",
    }  # fmt: skip


def _figures(panel: Panel, name: str, networks: list[Line], drawn: list[str]) -> dict[str, str]:
    metric, kind = panel.about["metric"], panel.about["kind"]
    found = dict.fromkeys(("dots", "learning", "calibration", "length", "logo"), "")
    dots = [
        figures.Dot(x.name, x.mean, x.spread.ci95 if x.spread else None,
        [r["value"] for r in x.rows if r["value"] is not None], x.role)
        for x in panel.lines
        if np.isfinite(x.mean)
    ]  # fmt: skip
    if dots:
        dots += [
            figures.Dot(v.name, v.mean, None, [v.mean], "published")
            for v in sorted(panel.published, key=lambda v: v.mean)
        ]
        found["dots"] = figures.dots(name, metric, dots)
    curves = {
        x.name: [u["history"] for u in x.units if u.get("history")] for x in networks[:_DRAWN]
    }
    curves = {k: v for k, v in curves.items() if v}
    if curves:
        found["learning"] = figures.learning(name, metric, curves)
    seen = {k: panel.predictions[k] for k in drawn if k in panel.predictions}
    if seen and kind in ("binary", "multiclass"):
        found["calibration"] = figures.reliability(
            name, {k: metrics.measure_calibration(truth, p) for k, (p, truth, _) in seen.items()}
        )
    if seen:
        groups = {}
        for k, (p, truth, lengths) in seen.items():

            def of(index: Any, p: Any = p, truth: Any = truth) -> float:
                return metrics.measure(metric, kind, truth[index], p[index])

            groups[k] = metrics.measure_by_length(lengths, of)
        if max(len(g) for g in groups.values()) > 1:
            found["length"] = figures.by_length(
                name, metric, groups, "bytes" if panel.about.get("domain") == "text" else "bases"
            )
    saliency = next(
        (u["saliency"] for line in networks for u in line.units if "saliency" in u), None
    )
    if saliency:
        found["logo"] = figures.logo(name, saliency["bases"], saliency["cost"], saliency["start"])
    return found


def _confusions(panel: Panel, names: Sequence[str]) -> list[dict[str, Any]]:
    """Tables of truth (rows) against decisions (columns), with each row's shares for the shading."""
    if panel.about["kind"] not in ("binary", "multiclass"):
        return []
    found = []
    for name in names:
        predicted, truth, _ = panel.predictions[name]
        counts = metrics.count_confusions(truth, predicted.argmax(1), predicted.shape[1])
        shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
        rows = [
            {
                "name": c,
                "cells": [
                    {"n": f"{n:,}", "share": f"{100 * s:.0f}"}
                    for n, s in zip(row, part, strict=True)
                ],
            }
            for c, row, part in zip(panel.about["classes"], counts, shares, strict=True)
        ]
        found.append({"name": name, "rows": rows})
    return found
