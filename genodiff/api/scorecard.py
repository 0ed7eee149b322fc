"""Generated DNA beside floors and ceilings: `genodiff.scorecard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.api.run_paths import check_input, check_run
from genodiff.domain import DNA
from genodiff.errors import DataError, UsageError

if TYPE_CHECKING:
    from genodiff.studies.sample_quality import RealSequence


def scorecard(
    samples: Any,
    *,
    run: str | Path | None = None,
    real: Any = None,
    train: Any = None,
    split: Literal["test", "valid"] = "test",
    fasta: str | Path | None = None,
    cnn: bool = False,
    seed: int = 1,
    offline: bool = False,
) -> dict[str, Any]:
    """How near generated DNA is to real DNA, beside a floor and Markov sequence, as plain values.

    `samples` is a file, or sequences as strings or records. Real sequence is the `split` of the
    data of `run` (a run folder; `fasta` is its genome where it has moved), or what `real` holds,
    with `train` for Markov models and matches. `sets` holds the same figures of the samples, of
    other real sequence of the same size, and of Markov sequence of orders 1, 5 and 8. `cnn` adds
    a convolutional discriminator, which takes minutes. Raises `UsageError`, `DataError`,
    `CheckpointError`.
    """
    if (run is None) == (real is None):
        raise UsageError(
            "real sequence comes from a run or from a file",
            fix="give --model RUN, or --real FASTA with --train FASTA",
        )
    if run is not None:
        check_run(run)
        if train is not None:
            raise UsageError("--train is for --real", fix="leave it out: the run has a train split")
    elif fasta is not None:
        raise UsageError("--fasta is for --model", fix="leave it out")
    for given in (samples, real, train, fasta):
        if isinstance(given, Path):
            check_input(given)
    import numpy as np

    from genodiff.alphabet import DNA as LETTERS
    from genodiff.api.sequences import read_records
    from genodiff.studies import sample_quality

    sequences = [LETTERS.encode(record.sequence) for record in read_records(samples)]
    sequences = [ids for ids in sequences if len(ids)]
    if not sequences:
        raise DataError("there is no sample to measure", fix="give at least one sequence")
    length = int(np.median([len(ids) for ids in sequences]))
    how: dict[str, Any] = {"seed": seed}
    if run is not None:
        beside = _open_run(run, split, length, len(sequences), fasta, offline, seed)
    else:
        held, seen = (
            [LETTERS.encode(record.sequence) for record in read_records(part)]
            if part is not None
            else []
            for part in (real, train)
        )
        windows = sample_quality.cut_windows(held, length)
        beside = sample_quality.open_real(windows, seen, len(sequences), seed=seed)
    how["discriminators"] = ("kmers", "cnn") if cnn else ("kmers",)
    return {
        "samples": len(sequences),
        "compared": len(beside.target),
        "length": length,
        "train_bases": beside.bases,
        "sets": {
            "samples": sample_quality.measure_quality(sequences, beside, **how),
            **sample_quality.measure_references(beside, **how),
        },
    }


def _open_run(
    run: str | Path,
    split: str,
    length: int,
    n: int,
    fasta: str | Path | None,
    offline: bool,
    seed: int,
) -> RealSequence:
    """Real sequence of the split, in windows of `length`, and the train split of the same data."""
    from genodiff.data.dna_windows import DnaWindows
    from genodiff.runs.model import load_model
    from genodiff.scoring.eval_data import open_data
    from genodiff.scoring.eval_options import EvalOptions
    from genodiff.studies.sample_quality import open_real_of_run

    model = load_model(Path(run), device="cpu")
    if model.alphabet.domain != DNA.name:
        raise UsageError(
            "a scorecard is of DNA, and this is a run of text", fix="use `genodiff judge`"
        )
    config = model.config
    options = EvalOptions(split=split, offline=offline, fasta=None if fasta is None else str(fasta))
    section = config.data.model_copy(update={"seq_len": length})
    data = open_data(model._replace(config=config.model_copy(update={"data": section})), options)
    assert isinstance(data.windows, DnaWindows)
    return open_real_of_run(data.windows, n, seed=seed, legacy_caduceus_tiling=data.windows.legacy)
