"""Lines of a task that differ from the chosen line in one thing: its head, or its beginning.

The chosen line is that of SUITE.tar.xz: random weights, head and protocol chosen by validation.
Each other line has the same protocol, and opens the test part once a seed. A sweep of them is kept
as NAME.tar.xz for GUE and as NAME-SUITE.tar.xz for another suite; the page of all is NAME.md in
capitals.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from commands import cpu, genodiff  # noqa: E402
from finetune_page import read_line, show_interval  # noqa: E402
from kept_sweep import (  # noqa: E402
    ESTIMATES,
    drop_superseded,
    forget_places,
    join_sweep,
    keep_estimates,
    name_line,
    pack_sweep,
    read_estimates,
    recall_panels,
    take_sweep,
    unpack_sweep,
)
from run import SUITES  # noqa: E402

from genodiff.finetuning.scored_unit import read_predictions  # noqa: E402
from genodiff.finetuning.unit import FILE, TEST, UNITS, read_results  # noqa: E402
from genodiff.reports.sweep_results import (  # noqa: E402
    ModelResult,
    TaskResult,
    resample_task,
)
from genodiff.statistics.comparisons import adjust_holm, show_p  # noqa: E402
from genodiff.statistics.seeds import JointEstimate  # noqa: E402
from genodiff.tasks.paired_bootstrap import ModelPredictions  # noqa: E402

PROTOCOL = ("rc", "epochs", "batch_size", "lr", "weight_decay", "dropout", "shift", "patience",
            "ema", "mask_share")  # fmt: skip
COVERED = ("gue", "ienhancer", "measured-promoters", "deepstarr-sample", "idna-ms")
"""The suites whose chosen line begins with random weights and has the suite's own split."""


Settings = Mapping[str, Any]
"""What a row says of its protocol and its head."""


class Change(NamedTuple):
    """A line: its name, its word of `--model`, and the flags that differ from the chosen line's."""

    name: str
    model: str
    flags: Settings = MappingProxyType({})


class Study(NamedTuple):
    """A sweep of changes.

    `changes` gives the lines of a task, of what was asked for and the settings that were chosen
    there. `columns` are the names of all lines, and `chosen` says in which column the chosen one
    stands. `text` is the title of the page and what stands above the table. `same` are the settings
    that all lines of a task have alike.
    """

    name: str
    columns: Sequence[str]
    chosen: Callable[[Settings], str]
    changes: Callable[[argparse.Namespace, Settings], Sequence[Change]]
    text: Sequence[str]
    same: Sequence[str] = PROTOCOL


def name_sweep(study: Study, suite: str) -> str:
    """The folder of a study's sweep of a suite, and the name of its archive."""
    return study.name if suite == "gue" else f"{study.name}-{suite}"


def read_chosen(measured: Path, task: str, preset: str) -> Settings | None:
    """The settings that validation chose on a task; None where it was not measured."""
    rows = (row for row in read_results(measured) if row["task"] == task)
    found = [row["settings"] for row in rows if row["model"] == f"scratch:{preset}"]
    return found[-1] if found else None


def measure(
    asked: argparse.Namespace, study: Study, suite: str, task: str, chosen: Settings
) -> None:
    """Every line of a task, with the protocol of the chosen one."""
    same = {name: chosen.get(name) for name in PROTOCOL} | {"head": chosen["head"]}
    if chosen["head"] == "parts":
        same["parts"] = chosen["parts"]
    for change in study.changes(asked, chosen):
        flags = [
            word
            for name, value in {**same, **change.flags}.items()
            if value is not None
            for word in (f"--{name.replace('_', '-')}", value)
        ]
        genodiff(
            "finetune", suite, "--task", task, "--data", asked.data / SUITES[suite].data, "--model",
            f"{change.name}={change.model}", *flags, "--seeds", asked.seeds, "--jobs", asked.jobs,
            "--threads", 1, "--out", asked.out / name_sweep(study, suite),
        )  # fmt: skip


class Gap(NamedTuple):
    """The best of the other lines minus the chosen one, on one task."""

    other: str
    estimate: JointEstimate


def index_lines(panel: TaskResult) -> dict[str, ModelResult]:
    """The lines of a task by the model's name, without ensembles."""
    return {line.rows[0]["model"]: line for line in panel.lines if not line.ensemble}


