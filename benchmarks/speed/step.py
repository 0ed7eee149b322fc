"""A whole training step of a masked-diffusion Caduceus on one core: corrupt, network, bound,
gradients, clipping, AdamW.

    python benchmarks/speed/step.py --json          d128 n4, 8 windows of 1,024 bases

`native` is what `genodiff train` runs. The others run the same weights in the structure of
published bidirectional code: two whole Mamba calls per block, one on the flipped sequence, each
with both projections, torch's convolution (channels first) and torch's default matrix products,
which is what a user of that structure has who puts in another scan and changes nothing else:
`structure` with our C scan, `mambapy` with mambapy's, `loop` with a loop over time. Norm, loss and
optimiser are ours in all of them.

The practical ceiling is measured here too, once in each round: every matrix product of the step
alone at its own shape, by the faster of torch's libraries, plus the scan's multiply-adds at the
core's rate, plus what convolution, gate, norm and residual must read and write at the core's
copying rate.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import peers
import scan
import timing
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import Caduceus, CaduceusSettings
from genodiff.diffusion.loss import exact_count_loss
from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.schedule import schedule
from genodiff.io.process import keep_freed_memory
from genodiff.kernels.gemm import routed_matmul
from genodiff.kernels.library import lanes

Step = Callable[[], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--d-model", type=int, default=128)
    parser.add_argument("--n-layer", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", nargs="*", default=[], help="leave out: mambapy loop d118")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    keep_freed_memory()
    tokens = a.batch * a.length
    steps = {
        "native": training(a, a.d_model, None),
        "structure": training(a, a.d_model, peers.native),
    }
    if "mambapy" not in a.without:
        steps["mambapy"] = training(a, a.d_model, peers.mambapy())
    if "loop" not in a.without:
        steps["loop"] = training(a, a.d_model, peers.loop)
    if "d118" not in a.without:
        steps["d118"] = training(a, 118, None)
    losses = {name: step() for name, step in steps.items() if name != "d118"}
    if max(losses.values()) - min(losses.values()) > 1e-4:
        raise SystemExit(f"the variants do not compute the same: {losses}")
    rounds: list[dict[str, float]] = []
    turns: dict[str, Callable[[], object]] = {
        "ceiling": lambda: rounds.append(ceiling_parts(a.d_model, tokens)),
        **steps,
    }
    times = timing.interleaved(turns, a.rounds, {"mambapy": 1, "loop": 1})
    del (
        times["ceiling"],
        rounds[0],
    )  # the parts are timed by themselves; the first run does not count
    parts = {name: median(part[name] for part in rounds) for name in rounds[0]}
    ceilings = [a.n_layer * sum(part.values()) for part in rounds]
    network, small = (
        settings(d, a.n_layer).n_parameters(DNA.padded_size) for d in (a.d_model, 118)
    )
    others = {name: t for name, t in times.items() if name != "d118"}
    result = {
        "benchmark": "step",
        "shape": {
            "B": a.batch,
            "L": a.length,
            "d_model": a.d_model,
            "n_layer": a.n_layer,
            "parameters": network,
            "dtype": "float32",
        },
        "ktok_per_s": timing.pace(others, tokens),
        "ratios": timing.ratios(others, "native"),
        "ceiling_fraction": round(
            median(c / t for c, t in zip(ceilings, times["native"], strict=True)), 3
        ),
        "ceiling_ktok_per_s": round(tokens / median(ceilings) / 1e3, 2),
        "ceiling_ms_per_layer": {name: round(1e3 * s, 2) for name, s in parts.items()},
        "spread_ktok_per_s": timing.pace_spread(others, tokens),
        "loss": losses["native"],
        "rounds": a.rounds,
        "seed": a.seed,
    }
    if "d118" in times:
        share = (
            median(x / y for x, y in zip(times["d118"], times["native"], strict=True))
            * network
            / small
        )
        result |= {
            "d118_ktok_per_s": timing.pace(times, tokens)["d118"],
            "d118_cost_per_parameter_vs_d128": round(share, 3),
        }
    timing.show(result | timing.provenance(), a.json)


def settings(d_model: int, n_layer: int) -> CaduceusSettings:
    """A Caduceus that reads one strand."""
    return CaduceusSettings(d_model=d_model, n_layer=n_layer, strands="single")


def training(a: argparse.Namespace, d_model: int, scan: peers.Scan | None) -> Step:
    """One step on a fixed batch; with `scan`, every mixer runs as two calls around it. The
    optimiser's rate is 0, so that all variants stay at the same weights.
    """
    network: Caduceus = settings(d_model, a.n_layer).build(DNA.padded_size, None, seed=a.seed)
    if scan is not None:
        for block in network.blocks:
            block.mixer.forward = peers.two_calls(block.mixer, scan)
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.0, weight_decay=0.0, fused=True)
    diffusion = MaskedDiffusion(schedule("linear"), DNA.mask_id, DNA.targets)
    g = torch.Generator().manual_seed(a.seed)
    x0 = torch.tensor(DNA.targets)[torch.randint(0, 4, (a.batch, a.length), generator=g)]
    k, u = (
        torch.randint(1, a.length + 1, (a.batch,), generator=g),
        torch.rand(a.batch, a.length, generator=g),
    )

    def step() -> float:
        with routed_matmul(scan is None):
            optimiser.zero_grad()
            terms = exact_count_loss(
                diffusion, network, Clean(x0, torch.ones_like(x0, dtype=torch.bool)), k, u
            )
            loss = terms.nats / terms.n_tokens
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
        return float(loss.detach())

    return step


def ceiling_parts(d: int, tokens: int) -> dict[str, float]:
    """Seconds of one layer, forward and backward, that no arrangement of the same arithmetic avoids
    on this core.
    """
    e, n, rank = 2 * d, 16, -(-d // 16)
    products = {
        (2 * e, d): 1,
        (d, e): 1,
        (rank + 2 * n, e): 2,
        (e, rank): 2,
    }  # (outputs, inputs) and how many in a layer
    seconds = 0.0
    with routed_matmul(), torch.no_grad():
        for (outputs, inputs), count in products.items():
            x, w, g = (
                torch.randn(tokens, inputs),
                torch.randn(outputs, inputs),
                torch.randn(tokens, outputs),
            )
            for product in (
                lambda x=x, w=w: x @ w.t(),
                lambda g=g, w=w: g @ w,
                lambda g=g, x=x: g.t() @ x,
            ):
                seconds += count * best(product)
    states = (
        2
        * tokens
        * (e / lanes())
        * (n * (scan.FORWARD + scan.BACKWARD) + scan.EACH)
        / timing.multiply_adds_per_second()
    )
    moved = (
        4 * tokens * (2 * 7 * e + 9 * e + 10 * d)
    )  # convolutions with their recomputation, gate, norm and residual
    return {"products": seconds, "scan": states, "memory": moved / timing.bytes_per_second()}


def best(run: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the fastest of a few runs."""
    found = []
    for _ in range(times):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


if __name__ == "__main__":
    main()
