"""How variants are scored, and the bounds of it. No torch."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from annotated_types import Ge

from genodiff.errors import UsageError
from genodiff.jobs.options import Memory, Seed
from genodiff.jobs.request import Option, Options
from genodiff.scoring.allele_score import LONGEST_SPAN
from genodiff.scoring.methods import AUTO, check_method, describe_methods, settle_method
from genodiff.scoring.methods.nelbo import LEAST_WINDOWS, MAX_EVALUATIONS, STANDARD_ERROR

TWICE = "2x"


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
