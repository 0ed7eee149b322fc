"""The page of a file of scored variants: what `genodiff.report` does with one."""

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from genodiff.errors import DataError, UsageError
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.io.target import check_target, is_own_file, read_json_object, seal_page
from genodiff.io.variants import Allele, VariantRecord, judge_record
from genodiff.models.opening import open_language
from genodiff.reports.variant_page import TopVariant, render_variant_page
from genodiff.runs.trained_model import TrainedModel, reopen_relatives
from genodiff.runs.training_memory import open_loci
from genodiff.scoring.allele_score import LONGEST_SPAN
from genodiff.scoring.masked_reader import open_reader
from genodiff.scoring.variant_windows import UnscorableError
from genodiff.variants.logos import read_logos, read_relatives_around
from genodiff.variants.scored_file import ScoredFile, ScoredRow
from genodiff.variants.scored_tally import ScoredTally

_log = logging.getLogger("genodiff")
_NO_MODEL = (
    "No model was asked, so there are no logos: give --model RUN, and --fasta where the genome is "
    "elsewhere now."
)


def report_variants(
    scored: str | Path,
    *,
    out: str | Path | None = None,
    model: str | Path | None = None,
    opened: TrainedModel | None = None,
    fasta: str | Path | None = None,
    top: int = 20,
    device: str = "auto",
    force: bool = False,
) -> Path:
    """Write the page of an output of `genodiff.score`, and return its path.

    The default for `out` is SCORED.html. With `model`, the run that the scores are of, the `top`
    least likely variants have logos of REF and ALT and what its relatives have there; `opened` is
    that model with its relatives, where it is open already. `fasta` is by default the one that the
    sidecar names. Rows are read one by one: memory does not grow with them. Raises
    `DataError` for a file that holds no scores, `UsageError` for another model or genome,
    `CheckpointError`, `MachineError`.
    """
    if top < 0:
        raise UsageError(f"--top {top} is below 0", fix="give 0 or more")
    if model is None and fasta is not None:
        raise UsageError("--fasta is for logos, which need a model", fix="give --model RUN")
    target = Path(f"{scored}.html" if out is None else out)
    check_target(target, force=force, inputs=(scored, fasta))

    file = ScoredFile(scored)
    told = read_json_object(f"{scored}.json")
    told = told if {"requested", "scored", "unscored", "checkpoint"} <= told.keys() else {}
    tally = ScoredTally(top)
    for row in file.rows():
        tally.add(row)
    changed = bool(told) and not is_own_file(scored)
    found = [TopVariant(row) for row in tally.list_least()]
    if model is not None:
        if not told:
            what = "has no sidecar, so its model and genome are not known"
            raise DataError(what, file=scored, fix=f"put {scored}.json beside it")
        path = fasta if fasta is not None else told["fasta"]["path"]
        trained = opened or open_language(model, device, **reopen_relatives(told), fasta=path)
        found = _ask_model(tally.list_least(), told, trained, path)
    page = render_variant_page(
        Path(scored).name, tally, told or {"requested": file.about}, found,
        changed=changed, why_no_model=_NO_MODEL if model is None else "",
    )  # fmt: skip
    atomic.write_text(target, seal_page(page))
    _log.info("%s: the page is written", target)
    return target


def _ask_model(
    least: Sequence[ScoredRow],
    told: Mapping[str, Any],
    trained: TrainedModel,
    path: str | Path,
) -> list[TopVariant]:
    if trained.digest != told["checkpoint"]:
        what = f"the scores are of the model {told['checkpoint']}, and this is {trained.digest}"
        raise UsageError(what, file=trained.run, fix="give the run that they were made with")
    with Genome(path) as genome, ProgressDisplay() as display:
        if genome.sha256 != told["fasta"]["sha256"]:
            raise UsageError(
                "is not the genome that the scores are of", file=path, fix="give --fasta"
            )
        context = told["requested"].get("context")
        length = context if isinstance(context, int) else trained.config.data.seq_len
        memory = "on" if told.get("memory") else "off"
        loci = open_loci(trained, genome, memory, longest=length + LONGEST_SPAN)
        reader = open_reader(trained, loci=loci)
        found, began = [], time.monotonic()
        for done, row in enumerate(least):
            text = f"Drawing the page: {done} of {len(least)} logos"
            if done:
                left = (time.monotonic() - began) / done * (len(least) - done)
                text += f" · {format_duration(left)} to go"
            display.show(text, done, len(least))
            try:
                place = (trained, reader, genome, _find_allele(row, genome), length)
                found.append(TopVariant(row, read_logos(*place), read_relatives_around(*place)))
            except UnscorableError:
                found.append(TopVariant(row))
        return found


def _find_allele(row: ScoredRow, genome: Genome) -> Allele:

    record = VariantRecord(0, row.chrom, row.pos, row.id, row.ref, (row.alt,))
    (found,) = judge_record(record, genome)
    if not isinstance(found, Allele):
        what = f"{row.chrom}:{row.pos} {row.ref}>{row.alt} does not fit the genome ({found})"
        raise DataError(what, fix="give the file as genodiff score wrote it")
    return found
