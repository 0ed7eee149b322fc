"""The selective scan beside its peers, forward and backward, float32, on one core.

    python benchmarks/speed/scan.py --json
    B=8 L=1024 D=256 N=16, and L=16,384 at B=1 for `long`

The ceiling is the arithmetic alone: the vector multiply-adds that a step needs, counted from
native/scan.h and vector.h, at the rate that this core reaches on nothing but independent
multiply-adds, measured in the same process.
"""

import argparse
from collections.abc import Callable
from statistics import median

import peers
import timing
import torch

from genodiff.kernels.library import lanes

# Operations on the multiply-add pipes, per vector of states and step: forward 2^(dt A) 5, dt u B, a
# h + ., y; backward 2^(dt A) 5, dt u B, a h + ., and the eight products of the way back. Per vector
# of channels: softplus, its derivative and the rest.
FORWARD, BACKWARD, EACH = 8, 15, 41


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--channels", type=int, default=256)
    parser.add_argument("--states", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--without",
        nargs="*",
        default=[],
        help="peers to leave out: mambapy loop chunked compile associative long",
    )
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    scans: dict[str, peers.Scan] = {"native": peers.native}
    if "chunked" not in a.without:
        scans["chunked"] = peers.chunked
    if "loop" not in a.without:
        scans["loop"] = peers.loop
    if "mambapy" not in a.without:
        scans["mambapy"] = peers.mambapy()
    if "compile" not in a.without:
        scans["compile"] = peers.compiled()
    if "associative" not in a.without:
        scans["compile, associative"] = peers.compiled_associative()
    forward, both = runs(scans, a.batch, a.length, a.channels, a.states, a.seed)
    tokens = a.batch * a.length
    ahead = timing.interleaved({"native": forward["native"]}, 4 * a.rounds)
    times = timing.interleaved(
        both,
        a.rounds,
        {name: min(a.rounds, 3) for name in ("mambapy", "loop")},
    )
    rate, vectors = timing.multiply_adds_per_second(), a.channels / lanes()
    ceiling = rate / (vectors * (a.states * (FORWARD + BACKWARD) + EACH)) / 1e3
    result = {
        "benchmark": "scan",
        "shape": {
            "B": a.batch,
            "L": a.length,
            "D": a.channels,
            "N": a.states,
            "dtype": "float32",
            "pass": "forward+backward",
        },
        "ktok_per_s": timing.pace(times, tokens),
        "ratios": timing.ratios(times, "native"),
        "ceiling_fraction": round(timing.pace(times, tokens)["native"] / ceiling, 3),
        "ceiling_ktok_per_s": round(ceiling, 1),
        "spread_ktok_per_s": timing.pace_spread(times, tokens),
        "forward_ktok_per_s": timing.pace(ahead, tokens)["native"],
        "rounds": a.rounds,
        "seed": a.seed,
    }
    if "long" not in a.without:
        long = {name: scan for name, scan in scans.items() if name in ("native", "mambapy")}
        _, both = runs(long, 1, 16384, a.channels, a.states, a.seed)
        _, short = runs({"native": peers.native}, a.batch, a.length, a.channels, a.states, a.seed)
        times = timing.interleaved(
            {**both, "short": short["native"]}, a.rounds, {"mambapy": min(a.rounds, 3)}
        )
        cost = (
            median(x / y for x, y in zip(times["native"], times["short"], strict=True))
            * tokens
            / 16384
        )
        ratio = timing.ratios({n: t for n, t in times.items() if n != "short"}, "native")
        result["long"] = {
            "B": 1,
            "L": 16384,
            "ktok_per_s": timing.pace(both_only(times), 16384),
            "ratios": ratio,
        }
        result["long"] |= {"cost_per_token_vs_short": round(cost, 3)}
    timing.show(result | timing.provenance(), a.json)


def both_only(times: timing.Times) -> timing.Times:
    """Without the runs at the short length."""
    return {name: t for name, t in times.items() if name != "short"}


def runs(
    scans: dict[str, peers.Scan], batch: int, length: int, channels: int, states: int, seed: int
) -> tuple[dict[str, Callable[[], object]], dict[str, Callable[[], object]]]:
    """Forward alone, and forward with backward, of each scan on the same inputs; their outputs are
    checked against each other.
    """
    g = torch.Generator().manual_seed(seed)
    u, delta, gy = (torch.randn(batch, length, channels, generator=g) for _ in range(3))
    B, C = (torch.randn(batch, length, states, generator=g) for _ in range(2))
    A = -torch.arange(1.0, states + 1).repeat(channels, 1)
    D, bias = torch.ones(channels), torch.full((channels,), -4.0)
    inputs = [x.requires_grad_() for x in (u, delta, A, B, C, D, bias)]

    def ahead(scan: peers.Scan) -> Callable[[], object]:
        def run() -> torch.Tensor:
            with torch.no_grad():
                return scan(*inputs)

        return run

    def whole(scan: peers.Scan) -> Callable[[], object]:
        return lambda: torch.autograd.grad(scan(*inputs), inputs, gy)

    ours = ahead(scans["native"])()
    assert isinstance(ours, torch.Tensor)
    for name, scan in scans.items():
        if length <= 1024:
            torch.testing.assert_close(
                ahead(scan)(), ours, rtol=1e-3, atol=1e-4, msg=f"{name} computes something else"
            )
    return {n: ahead(s) for n, s in scans.items()}, {n: whole(s) for n, s in scans.items()}


if __name__ == "__main__":
    main()
