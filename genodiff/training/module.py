"""One optimiser step: the loss of a micro-batch, and the check before the weights move.

    loss = (Σ_batch nats of the objective) / (windows per step · seq_len)

Nats at soft-masked bases count `soft_weight` times. For most objectives the sum estimates the
bound. The denominator is fixed: it is not the number of bases found in a batch. So the loss is the
same for any split into micro-batches or ranks. A window with many N counts only by its other bases.

Spikes of the loss, told from the noise of the steps before; what is done about one.

A step is a spike where its bits stand `DEVIATIONS` robust standard deviations (1.4826 times the
median absolute deviation) above the median of the `MEMORY` steps before it. On sound runs of yeast
and of human pieces the highest of 2,000 steps stood at 7.8.

Going back to a checkpoint and past the batches since then is what PaLM did (Chowdhery et al. 2022,
arXiv 2204.02311, section 5.1).

The loss and the gradients of a micro-batch as one function of tensors, for a CUDA graph.

The gradients are one vector, in memory of their own. So a graph may write its next ones while these
are clipped, added up and used. What a batch says on the host goes in as tensors too (`u_shared`),
or is the same for all that are taken (no padding), or is part of what a graph is found by.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import AdamW

from genodiff.backbones.backbone import Backbone, dropout_keys
from genodiff.data.loader import Batch
from genodiff.diffusion.loss import LossTerms
from genodiff.diffusion.objective import Objective
from genodiff.errors import GenodiffError
from genodiff.kernels.captured import Captured, Recorder, keep_no_casts
from genodiff.runs.config import RunConfig
from genodiff.runs.denoiser import make_inputs
from genodiff.training.memory import Remember
from genodiff.training.optimizer import adamw
from genodiff.training.ranks import all_finite, gather, shard_network
from genodiff.training.teacher import SHOWN_EVERY, Heard, Tutor

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


MEMORY, FIRST, DEVIATIONS = 128, 64, 12.0
"""Steps that are remembered, how many of them a verdict needs, and where a spike begins."""

_LEAST = 1e-3  # bits: a spread below this is taken for this


class Rewind(Exception):
    """The run is to go back to its newest checkpoint, and past the batches up to `step`."""

    def __init__(self, step: int, what: str) -> None:
        super().__init__(what)
        self.step, self.what = step, what


class SpikeWatch:
    """The bits of the last steps; part of a run's state, so that a verdict can be repeated."""

    def __init__(self, before: Iterable[float] = ()) -> None:
        self.recent = deque(before, maxlen=MEMORY)

    def measure(self, bits: float) -> float | None:
        """Robust deviations above the median where `bits` are a spike, else None."""
        if len(self.recent) < FIRST:
            return None
        known = np.array(self.recent)
        middle = float(np.median(known))
        spread = 1.4826 * float(np.median(np.abs(known - middle)))
        above = (bits - middle) / max(spread, _LEAST)
        return above if above >= DEVIATIONS else None

    def remember(self, bits: float) -> None:
        """Add the bits of a step that moved the weights."""
        if math.isfinite(bits):
            self.recent.append(bits)


_log = logging.getLogger("genodiff")


def batch_loss(
    objective: Objective,
    backbone: Backbone,
    batch: Batch,
    soft_weight: float,
    remember: Remember | None = None,
    lesson: Tutor | None = None,
) -> tuple[LossTerms, Tensor]:
    """The loss terms of a micro-batch and the sum of its position weights.

    All random draws use the uniform numbers stored in the batch. `remember` gives the network a
    memory, `lesson` a teacher.
    """
    inputs = make_inputs(batch, backbone, batch.x0.device, soft_weight)
    heard = Heard(inputs.denoiser)
    if lesson is not None:
        inputs = inputs._replace(denoiser=heard)
    if remember is not None:
        inputs = inputs._replace(denoiser=remember(inputs.denoiser, batch))
    assert inputs.clean.weight is not None
    terms = objective.loss(*inputs)
    if lesson is not None:
        q, rows = lesson.read(batch), batch.index % SHOWN_EVERY == 0
        nats = terms.nats + lesson.cost(heard, objective.diffusion, inputs.clean, q)
        if rows.any():
            given = make_inputs(batch.take(rows), backbone, batch.x0.device, soft_weight)
            heard, clean = Heard(given.denoiser), given.clean
            clean.logits(heard, clean.x0, objective.diffusion.sigma(torch.zeros(len(clean.x0))))
            q = q[rows.to(q.device)]
            nats = nats + lesson.cost(heard, objective.diffusion, clean, q)
        terms = terms._replace(nats=nats)
    return terms, inputs.clean.weight.sum()


