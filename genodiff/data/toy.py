"""The toy genome: strand-symmetric DNA with planted motifs, from a source whose likelihood is known
exactly.

The source is a hidden Markov model that emits events one after another: with probability 1 − Σ q_m
a single background base (A and T with probability at/2 each), or with probability q_m/2 on either
strand the motif m of w_m bases, each its consensus with probability `fidelity` and one of the other
three otherwise. Its hidden states are "background" and (motif, strand, position); the reverse
complement maps the chain onto itself run backwards, so P(x) = P(rc x) exactly.

Since every event ends in the same state, the forward algorithm runs over the ends of events. With
e_m(n) the probability of the last w_m letters before n under motif m, and μ = 1 / E[event length]
the chance that an event begins at a base,

    f(n) = p(x_n) (1 − Σ q_m) f(n−1) + Σ_m q_m e_m(n) f(n−w_m),    f(0) = μ

plus the events that the sequence's two ends cut. A sequence is taken as a fresh draw from the
stationary source: what a model that sees the window without its flanks can know. Hence −log
P(window) is the floor of such a model's bound.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.counter import Purpose, generator
from genodiff.io.file_kinds import sha256_json

_RESCALE = 32
_OTHER = 4
_COMPLEMENT = np.array([3, 2, 1, 0])


@dataclass(frozen=True)
class ToySource:
    """The source and the genome drawn from it (contigs toy1..; lengths in bases)."""

    motifs: tuple[str, ...] = ("TGACTCAGCATT", "CCGGAAGTGATT", "TATCTGATAAGG")
    motif_rate: float = 0.12
    fidelity: float = 0.97
    at: float = 0.58
    seed: int = 1
    lengths: tuple[int, ...] = (65536,) * 10

    def fingerprint(self) -> str:
        """sha256 (hex) of all that decides the genome."""
        return sha256_json(asdict(self))

    def contigs(self) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        """The genome: names toy1, toy2, … and ids. The same on every machine."""
        for i, length in enumerate(self.lengths):
            yield f"toy{i + 1}", self.sample(length, self.seed, i)

    def sample(self, length: int, seed: int, index: int = 0) -> NDArray[np.uint8]:
        """Ids of `length` bases drawn from the stationary source, a function of (seed, index)."""
        rng = generator(seed, Purpose.TOY_GENOME, index)
        words, rates = self._words()
        widths = np.array([1] + [len(w) for w in words])
        cumulative = np.cumsum([1 - sum(rates), *rates])
        # The event that covers the first base is drawn by its length and cut at a uniform place:
        # stationarity.
        cover = np.cumsum(np.diff(cumulative, prepend=0) * widths)
        first = int(np.searchsorted(cover / cover[-1], rng.random(), "right"))
        skip = int(rng.random() * widths[first])
        # An event has at least one base, so `length` more of them suffice.
        kinds = np.searchsorted(cumulative[:-1], rng.random(length), "right")
        kinds = np.concatenate(([first], kinds))
        ends = np.cumsum(widths[kinds])
        kinds = kinds[: int(np.searchsorted(ends, length + skip)) + 1]
        starts = np.concatenate(([0], np.cumsum(widths[kinds])))[:-1]
        total = int(starts[-1] + widths[kinds[-1]])
        law = np.tile(self._background(), (total, 1))
        for k, word in enumerate(words, 1):
            law[starts[kinds == k][:, None] + np.arange(len(word))] = word
        bases = (rng.random((total, 1)) > np.cumsum(law, 1)[:, :3]).sum(1)
        return np.array(DNA.targets, np.uint8)[bases[skip : skip + length]]

    def log_likelihood(self, ids: NDArray[Any]) -> NDArray[np.float64]:
        """log P in nats of each row of `ids` (…, L), exact in float64: shape (…). Soft-mask bits
        are ignored.

        Ids other than A, C, G, T (N, padding) are marginalised: a right-padded row has its own
        bases' likelihood.
        """
        ids = np.asarray(ids) & (SOFT - 1)
        rows = ids.reshape(-1, ids.shape[-1])
        table = np.full(SOFT, _OTHER, np.int64)
        table[list(DNA.targets)] = range(4)
        return self._forward(table[rows.T]).reshape(ids.shape[:-1])

    def bits_per_base(self, ids: NDArray[Any]) -> float:
        """−log2 P per known base, over all rows of `ids` (…, L): what no model beats on average."""
        known = int(np.isin(np.asarray(ids) & (SOFT - 1), DNA.targets).sum())
        return float(-self.log_likelihood(ids).sum() / (known * np.log(2)))

    def _background(self) -> NDArray[np.float64]:
        return np.array([self.at / 2, (1 - self.at) / 2, (1 - self.at) / 2, self.at / 2])

    def _words(self) -> tuple[list[NDArray[np.float64]], list[float]]:
        """Motifs on both strands as (w, 4) probabilities of A, C, G, T, and the rate of each."""
        words = []
        for motif in self.motifs:
            law = np.full((len(motif), 4), (1 - self.fidelity) / 3)
            law[np.arange(len(motif)), ["ACGT".index(c) for c in motif]] = self.fidelity
            words += [law, law[::-1, _COMPLEMENT]]
        return words, [self.motif_rate / len(words)] * len(words)

    def _forward(self, x: NDArray[np.int64]) -> NDArray[np.float64]:
        """log P of the columns of `x` (L, B), codes 0..3 or 4 for unknown."""
        length, n_rows = x.shape
        words, rates = self._words()
        # All probabilities are relative to 1/4 a base, so that they neither vanish nor grow much
        # between rescalings.
        words = [np.concatenate((4 * w, np.ones((len(w), 1))), 1) for w in words]
        single = np.concatenate((4 * self._background(), [1.0]))[x] * (1 - sum(rates))
        mu = 1 / (1 - sum(rates) + sum(q * len(w) for q, w in zip(rates, words, strict=True)))
        widest = max(len(w) for w in words)
        # whole[w][n]: an event of w letters that ends before n. f has `widest` rows of history
        # before n = 0.
        whole = {len(w): np.zeros((length + 1, n_rows)) for w in words}
        f = np.zeros((length + 1 + widest, n_rows))
        f[widest] = mu
        ended = np.zeros(n_rows)
        for q, w in zip(rates, words, strict=True):
            width = len(w)
            if length >= width:
                product = np.full((length - width + 1, n_rows), q)
                for j in range(width):
                    product *= w[j][x[j : length - width + 1 + j]]
                whole[width][width:] += product
            for cut in range(1, width):
                left = width - cut
                if left <= length:
                    f[widest + left] += mu * q * _product(w[cut:], x)
                for end in range(cut + 1, min(width, cut + length + 1)):
                    if end - cut == length and end < width:
                        ended += mu * q * _product(w[cut:end], x)
        scale = np.zeros(n_rows)
        for n in range(1, length + 1):
            at = widest + n
            new = f[at] + single[n - 1] * f[at - 1]
            for width, product in whole.items():
                new += product[n] * f[at - width]
            f[at] = new
            if n % _RESCALE == 0 and n > widest:
                size = f[at - widest + 1 : at + 1].max(0)
                f[at - widest + 1 : at + 1] /= size
                scale += np.log(size)
        ended += f[widest + length]
        for q, w in zip(rates, words, strict=True):
            for read in range(1, min(len(w) - 1, length) + 1):
                ended += f[widest + length - read] * q * _product(w[:read], x[length - read :])
        unknown = (x == _OTHER).sum(0)
        return np.log(ended) + scale - (length - unknown) * np.log(4)


def _product(word: NDArray[np.float64], x: NDArray[np.int64]) -> NDArray[np.float64]:
    """Probability (times 4 a base) of the first letters of each column of `x` under `word`."""
    result = np.ones(x.shape[1])
    for j, law in enumerate(word):
        result *= law[x[j]]
    return result
