"""Automata over positions: what a constraint compiles to.

An automaton reads the positions first … last of a `DesignSpace` from left to right. Its states are
integers from 0 to `size` − 1, and −1 is dead. The moves may depend on the position. `accept` is
asked once, after position last − 1. All methods take and give arrays: a compiler moves many states
at a time.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from genodiff.constraints.space import Mask

States = NDArray[np.int64]
DEAD = -1


class Automaton(ABC):
    """A deterministic automaton that is at work from position `first` up to `last`."""

    first: int
    last: int
    size: int
    start: int = 0

    weighs: bool = False
    """Whether its moves have weights, `weigh`."""

    def weigh(self, position: int, states: States) -> NDArray[np.float64]:
        """The weights (n, 5) of the moves of states (n,), above 0."""
        return np.ones((len(states), 5))

    @abstractmethod
    def step(self, position: int, states: States) -> States:
        """The next states (n, 5) of states (n,), for the symbols 0 to 4; −1 is dead."""

    def accept(self, states: States) -> Mask:
        """Which states (n,) are good at the end."""
        return np.ones(len(states), bool)


class SetAutomaton(Automaton):
    """Each position has a set of symbols that it may take: `allowed` (last − first, 5)."""

    size = 1

    def __init__(self, first: int, allowed: Mask) -> None:
        self.first, self.last, self._allowed = first, first + len(allowed), allowed

    def step(self, position: int, states: States) -> States:
        row = np.where(self._allowed[position - self.first], 0, DEAD)
        return np.broadcast_to(row, (len(states), 5))


class CountAutomaton(Automaton):
    """Counts symbols that `counted` (last − first, 5) marks, `least` to `most` of them in all."""

    def __init__(self, first: int, counted: Mask, least: int, most: int) -> None:
        self.first, self.last = first, first + len(counted)
        self._counted, self._least, self._most = counted.astype(np.int64), least, most
        self.size = max(most, 0) + 2
        able: Mask = np.any(counted, axis=1)
        left = able[::-1].cumsum()[::-1]
        self._left = np.append(left, 0)

    def step(self, position: int, states: States) -> States:
        at = position - self.first
        found = states[:, None] + self._counted[at]
        doomed = (found > self._most) | (found + self._left[at + 1] < self._least)
        return np.where(doomed, DEAD, found)

    def accept(self, states: States) -> Mask:
        return (states >= self._least) & (states <= self._most)
