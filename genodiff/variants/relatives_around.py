"""What relatives have around a variant: the column of the votes, with its neighbours."""

from typing import NamedTuple

import numpy as np

from genodiff.io.variants import Allele
from genodiff.memory.text import NONE
from genodiff.runs.model import TrainedModel
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.variant_windows import Contigs, cut_window
from genodiff.variants.logos import LONGEST

FLANK = 12
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
    left, right = max(0, at - FLANK), min(len(codes), at + width + FLANK)
    over = relatives.align(codes[None])[:, 0, left:right]
    best = np.where(over.max(-1) > SURE, over.argmax(-1), NONE)
    rows = [
        RelativeRow(told["name"], told["species"], "".join(f"ACGT{UNKNOWN}"[b] for b in row))
        for told, row in zip(model.relatives["genomes"], best.tolist(), strict=True)
    ]
    text = model.alphabet.decode(cut.pair.ref[left:right])
    return RelativesAround(text, range(at - left, at - left + width), rows)
