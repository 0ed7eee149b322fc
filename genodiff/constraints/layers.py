"""The product of automata, built as far as it can be reached, and minimised.

Layer f belongs to the f-th free position: `moves[f]` (S_f, 4) is the state of the next layer after
each base, −1 where no completion satisfies everything. Kept positions are folded into the moves, so
every state lies on a path to the end. States with the same future are one state. So the layers are
the smallest deterministic automaton of the satisfying completions.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.constraints.constraint import DEAD, OTHER, Automaton, Constraint, DesignSpace, States
from genodiff.errors import UsageError

MOST_STATES = 1 << 23
"""States of a product before it is minimised, all positions together: 128 MB."""
Table = NDArray[np.int32]
Gains = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Layers:
    """The satisfying completions of a space, which are one at least. Equal layers are one array."""

    moves: tuple[Table, ...]
    positions: NDArray[np.int64]
    """The free positions (F,) of the space."""
    gains: tuple[Gains, ...] | None = None
    """The weight of each move, where there are any: the law is the product of them and of p.

    Each layer has a table of moves of its own then.
    """
    scale: float = 1.0
    """The weight of what is kept."""

    def gain(self, f: int) -> Gains | float:
        """The weights (S_f, 4) of a layer's moves; 1 where there are none."""
        return 1.0 if self.gains is None else self.gains[f]

    @property
    def states(self) -> int:
        """How many states there are, of all layers."""
        return sum(map(len, self.moves))

    @cached_property
    def packed(self) -> "PackedLayers":
        """The same in arrays."""
        places: dict[int, int] = {}
        tables, gains = [np.zeros((0, 4), np.int32)], [np.zeros((0, 4))]
        n = 0
        for f, table in enumerate(self.moves):
            if id(table) not in places:
                places[id(table)] = n
                tables.append(table)
                gains += [] if self.gains is None else [self.gains[f]]
                n += len(table)
        begin = np.array([places[id(table)] for table in self.moves], np.int64)
        first = np.cumsum([0, *map(len, self.moves), 1])
        weights = None if self.gains is None else np.concatenate(gains)
        return PackedLayers(np.concatenate(tables), begin, first, weights)


class PackedLayers(NamedTuple):
    """Layers in arrays; equal layers are one table."""

    tables: Table
    """The moves (n, 4) of all tables."""
    begin: NDArray[np.int64]
    """Where the table of each layer begins (F,)."""
    first: NDArray[np.int64]
    """The states before each layer (F + 2,); layer F is the end."""
    gains: Gains | None
    """The weights (n, 4) of the moves; None where all are 1."""


Judged = tuple[Constraint, DesignSpace]
"""A constraint and where it holds. Pairs that stand together share letters and free positions."""
Rules = Constraint | Sequence[Constraint | Judged]


def judge_in(rules: Rules, space: DesignSpace) -> list[Judged]:
    """Each single constraint of `rules` where it holds: in this space, unless it has its own."""
    some = [rules] if isinstance(rules, Constraint) else rules
    pairs = (one if isinstance(one, tuple) else (one, space) for one in some)
    return [(part, where) for one, where in pairs for part in one.parts()]


def compile_constraints(
    rules: Rules, space: DesignSpace, *, most_states: int = MOST_STATES
) -> Layers | None:
    """The layers of what satisfies all constraints; None where nothing does.

    Raises `UsageError` where the product has more than `most_states` states, with its size so far.
    """
    automata = _open(rules, space)
    gains: list[Gains] | None = [] if any(one.weighs for one in automata) else None
    return _minimise(list(_explore(automata, space, most_states, gains)), space, gains)


def is_feasible(rules: Rules, space: DesignSpace, *, most_states: int = MOST_STATES) -> bool:
    """Whether some completion satisfies all constraints. Raises as `compile_constraints` does."""
    n = 1
    for table in _explore(_open(rules, space), space, most_states):
        n = int((table >= 0).sum())
    return n > 0


def _open(rules: Rules, space: DesignSpace) -> list[Automaton]:
    judged = judge_in(rules, space)
    limits = tuple(limit for rule, here in judged for limit in rule.limits(here))
    spaces = ((rule, replace(here, limits=limits)) for rule, here in judged)
    return [automaton for rule, here in spaces for automaton in rule.automata(here)]


