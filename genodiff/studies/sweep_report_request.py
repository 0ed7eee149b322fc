"""What `finetune report` is asked. No torch."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.errors import DataError
from genodiff.io.target import check_target
from genodiff.jobs.options import Force, Margin
from genodiff.jobs.request import Option, Request, find_named
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import locate
from genodiff.studies.sweep_request import PAGES

_log = logging.getLogger("genodiff")


@verb("finetune report", function="")
@dataclass(frozen=True, kw_only=True)
class SweepReportRequest(Request[list[Path]]):
    """Write RESULTS.md and report.html of a sweep again."""

    json_help: ClassVar[str] = ""

    out: Annotated[Path | str, Option("Folder of a sweep.", ("--out",), is_word=True)] = field(
        kw_only=False
    )
    margin: Margin = None
    force: Force = False

    def answer(self, *given: Any) -> list[Path]:
        """Their paths. Raises `DataError` for a folder that is no sweep's, `UsageError`."""
        folder = locate(self.out, there=False)
        if not (folder / "results.jsonl").exists():
            raise DataError("holds no results.jsonl", file=folder, fix="give the folder of a sweep")
        for name in PAGES:
            check_target(folder / name, force=self.force)
        write = find_named("genodiff.reports.benchmark:write_benchmark")
        files: list[Path] = write(folder, self.margin).files
        return files

    def show(self, answer: Any) -> None:
        """Where the pages are."""
        for path in answer:
            _log.info("%s", path)
