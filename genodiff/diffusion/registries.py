"""Registries: schedules, samplers, guidances, objectives. Names are listed without torch."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from genodiff.errors import UsageError, did_you_mean
from genodiff.registry import Registry

if TYPE_CHECKING:
    from genodiff.diffusion.guided import Guidance
    from genodiff.diffusion.objective import Objective
    from genodiff.diffusion.sampler import Sampler
    from genodiff.diffusion.schedule import Schedule

SCHEDULES: "Registry[type[Schedule]]" = Registry("schedule", package="genodiff.diffusion.schedule")
SAMPLERS: "Registry[Sampler]" = Registry("sampler", package="genodiff.diffusion.samplers")
GUIDANCES: "Registry[Guidance]" = Registry("guidance", package="genodiff.diffusion.guidance")
OBJECTIVES: "Registry[type[Objective]]" = Registry(
    "objective", package="genodiff.diffusion.objectives"
)


def refuse_unknown(
    owner: str, given: Collection[str], known: Collection[str], none: str = "leave it out"
) -> None:
    """Raises `UsageError` for a setting that a piece has not; `none` is said where it has none."""
    for name in given:
        if name not in known:
            fix = did_you_mean(name, list(known)) if known else none
            raise UsageError(f"{owner} has no setting '{name}'", fix=fix)
