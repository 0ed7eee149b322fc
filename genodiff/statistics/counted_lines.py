"""The lines that a model is set beside: what each is called, and what it is.

Whatever names such a line, the terminal, a report or a finding, reads it here. A line has bits per
base (of text: per byte) that were counted without a network. `key` is where an evaluation has it,
and `NAME_bits` where a contig or a region has it; the Markov lines of fixed order stand together
under `markov_bits`, by their order.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class CountedLine(NamedTuple):
    """One line: its name in JSON, its short and its full name, and what it is."""

    name: str
    key: str
    label: str
    title: str
    what: str

    @property
    def named(self) -> str:
        """The full name as it stands in a sentence."""
        return self.title if self.title.startswith("Markov") else f"the {self.title}"

    def bits_of(self, part: Mapping[str, Any]) -> float | None:
        """The line's bits in a contig or region, or in an evaluation; None where it has none."""
        if self.key == MARKOV:
            bits: float | None = (part.get(MARKOV) or {}).get(self.name)
        elif self.key in part:
            bits = (part[self.key] or {}).get("bits")
        else:
            bits = part.get(f"{self.name}_bits")
        return bits


MARKOV = "markov_bits"
LINES = (
    CountedLine(
        "fitted",
        "markov_fitted",
        "tuned Markov",
        "tuned Markov model",
        "k-mer counts of the train split, both strands; order and smoothing chosen on the valid "
        "split",
    ),
    CountedLine(
        "adaptive",
        "adaptive_mixture",
        "adaptive",
        "adaptive mixture",
        "contexts and copies of the train split, and of the split that is scored: it reads that "
        "from left to right and remembers it, so later windows know earlier ones",
    ),
    CountedLine(
        "adaptive_from_train",
        "adaptive_from_train",
        "adaptive, train",
        "adaptive mixture of train alone",
        "contexts and copies of the train split alone, read from left to right; its weights go on "
        "learning",
    ),
)
"""The lines beside those of fixed order."""


def markov_line(order: int | str, *, text: bool = False) -> CountedLine:
    """The Markov line of a fixed order, or for a text the n-gram of as many tokens before."""
    if text:
        name, what = f"{int(order) + 1}-gram", "n-gram counts of the train split, interpolated"
        return CountedLine(str(order), MARKOV, name, name, what)
    what = "k-mer counts of the train split, both strands, interpolated"
    return CountedLine(str(order), MARKOV, f"Markov {order}", f"Markov {order}", what)


def find_best_line(
    part: Mapping[str, Any], *, least_order: int = 0, text: bool = False
) -> tuple[CountedLine, float] | None:
    """The lowest line of a contig, region or evaluation, and its bits; None without any.

    Markov lines are those of `least_order` or more, of a `text` its n-grams.

    >>> line, bits = find_best_line({"markov_bits": {"0": 1.9, "8": 1.8}, "adaptive_bits": 1.4})
    >>> line.label, bits
    ('adaptive', 1.4)
    """
    orders = sorted(map(int, part.get(MARKOV) or {}))
    lines = [*(markov_line(k, text=text) for k in orders if k >= least_order), *LINES]
    known = [(bits, line) for line in lines if (bits := line.bits_of(part)) is not None]
    bits, line = min(known, key=lambda pair: pair[0], default=(0.0, None))
    return None if line is None else (line, bits)
