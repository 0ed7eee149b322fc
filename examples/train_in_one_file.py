"""Train a language model of a genome in one file: the road of `genodiff train`, nothing else.

    python examples/train_in_one_file.py [--fasta GENOME.fa] [--steps 200] [--out model.safetensors]

Every line that decides a weight is here or in five classes: `TrainBatches` (which windows does step
k see, and with which random numbers), `MaskedDiffusion` and `Mdlm` (how bases are masked, and what
a prediction costs), `Caduceus` (the logits) and torch's AdamW. There is no Lightning, no
checkpoint, no logger. After 20 steps the weights are those of

    genodiff train toy --preset caduceus-ps-tiny --seq-len 256 --batch-size 8 --max-steps 20

bit for bit (tests/test_first_results.py). Read it first, then change whatever you like.
"""

import argparse
import math
from copy import deepcopy

import torch
from safetensors.torch import save_file
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import Caduceus
from genodiff.backbones.kinds.caduceus import CaduceusSettings
from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.loader import Batch, TrainBatches
from genodiff.data.recipe import load_recipe, make_user_recipe
from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.objective import Draws
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.schedule import LogLinear
from genodiff.kernels.gemm import routed_matmul

SEED = 1  # of the order of windows, of masks and times
SEQ_LEN, BATCH_SIZE = 256, 8  # bases of a window; windows of a step
LR, LR_MIN_RATIO, WARMUP = 2e-3, 0.01, 100
WEIGHT_DECAY, BETAS, EPS, CLIP = 0.01, (0.9, 0.999), 1e-8, 1.0
EMA_DECAY = 0.9999
NETWORK = CaduceusSettings(d_model=64, n_layer=2, d_state=16, strands="paired")
"""The preset caduceus-ps-tiny: both strands are read, and the logits are equivariant to turning."""


def open_batches(fasta: str | None) -> tuple[TrainBatches, float]:
    """The batches of a genome's train split, and the weight of its soft-masked bases.

    A batch is a function of (seed, step): nothing has to be remembered to resume.
    """
    recipe = load_recipe("toy") if fasta is None else make_user_recipe(fasta)
    store = build_dna_store(recipe, fasta)
    windows = DnaWindows(store, recipe, "train", SEQ_LEN)
    return TrainBatches(windows, SEED, BATCH_SIZE), recipe.soft_mask_weight


def compute_loss(objective: Mdlm, network: Caduceus, batch: Batch, soft_weight: float) -> Tensor:
    """(Σ nats of the bound over the batch) / (bases of a full batch)."""
    padded = bool((batch.lengths != SEQ_LEN).any())
    weight = torch.where(batch.soft, soft_weight, 1.0) * batch.maskable
    clean = Clean(batch.x0, batch.maskable, weight, batch.lengths if padded else None)
    draws = Draws(batch.u_mask, batch.u_time, batch.u_shared, batch.slot, batch.n_slots)
    return objective.loss(batch.denoiser(network), clean, draws).nats / (BATCH_SIZE * SEQ_LEN)


def learning_rate(step: int, steps: int) -> float:
    """Linear warm-up, then a cosine."""
    warmup = min(WARMUP, steps // 10)
    if step < warmup:
        return LR * step / warmup
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    return LR * (LR_MIN_RATIO + (1 - LR_MIN_RATIO) * (1 + math.cos(math.pi * progress)) / 2)


def make_optimizer(network: Caduceus) -> torch.optim.AdamW:
    """AdamW; weight decay is for matrices that are neither embeddings nor A_log and D."""
    decayed, others = [], []
    for name, weight in network.named_parameters():
        exempt = getattr(weight, "_no_weight_decay", False) or name in ("embedding", "head")
        (decayed if weight.ndim >= 2 and not exempt else others).append(weight)
    groups = [
        {"params": decayed, "weight_decay": WEIGHT_DECAY},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS, fused=True)


def train(steps: int, fasta: str | None = None) -> Caduceus:
    """Train for so many steps; returns the network with averaged weights."""
    batches, soft_weight = open_batches(fasta)
    network = Caduceus(
        settings=NETWORK, vocab_size=DNA.padded_size, complement=DNA.complement, seed=0
    )
    objective = Mdlm(MaskedDiffusion(LogLinear(), DNA.mask_id, DNA.targets))
    optimizer = make_optimizer(network)
    average = deepcopy(network).requires_grad_(False)
    with routed_matmul():
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps)
            loss = compute_loss(objective, network, batches.batch(step), soft_weight)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimizer.step()
            decay = min(EMA_DECAY, (2 + step) / (11 + step))  # small at first, to forget the start
            with torch.no_grad():
                torch._foreach_lerp_([*average.parameters()], [*network.parameters()], 1 - decay)
            if step % 20 == 0 or step == steps - 1:
                print(f"step {step + 1}: {float(loss.detach()) / math.log(2):.4f} bits per base")
    return average.eval()


def main() -> None:
    """Read the words of the command line, train, and save the weights."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fasta", help="a genome (default: the toy genome)")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", default="model.safetensors")
    asked = parser.parse_args()
    network = train(asked.steps, asked.fasta)
    save_file({name: tensor for name, tensor in network.named_parameters()}, asked.out)


if __name__ == "__main__":
    main()
