"""How to sample: settings that are checked before numpy and torch are loaded."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from genodiff.diffusion.registries import SAMPLERS
from genodiff.errors import UsageError, did_you_mean

AUTO_STEPS = 256
MOST_STEPS = 1_000_000
MEMORIES = ("on", "off", "novel")


@dataclass(frozen=True)
class Sampling:
    """How to sample. Raises `UsageError` for what cannot be meant.

    `sampler` None means the objective's own first. `steps` None means 256 per window; evaluations
    never exceed the number of masks, whatever the steps. `temperature` 0 takes the likeliest base.
    `stride` None means half the trained length. `allow_n` lets N be drawn too. `batch_size` None
    means as many windows as keep the device busy; it changes the speed only. `options` are the
    sampler's own settings by name; those that are not given are its defaults. `memory` is that of
    the training genome (`generate/sample_memory.py`); None is "on" for a network that was trained
    with one, and "off" for any other.
    """

    sampler: str | None = None
    steps: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    stride: int | None = None
    allow_n: bool = False
    batch_size: int | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    memory: str | None = None

    def __post_init__(self) -> None:
        if self.sampler is not None and self.sampler not in SAMPLERS.list_names():
            known = did_you_mean(self.sampler, SAMPLERS.list_names())
            raise UsageError(f"no sampler '{self.sampler}'; {known}")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UsageError(
                f"temperature {self.temperature} is not a finite number of 0 or more",
                fix="give 1 for the model's own law, less for likelier bases",
            )
        if not 0 < self.top_p <= 1:
            raise UsageError(
                f"top-p {self.top_p} is not above 0 and at most 1",
                fix="give 1 for the model's own law",
            )
        if self.memory is not None and self.memory not in MEMORIES:
            fix = did_you_mean(self.memory, list(MEMORIES))
            raise UsageError(f"no memory '{self.memory}'", fix=fix)
        require_positive("steps", self.steps)
        if (self.steps or 0) > MOST_STEPS:
            raise UsageError(
                f"steps {self.steps:,} are more than {MOST_STEPS:,}",
                fix="give as many as there are bases",
            )
        for name, value in self.options.items():
            if not math.isfinite(value):
                raise UsageError(
                    f"{name} = {value} is not a finite number", fix="give a number such as 0.1"
                )
        require_positive("stride", self.stride)
        require_positive("batch size", self.batch_size)


def refuse_novel(how: Sampling) -> None:
    """Raises `UsageError` where regions are to be novel: what stood there would be their match."""
    if how.memory == "novel":
        what = "--memory novel is for new sequences and templates, not for regions and designs"
        raise UsageError(what, fix="give --memory on or off")


def require_positive(what: str, value: int | None) -> None:
    """Raises `UsageError` where `value` is given and below 1."""
    if value is not None and value < 1:
        raise UsageError(f"{what} {value} is not positive", fix="give a number of at least 1")
