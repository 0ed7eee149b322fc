"""A run's page: `genodiff.report`."""

from __future__ import annotations

from pathlib import Path

from genodiff.api.run_paths import check_run
from genodiff.errors import DataError
from genodiff.io.target import check_target


def report(
    run: str | Path,
    *,
    out: str | Path | None = None,
    samples: str | Path | None = None,
    force: bool = False,
    offline: bool = True,
) -> Path:
    """Write the page of what a run folder holds, and return its path.

    The default for `out` is RUN/report.html; a file there that genodiff did not write is replaced
    with `force` only. `samples` is a FASTA file (of text, a file of `genodiff sample`) that is
    compared with real sequence in place of the run's own; then the default for `out` is
    SAMPLES.html. Raises `CheckpointError` where `run` is no run folder, `DataError` where `samples`
    is not there, `UsageError`, `MachineError`.
    """
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


def _is_older_page(path: Path) -> bool:
    """Whether this is a page of ours from before pages were sealed."""
    text = path.read_bytes()
    return b'name="generator" content="genodiff ' in text and b"genodiff wrote this" not in text
