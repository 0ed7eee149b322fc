"""Bits per base of sequences in memory, as an evaluation finds those of a split."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from genodiff.data.dna_windows import SequenceWindows
from genodiff.data.loader import EvalBatches
from genodiff.errors import DataError, UsageError
from genodiff.evaluation.bound import Progress, measure_bound
from genodiff.evaluation.window_memory import WindowMemory
from genodiff.io.fasta import Record
from genodiff.runs.model import TrainedModel
from genodiff.runs.training_memory import open_loci
from genodiff.scoring.variant_windows import HeldContigs
from genodiff.statistics.interval import Interval, ratio


class SequenceBits(NamedTuple):
    """Bits per base of windows, and how many bases and windows there were."""

    bits: Interval
    bases: int
    windows: int


def score_sequences(
    model: TrainedModel,
    records: Sequence[Record],
    *,
    seed: int = 1,
    repeats: int = 1,
    batch_size: int = 32,
    memory: str | None = None,
    progress: Progress | None = None,
) -> SequenceBits:
    """The bound (or likelihood) of `records`, each cut into windows of the trained length.

    Only A, C, G and T count. `memory` is that of `open_loci`. Raises `DataError` where there is no
    base to count, `UsageError` for text.
    """
    if model.alphabet.domain != "dna":
        what = f"the model is of {model.alphabet.domain}, and these are sequences of DNA"
        raise UsageError(what, fix="leave the sequences out, for the run's own test split")
    records = name_apart(records)
    windows = SequenceWindows(records, model.config.data.seq_len)
    device = next(model.backbone.parameters()).device
    batches = EvalBatches(windows, batch_size, seed, repeats)
    kept = open_sequence_memory(model, records, windows, memory)
    found = measure_bound(model.objective, model.backbone, batches, device, progress, kept)
    tokens = found.tokens.sum(0)
    if not tokens.any():
        raise DataError("there is no A, C, G or T to score", fix="give sequences with known bases")
    bits = ratio(found.nats.sum(0).mean(0), tokens).scaled(1 / log(2))
    return SequenceBits(bits, int(tokens.sum()), len(windows))


def name_apart(records: Sequence[Record]) -> Sequence[Record]:
    """`records`, none of which has the name of another: a memory looks them up by name."""
    if len({one.name for one in records}) == len(records):
        return records
    return [one._replace(name=f"{i}_{one.name}") for i, one in enumerate(records)]


def open_sequence_memory(
    model: TrainedModel, records: Sequence[Record], windows: SequenceWindows, memory: str | None
) -> WindowMemory | None:
    """The memory of `open_loci` for the windows of `records`; None without one."""
    letters = HeldContigs({one.name: one.sequence for one in records})
    loci = open_loci(model, letters, memory, longest=windows.seq_len)
    return None if loci is None else WindowMemory(loci, windows)
