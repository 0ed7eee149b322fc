"""A tree of the target species and its relatives, and what a column of bases weighs under it.

The tree is unrooted and hangs from the target: node 0 is the target, nodes 1..G the relatives, the
others inner nodes. `join_neighbours` (Saitou and Nei 1987) makes it of distances. `weigh_columns`
sums over the bases of the inner nodes (Felsenstein 1981): the chance of the relatives' bases, given
each base of the target, beside what it is by chance.

Bases are exchanged as in HKY85 (Hasegawa, Kishino and Yano 1985) with A as frequent as T and C as
G, so that both strands have the same chances; lengths are expected changes of a place.

A likelihood is dominated by the nearest relative, which shares what has not had time to change.
Votes, each relative counting by itself, ask another question: in how many lines of descent has a
base been seen at this place?

    votes_i(b) = Σ_g weight_g over_ig(b)            weight_g = exp(−d_g / REACHES) / n_g
    score_i(ref → alt) = log (votes_i(alt) + a_alt) − log (votes_i(ref) + a_ref)
    a_b = ADDED Σ_g weight_g · P(b | ref)

over: the chance that relative g has base b over place i, as told by the bases around it. d_g: how
many changes of a place lie between the target and g. n_g: how many relatives, g among them, are
within `NEAR` of g; so strains of one species share a vote. P: of an exchange after `LENGTH`
changes of a place, so a transition that nobody has seen is still likelier than a transversion.

`score_heads` is the simplest form: every relative whose flank agrees counts once, a_b is a half,
and how quickly the stretch around i changes is added:

    heads_i(ref → alt) = log (n_i(alt) + ½) − log (n_i(ref) + ½) + STRETCH log r_i

r_i: the share of the relatives' bases that differ from the target in the `AROUND` places on either
side. So it takes no account of which bases are exchanged, nor of how far a relative is, and tells
places of a genome from one another, where votes tell the bases of a place
(benchmarks/relatives/FINDINGS.md).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.settings import Settings

SHORTEST = 1e-5
"""The least length of a branch."""


class Tree(NamedTuple):
    """`parent[n]`: the node above n; -1 above the target. `length[n]`: of the branch to it."""

    parent: tuple[int, ...]
    length: tuple[float, ...]

    @property
    def relatives(self) -> int:
        """How many relatives there are."""
        return len(self.parent) // 2 if len(self.parent) > 1 else 0

    def order_nodes(self) -> list[int]:
        """The nodes, each before the one above it."""
        depth = [0] * len(self.parent)
        for node in range(len(self.parent)):
            above = self.parent[node]
            while above >= 0:
                depth[node], above = depth[node] + 1, self.parent[above]
        return sorted(range(len(self.parent)), key=lambda node: (-depth[node], node))


def join_neighbours(distances: Floats) -> Tree:
    """The tree of the target (row 0) and its relatives. `distances` (G + 1, G + 1), symmetric."""
    n = len(distances)
    between = np.zeros((2 * n, 2 * n))
    between[:n, :n] = distances
    edges: list[tuple[int, int, float]] = []
    open_nodes, new = list(range(n)), n
    while len(open_nodes) > 2:
        d = between[np.ix_(open_nodes, open_nodes)]
        m, sums = len(open_nodes), d.sum(0)
        score = (m - 2) * d - sums[:, None] - sums
        np.fill_diagonal(score, np.inf)
        i, j = divmod(int(np.argmin(score)), m)
        a, b = open_nodes[i], open_nodes[j]
        long = d[i, j] / 2 + (sums[i] - sums[j]) / (2 * (m - 2))
        edges += [(a, new, long), (b, new, d[i, j] - long)]
        rest = [node for node in open_nodes if node not in (a, b)]
        between[new, rest] = between[rest, new] = (
            between[a, rest] + between[b, rest] - d[i, j]
        ) / 2
        open_nodes, new = [*rest, new], new + 1
    if n > 1:
        a, b = open_nodes
        edges.append((a, b, between[a, b]))
    return _hang(edges, new)


def _hang(edges: Sequence[tuple[int, int, float]], nodes: int) -> Tree:
    parent, length = [-1] * nodes, [0.0] * nodes
    beside: dict[int, list[tuple[int, float]]] = {}
    for a, b, far in edges:
        beside.setdefault(a, []).append((b, far))
        beside.setdefault(b, []).append((a, far))
    waiting = [0]
    while waiting:
        above = waiting.pop()
        for node, far in beside.get(above, []):
            if node != parent[above]:
                parent[node], length[node] = above, max(far, SHORTEST)
                waiting.append(node)
    return Tree(tuple(parent), tuple(length))


def format_newick(tree: Tree, names: Sequence[str], scale: float = 1.0) -> str:
    """The tree as Newick, all lengths times `scale`; `names` are those of the target and relatives.

    >>> format_newick(Tree((-1, 0), (0.0, 0.2)), ["target", "a"])
    '(target:0.000000,a:0.200000);'
    """
    below: dict[int, list[int]] = {}
    for node, above in enumerate(tree.parent):
        below.setdefault(above, []).append(node)

    def spell(node: int, length: float) -> str:
        inner = ",".join(spell(one, tree.length[one]) for one in below.get(node, ()))
        name = names[node] if node < len(names) else ""
        return f"{f'({inner})' if inner else name}:{length * scale:.6f}"

    beside, length = below.get(0, []), 0.0
    if len(beside) == 1 and below.get(beside[0]):
        # The target stands beside what hangs from the node that it is joined to.
        length, beside = tree.length[beside[0]], below[beside[0]]
    rest = [spell(one, tree.length[one]) for one in beside]
    return f"({','.join([f'{names[0]}:{length * scale:.6f}', *rest])});"


def share_bases(gc: float) -> Floats:
    """(4,): how frequent A, C, G and T are."""
    return np.array([1 - gc, gc, gc, 1 - gc]) / 2


def exchange(lengths: NDArray[np.float64], kappa: NDArray[np.float64], gc: float) -> Floats:
    """(..., 4, 4): the chance of each base after a branch, given the base before it.

    `lengths` and `kappa`, how much more often a transition happens than one transversion, (...).
    """
    share = share_bases(gc)
    pair = 2 * share[0] * share[2] + 2 * share[1] * share[3]
    beta = 1 / (0.5 + kappa * pair)  # purines and pyrimidines: a half each
    t = (beta * lengths)[..., None, None]
    bases = np.arange(4)
    same, turned = bases[:, None] == bases, (bases[:, None] ^ bases) == 2
    slow, fast = np.exp(-t), np.exp(-t * (1 + 0.5 * (kappa[..., None, None] - 1)))
    within = share + share * slow
    return np.where(
        same,
        within + (1 - 2 * share) * fast,
        np.where(turned, within - 2 * share * fast, share * (1 - slow)),
    )


def weigh_columns(tree: Tree, leaves: Floats, chances: Floats) -> Floats:
    """(J, M, 4): the weight of M columns given each base of the target, for J rates.

    `leaves` (G, M, 4): what each relative says, given its own base. `chances` (J, nodes, 4, 4):
    `exchange` of each branch. Where no relative says anything the weights are 1.
    """
    rates, (_, m, _) = len(chances), leaves.shape
    partial: dict[int, Floats] = {g + 1: one.T[None] for g, one in enumerate(leaves)}
    out = np.ones((rates, 4, m))
    for node in tree.order_nodes()[:-1]:
        own, passed = partial.pop(node), np.zeros((rates, 4, m))
        for base in range(4):  # no BLAS: a column has the same bits in any batch
            passed += own[:, base, None] * chances[:, node, :, base, None]
        above = tree.parent[node]
        if above:
            partial[above] = partial[above] * passed if above in partial else passed
        else:
            out = out * passed
    return out.transpose(0, 2, 1)


NEAR = 0.02
REACHES = 0.1
ADDED = 0.3
LENGTH = 0.3
AROUND = 32
STRETCH = 0.6
_CHANGES, _PLACES = 0.5, 5.0  # that are counted beside those around
_SURE = 0.9


class ProfileNumbers(Settings):
    """Of `profiles.py`: the spectrum of mutations, the `edges` that part the bins of change, and
    the weights (groups of `frames.py`, contexts and then bins, classes) of the classes.
    """

    kappa: float
    edges: tuple[float, ...]
    weights: tuple[tuple[tuple[float, ...], ...], ...]


class VoteNumbers(Settings):
    """The vote of each relative, and how much oftener a transition is seen than a transversion."""

    weights: tuple[float, ...]
    kappa: float


def weigh_relatives(distances: Floats, *, reaches: float = REACHES) -> Floats:
    """(G,): the vote of each relative, the greatest being 1 where none shares it.

    `distances` (G + 1, G + 1), the target first: changes of a place (`relatives_fit`).
    """
    alike = (distances[1:, 1:] <= NEAR).sum(1)
    far = distances[0, 1:]
    return np.asarray(np.exp(-(far - far.min(initial=np.inf)) / reaches) / alike)


def measure_kappa(over: Floats, codes: Codes) -> float:
    """How much more often a transition is seen than one transversion; `over` (G, ..., 4)."""
    sure = (over.max(-1) > _SURE) & (codes < NONE)
    apart = (over.argmax(-1) ^ codes)[sure]
    return float(2 * ((apart == 2).sum() + 1) / (((apart == 1) | (apart == 3)).sum() + 2))


def count_votes(over: Floats, weights: Floats) -> Floats:
    """(..., 4): votes for each base; `over` (G, ..., 4), `weights` (G,)."""
    return np.asarray(np.tensordot(weights, over, 1))


def measure_change(over: Floats, codes: Codes) -> Floats:
    """(B, L): the share of the relatives' bases around each place that differ from the target's.

    `over` (G, B, L, 4), `codes` (B, L): 4 where no base is known, which is left out.
    """
    votes, known = count_votes(over, np.ones(len(over))), codes < NONE
    own = np.where(known, codes, 0)[..., None].astype(np.int64)
    all_ = votes.sum(-1) * known
    differ = all_ - np.take_along_axis(votes, own, -1)[..., 0] * known
    changes, places = sum_around(differ, AROUND), sum_around(all_, AROUND)
    return np.asarray((changes + _CHANGES) / (places + _PLACES))


def sum_around(values: NDArray[Any], reach: int) -> Floats:
    """(B, L): the sums over `reach` places on either side, without the place itself."""
    total = np.concatenate([np.zeros((len(values), 1)), values.cumsum(1)], 1)
    at = np.arange(values.shape[1])
    first, last = np.maximum(at - reach, 0), np.minimum(at + reach + 1, len(at))
    return np.asarray(total[:, last] - total[:, first] - values)


def score_votes(
    votes: Floats,
    ref: NDArray[np.integer],
    *,
    total: float,
    kappa: float,
    added: float = ADDED,
) -> Floats:
    """(M, 4): the score of each base in place of `ref` (M,), in nats; `votes` (M, 4).

    `total`: all weights together.
    """
    chances = exchange(np.array(LENGTH), np.array(kappa), 0.5)
    return _compare(votes + added * total * chances[ref], ref)


def score_plainly(votes: Floats, ref: NDArray[np.integer]) -> Floats:
    """As `score_votes`, with a half added to each base."""
    return _compare(votes + 0.5, ref)


def score_heads(over: Floats, ref: NDArray[np.integer], change: Floats) -> Floats:
    """As `score_votes`, each relative counting once; `over` (G, M, 4), `change` (M,)."""
    found = score_plainly(count_votes(over, np.ones(len(over))), ref)
    other = np.asarray(ref)[:, None] != np.arange(4)
    return found + other * (STRETCH * np.log(change)[:, None])


def _compare(votes: Floats, ref: NDArray[np.integer]) -> Floats:
    logs = np.log(votes)
    own = np.take_along_axis(logs, np.asarray(ref)[:, None].astype(np.int64), 1)
    return np.asarray(logs - own)
