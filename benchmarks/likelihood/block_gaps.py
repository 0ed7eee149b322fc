"""What a gap's bases cost a model of blocks with and without what stands after them, and MDLM.

    python benchmarks/likelihood/block_gaps.py sacCer3.fa.gz RUN... [--gaps 400] -o block_gaps.json

RUNs are of `benchmarks/objectives/yeast-blocks.yaml`, named NAME-seedN: MDLM and blocks of 64 and
more. Gaps of 64 bases lie in windows of 1,024 of chrXIV, which no run was trained on, from base 512
on. Each has `--draws` masks with exact counts, the same for all runs and ways:

    both      MDLM, all else of the window is seen
    left      MDLM, what is after the gap is masked, too; a block of the gap alone
    block     a block that begins with the gap, and sees what is after it within the block

Bits per base bound -log2 p(gap | what is seen). Differences are paired by gap; intervals are over
gaps, of means over seeds.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.backbones.blocks import BlockPast
from genodiff.counter import Purpose, uniforms
from genodiff.diffusion.masked import counts, exact_count_mask
from genodiff.io.faidx import Genome
from genodiff.runs.folder import find_git_revision
from genodiff.runs.model import TrainedModel, load_model

CONTIG, WINDOW, START, GAP, BATCH = "chrXIV", 1024, 512, 64, 16


def cut_gaps(fasta: str, n: int) -> Tensor:
    """(n, WINDOW): ids of evenly spread windows of letters alone."""
    with Genome(fasta) as genome:
        length = genome.contigs[CONTIG]
        starts = np.linspace(0, length - WINDOW, n).astype(int).tolist()
        windows = [DNA.encode(genome.fetch(CONTIG, at, at + WINDOW)) for at in starts]
    ids = torch.from_numpy(np.stack(windows).astype(np.int64))
    return ids[torch.isin(ids, torch.tensor(DNA.targets)).all(1)]


@torch.inference_mode()
def read(model: TrainedModel, x0: Tensor, masked: Tensor, way: str) -> Tensor:
    """(B, GAP, V): logits of the gap, whose `masked` (B, GAP) are masks."""
    mask, here = model.alphabet.mask_id, slice(START, START + GAP)
    xt = x0.clone()
    xt[:, here][masked] = mask
    if model.objective.kind == "masked":
        if way == "left":
            xt[:, START + GAP :] = mask
        return model.backbone(xt)[:, here]
    size = model.objective.block
    past = BlockPast(model.backbone, len(x0))
    for at in range(0, START, size):
        past.add(x0[:, at : min(at + size, START)])
    end = START + (GAP if way == "left" else size)
    return past.read(xt[:, START:end])[:, :GAP]


def measure(model: TrainedModel, x0: Tensor, masks: list[Tensor], way: str) -> np.ndarray:
    """(n,): bits per base of each gap."""
    found = []
    for at in range(0, len(x0), BATCH):
        some, bits = x0[at : at + BATCH], 0.0
        for each in masks:
            masked = each[at : at + BATCH]
            gap = some[:, START : START + GAP]
            nll = model.objective.diffusion.nll(read(model, some, masked, way), gap, masked)
            bits = bits + (nll.double() * masked).sum(1) / masked.sum(1) / np.log(2)
        found.append(bits / len(masks))
    return torch.cat(found).numpy()


def describe(bits: np.ndarray) -> dict[str, Any]:
    half = 1.96 * bits.std(ddof=1) / np.sqrt(len(bits))
    mean = float(bits.mean())
    return {"bits": round(mean, 5), "ci95": [round(mean - half, 5), round(mean + half, 5)]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("fasta")
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--gaps", type=int, default=400)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    x0, masks = cut_gaps(asked.fasta, asked.gaps), []
    whole = torch.ones(len(x0), GAP, dtype=torch.bool)
    for j in range(asked.draws):
        u = np.stack([uniforms(1, Purpose.EVAL_MASK, i, GAP, j) for i in range(len(x0))])
        t = (j + uniforms(1, Purpose.EVAL_TIME, j, len(x0))) / asked.draws
        k = counts(torch.from_numpy(1 - t), whole.sum(1))
        masks.append(exact_count_mask(whole, k, torch.from_numpy(u)))
    found, seconds = defaultdict(list), defaultdict(float)
    for run in asked.runs:
        model, (name, _) = load_model(run), Path(run).name.rsplit("-seed", 1)
        block = getattr(model.objective, "block", None)
        ways = ["both", "left"] if block is None else ["left"] + ["block"] * (block > GAP)
        for way in ways:
            begun = time.process_time()
            found[name, way].append(measure(model, x0, masks, way))
            seconds[name, way] += time.process_time() - begun
        print(name, ways, flush=True)
    mean = {key: np.mean(each, 0) for key, each in found.items()}
    against = mean["MDLM", "both"]
    rows = [
        {
            "row": name, "way": way, "seeds": len(found[name, way]), **describe(bits),
            "minus_mdlm": describe(bits - against), "cpu_s": round(seconds[name, way], 1),
            "minus_left": describe(bits - mean[name, "left"]),
        }
        for (name, way), bits in mean.items()
    ]  # fmt: skip
    told = {"commit": find_git_revision(), "gaps": len(x0), "draws": asked.draws, "rows": rows}
    asked.output.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
