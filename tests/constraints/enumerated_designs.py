"""All 4^n sequences, judged by the checker that shares no code with automata."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from worlds import assert_law

from genodiff.constraints.check import find_violations
from genodiff.constraints.constraint import AllOf, Constraint, DesignSpace
from genodiff.constraints.layers import Layers


def enumerate_designs(rules: Constraint, space: DesignSpace) -> list[str]:
    """Every completion of the free positions that violates nothing."""
    before = space.letters.decode()
    found = []
    for some in product("ACGT", repeat=int(space.free.sum())):
        letters = list(before)
        for at, base in zip(space.positions, some, strict=True):
            letters[at] = base
        text = "".join(letters)
        if not find_violations(rules, text, before, space.start, space.end, space.offset):
            found.append(text)
    return found


def list_accepted(layers: Layers, space: DesignSpace) -> list[str]:
    """Every completion that is a path through the layers, in the same order."""
    paths = [("", 0)]
    for moves in layers.moves:
        paths = [
            (text + base, int(moves[state, symbol]))
            for text, state in paths
            for symbol, base in enumerate("ACGT")
            if moves[state, symbol] >= 0
        ]
    found = []
    for text, _ in paths:
        letters = list(space.letters.decode())
        for at, base in zip(space.positions, text, strict=True):
            letters[at] = base
        found.append("".join(letters))
    return found


def weigh(designs: Sequence[str], space: DesignSpace, logp: np.ndarray) -> np.ndarray:
    """q of each design: the product of the free bases' probabilities, normalised."""
    bases = [["ACGT".index(text[at]) for at in space.positions] for text in designs]
    total = logp[range(len(logp)), np.array(bases, int).reshape(len(designs), len(logp))].sum(1)
    weights = np.exp(total - total.max())
    return weights / weights.sum()


def check_law(counts: Mapping[Any, int], law: Mapping[Any, float]) -> None:
    assert set(counts) <= set(law)
    assert_law(np.array([counts[one] for one in law], float), np.array(list(law.values())))


def weigh_codons(seed: int) -> tuple[tuple[str, float], ...]:
    """A weight for each codon, from 0.01 to 1."""
    draws = np.random.default_rng(seed)
    return tuple(("".join(c), float(10 ** draws.uniform(-2, 0))) for c in product("ACGT", repeat=3))


def join(*rules: Constraint) -> AllOf:
    return AllOf(tuple(rules))
