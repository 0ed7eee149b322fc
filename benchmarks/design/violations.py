"""100,000 designs over 30 sets of constraints, read by a checker that shares no code with genodiff.

    python benchmarks/design/violations.py RUN [--uniform]

`stranger.py` is the checker. RUN is a run of DNA; with --uniform its network is replaced by one
that finds all bases equally likely. The counts are written to violations.json.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from commands import cpu  # noqa: E402
from stranger import Region, find_faults  # noqa: E402

import genodiff  # noqa: E402
from genodiff.runs.folder import find_git_revision  # noqa: E402

OUT = HERE / "violations.json"
FRAME = "c:10-99"
SPLIT = {"exons": ["c:10-40", "c:61-104"], "strand": "-"}


class ConstraintSet(NamedTuple):
    """What is asked of a sequence of 120 bases; `coding` writes an open frame at 10-99."""

    regions: list[Region]
    rules: dict[str, Any]
    coding: bool = False


def list_sets(vector: Path) -> list[ConstraintSet]:
    """The 30 sets; `vector` is a FASTA file whose repeats are refused."""
    vector.write_text(">v\n" + write_dna(400, 77) + "\n")
    one, two, all_of_it = [(30, 70)], [(20, 45), (60, 90)], [(0, 120)]
    words = ["GATTCC", "AGGTAC", "TTAGCA", "CCTGAA", "ACGTCA"]
    golden = ["BsaI", "BsmBI", "BbsI"]
    return [
        ConstraintSet(one, {"avoid": words}),
        ConstraintSet(two, {"avoid": ["GNTC", "ATTTA", "TATAWAW"]}),
        ConstraintSet(all_of_it, {"avoid": ["CG"], "max_run": 4}),
        ConstraintSet(one, {"enzymes": ["EcoRI", "BamHI", "HindIII", "NotI"]}),
        ConstraintSet(two, {"enzymes": golden, "gc": ["35-65%"]}),
        ConstraintSet(all_of_it, {"enzymes": [*golden, "SfiI"], "max_run": 3}),
        ConstraintSet(one, {"require": ["GAATTC"]}),
        ConstraintSet(two, {"require": ["TGACTCA", "RYGC"], "max_run": 4}),
        ConstraintSet(one, {"require": ["GAATTC"], "enzymes": ["BamHI"], "avoid": ["GGAATT"]}),
        ConstraintSet(one, {"gc": ["50-50%"]}),
        ConstraintSet(two, {"gc": ["40-60%/12"]}),
        ConstraintSet(all_of_it, {"gc": ["35-65%/50:25", "45-55%"]}),
        ConstraintSet(one, {"gc": ["30-70%/20:10"], "max_run": 2}),
        ConstraintSet(one, {"max_run": 1}),
        ConstraintSet(all_of_it, {"max_edits": 3, "max_run": 5}),
        ConstraintSet(one, {"max_edits": 8, "require": ["TATAAA", "CCGG"]}),
        ConstraintSet(two, {"max_edits": 5, "gc": ["30-70%/10"]}),
        ConstraintSet([(9, 99)], {"protein": ["forward"]}, True),
        ConstraintSet([(9, 99)], {"protein": [FRAME], "enzymes": golden, "max_run": 4}, True),
        ConstraintSet(two, {"protein": [FRAME], "avoid": ["GGT", "AAAA"]}, True),
        ConstraintSet(two, {"protein": [FRAME + ":-"], "genetic_code": 11, "gc": ["30-70%"]}),
        ConstraintSet([(15, 110)], {"protein": [SPLIT], "max_edits": 12}),
        ConstraintSet([(9, 99)], {"protein": ["reverse"], "max_edits": 6, "genetic_code": 2}),
        ConstraintSet([(9, 99)], {"no_stop": ["forward", "reverse"]}),
        ConstraintSet(two, {"no_stop": [FRAME], "genetic_code": 4, "avoid": ["TGG"]}),
        ConstraintSet(one, {"keep": ["c:40-45", "c:50-60"], "max_run": 3, "avoid": words}),
        ConstraintSet(all_of_it, {"no_repeats": [f"8:{vector}"]}),
        ConstraintSet(one, {"no_repeats": [f"5:{vector}"], "gc": ["40-60%"]}),
        ConstraintSet(two, {"require": ["CACGTG"], "max_run": 3, "gc": ["30-60%"],
                            "enzymes": ["XhoI", "NdeI"], "keep": ["c:30-31"]}),
        ConstraintSet([(9, 99)], {"protein": [FRAME], "no_stop": [FRAME], "keep": ["c:10-12"],
                                  "avoid": ["ATTTA"], "enzymes": ["EcoRI"], "max_run": 5,
                                  "gc": ["30-70%/30:15"], "max_edits": 25}, True),
    ]  # fmt: skip


def write_dna(length: int, seed: int) -> str:
    return "".join(random.Random(seed).choices("ACGT", [3, 2, 2, 3], k=length))


def write_before(asked: ConstraintSet, seed: int) -> str:
    """A sequence of 120 bases, partly in lower case."""
    text = write_dna(120, seed)
    if asked.coding:
        codons = [c for c in (a + b + d for a in "ACGT" for b in "ACGT" for d in "ACGT")
                  if c not in ("TAA", "TAG", "TGA")]  # fmt: skip
        text = text[:9] + "ATG" + "".join(random.Random(seed).choices(codons, k=29)) + text[99:]
    return text[:50] + text[50:80].lower() + text[80:]


class Uniform(nn.Module):
    """A network that finds everything equally likely."""

    def forward(
        self, xt: Tensor, sigma: Tensor | None = None, lengths: Tensor | None = None
    ) -> Tensor:
        return torch.zeros(*xt.shape, 16, device=xt.device)


def draw(
    model: Any, sets: list[ConstraintSet], each: int, at_once: int, steps: int
) -> Iterator[tuple[int, str, str]]:
    """(number of the set, before, after) of `each` designs of each set, a few of a sequence."""
    for number, asked in enumerate(sets):
        for turn, first in enumerate(range(0, each, at_once)):
            n = min(at_once, each - first)
            before = write_before(asked, 1000 * number + turn % 5)
            rules = {"regions": asked.regions, "rules": asked.rules | {"allow_stops": True}}
            for after in model.redesign({"c": before}, n, **rules, seed=turn, steps=steps)[0]:
                yield number, before, after


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--n", type=int, default=100_000, help="designs in all")
    parser.add_argument("--at-once", type=int, default=512)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--uniform", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    model = genodiff.load(asked.run)
    if asked.uniform:
        model = type(model)(model.trained._replace(network=Uniform()))
    began, faults, designs, distinct = time.time(), Counter(), Counter(), set()
    edited = 0
    with tempfile.TemporaryDirectory() as folder:
        sets = list_sets(Path(folder) / "v.fa")
        each = -(-asked.n // len(sets))
        for number, before, after in draw(model, sets, each, asked.at_once, asked.steps):
            one = sets[number]
            found = find_faults(before, after, one.regions, one.rules)
            faults.update(f"set {number}: {fault}" for fault in found)
            designs[number] += 1
            distinct.add((number, after))
            edited += sum(x != y for x, y in zip(before, after, strict=True))
            if designs[number] == each:
                print(number, designs.total(), dict(faults), round(time.time() - began), flush=True)
    row = {
        "designs": designs.total(), "sets": len(sets), "distinct": len(distinct),
        "changed_bases": edited, "violations": faults.total(), "which": dict(faults),
        "run": asked.run.name, "network": "uniform" if asked.uniform else "of the run",
        "steps": asked.steps, "seconds": round(time.time() - began), "cpu": cpu(),
        "genodiff": find_git_revision(),
    }  # fmt: skip
    rows = json.loads(OUT.read_text()) if OUT.exists() else {}
    rows[row["network"]] = row
    OUT.write_text(json.dumps(rows, indent=1) + "\n")
    print(row)


if __name__ == "__main__":
    main()
