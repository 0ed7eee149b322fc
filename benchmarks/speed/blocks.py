"""A training step of block diffusion on one core, beside one of MDLM on the same windows.

    python benchmarks/speed/blocks.py --json

A step of blocks reads each window twice, so 2 is the least ratio of arithmetic. `by parts` is the
definition that the fused version is tested against, on the same kernels of scan and convolution:
what ran before there was a fused one.
"""

import argparse
from collections.abc import Callable

import timing
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.objective import Draws, Objective
from genodiff.diffusion.objectives.block import BlockDiffusion
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.schedule import schedule
from genodiff.io.process import keep_freed_memory
from genodiff.kernels import blocks
from genodiff.kernels.dispatch import Operation
from genodiff.kernels.gemm import routed_matmul

SIZES = (1, 4, 16, 64, 256)
BY_PARTS = Operation(blocks.BLOCK_MIXER.implementations[-1], recorded=blocks.BLOCK_MIXER)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    settings = CaduceusSettings(d_model=128, n_layer=4, strands="single")
    diffusion = MaskedDiffusion(schedule("linear"), DNA.mask_id, DNA.targets)
    turns: dict[str, Callable[[], object]] = {"mdlm": step_of(a, settings, Mdlm(diffusion))}
    for size in SIZES:
        run = step_of(a, settings, BlockDiffusion(diffusion, block=size))
        turns |= {f"blocks of {size}": run, f"blocks of {size} by parts": by_parts(run)}
    times = timing.interleaved(turns, a.rounds)
    result = {
        "benchmark": "blocks",
        "shape": {"B": a.batch, "L": a.length, "d_model": 128, "n_layer": 4, "dtype": "float32"},
        "mdlm_ktok_per_s": timing.pace(times, a.batch * a.length)["mdlm"],
        "times_as_long_as_mdlm": timing.ratios(times, "mdlm"),
        "rounds": a.rounds,
        "seed": a.seed,
    }
    timing.show(result | timing.provenance(), a.json)


def step_of(
    a: argparse.Namespace, settings: CaduceusSettings, objective: Objective
) -> Callable[[], float]:
    """Loss and gradients of a fixed batch."""
    network = settings.build(DNA.padded_size, None, seed=a.seed)
    g = torch.Generator().manual_seed(a.seed)
    x0 = torch.tensor(DNA.targets)[torch.randint(0, 4, (a.batch, a.length), generator=g)]
    clean = Clean(x0, torch.ones_like(x0, dtype=torch.bool))
    u_mask, u_time = torch.rand(a.batch, a.length, generator=g), torch.rand(a.batch, generator=g)
    draws = Draws(u_mask, u_time, 0.5, torch.arange(a.batch), a.batch)

    def step() -> float:
        network.zero_grad()
        with routed_matmul(True):
            terms = objective.loss(network, clean, draws)
            loss = terms.nats / terms.n_tokens
            loss.backward()
        return float(loss.detach())

    return step


def by_parts(step: Callable[[], float]) -> Callable[[], float]:
    """The same step with the definition in the place of the fused mixer."""

    def run() -> float:
        fused, blocks.BLOCK_MIXER = blocks.BLOCK_MIXER, BY_PARTS
        try:
            return step()
        finally:
            blocks.BLOCK_MIXER = fused

    return run


if __name__ == "__main__":
    main()
