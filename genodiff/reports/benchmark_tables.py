"""The tables of a sweep's results as text: RESULTS.md, and the rows of the page's tables.

Published values are shown for the official split only. Comparisons and the audit follow every
table.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from genodiff.domain import Domain
from genodiff.finetuning.choosing import describe_choice
from genodiff.finetuning.unit import null_nonfinite
from genodiff.reports.blocks import describe_duration
from genodiff.reports.sweep_results import ModelResult, TaskResult
from genodiff.statistics.comparisons import show_p
from genodiff.statistics.seeds import JointEstimate
from genodiff.tasks.audit import audit_lines
from genodiff.tasks.metrics import RANGES

COMPARISON = ("first", "second", "difference", "95 % interval", "p", "Holm p", "the first is")
"""The columns of a table of comparisons; the last is all that may be said of the first."""
_CELLS = ("value", "interval", "seeds", "valid", "others", "setting", "seconds")


def format_cell(line: ModelResult) -> str:
    """`0.8123 ± 0.0040`."""
    return f"{line.mean:.4f} ± {line.range:.4f}" if len(line.rows) > 1 else f"{line.mean:.4f}"


def show_interval(
    estimate: JointEstimate | None, sign: str = "", metric: str = "", *, fixed: bool = False
) -> str:
    """`0.8012 to 0.8234`; of one seed, with a note; without an interval, why.

    It ends where the values of `metric` do. `fixed`: it is of this answer, not of a seed's.
    """
    if estimate is None:
        return ""
    if estimate.ci95 is None:
        return f"none: {estimate.why_none}"
    low, high = clip_interval(estimate.ci95, metric)
    note = " (this ensemble)" if fixed else " (one seed)" if estimate.seeds == 1 else ""
    return f"{low:{sign}.4f} to {high:{sign}.4f}{note}"


def clip_interval(interval: tuple[float, float], metric: str) -> tuple[float, float]:
    """The interval as far as `metric` has values; all of it for a metric that is not known."""
    least, most = RANGES.get(metric, (-math.inf, math.inf))
    return max(interval[0], least), min(interval[1], most)


def make_comparison_rows(panel: TaskResult) -> list[list[str]]:
    """A task's comparisons as the cells of `COMPARISON`."""
    return [
        [gap.a, gap.b, f"{gap.estimate.value:+.4f}", show_interval(gap.estimate, "+"),
         show_p(gap.estimate.p), show_p(gap.p_holm), panel.judge(gap)]
        for gap in panel.comparisons
    ]  # fmt: skip


def list_comparisons(panels: Sequence[TaskResult]) -> list[dict[str, Any]]:
    """All comparisons as plain values: suite, task, split, metric, the statistics and `verdict`."""
    return [
        {
            "suite": panel.suite, "task": panel.task, "split": panel.split,
            "metric": panel.about["metric"], **gap.to_json(), "verdict": panel.judge(gap),
        }
        for panel in panels
        for gap in panel.comparisons
    ]  # fmt: skip


def list_ensembles(panels: Sequence[TaskResult]) -> list[dict[str, Any]]:
    """The lines that average seeds as rows of results.

    `ensemble` is their number, and `ci95` is over test examples. There is no `seed`.
    """
    found = []
    for line in (line for panel in panels for line in panel.lines if line.ensemble):
        change = {"seed": None, "key": None, "ci95": None if line.ci95 is None else list(line.ci95)}
        row = line.rows[0] | change | {"metrics": null_nonfinite(line.rows[0]["metrics"])}
        found.append(row | {"value": row["metrics"][row["metric"]]})
    return found


def describe_comparisons(panel: TaskResult) -> str:
    """How the comparisons of a task were made, in a sentence or two."""
    known = panel.about.get("test_clusters")
    if known is None:
        alike = "Near-duplicates among the test examples were not determined."
    else:
        copies = sum(map(len, known)) - len(known)
        alike = f"{copies:,} near-duplicate test examples are resampled together."
    judged = (
        f"Holm's correction is over {panel.n_judged} comparisons, all of split {panel.split}."
        if panel.n_judged
        else "No comparison was tested: that needs several seeds."
    )
    return f"First minus second, paired by test examples and seeds. {judged} {alike}"


HOW = (
    "Mean over seeds ± (max − min), as the papers print it. Intervals are 95 %, of the mean over "
    "seeds and test examples together; of one seed, over test examples alone. An ensemble averages "
    "the predictions of all seeds to one answer."
)
"""What the figures of the tables are."""


def make_table_rows(panel: TaskResult) -> list[dict[str, str]]:
    """A task's table: baselines, networks and published values, each from the worst to the best."""
    rows, metric, more = [], panel.about["metric"], panel.about.get("metrics", [])[1:]
    for line in panel.lines:
        known, ensemble = line.rows, line.ensemble
        row = {"role": line.role, "name": line.name, "value": format_cell(line)}
        row["interval"] = show_interval(line.estimate, metric=metric, fixed=bool(ensemble))
        row["seeds"] = f"{ensemble}, averaged" if ensemble else str(len(known))
        row["valid"] = _mean(r["valid"] for r in known)
        means = (f"{name} {_mean(r['metrics'].get(name) for r in known)}" for name in more)
        row |= {"others": ", ".join(means), "setting": _setting(known[0], panel.domain)}
        row["seconds"] = describe_duration(float(np.mean([r["seconds"] for r in known])))
        rows.append(row)
    empty = dict.fromkeys(("interval", "seeds", "valid", "others", "seconds"), "")
    for value in sorted(panel.published, key=lambda v: (v.metric, v.mean)):
        shown = f"{value.mean:.3f}" + ("" if value.range is None else f" ± {value.range:.3f}")
        shown += f" ({value.metric})" * bool(value.metric)
        setting = "; ".join(filter(None, (value.note, value.source)))
        own = {"role": "published", "name": value.name, "value": shown, "setting": setting}
        rows.append(own | empty)
    return rows


