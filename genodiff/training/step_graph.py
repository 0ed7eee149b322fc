"""The loss and the gradients of a micro-batch as one function of tensors, for a CUDA graph.

The gradients are one vector, in memory of their own. So a graph may write its next ones while these
are clipped, added up and used. What a batch says on the host goes in as tensors too (`u_shared`),
or is the same for all that are taken (no padding), or is part of what a graph is found by.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from genodiff.data.loader import Batch
from genodiff.kernels.captured import Captured, Recorder

_TENSORS = ("x0", "maskable", "soft", "u_mask", "u_time", "u_shared", "slot")
_SOMETIMES = ("segments", "labels")


class StepGraph:
    """Micro-batches of one network.

    `measure` gives a batch's loss and the sums that belong to it. The gradients are those of the
    loss over `parts`.
    """

    def __init__(
        self,
        measure: Callable[[Batch], tuple[Tensor, Tensor]],
        parameters: Sequence[Parameter],
        parts: int,
        record: Recorder,
    ) -> None:
        self._measure, self._parameters, self._parts = measure, parameters, parts
        self._used: list[int] = []  # the parameters that have a gradient
        self._gradient: Tensor | None = None
        self.captured = Captured(self._compute, lambda: parameters, "the training step", record)

    def takes(self, batch: Batch) -> bool:
        """Whether the batch is without padding."""
        return bool((batch.lengths == batch.x0.shape[1]).all())

    def run(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss of a batch and its sums; `add_gradients` is to follow."""
        shared = torch.full((), float(batch.u_shared), dtype=torch.float64, device=batch.x0.device)
        given = batch._replace(u_shared=shared)
        names = (*_TENSORS, *(n for n in _SOMETIMES if getattr(batch, n) is not None))
        inputs = [getattr(given, name) for name in names]
        loss, sums, self._gradient = self.captured(*inputs, static=(names, batch.n_slots))
        return loss, sums

    def _compute(self, *given: Any) -> tuple[Tensor, ...]:
        inputs = given[:-1]
        names, n_slots = given[-1]
        parts: dict[str, Any] = dict(zip(names, inputs, strict=True))
        rows, length = parts["x0"].shape
        full = torch.full((rows,), length)
        batch = Batch(**parts, lengths=full, index=full, n_slots=n_slots)
        loss, sums = self._measure(batch)
        # As a backward pass that is called on its own: autocast is of the forward pass alone.
        with torch.autocast(parts["x0"].device.type, enabled=False):
            found = torch.autograd.grad(loss / self._parts, self._parameters, allow_unused=True)
        self._used = [i for i, gradient in enumerate(found) if gradient is not None]
        flat = torch.cat([gradient.flatten() for gradient in found if gradient is not None])
        return loss.detach(), sums.detach(), flat

    def add_gradients(self) -> bool:
        """Add the gradients of the last `run` to the parameters' own; False if there was none."""
        flat, self._gradient = self._gradient, None
        if flat is None:
            return False
        used = [self._parameters[i] for i in self._used]
        pieces = flat.split([parameter.numel() for parameter in used])
        shaped = [piece.view(p.shape) for p, piece in zip(used, pieces, strict=True)]
        pairs = [(p.grad, g) for p, g in zip(used, shaped, strict=True) if p.grad is not None]
        if pairs:
            torch._foreach_add_([own for own, _ in pairs], [new for _, new in pairs])
        for parameter, gradient in zip(used, shaped, strict=True):
            if parameter.grad is None:
                parameter.grad = gradient
        return True
