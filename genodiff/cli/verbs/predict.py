"""A fine-tuned model on new sequences: classes with probabilities, or values.

RUN is the folder of `genodiff finetune`, or of one of its units (a unit is one model fitted to one
task with one seed). SEQUENCES is FASTA or GenBank (- is stdin), a table (.csv, .tsv, .parquet),
intervals (BED, with --fasta: a row on - is read as its reverse complement) or, for models of text,
sentences. With --region, parts of the genome --fasta are read in its place. The fit's own protocol
is followed: what is longer than it read is cut, and strands are read as in training.
"""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.predict import predict as predict_sequences
from genodiff.cli.common import (
    OUTPUT,
    Common,
    Force,
    MapRegions,
    convert_whole_number,
    stop_on_sigterm,
)
from genodiff.errors import UsageError
from genodiff.io.counts import format_count
from genodiff.io.progress import format_duration

_log = logging.getLogger("genodiff")
_ANY = -1


@Parameter(name="*")
@dataclass(frozen=True)
class PredictCommon(Common):
    """The shared flags, but the seed is that of a fit: nothing is drawn here."""

    seed: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            show_default=False,
            help="Seed of the fit, where a sweep has several.",
        ),
    ] = _ANY

    def prepare(self) -> None:
        """Set threads, kernels and logging."""
        if self.seed == _ANY:
            replace(self, seed=1).prepare()
        else:
            super().prepare()


def predict(
    run: Annotated[
        Path | None,
        Parameter(
            name=["--run", "--checkpoint"],
            help="Folder of a sweep, or of a unit: one task, model, setting and seed of it.",
        ),
    ] = None,
    sequences: Annotated[
        Path | None,
        Parameter(allow_leading_hyphen=True, help="File of sequences; - is stdin (FASTA)."),
    ] = None,
    *,
    out: Annotated[
        Path,
        OUTPUT,
        Parameter(help="Output: .csv, .tsv, .parquet, .jsonl, or - for CSV on stdout."),
    ] = Path("-"),
    column: Annotated[
        list[str] | None,
        Parameter(
            help="Column of sequences of a table [sequence, seq]; twice for pairs of sentences.",
            negative="",
        ),
    ] = None,
    fasta: Annotated[
        Path | None, Parameter(help="The genome of a BED file, or of --region.")
    ] = None,
    region: MapRegions = None,
    task: Annotated[str | None, Parameter(help="Task, where a sweep has several.")] = None,
    model: Annotated[
        str | None, Parameter(help="Model's name in the sweep, or RUN itself.")
    ] = None,
    method: Annotated[str | None, Parameter(help="full, probe or baseline.")] = None,
    setting: Annotated[str | None, Parameter(help="paper, own, grid, ...")] = None,
    ensemble: Annotated[
        bool,
        Parameter(negative="", help="Mean of all seeds, with their spread (standard deviation)."),
    ] = False,
    batch_size: Annotated[
        int,
        Parameter(
            converter=convert_whole_number, help="Sequences at a time: changes the speed alone."
        ),
    ] = 64,
    json: Annotated[bool, Parameter(negative="", help="JSON lines on stdout, a row each.")] = False,
    force: Force = False,
    common: PredictCommon = PredictCommon(),
) -> None:
    """Predict classes or values for sequences without labels."""
    common.prepare()
    if sequences is None and model is not None and Path(model).is_dir():
        run, sequences, model = Path(model), run, None  # --model RUN SEQUENCES
    if run is None or (sequences is None and not region):
        missing = "SEQUENCES" if run is not None and run.is_dir() else "RUN"
        raise UsageError(f"{missing} is missing", fix="give genodiff predict RUN SEQUENCES")
    if json and str(out) != "-":
        raise UsageError(
            "--json writes to stdout, and --out to a file", fix="give --out FILE.jsonl alone"
        )
    with stop_on_sigterm():
        found = predict_sequences(
            run,
            sequences,
            out=out,
            form="jsonl" if json else None,
            column=column or (),
            fasta=fasta,
            region=region or (),
            task=task,
            model=model,
            method=method,
            setting=setting,
            seed=None if common.seed == _ANY else common.seed,
            ensemble=ensemble,
            batch_size=batch_size,
            device=common.device,
            force=force,
        )
    if isinstance(found, dict):
        names = ", ".join(str(unit["seed"]) for unit in found["units"])
        _log.info(
            "%s: %s in %s (%s, %s, seed%s %s)",
            "stdout" if str(out) == "-" else out,
            format_count(found["rows"], "sequence"),
            format_duration(found["seconds"]),
            found["task"],
            found["model"],
            "s" * (len(found["units"]) > 1),
            names,
        )
