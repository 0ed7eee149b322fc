"""New sequences from a trained model: record i depends on (seed, i) alone.

Position j of record i has two fixed uniforms, the j-th of the counter-based streams (seed,
SAMPLE_ORDER, i) and (seed, SAMPLE_TOKEN, i): the first places it in the order of unmasking, the
second draws its base. They are the same whatever the batch, the window or the length of the record,
so a longer request begins with the draws of a shorter one. A sampler is a deterministic function of
them and of the network. The network's float32 noise depends on batch size and thread count; a draw
so near to a boundary that this noise could decide it is decided by the same network in float64, on
one sequence alone. Hence the bytes depend on neither.

Texts longer than the trained window W are filled in rounds (`generate.infill.plan_rounds`).

A `Drawing` is what is drawn by one model: new sequences, templates filled, regions filled, designs.
Its records are FASTA with headers that say how they were drawn:

    >genodiff_000001 length=1024 seed=1 sampler=ancestral steps=256 nfe=231 checkpoint=<12 hex>

A filled template keeps its name; its own description follows ours.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.diffusion.objectives.block import BlockDiffusion
from genodiff.diffusion.sampler import SAMPLERS, revealed_share
from genodiff.domain import DNA, Domain
from genodiff.errors import CheckpointError, UsageError
from genodiff.generate.block_reading import Ids, plan_blocks
from genodiff.generate.filler import DraftPart, Filler, RecordParts, find_device
from genodiff.generate.filler import Sample as Sample
from genodiff.generate.guiding import Guiding
from genodiff.generate.infill import plan_rounds
from genodiff.generate.output_file import SampleFile
from genodiff.generate.sample_memory import SampleMemory
from genodiff.generate.sampling import AUTO_STEPS
from genodiff.generate.sampling import Sampling as Sampling
from genodiff.registry import refuse_unknown
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.trained_model import TrainedModel, name_relatives

Tick = Callable[[int], None]
"""Called after each evaluation of the network with its number of windows."""
Planned = tuple[NDArray[np.bool_], list[tuple[int, int]]]
"""A text's gaps (True where a base is to be drawn), and its windows (start, end)."""
_LEAST_BLOCK = 64  # bases: the states of a record take about as much as these
_TOKENS_ON_CPU, _TOKENS_ON_GPU = 8192, 1 << 18


class Workload(NamedTuple):
    """What a request takes; evaluations are of the network on one window, and expected."""

    records: int
    bases: int
    windows: int
    evaluations: float


def sample(
    model: TrainedModel, n: int, length: int, *, seed: int = 1, tick: Tick | None = None, **how: Any
) -> Iterator[Sample]:
    """`n` new sequences of `length` bases, in order, as they are ready.

    `length` may exceed the trained length (see `plan_rounds`). `how` are settings of `Sampling`.
    Raises `UsageError` for impossible settings, before any work.
    """
    wanted = Sampling(**{"batch_size": choose_batch_size(model, length), **how})
    drafts = (np.full(length, model.alphabet.mask_id, np.uint8) for _ in range(n))
    return infill(model, drafts, how=wanted, seed=seed, tick=tick)


def infill(
    model: TrainedModel,
    drafts: Iterable[Ids],
    *,
    how: Sampling | None = None,
    first: int = 0,
    **more: Any,
) -> Iterator[Sample]:
    """Each draft with its masks filled, in order; every other id stays. Draft i is record i.

    A draft without masks costs no evaluation; a draft that is all masks is what `sample` fills.
    `first` is the number of the first draft's record, and `more` is as in `fill_pieces`.
    """
    how, mask = how or Sampling(), model.alphabet.mask_id
    planned = ((draft, plan_draft(model, how, draft == mask)) for draft in drafts)
    pieces = (DraftPart(number, 0, *one) for number, one in enumerate(planned, first))
    return fill_pieces(model, pieces, how=how, first=first, **more)


