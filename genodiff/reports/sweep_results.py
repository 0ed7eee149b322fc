"""The results of a fine-tuning sweep, task by task. Nothing is run again.

They are read from its rows, its tasks' audits and its units' predictions.

Rows of one (task, split, model, method, settings) are one `ModelResult`: the mean over seeds, max −
min, and the interval of the mean over seeds and test examples. All comparisons of a suite's split
are judged together.

An ensemble is the mean of a line's predictions over its seeds, as one answer. The predictions are
those that each seed's unit has kept, so the test part is not read again. It is a line of its own.
It is one answer, not a mean of scores, so its interval is over test examples alone, and it is not
among the comparisons.

Compared are the lines of the highest role (pretrained networks; without them, networks from random
weights; without those, baselines) with all other lines.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.domain import DNA, DOMAINS, Domain
from genodiff.errors import GenodiffError
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.scored_unit import read_predictions
from genodiff.finetuning.sweep import SESSIONS, describe_seen_tests, read_tasks
from genodiff.finetuning.unit import RESULT, UNITS, read_results
from genodiff.io.target import read_json_object
from genodiff.runs.sealed_files import read_json
from genodiff.statistics.comparisons import JudgedDifference, judge_differences, show_p
from genodiff.statistics.seeds import ONE_SEED, JointEstimate
from genodiff.tasks import metrics
from genodiff.tasks.homology import number_clusters
from genodiff.tasks.metrics import measure
from genodiff.tasks.paired_bootstrap import ModelPredictions, ResampledScores, resample_scores
from genodiff.tasks.published_scores import PublishedValue, find_published

ROLES = ("baseline", "scratch", "model")
Pair = tuple[str, str, JointEstimate]


def resample_task(
    about: dict[str, Any],
    metric: str,
    seen: dict[str, tuple[Any, Any, Any]],
    scored: dict[str, ModelPredictions],
) -> ResampledScores | None:
    """The scores of all lines whose predictions are kept; None where there are none.

    `seen` has (predictions, truth, lengths) of the first seed of each.
    """
    if not scored:
        return None
    truth = next(iter(seen.values()))[1]
    models = {
        name: of
        for name, of in scored.items()
        if all(len(p) == len(truth) for p in of.predicted) and (seen[name][1] == truth).all()
    }
    known = about.get("test_clusters")
    clusters = None if known is None else number_clusters(known, len(truth))
    return resample_scores(metric, about["kind"], truth, models, clusters=clusters)


def average_seeds(
    rows: Sequence[dict[str, Any]], given: Sequence[tuple[Any, Any, Any]], about: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Any, Any, Any]]:
    """(row, (predictions, truth, lengths)) of the mean over seeds.

    The row has the fields of the first seed's row. `ensemble` is the number of seeds, `keys` are
    those of their rows, and `seconds` is the sum of theirs. There is no validation value: each seed
    has a validation part of its own.
    """
    predicted = np.mean([p for p, _, _ in given], axis=0)
    _, truth, lengths = given[0]
    values = {m: measure(m, about["kind"], truth, predicted) for m in rows[0]["metrics"]}
    row = rows[0] | {
        "ensemble": len(rows),
        "keys": [r["key"] for r in rows],
        "value": values[rows[0]["metric"]],
        "metrics": values,
        "valid": None,
        "seconds": float(sum(r["seconds"] for r in rows)),
    }
    return row, (predicted, truth, lengths)


class ModelResult(NamedTuple):
    """One model on one task: its rows, one per seed, and what they come to."""

    name: str
    role: str
    rows: list[dict[str, Any]]
    estimate: JointEstimate | None
    units: list[dict[str, Any]]

    @property
    def mean(self) -> float:
        """The mean of the task's first metric over seeds; NaN where one has none."""
        return float(np.mean([np.nan if r["value"] is None else r["value"] for r in self.rows]))

    @property
    def ci95(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean; None where there is none."""
        return None if self.estimate is None else self.estimate.ci95

    @property
    def ensemble(self) -> int:
        """How many seeds are averaged to one answer; 0 for a line of single fits."""
        return int(self.rows[0].get("ensemble", 0))

    @property
    def range(self) -> float:
        """Max − min over seeds."""
        values = [r["value"] for r in self.rows if r["value"] is not None]
        return float(np.ptp(values)) if values else float("nan")


class TaskResult(NamedTuple):
    """One task on one split.

    `comparisons` are those of this task; `n_judged` says how many were judged together with them.
    """

    suite: str
    task: str
    split: str
    about: dict[str, Any]
    lines: list[ModelResult]
    published: list[PublishedValue]
    predictions: dict[str, tuple[Any, Any, Any]]
    comparisons: Sequence[JudgedDifference] = ()
    n_judged: int = 0

    @property
    def domain(self) -> Domain:
        """DNA or text."""
        return DOMAINS[self.about.get("domain", DNA.name)]

    def judge(self, gap: JudgedDifference) -> str:
        """All that may be said of the first model of a comparison, in words."""
        return gap.describe(higher_is_better=metrics.HIGHER.get(self.about["metric"], True))

    def list_seen_tests(self) -> list[str]:
        """What pretraining saw of the test part, and what was left out: a sentence each."""
        return describe_seen_tests([row for line in self.lines for row in line.rows])


def compare_lines(
    found: ResampledScores | None, lines: Sequence[ModelResult], *, higher: bool
) -> list[Pair]:
    """The comparisons of a table, where `higher` values of its metric are better.

    The line of the higher role stands first, and of equals the better one.
    """
    if found is None:
        return []
    known = [line for line in lines if not line.ensemble and line.name in found.models]
    sign = -1 if higher else 1
    known.sort(key=lambda line: (-ROLES.index(line.role), sign * line.mean, line.name))
    return [
        (a.name, b.name, found.compare(a.name, b.name))
        for i, a in enumerate(known)
        if a.role == known[0].role
        for b in known[i + 1 :]
    ]


def group_rows(
    rows: Sequence[dict[str, Any]],
) -> dict[tuple[str, str, str, str], dict[tuple[str, ...], list[dict[str, Any]]]]:
    """Rows by task and data, then by model, method and settings.

    A seed counts once. Where a sweep was gone on with by changed code, it may have several rows,
    and the newest stands.
    """
    found: dict[tuple[str, str, str, str], dict[tuple[str, ...], list[dict[str, Any]]]] = {}
    places: dict[tuple[Any, ...], int] = {}
    for row in rows:
        where = (row["suite"], row["task"], row["split"], row["data"])
        settings = json.dumps(row.get("settings"), sort_keys=True)
        who = (row["model"], row["method"], row["setting"], row.get("digest", ""), settings)
        group = found.setdefault(where, {}).setdefault(who, [])
        place = places.setdefault((where, who, row["seed"]), len(group))
        if place == len(group):
            group.append(row)
        elif row.get("created", "") >= group[place].get("created", ""):
            group[place] = row
    return found


def name_groups(groups: dict[tuple[str, ...], list[dict[str, Any]]]) -> list[str]:
    """A name for each group: the model, and whatever tells groups of the same model apart."""
    keys = list(groups)
    found = []
    for key in keys:
        same = [k for k in keys if k[0] == key[0]]
        more = [key[i] for i in (1, 2, 3) if len({k[i] for k in same}) > 1 and key[i]]
        more += _tell_apart(key[4], [k[4] for k in same if k[:4] == key[:4]])
        if key[1] == "frozen" and key[1] not in more:
            more.insert(0, key[1])
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


def format_summary(
    rows: Sequence[dict[str, Any]],
    comparisons: Sequence[dict[str, Any]] = (),
    ensembles: Sequence[dict[str, Any]] = (),
) -> list[str]:
    """The rows as lines for a terminal, best first: task, model, mean, max − min, seeds.

    `ensembles` of seeds stand among them. Below each task stand its comparisons with their
    intervals.
    """
    lines = []
    for (suite, task, split, _), groups in group_rows(rows).items():
        lines.append(f"{task}, split {split}, {next(iter(groups.values()))[0]['metric']}")
        found = [
            ModelResult(name, "", of, None, [])
            for name, of in zip(name_groups(groups), groups.values(), strict=True)
        ]
        found += [
            ModelResult(f"{line.name}, ensemble", "", [row], None, [])
            for line in list(found)
            for row in ensembles
            if {r["key"] for r in line.rows} & set(row["keys"])
        ]
        sign = -1 if metrics.HIGHER.get(found[0].rows[0]["metric"], True) else 1
        for line in sorted(found, key=lambda line: sign * line.mean):
            n = len(line.rows)
            spread = f" ± {line.range:.4f} (max − min, {n} seeds)" if n > 1 else ""
            spread += f" ({line.ensemble} seeds averaged)" if line.ensemble else ""
            lines.append(f"  {line.name:34s} {line.mean:.4f}{spread}")
        told = describe_seen_tests([row for of in groups.values() for row in of])
        lines += [f"  {sentence}" for sentence in told]
        lines += [
            f"  {gap['a']} minus {gap['b']}: {gap['difference']:+.4f} "
            f"[{gap['ci95'][0]:+.4f}, {gap['ci95'][1]:+.4f}], Holm p {show_p(gap['p_holm'])}: "
            f"{gap['verdict']}"
            for gap in comparisons
            if (gap["suite"], gap["task"], gap["split"]) == (suite, task, split) and gap["ci95"]
        ]
    return lines


def read_sweep(out: Path, margin: float | None = None) -> list[TaskResult]:
    """Everything that the report shows of a sweep's folder.

    Two models are called equivalent where their difference is within `margin`, if one is given.
    """
    tasks = read_tasks(out)
    panels: list[TaskResult] = []
    pairs: list[list[Pair]] = []
    for (suite, task, split, data), groups in group_rows(read_results(out)).items():
        about = tasks.get(
            f"{suite} {task} {split} {data}",
            {"kind": "binary", "classes": [], "metric": "", "audit": None, "notes": []},
        )
        lines, seen, scored = [], {}, {}
        for name, rows in zip(name_groups(groups), groups.values(), strict=True):
            folders = [out / UNITS / row["key"] for row in rows]
            units, given = [], []
            for folder in folders:
                try:
                    units.append(read_json(folder / RESULT))
                    given.append(read_predictions(folder))
                except GenodiffError:
                    units.append({})
            if len(given) == len(rows):
                numbers = tuple(row["seed"] for row in rows)
                scored[name] = ModelPredictions(numbers, [g[0] for g in given])
                seen[name] = given[0]
            role = {"checkpoint": "model", "scratch": "scratch"}.get(rows[0]["kind"], "baseline")
            lines.append(ModelResult(name, role, rows, None, units))
            is_drawn = role != "baseline" or rows[0]["model"] in list_baselines(is_drawn=True)
            if 1 < len(rows) == len(given) and is_drawn:
                row, answer = average_seeds(rows, given, about)
                title = f"{name}, ensemble of seeds"
                scored[title] = ModelPredictions((0,), [answer[0]])
                seen[title] = answer
                lines.append(ModelResult(title, role, [row], None, []))
        lines.sort(key=lambda line: (ROLES.index(line.role), line.mean))
        found = resample_task(about, lines[0].rows[0]["metric"], seen, scored)
        for i, line in enumerate(lines):
            if found is not None and line.name in found.models:
                joint = found.estimate(line.name)
                if joint.why_none == ONE_SEED:  # over examples alone
                    joint = found.estimate_fixed(line.name)
                lines[i] = line._replace(estimate=joint)
        better = metrics.HIGHER.get(lines[0].rows[0]["metric"], True)
        pairs.append(compare_lines(found, lines, higher=better))
        published = find_published(suite, task, split)
        panels.append(TaskResult(suite, task, split, about, lines, published, seen))
    return _judge_panels(panels, pairs, margin)


def _judge_panels(
    panels: list[TaskResult], pairs: list[list[Pair]], margin: float | None
) -> list[TaskResult]:
    """The panels with their comparisons; those of one suite and split are corrected together."""
    found = list(panels)
    for split in dict.fromkeys((p.suite, p.split) for p in panels):
        here = [i for i, p in enumerate(panels) if (p.suite, p.split) == split]
        judged = judge_differences([pair for i in here for pair in pairs[i]], margin)
        known = sum(gap.p_holm is not None for gap in judged)
        first = 0
        for i in here:
            mine = judged[first : first + len(pairs[i])]
            found[i] = panels[i]._replace(comparisons=mine, n_judged=known)
            first += len(pairs[i])
    return found


def read_sessions(out: Path) -> list[dict[str, Any]]:
    """The commands that wrote into the folder, oldest first."""
    found = read_json_object(out / SESSIONS).get("sessions")
    return [s for s in found if isinstance(s, dict)] if isinstance(found, list) else []