def _mean(values: Any) -> str:
    found = [np.nan if v is None else v for v in values]
    return "" if not found or not np.isfinite(found).all() else f"{np.mean(found):.4f}"


def _setting(row: dict[str, Any], domain: Domain) -> str:
    s = row.get("settings")
    if not s:
        return ""
    what = f"{row.get('parameters', 0):,} weights"
    what += f", rc {s['rc']}" if domain.has_two_strands else ""
    what += f" ({row['trained']:,} by {s['adapter']})" if s.get("adapter") else ""
    what += f", {s['parts']} parts" if s.get("parts", 1) > 1 else ""
    what += f", {s['head']}" if s.get("head", "mean") not in ("mean", "parts") else ""
    length = f"{s['max_steps']:,} steps" if s["max_steps"] else f"{s['epochs']} epochs"
    what += ", head alone" if row["method"] == "frozen" else ""
    also = [name for name in ("dropout", "shift", "mask_share", "ema") if s.get(name)]
    more = "".join(f", {name.replace('_', ' ')} {s[name]:g}" for name in also)
    return f"{what}, {length}, batch {s['batch_size']}, lr {s['lr']:g}{more}"


def cut_notes(panel: TaskResult) -> list[str]:
    """What was shortened beyond what the task's own note says."""
    found = [
        f"{line.name}: {row['cut_train']:,} train and {row['cut_test']:,} of {row['n_test']:,} "
        f"test sequences were cut to {row['max_length']:,} {panel.domain.units}"
        for line in panel.lines
        for row in line.rows[:1]
        if not line.ensemble and (row.get("cut_train") or row.get("cut_test"))
    ]
    return list(dict.fromkeys(found))


def choice_notes(panel: TaskResult) -> list[str]:
    """How validation chose each line's settings."""
    return [
        f"{line.name}, {choice['of']} {describe_choice(choice)}"
        for line in panel.lines
        if not line.ensemble
        for choice in line.rows[0].get("choices", ())
    ]


def audit_text(panel: TaskResult) -> list[str]:
    """The audit in words."""
    if not panel.about["audit"]:
        return ["not made"]
    try:
        return audit_lines(panel.about["audit"])
    except (KeyError, TypeError, ValueError):
        return ["made by another version of genodiff: give the command of the sweep again"]


def format_markdown(panels: Sequence[TaskResult], sessions: Sequence[dict[str, Any]]) -> list[str]:
    """RESULTS.md as lines."""
    scored = "The test part is scored once for each line and seed; validation alone chose a line's"
    out = ["# Fine-tuning results", "", HOW, f"{scored} epoch, head and searched settings."]
    for split in dict.fromkeys((p.suite, p.split) for p in panels):
        some = [p for p in panels if (p.suite, p.split) == split]
        names = list(dict.fromkeys(line.name for p in some for line in p.lines))
        body = []
        for p in some:
            cells = {line.name: format_cell(line) for line in p.lines}
            body.append([p.task, p.about["metric"], *(cells.get(name, "") for name in names)])
        table = list_table_lines(["task", "metric", *names], body)
        out += ["", f"## {split[0]}, split {split[1]}", "", *table]
    for p in panels:
        head = ["model", p.about["metric"], "95 % interval", "seeds", "validation"]
        head += ["other metrics", "setting or source", "time"]
        body = [
            [r["name"] + " (published)" * (r["role"] == "published"), *(r[key] for key in _CELLS)]
            for r in make_table_rows(p)
        ]
        title = f"### {p.suite} · {p.task} · split {p.split}"
        out += ["", title, "", *list_table_lines(head, body)]
        out += ["", *(f"- {sentence}" for sentence in p.list_seen_tests())]
        if rows := make_comparison_rows(p):
            out += ["", describe_comparisons(p), "", *list_table_lines(COMPARISON, rows)]
        if choices := choice_notes(p):
            out += ["", "Chosen by validation, before the test part was opened:", ""]
            out += [f"- {text}" for text in choices]
        out += ["", "Audit:", "```", *audit_text(p), "```", *cut_notes(p)]
    out += ["", "## How", ""]
    for session in sessions:
        commit, version = str(session.get("git") or "not known")[:12], session.get("genodiff", "")
        where = f"{session.get('hardware', '')}, {session.get('threads', '?')} threads"
        out.append(
            f"- `{session.get('command', '')}`: commit {commit}, genodiff {version}, {where}, "
            f"{session.get('started', '')}"
        )
    return out


def list_table_lines(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """A table as lines of Markdown."""
    lines = [
        f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |" for cells in (head, *body)
    ]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]
