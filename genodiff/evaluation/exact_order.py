"""The exact likelihood of windows under a sampler's order: `eval --order`.

What stands in `diffusion/order_likelihood.py` is done for windows of a split. An order that is
fixed (from left to right, say, or drawn for each window by the seed) is known before the network
runs. So its evaluations are taken in batches, and with `order_evaluations` only so many of them,
evenly spread from a random start: the sum is then estimated without bias, and the interval over
windows covers that too. An order that reads the network is walked, and ties go to the leftmost
base. What rounding could decide is decided in float64, as in `sample`: so no batch size and no
number of threads changes an order.

Bits per base of sequences in memory, as an evaluation finds those of a split.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.data.dna_windows import SequenceWindows
from genodiff.data.loader import Batch, EvalBatches
from genodiff.diffusion.draw import Draw
from genodiff.diffusion.masked import Denoiser
from genodiff.diffusion.order_likelihood import (
    find_fixed_order,
    index_order,
    order_likelihood,
    score_steps,
)
from genodiff.diffusion.sampler import Sampler, SamplerOptions, revealed_share
from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.evaluation.bound import Progress, check_finite, measure_bound
from genodiff.evaluation.eval_data import WindowMemory
from genodiff.evaluation.request import RANDOM, EvalOptions, LikelihoodRequest
from genodiff.io.fasta import Record
from genodiff.io.sequences import read_records
from genodiff.memory.memory import NOWHERE
from genodiff.memory.remembering import remembering
from genodiff.models.opening import refuse_fitted
from genodiff.runs.denoiser import ExactNetwork, make_denoiser
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import open_loci
from genodiff.scoring.variant_windows import HeldContigs
from genodiff.statistics.interval import BITS, Interval, ratio

STEPS = "steps"
Floats = NDArray[np.float64]


class Order(NamedTuple):
    """A sampler of a model as its likelihood is asked for."""

    name: str
    sampler: Sampler
    settings: dict[str, float]
    steps: int | None  # None: as many as there are bases
    evaluations: int | None  # of each window, at most; None: all

    def expect(self, model: TrainedModel, bases: int) -> float:
        """Expected evaluations of a window of so many bases."""
        share = revealed_share(model.diffusion.schedule, self.steps or max(bases, 1))
        found = self.sampler.count_with(self.settings)(bases, share)
        return min(found, self.evaluations or found)


def read_order(model: TrainedModel, options: EvalOptions) -> Order | None:
    """The order that is asked for; None without one.

    Raises `UsageError` for a sampler without an exact likelihood, and for settings that it has not.
    """
    if options.order is None:
        return None
    objective = model.objective
    name = "first-hitting" if options.order == RANDOM else options.order
    known = {one: it for one, it in objective.samplers.items() if it.order is not None}
    if objective.kind == "causal":
        what = f"--order is for masked networks, and the figure of {objective.name} is exact"
        raise UsageError(what, fix="leave it out")
    if objective.kind == "block":
        what = "--order needs a model that draws whole windows, and this one draws blocks"
        raise UsageError(what, fix="leave it out; with --block 1 the bound is the likelihood")
    if objective.kind == "uniform":
        what = "--order needs masked noise, and this model has uniform noise"
        raise UsageError(what, fix="leave it out, or give a run of --objective mdlm")
    if name not in known:
        what = f"sampler '{name}' has no exact likelihood: it judges or remasks tokens"
        raise UsageError(what, fix=f"choose {', '.join([RANDOM, *known])}")
    settings = dict(options.order_options or {})
    own = [*known[name].settings, *([STEPS] if known[name].uses_steps else [])]
    for key in settings:
        if key not in own:
            fix = did_you_mean(key, own) if own else "leave --order-option out"
            raise UsageError(f"the order '{options.order}' has no setting '{key}'", fix=fix)
    steps = settings.pop(STEPS, None)
    if steps is not None and not (steps >= 1 and steps == int(steps)):
        raise UsageError(f"steps = {steps:g} is not a count", fix="give 1 or more")
    if options.order_evaluations is not None and known[name].order != "fixed":
        what = f"--order-evaluations is for fixed orders, and '{options.order}' reads the network"
        raise UsageError(what, fix="leave it out, and give fewer steps or --max-windows")
    number = None if steps is None else int(steps)
    order = Order(options.order, known[name], settings, number, options.order_evaluations)
    order.expect(model, 1)  # judges the sampler's own settings
    return order


class OrderScorer:
    """Windows' exact likelihoods under an order, by a network and its memory."""

    def __init__(
        self, model: TrainedModel, order: Order, batch_size: int, memory: WindowMemory | None = None
    ) -> None:
        self.model, self.order, self.memory = model, order, memory
        self.batch_size = batch_size
        pad = model.alphabet.pad_id
        self.networks = make_denoiser(model.backbone, pad), ExactNetwork(model.backbone, pad)
        self.device = next(model.backbone.parameters()).device

    def measure(self, batch: Batch) -> Floats:
        """(3, B): nats of upper case and of soft-masked bases, and evaluations of the network.

        Raises `GenodiffError` where they are not finite.
        """
        nats, spent = torch.zeros(batch.x0.shape, dtype=torch.float64), np.zeros(len(batch.x0))
        for rows, own in self._group(batch):
            length = int(batch.lengths[rows[0]])
            x0, hidden, u = (
                part[rows, :length].to(self.device)
                for part in (batch.x0, batch.maskable, batch.u_mask)
            )
            networks, turn = [self._remember(one, own) for one in self.networks], batch.u_time[rows]
            with torch.inference_mode():
                if self.order.sampler.order == "fixed":
                    found, nfe = self._score_fixed(networks[0], x0, hidden, u, turn)
                else:
                    found, nfe = self._walk(networks, x0, hidden)
            nats[rows, :length], spent[rows.numpy()] = found.cpu(), nfe.cpu().numpy()
        check_finite(nats.numpy(), "likelihood")
        soft = torch.where(batch.soft, nats, 0.0).sum(-1)
        return np.stack([(nats.sum(-1) - soft).numpy(), soft.numpy(), spent])

    def _group(self, batch: Batch) -> Iterator[tuple[Tensor, tuple[int, int]]]:
        """The rows of one length, and of one locus that the memory leaves out."""
        alike: dict[tuple[int, tuple[int, int]], list[int]] = {}
        for row, length in enumerate(batch.lengths.tolist()):
            own = NOWHERE
            if self.memory is not None:
                own = self.memory.leave_out(int(batch.index[row]) % len(self.memory.windows))
            alike.setdefault((length, own), []).append(row)
        for (_, own), rows in alike.items():
            yield torch.tensor(rows), own

    def _remember(self, denoiser: Denoiser, own: tuple[int, int]) -> Denoiser:
        if self.memory is None:
            return denoiser
        memory = self.memory.loci.memory

        def remember(xt: Tensor, *more: Tensor) -> Tensor:
            return remembering(denoiser, memory, without=[own] * len(xt))(xt, *more)

        return remember

    def _options(self, u_order: Tensor, refine: Denoiser | None) -> SamplerOptions:
        steps = self.order.steps or max(u_order.shape[1], 1)
        return SamplerOptions(u_order, torch.zeros_like(u_order), steps, refine=refine)

    def _walk(self, networks: list[Denoiser], x0: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        options = self._options(index_order(*x0.shape).to(x0.device), networks[1])
        found = order_likelihood(
            self.order.sampler, self.model.diffusion, networks[0], x0, hidden, options,
            **self.order.settings,
        )  # fmt: skip
        return found.nats, found.nfe

    def _score_fixed(
        self, denoiser: Denoiser, x0: Tensor, hidden: Tensor, u: Tensor, turn: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Evaluation by evaluation, in batches; `turn` (B,) is where those that are taken begin."""
        diffusion, options = self.model.diffusion, self._options(u, None)
        order = find_fixed_order(
            self.order.sampler, diffusion, x0, hidden, options, **self.order.settings
        )
        total = order.evaluations.cpu()
        taken = total if self.order.evaluations is None else total.clamp(max=self.order.evaluations)
        jobs = [
            (row, int((i + (float(turn[row]) if taken[row] < total[row] else 0.0)) * n / m))
            for row, (n, m) in enumerate(zip(total.tolist(), taken.tolist(), strict=True))
            for i in range(m)
        ]
        nats = torch.zeros(x0.shape, dtype=torch.float64, device=x0.device)
        for start in range(0, len(jobs), self.batch_size):
            rows, steps = torch.tensor(jobs[start : start + self.batch_size], device=x0.device).T
            part = order._replace(step=order.step[rows], sigma=order.sigma[rows])
            found = score_steps(part, diffusion, denoiser, x0[rows], steps, Draw(1.0, 1.0))
            nats.index_add_(0, rows, found)
        scale = total.double() / taken.clamp(min=1)
        return nats * scale.to(nats.device)[:, None], taken


def measure_order(scorer: OrderScorer, batches: EvalBatches, progress: Any | None = None) -> Floats:
    """(3, windows) as `OrderScorer.measure` has them, of each window once."""
    parts, number = [], len(batches) // batches.repeats
    for i in range(number):
        parts.append(scorer.measure(batches.batch(0, i)))
        if progress is not None:
            progress(i + 1, number)
    return np.concatenate(parts, 1)


def measure_sequences(asked: LikelihoodRequest, holder: Any) -> Floats:
    """log p (n,) of each sequence, as `genodiff.Model.log_likelihood` gives it."""
    model: TrainedModel = refuse_fitted(holder.inner)
    if model.alphabet.domain != "dna":
        what = f"the model is of {model.alphabet.domain}, and these are sequences of DNA"
        raise UsageError(what, fix="give a model of DNA")
    options = EvalOptions(order=asked.order, order_options=asked.order_options, seed=asked.seed)
    options.check_domain("dna")
    order = read_order(model, options)
    assert order is not None
    records, longest = name_apart(read_records(asked.sequences)), model.config.data.seq_len
    for one in records:
        if len(one.sequence) > longest:
            what = f"{one.name} has {len(one.sequence):,} bases, and a window {longest:,}"
            fix = "cut it; longer sequences follow the distribution of `sample`"
            raise UsageError(what, fix=fix)
    windows, found = SequenceWindows(records, longest), np.zeros(len(records))
    if len(windows):
        memory = open_sequence_memory(model, records, windows, asked.memory)
        scorer = OrderScorer(model, order, asked.batch_size, memory)
        batches = EvalBatches(windows, asked.batch_size, asked.seed)
        np.subtract.at(found, windows.contig_index, measure_order(scorer, batches)[:2].sum(0))
    return found


def describe_order(
    order: Order, ordered: Floats, bound: Floats, tokens: Floats, rows: slice
) -> dict[str, Any]:
    """What an evaluation says of windows' likelihoods; `bound` (2, windows) is theirs in nats."""
    nats, counted = ordered[:2][rows].sum(0), tokens[rows].sum(0)
    found = ratio(nats, counted).scaled(BITS)
    gap = ratio(nats - bound[rows].sum(0), counted).scaled(BITS)
    return {
        "name": order.name,
        "steps": order.steps,
        "options": order.settings,
        "evaluations": float(ordered[2].mean()),
        "complete": order.evaluations is None,
        "bits": found.value,
        "perplexity": 2**found.value,
        "ci95": found.ends(0.0),
        "minus_model_bits": {"bits": gap.value, "ci95": gap.ends()},
    }


def score_sequences(
    model: TrainedModel,
    records: Sequence[Record],
    *,
    seed: int = 1,
    repeats: int = 1,
    batch_size: int = 32,
    memory: str | None = None,
    progress: Progress | None = None,
) -> tuple[Interval, int, int]:
    """Bits per base of `records`, each cut into windows of the trained length; bases; windows.

    They are the bound's (or the likelihood's). Only A, C, G and T count. `memory` is that of
    `open_loci`. Raises `DataError` where there is no base to count, `UsageError` for text.
    """
    if model.alphabet.domain != "dna":
        what = f"the model is of {model.alphabet.domain}, and these are sequences of DNA"
        raise UsageError(what, fix="leave the sequences out, for the run's own test split")
    records = name_apart(records)
    windows = SequenceWindows(records, model.config.data.seq_len)
    device = next(model.backbone.parameters()).device
    batches = EvalBatches(windows, batch_size, seed, repeats)
    kept = open_sequence_memory(model, records, windows, memory)
    found = measure_bound(model.objective, model.backbone, batches, device, progress, kept)
    tokens = found.tokens.sum(0)
    if not tokens.any():
        raise DataError("there is no A, C, G or T to score", fix="give sequences with known bases")
    bits = ratio(found.nats.sum(0).mean(0), tokens).scaled(BITS)
    return bits, int(tokens.sum()), len(windows)


def name_apart(records: Sequence[Record]) -> Sequence[Record]:
    """`records`, none of which has the name of another: a memory looks them up by name."""
    if len({one.name for one in records}) == len(records):
        return records
    return [one._replace(name=f"{i}_{one.name}") for i, one in enumerate(records)]


def open_sequence_memory(
    model: TrainedModel, records: Sequence[Record], windows: SequenceWindows, memory: str | None
) -> WindowMemory | None:
    """The memory of `open_loci` for the windows of `records`; None without one."""
    letters = HeldContigs({one.name: one.sequence for one in records})
    loci = open_loci(model, letters, memory, longest=windows.seq_len)
    return None if loci is None else WindowMemory(loci, windows)
