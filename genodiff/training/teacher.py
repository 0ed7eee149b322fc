"""Teaching: a second target of a network in training, at the bases that it sees.

A masked-diffusion model copies a visible base (SUBS), so the network's logits there cost nothing
and are never used. Taught, they learn a distribution q of that base, which another model gives:

    nats += weight · Σ over visible bases of − Σ over x of q(x) log p(x | xt)

Where many bases are masked little is learnt of the others, so every fourth window is read a second
time with none masked: a quarter more work.

With related genomes as the teacher, q is what stands over a base in other species, its own base
left out (`runs/related_teacher.py`). So log p(alt) - log p(ref) at visible bases is what
evolution accepts in place of a base, learnt from one set of chromosomes and read from a sequence
alone (`score --method wildtype`). The objective and its bound stay as they are.

Distillation: Hinton et al. 2015, arXiv 1503.02531. Scores of visible bases: the wild-type
marginals of Meier et al. 2021, doi 10.1101/2021.07.09.450648.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from genodiff.data.loader import Batch, TrainBatches
from genodiff.diffusion.masked import Clean, Denoiser, MaskedDiffusion
from genodiff.errors import DataError
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import Feed
from genodiff.runs.related_teacher import Teacher, open_teacher

SHOWN_EVERY = 4
"""Every so many samples, a window is also read with nothing masked: by number, so that it is the
same in any micro-batch."""


class Heard:
    """A denoiser that keeps what it was asked and what it answered."""

    def __init__(self, denoiser: Denoiser) -> None:
        self.denoiser = denoiser
        self.calls: list[tuple[Tensor, Tensor]] = []
        self.recalls = getattr(denoiser, "recalls", False)

    def __call__(self, xt: Tensor, *given: Any, **more: Any) -> Tensor:
        logits: Tensor = self.denoiser(xt, *given, **more)
        self.calls.append((xt, logits))
        return logits


class Tutor:
    """What a teacher says of the windows of a batch, and what the network owes it."""

    def __init__(self, teacher: Teacher, weight: float, batches: TrainBatches) -> None:
        self.teacher, self.weight, self.batches = teacher, weight, batches

    def read(self, batch: Batch) -> Float[Tensor, "B L 4"]:
        """The distributions on the strand that the batch is read on."""
        index = batch.index.cpu().numpy()
        starts, lengths = self.batches.place(index)
        found = self.teacher.read(starts, lengths, batch.x0.shape[1])
        for row in self.batches.turned(index).nonzero()[0]:
            length = int(lengths[row])
            found[row, :length] = found[row, :length][::-1, ::-1]  # A, C, G, T: T, G, C, A
        return torch.from_numpy(found).to(batch.x0.device)

    def cost(
        self,
        heard: Heard,
        diffusion: MaskedDiffusion,
        clean: Clean,
        q: Float[Tensor, "B L 4"],
    ) -> Tensor:
        """Nats of the bases that were visible; the mean over calls of the network."""
        taught = clean.maskable & (q.sum(-1) > 0)
        weight = 1.0 if clean.weight is None else clean.weight
        total = torch.zeros((), device=q.device)
        for xt, logits in heard.calls:
            log_p = diffusion.target_logits(logits).log_softmax(-1)
            nats = -(q * log_p).sum(-1) * weight
            total = total + torch.where(taught & (xt == clean.x0), nats, 0.0).sum()
        return self.weight * total / max(len(heard.calls), 1)


def open_lesson(
    config: RunConfig, feed: Feed, batches: TrainBatches, remembered: dict[str, Any] | None
) -> tuple[Tutor | None, dict[str, Any]]:
    """The lesson of a run that has a teacher, and what the run says of its data.

    `remembered` is what a run that goes on says. Raises `DataError` where its teacher was another.
    """
    lesson = None
    if config.teacher is not None:
        weight = config.data.teacher_weight
        teacher = open_teacher(config.teacher, feed.store)
        lesson = Tutor(teacher, 1.0 if weight is None else weight, batches)
    told = {} if lesson is None else {"teacher": lesson.teacher.digest}
    if remembered is not None and remembered.get("teacher") != told.get("teacher"):
        what = "the run was started with another teacher" if told else "the run has a teacher"
        fix = "give the same --teacher, or another --out"
        raise DataError(what, file=config.teacher, fix=fix)
    return lesson, told
