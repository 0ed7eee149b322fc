"""The evaluations of a run, as its page reads them: strict about what is shown, else silent."""

from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from genodiff.domain import TEXT
from genodiff.errors import printable
from genodiff.evaluation.evaluation_file import rank_evaluation
from genodiff.statistics.counted_lines import MARKOV, CountedLine, find_best_line


class _Lenient(BaseModel):
    """Strict about the keys that the page needs, silent about all others."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Difference(_Lenient):
    """A paired difference in bits per base and its interval."""

    bits: float
    ci95: tuple[float, float] | None = None


class Group(_Lenient):
    """The scores of one contig or one region class."""

    tokens: int
    windows: int | None = None
    bits_per_base: float | None = None
    perplexity: float | None = None
    ci95_bits: tuple[float, float] | None = None
    markov_bits: dict[str, float | None] | None = None


class LineFigure(_Lenient):
    """What stands beside the model: a counted line, or the network without its memory."""

    bits: float
    minus_model_bits: Difference | None = None


class OrderFigure(LineFigure):
    """The exact likelihood of drawing the windows in an order."""

    name: str
    ci95: tuple[float, float] | None = None

    def tell(self) -> str:
        """A sentence, beside the bound."""
        said = f"Drawn in the order {self.name}, its windows have exactly {self.bits:.3f} bits"
        gap = self.minus_model_bits
        if gap is None:
            return f"{said}."
        low, high = gap.ci95 or (gap.bits, gap.bits)
        ends = "" if gap.ci95 is None else f" (paired 95 % interval {low:.3f} to {high:.3f})"
        return f"{said}: {gap.bits:+.3f} beside the bound{ends}."


class BestLine(NamedTuple):
    """A counted line of an evaluation: its bits, and the paired difference of line minus model."""

    kind: CountedLine
    bits: float
    gap: Difference | None


class SeenInTraining(_Lenient):
    """What of the scored bases the model was trained on, as a sentence."""

    note: str = ""


class SoftMask(_Lenient):
    """What soft-masked bases weigh, and how many were in the scored windows."""

    trained_weight: float | None = None
    scored_weight: int = 1
    bases: int = 0


class RatePoint(_Lenient):
    """One bin of the C_k / k curve, in nats."""

    rate_lo: float
    rate_hi: float
    nats: float | None = None
    se: float | None = None
    n: int = 0


class Evaluation(_Lenient):
    """One entry of eval.json; see evaluation/dna_evaluation.py for the meaning of each key.

    Of text (see evaluation/text_evaluation.py) a byte stands where DNA has a base: all bits are per
    byte.
    """

    unit: str = "base"
    tokens_per_byte: float = 1.0
    token_perplexity: float | None = None
    split: str
    fingerprint: str | None = None
    context: str = "window"
    memory: dict[str, Any] | None = None
    soft_masked: int = 1
    figure: str = "bound"
    created: str | None = None
    tokens: int
    bits_per_base: float
    perplexity: float
    ci95_bits: tuple[float, float] | None = None
    windows: int | None = None
    windows_total: int | None = None
    repeats: int | None = None
    checkpoint: str | None = None
    step: int | None = None
    uniform_bits: float = 2.0
    markov_bits: dict[str, float | None] | None = None
    markov_minus_model_bits: dict[str, Difference | None] | None = None
    markov_fitted: LineFigure | None = None
    adaptive_mixture: LineFigure | None = None
    adaptive_from_train: LineFigure | None = None
    without_memory: LineFigure | None = None
    order: OrderFigure | None = None
    source_bits: float | None = None
    source_ci95_bits: tuple[float, float] | None = None
    model_minus_source_bits: Difference | None = None
    contigs: dict[str, Group | None] = {}
    soft_mask: SoftMask | None = None
    seen_in_training: SeenInTraining | None = None
    regions: dict[str, Group | None] = {}
    repeat_kmer: int | None = None
    repeat_share: float | None = None
    curve: list[RatePoint] = []

    def markov(self) -> dict[int, float]:
        """Markov orders and their bits per base."""
        return {
            int(k): b
            for k, b in sorted((self.markov_bits or {}).items(), key=lambda x: int(x[0]))
            if b is not None
        }

    def markov_gap(self, order: int) -> Difference | None:
        """The paired difference of a Markov line minus the model; None where it is not known."""
        return (self.markov_minus_model_bits or {}).get(str(order))

    def best_line(self) -> BestLine | None:
        """The lowest counted line; the Markov line of order 0 is none."""
        found = find_best_line(self.model_dump(), least_order=1, text=self.unit == "byte")
        if found is None:
            return None
        kind, bits = found
        if kind.key == MARKOV:
            return BestLine(kind, bits, self.markov_gap(int(kind.name)))
        return BestLine(kind, bits, getattr(self, kind.key).minus_model_bits)

    def rank(self, weights: str) -> tuple[Any, ...]:
        """Higher for what says more of a run with these weights: windows before whole contigs, the
        network alone before one with a memory.
        """
        of_weights, *more = rank_evaluation(self.model_dump(), weights)
        return of_weights, self.memory is None, self.context == "window", *more


def parse_evaluations(found: dict[str, Any] | None, troubles: list[str]) -> dict[str, Evaluation]:
    """The evaluations of an eval.json by name; what cannot be read becomes a line of `troubles`."""
    evaluations: dict[str, Evaluation] = {}
    for split, value in (found or {}).items():
        try:
            evaluations[split] = Evaluation.model_validate(_per_byte(value))
            evaluations[split].markov()
        except ValueError as fault:
            evaluations.pop(split, None)
            first: Any = {"loc": ("markov_bits",), "msg": str(fault)}
            if isinstance(fault, ValidationError):
                first = fault.errors()[0]
            where = ".".join(str(p) for p in first["loc"])
            troubles.append(
                f"eval.json, split {printable(split, 40)}: {printable(where, 60)}: "
                f"{printable(first['msg'], 80)}"
            )
    return evaluations


def _per_byte(value: Any) -> Any:
    """An evaluation of text with bytes in the place of bases."""
    if not isinstance(value, dict) or value.get("domain") != TEXT.name:
        return value
    size, tokens = value.get("bytes"), value.get("tokens")
    if not isinstance(size, int) or not isinstance(tokens, int) or size <= 0:
        return {}
    scale, bits = tokens / size, value.get("bits_per_byte")
    points = value.get("curve")
    curve = [
        p | {name: p[name] * scale for name in ("nats", "se") if isinstance(p.get(name), float)}
        for p in (points if isinstance(points, list) else [])
        if isinstance(p, dict)
    ]
    return value | {
        "unit": "byte", "tokens": size, "tokens_per_byte": scale,
        "token_perplexity": value.get("perplexity"), "curve": curve,
        "bits_per_base": bits, "perplexity": 2**bits if isinstance(bits,
        float) and bits < 1000 else None,
    }  # fmt: skip
