"""Labelled DNA: networks, baselines and published rows on six suites of tasks.

    python benchmarks/finetune/run.py --data SHARED/data [--suite gue] [--out FOLDER] [--seeds 5]
    [--jobs 2] [--tasks mouse/3,mouse/2] [--preset caduceus-ph-83k] [--pretrain 8000]
    [--run NAME=RUN] [--budget 10]

The suites: two tasks of Genomic Benchmarks, the ten complete ones of GUE, iEnhancer, DeepSTARR's
sample, measured promoters, and the sixteen of iDNA-MS.

Everything is done through the command line of genodiff, one task after the other, the smallest
first. The same command again goes on where it stopped. Tables and pictures are written after each
task. Settings, and the line that is called ours, are chosen by validation alone; the test part is
opened once for each line and seed. `--pretrain STEPS` trains the preset on human pieces first,
without labels, and adds it as `pretrained`; `--run` adds other runs. Flags that are not listed go
to `genodiff finetune`. `--only-write` makes tables and pictures again from what is there.

RESULTS.md, SUITE.md.xz (every line of a suite), the pictures and SUITE.tar.xz are written beside
this script or, with --here FOLDER, there: a run of few epochs has no place in the tree.
SUITE.tar.xz is the sweep without its units: OUT/SUITE is filled from it first, so what was measured
elsewhere stays in the tables. SUITE.md.xz needs the predictions, and stays as it is where OUT/SUITE
lacks some.
Tasks that ran side by side, each in an --out of its own, are put together by --join; a line that
was chosen anew there takes the place of the one before once it has as many seeds.
FINDINGS.md is the end of RESULTS.md. Published values are as `data_recipes/published/` has them.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from commands import genodiff, nameless, write_kept  # noqa: E402
from finetune_page import describe_suite, draw  # noqa: E402
from human_pieces import write_pieces  # noqa: E402
from kept_sweep import (  # noqa: E402
    forget_places,
    has_predictions,
    pack_sweep,
    recall_panels,
    take_sweep,
    unpack_sweep,
)
from protocol_search import Flags, as_words, choose, list_protocols  # noqa: E402

from genodiff.finetuning.pooling import HEADS  # noqa: E402
from genodiff.finetuning.protocol import FitSettings  # noqa: E402
from genodiff.reports.sweep_results import TaskResult  # noqa: E402
from genodiff.tasks.suite import load_suite  # noqa: E402


class Suite(NamedTuple):
    """A suite as it is measured here: its folder in --data, its tasks, the smallest first."""

    title: str
    data: str
    tasks: tuple[str, ...]
    flags: tuple[object, ...] = ()


SHORT = ("--batch-size", 32, "--epochs", 10)
"""The protocol to start from that GUE has too; a budget chooses from there."""

SUITES = {
    "genomic-benchmarks": Suite(
        "Genomic Benchmarks, two tasks, split local", "genomic_benchmarks",
        ("human_nontata_promoters", "human_enhancers_cohn"),
        ("--split", "local", "--batch-size", 32, "--epochs", 5),
    ),
    "gue": Suite(
        "GUE, the ten tasks with train, dev and test", "nt_tasks/GUE",
        ("mouse/3", "mouse/2", "prom/prom_300_tata", "mouse/0", "tf/4", "tf/2", "tf/1", "tf/0",
         "prom/prom_core_notata", "prom/prom_core_all"),
    ),
    "ienhancer": Suite("iEnhancer-2L", "nt_tasks", ("enhancers",), SHORT),
    "deepstarr-sample": Suite(
        "DeepSTARR's sample, split by homology", "starr", ("developmental", "housekeeping"), SHORT
    ),
    "measured-promoters": Suite(
        "Measured promoters, split by homology", "promoters", ("ecoli_tss", "yeast_complex"), SHORT
    ),
    "idna-ms": Suite(
        "iDNA-MS, 16 tasks", "nt_tasks",
        ("4mC_C.equisetifolia", "6mA_R.chinensis", "4mC_S.cerevisiae", "5hmC_H.sapiens",
         "6mA_F.vesca", "6mA_Tolypocladium", "5hmC_M.musculus", "6mA_S.cerevisiae",
         "6mA_C.equisetifolia", "6mA_C.elegans", "6mA_D.melanogaster", "4mC_Tolypocladium",
         "4mC_F.vesca", "6mA_Xoc BLS256", "6mA_H.sapiens", "6mA_A.thaliana"), SHORT,
    ),
}  # fmt: skip


def pretrain(asked: argparse.Namespace) -> str:
    """The run of the preset on human pieces, as NAME=RUN; one that is done is not repeated."""
    asked.out.mkdir(parents=True, exist_ok=True)
    run = asked.out / "pretrained"
    if not (run / "model.safetensors").exists():
        fasta, bed = write_pieces(asked.data, asked.out)
        genodiff(
            "train", "--fasta", fasta, "--bed", bed, "--preset", asked.preset, "--seq-len", 512,
            "--batch-size", 16, "--max-steps", asked.pretrain, "--seed", 1, "--out", run,
        )  # fmt: skip
    return f"pretrained={run}"


def measure(asked: argparse.Namespace, name: str, task: str, more: list[str]) -> None:
    """All models on one task."""
    suite = SUITES[name]
    given = "finetune", name, "--task", task, "--data", asked.data / suite.data, *suite.flags
    networks = [] if asked.no_network else [f"scratch:{asked.preset}", *asked.run]
    lines: list[tuple[list[str], list[object]]] = [([network], []) for network in networks]
    if asked.budget is not None:
        lines = [(one, choose_protocol(asked, [*given, *more], *one)) for one, _ in lines]
    if not asked.no_baselines:
        lines.append((["baselines"], []))
    for models, flags in lines:
        named = [word for model in models for word in ("--model", model)]
        genodiff(
            *given, *named, "--seeds", asked.seeds, "--jobs", asked.jobs, "--out", asked.out / name,
            *more, *flags,
        )  # fmt: skip


def choose_protocol(asked: argparse.Namespace, given: list[object], model: str) -> list[object]:
    """The flags of the protocol that seed 1's validation part chooses for a network on a task."""
    name, task = str(given[1]), load_suite(str(given[1])).find(str(given[3]))
    place = asked.out / "protocols" / re.sub(r"\W", "_", f"{name} {task.name} {model}")
    place.mkdir(parents=True, exist_ok=True)

    def fit(flags: Flags) -> dict[str, Any]:
        words = [*given, "--model", model, "--seeds", 1, "--out", place, "--json", *as_words(flags)]
        (row,) = json.loads(genodiff(*words, capture=True))["rows"]
        return row  # type: ignore[no-any-return]

    first = fit({})
    settings = FitSettings.parse(first["settings"])
    protocols = list_protocols(
        settings.lr, settings.epochs, settings.steps(first["n_train"]), turns=not task.oriented,
        reads_places=HEADS[settings.head].reads_places,
    )  # fmt: skip

    def measure_fit(flags: Flags) -> tuple[float, float]:
        row = fit(flags)
        return row["valid"], row["seconds"]

    record = place / "protocols.json"
    chosen = choose(protocols, measure_fit, task.metrics[0], asked.budget, record)
    return list(as_words(chosen))


