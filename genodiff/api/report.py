"""The page of a run or of scored variants: `genodiff.report`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.errors import DataError, MachineError, UsageError
from genodiff.io.target import check_target
from genodiff.jobs.options import ONLY_RUN, OUT, RUN_NAMES, Device, Force, Offline
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_may_write, locate


@verb("report", help="Write the report of a run, or the page of scored variants.")
@dataclass(frozen=True, kw_only=True)
class ReportRequest(Request[Path]):
    """Write a page about a run or a file of scored variants; return its path.

    The default for `out` is RUN/report.html; a file there that genodiff did not write is replaced
    with `force` only. `samples` is a FASTA file (for text, a file of `genodiff sample`) that is
    compared with real sequence instead of the run's own samples; the default for `out` is then
    SAMPLES.html.

    For an output of `genodiff.score` (or of `genodiff.merge`) the default is SCORES.html. `model`,
    the run that made the scores, adds logos of the `top` least likely variants, and scores some
    again to test the standard errors; `fasta` is the genome, by default at its recorded path.

    Raises `CheckpointError` if there is no run folder, `DataError` if `samples` does not exist or a
    file holds no scores, `UsageError`, `MachineError`.
    """

    json_help: ClassVar[str] = ""

    what: Annotated[
        str | Path | None,
        Option("Run folder, or an output of genodiff score (or merge).", ("WHAT",), is_word=True),
    ] = field(default=None, kw_only=False)
    model: Annotated[Path | str | None, Option(ONLY_RUN, RUN_NAMES)] = None
    out: Annotated[
        Path | str | None,
        Option("HTML file to write (default: RUN/report.html, or SCORES.html).", OUT),
    ] = None
    samples: Annotated[
        Path | str | None,
        Option(
            "Samples to compare with real sequence, instead of the run's own; the page is then"
            " SAMPLES.html."
        ),
    ] = None
    fasta: Annotated[
        Path | str | None,
        Option("For scores with --model: the genome (default: its recorded path)."),
    ] = None
    top: Annotated[int, Option("For scores: number of least likely variants listed.")] = 20
    device: Device = "auto"
    force: Force = False
    offline: Offline = True

    @classmethod
    def arrange(cls, values: dict[str, Any]) -> None:
        """A run may be given as --model alone."""
        if values["what"] is None and values["model"] is not None:
            values |= {"what": values["model"], "model": None}

    def answer(self, *given: Any) -> Path:
        """The path."""
        if self.what is None:
            raise UsageError("nothing to report on", fix="give a run folder, or scored variants")
        run, out, samples, force = self.what, self.out, self.samples, self.force
        if out is not None:
            check_target(out, force=True)  # the place alone: each report judges what is there
        if _is_scores(run):
            if samples is not None:
                raise UsageError("--samples is for the report of a run", fix="leave it out")
            from genodiff.reports.variant_report import report_variants

            return report_variants(
                run, out=out, model=self.model, fasta=self.fasta, top=self.top,
                device=self.device, force=force,
            )  # fmt: skip
        if self.model is not None or self.fasta is not None:
            what = "--model and --fasta are for the report of scored variants"
            fix = "give an output of genodiff score, or leave them out"
            raise UsageError(what, file=run, fix=fix)
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
        return write_report(path, target, samples=drawn, offline=self.offline)

    def show(self, answer: Any) -> None:
        """Its path."""
        print(answer)


def _is_scores(path: str | Path) -> bool:
    """Whether this is a file with one of the endings that scores have."""
    name = str(path).lower().removesuffix(".gz")
    return name.endswith((".vcf", ".tsv", ".parquet", ".jsonl")) and not Path(path).is_dir()


def _is_older_page(path: Path) -> bool:
    """Whether this is a page of ours from before pages were sealed."""
    text = path.read_bytes()
    return b'name="generator" content="genodiff ' in text and b"genodiff wrote this" not in text
