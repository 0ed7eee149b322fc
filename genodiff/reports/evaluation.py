"""The evaluations of a run, as its page reads them: strict about what is shown, else silent."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from genodiff.domain import TEXT
from genodiff.errors import printable
from genodiff.scoring.evaluation_file import name_data, rank_evaluation


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


class FittedMarkov(_Lenient):
    """The Markov line whose order and smoothing were fitted on the valid split."""

    order: int
    bits: float
    minus_model_bits: Difference | None = None


class MixtureLine(_Lenient):
    """A mixture of contexts: the static one, fitted on the valid split, or the adaptive one."""

    bits: float
    minus_model_bits: Difference | None = None


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
    """One entry of eval.json; see scoring/dna_evaluation.py for the meaning of each key.

    Of text (see scoring/text_evaluation.py) a byte stands where DNA has a base: all bits are per
    byte.
    """

    unit: str = "base"
    tokens_per_byte: float = 1.0
    token_perplexity: float | None = None
    split: str
    recipe: str | None = None
    fasta: str | None = None
    text: str | None = None
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
    mask_se_bits: float | None = None
    uniform_bits: float = 2.0
    markov_bits: dict[str, float | None] | None = None
    markov_minus_model_bits: dict[str, Difference | None] | None = None
    markov_fitted: FittedMarkov | None = None
    markov_mixture: MixtureLine | None = None
    adaptive_mixture: MixtureLine | None = None
    adaptive_from_train: MixtureLine | None = None
    source_bits: float | None = None
    source_ci95_bits: tuple[float, float] | None = None
    model_minus_source_bits: Difference | None = None
    contigs: dict[str, Group | None] = {}
    soft_mask: SoftMask | None = None
    regions: dict[str, Group | None] = {}
    repeat_kmer: int | None = None
    repeat_share: float | None = None
    dropped: dict[str, int] = {}
    curve: list[RatePoint] = []
    seconds: float | None = None

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

    def best_markov(self) -> tuple[str, float] | None:
        """The best Markov line of order 1 and more, fixed or fitted: its name and bits per base."""
        best = min(self._counting_lines(), default=None, key=lambda line: line[:2])
        return None if best is None else (best[1], best[0])

    def best_markov_gap(self) -> Difference | None:
        """The paired difference of that line minus the model; None where it is not known."""
        return min(self._counting_lines(), default=(0.0, "", None), key=lambda line: line[:2])[2]

    def _counting_lines(self) -> list[tuple[float, str, Difference | None]]:
        lines = [
            (bits, f"Markov {order}", self.markov_gap(order))
            for order, bits in self.markov().items()
            if order > 0
        ]
        named = {
            f"Markov {self.markov_fitted.order}, fitted" if self.markov_fitted else "":
            self.markov_fitted,
            "mixture of orders 1 to 24": self.markov_mixture,
            "adaptive mixture": self.adaptive_mixture,
            "adaptive mixture, of train alone": self.adaptive_from_train,
        }  # fmt: skip
        lines += [
            (line.bits, name, line.minus_model_bits)
            for name, line in named.items()
            if line is not None
        ]
        return lines

    def rank(self, weights: str) -> tuple[Any, ...]:
        """Higher for what says more of a run with these weights: windows before whole contigs, the
        network alone before one with a memory.
        """
        of_weights, *more = rank_evaluation(self.model_dump(), weights)
        return of_weights, self.memory is None, self.context == "window", *more

    def data(self) -> str:
        """The file or recipe that was scored; empty where that is not said."""
        if not (self.fasta or self.text or self.recipe):
            return ""
        return name_data(self.model_dump(exclude={"text"} if self.unit == "base" else None))


def parse_evaluations(found: dict[str, Any] | None, troubles: list[str]) -> dict[str, Evaluation]:
    """The evaluations of an eval.json by name; what cannot be read becomes a line of `troubles`."""
    evaluations: dict[str, Evaluation] = {}
    for split, value in (found or {}).items():
        try:
            evaluations[split] = Evaluation.model_validate(_per_byte(value))
            evaluations[split].markov()
        except (ValidationError, ValueError) as fault:
            evaluations.pop(split, None)
            first = (
                fault.errors()[0]
                if isinstance(fault, ValidationError)
                else {"loc": ("markov_bits",), "msg": str(fault)}
            )
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
