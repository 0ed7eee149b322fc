"""The eleven numbers of a memory.

They describe how likely a window is to copy the training genome, and how faithfully. They are
fitted on the valid split (`memory/fitting.py`). The defaults are of yeast's chrXVI, with a network
in front: fitted on 70 windows, but for `copies`, the share of its windows with a 24-mer of train,
and `start`, chosen with it on windows of each class. Without `copies` a few visible bases of a
unique window were taken for a copy.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from genodiff.settings import Settings

REACH = 32
"""A copy goes on at another diagonal by an insertion or deletion of at most so many bases."""

_TOLERANCE = 1e-6


class MemoryNumbers(Settings):
    """Chances per base, and the classes of divergence.

    `copies`: the chance that a window copies anything at all. `start`: a copy begins. `end`: it
    ends. `shift`: an insertion or deletion. `divergence`: the share of bases in which a copy
    differs from its source, by class. `share`: how often a copy is of each class; the shares sum
    to 1.
    """

    copies: float = 0.18
    start: float = 1.24e-3
    end: float = 1.44e-3
    shift: float = 2.05e-3
    divergence: tuple[float, ...] = (0.00016, 0.0195, 0.14, 0.306)
    share: tuple[float, ...] = (0.313, 0.196, 0.0448, 0.4462)

    @model_validator(mode="after")
    def _check_ranges(self) -> Self:
        if not all(0 < x < 1 for x in (self.start, self.end, *self.divergence)):
            raise ValueError("chances and divergences lie between 0 and 1")
        if not 0 < self.copies <= 1:
            raise ValueError("copies lies above 0, and is at most 1")
        if self.shift < 0 or self.end + self.shift >= 1:
            raise ValueError("shift is not negative, and less than 1 - end")
        if len(self.divergence) != len(self.share) or not self.divergence:
            raise ValueError("each class has a divergence and a share")
        if max(self.divergence) >= 0.75 or abs(sum(self.share) - 1) > _TOLERANCE:
            raise ValueError("divergences are below 0.75, and shares sum to 1")
        if min(self.share) <= 0:
            raise ValueError("each share is above 0")
        return self

    @property
    def turn(self) -> float:
        """The chance that a copy goes on in a class that is drawn anew. The own genome's: none."""
        return 0.0

    @property
    def stay(self) -> float:
        """The chance that a copy goes on with the next base of its source, in its class."""
        return 1 - self.end - self.shift - self.turn

    @cached_property
    def emission(self) -> NDArray[np.float64]:
        """(E, 4, 4): by class, the base of the source and that of the window, the chance of it."""
        return spread_differences(self.divergence, [1 / 3] * len(self.divergence))


def spread_differences(
    divergence: Sequence[float], transitions: Sequence[float]
) -> NDArray[np.float64]:
    """(E, 4, 4): chances of a base by class and source, `transitions` of the differences being
    A to G, C to T and the other way round.
    """
    eps, share = np.array(divergence)[:, None, None], np.array(transitions)[:, None, None]
    bases = np.arange(4)
    same = bases[:, None] == bases
    turned = (bases[:, None] ^ bases) == 2  # A 0 and G 2, C 1 and T 3
    return np.where(same, 1 - eps, np.where(turned, eps * share, eps * (1 - share) / 2))


Background = tuple[tuple[float, float, float, float], ...]


class RelativeNumbers(MemoryNumbers):
    """The numbers of a relative: those of a memory, and two more.

    `turns`: the chance that the class of divergence is drawn anew. `transitions`: by class, the
    share of the differences that are transitions; by chance it is a third. `background`: how often
    each base follows each word in the target (`evidence.Chain`), where copies are judged against
    that and not against the relative's own bases; else none. `sparse_start`: the chance to begin a
    copy where more than `SPARSE` of a window is hidden; 0: `start`, as elsewhere. `far`: windows
    are searched by regions (`far.py`).
    """

    copies: float = 0.95
    start: float = 0.02
    end: float = 0.002
    shift: float = 0.005
    divergence: tuple[float, ...] = (0.003, 0.03, 0.08, 0.15, 0.25, 0.4, 0.7)
    share: tuple[float, ...] = (0.1, 0.2, 0.25, 0.2, 0.15, 0.05, 0.05)
    turns: float = 0.01
    transitions: tuple[float, ...] = (0.5, 0.6, 0.65, 0.65, 0.6, 0.5, 0.35)
    background: Background = ()
    sparse_start: float = 0.0
    far: bool = False

    @model_serializer(mode="wrap")
    def _leave_out_none(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Numbers that a genome does not have are not written."""
        values: dict[str, Any] = dump(self)
        left_out = "background", "sparse_start", "far"
        return {k: v for k, v in values.items() if v or k not in left_out}

    @model_validator(mode="after")
    def _check_more(self) -> Self:
        if self.turns < 0 or self.stay <= 0:
            raise ValueError("turns is not negative, and less than 1 - end - shift")
        if len(self.transitions) != len(self.share) or not all(0 < x < 1 for x in self.transitions):
            raise ValueError("each class has a share of transitions, between 0 and 1")
        if self.background and len(self.background) not in (4, 16, 64, 256, 1024):
            raise ValueError("a background has four counts for each word of 1 to 5 bases")
        return self

    @cached_property
    def sparse(self) -> "RelativeNumbers":
        """The numbers for windows of which more than `SPARSE` is hidden."""
        start = self.sparse_start or self.start
        return self.model_copy(update={"start": start, "sparse_start": 0.0})

    @property
    def turn(self) -> float:
        """The chance that a copy goes on in a class that is drawn anew."""
        return self.turns

    @cached_property
    def emission(self) -> NDArray[np.float64]:
        """(E, 4, 4): by class, the base of the source and that of the window, the chance of it."""
        return spread_differences(self.divergence, self.transitions)


SPARSE = 0.7
"""The share of a window's bases above which few are visible: whether these are a match is then
decided by the chance that a copy begins, of which whole windows say little."""
RELATIVE_SEARCH = MemoryNumbers(
    copies=0.92,
    start=0.021,
    end=0.0056,
    shift=0.0105,
    divergence=(0.0008, 0.08, 0.14, 0.245),
    share=(0.04, 0.21, 0.50, 0.25),
)
"""What the diagonals of a relative's genome are searched with: fitted to a yeast at 11 %."""
