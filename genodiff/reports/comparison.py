"""Compare generated with real and Markov sequence: the sets, their spectra, and a summary sentence.

Real sequence is the held-out split of the run; the Markov sequence is drawn from the order with the
lowest bits there, counted on the train split. On the toy genome the true source also scores each
set.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import reverse_complement
from genodiff.quality.scorecard import Scorecard, kmer_spectrum, scorecard
from genodiff.reports.figures import Series

Ids = NDArray[np.uint8]
WORD = 3


class Comparison(NamedTuple):
    """Data of the page's comparison of generated and real DNA."""

    card: Scorecard
    words: list[str]  # canonical 3-mers
    spectra: list[Series]
    markov_name: str
    sentence: str
    extra: list[tuple[str, list[str]]]
    """Further rows of figures: name, one cell per set (samples, Markov, real)."""


def compare_sequences(
    samples: Sequence[Ids],
    real: Sequence[Ids],
    markov: Sequence[Ids] | None = None,
    *,
    markov_name: str = "Markov",
    source_bits: Callable[[Sequence[Ids]], float] | None = None,
    copied: Callable[[Sequence[Ids]], float] | None = None,
) -> Comparison:
    """Compare finished sets; `real` must hold at least two sequences.

    `source_bits` gives the true source's bits per base of a set, if there is a source. `copied`
    gives the share of a set's bases that also occur in train.
    """
    card = scorecard(samples, real, markov)
    sets: list[Sequence[Ids]] = [samples, *([markov] if markov is not None else []), real]
    words, places = canonical_words(WORD)
    spectra = [Series("real", "real", _pooled(real, places))]
    if markov is not None:
        spectra.append(Series("markov", markov_name, _pooled(markov, places)))
    spectra.append(Series("samples", "samples", _pooled(samples, places)))
    extra = []
    if source_bits is not None:
        extra.append(("bits per base by the source", [f"{source_bits(s):.3f}" for s in sets]))
    if copied is not None:
        extra.append(("bases in 24‑mers of train", [f"{copied(s):.1%}" for s in sets]))
    return Comparison(card, words, spectra, markov_name, _sentence(card, markov_name), extra)


def canonical_words(k: int) -> tuple[list[str], list[list[int]]]:
    """The canonical k-mers (up to strand), and their indices among the 4^k k-mers.

    The 4^k k-mers are in alphabetical order, A < C < G < T.
    """
    groups: dict[str, list[int]] = {}
    for place, letters in enumerate(product("ACGT", repeat=k)):
        word = "".join(letters)
        other = str(reverse_complement(word))
        groups.setdefault(min(word, other), []).append(place)
    return list(groups), list(groups.values())


def _pooled(sequences: Sequence[Ids], places: list[list[int]]) -> list[float]:
    spectrum = kmer_spectrum(sequences, WORD)
    return [float(spectrum[p].sum()) for p in places]


def _sentence(card: Scorecard, markov_name: str) -> str:
    k, here, floor = card.kmer_sizes[-1], card.js_samples[-1], card.js_floor[-1]
    said = (
        f"{card.samples.n:,} samples, {card.samples.bases:,} bases. By their {k}-mers they "
        f"stand {here:.3f} from "
        f"held-out real sequence; other real sequence of the same size is {floor:.3f} from it"
    )
    if card.js_markov is not None:
        said += (
            f", and sequence drawn from the best Markov model ({markov_name}) "
            f"{card.js_markov[-1]:.3f}"
        )
    return said + "."