def write(asked: argparse.Namespace) -> None:
    """RESULTS.md, pictures and kept sweeps, with the places of this machine's folders left out."""
    asked.here.mkdir(parents=True, exist_ok=True)
    text = [
        "# Fine-tuning: networks, baselines, published rows",
        "",
        "Mean over seeds, in brackets its 95 % interval over seeds and test examples together, and "
        "the number of seeds. Validation chose the settings of each line, and the line of each "
        "column; no test part was read for it. Published rows are of fine-tuned models, of "
        "iEnhancer-2L also of others. They are taken as fixed; their sources stand in each task's "
        "table, with rows of another metric. In pictures published points are diamonds, or dotted "
        "lines where only the score is known. `kmer-tuned`, `gkm-svm`, `pos-kmer-lr`, "
        "`pos-kmer-gb` and `cnn-tuned` are no longer in the package: commit 60a415f1 has them.",
        "",
    ]
    for name, suite in SUITES.items():
        if (asked.out / name / "results.jsonl").exists():
            text += write_suite(asked, name, suite)
        else:
            text += [f"## {suite.title}", "", "Not measured yet.", ""]
    findings = asked.here / "FINDINGS.md"
    text += [findings.read_text(encoding="utf-8")] if findings.exists() else []
    write_page(asked, asked.here / "RESULTS.md", "\n".join(text))


