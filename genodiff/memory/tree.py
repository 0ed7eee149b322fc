"""A tree of the target species and its relatives, and what a column of bases weighs under it.

The tree is unrooted and hangs from the target: node 0 is the target, nodes 1..G the relatives, the
others inner nodes. `join_neighbours` (Saitou and Nei 1987) makes it of distances. `weigh_columns`
sums over the bases of the inner nodes (Felsenstein 1981): the chance of the relatives' bases, given
each base of the target, beside what it is by chance.

Bases are exchanged as in HKY85 (Hasegawa, Kishino and Yano 1985) with A as frequent as T and C as
G, so that both strands have the same chances; lengths are expected changes of a place.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.evidence import Floats

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
