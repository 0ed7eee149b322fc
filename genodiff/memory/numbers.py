"""The eleven numbers of a memory.

They describe how likely a window is to copy the training genome, and how faithfully. They are
fitted on the valid split (`memory/fitting.py`). The defaults are of yeast's chrXVI, with a network
in front: fitted on 70 windows, but for `copies`, the share of its windows with a 24-mer of train,
and `start`, chosen with it on windows of each class. Without `copies` a few visible bases of a
unique window were taken for a copy.
"""

from typing import Self

from pydantic import model_validator

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
    def stay(self) -> float:
        """The chance that a copy goes on with the next base of its source."""
        return 1 - self.end - self.shift
