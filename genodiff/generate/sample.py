"""New sequences from a trained model: record i depends on (seed, i) alone.

Position j of record i owns two uniforms for good, the j-th of the counter-based streams (seed,
SAMPLE_ORDER, i) and (seed, SAMPLE_TOKEN, i): the first places it in the order of unmasking, the
second draws its base. They are the same whatever the batch, the window or the length of the record,
so a longer request begins with the draws of a shorter one. A sampler is a deterministic function of
them and of the network. The network's float32 noise depends on batch size and thread count; a draw
so near to a boundary that this noise could decide it is decided by the same network in float64, on
one sequence alone. Hence the bytes depend on neither.

Texts longer than the trained window W are filled in rounds (`generate.infill.plan_rounds`).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.counter import Purpose, uniforms_from
from genodiff.diffusion.guided import GuidedChain
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions, revealed_share
from genodiff.errors import UsageError
from genodiff.generate.constrained import REDRAWS, ConstrainedPiece, ConstrainedRows
from genodiff.generate.guiding import GuidedFill, Guiding, fill_guided
from genodiff.generate.infill import plan_rounds
from genodiff.generate.network import BackboneDecoder, ExactNetwork, make_denoiser
from genodiff.generate.sample_memory import TRIES, SampleMemory
from genodiff.generate.sampling import AUTO_STEPS as AUTO_STEPS
from genodiff.generate.sampling import Ids
from genodiff.generate.sampling import Sample as Sample
from genodiff.generate.sampling import Sampling as Sampling
from genodiff.generate.sampling import choose_sampler as choose_sampler
from genodiff.generate.sampling import require_positive as require_positive
from genodiff.runs.model import TrainedModel

_TOKENS_ON_CPU, _TOKENS_ON_GPU = 8192, 1 << 18


class Workload(NamedTuple):
    """What a request takes; evaluations are of the network on one window, and expected."""

    records: int
    bases: int
    windows: int
    evaluations: float


class DraftPart(NamedTuple):
    """Part of record `number`, from its position `start` on, that is filled by itself.

    `rounds` are windows of `ids`, one after the other.
    """

    number: int
    start: int
    ids: Ids
    rounds: list[tuple[int, int]]
    together: ConstrainedPiece | None = None
    """What its masks must satisfy together."""
    seen: slice | None = None
    """What of `ids` an oracle sees; None is all."""


def sample(
    model: TrainedModel,
    n: int,
    length: int,
    *,
    seed: int = 1,
    sampler: str | None = None,
    steps: int | None = None,
    temperature: float = 1.0,
    top_p: float = 1.0,
    stride: int | None = None,
    allow_n: bool = False,
    batch_size: int | None = None,
    options: Mapping[str, float] | None = None,
    memory: str | None = None,
    tick: Callable[[int], None] | None = None,
) -> Iterator[Sample]:
    """`n` new sequences of `length` bases, in order, as they are ready.

    `length` may exceed the trained length (see `plan_rounds`). `batch_size` changes the speed only.
    Only A, C, G and T come out unless `allow_n`. `tick` is told after each call of the network
    how many windows it held. Raises `UsageError` for impossible settings, before any work.
    """
    require_positive("number of sequences", n)
    require_positive("length", length)
    size = choose_batch_size(model, length) if batch_size is None else batch_size
    how = Sampling(sampler, steps, temperature, top_p, stride, allow_n, size, options or {}, memory)
    drafts = (np.full(length, model.alphabet.mask_id, np.uint8) for _ in range(n))
    return infill(model, drafts, how=how, seed=seed, tick=tick)


def infill(
    model: TrainedModel,
    drafts: Iterable[Ids],
    *,
    how: Sampling | None = None,
    seed: int = 1,
    tick: Callable[[int], None] | None = None,
    first: int = 0,
    guiding: Guiding | None = None,
) -> Iterator[Sample]:
    """Each draft with its masks filled, in order; every other id stays. Draft i is record i.

    A draft without masks costs no evaluation; a draft that is all masks is what `sample` fills.
    `first` is the number of the first draft's record. With `guiding` each draft is guided, window
    after window.
    """
    window, stride = model.config.data.seq_len, choose_stride(model, how or Sampling())
    mask = model.alphabet.mask_id
    pieces = (
        DraftPart(number, 0, draft, plan_rounds(draft == mask, window, stride))
        for number, draft in enumerate(drafts, first)
    )
    return fill_pieces(model, pieces, how=how, seed=seed, tick=tick, first=first, guiding=guiding)


def fill_pieces(
    model: TrainedModel,
    pieces: Iterable[DraftPart],
    *,
    how: Sampling | None = None,
    seed: int = 1,
    tick: Callable[[int], None] | None = None,
    first: int = 0,
    guiding: Guiding | None = None,
) -> Iterator[Sample]:
    """Each piece with its masks filled, in order, numbered from `first`."""
    how = choose_sampler(how, model.objective, recalls=model.recalls)
    window = model.config.data.seq_len
    if how.stride is not None and how.stride > window:
        raise UsageError(
            f"stride {how.stride} is above the trained length", fix=f"give at most {window}"
        )
    if not 0 <= seed < 1 << 64:
        raise UsageError(f"seed {seed} is not between 0 and 2^64 - 1", fix="give a smaller number")
    particles = 1 if guiding is None else guiding.particles
    return _generate(
        _Filler(model, how, seed, tick, guiding),
        iter(pieces),
        max(1, (how.batch_size or choose_batch_size(model)) // particles),
        first,
    )


def measure_workload(
    model: TrainedModel, gaps: Iterable[NDArray[np.bool_]], *, how: Sampling | None = None
) -> Workload:
    """What filling the `gaps` of each text takes; the network is not run.

    A gap is True where a base is to be drawn.
    """
    window, stride = model.config.data.seq_len, choose_stride(model, how or Sampling())
    return measure_planned_workload(
        model, ((text, plan_rounds(text, window, stride)) for text in gaps), how=how
    )


def measure_planned_workload(
    model: TrainedModel,
    planned: Iterable[tuple[NDArray[np.bool_], list[tuple[int, int]]]],
    *,
    how: Sampling | None = None,
) -> Workload:
    """What filling gaps takes, of texts whose windows (start, end) are known."""
    how = choose_sampler(how, model.objective, recalls=model.recalls)
    share = revealed_share(model.diffusion.schedule, how.steps or AUTO_STEPS)
    expected = partial(SAMPLERS[str(how.sampler)].evaluations, **how.options)
    records = bases = windows = 0
    evaluations = 0.0
    for text, windows_of_text in planned:
        records += 1
        left = text.copy()
        for start, end in windows_of_text:
            n = int(left[start:end].sum())
            left[start:end] = False
            bases += n
            windows += 1
            evaluations += expected(n, share)
    return Workload(records, bases, windows, evaluations)


def choose_stride(model: TrainedModel, how: Sampling) -> int:
    """How many new bases a window adds beyond the trained length."""
    return how.stride or max(1, model.config.data.seq_len // 2)


def choose_batch_size(model: TrainedModel, length: int | None = None) -> int:
    """How many texts of `length` to fill at a time: enough work that still fits the cache.

    The default length is the trained one.
    """
    window = min(model.config.data.seq_len, length or model.config.data.seq_len)
    return max(1, (_TOKENS_ON_CPU if _device(model).type == "cpu" else _TOKENS_ON_GPU) // window)


def _device(model: TrainedModel) -> torch.device:
    return next((p.device for p in model.backbone.parameters()), torch.device("cpu"))


def _generate(
    filler: "_Filler", pieces: Iterator[DraftPart], batch_size: int, first: int
) -> Iterator[Sample]:
    while group := list(islice(pieces, batch_size)):
        yield from (Sample(i, *found) for i, found in enumerate(filler.draw_all(group), first))
        first += len(group)


class _Filler:
    """A model and a way to sample, ready to fill groups of drafts."""

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling,
        seed: int,
        tick: Callable[[int], None] | None,
        guiding: Guiding | None = None,
    ) -> None:
        self.alphabet, self.how, self.seed = model.alphabet, how, seed
        self.diffusion: MaskedDiffusion = model.diffusion
        self.draw = partial(model.objective.samplers[str(how.sampler)].draw, **how.options)
        if how.allow_n:
            extra = set(self.alphabet.encode("N").tolist()) - set(self.diffusion.targets)
            self.diffusion = replace(
                self.diffusion, targets=(*self.diffusion.targets, *sorted(extra))
            )
        self.device = _device(model)
        self.denoiser = make_denoiser(model.backbone, self.alphabet.pad_id, tick)
        self.refine: Denoiser = ExactNetwork(model.backbone, self.alphabet.pad_id)
        self.memory: SampleMemory | None = None
        if how.memory != "off":
            self.memory = SampleMemory(model, how)
            self.denoiser = self.memory.wrap(self.denoiser)
            self.refine = self.memory.wrap(self.refine)
        self.forward_only = model.objective.kind == "causal"
        self.decoder = BackboneDecoder(model.backbone, tick) if self.forward_only else None
        self.guiding, self.conditional = guiding, None
        if guiding is not None:
            self.sampler = SAMPLERS[str(how.sampler)]
            guiding.check(model, self.sampler, str(how.sampler))
            if guiding.conditional is not None:
                other, pad = guiding.conditional.backbone, self.alphabet.pad_id
                self.conditional = (make_denoiser(other, pad, tick), ExactNetwork(other, pad))

    def draw_all(self, pieces: list[DraftPart]) -> list[tuple[Any, ...]]:
        """As `fill`; a piece that copies too much (`--memory novel`, repeats) is drawn again."""
        found = self.fill(pieces)
        novel = self.memory if self.memory is not None and self.memory.novel else None
        tries = TRIES if novel is not None else REDRAWS
        left = list(range(len(pieces)))
        for attempt in range(1, tries + 1):
            left = [i for i in left if not self._accepts(pieces[i], found[i][0], novel)]
            if not left:
                return found
            if attempt < tries:
                again = self.fill([pieces[i] for i in left], attempt)
                for i, (ids, *spent) in zip(left, again, strict=True):
                    spent[:2] = (a + b for a, b in zip(found[i][1:3], spent[:2], strict=True))
                    found[i] = (ids, *spent)  # evaluations, and calls where it is guided
        first = pieces[left[0]]
        if novel is not None:
            raise novel.refuse(first.number, first.ids == self.alphabet.mask_id)
        raise UsageError(
            f"no design of {tries} is without a repeat longer than is allowed",
            fix="allow longer repeats, or more edits, or keep fewer bases",
        )

    def _may_refuse(self, piece: DraftPart) -> bool:
        """Whether a finished piece may be drawn again: its log Z would be of another law."""
        by_memory = self.memory is not None and self.memory.novel
        return by_memory or (piece.together is not None and piece.together.accepts is not None)

    def _accepts(self, piece: DraftPart, ids: Ids, novel: SampleMemory | None) -> bool:
        if novel is not None:
            return novel.is_novel(ids, piece.ids == self.alphabet.mask_id)
        return piece.together is None or not piece.together.accepts or piece.together.accepts(ids)

    def fill(self, pieces: list[DraftPart], attempt: int = 0) -> list[tuple[Any, ...]]:
        """For each piece its ids, filled, and the evaluations for it; then what guided it."""
        ids = [piece.ids.copy() for piece in pieces]
        masked = [piece.ids == self.alphabet.mask_id for piece in pieces]
        if self.forward_only and any((m[:-1] & ~m[1:]).any() for m in masked):
            what = "an autoregressive model only goes on: nothing may stand after a gap"
            raise UsageError(what, fix="fill gaps with a diffusion model")
        plans = [piece.rounds for piece in pieces]
        draws = [self._draws(piece, attempt) for piece in pieces]
        nfe = [0] * len(pieces)
        guided: list[tuple[int, float | None]] = [(0, None)] * len(pieces)
        if self.guiding is not None:
            self._check_guided(pieces)
        for turn in range(max(map(len, plans), default=0)):
            rows = [i for i, plan in enumerate(plans) if turn < len(plan)]
            spans = [slice(*plans[i][turn]) for i in rows]
            # Padded on the right to the widest; padding is no mask, so nothing is drawn there.
            width = max(span.stop - span.start for span in spans)
            xt = np.full((len(rows), width), self.alphabet.pad_id, np.int64)
            u = np.zeros((2, len(rows), width))
            for row, (i, span) in enumerate(zip(rows, spans, strict=True)):
                xt[row, : span.stop - span.start] = ids[i][span]
                u[:, row, : span.stop - span.start] = draws[i][:, span]
            together = None
            if any(piece.together for piece in pieces):
                parts = [
                    (pieces[i].together, ids[i], span) for i, span in zip(rows, spans, strict=True)
                ]
                together = ConstrainedRows(parts, self.alphabet)
            if self.guiding is None:
                x0, evaluations = self._call(xt, u, together)
            else:
                some = [pieces[i] for i in rows]
                done = self._guide(xt, u, [ids[i] for i in rows], spans, some, together)
                x0, evaluations = done.x0, done.nfe
                for i, calls, log_z in zip(rows, done.calls, done.log_z, strict=True):
                    known = len(plans[i]) == 1 and not math.isnan(log_z)
                    known = known and not self._may_refuse(pieces[i])
                    guided[i] = (guided[i][0] + int(calls), float(log_z) if known else None)
            for row, (i, span) in enumerate(zip(rows, spans, strict=True)):
                # Only gaps are written: what was given stays even where a sampler would change it.
                open_here = masked[i][span]
                ids[i][span][open_here] = x0[row, : span.stop - span.start][open_here]
                nfe[i] += int(evaluations[row])
        if self.guiding is None:
            return list(zip(ids, nfe, strict=True))
        return [(a, b, *c) for a, b, c in zip(ids, nfe, guided, strict=True)]

    def _check_guided(self, pieces: list[DraftPart]) -> None:
        assert self.guiding is not None
        for piece in pieces:
            left, masks = piece.ids == self.alphabet.mask_id, []
            for start, end in piece.rounds:
                masks.append(int(left[start:end].sum()))
                left[start:end] = False
            steps, together = self.how.steps or AUTO_STEPS, piece.together is not None
            self.guiding.check_record(masks, self.sampler, steps, together=together)

    def _guide(
        self,
        xt: NDArray[np.int64],
        u: NDArray[np.float64],
        wholes: list[Ids],
        spans: list[slice],
        pieces: list[DraftPart],
        together: ConstrainedRows | None,
    ) -> GuidedFill:
        assert self.guiding is not None
        views = [piece.seen or slice(0, len(piece.ids)) for piece in pieces]
        with torch.inference_mode():
            options = replace(self._options(u), joint=together)
            chain = GuidedChain(self.draw, self.diffusion, self.denoiser, options)
            there = torch.from_numpy(xt).to(self.device)
            given = (wholes, spans, self.alphabet, self.conditional, views)
            return fill_guided(chain, there, self.guiding, *given)

    def _options(self, u: NDArray[np.float64]) -> SamplerOptions:
        return SamplerOptions(
            u_order=torch.from_numpy(u[0]).to(self.device),
            u_token=torch.from_numpy(u[1]).to(self.device),
            steps=self.how.steps or AUTO_STEPS,
            temperature=float(self.how.temperature),
            top_p=float(self.how.top_p),
            refine=self.refine,
            decoder=self.decoder,
        )

    def _draws(self, piece: DraftPart, attempt: int) -> NDArray[np.float64]:
        purposes = (Purpose.SAMPLE_ORDER, Purpose.SAMPLE_TOKEN)
        length = len(piece.ids) if piece.rounds else 0
        place = piece.number, piece.start, length, attempt
        return np.stack([uniforms_from(self.seed, purpose, *place) for purpose in purposes])

    def _call(
        self, xt: NDArray[np.int64], u: NDArray[np.float64], together: ConstrainedRows | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        with torch.inference_mode():
            options = replace(self._options(u), joint=together)
            xt_there = torch.from_numpy(xt).to(self.device)
            done = self.draw(self.diffusion, self.denoiser, xt_there, options)
            return done.x0.cpu().numpy(), done.nfe.cpu().numpy()
