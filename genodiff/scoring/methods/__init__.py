"""How a variant is scored: its options, the registry of methods, and one file each. No torch.

A method is a class in a file of this folder, or of a plug-in:

    @SCORE_METHODS.register("llr")
    class Llr(ScoreMethod): ...

All that names, checks, plans or runs a method asks it here, so a file that is put here is found.
`auto` is no method. For a model with relatives it is `WITH_RELATIVES`. Otherwise it asks the
methods, in their order, which spans they take; `nelbo` takes all that is left, so a method that
comes after it is used where it is named.

The modules of methods are imported for a help text. So none of them imports torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from annotated_types import Ge

from genodiff.errors import UsageError, did_you_mean
from genodiff.jobs.options import Memory, Seed
from genodiff.jobs.request import Option, Options
from genodiff.registry import Registry
from genodiff.scoring.allele_score import LONGEST_SPAN
from genodiff.scoring.span_scores import Steps
from genodiff.scoring.spelling_pair import SpellingPair

if TYPE_CHECKING:
    from genodiff.memory.tables import Floats
    from genodiff.memory.text import Codes
    from genodiff.runs.related_reader import RelatedReader
    from genodiff.runs.training_memory import Place
    from genodiff.scoring.masked_reader import MaskedReader

TWICE = "2x"
AUTO = "auto"
"""Chooses a method for each variant, by the lengths of its spans."""
WITH_RELATIVES = "profiles"
"""What `auto` is for a model with relatives."""
Widths = tuple[int, int]
"""Bases of the spans in which REF and ALT differ."""


class ScoreMethod(ABC):
    """One way of scoring a pair of spellings."""

    help: ClassVar[str]
    """What it compares, for the help text of `--method`."""
    taken_for: ClassVar[str] = ""
    """What `auto` takes it for, in words that follow its name; empty where `fits` takes nothing."""
    takes_sites: ClassVar[bool] = False
    """Whether an SNV's score is log p(alt) - log p(ref) at its base: such sites share windows, and
    `start` is not called for them."""
    visible: ClassVar[bool] = False
    """Whether the network sees the bases that it is asked about: for those trained with a teacher.
    """
    until_se: ClassVar[bool] = False
    """Whether it goes on until the standard error is `options.se`. Then `windows` is the least that
    it takes, and `options.max_evaluations` the most."""

    needs_relatives: ClassVar[bool] = False
    """Whether it counts a model's relatives (`--relatives`) at the base of an SNV, and is refused
    without them."""

    def time_to_prepare(self, network: RelatedReader | None) -> float:
        """About the seconds of what its first use fits to a model's relatives, for a plan.

        `network` None: the relatives are not ready.
        """
        return 0.0

    @property
    def shares_windows(self) -> bool:
        """Whether SNVs share windows."""
        return self.takes_sites or self.needs_relatives

    def fits(self, widths: Widths) -> bool:
        """Whether `auto` takes it for spans of so many bases."""
        return False

    def read_around(self, network: RelatedReader, over: Floats, windows: Codes) -> Floats | None:
        """With `needs_relatives`: (B, L, 4, ...), what `count` reads beside a column.

        `over` (G, B, L, 4): what each genome has over windows (B, L).
        """
        return None

    def count(
        self, network: RelatedReader, over: Floats, ref: int, around: Floats | None
    ) -> Floats:
        """With `needs_relatives`: the score (4,) of each base in place of `ref`, in nats.

        `over` (G, 4): what each genome has over the position. `around` (4, ...): its part of
        `read_around`.
        """
        raise NotImplementedError

    @abstractmethod
    def windows(self, ref: int, alt: int) -> int:
        """About how many windows a score of spans of so many bases takes."""

    @abstractmethod
    def start(
        self, reader: MaskedReader, pair: SpellingPair, options: ScoreOptions, place: Place | None
    ) -> Steps:
        """The score of `pair`: a generator as in `span_scores`, whose `Estimate` is in nats.

        `pair` is on the strand on which `reader` reads it, so the same on either. `place` is the
        contig, start and end of its window, for what reads a memory; None where it has none. An
        `Estimate` of NaN is no score, and its `note` one word that says why.
        """


SCORE_METHODS: Registry[type[ScoreMethod]] = Registry("method", package=__name__, taken=(AUTO,))
"""The methods by name."""


def list_methods() -> list[str]:
    """All that a method may be called, `auto` first."""
    return [AUTO, *SCORE_METHODS.list_names()]


def check_method(name: str) -> None:
    """Raises `UsageError` for a name that no method has, naming what is near."""
    if name not in list_methods():
        raise UsageError(f"no method '{name}'; {did_you_mean(name, list_methods())}")


def settle_method(name: str, *, related: bool) -> str:
    """Return the method of a model: `WITH_RELATIVES` for `auto` where it is `related`."""
    return WITH_RELATIVES if related and name == AUTO else name


def choose_method(widths: Widths, name: str) -> str:
    """The name of the method that scores spans of so many bases, where `name` is asked for."""
    if name != AUTO:
        return name
    return next(known for known, method in SCORE_METHODS.items() if method().fits(widths))


def find_method(widths: Widths, name: str) -> ScoreMethod:
    """The method that `choose_method` names. Raises `UsageError` where there is none."""
    return SCORE_METHODS[choose_method(widths, name)]()


def describe_methods() -> str:
    """What each method compares, and what `auto` takes: for a help text."""
    methods = SCORE_METHODS.items()
    taken = ", ".join(f"{name} {one.taken_for}" for name, one in methods if one.taken_for)
    told = f"{AUTO}: {WITH_RELATIVES} with relatives, else {taken}."
    return "; ".join([*(f"{name}: {one.help}" for name, one in methods), told])


def name_methods(asked: str) -> str:
    """What a score may have been made by where `asked` is asked for: for the header of a file."""
    names = [name for name, one in SCORE_METHODS.items() if one.taken_for]
    if asked not in (AUTO, *names):
        return asked
    return f"{', '.join(names[:-1])} or {names[-1]}"


# Users see these first, and `auto` asks them in this order.
from genodiff.scoring.methods import llr, chain, nelbo, votes, headcount, profiles, wildtype  # noqa: E402, F401, I001
from genodiff.scoring.methods.nelbo import LEAST_WINDOWS, MAX_EVALUATIONS, STANDARD_ERROR  # noqa: E402


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(Options):
    """How variants are scored: what a request asks and what `score_alleles` is given.

    `context` "2x" scores twice, the second time at double context. `memory` "on" mixes in what the
    training genome holds, but for each window's own locus; None does so where the network was
    trained with a memory.
    """

    method: Annotated[str, Option(describe_methods())] = AUTO
    se: Annotated[float, Option("Standard error, in nats, at which nelbo stops.")] = STANDARD_ERROR
    max_evaluations: Annotated[
        int,
        Ge(LEAST_WINDOWS),
        Option("Evaluations of one variant after which nelbo stops above --se, with a flag."),
    ] = MAX_EVALUATIONS
    context: Annotated[
        int | Literal["2x"] | None,
        Ge(2),
        Option(
            "Bases of a window (default: the trained length); 2x also scores at double "
            "context, and flags scores that change."
        ),
    ] = None
    longest: Annotated[
        int,
        Ge(1),
        Option("Maximum length of a variant: a longer one is not scored, but counted."),
    ] = LONGEST_SPAN
    exact: Annotated[bool, Option("Evaluate every SNV separately.")] = False
    batch_size: Annotated[
        int | None,
        Ge(1),
        Option(
            "Windows per batch: affects speed and memory, not the scores (default: about "
            "32,768 bases).",
            decides="nothing",
        ),
    ] = None
    memory: Memory = None
    seed: Seed = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_method(self.method)
        if not 0 < self.se < float("inf"):
            raise UsageError(f"--se {self.se} is no standard error", fix="give nats, above 0")

    @property
    def double(self) -> bool:
        """Whether each variant is scored at double context as well."""
        return self.context == TWICE

    def settle(self, *, related: bool) -> Self:
        """These options with the method that a model has (`settle_method`)."""
        return replace(self, method=settle_method(self.method, related=related))

    def find_context(self, trained: int) -> int:
        """Bases of a window, where those of training have `trained`."""
        return self.context if isinstance(self.context, int) else trained