def _explore(
    automata: list[Automaton], space: DesignSpace, most: int, gains: list[Gains] | None = None
) -> Iterator[Table]:
    """The moves of each position, kept or free, until no state is left: (S, symbols) tables.

    Their weights, of the same shapes, go into `gains`.
    """
    columns: dict[int, States] = {}
    n, total = 1, 0
    enter: dict[int, list[int]] = {}
    for number, automaton in enumerate(automata):
        if automaton.first < automaton.last:
            enter.setdefault(automaton.first, []).append(number)
        elif not automaton.accept(np.array([automaton.start])).all():
            yield np.full((1, 1), DEAD, np.int32)
            return
    for position, symbol in enumerate(space.symbols.tolist()):
        for number in enter.get(position, ()):
            columns[number] = np.full(n, automata[number].start, np.int64)
        options = list(range(OTHER)) if space.free[position] else [symbol]
        after: dict[int, States] = {}
        alive = np.ones(n * len(options), bool)
        weight = np.ones((n, len(options)))
        for number, states in columns.items():
            if gains is not None and automata[number].weighs:
                weight *= automata[number].weigh(position, states)[:, options]
            found = automata[number].step(position, states)[:, options].ravel()
            alive &= found >= 0
            after[number] = found
        for number in [i for i in after if automata[i].last == position + 1]:
            found = after.pop(number)
            alive &= automata[number].accept(np.maximum(found, 0))
        kept = np.flatnonzero(alive)
        after = {number: found[kept] for number, found in after.items()}
        first, ids = _merge(list(after.values()), [automata[i].size for i in after], len(kept))
        table = np.full(n * len(options), DEAD, np.int32)
        table[kept] = ids
        columns = {number: found[first] for number, found in after.items()}
        if gains is not None:
            gains.append(weight)
        n = len(first)
        total += n
        if total > most:
            raise UsageError(
                f"the constraints together need more than {most:,} states (at base "
                f"{position + 1} of {len(space.letters)}, {n:,} for this base alone)",
                fix="design shorter regions, or leave out GC windows (or give them a larger step), "
                "repeats or edits",
            )
        yield table.reshape(-1, len(options))
        if not n:
            return


def _merge(
    columns: list[States], sizes: list[int], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the columns, each once: (a first row of each kind, the kind of each row)."""
    if not n:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    key, bound = np.zeros(n, np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if bound * size > 1 << 62:
            _, key = np.unique(key, return_inverse=True)
            bound = int(key.max()) + 1
        key = key * size + column
        bound *= size
    if bound <= 4 * n + 4096:  # a table is faster than sorting
        place = np.full(bound, -1, np.int64)
        place[key[::-1]] = np.arange(n)[::-1]
        used = np.flatnonzero(place >= 0)
        first = place[used]
        place[used] = np.arange(len(used))
        return first, place[key]
    _, first, ids = np.unique(key, return_index=True, return_inverse=True)
    return first, ids


def _minimise(
    tables: list[Table], space: DesignSpace, gains: list[Gains] | None = None
) -> Layers | None:
    if tables and not (tables[-1] >= 0).any():
        return None
    if gains is not None:
        return _minimise_weighted(tables, space, gains)
    moves: list[Table] = []
    # Most layers are as the one on their right: what has been minimised once is known.
    known: dict[bytes, tuple[Table, Table]] = {}
    left = len(tables)
    # What a state of the layer on the right has become: its number, or −1.
    number = np.zeros(1, np.int32)
    while left:
        left -= 1
        table = tables.pop()
        rows = np.where(table >= 0, number[table], DEAD).astype(np.int32)
        if not space.free[left]:
            number = rows[:, 0]
            continue
        key = hashlib.sha256(rows.tobytes()).digest()
        if key not in known:
            known[key] = _merge_rows(rows)
        layer, number = known[key]
        moves.append(layer)
    if number[0] < 0:
        return None
    shared: dict[bytes, Table] = {}  # equal tables as one array
    keys = [(hashlib.sha256(one.tobytes()).digest(), one) for one in reversed(moves)]
    return Layers(tuple(shared.setdefault(*pair) for pair in keys), space.positions)


def _minimise_weighted(
    tables: list[Table], space: DesignSpace, gains: list[Gains]
) -> Layers | None:
    """As `_minimise`: states are one where moves and weights are. Kept weights go to the left."""
    moves: list[Table] = []
    weights: list[Gains] = []
    number, carried = np.zeros(1, np.int32), np.ones(1)
    for at in range(len(tables) - 1, -1, -1):
        table, alive = tables[at], tables[at] >= 0
        rows = np.where(alive, number[table], DEAD).astype(np.int32)
        found = np.where(rows >= 0, gains[at] * np.where(alive, carried[table], 1.0), 1.0)
        if not space.free[at]:
            number, carried = rows[:, 0], found[:, 0]
            continue
        living = np.flatnonzero((rows >= 0).any(1))
        both = np.concatenate([rows[living].astype(np.float64), found[living]], 1)
        _, first, ids = np.unique(both, axis=0, return_index=True, return_inverse=True)
        number, carried = np.full(len(rows), DEAD, np.int32), np.ones(len(rows))
        number[living] = ids.ravel()
        moves.append(np.ascontiguousarray(rows[living[first]]))
        weights.append(np.ascontiguousarray(found[living[first]]))
    if number[0] < 0:
        return None
    return Layers(tuple(moves[::-1]), space.positions, tuple(weights[::-1]), float(carried[0]))


def _merge_rows(rows: Table) -> tuple[Table, Table]:
    """The rows (S, 4) that lead anywhere, each once, and the number of each row, or −1."""
    alive = np.flatnonzero((rows >= 0).any(1))
    # Two 64-bit numbers to a row.
    pairs = np.ascontiguousarray(rows[alive]).view(np.int64)
    _, left = np.unique(pairs[:, 0], return_inverse=True)
    _, right = np.unique(pairs[:, 1], return_inverse=True)
    key = left.astype(np.int64) * (int(right.max()) + 1) + right
    _, first, ids = np.unique(key, return_index=True, return_inverse=True)
    number = np.full(len(rows), DEAD, np.int32)
    number[alive] = ids
    return np.ascontiguousarray(rows[alive[first]]), number
