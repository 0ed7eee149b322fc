"""The file of what a model draws. An entry of the job is a record that is drawn."""

import logging
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

from genodiff.errors import format_count
from genodiff.generate.drawing import Drawing
from genodiff.generate.estimate import plan_sampling
from genodiff.generate.output_file import SampleFile
from genodiff.generate.request import DrawRequest
from genodiff.generate.samples import RecordParts, Sample
from genodiff.io import atomic
from genodiff.jobs.job import Job, Rows
from genodiff.runs.relatives_plan import describe_waiting

_log = logging.getLogger("genodiff")
Asked = TypeVar("Asked", bound=DrawRequest)


class DrawJob(Job[Asked]):
    """The file of a drawing. What a screener must see first is not kept before."""

    noun, unit = "evaluations", "record"
    drawing: Drawing

    @abstractmethod
    def make_drawing(self, stack: ExitStack) -> Drawing:
        """The model and what is read, opened."""

    def open(self, stack: ExitStack) -> None:
        self.screener = self.request.open_screener()
        self.keeps = self.screener is None
        self.drawing = self.make_drawing(stack)
        self.work = self.drawing.workload()
        self.total = round(self.drawing.n * self.work.evaluations)

    def plan(self) -> dict[str, Any]:
        told = plan_sampling(self.drawing, self.work, self.list_files())
        return told | describe_waiting(self.drawing.model.relatives)

    def identify(self) -> dict[str, Any]:
        return self.drawing.identify()

    def weigh(self, entry: bytes) -> int:
        return 0  # each evaluation is told on its way

    def entries(self, first: int) -> Iterator[bytes]:
        done = first / max(1, self.drawing.n * self.work.records)
        self.tick(round(min(1.0, done) * self.total))
        journal = self.journal
        self.drawing.parts = RecordParts(journal.list_parts(), first, journal.append_part)
        for sample in self.drawing.draw(self.request.seed, first, self.tick):
            yield sample.pack()

    def write(self, rows: Rows) -> dict[str, Any]:
        asked = self.request
        out = SampleFile(
            str(asked.out), asked.sidecar_file, line_width=asked.line_width, screener=self.screener
        )
        samples = (Sample.unpack(i, row) for i, row in enumerate(rows()))
        told = self.drawing.write(out, samples, asked.seed, self.digest)
        records = told.pop("records")
        self.said = {**told, **out.told, "records": records}
        return self.said

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        """Write the sidecar, which is a function of the request: no time and no machine."""
        said = {"genodiff": told["genodiff"], "requested": told["requested"], **self.said}
        if self.request.sidecar_file != "-":
            atomic.write_json(self.request.sidecar_file, said)
        replaced = sum(record.get("invalid_utf8", 0) for record in said["records"])
        if replaced:
            places = format_count(replaced, "place")
            what = "%s: %s that were no UTF-8 are written as U+FFFD"
            _log.warning(what, self.request.out, places)
        return said
