"""What a model expects around a variant, base by base, in the reference and in the alternative.

Each base near the variant is masked by itself, all others being known: leave-one-out, as in
`probabilities.leave_one_out`, of a few bases of the window that the variant is scored in.

What relatives have around a variant: the column of the votes, with its neighbours.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.io.variants import Allele
from genodiff.memory.text import NONE
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import Place
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.spelling_pair import Ids
from genodiff.scoring.variant_windows import Contigs, cut_window

FLANK, LONGEST = 8, 12
"""Bases shown on either side, and of a long allele."""


class SpellingLogo(NamedTuple):
    """One spelling: `letters` (L), `logs` (L, 4) of A, C, G and T (not a number at N), the columns
    that differ, and the contig's position of the first letter, from 1.
    """

    letters: str
    logs: NDArray[np.float64]
    span: range
    first: int


def read_logos(
    model: TrainedModel, reader: MaskedReader, genome: Contigs, allele: Allele, context: int
) -> tuple[SpellingLogo, SpellingLogo]:
    """The reference's and the alternative's.

    Raises `UnscorableError` as `cut_window`, `GenodiffError` for values that are not finite.
    """
    cut = cut_window(genome, model.alphabet, [allele], context)
    at = allele.start - cut.start
    shown = []
    for ids, letters in ((cut.pair.ref, allele.ref), (cut.pair.alt, allele.alt)):
        width = min(len(letters), LONGEST)
        left = max(0, at - FLANK)
        right = min(len(ids), at + width + FLANK)
        logs = _read_alone(reader, ids, left, right, (cut.contig, cut.start, cut.end))
        text = model.alphabet.decode(ids[left:right])
        shown.append(
            SpellingLogo(text, logs, range(at - left, at - left + width), cut.start + left + 1)
        )
    return shown[0], shown[1]


def _read_alone(
    reader: MaskedReader, ids: Ids, left: int, right: int, at: Place
) -> NDArray[np.float64]:
    found = np.full((right - left, 4), np.nan)
    places = [place for place in range(left, right) if reader.are_targets(ids)[place]]
    windows = []
    for place in places:
        window = ids.copy()
        window[place] = reader.mask_id
        windows.append(window)
    for place, logs in zip(places, reader.read(windows, [at] * len(windows)), strict=True):
        found[place - left] = logs[0]
    return found


RELATIVES_FLANK = 12
"""Bases shown on either side."""
SURE = 0.5
"""The least chance of a base that is shown."""
UNKNOWN = "-"


class RelativeRow(NamedTuple):
    """One relative: its name, its species, and a letter for each base; - where it says nothing."""

    name: str
    species: str
    letters: str


class RelativesAround(NamedTuple):
    """The reference's letters around a variant, the columns that differ, and the relatives'."""

    letters: str
    span: range
    rows: list[RelativeRow]


def read_relatives_around(
    model: TrainedModel, reader: MaskedReader, genome: Contigs, allele: Allele, context: int
) -> RelativesAround | None:
    """What the relatives of a model have where a variant is; None for a model without any.

    Each base is told by those around it, and the variant's own are hidden, as votes count them.
    Raises `UnscorableError` as `cut_window`.
    """
    relatives = model.backbone.relatives
    if relatives is None or model.relatives is None:
        return None
    cut = cut_window(genome, model.alphabet, [allele], context)
    columns = reader.columns(cut.pair.ref)
    codes = np.where((columns < 0) | cut.pair.ref_span, NONE, columns).astype(np.uint8)
    at, width = allele.start - cut.start, min(len(allele.ref), LONGEST)
    left, right = max(0, at - RELATIVES_FLANK), min(len(codes), at + width + RELATIVES_FLANK)
    over = relatives.align(codes[None])[:, 0, left:right]
    best = np.where(over.max(-1) > SURE, over.argmax(-1), NONE)
    rows = [
        RelativeRow(told["name"], told["species"], "".join(f"ACGT{UNKNOWN}"[b] for b in row))
        for told, row in zip(model.relatives["genomes"], best.tolist(), strict=True)
    ]
    text = model.alphabet.decode(cut.pair.ref[left:right])
    return RelativesAround(text, range(at - left, at - left + width), rows)
