"""A fine-tuned model on new sequences: `genodiff.predict`."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.errors import UsageError
from genodiff.finetuning.prediction_format import STDOUT, Format, find_format
from genodiff.finetuning.unit_files import check_fitted
from genodiff.io.counts import format_count
from genodiff.io.input_file import open_input
from genodiff.io.target import check_target, describe_file, is_stream
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import find_model_folder
from genodiff.version import __version__

if TYPE_CHECKING:
    import polars as pl

    from genodiff.finetuning.fitted_model import FittedModel
    from genodiff.tasks.unlabelled import Query, QuerySource

_log = logging.getLogger("genodiff")


@dataclass(frozen=True)
class FittedChoice:
    """Which fine-tuned model of a sweep; None where any will do."""

    task: str | None = None
    model: str | None = None
    method: str | None = None
    setting: str | None = None
    seed: int | None = None


@own_defaults()
def predict(
    run: str | Path,
    sequences: Any = None,
    *,
    out: str | Path | None = None,
    form: Format | None = None,
    column: Sequence[str] = (),
    fasta: str | Path | None = None,
    region: Sequence[str] = (),
    task: str | None = None,
    model: str | None = None,
    method: str | None = None,
    setting: str | None = None,
    seed: int | None = None,
    ensemble: bool = False,
    batch_size: int = 64,
    device: str = "auto",
    force: bool = False,
) -> pl.DataFrame | dict[str, Any]:
    """The predictions of a fine-tuned model for sequences without labels.

    `run` is a sweep's folder or one unit's; of a sweep with several models, `task`, `model`,
    `method`, `setting` and `seed` say which. With `ensemble` the mean of all its seeds is given,
    and `spread`, the standard deviation between them. `sequences` are strings, `SeqRecord`s, a
    mapping from names, or a file ("-" is stdin): FASTA or GenBank, a table (.csv, .tsv, .parquet;
    `column` names its column of sequences), intervals (.bed) of a genome (`fasta`), and for models
    of text sentences, one a line or in a table. A row of BED on - is read as its reverse
    complement. In place of `sequences`, `region` (chr1:1,000-2,000, 1-based and inclusive) says
    which parts of the genome are read.

    Without `out` a frame is returned: name, prediction, and p_CLASS (float32) for each class. With
    `out` (.csv, .tsv, .jsonl, .parquet, "-" for stdout in the format `form`) they are written as
    they come, in bounded memory, with OUT.json beside them, and what that says is returned.

    Sequences longer than what the fit read are cut as its own were. A file is read to its end
    before the first prediction, so that a fault in it comes at once. On a CPU the values have the
    same bits at any `batch_size` and in any company. Raises `UsageError`, `DataError` with file and
    line, `CheckpointError`, `MachineError`.
    """
    if batch_size < 1:
        raise UsageError(f"--batch-size {batch_size} is below 1", fix="give 1 or more")
    if ensemble and seed is not None:
        raise UsageError("--seed and --ensemble exclude each other", fix="give one of them")
    if out is None and form is not None:
        raise UsageError("form is of an output, and there is none", fix="give out")
    chosen = None if out is None else find_format(out, form)
    run = check_fitted(find_model_folder(run))
    if isinstance(sequences, Path):
        with open_input(sequences):  # a missing file is said before torch is loaded
            pass
    if out is not None:
        inputs = (sequences if isinstance(sequences, Path) else None, fasta)
        check_target(out, force=force, inputs=inputs)
        if not is_stream(out):
            check_target(f"{out}.json", force=force, inputs=inputs)
    models = _load(
        run, FittedChoice(task, model, method, setting, seed), ensemble, choose_device(device)
    )
    import polars as pl

    from genodiff.finetuning.prediction_files import write_predictions

    source = models[0].source(column, fasta, region)
    job = _look(sequences, source, models[0])
    began = time.monotonic()
    if out is None or chosen is None:
        return pl.concat(_frames(models, job, batch_size))
    rows = write_predictions(out, _frames(models, job, batch_size), models[0].card, chosen)
    summary = _summary(models, job, run, out, chosen, rows, time.monotonic() - began)
    if not is_stream(out):
        from genodiff.io import atomic

        atomic.write_json(f"{out}.json", summary)
    return summary


def _load(run: str | Path, choice: FittedChoice, ensemble: bool, device: str) -> list[FittedModel]:
    from genodiff.finetuning.fitted_model import check_ensemble, read_fitted
    from genodiff.finetuning.unit_selection import UnitChoice, find_units

    wanted = UnitChoice(choice.task, choice.model, choice.method, choice.setting, choice.seed)
    folders = find_units(run, wanted, all_seeds=ensemble)
    if ensemble and len(folders) < 2:
        raise UsageError(
            "--ensemble: one seed only is here", file=run, fix="leave it out, or fit more --seeds"
        )
    models = [read_fitted(folder, device=device) for folder in folders]
    check_ensemble(models)
    return models


@dataclass(frozen=True)
class _Job:
    """What is to be predicted: how to read it again, how many there are, how many are cut."""

    given: Any
    source: QuerySource
    total: int | None = None
    n_cut: int = 0
    n_turned: int = 0

    def queries(self) -> Iterator[Query]:
        from genodiff.tasks.unlabelled import read_queries

        return read_queries(self.given, self.source)


def _look(given: Any, source: QuerySource, model: FittedModel) -> _Job:
    """Read all that can be read twice, so that a fault comes before hours of work."""
    if str(given) == STDOUT:
        return _Job(given, source)
    if isinstance(given, Iterator) and not hasattr(given, "read"):
        given = list(given)  # an iterator cannot be read twice
    job = _Job(given, source)
    total = n_cut = n_turned = 0
    first: Query | None = None
    for query in job.queries():
        total += 1
        n_turned += query.strand == "-"
        if model.cuts(query.sequence):
            n_cut, first = n_cut + 1, first or query
    if first is not None:
        _log.warning(
            "%s of %s sequences are longer than %s bases and are cut to their first %s, as the "
            "fit's own were (the first: %s)",
            f"{n_cut:,}",
            f"{total:,}",
            f"{model.card.max_length:,}",
            f"{model.card.max_length:,}",
            first.name,
        )
    if n_turned:
        said = "%s of %s rows are on -, and are read as their reverse complement"
        _log.info(said, f"{n_turned:,}", f"{total:,}")
    return replace(job, total=total, n_cut=n_cut, n_turned=n_turned)


def _frames(models: list[FittedModel], job: _Job, batch_size: int) -> Iterator[pl.DataFrame]:
    """The frames, with a progress line."""
    from genodiff.finetuning.fitted_model import predict_queries
    from genodiff.io.progress import ProgressDisplay, format_duration

    done, began = 0, time.monotonic()
    with ProgressDisplay() as display:
        for frame in predict_queries(models, job.queries(), batch_size=batch_size):
            yield frame
            done += frame.height
            pace = done / max(1e-9, time.monotonic() - began)
            text = f"predicted {format_count(done, 'sequence')} · {pace:,.0f}/s"
            if job.total is not None:
                text = f"predicted {done:,} of {job.total:,} sequences · {pace:,.0f}/s"
                text += f" · {format_duration((job.total - done) / pace)} to go"
            display.show(text, done, job.total)


def _summary(
    models: list[FittedModel],
    job: _Job,
    run: str | Path,
    out: str | Path,
    form: Format,
    rows: int,
    seconds: float,
) -> dict[str, Any]:
    """Where predictions come from, as the sidecar says it."""
    from genodiff.io.identity import stamp_time

    card, source = models[0].card, job.source
    return {
        "genodiff": __version__, "out": str(out), "format": form,
        "file": None if is_stream(out) else describe_file(out), "rows": rows,
        "cut": job.n_cut, "on_minus": job.n_turned, "max_length": card.max_length,
        "run": str(run), "suite": card.unit.suite, "task": card.unit.task,
        "model": card.unit.model, "method": card.unit.method, "kind": card.kind,
        "classes": list(card.classes), "strands": None if card.settings is None
        else card.settings.rc,
        "units": [{"key": m.card.unit.key, "seed": m.card.unit.seed, "weights": m.digest}
                  for m in models],
        "sequences": _identity(job.given), "columns": list(source.columns),
        "fasta": None if source.fasta is None else _identity(Path(source.fasta)),
        "regions": list(source.regions) or None,
        "argv": sys.argv, "seconds": round(seconds, 3), "created": stamp_time(),
    }  # fmt: skip


def _identity(given: Any) -> dict[str, Any] | None:
    """A file's name and hash; None for sequences in memory."""
    from genodiff.io.identity import sha256_file
    from genodiff.io.sequences import is_file

    if not is_file(given):
        return None
    path = str(given)
    return {"path": path, "sha256": None if path == "-" else sha256_file(path)}
