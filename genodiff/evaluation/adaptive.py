"""An adaptive mixture of contexts and copies: the strongest opponent that counting gives.

A text is read base by base, from left to right. Every predictor k gives four chances p_k(a) of the
next base, and they are mixed as logistic mixing does (Mahoney 2005, PAQ):

    P(a) = (1 - f) softmax_a( sum over k of w_k (log p_k(a) - mean of log p_k) ) + f / 4
    w_k  grows by r times the gradient of log P(base), after every base

The predictors are

    contexts  (n(c a) + l) / (n(c) + 4 l), where c are the 1, 2, 3, 4, 6, 8, 9, 10, 11 or 12 bases
              before; counts of the train sequence on both strands, and, apart, counts of what has
              been scored itself
    copies    places of the memory where the last bases stand too, on either strand, with
              substitutions. Each is followed along, says which base is next, and is given up after
              too many misses. What a copy's word is worth is learned: the share of hits of copies
              with as many recent misses and as long a match. The best three are predictors of their
              own; all together vote, each with its odds.

The weights are chosen by how much the best copy is trusted, whether the two best agree, and how
many there are. The memory is the train sequence; with `grow`, also what has been scored before.

It is an exact likelihood: each P sums to one and depends on what is to the left alone. Contexts
that tolerate substitutions are what the best compressors of DNA have and n-gram mixtures lack (XM:
Cao et al. 2007; GeCo3: Silva et al. 2020).

`nats_naively` is the definition. The C loop (`kernels/native/mixing.h`) is tested against it.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels import library

ORDERS = (1, 2, 3, 4, 6, 8, 9, 10, 11, 12)
SHORTEST_SEED, LONGEST_SEED = 11, 14
_COPIES, _TRIED, _BEST, _RECENT, _ADMITTED, _DROPPED = 64, 128, 3, 32, 14, 11
_CERTAIN, _FLOOR, _RATE, _MEMORY = 0.9999, 1e-5, 0.003, 1000.0
_LENGTHS = (16, 20, 24, 32, 48, 64, 128, 256, 512)

Codes = NDArray[np.uint8]


def choose_seed_length(n: int) -> int:
    """Bases of a seed: the fewest, from 11 to 14, that have 4^bases >= n, the train bases."""
    length = SHORTEST_SEED
    while length < LONGEST_SEED and 4**length < n:
        length += 1
    return length


def adaptive_nats(
    train: Codes, fit: Codes, text: Codes, *, grow: bool, seed_length: int | None = None
) -> NDArray[np.float64] | None:
    """Nats of each base of `text` given `train` and all bases before it; None without a compiler.

    Codes are 0..3 for A, C, G, T and 4 for an N or the end of a sequence, which costs nothing. The
    weights learn on `fit` first. A million bases take some seconds of one core, a train sequence
    of 10 million about as long, and 300 MB. Raises `MemoryError`.
    """
    if not library.is_loaded():
        return None
    nats = np.zeros(len(text))
    arrays: dict[str, NDArray[Any]] = {"train": train, "fit": fit, "text": text, "nats": nats}
    lengths = {"n_train": len(train), "n_fit": len(fit), "n": len(text)}
    seed = seed_length or choose_seed_length(len(train))
    library.call("mixing", arrays, backward=False, **lengths, seed=seed, grow=int(grow))
    return nats


@dataclass
class _Copy:
    at: int
    step: int
    missed: int
    length: int


@dataclass
class _Mixing:
    """The state of the naive version; names as in the C code."""

    seed: int
    text: list[int] = field(default_factory=list)
    places: dict[tuple[int, ...], list[int]] = field(default_factory=lambda: defaultdict(list))
    train: dict[tuple[int, ...], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0] * 4)
    )
    own: dict[tuple[int, ...], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0] * 4)
    )
    hit: dict[tuple[int, int, int], tuple[float, float]] = field(default_factory=dict)
    weights: dict[int, list[float]] = field(default_factory=dict)
    copies: list[_Copy] = field(default_factory=list)


def nats_naively(
    train: Codes, fit: Codes, text: Codes, *, grow: bool, seed_length: int = SHORTEST_SEED
) -> NDArray[np.float64]:
    """As `adaptive_nats`, in plain Python; for texts of some thousand bases."""
    s = _Mixing(seed_length)
    before: list[int] = []
    for x in train.tolist():
        s.text.append(x)
        _add_seed(s)
        if x > 3:
            before = []
        else:
            _count(s.train, before, x)
            before.append(x)
    start = len(s.text)
    _score(s, fit.tolist(), grow)
    del s.text[start:]
    for found in s.places.values():
        found[:] = [end for end in found if end <= start]
    s.own.clear()
    return np.array(_score(s, text.tolist(), grow))


def _add_seed(s: _Mixing) -> None:
    last = s.text[-s.seed :]
    if len(last) == s.seed and max(last) < 4:
        s.places[tuple(last)].append(len(s.text))


def _count(table: dict[tuple[int, ...], list[int]], before: list[int], x: int) -> None:
    """Count x after the bases before it, and the same on the other strand."""
    line = [*before, x]
    for k in ORDERS:
        if len(before) >= k:
            table[tuple(before[-k:])][x] += 1
            table[tuple(3 - y for y in line[-1 : -k - 1 : -1])][3 - line[-k - 1]] += 1


def _score(s: _Mixing, text: list[int], grow: bool) -> list[float]:
    nats: list[float] = []
    before: list[int] = []
    s.copies = []
    for x in text:
        if x > 3:
            before, s.copies = [], []
            nats.append(0.0)
            if grow:
                s.text.append(4)
            continue
        _find_copies(s, before)
        predictors = [_from_counts(table, before, k) for table in (s.train, s.own) for k in ORDERS]
        more, group = _from_copies(s)
        nats.append(_mix(predictors + more, s.weights.setdefault(group, [0.15] * 24), x))
        if grow:
            s.text.append(x)
        _learn_copies(s, x)
        if grow:
            _add_seed(s)
            _count(s.own, before, x)
        before.append(x)
    return nats


def _find_copies(s: _Mixing, before: list[int]) -> None:
    if len(s.copies) >= _COPIES or len(before) < s.seed:
        return
    last = before[-s.seed :]
    for end in s.places[tuple(last)][: -_TRIED - 1 : -1]:
        _admit(s, before, end, 1)
    for end in s.places[tuple(3 - x for x in last[::-1])][: -_TRIED - 1 : -1]:
        _admit(s, before, end - s.seed - 1, -1)


def _admit(s: _Mixing, before: list[int], at: int, step: int) -> None:
    if len(s.copies) >= _COPIES or not 0 <= at < len(s.text) or s.text[at] > 3:
        return
    if any(c.at == at and c.step == step for c in s.copies):
        return
    missed, ended = 0, False
    for i in range(_RECENT):
        place = at - step * (i + 1)
        x = s.text[place] if 0 <= place < len(s.text) else 4
        ended = ended or x > 3 or i >= len(before)  # all that is further away counts as missed
        if ended or (x if step > 0 else 3 - x) != before[-1 - i]:
            missed |= 1 << i
    if missed.bit_count() <= _ADMITTED:
        s.copies.append(_Copy(at, step, missed, s.seed))


def _class(c: _Copy) -> tuple[int, int, int]:
    """Misses in the last 16 bases, in the 16 before, and how long it has been followed."""
    old = (c.missed >> 16).bit_count()
    return (
        (c.missed & 0xFFFF).bit_count(),
        sum(old > least for least in (0, 1, 2, 4, 8)),
        sum(c.length >= least for least in _LENGTHS),
    )


def _says(s: _Mixing, c: _Copy) -> int:
    return s.text[c.at] if c.step > 0 else 3 - s.text[c.at]


def _chance(s: _Mixing, of: tuple[int, int, int]) -> tuple[float, float]:
    return s.hit.setdefault(of, (max(0.3, 1 - (of[0] + 0.3) / 18), 4.0))


def _centre(v: list[float]) -> list[float]:
    return [x - sum(v) / 4 for x in v]


def _from_counts(table: dict[tuple[int, ...], list[int]], before: list[int], k: int) -> list[float]:
    if len(before) < k:
        return [0.0] * 4
    n = table.get(tuple(before[-k:]), [0] * 4)
    return _centre([math.log(x + (1.0 if k <= 8 else 0.5)) for x in n])


def _from_copies(s: _Mixing) -> tuple[list[list[float]], int]:
    """The predictors of the copies, and which set of weights goes with them."""
    trusted = []
    vote = [1.0] * 4
    for c in s.copies:
        p = min(_chance(s, _class(c))[0], _CERTAIN)
        if p > 0.25:
            trusted.append((p, _says(s, c)))
            vote[_says(s, c)] += 3 * p / (1 - p) - 1
    trusted.sort(key=lambda one: -one[0])
    found = []
    for i in range(_BEST):
        v = [0.0] * 4
        if i < len(trusted):
            p, says = trusted[i]
            v[says] = math.log(3 * p / (1 - p))
        found.append(_centre(v))
    found.append(_centre([math.log(x) for x in vote]))
    if not trusted:
        return found, 0
    p, n = trusted[0][0], len(trusted)
    sure = int(10 * p) + (p > 0.97) + (p > 0.99) + (p > 0.995)
    agree = 0 if n == 1 else 1 + (trusted[0][1] == trusted[1][1])
    return found, sure * 12 + agree * 4 + sum(n > least for least in (2, 4, 8))


def _mix(predictors: list[list[float]], weights: list[float], x: int) -> float:
    """The nats of x, after the weights have learned from it."""
    score = [sum(w * v[a] for w, v in zip(weights, predictors, strict=True)) for a in range(4)]
    p = [math.exp(y - max(score)) for y in score]
    p = [y / sum(p) for y in p]
    for k, v in enumerate(predictors):
        weights[k] += _RATE * (v[x] - sum(p[a] * v[a] for a in range(4)))
    return -math.log((1 - _FLOOR) * p[x] + _FLOOR / 4)


def _learn_copies(s: _Mixing, x: int) -> None:
    left = []
    for c in s.copies:
        of, hit = _class(c), _says(s, c) == x
        p, n = _chance(s, of)
        s.hit[of] = p + (hit - p) / (n + 1.5), n + 1.0 if n < _MEMORY else n
        c.missed = (c.missed << 1 | (not hit)) & 0xFFFFFFFF
        c.length += 1
        c.at += c.step
        inside = 0 <= c.at < len(s.text) and s.text[c.at] < 4
        if inside and (c.missed & 0xFFFF).bit_count() <= _DROPPED:
            left.append(c)
    s.copies = left
