"""How training draws from many genomes: by weights and a temperature, as a function of (seed, k).

Genome i has the share

    s_i ∝ weight_i · windows_i^(1 / T)

of all samples: with T = 1 and equal weights every window is drawn equally often, and a high
temperature draws every genome equally often (the temperature of multilingual models: Conneau et al.
2020, arXiv 1911.02116, with 1 / T for their alpha).

Samples come in blocks of one size. In a block genome i has floor or ceiling of its share, by
systematic rounding, so that each block obeys the shares and their mean is exact. A genome's windows
are drawn without replacement: as often as all of them fit, then one out of each of equally long
stretches. The block is shuffled. Nothing is remembered between blocks.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, uniforms
from genodiff.data.genomes.store import GenomesWindows
from genodiff.data.windows import PHASES, Ints
from genodiff.errors import DataError

MOST = 1 << 20
"""Samples in a block, at most."""


def find_shares(
    weights: NDArray[np.float64], windows: Ints, temperature: float
) -> NDArray[np.float64]:
    """The share of each genome: see the module. Genomes without windows have none."""
    if temperature <= 0:
        raise ValueError(f"temperature {temperature} is not above 0")
    size = windows.astype(np.float64)
    some = (size > 0) & (weights > 0)
    logs = np.full(len(size), -np.inf)
    logs[some] = np.log(weights[some]) + np.log(size[some]) / temperature
    if not some.any():
        return np.zeros(len(size))
    shares: NDArray[np.float64] = np.exp(logs - logs.max())
    return shares / shares.sum()


class GenomeMix:
    """The order in which training reads the windows of many genomes."""

    def __init__(self, windows: GenomesWindows, seed: int, temperature: float = 1.0) -> None:
        """Raises `DataError` where every genome that trains has the weight 0."""
        self.windows, self.seed, self.temperature = windows, seed, temperature
        self.weights = np.array([g["weight"] for g in windows.store.genomes], np.float64)
        self.size = min(windows.per_epoch, MOST)
        if not self.shares().any():
            what = "no genome with a window of the train split has a weight above 0"
            raise DataError(what, file=windows.store.source.path, fix="give some a weight of 1")

    def shares(self, phase: int = 0) -> NDArray[np.float64]:
        """The share of each genome."""
        windows = np.diff(self.windows.genome_ranks(phase))
        return find_shares(self.weights, windows, self.temperature)

    def place(self, index: Ints) -> tuple[Ints, Ints]:
        """Flat start and length of the windows of these samples."""
        starts, lengths = np.empty_like(index), np.empty_like(index)
        for block in np.unique(index // self.size):
            rows = index // self.size == block
            order, phase = _draw_block(self, int(block))
            ranks = order[index[rows] % self.size]
            starts[rows], lengths[rows] = self.windows.tiling(phase).at(ranks)
        return starts, lengths


@lru_cache(maxsize=4)
def _draw_block(mix: GenomeMix, block: int) -> tuple[Ints, int]:
    seed, size = mix.seed, mix.size
    phase = int(uniforms(seed, Purpose.WINDOW_PHASE, block, 1)[0] * PHASES)
    first = mix.windows.genome_ranks(phase)
    windows, shares = np.diff(first), mix.shares(phase)
    u = uniforms(seed, Purpose.GENOME_MIX, block, 1 + len(shares) + size)
    jitter = u[1 + len(shares) :]
    count = round_systematically(shares, size, float(u[0]))
    ranks = np.empty(size, np.int64)
    at = 0
    for genome in np.flatnonzero(count):
        n, c = int(windows[genome]), int(count[genome])
        whole, rest = divmod(c, n)
        edges = np.arange(rest + 1) * n // max(rest, 1)
        some = edges[:-1] + (jitter[at : at + rest] * np.diff(edges)).astype(np.int64)
        turned = (some + int(u[1 + genome] * n)) % n
        ranks[at : at + c] = first[genome] + np.concatenate((np.tile(np.arange(n), whole), turned))
        at += c
    order = np.argsort(uniforms(seed, Purpose.WINDOW_ORDER, block, size), kind="stable")
    return ranks[order], phase


def round_systematically(shares: NDArray[np.float64], size: int, u: float) -> Ints:
    """`size` times shares (sum 1) as whole numbers of sum `size`, exact in the mean over `u`."""
    ends = np.cumsum(shares)
    last = int(np.flatnonzero(shares)[-1])
    ends[last:] = 1.0  # what rounding left over
    return np.diff(np.floor(np.concatenate(([0.0], ends)) * size + u)).astype(np.int64)
