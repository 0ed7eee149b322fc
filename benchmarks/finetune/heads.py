"""Every head beside the one that `--head auto` chose, on the tasks that run.py measured.

    python benchmarks/finetune/heads.py --data SHARED/data [--out FOLDER] [--suite gue]
    [--tasks mouse/3,mouse/2] [--preset caduceus-ph-85k] [--seeds 5] [--jobs 2]

Each head is fitted as a line of its own, from random weights, with the protocol that validation
chose for `auto` on this task: only the head differs. The same command again goes on where it
stopped. HEADS.md and heads.tar.xz (the sweep without its units; of another suite
heads-SUITE.tar.xz) are written beside this script or, with --here FOLDER, there. `--only-write`
makes the tables again from what is kept.
"""

import argparse

from one_change import Change, Settings, Study, run_study

from genodiff.finetuning.head import list_heads


def list_changes(asked: argparse.Namespace, chosen: Settings) -> list[Change]:
    """A line of each head but the chosen one."""
    scratch = f"scratch:{asked.preset}"
    return [
        Change(head, scratch, {"head": head, "parts": None})
        for head in list_heads()
        if head != chosen["head"]
    ]


HEADS = Study(
    "heads",
    list_heads(),
    lambda chosen: str(chosen["head"]),
    list_changes,
    [
        "# Heads: what validation chose, beside the others",
        "",
        "The head in bold is the one that `--head auto` chose by validation: first in short fits, "
        'then, where the page of the suite says "head, again", by a second look at all heads under '
        "the protocol that was chosen. The lines differ by the head alone.",
    ],
)

if __name__ == "__main__":
    run_study(
        HEADS,
        argparse.ArgumentParser(
            description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        ),
    )