def write_page(asked: argparse.Namespace, page: Path, text: str) -> None:
    """Write a page that does not name this machine's folders."""
    write_kept(page, nameless(text, name_places(asked)))


def name_places(asked: argparse.Namespace) -> dict[str, Path | None]:
    """This machine's folders, by what pages and commands call them."""
    places = {"OUT": asked.out, "DATA": asked.data}
    return places | {f"RUN-{run.split('=')[0]}": Path(run.split("=", 1)[-1]) for run in asked.run}


def write_suite(asked: argparse.Namespace, name: str, suite: Suite) -> list[str]:
    """The section of one suite; its pictures, its sweep and SUITE.md.xz are written beside it."""
    sweep = asked.out / name
    forget_places(sweep, name_places(asked))
    panels: list[TaskResult] = sorted(
        (p for p in recall_panels(sweep) if p.task in suite.tasks),
        key=lambda p: suite.tasks.index(p.task),
    )
    pictures = []
    for of in ("minutes", "weights"):
        pictures.append(asked.here / f"{name}-{of}.svg")
        pictures[-1].write_text(draw(panels, of, suite.title), encoding="utf-8")
    pack_sweep(sweep, asked.here / f"{name}.tar.xz")
    missing = [task for task in suite.tasks if task not in {panel.task for panel in panels}]
    page = asked.here / f"{name}.md.xz"
    if has_predictions(sweep):
        genodiff("finetune", "report", sweep)
        details = (sweep / "RESULTS.md").read_text(encoding="utf-8")
        title = f"# {suite.title}: every line"
        write_page(asked, page, details.replace("# Fine-tuning results", title, 1))
    else:
        print(f"{page} stays: {sweep} has not all predictions", file=sys.stderr)
    return describe_suite(suite.title, panels, missing, page, pictures)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with genomic_benchmarks/, nt_tasks/, starr/ and promoters/",
    )
    parser.add_argument("--suite", choices=SUITES, action="append", help="these alone")
    parser.add_argument("--out", type=Path, default=Path("runs/finetune"))
    parser.add_argument("--here", type=Path, default=HERE, help="where tables and pictures go")
    parser.add_argument("--tasks", help="these tasks alone, with commas")
    parser.add_argument("--preset", default="caduceus-ph-83k", help="the network from scratch")
    parser.add_argument("--pretrain", type=int, help="steps of 8,192 bases on human pieces")
    parser.add_argument("--run", action="append", default=[], help="NAME=RUN, repeatable")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, help="minutes of choosing for a line on a task")
    parser.add_argument("--no-baselines", action="store_true")
    parser.add_argument("--no-network", action="store_true", help="baselines alone")
    parser.add_argument("--join", type=Path, action="append", default=[], help="another --out")
    parser.add_argument("--only-write", action="store_true")
    asked, more = parser.parse_known_args()
    if asked.data is None and not asked.only_write:
        parser.error("--data is needed")
    suites = asked.suite or list(SUITES)
    known = [task for name in suites for task in SUITES[name].tasks]
    wanted = known if asked.tasks is None else asked.tasks.split(",")
    if unknown := [task for task in wanted if task not in known]:
        parser.error(f"unknown task {unknown[0]}; known: {', '.join(known)}")
    for name in SUITES:
        if (asked.here / f"{name}.tar.xz").exists():
            unpack_sweep(asked.here / f"{name}.tar.xz", asked.out / name)
        for other in asked.join:
            if (other / name).exists():
                take_sweep(asked.out / name, other, asked.data)
    if asked.pretrain is not None and not asked.only_write:
        asked.run.append(pretrain(asked))
    for name in [] if asked.only_write else suites:
        for task in (task for task in SUITES[name].tasks if task in wanted):
            measure(asked, name, task, more)
            write(asked)
    if asked.only_write:
        write(asked)


if __name__ == "__main__":
    main()
