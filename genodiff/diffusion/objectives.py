"""The objectives by name, each in its own file with its equation."""

from dataclasses import fields
from typing import Any

from genodiff.diffusion.ar import Ar
from genodiff.diffusion.d3pm import D3pm
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.mdlm import Mdlm
from genodiff.diffusion.mlm import Mlm
from genodiff.diffusion.objective import Objective
from genodiff.diffusion.sedd import Sedd
from genodiff.errors import UsageError
from genodiff.settings import did_you_mean

OBJECTIVES: dict[str, type[Objective]] = {
    "mdlm": Mdlm,
    "d3pm": D3pm,
    "sedd": Sedd,
    "mlm": Mlm,
    "ar": Ar,
}


SAMPLER_NAMES = ("ancestral", "first-hitting", "confidence", "analytic", "left-to-right")
"""Every sampler that some objective knows; `Objective.samplers` has those of one."""


def settings_of(name: str) -> list[str]:
    """The names of an objective's own settings."""
    if name not in OBJECTIVES:
        raise UsageError(f"no objective '{name}'", fix=did_you_mean(name, OBJECTIVES))
    return [field.name for field in fields(OBJECTIVES[name]) if field.name != "diffusion"]


def objective(name: str, diffusion: MaskedDiffusion, **settings: Any) -> Objective:
    """The objective called `name` with its settings. UsageError names what is unknown and what is
    near it.
    """
    known = settings_of(name)
    for key in settings:
        if key not in known:
            raise UsageError(
                f"the objective '{name}' has no setting '{key}'", fix=did_you_mean(key, known)
            )
    return OBJECTIVES[name](diffusion, **settings)
