"""The report of a run: `genodiff.report`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.errors import DataError, MachineError
from genodiff.io.target import check_target
from genodiff.jobs.options import OUT, RUN_NAMES, Force, Offline
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_may_write, locate


@verb("report", help="Write the report of a run.")
@dataclass(frozen=True, kw_only=True)
class ReportRequest(Request[Path]):
    """Write a page about a run; return its path.

    The default for `out` is RUN/report.html; a file there that genodiff did not write is replaced
    with `force` only. `samples` is a FASTA file (for text, a file of `genodiff sample`) that is
    compared with real sequence instead of the run's own samples; the default for `out` is then
    SAMPLES.html.

    Raises `CheckpointError` if there is no run folder, `DataError` if `samples` does not exist,
    `UsageError`, `MachineError`.
    """

    json_help: ClassVar[str] = ""

    run: Annotated[str | Path, Option("Run folder.", RUN_NAMES, is_word=True)] = field(
        kw_only=False
    )
    out: Annotated[
        Path | str | None, Option("HTML file to write (default: RUN/report.html).", OUT)
    ] = None
    samples: Annotated[
        Path | str | None,
        Option(
            "Samples to compare with real sequence, instead of the run's own; the page is then"
            " SAMPLES.html."
        ),
    ] = None
    force: Force = False
    offline: Offline = True

    def answer(self, *given: Any) -> Path:
        out, samples, force = self.out, self.samples, self.force
        if out is not None:
            check_target(out, force=True)  # the place alone: what is there is judged below
        path = locate(self.run)
        if samples is not None and not Path(samples).is_file():
            raise DataError("there is no such file", file=samples, fix="give a file of samples")
        usual = f"{samples}.html" if samples else path / "report.html"
        target = Path(usual if out is None else out)
        known = _is_older_page if out is None else None
        try:
            if out is None and samples is None:
                check_may_write(path, "give --out FILE.html")
            check_target(target, force=force, inputs=(samples,), known=known)
        except MachineError as fault:
            raise MachineError(fault.what, file=target, fix="give --out FILE.html") from None
        from genodiff.reports.html import write_report

        drawn = None if samples is None else Path(samples)
        return write_report(path, target, samples=drawn, offline=self.offline)

    def show(self, answer: Any) -> None:
        print(answer)


def _is_older_page(path: Path) -> bool:
    """Whether this is a page of ours from before pages were sealed."""
    text = path.read_bytes()
    return b'name="generator" content="genodiff ' in text and b"genodiff wrote this" not in text
