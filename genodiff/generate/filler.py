"""Filling the masks of texts: the network, a memory and a guidance, window after window.

A window of a genome leaves its own locus out of the memory. Windows of other loci are then filled
in calls of their own, which changes no byte: a record does not depend on its batch.

A record is a function of (seed, number), and what a network keeps of the past one of what is filled
(`block_reading.py`). So of a long record that is not whole yet the letters so far are all that is
kept, with the evaluations that they took: a job that is stopped goes on after them. They go on to
the same bytes in any batch.
"""

import copy
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.backbones.blocks import check_network
from genodiff.backbones.caduceus import Caduceus
from genodiff.counter import Purpose, uniforms_from
from genodiff.diffusion.guided import GuidedChain
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.mixed_noise import Noising
from genodiff.diffusion.objectives.uniform import UniformNoise
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions
from genodiff.errors import UsageError
from genodiff.generate.block_reading import ByRows, Ids, RecordBlocks
from genodiff.generate.constrained import REDRAWS, ConstrainedPiece, ConstrainedRows
from genodiff.generate.guiding import Guiding, Seen
from genodiff.generate.sample_memory import TRIES, SampleMemory
from genodiff.generate.sampling import AUTO_STEPS, Sampling
from genodiff.memory.memory import NOWHERE
from genodiff.runs.denoiser import BackboneDecoder, ExactNetwork, make_denoiser
from genodiff.runs.trained_model import TrainedModel

Interval = tuple[int, int]
_PURPOSES = (Purpose.SAMPLE_ORDER, Purpose.SAMPLE_TOKEN)
EACH = 1024
"""Positions of a record that are drawn before they are kept."""


class Sample(NamedTuple):
    """One record: its number (from 0), its ids, and how often the network was evaluated for it."""

    number: int
    ids: Ids
    nfe: int
    calls: int | None = None  # sequences that an oracle was asked for, where it was guided
    log_z: float | None = None  # log of the estimate of E[e^(strength x reward)], of `smc`

    def pack(self) -> bytes:
        """All but the number, as bytes."""
        ids = np.ascontiguousarray(self.ids)
        head = json.dumps([ids.dtype.str, self.nfe, self.calls, self.log_z])
        return head.encode() + b"\n" + ids.tobytes()

    @classmethod
    def unpack(cls, number: int, packed: bytes) -> "Sample":
        """The record whose bytes these are."""
        head, _, ids = packed.partition(b"\n")
        kind, *spent = json.loads(head)
        return cls(number, np.frombuffer(ids, kind), *spent)


class RecordParts:
    """The parts of records from number `first` on: those that are kept, and how to `keep` more."""

    def __init__(
        self, kept: Iterable[bytes], first: int = 0, keep: Callable[[bytes], None] | None = None
    ) -> None:
        self._keep = keep
        self._kept: dict[int, list[tuple[int, int, int, Ids]]] = {}
        self._ends: dict[int, int] = {}
        for part in kept:
            head, _, ids = part.partition(b"\n")
            number, start, rounds, nfe, kind = json.loads(head)
            if number >= first:
                own = start, rounds, nfe, np.frombuffer(ids, kind)
                self._kept.setdefault(number, []).append(own)

    def put_back(self, number: int, ids: Ids) -> tuple[int, int]:
        """Write what is kept of a record into `ids`; its rounds that are done, its evaluations."""
        rounds = nfe = 0
        for start, rounds, nfe, part in self._kept.pop(number, []):  # noqa: B007
            ids[start : start + len(part)] = part
            self._ends[number] = start + len(part)
        return rounds, nfe

    def add(
        self, number: int, ids: Ids, plan: Sequence[tuple[int, int]], done: int, nfe: int
    ) -> None:
        """Keep a record whose first `done` of the rounds of its `plan` are filled, if due."""
        start, end = self._ends.get(number, plan[0][0]), plan[done - 1][1]
        if self._keep is None or done == len(plan) or end - start < EACH:
            return
        head = json.dumps([number, start, done, nfe, ids.dtype.str])
        self._keep(head.encode() + b"\n" + ids[start:end].tobytes())
        self._ends[number] = end


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
    contig: str | None = None
    """The contig of a genome that `start` is on."""
    stood: Ids | None = None
    """What its masks begin with, noised to the time `from_noise`; None is nothing."""
    from_noise: float = 1.0


