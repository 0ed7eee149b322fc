"""One distribution from all relatives: columns of a tree, and a chain of classes along the window.

A place of class c changes at one of J rates (and shares of transitions), with the chances W_c: a
mixture over which the tree's columns are summed. Coding classes have three such mixtures, one for
each place of a codon; they come in three frames, on both strands, so there are six states of each.
Along the window the chain keeps its state k, or leaves it (chance leave_k) for a state drawn in
proportion to leave · share. That is in detailed balance, so both strands give the same.

    column_ij(b) = P(what stands over place i, of all relatives | base b, rate j)     (`tree.py`)
    emission_ik  = Σ_j W_kj(i) Σ_b p_i(b) column_ij(b)        p_i: the visible base, or the prior
    L_i(b)       = Σ_k told_ik Σ_j W_kj(i) column_ij(b)       told: by all places but i
    p_i(b)       ∝ prior_i(b) L_i(b)

So what relatives say of one another tells how quickly a hidden place changes, whoever is masked.
This file is the definition, in NumPy, for whole batches.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from genodiff.kernels.library import call, is_loaded
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import Tree, exchange, share_bases, weigh_columns
from genodiff.settings import Settings

MOST_RATES = 16
"""The most rates that the C library takes; those that are not used have weight 0."""

RATES = (0.02, 0.1, 0.3, 0.7, 1.4, 2.8, 6.0)
KAPPAS = (1.5, 12.0)
_CODON = 3


class ColumnNumbers(Settings):
    """The tree, and the classes of places.

    `rate`, `kappa` (J): what places change at. `plain` (C, J) and `coding` (D, 3, J): the chances
    of each, by class. `share` (C + D) and `leave` (C + D), plain ones first. `gc`: of the target.
    """

    parent: tuple[int, ...]
    length: tuple[float, ...]
    gc: float
    rate: tuple[float, ...]
    kappa: tuple[float, ...]
    plain: tuple[tuple[float, ...], ...]
    coding: tuple[tuple[tuple[float, ...], ...], ...]
    share: tuple[float, ...]
    leave: tuple[float, ...]

    @model_validator(mode="after")
    def _check(self) -> Self:
        classes = len(self.plain) + len(self.coding)
        if len(self.share) != classes or len(self.leave) != classes or not classes:
            raise ValueError("each class has a share and a chance to be left")
        return self

    @property
    def tree(self) -> Tree:
        """The tree."""
        return Tree(self.parent, self.length)


class States(NamedTuple):
    """`weights` (3, K, J): the mixture of each state at places 0, 1, 2 (mod 3); `share`, `leave`
    (K); `toward` (K): the probability of each where the chain leaves one; `steps` (K, K); `of` (K):
    the class; `phase` (3, K): the place of the codon.
    """

    weights: Floats
    share: Floats
    leave: Floats
    toward: Floats
    steps: Floats
    of: NDArray[np.int64]
    phase: NDArray[np.int64]


def start_numbers(tree: Tree, gc: float, *, plain: int = 2, coding: int = 2) -> ColumnNumbers:
    """Numbers to begin a fit with."""
    rate, kappa = np.repeat(RATES, len(KAPPAS)), np.tile(KAPPAS, len(RATES))

    def bell(middle: float) -> Floats:
        chance = np.exp(-0.5 * (np.log(rate / middle) / 1.2) ** 2)
        return np.asarray(chance / chance.sum())

    def bells(middles: Iterable[float]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(bell(middle).tolist()) for middle in middles)

    scales = np.geomspace(0.5, 1.5, max(coding, 1))[:coding]
    codings = [bells((0.5 * s, 0.3 * s, 2.0 * s)) for s in scales]
    n = plain + coding
    return ColumnNumbers(
        parent=tree.parent, length=tree.length, gc=gc, rate=tuple(rate.tolist()),
        kappa=tuple(kappa.tolist()), plain=bells(np.geomspace(0.3, 3, plain)),
        coding=tuple(codings), share=(1 / n,) * n, leave=(0.03,) * plain + (0.005,) * coding,
    )  # fmt: skip


def list_states(numbers: ColumnNumbers) -> States:
    """The states of the chain: plain classes, then coding ones by strand and frame."""
    rows: list[tuple[Any, ...]] = [
        ([mixture] * _CODON, numbers.share[c], numbers.leave[c], c, [0, 0, 0])
        for c, mixture in enumerate(numbers.plain)
    ]
    for d, codon in enumerate(numbers.coding, len(numbers.plain)):
        for strand in (1, -1):
            for frame in range(_CODON):
                at = [(i - frame) % _CODON for i in range(_CODON)]
                at = [a if strand > 0 else _CODON - 1 - a for a in at]
                share = numbers.share[d] / (2 * _CODON)
                rows.append(([codon[a] for a in at], share, numbers.leave[d], d, at))
    weights, shares, leave, of, phase = map(np.array, zip(*rows, strict=True))
    q = shares / shares.sum()
    to = leave * q / (leave * q).sum()
    steps = np.diag(1 - leave) + leave[:, None] * to
    return States(weights.transpose(1, 0, 2), q, leave, to, steps, of, phase.T)


def read_columns(over: Floats, numbers: ColumnNumbers) -> Floats:
    """(M, J, 4): the weight of each base of the target; `over` (G, M, 4), 1 − Σ: nothing."""
    leaves = (1 - over.sum(-1, keepdims=True)) + over / share_bases(numbers.gc)
    return weigh_columns(numbers.tree, leaves, exchange_branches(numbers)).transpose(1, 0, 2)


def exchange_branches(numbers: ColumnNumbers) -> Floats:
    """(J, nodes, 4, 4): `exchange` of each branch at each rate."""
    rate, kappa = np.array(numbers.rate)[:, None], np.array(numbers.kappa)[:, None]
    length = rate * np.array(numbers.length)
    return exchange(length, np.broadcast_to(kappa, length.shape), numbers.gc)


class Pass(NamedTuple):
    """Of the chain: `told` (B, L, K), what all other places say of each state; `forward` (before
    the place's own) and `behind`; `emission`; `scale` (B, L), the likelihood of each place.
    """

    told: Floats
    emission: Floats
    forward: Floats
    behind: Floats
    scale: Floats


def run_chain(
    emission: Floats, share: Floats, steps: Floats, step: Callable[..., Floats] = np.matmul
) -> Pass:
    """Forward–backward over K states; `emission` (B, L, K), `steps` (K, K), `share` (K,): of each
    at the start. `step`: a product of matrices.
    """
    batch, length, k = emission.shape
    forward, behind = np.empty_like(emission), np.empty_like(emission)
    scale = np.empty((batch, length))
    now = np.broadcast_to(share, (batch, k))
    for i in range(length):
        forward[:, i] = now
        seen = now * emission[:, i]
        scale[:, i] = seen.sum(1)
        now = step(seen / scale[:, i, None], steps)
    after = np.ones((batch, k))
    for i in reversed(range(length)):
        behind[:, i] = after
        after = step(after * emission[:, i] / scale[:, i, None], steps.T)
    told = forward * behind
    told /= told.sum(-1, keepdims=True)
    return Pass(told, emission, forward, behind, scale)


class Posterior(NamedTuple):
    """What all bases of a window say of each position: `rates` (B, L, J), the probability of each
    rate, and `states` (B, L, K), that of each state of `list_states`.
    """

    rates: Floats
    states: Floats


def combine(over: Floats, codes: Codes, prior: Floats, numbers: ColumnNumbers) -> Floats:
    """(B, L, 4): L_i(b), how likely each base is beside the prior, the largest being 1.

    `over` (G, B, L, 4): what each relative has over each place. `codes` (B, L): 4 where hidden.
    `prior` (B, L, 4): what is said of hidden places. In C where there is a library.
    """
    if _fits_c(numbers):
        return _run_c(over, codes, prior, numbers)[0]
    return combine_slowly(over, codes, prior, numbers)


def combine_slowly(over: Floats, codes: Codes, prior: Floats, numbers: ColumnNumbers) -> Floats:
    """As `combine`, in NumPy: the definition."""
    states = list_states(numbers)
    column = _read_batch(over, codes, numbers)
    told = _run_states(_observe(column, codes, prior), states).told
    likely = np.einsum("blj,bljc->blc", _mix_rates(told, states), column)
    return np.asarray(likely / likely.max(-1, keepdims=True))


def infer_rates(over: Floats, codes: Codes, numbers: ColumnNumbers) -> Posterior:
    """Compute the posterior of the rates and states of each position of windows (B, L).

    `over` (G, B, L, 4) as in `combine`; where a code is 4, its base is summed over. In C where
    there is a library; `infer_rates_slowly` is the definition.
    """
    if not _fits_c(numbers):
        return infer_rates_slowly(over, codes, numbers)
    prior = np.broadcast_to(share_bases(numbers.gc), (*codes.shape, 4))
    _, rates, states = _run_c(over, codes, prior, numbers, posterior=True)
    assert rates is not None
    assert states is not None
    return Posterior(rates[..., : len(numbers.rate)], states)


def infer_rates_slowly(over: Floats, codes: Codes, numbers: ColumnNumbers) -> Posterior:
    """Compute `infer_rates` in NumPy: the definition."""
    states = list_states(numbers)
    prior = np.broadcast_to(share_bases(numbers.gc), (*codes.shape, 4))
    seen = observe(over, codes, prior, numbers)
    chain = _run_states(seen, states)
    rates = _mix_rates(chain.told, states) * seen
    own = chain.told * chain.emission
    return Posterior(
        rates / rates.sum(-1, keepdims=True), np.asarray(own / own.sum(-1, keepdims=True))
    )


def read_context(over: Floats, codes: Codes, numbers: ColumnNumbers) -> Floats:
    """(B, L, K): the probability of each state given all columns of a window but its own.

    `over` and `codes` as in `infer_rates`. So sites may be chosen by it without choosing columns.
    """
    states = list_states(numbers)
    prior = np.broadcast_to(share_bases(numbers.gc), (*codes.shape, 4))
    return _run_states(observe(over, codes, prior, numbers), states).told


def _fits_c(numbers: ColumnNumbers) -> bool:
    return is_loaded() and len(numbers.rate) <= MOST_RATES


def _read_batch(over: Floats, codes: Codes, numbers: ColumnNumbers) -> Floats:
    """(B, L, J, 4): `read_columns` of windows."""
    column = read_columns(over.reshape(len(over), -1, 4), numbers)
    return column.reshape(*codes.shape, *column.shape[1:])


def _run_c(
    over: Floats, codes: Codes, prior: Floats, numbers: ColumnNumbers, *, posterior: bool = False
) -> tuple[Floats, Floats | None, Floats | None]:
    states, rates = list_states(numbers), len(numbers.rate)
    chances = np.zeros((len(numbers.parent), 4, 4, MOST_RATES))
    chances[..., :rates] = exchange_branches(numbers).transpose(1, 2, 3, 0)
    weights = np.zeros((*states.weights.shape[:2], MOST_RATES))
    weights[..., :rates] = states.weights
    arrays: dict[str, NDArray[Any]] = {
        "over": over, "prior": np.asarray(prior, np.float64), "codes": codes,
        "parent": np.array(numbers.parent, np.int64),
        "order": np.array(numbers.tree.order_nodes(), np.int64),
        "chances": chances, "weights": weights, "share": states.share, "leave": states.leave,
        "toward": states.toward, "bases": share_bases(numbers.gc),
    }  # fmt: skip
    shape = codes.shape
    arrays["factors"] = np.empty((*shape, 4))
    if posterior:
        arrays["rates"] = np.empty((*shape, MOST_RATES))
        arrays["posterior"] = np.empty((*shape, len(states.share)))
    call(
        "columns", arrays, backward=False, batch=shape[0], L=shape[1],
        G=len(over), nodes=len(numbers.parent), K=len(states.share),
    )  # fmt: skip
    return arrays["factors"], arrays.get("rates"), arrays.get("posterior")


def _observe(column: Floats, codes: Codes, prior: Floats) -> Floats:
    """(B, L, J): the weight of each column, the target's base visible or summed over."""
    at = np.minimum(codes, 3)[..., None, None].astype(np.int64)
    visible = np.take_along_axis(column, at, -1)[..., 0]
    hidden = np.einsum("bljc,blc->blj", column, prior)
    return np.where((codes < NONE)[..., None], visible, hidden)


def _run_states(seen: Floats, states: States) -> Pass:
    """The chain over what `_observe` gives."""
    emission = np.empty((*seen.shape[:2], len(states.share)))
    for place in range(_CODON):
        emission[:, place::_CODON] = seen[:, place::_CODON] @ states.weights[place].T
    return run_chain(emission, states.share, states.steps)


def _mix_rates(told: Floats, states: States) -> Floats:
    """(B, L, J): the chance of each rate."""
    out = np.empty((*told.shape[:2], states.weights.shape[-1]))
    for place in range(_CODON):
        out[:, place::_CODON] = told[:, place::_CODON] @ states.weights[place]
    return out


def observe(over: Floats, codes: Codes, prior: Floats, numbers: ColumnNumbers) -> Floats:
    """(B, L, J): the weight of each column at each rate; it depends on tree and rates alone."""
    return _observe(_read_batch(over, codes, numbers), codes, prior)


def improve(seen: Floats, numbers: ColumnNumbers) -> tuple[ColumnNumbers, float]:
    """A round of expectation maximisation on what `observe` gives, which no round changes: the new
    numbers, and ln of the likelihood of a place under those given. The tree stays.
    """
    states = list_states(numbers)
    chain = _run_states(seen, states)
    own = chain.forward * chain.emission * chain.behind / chain.scale[..., None]  # posterior
    own /= own.sum(-1, keepdims=True)
    classes, rates = len(numbers.share), len(numbers.rate)
    counts = np.zeros((classes, _CODON, rates))
    for place in range(_CODON):
        there, sight = own[:, place::_CODON], seen[:, place::_CODON]
        by = there / np.maximum(chain.emission[:, place::_CODON], 1e-300)
        total = np.einsum("blk,blj->kj", by, sight) * states.weights[place]
        for k, (c, phase) in enumerate(zip(states.of, states.phase[place], strict=True)):
            counts[c, phase] += total[k]
    occupied = own.sum((0, 1))
    # Leaving, also to come back at once: the chance that a step was drawn anew.
    q = states.toward
    before = chain.forward[:, :-1] * chain.emission[:, :-1] / chain.scale[:, :-1, None]
    ahead = chain.emission[:, 1:] * chain.behind[:, 1:] / chain.scale[:, 1:, None]
    left = np.einsum("blk,bl->k", before, ahead @ q) * states.leave
    in_class = np.array([occupied[states.of == c].sum() for c in range(classes)])
    leaves = np.array([left[states.of == c].sum() for c in range(classes)])
    counts += 0.5 / rates
    plain = counts[: len(numbers.plain)].sum(1)
    coding = counts[len(numbers.plain) :]
    update = {
        "plain": _spell(plain / plain.sum(-1, keepdims=True)),
        "coding": _spell(coding / coding.sum(-1, keepdims=True)),
        "share": _spell(in_class / in_class.sum()),
        "leave": _spell(np.clip(leaves / in_class, 1e-5, 0.5)),
    }
    return numbers.model_copy(update=update), float(np.log(chain.scale).mean())


def _spell(x: Floats) -> object:
    return tuple(map(_spell, x)) if x.ndim > 1 else tuple(x.tolist())
