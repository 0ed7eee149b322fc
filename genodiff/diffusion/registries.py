"""Registries: schedules, samplers, guidances, objectives. Names are listed without torch."""

from typing import TYPE_CHECKING

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