def fill_pieces(
    model: TrainedModel,
    pieces: Iterable[DraftPart],
    *,
    how: Sampling | None = None,
    seed: int = 1,
    tick: Tick | None = None,
    first: int = 0,
    guiding: Guiding | None = None,
    memory: SampleMemory | None = None,
    parts: RecordParts | None = None,
) -> Iterator[Sample]:
    """Each piece with its masks filled, in order, numbered from `first`.

    `tick` is told after each call of the network how many windows it held. With `guiding` each
    piece is guided, window after window. `memory` is that of `how`, where it is open already, and
    knows the genome of the pieces. `parts` are of records that are one piece, and not guided.
    """
    how = choose_sampler(how, model)
    window = model.config.data.seq_len
    if how.stride is not None and how.stride > window:
        fix = f"give at most {window}"
        raise UsageError(f"stride {how.stride} is above the trained length", fix=fix)
    if not 0 <= seed < 1 << 64:
        raise UsageError(f"seed {seed} is not between 0 and 2^64 - 1", fix="give a smaller number")
    particles = 1 if guiding is None else guiding.particles
    batch_size = max(1, (how.batch_size or choose_batch_size(model)) // particles)
    filler = Filler(model, how, seed, tick, guiding, memory, parts)
    filled = chain.from_iterable(map(filler.draw_all, _group(iter(pieces), batch_size)))
    return (Sample(number, *found) for number, found in enumerate(filled, first))


def _group(pieces: Iterator[DraftPart], size: int) -> Iterator[list[DraftPart]]:
    while group := list(islice(pieces, size)):
        yield group


def choose_sampler(how: Sampling | None, model: TrainedModel) -> Sampling:
    """`how` with its sampler named, and its memory: on for a model that was trained with one.

    Raises `UsageError` for a sampler that does not fit the model's objective.
    """
    objective = model.objective
    how, known = how or Sampling(), objective.samplers
    if how.memory is None:
        how = replace(how, memory="on" if model.recalls else "off")
    if how.sampler is None:
        how = replace(how, sampler=next(iter(known)))
    if how.sampler not in known:
        what = f"sampler '{how.sampler}' does not go with objective {objective.name}"
        raise UsageError(what, fix=f"choose {', '.join(known)}")
    if how.memory != "off" and objective.kind != "masked":
        what = f"--memory is for masked networks, and this is {objective.name}"
        raise UsageError(what, fix="leave it out")
    if how.allow_n and objective.kind == "uniform":
        what = "--allow-n is for networks of masks: N is not part of the noise"
        raise UsageError(what, fix="leave it out")
    if how.stride is not None and objective.kind == "block":
        what = "--stride is for windows, and this model draws one block after the other"
        raise UsageError(what, fix="leave it out")
    own, none = known[str(how.sampler)].settings, "leave --sampler-option out"
    refuse_unknown(f"sampler '{how.sampler}'", how.options, own, none)
    return how


def plan_draft(
    model: TrainedModel, how: Sampling, gaps: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """The windows (start, end) of a text's gaps, or its blocks, one after the other."""
    if isinstance(model.objective, BlockDiffusion):
        return plan_blocks(gaps, model.objective.block)
    return plan_rounds(gaps, model.config.data.seq_len, choose_stride(model, how))


def measure_workload(model: TrainedModel, how: Sampling, planned: Iterable[Planned]) -> Workload:
    """What filling the gaps of texts takes; the network is not run."""
    how = choose_sampler(how, model)
    share = revealed_share(model.diffusion.schedule, how.step_count or AUTO_STEPS)
    expected = SAMPLERS[str(how.sampler)].count_with(how.options)
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
    if isinstance(model.objective, BlockDiffusion):
        window = min(max(model.objective.block, _LEAST_BLOCK), length or window)
    tokens = _TOKENS_ON_CPU if find_device(model).type == "cpu" else _TOKENS_ON_GPU
    return max(1, tokens // window)


class Drawing(ABC):
    """`n` new sequences, or `n` fillings of each template; sample i is a function of (seed, i)."""

    domain: ClassVar[Domain] = DNA
    guiding: Guiding | None = None
    genome: LetterSource | None = None
    """The genome whose regions are filled, which each leave their own locus out."""
    lengths: list[int]
    """Number of positions of each sequence or template."""
    is_whole: ClassVar[bool] = True
    """Whether each record is one piece, of which parts may be kept."""
    parts: RecordParts | None = None
    """What is kept of records that are not whole."""
    states: int | None = None
    """Of the automata of constraints, where there are some."""

    def __init__(
        self, model: TrainedModel, how: Sampling, n: int, sources: dict[str, Any] | None = None
    ) -> None:
        """Check that the model and the sampler fit.

        `sources` is what a sidecar says of the files that are read. Raises `CheckpointError` for a
        model of another domain, and `UsageError` for a sampler that does not fit the model's
        objective.
        """
        if model.alphabet.domain != self.domain.name:
            fix = f"give a {self.domain.name} run, or another flag than {self.domain.output_flag}"
            raise CheckpointError(f"is a {model.alphabet.domain} model", file=model.run, fix=fix)
        self.model, self.how, self.n = model, choose_sampler(how, model), n
        self.sources = sources or {}

    @cached_property
    def memory(self) -> SampleMemory | None:
        """The memory of the training genome, where samples are drawn with it."""
        if self.how.memory == "off":
            return None
        return SampleMemory(self.model, self.how, self.genome)

    def drafts(self) -> Iterable[Ids]:
        """The ids of each sequence or template, with masks where it is filled."""
        raise NotImplementedError

    def plan(self) -> Iterator[Planned]:
        """What one filling of each template fills, and its windows."""
        return (self._cut(draft) for draft in self.drafts())

    def _cut(self, draft: Ids) -> Planned:
        gaps = draft == self.model.alphabet.mask_id
        return gaps, plan_draft(self.model, self.how, gaps)

    def pieces(self, first: int) -> Iterator[DraftPart]:
        """What the network is to fill, of samples from number `first` on."""
        each = ((draft, self._cut(draft)[1]) for draft in self.drafts())
        copies = (one for one in each for _ in range(self.n))
        for number, (draft, windows) in islice(enumerate(copies), first, None):
            yield DraftPart(number, 0, draft, windows)

    def draw(self, seed: int, first: int = 0, tick: Tick | None = None) -> Iterator[Sample]:
        """The samples from number `first` on."""
        return fill_pieces(
            self.model, self.pieces(first), how=self.how, seed=seed, tick=tick, first=first,
            guiding=self.guiding, memory=self.memory, parts=self.parts if self.is_whole else None,
        )  # fmt: skip

    @abstractmethod
    def write(
        self, out: SampleFile, samples: Iterator[Sample], seed: int, request: str
    ) -> dict[str, Any]:
        """Write all samples to `out`; what a sidecar says of them, "records" and all.

        `request` is the digest that names the request.
        """

    @abstractmethod
    def describe(self) -> Any:
        """What is sampled, as plain values: equal for equal drawings."""

    def name(self, number: int) -> str:
        """What a record is called."""
        return f"genodiff_{number + 1:06d}"

    def identify(self) -> dict[str, Any]:
        """What decides the samples beside the fields of a request."""
        return {
            "checkpoint": self.model.digest,
            "device": next(self.model.backbone.parameters()).device.type,
            "steps": self.how.step_count,
            "memory": None if self.memory is None else self.memory.identify(),
            "of": self.describe(),
        }

    def workload(self) -> Workload:
        """The network calls that one filling of each template needs."""
        return measure_workload(self.model, self.how, self.plan())

    def tell(
        self, seed: int, records: list[dict[str, Any]], evaluations: int | None = None
    ) -> dict[str, Any]:
        """What every sidecar says; `evaluations` where records share some."""
        model, how = self.model, self.how
        if evaluations is None:
            evaluations = sum(one["nfe"] for one in records)
        return {
            "seed": seed,
            "sampler": how.sampler,
            **({"sampler_options": dict(how.options)} if how.options else {}),
            "steps": count_steps(how),
            "temperature": how.temperature,
            "top_p": how.top_p,
            **(find_block(model) or {"stride": choose_stride(model, how)}),
            **({"allow_n": how.allow_n} if self.domain is DNA else {}),
            **self.sources,
            **({} if self.guiding is None else self.guiding.describe()),
            **({} if self.memory is None else self.memory.describe()),
            "run": model.run.name,
            "step": model.step,
            "checkpoint": model.digest,
            **({} if model.label is None else {"label": model.label}),
            **name_relatives(model),
            "evaluations": evaluations,
            "records": records,
        }

    def describe_record(self, seed: int, length: int, nfe: int) -> str:
        """What a record's header says of it, with the settings that are not the default."""
        how, usual = self.how, Sampling()
        fine = {name: getattr(how, name) for name in ("temperature", "top_p", "stride", "allow_n")}
        fine["memory"] = None if how.memory == "off" else how.memory
        given = {name: value for name, value in fine.items() if value != getattr(usual, name)}
        more = "".join(f" {name}={value}" for name, value in {**given, **how.options}.items())
        draw = f"sampler={how.sampler} steps={count_steps(how) or nfe}{more}"
        return f"length={length} seed={seed} {draw} nfe={nfe} checkpoint={self.model.digest}"


def find_block(model: TrainedModel) -> dict[str, int]:
    """The bases of a block, of a model that draws one after the other; else nothing."""
    return {"block": model.objective.block} if isinstance(model.objective, BlockDiffusion) else {}


def name_filling(name: str, n: int, number: int) -> str:
    """The name of a filled template: its own, with a number where it is filled `n` times."""
    return name if n == 1 else f"{name}.{number % n + 1}"


def count_steps(how: Sampling) -> int | None:
    """The number of steps in which each window is filled; None if the sampler has no steps."""
    return (how.step_count or AUTO_STEPS) if SAMPLERS[str(how.sampler)].uses_steps else None