class _Networks(NamedTuple):
    """What draws a window: the network, the same in double precision, and those of `cfg`."""

    denoiser: Denoiser
    refine: Denoiser
    conditional: tuple[Denoiser, Denoiser] | None


class Filler:
    """A model and a way to sample, ready to fill groups of drafts.

    `memory` is one that is open already. `parts` are as in `sample.fill_pieces`.
    """

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling,
        seed: int,
        tick: Callable[[int], None] | None,
        guiding: Guiding | None = None,
        memory: SampleMemory | None = None,
        parts: RecordParts | None = None,
    ) -> None:
        self.alphabet, self.how, self.seed = model.alphabet, how, seed
        self.diffusion: MaskedDiffusion = model.diffusion
        self.draw = partial(model.objective.samplers[str(how.sampler)].draw, **how.options)
        if how.allow_n:
            extra = set(self.alphabet.encode("N").tolist()) - set(self.diffusion.targets)
            targets = (*self.diffusion.targets, *sorted(extra))
            self.diffusion = replace(self.diffusion, targets=targets)
        self.noising = None
        if isinstance(model.objective, UniformNoise):
            self.noising = Noising(model.objective.mask_share)
        self.device, pad = find_device(model), self.alphabet.pad_id
        self.memory = memory
        if how.memory != "off" and memory is None:
            self.memory = SampleMemory(model, how)
        self.model, self.tick = model, tick
        causal = model.objective.kind == "causal"
        self.decoder = BackboneDecoder(model.backbone, tick) if causal else None
        self.in_blocks = model.objective.kind == "block"
        if self.in_blocks:
            check_network(model.backbone)
        self.guiding, conditional = guiding, None
        self.parts = parts if guiding is None else None
        if guiding is not None:
            self.sampler = SAMPLERS[str(how.sampler)]
            guiding.check(model, self.sampler, str(how.sampler))
            if guiding.conditional is not None:
                other = guiding.conditional.backbone
                conditional = (make_denoiser(other, pad, tick), ExactNetwork(other, pad))
        exact = ExactNetwork(model.backbone, pad)
        self.networks = _Networks(make_denoiser(model.backbone, pad, tick), exact, conditional)

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
            f"none of {tries} designs satisfies the conditions on complete designs: no repeat "
            "of a genome, and nothing across the origin of a circle that is all free",
            fix="allow longer repeats, or more edits, or keep other bases",
        )

    def _accepts(self, piece: DraftPart, ids: Ids, novel: SampleMemory | None) -> bool:
        if novel is not None:
            return novel.is_novel(ids, piece.ids == self.alphabet.mask_id)
        return piece.together is None or not piece.together.accepts or piece.together.accepts(ids)

    @torch.inference_mode()
    def fill(self, pieces: list[DraftPart], attempt: int = 0) -> list[tuple[Any, ...]]:
        """For each piece its ids, filled, and the evaluations for it; then what guided it."""
        ids = [piece.ids.copy() for piece in pieces]
        draws = []
        for piece in pieces:
            place = piece.number, piece.start, len(piece.ids) * bool(piece.rounds), attempt
            draws.append([uniforms_from(self.seed, purpose, *place) for purpose in _PURPOSES])
        for of, piece, (order, _) in zip(ids, pieces, draws, strict=True):
            self._put_back(of, piece, order)
        masked = [of == self.alphabet.mask_id for of in ids]
        causal = self.decoder is not None
        if causal and any((m[:-1] & ~m[1:]).any() for m in masked):
            raise refuse_after_gap(self.model)
        done, nfe = self._go_on(pieces, ids, attempt)
        blocks = self._open_blocks(pieces, ids)
        guided: list[tuple[int, float | None]] = [(0, None)] * len(pieces)
        if self.guiding is not None:
            for piece in pieces:
                left, masks = piece.ids == self.alphabet.mask_id, []
                for start, end in piece.rounds:
                    masks.append(int(left[start:end].sum()))
                    left[start:end] = False
                steps, together = self.how.step_count or AUTO_STEPS, piece.together is not None
                letters = len(self.diffusion.targets)
                self.guiding.check_record(masks, self.sampler, steps, letters, together=together)
        for turn, rows, spans, own in self._list_rounds(pieces, done):
            # Padded on the right to the widest; padding is no mask, so nothing is drawn there.
            width = max(span.stop - span.start for span in spans)
            xt = np.full((len(rows), width), self.alphabet.pad_id, np.int64)
            u = np.zeros((2, len(rows), width))
            for row, (i, span) in enumerate(zip(rows, spans, strict=True)):
                xt[row, : span.stop - span.start] = ids[i][span]
                u[:, row, : span.stop - span.start] = [one[span] for one in draws[i]]
            networks = self._remember(own)
            if blocks is not None:
                blocks.take(rows, [span.start for span in spans])
                networks = _Networks(ByRows(blocks.denoiser), ByRows(blocks.refine), None)
            windows = [(pieces[i], ids[i], span) for i, span in zip(rows, spans, strict=True)]
            x0, evaluations, *steered = self._draw(networks, xt, u, windows)
            for i, calls, log_z in zip(rows, *steered, strict=True) if steered else ():
                # Of a piece that may be drawn again, log Z would be of another law.
                piece, again = pieces[i], self.memory is not None and self.memory.novel
                again = again or (piece.together is not None and piece.together.accepts is not None)
                known = len(piece.rounds) == 1 and not math.isnan(log_z) and not again
                guided[i] = (guided[i][0] + int(calls), float(log_z) if known else None)
            for row, (i, span) in enumerate(zip(rows, spans, strict=True)):
                # Only gaps are written: what was given stays even where a sampler would change it.
                open_here = masked[i][span]
                ids[i][span][open_here] = x0[row, : span.stop - span.start][open_here]
                nfe[i] += int(evaluations[row])
                if self.parts is not None and not attempt:
                    self.parts.add(pieces[i].number, ids[i], pieces[i].rounds, turn + 1, nfe[i])
        if self.guiding is None:
            return list(zip(ids, nfe, strict=True))
        return [(a, b, *c) for a, b, c in zip(ids, nfe, guided, strict=True)]

    def _go_on(
        self, pieces: list[DraftPart], ids: list[Ids], attempt: int
    ) -> tuple[list[int], list[int]]:
        """The rounds of each piece that an earlier call has filled, and their evaluations."""
        if self.parts is None or attempt:
            return [0] * len(pieces), [0] * len(pieces)
        found = [self.parts.put_back(one.number, of) for one, of in zip(pieces, ids, strict=True)]
        done, nfe = (list(each) for each in zip(*found, strict=True))
        if self.tick is not None:
            self.tick(sum(nfe))
        return done, nfe

    def _put_back(self, ids: Ids, piece: DraftPart, u: NDArray[np.float64]) -> None:
        """Where noise is masks: put back into `ids` what stood there and is not noised."""
        if piece.stood is None or self.noising is not None:
            return
        time = torch.tensor(piece.from_noise, dtype=torch.float64)
        kept = (ids == self.alphabet.mask_id) & (u >= float(self.diffusion.schedule.masked(time)))
        kept &= np.isin(piece.stood, self.diffusion.targets)
        ids[kept] = piece.stood[kept]

    def _begin(
        self, windows: list[tuple[DraftPart, Ids, slice]], xt: NDArray[np.int64]
    ) -> Noising | None:
        """Where noise is letters: what windows begin with."""
        if self.noising is None or windows[0][0].stood is None:
            return self.noising
        real = xt.copy()
        for row, (piece, _, span) in enumerate(windows):
            assert piece.stood is not None
            real[row, : span.stop - span.start] = piece.stood[span]
        there = torch.from_numpy(real).to(self.device)
        return self.noising._replace(start=windows[0][0].from_noise, real=there)

    @cached_property
    def _exact_blocks(self) -> Caduceus:
        return copy.deepcopy(check_network(self.model.backbone)).double()

    def _open_blocks(self, pieces: list[DraftPart], ids: list[Ids]) -> RecordBlocks | None:
        """The records block by block; None for a model that draws whole windows."""
        if not self.in_blocks:
            return None
        if any(piece.together is not None or piece.stood is not None for piece in pieces):
            what = "redesign needs a model that draws whole windows, and this one draws blocks"
            raise UsageError(what, fix="give a run of --objective mdlm")
        rounds = [piece.rounds for piece in pieces]
        return RecordBlocks(self.model, lambda: self._exact_blocks, ids, rounds, self.tick)

    def _list_rounds(
        self, pieces: list[DraftPart], done: list[int]
    ) -> Iterator[tuple[int, list[int], list[slice], Interval]]:
        """Of each round the pieces whose windows are filled together, these, and their own locus.

        The first rounds of each piece are `done`.
        """
        for turn in range(max((len(piece.rounds) for piece in pieces), default=0)):
            alike: dict[Interval, list[int]] = {}  # by what of the memory a window must not read
            for i, piece in enumerate(pieces):
                if done[i] <= turn < len(piece.rounds):
                    own, (start, end) = NOWHERE, piece.rounds[turn]
                    if self.memory is not None and piece.contig is not None:
                        place = piece.contig, piece.start + start, piece.start + end
                        own = self.memory.leave_out(place)
                    alike.setdefault(own, []).append(i)
            for own, rows in alike.items():
                yield turn, rows, [slice(*pieces[i].rounds[turn]) for i in rows], own

    def _remember(self, own: Interval) -> _Networks:
        """The networks with the memory, where there is one, but for a locus."""
        if self.memory is None:
            return self.networks
        memory, (denoiser, refine, conditional) = self.memory, self.networks
        if conditional is not None:
            conditional = memory.wrap(conditional[0], own), memory.wrap(conditional[1], own)
        return _Networks(memory.wrap(denoiser, own), memory.wrap(refine, own), conditional)

    def _draw(
        self,
        networks: _Networks,
        xt: NDArray[np.int64],
        u: NDArray[np.float64],
        windows: list[tuple[DraftPart, Ids, slice]],
    ) -> tuple[NDArray[Any], ...]:
        """The windows filled, and evaluations; with guidance then the oracle's calls, and log Z."""
        joint, there = None, torch.from_numpy(xt).to(self.device)
        if any(piece.together for piece, _, _ in windows):
            rows = [(piece.together, ids, span) for piece, ids, span in windows]
            joint = ConstrainedRows(rows, self.alphabet)
        options = SamplerOptions(
            u_order=torch.from_numpy(u[0]).to(self.device),
            u_token=torch.from_numpy(u[1]).to(self.device),
            steps=self.how.step_count or AUTO_STEPS,
            temperature=float(self.how.temperature),
            top_p=float(self.how.top_p),
            refine=networks.refine,
            decoder=self.decoder,
            causal=self.decoder is not None,
            joint=joint,
            noising=self._begin(windows, xt) if self.guiding is None else None,
        )
        if self.guiding is None:
            done = self.draw(self.diffusion, networks.denoiser, there, options)
            return done.x0.cpu().numpy(), done.nfe.cpu().numpy()
        chain = GuidedChain(self.draw, self.diffusion, networks.denoiser, options)
        seen = [Seen(ids, span, one.seen or slice(0, len(ids))) for one, ids, span in windows]
        guided = self.guiding.fill(chain, there, seen, self.alphabet, networks.conditional)
        return tuple(part.cpu().numpy() for part in guided)


def find_device(model: TrainedModel) -> torch.device:
    """Where the network is."""
    return next((p.device for p in model.backbone.parameters()), torch.device("cpu"))


def refuse_after_gap(model: TrainedModel) -> UsageError:
    """The error of a gap that something stands after, for a model that only goes on."""
    what = f"a model of objective {model.objective.name} only continues a sequence: "
    what += "a gap must be at the end"
    return UsageError(what, fix="fill gaps with a model of --objective mdlm")
