"""What an evaluation is asked for: data in the place of the run's own, windows, masks, limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt

from genodiff.data.recipe import ALL, SPLITS
from genodiff.diffusion.registries import SAMPLERS
from genodiff.domain import DNA, DOMAINS, TEXT
from genodiff.errors import UsageError, did_you_mean
from genodiff.jobs.options import Block, Offline, Seed
from genodiff.jobs.request import Option, Options

RANDOM = "random"
"""The order of `first-hitting`, drawn for each window by the seed."""
_OF_DNA = {"domain": DNA.name}
_OF_TEXT = {"domain": TEXT.name}


@dataclass(frozen=True, kw_only=True)
class EvalOptions(Options):
    """What is scored, and how. Options that mean something in one domain only are marked so."""

    split: Annotated[
        Literal["test", "valid", "train", "all"],
        Option("Split to evaluate; all: every base of the file."),
    ] = "test"
    fasta: Annotated[
        str | Path | None, Option("FASTA file instead of the run's training genome.", is_input=True)
    ] = field(default=None, metadata=_OF_DNA)
    text: Annotated[
        str | Path | None,
        Option("Text file or folder instead of the run's training text.", is_input=True),
    ] = field(default=None, metadata=_OF_TEXT)
    recipe: Annotated[
        Sequence[str] | None,
        Option("Zero-shot: another text recipe, NAME or NAME=FILE_OR_FOLDER; repeatable."),
    ] = field(default=None, metadata=_OF_TEXT)
    bed: Annotated[
        str | Path | None,
        Option(
            "BED file whose 4th column names the splits; the strand is not used.", is_input=True
        ),
    ] = field(default=None, metadata=_OF_DNA)
    repeats: Annotated[int, Ge(1), Option("Masks per window: more give a narrower interval.")] = 1
    max_windows: Annotated[
        int | None,
        Ge(1),
        Option("Evaluate at most this many windows, evenly spread over the split."),
    ] = None
    max_minutes: Annotated[
        float | None,
        Gt(0),
        Option(
            "Evaluate as many windows, evenly spread, as fit into about this time, including "
            "the baselines; a baseline that takes more than half of it is left out."
        ),
    ] = None
    soft_masked: Annotated[
        bool, Option("0: soft-masked bases are visible but not counted.", is_digit=True)
    ] = field(default=True, metadata=_OF_DNA)
    baselines: Annotated[
        bool, Option("Counting baselines from the train split; cached.", decides="output")
    ] = True
    mixture: Annotated[
        bool | None,
        Option(
            "Adaptive mixtures of contexts and copies (default: if they take little time).",
            decides="output",
        ),
    ] = field(default=None, metadata=_OF_DNA)
    context: Annotated[
        Literal["window", "contig"],
        Option(
            "Context of a window: itself, or also the bases around it, in blocks of 65,536 "
            "bases (or eight windows, if that is more); a model of --block sees everything "
            "before it."
        ),
    ] = field(default="window", metadata=_OF_DNA)
    memory: Annotated[
        Literal["on", "off", "exhaustive"] | None,
        Option(
            "on: with retrieval from the training genome, beside the network alone (default: "
            "on for a run of train --memory); exhaustive: compare every position of the "
            "genome, not only those that the index returns."
        ),
    ] = field(default=None, metadata=_OF_DNA)
    order: Annotated[
        str | None,
        Option(
            "Also the exact likelihood of drawing the windows in this order: left-to-right, "
            "both-ends, confidence, entropy-bounded, random, or another sampler's."
        ),
    ] = field(default=None, metadata=_OF_DNA)
    order_options: Annotated[
        Mapping[str, float] | None,
        Option(
            "Setting of the order, such as at_once=4, bound=0.5 or steps=256 (default: one "
            "base with each evaluation); one or several.",
            ("--order-option",),
        ),
    ] = field(default=None, metadata=_OF_DNA)
    order_evaluations: Annotated[
        int | None,
        Ge(1),
        Option("For a fixed order, use this many evaluations of each window, evenly spread [all]."),
    ] = field(default=None, metadata=_OF_DNA)
    block: Block = None
    batch_size: Annotated[
        int, Ge(1), Option("Windows per batch: affects the speed, not the values.")
    ] = 32
    seed: Seed = 1
    offline: Offline = False

    def check_domain(self, domain: str) -> None:
        """Raises `UsageError` for options of the other domain, and for what no bound says."""
        for option in fields(EvalOptions):
            other = option.metadata.get("domain", domain)
            if other != domain and getattr(self, option.name) != option.default:
                here = DOMAINS[domain]
                raise UsageError(
                    f"--{option.name.replace('_', '-')} is for {DOMAINS[other].title}, and this "
                    f"is a {here.title} run",
                    fix=f"leave it out; {here.title} is given with {here.input_flag}",
                )
        if self.split == ALL and domain != DNA.name:
            raise UsageError(
                f"--split {ALL} is for DNA, and this is a {DOMAINS[domain].title} run",
                fix=f"choose {', '.join(SPLITS)}",
            )
        self._check_order()
        self.check_memory(self.memory not in (None, "off"))

    def _check_order(self) -> None:
        known = [RANDOM, *SAMPLERS.list_names()]
        if self.order is not None and self.order not in known:
            raise UsageError(f"no order '{self.order}'; {did_you_mean(self.order, known)}")
        for flag, given in (
            ("--order-option", bool(self.order_options)),
            ("--order-evaluations", self.order_evaluations is not None),
        ):
            if given and self.order is None:
                raise UsageError(f"{flag} is a setting of --order", fix="give --order, too")
        if self.order is not None and self.context != "window":
            what = "--order and --context contig exclude each other"
            raise UsageError(what, fix="leave one of them out")

    def check_memory(self, mixed: bool) -> None:
        """Raises `UsageError` for options that a memory, where one is mixed in, cannot have."""
        if mixed and self.context != "window":
            what = f"--memory {self.memory or 'on'} and --context contig exclude each other"
            raise UsageError(what, fix="leave one of them out, or give --memory off")

    @property
    def one(self) -> str | None:
        """The recipe of one evaluation."""
        return self.recipe[0] if self.recipe else None

    def inputs(self) -> dict[str, Any]:
        """Settings of the run that these options replace."""
        given: dict[str, Any] = {
            name: str(value)
            for name, value in (("fasta", self.fasta), ("bed", self.bed), ("recipe", self.one))
            if value is not None
        }
        if self.text is not None or self.recipe is not None:
            given["text"] = None if self.text is None else str(Path(self.text).absolute())
        return given

    def describe(self) -> dict[str, Any]:
        """All of it as plain values, as `evaluate` takes it."""
        told = {one.name: getattr(self, one.name) for one in fields(EvalOptions)}
        told["recipe"] = self.one
        return {key: str(one) if isinstance(one, Path) else one for key, one in told.items()}
