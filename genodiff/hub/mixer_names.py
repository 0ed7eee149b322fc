"""Tensors of a published file under our names: what all published networks share.

A published conv1d.weight is (E, 1, K), here it is (E, K). With tied directions in_proj and out_proj
are published under mamba_fwd.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from genodiff.backbones.settings import MambaShape
from genodiff.errors import CheckpointError

BELONG = "check that config and weights belong together"

_DIRECTION = {
    "conv_weight": "conv1d.weight", "conv_bias": "conv1d.bias", "x_proj.weight": "x_proj.weight",
    "dt_weight": "dt_proj.weight",
    "dt_bias": "dt_proj.bias", "A_log": "A_log", "D": "D",
}  # fmt: skip
_WIDE = ("conv1d.weight",)  # has an axis of one in the middle


def map_mixer_names(s: MambaShape, here: str, theirs: str) -> dict[str, str]:
    """Parameter of the mixer `here` → its published name below `theirs`."""
    names: dict[str, str] = {}
    for direction, suffix, letters in [("ahead", "", "fwd"), ("back", "_back", "rev")][
        : 2 if s.bidirectional else 1
    ]:
        mamba = f"{theirs}.mamba_{letters}"
        names |= {
            f"{here}.{direction}.{a}": f"{mamba}.{b}"
            for a, b in _DIRECTION.items()
            if s.conv_bias or a != "conv_bias"
        }
        if not suffix or not s.tie_directions:
            for projection in ("in_proj", "out_proj"):
                for kind in ["weight", "bias"] if s.proj_bias else ["weight"]:
                    names[f"{here}.{projection}{suffix}.{kind}"] = f"{mamba}.{projection}.{kind}"
    return names


def find_mixer_shape(here: str, s: MambaShape, width: int) -> tuple[int, ...]:
    """The shape of a mixer's parameter, by the end of its name."""
    d, e, n = width, s.expand * width, s.d_state
    shapes: dict[str, tuple[int, ...]] = {
        "in_proj.weight": (2 * e, d), "in_proj.bias": (2 * e,), "out_proj.weight": (d, e),
        "out_proj.bias": (d,),
        "conv_weight": (e, s.d_conv), "conv_bias": (e,), "x_proj.weight": (s.rank + 2 * n, e),
        "dt_weight": (e, s.rank), "dt_bias": (e,), "A_log": (e, n), "D": (e,),
    }  # fmt: skip
    return next(shape for end, shape in shapes.items() if here.replace("_back.", ".").endswith(end))


def find_tied_name(name: str) -> str | None:
    """The name that a tied projection of the backward direction is stored under.

    None for any other tensor.
    """
    twin = name.replace(".mamba_rev.", ".mamba_fwd.")
    return twin if twin != name and (".in_proj." in name or ".out_proj." in name) else None


def reshape_as_published(theirs: str, x: Tensor) -> Tensor:
    """A tensor of ours in the shape that the published name `theirs` has."""
    return x.unsqueeze(1) if theirs.endswith(_WIDE) else x


def take_tensors(
    state: Mapping[str, Tensor],
    names: Mapping[str, str],
    shapes: Mapping[str, tuple[int, ...]],
    tied_to: Callable[[str], str | None],
) -> dict[str, Tensor]:
    """The tensors of `state` under our names (`names`: ours → published), float32 or wider.

    A tensor that `tied_to` calls a duplicate is not needed; where it is present it must agree.
    Raises `CheckpointError` for a missing, foreign or misshapen tensor.
    """
    ours: dict[str, Tensor] = {}
    for here, theirs in names.items():
        x = state.get(theirs)
        if x is None:
            raise CheckpointError(f"lacks '{theirs}'", fix=BELONG)
        x = x.squeeze(1) if theirs.endswith(_WIDE) and x.ndim == 3 else x
        if tuple(x.shape) != shapes[here]:
            raise CheckpointError(
                f"'{theirs}' has the shape {tuple(x.shape)}, not {shapes[here]}", fix=BELONG
            )
        ours[here] = x if x.dtype == torch.float64 else x.float()
    wanted = set(names.values())
    for name in sorted(state.keys() - wanted):
        twin = tied_to(name)
        if twin not in wanted:
            raise CheckpointError(f"has no place for '{name}'", fix=BELONG)
        if not torch.equal(state[name], state[twin]):
            raise CheckpointError(
                f"'{name}' should equal '{twin}', to which the config ties it", fix=BELONG
            )
    return ours
