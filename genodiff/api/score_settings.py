"""How variants are scored: the settings that `genodiff.score` and `score_variants` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from genodiff.errors import UsageError
from genodiff.scoring.methods import check_method
from genodiff.scoring.methods.nelbo import LEAST_WINDOWS

if TYPE_CHECKING:
    from genodiff.scoring.variant_scores import ScoreOptions

Unit = Literal["nats", "bits"]
_UNITS = ("nats", "bits")
_TWICE = "2x"


@dataclass(frozen=True)
class ScoreSettings:
    """What a score depends on, beside the model and the variant; as `genodiff.score` has them.

    Raises `UsageError` for what cannot be meant, without importing torch.
    """

    method: str
    se: float
    max_evaluations: int
    context: int | Literal["2x"] | None
    exact: bool
    unit: Unit
    batch_size: int | None
    seed: int
    memory: str | None

    def __post_init__(self) -> None:
        check_method(self.method)
        if self.unit not in _UNITS:
            what = f"--unit {self.unit} is none of {', '.join(_UNITS)}"
            raise UsageError(what, fix="give one of these")
        if not 0 < self.se < float("inf"):
            raise UsageError(f"--se {self.se} is no standard error", fix="give nats, above 0")
        context = self.context
        if context is not None and context != _TWICE and (isinstance(context, str) or context < 2):
            raise UsageError(f"--context {context} is no length", fix=f"give bases, or {_TWICE}")
        for flag, value, least in (
            ("--batch-size", self.batch_size, 1),
            ("--max-evaluations", self.max_evaluations, LEAST_WINDOWS),
        ):
            if value is not None and value < least:
                raise UsageError(f"{flag} {value} is below {least}", fix=f"give {least} or more")

    def find_width(self, trained: int) -> int:
        """Bases of a window, where those of training have `trained`."""
        return trained if self.context in (None, _TWICE) else int(self.context)

    def options(self) -> ScoreOptions:
        """As `variant_scores` takes them."""
        from genodiff.scoring.variant_scores import ScoreOptions

        twice = self.context == _TWICE
        return ScoreOptions(
            method=self.method, se=self.se, most=self.max_evaluations, seed=self.seed,
            context=None if twice or self.context is None else int(self.context), double=twice,
            exact=self.exact, batch_size=self.batch_size, memory=self.memory,
        )  # fmt: skip
