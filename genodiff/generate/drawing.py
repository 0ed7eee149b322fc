"""What is drawn by one model: new sequences, templates filled, regions filled, designs.

Records are FASTA with headers that say how they were drawn:

    >genodiff_000001 length=1024 seed=1 sampler=ancestral steps=256 nfe=231 checkpoint=<12 hex>

A filled template keeps its name; its own description follows ours.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from genodiff.diffusion.objectives.block import BlockDiffusion
from genodiff.diffusion.sampler import SAMPLERS
from genodiff.domain import DNA, Domain
from genodiff.errors import CheckpointError
from genodiff.generate.filler import DraftPart
from genodiff.generate.guiding import Guiding
from genodiff.generate.output_file import SampleFile
from genodiff.generate.sample import (
    Planned,
    Tick,
    Workload,
    choose_stride,
    fill_pieces,
    measure_workload,
    plan_draft,
)
from genodiff.generate.sample_memory import SampleMemory
from genodiff.generate.samples import Ids, RecordParts, Sample, choose_sampler
from genodiff.generate.sampling import AUTO_STEPS, Sampling
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.trained_model import TrainedModel, name_relatives


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
        """What a record's header says of it."""
        draw = describe_draw(self.how, nfe)
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


def describe_draw(how: Sampling, nfe: int) -> str:
    """How a record was drawn, for its header, with the settings that are not the default."""
    said = f"sampler={how.sampler} steps={count_steps(how) or nfe}"
    fine = {
        "temperature": how.temperature,
        "top_p": how.top_p,
        "stride": how.stride,
        "allow_n": how.allow_n,
        "memory": None if how.memory == "off" else how.memory,
    }
    usual = Sampling()
    given = {name: value for name, value in fine.items() if value != getattr(usual, name)}
    return said + "".join(f" {name}={value}" for name, value in {**given, **how.options}.items())
