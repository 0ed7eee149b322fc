"""What sampling costs on one core: bases per second through a network, and nanoseconds per base for
the sampler alone.

    python benchmarks/speed/sample.py --json
    caduceus-ph-470k untrained, 8 windows of 1,024 bases, 32 steps

`sampler` runs the same loop with a network that costs nothing, so that what is left is the
sampler's own work per evaluated position. `gumbel` is the usual draw beside it: double-precision
Gumbel noise over the whole vocabulary, its maximum, and the choice of places.
"""

import argparse
from statistics import median

import timing
import torch
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.sampler import SamplerOptions
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.schedule import schedule
from genodiff.io.process import keep_freed_memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--preset", default="caduceus-ph-470k")
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    diffusion = MaskedDiffusion(schedule("linear"), DNA.mask_id, DNA.targets)
    network = PRESETS[a.preset].build(DNA.padded_size, DNA.complement, seed=a.seed).eval()
    g = torch.Generator().manual_seed(a.seed)
    xt = torch.full((a.batch, a.length), DNA.mask_id)
    u_order, u_token = (torch.rand(a.batch, a.length, generator=g) for _ in range(2))
    options = SamplerOptions(u_order, u_token, a.steps)
    fixed = torch.randn(a.batch, a.length, DNA.padded_size, generator=g)

    def run(denoiser: object) -> Tensor:
        return ancestral(diffusion, denoiser, xt, options).x0  # type: ignore[arg-type]

    def gumbel() -> Tensor:
        x = xt.clone()
        for step in range(a.steps):
            noise = -torch.rand(fixed.shape, dtype=torch.float64, generator=g).log()
            drawn = (fixed.double().exp() / noise).argmax(-1)
            move = (x == DNA.mask_id) & (torch.rand(x.shape, generator=g) < 1 / (a.steps - step))
            x = torch.where(move, drawn, x)
        return x

    with torch.inference_mode():
        runs = {
            "whole": lambda: run(network),
            "sampler": lambda: run(lambda x, sigma: fixed[: len(x)]),
            "gumbel": gumbel,
            "forward": lambda: network(xt),
        }
        times = timing.interleaved(runs, a.rounds)
    tokens = a.batch * a.length
    middle = {name: median(t) for name, t in times.items()}
    result = {
        "benchmark": "sample",
        "shape": {"B": a.batch, "L": a.length, "steps": a.steps, "preset": a.preset},
        "parameters": sum(p.numel() for p in network.parameters()),
        "bases_per_s": round(tokens / middle["whole"], 1),
        "forward_ktok_per_s": round(tokens / middle["forward"] / 1e3, 2),
        "ns_per_evaluated_token": {
            name: round(1e9 * middle[name] / tokens / a.steps, 1)
            for name in ("whole", "sampler", "gumbel")
        },
        "ratios": {"gumbel": round(middle["gumbel"] / middle["sampler"], 2)},
        "sampler_share": round(middle["sampler"] / middle["whole"], 4),
        "spread_s": {name: [round(x, 4) for x in timing.spread(t)] for name, t in times.items()},
        "rounds": a.rounds,
        "seed": a.seed,
    }
    timing.show(result | timing.provenance(), a.json)


if __name__ == "__main__":
    main()