def compare(sweep: Path, panel: TaskResult, auto: str) -> Gap | None:
    """The other line of the highest mean beside the chosen one, paired by test examples, of which
    near-duplicates are drawn together.

    Without the predictions it is the gap that was kept of these very units, if there is one.
    """
    lines = index_lines(panel)
    others = [name for name in lines if name != auto]
    if auto not in lines or not others:
        return None
    best = max(others, key=lambda name: lines[name].mean)
    key = f"{name_line(lines[best])} - {name_line(lines[auto])}"
    predicted, seen = {}, {}
    for name in (best, auto):
        rows = lines[name].rows
        folders = [sweep / UNITS / row["key"] for row in rows]
        if not all((folder / TEST).exists() for folder in folders):
            kept = read_estimates(sweep).get(key)
            return None if kept is None else Gap(best, kept)
        given = [read_predictions(folder) for folder in folders]
        predicted[name] = ModelPredictions(tuple(r["seed"] for r in rows), [g[0] for g in given])
        seen[name] = given[0]
    scores = resample_task(panel.about, lines[auto].rows[0]["metric"], seen, predicted)
    if scores is None or set(scores.models) != {best, auto}:
        return None
    found = scores.compare(best, auto)
    keep_estimates(sweep, {key: found})
    return Gap(best, found)


def tabulate(
    study: Study, sweep: Path, panels: list[TaskResult], measured: Path, preset: str
) -> list[str]:
    """A row for each task: the chosen line in bold, the others, and the best of them beside it.

    A line that no task has yet gets no column.
    """
    auto = f"scratch:{preset}"
    gaps = [compare(sweep, panel, auto) for panel in panels]
    holm = adjust_holm([None if gap is None else gap.estimate.p for gap in gaps])
    rows: list[dict[str, str]] = []
    for panel in panels:
        lines = index_lines(panel)
        own = study.chosen(read_chosen(measured, panel.task, preset) or {})
        rows.append(
            {name: show_line(lines[name], "") for name in study.columns if name in lines}
            | ({own: show_line(lines[auto], "**")} if auto in lines else {})
        )
    columns = [name for name in study.columns if any(name in row for row in rows)]
    text = ["| task | " + " | ".join(columns) + " | best other − chosen | Holm p |"]
    text.append("|---" * (len(columns) + 3) + "|")
    for panel, row, gap, p in zip(panels, rows, gaps, holm, strict=True):
        cells = [row.get(name, "") for name in columns]
        cells.append("" if gap is None else show_gap(gap))
        cells.append("" if p is None else show_p(p))
        text.append(f"| {panel.task} | {' | '.join(cells)} |")
    return text


def list_departures(study: Study, panels: list[TaskResult], preset: str) -> list[str]:
    """A sentence for each task whose lines were fitted before another setting was chosen there."""
    found = []
    for panel in panels:
        lines = index_lines(panel)
        own = lines.pop(f"scratch:{preset}", None)
        if own is None:
            continue
        chosen = own.rows[-1]["settings"]
        for name in study.same:
            theirs = {key: line.rows[-1]["settings"].get(name) for key, line in lines.items()}
            now = chosen.get(name)
            if others := [f"{line} {value}" for line, value in theirs.items() if value != now]:
                found.append(
                    f"On {panel.task} the setting `{name}` of these lines is of an earlier choice: "
                    f"{', '.join(others)}. The chosen line has {now}."
                )
    return found


def show_line(line: ModelResult, mark: str) -> str:
    """Its mean, its interval and its number of seeds."""
    read = read_line(line)
    return f"{mark}{read.mean:.3f}{mark}{show_interval(read.estimate)} ({read.seeds})"


def show_gap(gap: Gap) -> str:
    """The other line, the difference and its interval."""
    return f"{gap.other} {gap.estimate.value:+.3f}{show_interval(gap.estimate, form='+.3f')}"


def write(asked: argparse.Namespace, study: Study) -> None:
    """The page, and the kept sweep of each suite."""
    asked.here.mkdir(parents=True, exist_ok=True)
    tables = [
        line
        for suite in COVERED
        if (asked.out / name_sweep(study, suite) / FILE).exists()
        for line in write_suite(asked, study, suite)
    ]
    if not tables:
        return
    text = [
        *study.text,
        "",
        "The score on the test part: the mean over seeds, in brackets its 95 % interval over seeds "
        "and test examples together, and the number of seeds. **Bold** is the line of RESULTS.md: "
        "its head and protocol are chosen by validation. The others have its protocol. "
        "The last columns have the best of the others minus that line, paired by test examples, "
        "and Holm's correction over the rows of its table. It is the best by test, so it flatters "
        f"the others. `{asked.preset}`; fits are processes of one thread.",
        "",
        *tables,
        f"Command: `python benchmarks/finetune/{study.name}.py --data SHARED/data --suite SUITE "
        f"--seeds N`, N as in the tables. Commits stand in the rows of {study.name}.tar.xz and of "
        f"{study.name}-SUITE.tar.xz. Written on: {cpu()}.",
        "",
    ]
    page = asked.here / f"{study.name.upper()}.md"
    page.write_text("\n".join(text), encoding="utf-8")


