"""What goes before a fit, and whether it pays: lines that differ in their beginning alone.

    python benchmarks/finetune/pretraining.py --data SHARED/data [--out FOLDER] [--suite gue]
    [--tasks mouse/3] [--preset caduceus-ph-85k] [--steps 8000] [--seeds 5] [--jobs 2]

The lines, each with the head and the protocol that validation chose for random weights:

    human             masked diffusion on pieces of the human genome first (--steps of 8,192 bases)
    yeast             masked diffusion on yeast first, as many steps: does any genome do?
    human-frozen      the head alone is fitted, on what `human` says of each position

Two more lines stand in the kept sweep: `adapted` and `human-adapted`, with masked diffusion on the
task's own train sequences first. No task gained by it, and the package no longer offers it.

The two runs are made first, once: --runs FOLDER keeps them for other --out folders. The same
command again goes on where it stopped.
PRETRAINING.md and pretraining.tar.xz (the sweep without its units) are written beside this script
or, with --here FOLDER, there. `--only-write` makes the table again from what is kept.
"""

import argparse
from pathlib import Path

from human_pieces import write_pieces
from one_change import PROTOCOL, Change, Settings, Study, genodiff, run_study

COLUMNS = ("scratch", "adapted", "human", "human-adapted", "yeast", "human-frozen")


def pretrain(asked: argparse.Namespace, name: str) -> Path:
    """A run of the preset; one that is done is not repeated."""
    runs: Path = asked.runs or asked.out / "runs"
    run = runs / name
    if not (run / "model.safetensors").exists():
        runs.mkdir(parents=True, exist_ok=True)
        if name == "human":
            fasta, bed = write_pieces(asked.data, runs)
            data = ["--fasta", fasta, "--bed", bed]
        else:
            data = ["sacCer3", "--fasta", asked.data / "genomes" / "sacCer3.fa.gz"]
        genodiff(
            "train", *data, "--preset", asked.preset, "--seq-len", 512, "--batch-size", 16,
            "--max-steps", asked.steps, "--seed", 1, "--threads", 1, "--out", run,
        )  # fmt: skip
    return run


def list_changes(asked: argparse.Namespace, chosen: Settings) -> list[Change]:
    """The lines that `--lines` names."""
    lines = {
        "human": lambda: Change("human", str(pretrain(asked, "human"))),
        "yeast": lambda: Change("yeast", str(pretrain(asked, "yeast"))),
        "human-frozen": lambda: Change(
            "human-frozen", str(pretrain(asked, "human")), {"method": "frozen"}
        ),
    }
    return [make() for name, make in lines.items() if name in asked.lines.split(",")]


PRETRAINING = Study(
    "pretraining",
    COLUMNS,
    lambda chosen: "scratch",
    list_changes,
    [
        "# Pretraining: what goes before a fit, and whether it pays",
        "",
        "`scratch` begins from random weights. `adapted` had 500 steps of masked diffusion on the "
        "task's own train sequences first, without labels; `human` 8,000 steps of 8,192 bases on "
        "pieces of the human genome; `human-adapted` both; `yeast` as many steps on yeast. Of "
        "`human-frozen` the head alone is fitted. Head and protocol were chosen for `scratch`: "
        "another beginning may want another protocol.",
    ],
    (*PROTOCOL, "head"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=8000, help="of each run of pretraining")
    parser.add_argument("--runs", type=Path, help="where the runs of pretraining are")
    parser.add_argument("--lines", default="human,yeast,human-frozen", help="these, with commas")
    run_study(PRETRAINING, parser)


if __name__ == "__main__":
    main()
