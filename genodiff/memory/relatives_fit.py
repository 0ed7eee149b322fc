"""Relatives fitted to a target: the numbers of each genome, the tree and its classes of places.

All of it is fitted to windows of the valid split, nothing being masked: what makes the visible
bases likeliest. The chance that a copy begins in windows of which most is hidden is then chosen by
hidden bases of every other window.
Nothing of the test split is read.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from genodiff.errors import DataError
from genodiff.memory.alignment import ROUNDS, choose_sparse_start, fit_relative
from genodiff.memory.columns import ColumnNumbers, improve, observe, start_numbers
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import SPARSE, Background, RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.tables import Chain, Floats, count_words, measure_evidence
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import join_neighbours, share_bases

COLUMN_ROUNDS = 40
WORD = 3
"""Bases of the words before a base in the target's chain: few windows tell no more."""
MISFIT = 0.05
"""Bits. Genomes of a genus have up to .01, mitogenomes of two classes .04, bacteria .1 of yeast."""
DISTANT_START: dict[str, Any] = {
    "start": 0.003,
    "end": 0.01,
    "shift": 0.02,
    "turns": 0.015,
    "divergence": (0.02, 0.1, 0.2, 0.28, 0.36, 0.48, 0.65),
    "share": (0.02, 0.08, 0.2, 0.25, 0.25, 0.12, 0.08),
    "transitions": (0.6, 0.65, 0.65, 0.62, 0.58, 0.5, 0.35),
    "far": True,
}
_SURE = 0.9
_LEAST_GAIN = 1e-5
_FARTHEST = 0.7
"""Of two that differ in more, no distance is known."""


def fit_relatives(
    memories: Sequence[Memory],
    windows: Codes,
    *,
    rounds: int = ROUNDS,
    tell: Callable[[int, float], None] | None = None,
    known: Mapping[int, RelativeNumbers] | None = None,
) -> Relatives:
    """Relatives for the species of `windows` (B, L), codes of which none should be masked.

    `memories`: the genomes, in an order that does not depend on how they were listed. `tell` gets
    the number of a genome, from 1, and the share of the work on it that is done. `known`: numbers
    that were fitted to these windows before, by the number of the genome. Raises `DataError` where
    there is no window.
    """
    if not len(windows):
        raise DataError("no windows to fit relatives on", fix="give a valid split")
    if not memories:
        return Relatives((), None)
    genomes = []
    for i, memory in enumerate(memories, 1):
        if known and i in known:
            genomes.append(RelativeGenome.join(memory, known[i]))
        else:
            hear = tell and partial(tell, i)
            genomes.append(fit_genome(memory, windows, rounds=rounds, tell=hear))
    over = Relatives(tuple(genomes), None).align(windows)
    return Relatives(tuple(genomes), fit_columns(over, windows))


def fit_genome(
    memory: Memory,
    windows: Codes,
    *,
    rounds: int = ROUNDS,
    tell: Callable[[float], None] | None = None,
) -> RelativeGenome:
    """One genome with its numbers; `windows` as above. `tell` gets the share that is done."""
    start = RelativeNumbers(background=choose_background(memory, windows))
    genome = RelativeGenome.join(memory, start)
    near = _fit_from(genome, windows, rounds, tell)
    if not near.is_distant:
        return near
    distant = RelativeNumbers(**DISTANT_START, background=start.background)
    later = tell and (lambda share: tell(0.5 + share / 2))
    return _fit_from(genome._replace(numbers=distant), windows, rounds, later)


def _fit_from(
    genome: RelativeGenome, windows: Codes, rounds: int, tell: Callable[[float], None] | None
) -> RelativeGenome:
    text, numbers = genome.memory.text, genome.numbers
    numbers = fit_relative(text, *genome.search(windows), numbers, rounds=rounds, tell=tell)
    searched = genome.search(hide_bases(windows[::2], SPARSE))
    numbers = choose_sparse_start(text, *searched, windows[::2], numbers)
    return genome._replace(numbers=numbers)


def choose_background(memory: Memory, windows: Codes) -> Background:
    """The counts of a chain of the target's `windows` (B, L), where it makes held-out ones likelier
    than the relative's own chain does, by more than `MISFIT` bits a base; else none.

    Against the chain of a genome of other composition, every diagonal looks like a copy: two
    bacteria were taken to lie over all of a yeast, and made predictions worse.
    """
    if memory.table is None or len(windows) < 2:  # an alignment has the target's chain already
        return ()

    def count(some: Codes) -> Floats:
        return count_words(np.pad(some, ((0, 0), (0, 1)), constant_values=NONE).ravel(), WORD)

    def cost(some: Codes, chain: Chain) -> float:
        return -float(np.log2(measure_evidence(some, chain)).mean())

    halves = windows[::2], windows[1::2]
    gain = [
        cost(tested, memory.chain) - cost(tested, Chain(count(counted)))
        for counted, tested in (halves, halves[::-1])
    ]
    if np.mean(gain) <= MISFIT:
        return ()
    return tuple((a, c, g, t) for a, c, g, t in count(windows).tolist())


def hide_bases(windows: Codes, least: float = 0.0, seed: int = 1) -> Codes:
    """Windows (B, L) with bases hidden: about the share `least` of the first, all of the last."""
    rng, (n, length) = np.random.Generator(np.random.PCG64(seed)), windows.shape
    most = (least + (1 - least) * np.arange(1, n + 1)[:, None] / n) * length
    order = rng.permuted(np.tile(np.arange(length), (n, 1)), axis=1)
    return np.where(order < most, NONE, windows).astype(np.uint8)


def fit_columns(over: Floats, windows: Codes, *, rounds: int = COLUMN_ROUNDS) -> ColumnNumbers:
    """The tree and the classes; `over` (G, B, L, 4) as `Relatives.align` gives it."""
    counts = np.bincount(windows[windows < NONE], minlength=4)
    gc = float(np.clip((counts[1] + counts[2] + 1) / (counts.sum() + 2), 0.05, 0.95))
    numbers = start_numbers(join_neighbours(measure_distances(over, windows)), gc)
    prior, last = np.broadcast_to(share_bases(gc), (*windows.shape, 4)), -np.inf
    seen = observe(over, windows, prior, numbers)
    for _ in range(rounds):
        numbers, value = improve(seen, numbers)
        if value - last < _LEAST_GAIN:
            break
        last = value
    return numbers


def measure_distances(over: Floats, windows: Codes) -> Floats:
    """(G + 1, G + 1): changes of a place between the target, first, and its relatives, and between
    relatives, where both are surely there (Jukes and Cantor 1969).
    """
    target = np.eye(5)[np.minimum(windows, NONE)][..., :4]
    all_ = np.concatenate([target[None], over]).reshape(len(over) + 1, -1, 4)
    base, sure = all_.argmax(-1), all_.max(-1) > _SURE
    out = np.zeros((len(all_), len(all_)))
    for i in range(len(all_)):
        for j in range(i):
            both = sure[i] & sure[j]
            n = int(both.sum())
            differ = ((base[i] != base[j]) & both).sum() / n if n else _FARTHEST
            out[i, j] = out[j, i] = -0.75 * np.log(1 - min(differ, _FARTHEST) / 0.75)
    return out
