"""The page of a run, of several runs or of scored variants: `genodiff.report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from genodiff.errors import DataError, MachineError, UsageError
from genodiff.io.target import check_target
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_may_write, locate

_NAMED = 3  # runs in the name of the page of several


@own_defaults()
def report(
    run: str | Path,
    *more: str | Path,
    out: str | Path | None = None,
    samples: str | Path | None = None,
    model: str | Path | None = None,
    fasta: str | Path | None = None,
    top: int = 20,
    device: str = "auto",
    force: bool = False,
    offline: bool = True,
) -> Path:
    """Write the page of what a run folder or a file of scored variants holds; return its path.

    The default for `out` is RUN/report.html; a file there that genodiff did not write is replaced
    with `force` only. `samples` is a FASTA file (of text, a file of `genodiff sample`) that is
    compared with real sequence in place of the run's own; then the default for `out` is
    SAMPLES.html.

    With `more` runs the page sets all of them side by side: curves, bounds, settings that differ.
    The default for `out` is then report-RUN-RUN.html beside the first run.

    Of an output of `genodiff.score` (or of `genodiff.merge`) in `run` the default is SCORES.html.
    `model`, the run that made the scores, adds logos of the `top` least likely variants, and scores
    some again to test the standard errors; `fasta` is the genome, by default where it was.

    Raises `CheckpointError` where `run` is no run folder, `DataError` where `samples` is not there
    or a file holds no scores, `UsageError`, `MachineError`.
    """
    if out is not None:
        check_target(out, force=True)  # the place alone: what is there is judged by each report
    if more:
        given = {"--samples": samples, "--model": model, "--fasta": fasta}
        return _report_runs([run, *more], out, given, force=force)
    if _is_scores(run):
        if samples is not None:
            raise UsageError("--samples is for the report of a run", fix="leave it out")
        from genodiff.reports.variant_report import report_variants

        return report_variants(
            run, out=out, model=model, fasta=fasta, top=top, device=device, force=force
        )
    if model is not None or fasta is not None:
        what = "--model and --fasta are for the report of scored variants"
        raise UsageError(what, file=run, fix="give an output of genodiff score, or leave them out")
    path = locate(run)
    if samples is not None and not Path(samples).is_file():
        raise DataError("there is no such file", file=samples, fix="give a file of samples")
    target = Path(
        out if out is not None else f"{samples}.html" if samples else path / "report.html"
    )
    known = _is_older_page if out is None else None
    try:
        if out is None and samples is None:
            check_may_write(path, "give --out FILE.html")
        check_target(target, force=force, inputs=(samples,), known=known)
    except MachineError as fault:
        raise MachineError(fault.what, file=target, fix="give --out FILE.html") from None
    from genodiff.reports.html import write_report

    drawn = None if samples is None else Path(samples)
    return write_report(path, target, samples=drawn, offline=offline)


def _report_runs(
    runs: Sequence[str | Path],
    out: str | Path | None,
    given: Mapping[str, object],
    *,
    force: bool,
) -> Path:
    """The page of several runs. Raises as `report` does."""
    for flag, value in given.items():
        if value is not None:
            raise UsageError(f"{flag} is for the page of one run", fix="leave it out")
    paths = [locate(run) for run in runs]
    twice = [path for i, path in enumerate(paths) if path.resolve() in _resolve(paths[:i])]
    if twice:
        raise UsageError("is given twice", file=twice[0], fix="give each run once")
    names = [path.resolve().name for path in paths]
    shown = names[:_NAMED] + [f"and-{len(names) - _NAMED}-more"] * (len(names) > _NAMED)
    beside = paths[0].resolve().parent / f"report-{'-'.join(shown)}.html"
    target = Path(out) if out is not None else beside
    check_target(target, force=force, inputs=())
    from genodiff.io import atomic
    from genodiff.io.target import seal_page
    from genodiff.reports.folder import read_folder
    from genodiff.reports.runs_page import render_runs

    found = [read_folder(path) for path in paths]
    other = next((run for run in found if run.domain is not found[0].domain), None)
    if other is not None:
        what = f"is a run of {other.domain.name}, and {paths[0]} one of {found[0].domain.name}"
        raise UsageError(what, file=other.path, fix="give runs of one kind")
    atomic.write_text(target, seal_page(render_runs(found)))
    return target


def _resolve(paths: Sequence[Path]) -> list[Path]:
    return [path.resolve() for path in paths]


def _is_scores(path: str | Path) -> bool:
    """Whether this is a file with one of the endings that scores have."""
    name = str(path).lower().removesuffix(".gz")
    return name.endswith((".vcf", ".tsv", ".parquet", ".jsonl")) and not Path(path).is_dir()


def _is_older_page(path: Path) -> bool:
    """Whether this is a page of ours from before pages were sealed."""
    text = path.read_bytes()
    return b'name="generator" content="genodiff ' in text and b"genodiff wrote this" not in text
