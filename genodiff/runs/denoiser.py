"""A backbone as samplers take it: its logits, a memory of what was read, double precision."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from genodiff.data.loader import Batch
from genodiff.diffusion.masked import Clean, Denoiser
from genodiff.diffusion.objective import Draws
from genodiff.kernels.captured import Captured, Recorder, find_recorder
from genodiff.memory.remembering import reads_memory


def make_denoiser(
    backbone: nn.Module,
    pad_id: int,
    tick: Callable[[int], None] | None = None,
    record: Recorder | None = None,
) -> Denoiser:
    """The backbone as (xt, sigma) → logits.

    It learns the lengths of shorter rows from the padding on their right. `record` makes CUDA
    graphs of calls without padding; without it, `find_recorder` is asked about the device.
    """
    graph, weights = None, list(backbone.parameters())
    # Relatives are read on the host, in the midst of a call.
    on_host = getattr(backbone, "relatives", None) is not None
    if record is None and weights and not on_host:
        record = find_recorder(weights[0].device.type)
    if record is not None:
        graph = Captured(
            lambda xt, sigma=None: (backbone(xt, sigma, None),),
            lambda: weights,
            "a sampler's network",
            record,
        )

    def logits(
        xt: Tensor,
        sigma: Tensor | None = None,
        rows: Tensor | None = None,
        recalled: Tensor | None = None,
    ) -> Tensor:
        # Up to the last token that is no padding: the padding may be a token of the text, too (an
        # end token).
        lengths = ((xt != pad_id) * torch.arange(1, xt.shape[1] + 1, device=xt.device)).amax(1)
        padded = bool((lengths < xt.shape[1]).any())
        given = {"rows": rows, "recalled": recalled}
        more = {name: value for name, value in given.items() if value is not None}
        found: Tensor
        if graph is None or padded or more:
            found = backbone(xt, sigma, lengths if padded else None, **more)
        else:
            (found,) = graph(xt) if sigma is None else graph(xt, sigma)
        if tick is not None:
            tick(len(xt))
        return found

    for name in ("selects_rows", "recalls"):
        setattr(logits, name, getattr(backbone, name, False))
    return logits


class BackboneDecoder:
    """The backbone as a `Decoder`, each of whose calls is told to `tick`."""

    def __init__(self, backbone: nn.Module, tick: Callable[[int], None] | None) -> None:
        self.backbone, self.tick = backbone, tick

    def cache(self, capacity: int) -> Any:
        return self.backbone.cache(capacity)  # type: ignore[operator]

    def decode(self, x: Tensor, cache: Any) -> Tensor:
        found: Tensor = self.backbone.decode(x, cache)  # type: ignore[operator]
        if self.tick is not None:
            self.tick(len(x))
        return found


class ExactNetwork:
    """The same network in float64, copied when the first close draw asks for it; few runs ask."""

    def __init__(self, backbone: nn.Module, pad_id: int) -> None:
        self.backbone, self.pad_id = backbone, pad_id
        self.exact: Denoiser | None = None

    @property
    def recalls(self) -> bool:
        """Whether the network reads what a memory says."""
        return reads_memory(self.backbone)

    def __call__(
        self, xt: Tensor, sigma: Tensor | None = None, recalled: Tensor | None = None
    ) -> Any:
        if self.exact is None:
            self.exact = make_denoiser(copy.deepcopy(self.backbone).double(), self.pad_id)
        more = {} if recalled is None else {"recalled": recalled}
        return self.exact(xt, None if sigma is None else sigma.double(), **more)


class Inputs(NamedTuple):
    """The arguments of `Objective.loss` and `Objective.bound`."""

    denoiser: Denoiser
    clean: Clean
    draws: Draws


def make_inputs(
    batch: Batch,
    backbone: Callable[..., Tensor],
    device: torch.device | str,
    soft_weight: float | None = None,
) -> Inputs:
    """`batch` on `device`; with `soft_weight`, soft-masked tokens weigh that much, others 1."""
    # Lengths that stay on the host are read without waiting for a GPU.
    padded = not bool((batch.lengths == batch.x0.shape[1]).all())
    moved = (batch.x0, batch.maskable, batch.u_mask, batch.u_time, batch.slot, batch.soft)
    x0, maskable, u_mask, u_time, slot, soft = (part.to(device) for part in moved)
    weight = None if soft_weight is None else torch.where(soft, soft_weight, 1.0) * maskable
    return Inputs(
        batch.denoiser(backbone),
        Clean(x0, maskable, weight, batch.lengths.to(device) if padded else None),
        Draws(u_mask, u_time, batch.u_shared, slot, batch.n_slots),
    )
