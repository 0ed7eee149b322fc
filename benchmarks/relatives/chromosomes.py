"""Bits of whole yeast chromosomes by number and distance of relatives, over training seeds.

    python benchmarks/relatives/chromosomes.py OUT.json chrXIV RUN1 RUN2 RUN3

Each RUN is of another training seed and was trained without the chromosome. All windows of 1,024,
masked once, the number masked in strata over the windows; the same masks for each run.
Leave-one-out has nothing masked, and no network. Intervals are over blocks of 10 windows and over
runs (`genodiff.statistics.seeds`); a change is beside the set named, on the same windows and masks.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from paired import write_lines
from related import FOUR, SIX, Related, open_related, weigh_whole
from yeast_setting import KEPT, LENGTH, cut

from genodiff.memory.columns import combine
from genodiff.memory.fitting import measure_bits
from genodiff.memory.text import NONE
from genodiff.memory.tree import share_bases
from genodiff.runs.memory_fit import read_network
from genodiff.runs.model import load_model
from genodiff.statistics.seeds import JointEstimate, estimate_mean

BLOCK = 10
LADDER = [SIX[:n] for n in range(1, len(SIX) + 1)]
OTHERS = [SIX[1:2], SIX[2:3], SIX[3:4], SIX[2:4], (SIX[0], SIX[4], SIX[5])]
EACH = (SIX[:1], FOUR)
"""Sets that are measured with each run, the others with the first."""


def mask_once(clean: np.ndarray, seed: int) -> np.ndarray:
    """Each window masked once, as many bases as its stratum says."""
    rng = np.random.default_rng(seed)
    n, length = clean.shape
    rate = (rng.permutation(n) + rng.random(n)) / n
    rows = clean.copy()
    for row, share in zip(rows, rate, strict=True):
        row[rng.permutation(length) < 1 + int(share * length)] = NONE
    return rows


def summarise(bits: np.ndarray) -> JointEstimate:
    """Of `bits` (seeds, windows)."""
    blocks = bits[:, : bits.shape[1] // BLOCK * BLOCK].reshape(len(bits), -1, BLOCK).mean(2)
    n = blocks.shape[1]
    covariance = np.atleast_2d(np.cov(blocks)) / n
    return estimate_mean(bits.mean(1), covariance, n - 1)


def spell(bits: np.ndarray) -> list[float]:
    """Mean and interval; of one row over the windows alone."""
    both = bits if len(bits) > 1 else np.repeat(bits, 2, 0)
    found = summarise(both)
    low, high = found.ci95 or (found.value, found.value)
    return [round(float(x), 4) for x in (found.value, low, high)]


def name(some: tuple[str, ...]) -> str:
    return " + ".join(some) or "none"


def measure_whole(related: Related, clean: np.ndarray) -> dict[str, np.ndarray]:
    """(1, windows) bits of each set, leave-one-out."""
    over, out = related.relatives.align(clean), {}
    for some in LADDER + OTHERS:
        chosen = related.choose(some)
        assert chosen.columns is not None
        p = weigh_whole(chosen, over[related.rows(some)], clean) * share_bases(chosen.columns.gc)
        p /= p.sum(-1, keepdims=True)
        own = np.take_along_axis(p, clean[..., None].astype(int), -1)[..., 0]
        out[name(some)] = -np.log2(own).mean(1)[None]
    return out


def measure_masked(
    related: Related, networks: list[np.ndarray], rows: np.ndarray, clean: np.ndarray
) -> dict[str, np.ndarray]:
    """(runs, windows) bits of each set; of sets that are not in `EACH` with the first run."""
    out = {name(()): np.stack([measure_bits(p, rows, clean) for p in networks])}
    over = related.relatives.align(rows)
    for some in LADDER + OTHERS:
        chosen, bits = related.choose(some), []
        assert chosen.columns is not None
        part = np.ascontiguousarray(over[related.rows(some)])
        for network in networks if some in EACH else networks[:1]:
            p = network * combine(part, rows, network, chosen.columns)
            bits.append(measure_bits(p / p.sum(-1, keepdims=True), rows, clean))
        out[name(some)] = np.stack(bits)
    return out


def main() -> None:
    target, contig, runs = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    begun = time.time()
    related = open_related(runs[0])
    for some in LADDER + OTHERS:
        related.choose(some)
        print(some, f"{time.time() - begun:.0f} s", flush=True)
    print(f"fitted after {time.time() - begun:.0f} s", flush=True)
    clean = cut(contig, 10**9)
    whole = measure_whole(related, clean)
    print(f"leave-one-out after {time.time() - begun:.0f} s", flush=True)
    rows = mask_once(clean, 1)
    networks = [read_network(load_model(Path(run), device="cpu"), rows) for run in runs]
    found = measure_masked(related, networks, rows, clean)
    np.savez(KEPT / f"{contig}.npz", hidden=(rows == NONE).sum(1), **found)
    lines, before = {}, name(())
    for some in [(), *LADDER, *OTHERS]:
        key = name(some)
        bits = found[key]
        line = {"bound": spell(bits), "by_run": [round(float(x), 4) for x in bits.mean(1)]}
        if key in whole:
            line["leave-one-out"] = spell(whole[key])
        if some in LADDER:
            n = min(len(bits), len(found[before]))
            change = bits[:n] - found[before][:n]
            line["beside"] = {"set": before, "bound": spell(change)}
            if before in whole:
                line["beside"]["leave-one-out"] = spell(whole[key] - whole[before])
            before = key
        lines[key] = line
        print(key, json.dumps(line), flush=True)
    known = json.loads(target.read_text()) if target.exists() else {}
    known[contig] = {
        "windows": len(clean), "length": LENGTH, "blocks": len(clean) // BLOCK,
        "seconds": round(time.time() - begun), "sets": lines,
    }  # fmt: skip
    write_lines(target, known)


if __name__ == "__main__":
    main()
