"""A run's page: `genodiff.report`."""

from __future__ import annotations

from pathlib import Path

from genodiff.api.run_paths import check_run
from genodiff.io.target import check_target


def report(
    run: str | Path, *, out: str | Path | None = None, force: bool = False, offline: bool = True
) -> Path:
    """Write the page of what a run folder holds, and return its path.

    The default for `out` is RUN/report.html; a file there that genodiff did not write is replaced
    with `force` only. Raises `CheckpointError` where `run` is no run folder, `UsageError`,
    `MachineError`.
    """
    path = check_run(run)
    known = _is_older_page if out is None else None
    check_target(path / "report.html" if out is None else out, force=force, known=known)
    from genodiff.reports.html import write_report

    return write_report(path, None if out is None else Path(out), offline=offline)


def _is_older_page(path: Path) -> bool:
    """Whether this is a page of ours from before pages were sealed."""
    text = path.read_bytes()
    return b'name="generator" content="genodiff ' in text and b"genodiff wrote this" not in text
