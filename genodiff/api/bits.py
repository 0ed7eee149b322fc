"""How well a model knows sequences, as one figure with its interval."""

from dataclasses import dataclass
from typing import Any, Literal

from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.sequence_bits import score_sequences
from genodiff.io.sequences import read_records
from genodiff.runs.model import TrainedModel


@dataclass(frozen=True)
class Bits:
    """Bits per base (of text: per byte): lower is better; 2 is a guess among A, C, G, T."""

    value: float
    ci95: tuple[float, float] | None
    """95 % interval; None for fewer than five windows."""
    windows: int
    """Windows that were scored."""
    tokens: int
    """Bases (or tokens) that were scored."""
    figure: Literal["exact", "bound"]
    """The likelihood itself, or an upper bound on its bits."""

    def __float__(self) -> float:
        return self.value


def measure_split(model: TrainedModel, split: str, **options: Any) -> Bits:
    """The figure of a split of the run's own data.

    `options` and errors are those of `evaluate`.
    """
    found = evaluate(model, split, baselines=False, **options)
    value = found["bits_per_byte" if "bits_per_byte" in found else "bits_per_base"]
    ci95 = None if found["ci95_bits"] is None else (found["ci95_bits"][0], found["ci95_bits"][1])
    return Bits(value, ci95, found["windows"], found["tokens"], found["figure"])


def measure_sequences(model: TrainedModel, sequences: Any, **options: Any) -> Bits:
    """The figure of `sequences`; `options` are those of `score_sequences`. Raises as it does."""
    records = read_records(sequences) if model.alphabet.domain == "dna" else []
    found = score_sequences(model, records, **options)
    figure = model.objective.figure
    ends = found.bits.ends(least=0)
    ci95 = None if ends is None else (ends[0], ends[1])
    return Bits(found.bits.value, ci95, found.windows, found.bases, figure)
