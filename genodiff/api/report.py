"""The page of a run or of scored variants: `genodiff.report`."""

from __future__ import annotations

from pathlib import Path

from genodiff.api.run_paths import check_run
from genodiff.api.variant_report import TOP, report_variants
from genodiff.errors import DataError, UsageError
from genodiff.io.target import check_target


def report(
    run: str | Path,
    *,
    out: str | Path | None = None,
    samples: str | Path | None = None,
    model: str | Path | None = None,
    fasta: str | Path | None = None,
    top: int = TOP,
    device: str = "auto",
    force: bool = False,
    offline: bool = True,
) -> Path:
    """Write the page of what a run folder or a file of scored variants holds; return its path.

    The default for `out` is RUN/report.html; a file there that genodiff did not write is replaced
    with `force` only. `samples` is a FASTA file (of text, a file of `genodiff sample`) that is
    compared with real sequence in place of the run's own; then the default for `out` is
    SAMPLES.html.

    Of an output of `genodiff.score` (or of `genodiff.merge`) in `run` the default is SCORES.html.
    `model`, the run that made the scores, adds logos of the `top` least likely variants, and scores
    some again to test the standard errors; `fasta` is the genome, by default where it was.

    Raises `CheckpointError` where `run` is no run folder, `DataError` where `samples` is not there
    or a file holds no scores, `UsageError`, `MachineError`.
    """
    if _is_scores(run):
        if samples is not None:
            raise UsageError("--samples is for the report of a run", fix="leave it out")
        return report_variants(
            run, out=out, model=model, fasta=fasta, top=top, device=device, force=force
        )
    if model is not None or fasta is not None:
        what = "--model and --fasta are for the report of scored variants"
        raise UsageError(what, file=run, fix="give an output of genodiff score, or leave them out")
    path = check_run(run)
    if samples is not None and not Path(samples).is_file():
        raise DataError("there is no such file", file=samples, fix="give a file of samples")
    target = Path(
        out if out is not None else f"{samples}.html" if samples else path / "report.html"
    )
    known = _is_older_page if out is None else None
    check_target(target, force=force, inputs=(samples,), known=known)
    from genodiff.reports.html import write_report

    drawn = None if samples is None else Path(samples)
    return write_report(path, target, samples=drawn, offline=offline)


def _is_scores(path: str | Path) -> bool:
    """Whether this is a file with one of the endings that scores have."""
    name = str(path).lower().removesuffix(".gz")
    return name.endswith((".vcf", ".tsv", ".parquet", ".jsonl")) and not Path(path).is_dir()


def _is_older_page(path: Path) -> bool:
    """Whether this is a page of ours from before pages were sealed."""
    text = path.read_bytes()
    return b'name="generator" content="genodiff ' in text and b"genodiff wrote this" not in text
