"""Editing in rounds: the generator fills a stretch of a held-out native anew, again and again.

    starts    32 natives; the best `KEPT` are the first parents
    round     32 children: a parent, drawn evenly, in which a stretch of 4 to 16 bases is masked and
              filled by the generator, which reads the rest; then the best `KEPT` of all go on
    end       of all that a design's rounds have asked for, one is chosen, for the set's sake

It is `genodiff sample --template` with an oracle between rounds. A child that shares a longer
stretch with what the generator read than half of the held-out natives do is left out before the
oracle is asked: at most `LONGEST` bases.

In the rounds a sequence's value is the oracle's, and `WEIGHT` times log p(x) under a Markov chain
of order 5 on native cores of the train chromosomes. At the end the set is chosen: its mean value by
the oracle, and `PRICE` times the correlation of its 6-mer counts with those of the same cores. This
is `words` of RESULTS.md, so the set is fitted to that figure; no judge is asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from promoter_oracles import score
from torch import nn
from yeast import read_fasta

from genodiff.alphabet import DNA
from genodiff.generate.sample import infill
from genodiff.generate.sampling import Sampling
from genodiff.quality.match_index import MatchIndex
from genodiff.runs.model import load_model

SIZE, KEPT, STEPS = 32, 4, 2
WEIGHT = 0.25  # units of expression for a nat
PRICE = 40.0  # units of the set's mean expression for a correlation of 1
SWEEPS = 5
STRETCH = (4, 16)
LONGEST = 15  # the median of held-out natives
Fill = Callable[[list[np.ndarray], int], list[str]]
Sets = list[list[str]]


@dataclass
class Editor:
    """What is edited: natives, by which filling, as an oracle and native words like."""

    natives: list[str]
    oracle: nn.Module
    fill: Fill
    longest: Callable[[list[str]], np.ndarray]
    words: np.ndarray  # (4096,): 6-mer counts of native cores, on the strand of their gene

    def run(self, n: int, calls: int, seed: int) -> list[str]:
        """n designs of at most so many calls each."""
        return choose_set(*self.search(n, calls, seed), self.words)

    def search(self, n: int, calls: int, seed: int) -> tuple[Sets, list[np.ndarray]]:
        """All that is asked for each of n designs, and the oracle's values."""
        draws = np.random.default_rng([seed, 3])
        nats = fit_chain(self.words)
        first = [draws.choice(len(self.natives), SIZE, replace=False) for _ in range(n)]
        fresh = [[self.natives[i] for i in some.tolist()] for some in first]
        fresh = [self.allow(some) or some for some in fresh]
        texts: Sets = [[] for _ in range(n)]
        values = [np.zeros(0) for _ in range(n)]
        fitness = [np.zeros(0) for _ in range(n)]
        for turn in range(calls // SIZE):
            if turn:
                parents = [[texts[i][j] for j in best(fitness[i])] for i in range(n)]
                drafts = [mask(some, draws) for some in parents for _ in range(SIZE)]
                filled = self.fill(drafts, 1000 * seed + turn)
                fresh = [self.allow(filled[i * SIZE : (i + 1) * SIZE]) for i in range(n)]
            asked = score(self.oracle, [text for some in fresh for text in some])
            found = np.split(asked, np.cumsum([len(some) for some in fresh])[:-1])
            for i in range(n):
                texts[i] += fresh[i]
                values[i] = np.concatenate([values[i], found[i]])
                gains = found[i] + WEIGHT * nats(fresh[i])
                fitness[i] = np.concatenate([fitness[i], gains])
        return texts, values

    def allow(self, texts: list[str]) -> list[str]:
        """Those that copy no longer stretch than is allowed."""
        return [t for t, n in zip(texts, self.longest(texts).tolist(), strict=True) if n <= LONGEST]


def best(values: np.ndarray) -> list[int]:
    """The places of the largest `KEPT`."""
    order: list[int] = values.argsort(kind="stable")[::-1][:KEPT].tolist()
    return order


def mask(parents: list[str], draws: np.random.Generator) -> np.ndarray:
    """A parent's ids with a stretch of masks."""
    ids = DNA.encode(parents[int(draws.integers(len(parents)))]).astype(np.uint8)
    width = int(draws.integers(STRETCH[0], STRETCH[1] + 1))
    start = int(draws.integers(0, len(ids) - width + 1))
    ids[start : start + width] = DNA.mask_id
    return ids


def choose_set(
    pools: Sets, values: list[np.ndarray], words: np.ndarray, price: float = PRICE
) -> list[str]:
    """One of each pool: mean value + price * correlation of words, one exchanged at a time."""
    n, aim = len(pools), add_strand(words)
    aim = aim - aim.mean()
    aim = aim / np.linalg.norm(aim)
    chosen = [int(some.argmax()) for some in values]
    counts = np.stack([add_strand(count_each([pools[i][j]]))[0] for i, j in enumerate(chosen)])
    for _ in range(SWEEPS):
        before = list(chosen)
        for i in range(n):
            mine = add_strand(count_each(pools[i]))
            whole = mine + (counts.sum(0) - counts[i])
            whole -= whole.mean(1, keepdims=True)
            match = whole @ aim / np.linalg.norm(whole, axis=1)
            chosen[i] = int((values[i] / n + price * match).argmax())
            counts[i] = mine[chosen[i]]
        if chosen == before:
            break
    return [pools[i][j] for i, j in enumerate(chosen)]


def list_codes(texts: list[str]) -> np.ndarray:
    """The 6-mers (n, L - 5) of sequences of one length, as numbers in base 4."""
    digits = np.stack([DNA.encode(text) for text in texts]).astype(np.int64) - DNA.targets[0]
    return np.asarray(
        np.lib.stride_tricks.sliding_window_view(digits, 6, 1) @ 4 ** np.arange(6)[::-1]
    )


def count_each(texts: list[str]) -> np.ndarray:
    """6-mer counts (n, 4096) of each sequence, on its own strand."""
    codes = list_codes(texts) + 4**6 * np.arange(len(texts))[:, None]
    return np.bincount(codes.ravel(), minlength=4**6 * len(texts)).reshape(-1, 4**6).astype(float)


def add_strand(counts: np.ndarray) -> np.ndarray:
    """The counts (n, 4096) of both strands."""
    turned = counts.reshape(-1, *[4] * 6).transpose(0, 6, 5, 4, 3, 2, 1)
    return counts + np.flip(turned, axis=tuple(range(1, 7))).reshape(counts.shape)


def fill_by_network(run: Path) -> Fill:
    """The generator fills, in `STEPS` steps of the ancestral sampler."""
    model = load_model(run, device="cpu")

    def fill(drafts: list[np.ndarray], seed: int) -> list[str]:
        how = Sampling(sampler="ancestral", steps=STEPS)
        return [DNA.decode(one.ids) for one in infill(model, drafts, how=how, seed=seed)]

    return fill


def fill_evenly(drafts: list[np.ndarray], seed: int) -> list[str]:
    """Each base as likely as the others: what the generator is compared with."""
    draws = np.random.default_rng([seed, 4])
    found = []
    for ids in drafts:
        drawn = draws.choice(DNA.encode("ACGT"), len(ids))
        found.append(DNA.decode(np.where(ids == DNA.mask_id, drawn, ids)))
    return found


def fit_chain(words: np.ndarray) -> Callable[[list[str]], np.ndarray]:
    """log p of sequences under a Markov chain of order 5, fitted on 6-mer counts."""
    counts = words.reshape(-1, 4) + 0.5
    table = np.log(counts / counts.sum(1, keepdims=True)).ravel()
    return lambda some: table[list_codes(some)].sum(1) if some else np.zeros(0)


def search_train(data: Path) -> Callable[[list[str]], np.ndarray]:
    """The longest stretch of each sequence that the generator's train text has on a strand."""
    splits = [line.split("\t") for line in (data / "surroundings.bed").read_text().splitlines()]
    texts = read_fasta(data / "surroundings.fa")
    train = [text for text, row in zip(texts, splits, strict=True) if row[3] == "train"]
    index = MatchIndex([DNA.encode(text) for text in train])
    return lambda some: index.measure_longest([DNA.encode(text) for text in some])
