"""The memory of one training step on a long sequence: a whole network, activation checkpointing,
one thread, one process per network.

    python benchmarks/speed/memory.py --json        caduceus-ph-7.7m, one window of 131,072 bases

Corrupt, network, bound, gradients, clipping, AdamW, as `genodiff train` with `checkpointing` runs
them. `peak_gb` is the largest resident memory of the process, `before_gb` what it held before the
step: Python, torch and the weights.
"""

import argparse
import resource
import time

import timing
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS
from genodiff.diffusion.loss import exact_count_loss
from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.schedule import schedule
from genodiff.io.process import keep_freed_memory
from genodiff.kernels.gemm import routed_matmul


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--preset", default="caduceus-ph-7.7m")
    parser.add_argument("--length", type=int, default=131072)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    keep_freed_memory()
    settings = PRESETS[a.preset].model_copy(update={"checkpointing": True})
    network = settings.build(
        DNA.padded_size, DNA.complement if settings.paired else None, seed=a.seed
    )
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    diffusion = MaskedDiffusion(schedule("linear"), DNA.mask_id, DNA.targets)
    g = torch.Generator().manual_seed(a.seed)
    x0 = torch.tensor(DNA.targets)[torch.randint(0, 4, (1, a.length), generator=g)]
    k, u = torch.tensor([a.length // 2]), torch.rand(1, a.length, generator=g)
    before, began, wall = peak(), time.process_time(), time.perf_counter()
    with routed_matmul():
        terms = exact_count_loss(
            diffusion, network, Clean(x0, torch.ones_like(x0, dtype=torch.bool)), k, u
        )
        loss = terms.nats / terms.n_tokens
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
    seconds = time.process_time() - began
    result = {
        "benchmark": "memory",
        "shape": {
            "preset": a.preset,
            "B": 1,
            "L": a.length,
            "n_layer": settings.n_layer,
            "checkpointing": True,
            "dtype": "float32",
        },
        "parameters": sum(p.numel() for p in network.parameters()),
        "peak_gb": round(peak(), 3),
        "before_gb": round(before, 3),
        "cpu_s": round(seconds, 1),
        "wall_s": round(time.perf_counter() - wall, 1),
        "ktok_per_cpu_s": round(a.length / seconds / 1e3, 3),
        "loss": float(loss.detach()),
        "rounds": 1,
        "seed": a.seed,
    }
    timing.show(result | timing.provenance(), a.json)


def peak() -> float:
    """The process' largest resident memory so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
