"""New DNA sequences, and templates whose gaps are filled."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.diffusion.registries import SAMPLERS
from genodiff.errors import UsageError
from genodiff.generate.block_reading import Ids
from genodiff.generate.filler import Sample
from genodiff.generate.guiding import Guiding
from genodiff.generate.infill import Template
from genodiff.generate.output_file import SampleFile
from genodiff.generate.sample import Drawing, choose_batch_size, name_filling
from genodiff.generate.sampling import LONG_STEPS, Sampling
from genodiff.io.fasta import Record
from genodiff.io.genbank_writer import Mark, mark_changes
from genodiff.runs.trained_model import TrainedModel


class _Filled(NamedTuple):
    """A record's letters, own description, and which of its bases are drawn."""

    text: bytes
    description: str
    drawn: NDArray[np.bool_]


class DnaDrawing(Drawing):
    """DNA sequences of `length` bases, by default the trained length, or `templates` filled."""

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling,
        n: int,
        *,
        length: int | None = None,
        templates: Sequence[Template] | None = None,
        guiding: Guiding | None = None,
        sources: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(model, how, n, sources)
        if guiding is not None and self.how.memory == "novel":
            what = "--memory novel draws records again, which --guidance cannot"
            raise UsageError(what, fix="give --memory on")
        if self.how.batch_size is None and templates is None:
            self.how = replace(self.how, batch_size=choose_batch_size(model, length))
        self.guiding, self.templates = guiding, templates
        self.length = length or model.config.data.seq_len
        grows = templates is None and self.length > model.config.data.seq_len
        in_steps = model.objective.kind == "masked" and SAMPLERS[str(self.how.sampler)].uses_steps
        if grows and in_steps and guiding is None and self.how.steps == "auto":
            self.how = replace(self.how, steps=LONG_STEPS)
        self.lengths = [self.length] if templates is None else [len(t.text) for t in templates]

    def describe(self) -> Any:
        drafts: Any = self.lengths
        if self.templates is not None:
            drafts = [
                [t.name, t.description, hashlib.sha256(t.text).hexdigest()] for t in self.templates
            ]
        return drafts if self.guiding is None else [drafts, self.guiding.describe()]

    def drafts(self) -> Iterable[Ids]:
        if self.templates is None:
            return [np.full(self.length, self.model.alphabet.mask_id, np.uint8)]
        return (template.ids(self.model.alphabet) for template in self.templates)

    def name(self, number: int) -> str:
        if self.templates is None:
            return super().name(number)
        return name_filling(self.templates[number // self.n].name, self.n, number)

    def read(self, sample: Sample) -> _Filled:
        """A sample in letters."""
        alphabet = self.model.alphabet
        if self.templates is None:
            text = alphabet.decode(sample.ids).encode("ascii")
            return _Filled(text, "", np.ones(len(text), np.bool_))
        template = self.templates[sample.number // self.n]
        text = template.filled(sample.ids, alphabet)
        return _Filled(text, template.description, template.gaps)

    def write(
        self, out: SampleFile, samples: Iterator[Sample], seed: int, request: str
    ) -> dict[str, Any]:
        entries: list[dict[str, Any]] = []
        with out.open() as file:
            out.write_records(file, self._records(samples, seed, entries, out.mark))
            out.screen()
        told = self.tell(seed, entries)
        if self.memory is not None and self.templates is None:
            matches = [(entry["train_match"] or {"length": 0})["length"] for entry in entries]
            told["train_matches"] = self.memory.compare(matches, self.length)
        return told

    def _records(
        self, samples: Iterator[Sample], seed: int, entries: list[dict[str, Any]], mark: str
    ) -> Iterator[tuple[Record, list[Mark]]]:
        for sample in samples:
            name, filled = self.name(sample.number), self.read(sample)
            entry: dict[str, Any] = {"name": name, "length": len(sample.ids), "nfe": sample.nfe}
            if sample.calls is not None:
                entry["oracle_calls"] = sample.calls
            if sample.log_z is not None:
                entry["log_z"] = sample.log_z
            if self.templates is not None:
                entry["filled"] = int(filled.drawn.sum())
            ours = self.describe_record(seed, len(filled.text), sample.nfe)
            if self.memory is not None:
                entry |= self.memory.describe_record(sample.ids, filled.drawn)
                ours += f" train_match={(entry['train_match'] or {'length': 0})['length']}"
            entries.append(entry)
            if self.guiding is not None:
                ours += f" guidance={self.guiding.name} strength={self.guiding.strength:g}"
            # What holds no gap is not ours: its header stays as it is.
            about = f"{ours}{mark} {filled.description}".rstrip()
            if not entry.get("filled", 1):
                about = filled.description
            before = np.where(filled.drawn, ord("N"), np.frombuffer(filled.text, np.uint8))
            marks = [] if self.templates is None else mark_changes(before.tobytes(), filled.text)
            yield Record(name, about, filled.text, 0), marks
