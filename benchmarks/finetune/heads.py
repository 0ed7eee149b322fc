"""Every head beside the one that `--head auto` chose, on the tasks of GUE that run.py measured.

    python benchmarks/finetune/heads.py --data SHARED/data [--out FOLDER] [--tasks mouse/3,mouse/2]
    [--preset caduceus-ph-85k] [--seeds 5] [--jobs 2]

Each head is fitted as a line of its own, from random weights, with the protocol that validation
chose for `auto` on this task: only the head differs. Each line opens the test part once a seed.
The same command again goes on where it stopped. HEADS.md and heads.tar.xz (the sweep without its
weights) are written beside this script or, with --here FOLDER, there. `--only-write` makes the
table again from what is kept. The lines of `auto` are those of gue.tar.xz.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from commands import cpu, genodiff  # noqa: E402
from finetune_page import read_line  # noqa: E402
from kept_sweep import join_sweep, pack_sweep, unpack_sweep  # noqa: E402
from run import SUITES  # noqa: E402

from genodiff.finetuning.head import list_heads  # noqa: E402
from genodiff.finetuning.results import read_results  # noqa: E402
from genodiff.reports.sweep_results import TaskResult, read_sweep  # noqa: E402

PROTOCOL = ("rc", "epochs", "batch_size", "lr", "weight_decay", "dropout", "shift", "patience",
            "ema", "mask_share")  # fmt: skip
GUE = SUITES["gue"]


def read_chosen(gue: Path, task: str, preset: str) -> dict[str, Any] | None:
    """The settings that `auto` came to on a task; None where it was not measured."""
    rows = (row for row in read_results(gue) if row["task"] == task)
    found = [row["settings"] for row in rows if row["model"] == f"scratch:{preset}"]
    return found[-1] if found else None


def measure(asked: argparse.Namespace, task: str, chosen: dict[str, Any]) -> None:
    """A line of each head but the chosen one."""
    flags = [
        word
        for name in PROTOCOL
        if chosen.get(name) is not None
        for word in (f"--{name.replace('_', '-')}", chosen[name])
    ]
    for head in list_heads():
        if head != chosen["head"]:
            genodiff(
                "finetune", "gue", "--task", task, "--data", asked.data / GUE.data, "--model",
                f"{head}=scratch:{asked.preset}", "--head", head, *flags, "--seeds", asked.seeds,
                "--jobs", asked.jobs, "--out", asked.out / "heads",
            )  # fmt: skip


def tabulate(panels: list[TaskResult], gue: Path, preset: str) -> list[str]:
    """A row for each task: the mean of each head, and the best other head beside auto's."""
    heads, auto = list_heads(), f"scratch:{preset}"
    text = [
        "| task | " + " | ".join(heads) + " | best other − auto |",
        "|---" * (len(heads) + 2) + "|",
    ]
    for panel in panels:
        chosen = (read_chosen(gue, panel.task, preset) or {})["head"]
        lines = {line.name: line for line in panel.lines if not line.ensemble}
        cells = []
        for head in heads:
            line = lines.get(auto if head == chosen else head)
            if line is None:
                cells.append("")
                continue
            read, mark = read_line(line), "**" if head == chosen else ""
            ends = (line.estimate and line.estimate.ci95) or ()
            cells.append(f"{mark}{read.mean:.3f}{mark}{interval(ends, '.3f')} ({read.seeds})")
        others = [lines[head] for head in heads if head in lines and head != chosen]
        cells.append(show_gap(panel, max(others, key=lambda line: line.mean).name, auto))
        text.append(f"| {panel.task} | {' | '.join(cells)} |")
    return text


def show_gap(panel: TaskResult, other: str, auto: str) -> str:
    """The difference of two lines, paired by examples and seeds, with its interval."""
    for gap in panel.comparisons:
        if {gap.a, gap.b} == {other, auto}:
            sign = 1 if gap.a == other else -1
            ends = sorted(sign * end for end in gap.estimate.ci95 or ())
            return f"{other} {sign * gap.estimate.value:+.3f}{interval(ends, '+.3f')}"
    return f"{other}, not compared"


def interval(ends: Sequence[float], form: str) -> str:
    """Its ends in brackets; nothing where there is none."""
    return f" [{', '.join(format(end, form) for end in ends)}]" if ends else ""


def write(asked: argparse.Namespace, gue: Path) -> None:
    """HEADS.md and heads.tar.xz."""
    sweep = asked.out / "heads"
    if not (sweep / "results.jsonl").exists():
        return
    asked.here.mkdir(parents=True, exist_ok=True)
    pack_sweep(sweep, asked.here / "heads.tar.xz")
    measured = {row["task"] for row in read_results(sweep)}
    with tempfile.TemporaryDirectory() as folder:
        both = Path(folder) / "both"
        for part in (sweep, gue):
            join_sweep(both, part)
        panels = [panel for panel in read_sweep(both) if panel.task in measured]
    panels.sort(key=lambda panel: GUE.tasks.index(panel.task))
    text = [
        "# Heads: what validation chose, beside the others",
        "",
        "MCC on the test part of GUE's tasks: the mean over seeds, in brackets its 95 % interval "
        "over seeds and test examples together, and the number of seeds. The head in bold is the "
        "one that `--head auto` chose by validation; its line is that of RESULTS.md. The others "
        "have its protocol, and differ by the head alone. The last column is the difference of "
        f"the best of the others, paired by examples; best by test, so it flatters them. "
        f"`{asked.preset}` from random weights. Fits are processes of one thread.",
        "",
        *tabulate(panels, gue, asked.preset),
        "",
        f"Command: `python benchmarks/finetune/heads.py --data SHARED/data --seeds {asked.seeds}`. "
        f"Commits stand in the rows of heads.tar.xz. Table written on: {cpu()}.",
        "",
    ]
    (asked.here / "HEADS.md").write_text("\n".join(text), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with nt_tasks/GUE")
    parser.add_argument("--out", type=Path, default=Path("runs/finetune"))
    parser.add_argument("--here", type=Path, default=HERE, help="where the table goes")
    parser.add_argument("--tasks", default=",".join(GUE.tasks), help="these tasks, with commas")
    parser.add_argument("--preset", default="caduceus-ph-85k", help="the network from scratch")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only-write", action="store_true")
    asked = parser.parse_args()
    if asked.data is None and not asked.only_write:
        parser.error("--data is needed")
    wanted = asked.tasks.split(",")
    if unknown := [task for task in wanted if task not in GUE.tasks]:
        parser.error(f"unknown task {unknown[0]}; known: {', '.join(GUE.tasks)}")
    gue = asked.out / "gue"
    for name, folder in (("gue.tar.xz", gue), ("heads.tar.xz", asked.out / "heads")):
        for place in dict.fromkeys((asked.here, HERE)):
            if (place / name).exists():
                unpack_sweep(place / name, folder)
    for task in [] if asked.only_write else (task for task in GUE.tasks if task in wanted):
        chosen = read_chosen(gue, task, asked.preset)
        if chosen is not None:
            measure(asked, task, chosen)
            write(asked, gue)
    write(asked, gue)


if __name__ == "__main__":
    main()
