"""The results of a fine-tuning sweep, task by task. Nothing is run again.

They are read from its rows, its tasks' audits and its units' predictions.

Rows of one (task, split, model, method, settings) are one `ModelResult`: the mean over seeds, max −
min, and the bootstrap interval of the mean over test examples.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.errors import GenodiffError
from genodiff.finetuning.results import read_results
from genodiff.finetuning.scored_unit import read_predictions
from genodiff.finetuning.seen_tests import describe_seen_tests
from genodiff.finetuning.sweep import SESSIONS, read_tasks
from genodiff.finetuning.unit import RESULT, UNITS
from genodiff.runs.sealed_files import read_json
from genodiff.tasks import metrics
from genodiff.tasks.published_scores import PublishedValue, find_published


class ModelResult(NamedTuple):
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


class TaskResult(NamedTuple):
    """One task on one split."""

    suite: str
    task: str
    split: str
    about: dict[str, Any]
    lines: list[ModelResult]
    published: list[PublishedValue]
    predictions: dict[str, tuple[Any, Any, Any]]


def group_rows(
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


def name_groups(groups: dict[tuple[str, ...], list[dict[str, Any]]]) -> list[str]:
    """A name for each group: the model, and whatever tells groups of the same model apart."""
    keys = list(groups)
    found = []
    for key in keys:
        same = [k for k in keys if k[0] == key[0]]
        more = [key[i] for i in (1, 2, 3) if len({k[i] for k in same}) > 1 and key[i]]
        more += _tell_apart(key[4], [k[4] for k in same if k[:4] == key[:4]])
        if key[1] == "probe" and "probe" not in more:
            more.insert(0, "probe")
        found.append(f"{key[0]} ({', '.join(more)})" if more else key[0])
    twice = {name for name in found if found.count(name) > 1}
    return [
        f"{name} #{found[:i].count(name) + 1}" if name in twice else name
        for i, name in enumerate(found)
    ]


def _tell_apart(own: str, all_of_them: Sequence[str]) -> list[str]:
    """What tells settings (as JSON) from the others, as words: `rc none`, `lr 0.002`."""
    mine, *others = [json.loads(settings) or {} for settings in (own, *all_of_them)]
    return [
        f"{name} {value}"
        for name, value in mine.items()
        if any(other.get(name, value) != value for other in others)
    ]


def format_summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The rows as lines for a terminal, best first: task, model, mean, max − min, seeds."""
    lines = []
    for (_, task, split, _), groups in group_rows(rows).items():
        lines.append(f"{task}, split {split}, {next(iter(groups.values()))[0]['metric']}")
        found = [
            ModelResult(name, "", of, None, [])
            for name, of in zip(name_groups(groups), groups.values(), strict=True)
        ]
        sign = -1 if metrics.HIGHER.get(found[0].rows[0]["metric"], True) else 1
        for line in sorted(found, key=lambda line: sign * line.mean):
            spread = (
                f" ± {line.range:.4f} (max − min, {n} seeds)" if (n := len(line.rows)) > 1 else ""
            )
            lines.append(f"  {line.name:34s} {line.mean:.4f}{spread}")
        told = describe_seen_tests([row for of in groups.values() for row in of])
        lines += [f"  {sentence}" for sentence in told]
    return lines


def read_sweep(out: Path) -> list[TaskResult]:
    """Everything that the report shows of a sweep's folder."""
    tasks = read_tasks(out)
    panels = []
    for (suite, task, split, data), groups in group_rows(read_results(out)).items():
        about = tasks.get(
            f"{suite} {task} {split} {data}",
            {"kind": "binary", "classes": [], "metric": "", "audit": None, "notes": []},
        )
        lines, seen = [], {}
        for name, rows in zip(name_groups(groups), groups.values(), strict=True):
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
            lines.append(ModelResult(name, role, rows, spread, units))
        order = {"baseline": 0, "scratch": 1, "model": 2}
        lines.sort(key=lambda line: (order[line.role], line.mean))
        panels.append(
            TaskResult(suite, task, split, about, lines, find_published(suite, task, split), seen)
        )
    return panels


def read_sessions(out: Path) -> list[dict[str, Any]]:
    """The commands that wrote into the folder, oldest first."""
    try:
        found = json.loads((out / SESSIONS).read_text(encoding="utf-8"))["sessions"]
        return [s for s in found if isinstance(s, dict)]
    except (OSError, ValueError, KeyError, TypeError):
        return []