class Pretraining(pl.LightningModule):
    """The network in training.

    `totals` are the sums of the current step: nats, unweighted nats, tokens, weights. `grad_norm`
    is the norm before clipping. `keep_batches`, if given, writes down the batches of a step that is
    not finite, and says where. `remember` gives the network a memory, `lesson` a teacher. `record`,
    if given, makes CUDA graphs of micro-batches. Networks `in_parts` are sharded over the ranks.
    """

    def __init__(
        self,
        backbone: Backbone,
        objective: Objective,
        config: RunConfig,
        soft_weight: float,
        world_size: int = 1,
        spikes: SpikeWatch | None = None,
        keep_batches: Callable[[int, list[Batch]], object] | None = None,
        remember: Remember | None = None,
        record: Recorder | None = None,
        in_parts: Sequence[nn.Module] = (),
        lesson: Tutor | None = None,
    ) -> None:
        super().__init__()
        self._remember, self._in_parts, self._lesson = remember, in_parts, lesson
        self.spikes, self._keep_batches = spikes or SpikeWatch(), keep_batches
        self.backbone = backbone
        self._objective, self._config, self._soft_weight = objective, config, soft_weight
        windows = config.train.batch_size // config.train.accumulate // world_size
        self._bases = windows * config.data.seq_len
        self._graph: StepGraph | None = None
        # Dropout's keys, memories, teachers and others' gradients are not among a graph's inputs.
        dropout = getattr(config.backbone, "dropout", 0.0)
        plain = not dropout and remember is None and lesson is None
        if record is not None and world_size == 1 and plain:
            weights = list(backbone.parameters())
            self._graph = StepGraph(self._measure, weights, config.train.accumulate, record)
        self.skipped = 0
        self.grad_norm = 0.0
        self.skip = False
        self.begin_step(0)

    def begin_step(self, step: int) -> None:
        """Reset the sums of the step before. `step` counts from 0."""
        self.step = step
        self.totals = torch.zeros(4, dtype=torch.float64, device=self.device)
        self.batches: list[Batch] = []

    def configure_model(self) -> None:
        """Lay the networks out over the ranks, where they are to be in parts."""
        for network in self._in_parts:
            assert self.device_mesh is not None
            shard_network(network, self.device_mesh["data_parallel"])

    def configure_optimizers(self) -> AdamW:
        """AdamW over the network's parameters."""
        return adamw(self.backbone, self._config.optim)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, number: int) -> Batch:
        """The batch on the device; what the host asks of it stays, or the host would wait."""
        moved: Batch = super().transfer_batch_to_device(batch, device, number)
        return moved._replace(lengths=batch.lengths, index=batch.index)

    def training_step(self, batch: Batch, index: int) -> Tensor:
        """The loss of a micro-batch; Lightning divides it by the number of micro-batches."""
        if getattr(self._config.backbone, "dropout", 0.0):
            keys = dropout_keys(self._config.seed, batch.index)
            self.backbone.dropout_keys = keys.to(batch.x0.device, non_blocking=True)
        graph = self._graph
        run = graph.run if graph is not None and graph.takes(batch) else self._measure
        loss, found = run(batch)
        self.totals = self.totals + found
        self.batches.append(batch)
        return loss

    def _measure(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss of a micro-batch, and what `totals` is to grow by."""
        given = self._objective, self.backbone, batch, self._soft_weight
        with keep_no_casts():
            terms, weights = batch_loss(*given, self._remember, self._lesson)
        found = [terms.nats.detach(), terms.nats_unweighted, terms.n_tokens, weights]
        return terms.nats / self._bases, torch.stack(found).double()

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """The gradients of a micro-batch, where they did not come with the loss."""
        if self._graph is None or not self._graph.add_gradients():
            super().backward(loss, *args, **kwargs)

    def configure_gradient_clipping(self, *_: Any, **__: Any) -> None:
        """Clip the gradient, or drop it if it or the loss is not finite.

        Without gradients the optimiser changes nothing. Raises `GenodiffError` after too many such
        steps, for weights that are not finite, and for a step without bases; `Rewind` at a spike.
        """
        parameters = [p for p in self.backbone.parameters() if p.grad is not None]
        norm = gather(torch.nn.utils.clip_grad_norm_(parameters, self._config.optim.clip))
        size = gather(torch.nn.utils.get_total_norm(self.backbone.parameters()))
        totals = self.trainer.strategy.reduce(self.totals, reduce_op="sum")
        # The one time in a step that the host waits for the device: all figures are read at once.
        norms = torch.stack([norm.detach(), size.detach()]).double()
        figures = torch.cat([totals, norms]).tolist()
        self.totals, self.grad_norm = torch.tensor(figures[:4], dtype=torch.float64), figures[4]
        self.skip = not all(map(math.isfinite, figures))
        if self.skip:
            self._skip_step(self._name_fault())
            return
        if not self.totals[2]:
            what = f"step {self.step + 1} has no base to score"
            raise GenodiffError(what, fix="use data with fewer N")
        bits = float(self.totals[1] / self.totals[2]) / math.log(2)
        above = self.spikes.measure(bits)
        if above is not None:
            self._meet_spike(bits, above)
        if not self.skip:
            self.spikes.remember(bits)

    def _meet_spike(self, bits: float, above: float) -> None:
        """Do what the configuration says of spikes."""
        usual = float(np.median(self.spikes.recent))
        what = f"step {self.step + 1}: the loss jumped from about {usual:.3f} to {bits:.3f} bits, "
        what += f"{above:.0f} times the usual deviation (windows {self._name_windows()})"
        match self._config.train.on_spike:
            case "warn":
                _log.warning("%s; --on-spike skip, rewind or stop does more", what)
            case "skip":
                self.skip = True
                self._skip_step(what)
            case "rewind":
                raise Rewind(self.step + 1, what)
            case "stop":
                fix = "resume with --on-spike rewind or skip, or begin anew with a lower --lr"
                raise GenodiffError(f"{what}; the last checkpoint is valid", fix=fix)

    def _name_fault(self) -> str:
        """What of this step is not finite; raises `GenodiffError` where the weights are not."""
        found = [n for n, p in self.backbone.named_parameters() if not all_finite(p)]
        if found:
            raise GenodiffError(
                f"step {self.step + 1}: the weights {found[0]} are not finite ({len(found)} "
                f"tensors in all, windows {self._name_windows()}){self._dump()}",
                fix="resume from the last checkpoint, which is valid, with a lower --lr",
            )
        gradients = [(n, p.grad) for n, p in self.backbone.named_parameters()]
        named = [n for n, grad in gradients if grad is not None and not all_finite(grad)]
        where = f"the gradient of {named[0]} ({len(named)} tensors in all)" if named else "the loss"
        what = f"step {self.step + 1}: {where} is not finite (loss {float(self.totals[0])}, "
        return f"{what}windows {self._name_windows()}){self._dump()}"

    def _name_windows(self) -> str:
        numbers = torch.cat([batch.index for batch in self.batches]).tolist()
        return f"{numbers[0]} to {numbers[-1]}" if numbers else "none"

    def _dump(self) -> str:
        return f"; {self._keep_batches(self.step + 1, self.batches)}" if self._keep_batches else ""

    def _skip_step(self, what: str) -> None:
        """Drop all gradients and warn; raises `GenodiffError` after `max_skipped` steps."""
        self.skipped += 1
        if self.skipped > self._config.train.max_skipped:
            raise GenodiffError(
                f"{what}; {self.skipped - 1} such steps were skipped before, the maximum",
                fix="lower --lr, use --precision fp32, or raise --max-skipped; the last "
                "checkpoint is valid",
            )
        most = self._config.train.max_skipped
        _log.warning("%s: skipped, %d of at most %d", what, self.skipped, most)
        for parameter in self.backbone.parameters():
            parameter.grad = None

    @property
    def loss(self) -> float:
        """The loss of the last step, in nats per base of a full batch."""
        return float(self.totals[0]) / (self._config.train.batch_size * self._config.data.seq_len)