def write_suite(asked: argparse.Namespace, study: Study, suite: str) -> list[str]:
    """A suite's part of the page, and its kept sweep."""
    name, measured = name_sweep(study, suite), asked.out / suite
    sweep, tasks = asked.out / name, SUITES[suite].tasks
    drop_superseded(sweep)
    runs = getattr(asked, "runs", None)
    forget_places(sweep, {"OUT": asked.out, "DATA": asked.data, "RUNS": runs})
    found = {row["task"] for row in read_results(sweep)}
    with tempfile.TemporaryDirectory() as folder:
        both = Path(folder) / "both"
        for part in (sweep, measured):
            join_sweep(both, part)
        write_rows(both, pick_rows(study, read_results(both), found, measured, asked.preset))
        panels = sorted(recall_panels(both), key=lambda panel: tasks.index(panel.task))
        table = tabulate(study, both, panels, measured, asked.preset)
        if departures := list_departures(study, panels, asked.preset):
            table += ["", *departures]
        shutil.copyfile(both / ESTIMATES, sweep / ESTIMATES)
    pack_sweep(sweep, asked.here / f"{name}.tar.xz")
    metrics = dict.fromkeys(panel.about["metric"] for panel in panels)
    return [f"## {SUITES[suite].title}: {', '.join(metrics)}", "", *table, ""]


def pick_rows(
    study: Study, rows: Sequence[dict[str, Any]], tasks: set[str], measured: Path, preset: str
) -> list[dict[str, Any]]:
    """The chosen line's rows and the other lines', of these tasks.

    A line is left out where it has become the chosen one since it was measured.
    """
    auto = f"scratch:{preset}"
    chosen = {task: study.chosen(read_chosen(measured, task, preset) or {}) for task in tasks}
    return [
        row
        for row in rows
        if row["task"] in tasks
        and (row["model"] == auto or row["model"] in study.columns)
        and row["model"] != chosen[row["task"]]
    ]


def write_rows(sweep: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """`results.jsonl` with these rows alone."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (sweep / FILE).write_text(lines, encoding="utf-8")


def run_study(study: Study, parser: argparse.ArgumentParser) -> None:
    """Measure what is asked for and write the page; the command goes on where it stopped."""
    parser.add_argument("--data", type=Path, help="the folder with nt_tasks, promoters and starr")
    parser.add_argument("--out", type=Path, default=Path("runs/finetune"))
    parser.add_argument("--here", type=Path, default=HERE, help="where the table goes")
    parser.add_argument("--suite", default="gue", choices=COVERED, help="the suite to measure")
    parser.add_argument("--tasks", help="these tasks of it, with commas; without it all")
    parser.add_argument("--preset", default="caduceus-ph-85k", help="the network from scratch")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--join", type=Path, action="append", default=[], help="another --out")
    parser.add_argument("--only-write", action="store_true")
    asked = parser.parse_args()
    if asked.data is None and not asked.only_write:
        parser.error("--data is needed")
    known = SUITES[asked.suite].tasks
    wanted = known if asked.tasks is None else asked.tasks.split(",")
    if unknown := [task for task in wanted if task not in known]:
        parser.error(f"unknown task {unknown[0]}; known: {', '.join(known)}")
    for suite in COVERED:
        for name in (suite, name_sweep(study, suite)):
            for place in dict.fromkeys((asked.here, HERE)):
                if (place / f"{name}.tar.xz").exists():
                    unpack_sweep(place / f"{name}.tar.xz", asked.out / name)
        for other in asked.join:
            if (other / name_sweep(study, suite) / FILE).exists():
                take_sweep(asked.out / name_sweep(study, suite), other, asked.data)
    for task in [] if asked.only_write else (task for task in known if task in wanted):
        chosen = read_chosen(asked.out / asked.suite, task, asked.preset)
        if chosen is not None:
            measure(asked, study, asked.suite, task, chosen)
            write(asked, study)
    write(asked, study)
