"""The ten complete tasks of GUE: networks, tuned baselines and published rows in one table.

    python benchmarks/finetune/run.py --data SHARED/data/nt_tasks/GUE [--out FOLDER] [--seeds 5]
    [--jobs 2] [--tasks mouse/3,mouse/2] [--preset caduceus-ph-83k] [--run NAME=RUN] [--budget 10]

Everything is done through the command line of genodiff, one task after the other, the smallest
first. The same command again goes on where it stopped. Tables and pictures are written after each
task. Settings, and the line that is called ours, are chosen by validation alone; the test part is
opened once for each line and seed. `--run` adds pretrained runs; flags that are not listed go to
`genodiff finetune`. `--only-write` makes tables and pictures again from what is there.

RESULTS.md, minutes.svg and weights.svg are written beside this script or, with --here FOLDER,
there: a run of few epochs has no place in the tree. Published values are as
`genodiff/data_recipes/published/gue.yaml` has them, with their sources.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import genodiff, nameless  # noqa: E402

from genodiff.reports.blocks import describe_duration  # noqa: E402
from genodiff.reports.svg import (  # noqa: E402
    MARKOV,
    MODEL,
    MUTED,
    PAPER,
    SOURCE,
    open_canvas,
    to_svg,
)
from genodiff.reports.sweep_results import ModelResult, TaskResult, read_sweep  # noqa: E402

TASKS = (
    "mouse/3", "mouse/2", "prom/prom_300_tata", "mouse/0", "tf/4", "tf/2", "tf/1", "tf/0",
    "prom/prom_core_notata", "prom/prom_core_all",
)  # fmt: skip
"""The tasks with train, dev and test, from the smallest."""

_COLOURS = {"model": MODEL, "scratch": SOURCE, "baseline": MARKOV}


class Line(NamedTuple):
    """One model on one task, over its seeds."""

    name: str
    role: str
    mean: float
    range: float
    valid: float
    minutes: float
    choosing: float
    weights: float | None
    seeds: int


def measure(asked: argparse.Namespace, task: str, more: list[str]) -> None:
    """All models on one task."""
    runs = [word for run in asked.run for word in ("--model", run)]
    models = ["--model", f"scratch:{asked.preset}", *runs]
    if not asked.no_baselines:
        models += ["--model", "baselines", "--model", "tuned-baselines"]
    budget = [] if asked.budget is None else ["--budget", asked.budget]
    genodiff(
        "finetune", "gue", "--task", task, "--data", asked.data, *models, "--seeds", asked.seeds,
        "--jobs", asked.jobs, "--out", asked.out / "sweep", *budget, *more,
    )  # fmt: skip


def read_line(line: ModelResult) -> Line:
    """The means over seeds; minutes are of one fit, and of the choice of settings once."""
    rows = line.rows
    valid = [np.nan if row["valid"] is None else row["valid"] for row in rows]
    return Line(
        line.name, line.role, line.mean, line.range, float(np.mean(valid)),
        float(np.mean([row["seconds"] for row in rows])) / 60,
        max(row.get("choice_seconds", 0.0) for row in rows) / 60,
        rows[0].get("parameters"), len(rows),
    )  # fmt: skip


def pick_by_validation(lines: list[Line], roles: tuple[str, ...]) -> Line | None:
    """The line of these roles with the best validation value."""
    some = [line for line in lines if line.role in roles and np.isfinite(line.valid)]
    return max(some, key=lambda line: line.valid) if some else None


def compare(panels: list[TaskResult]) -> list[str]:
    """The table of all tasks: ours and the best baseline by validation, the best published."""
    text = [
        "| task | train and dev | best published, fine-tuned | network, by validation | its fit "
        "| network − published | baseline, by validation | its fit |",
        "|" + "---|" * 8,
    ]
    for panel in panels:
        lines = [read_line(line) for line in panel.lines]
        ours = pick_by_validation(lines, ("model", "scratch"))
        other = pick_by_validation(lines, ("baseline",))
        known = max(
            (v for v in panel.published if not v.metric), key=lambda v: v.mean, default=None
        )
        gap = "" if ours is None or known is None else f"{ours.mean - known.mean:+.3f}"
        published = "none checked" if known is None else f"{known.name} {known.mean:.3f}"
        cells = [panel.task, f"{panel.about.get('n_train', 0):,}", published]
        cells += [_cell(ours), _time(ours), gap, _cell(other), _time(other)]
        text.append(f"| {' | '.join(cells)} |")
    return text


def _cell(line: Line | None) -> str:
    return "" if line is None else f"{line.name} {line.mean:.3f} ± {line.range:.3f} ({line.seeds})"


def _time(line: Line | None) -> str:
    if line is None:
        return ""
    choosing = f" + {describe_duration(60 * line.choosing)} of choosing" if line.choosing else ""
    return describe_duration(60 * line.minutes) + choosing


def draw(panels: list[TaskResult], of: str) -> str:
    """Score against `minutes` of a fit or `weights`, a field per task; published ones diamonds.

    A published point has weights only. Against minutes it is a line over the whole width.
    """
    columns = min(5, len(panels))
    rows = -(-len(panels) // columns)
    with open_canvas(2.6 * columns, 2.3 * rows) as figure:
        fields = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
        for ax in fields[len(panels) :]:
            ax.set_axis_off()
        for ax, panel in zip(fields, panels, strict=False):
            _draw_field(ax, panel, of)
        unit = "minutes of a fit" if of == "minutes" else "weights"
        return to_svg(figure, f"finetune-{of}", f"Score on each task of GUE against {unit}")


def _draw_field(ax: Any, panel: TaskResult, of: str) -> None:
    for line in (read_line(line) for line in panel.lines):
        x = line.minutes if of == "minutes" else line.weights
        if x and np.isfinite(line.mean) and line.mean > 0:
            colour = _COLOURS.get(line.role, MUTED)
            ax.plot([x], [line.mean], "o", color=colour, markersize=4)
            ax.annotate(line.name, (x, line.mean), fontsize=5, xytext=(2, 2),
                        textcoords="offset points")  # fmt: skip
    for value in (v for v in panel.published if not v.metric):
        if of == "minutes":
            ax.axhline(value.mean, color=MUTED, linewidth=0.7, linestyle=":")
        elif value.weights is not None:
            ax.plot([1e6 * value.weights], [value.mean], "D", color=MUTED, markersize=5,
                    markerfacecolor=PAPER)  # fmt: skip
            ax.annotate(value.name, (1e6 * value.weights, value.mean), fontsize=5, xytext=(2, 2),
                        textcoords="offset points")  # fmt: skip
    ax.set_xscale("log")
    ax.set_title(panel.task, fontsize=8)
    ax.set_xlabel("minutes of a fit" if of == "minutes" else "weights", fontsize=7)
    ax.set_ylabel(panel.about["metric"], fontsize=7)


def write(asked: argparse.Namespace) -> None:
    """RESULTS.md and the pictures, with the places of this machine's folders left out."""
    sweep, here = asked.out / "sweep", asked.here
    genodiff("finetune", "report", sweep)
    here.mkdir(parents=True, exist_ok=True)
    panels = sorted(
        (p for p in read_sweep(sweep) if p.task in TASKS), key=lambda p: TASKS.index(p.task)
    )
    details = (sweep / "RESULTS.md").read_text(encoding="utf-8")
    text = [
        "# GUE: networks, tuned baselines, published rows",
        "",
        "MCC, mean over seeds ± (max − min), the number of seeds in brackets. Validation chose the "
        "settings of each line, and the line of each column; no test part was read for it.",
        "Published rows are of fine-tuned models; their sources stand in each task's table below, "
        "with rows of another metric.",
        "",
        *compare(panels),
        "",
        "![score against minutes](minutes.svg)",
        "![score against weights](weights.svg)",
        "",
        "Published points are diamonds, or dotted lines where only the score is known.",
        "",
        details.replace("# Fine-tuning results", "## Every line", 1).replace("\n## ", "\n### "),
    ]
    places = {"OUT": asked.out, "GUE": asked.data}
    (here / "RESULTS.md").write_text(nameless("\n".join(text), places), encoding="utf-8")
    for of in ("minutes", "weights"):
        (here / f"{of}.svg").write_text(
            draw(panels, of).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        )
    rows = [row for panel in panels for line in panel.lines for row in line.rows]
    (here / "results.jsonl").write_text(
        nameless("".join(json.dumps(row) + "\n" for row in rows), places), encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with tf/, prom/, mouse/")
    parser.add_argument("--out", type=Path, default=Path("runs/finetune-gue"))
    parser.add_argument("--here", type=Path, default=HERE, help="where tables and pictures go")
    parser.add_argument("--tasks", default=",".join(TASKS), help="tasks, with commas")
    parser.add_argument("--preset", default="caduceus-ph-83k", help="the network from scratch")
    parser.add_argument("--run", action="append", default=[], help="NAME=RUN, repeatable")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, help="minutes of choosing for a line on a task")
    parser.add_argument("--no-baselines", action="store_true")
    parser.add_argument("--only-write", action="store_true")
    asked, more = parser.parse_known_args()
    wanted = asked.tasks.split(",")
    if unknown := [task for task in wanted if task not in TASKS]:
        parser.error(f"unknown task {unknown[0]}; known: {', '.join(TASKS)}")
    asked.out.mkdir(parents=True, exist_ok=True)
    for task in [] if asked.only_write else sorted(wanted, key=TASKS.index):
        measure(asked, task, more)
        write(asked)
    if asked.only_write:
        write(asked)


if __name__ == "__main__":
    main()
