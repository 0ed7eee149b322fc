"""New sequences and filled ones, in memory: what `genodiff sample` writes to files."""

from dataclasses import dataclass
from typing import Any

from genodiff.errors import UsageError
from genodiff.generate.dna_drawing import DnaDrawing
from genodiff.generate.infill import Template
from genodiff.generate.request import HeldSampleRequest, InfillRequest
from genodiff.generate.text_drawing import TextDrawing, make_whole_template, parse_template
from genodiff.io.sequences import is_single, read_records, read_texts, restore_form
from genodiff.models.opening import refuse_fitted

MARK = b"?"
"""A gap in a sequence in memory, as well as N."""


@dataclass(frozen=True)
class SampledSequence:
    """A new or filled sequence; `nfe` counts the evaluations of the network for it."""

    name: str
    sequence: str
    nfe: int


def draw_sequences(asked: HeldSampleRequest, holder: Any) -> list[Any]:
    """What `genodiff.Model.sample` gives: strings, or records. Raises `UsageError`."""
    model = refuse_fitted(holder.inner).in_blocks(asked.block)
    how = asked.read_sampling(holder.memory)
    drawing: DnaDrawing | TextDrawing
    if model.alphabet.domain == "text":
        tokenizer = holder.tokenizer
        whole = make_whole_template(model, tokenizer, asked.length, asked.prompt)
        drawing = TextDrawing(model, how, asked.n, tokenizer, [whole])
    elif asked.prompt is not None:
        what = "a prompt is for text, and the model is of DNA"
        raise UsageError(what, fix="use infill, with N where bases are to be filled in")
    else:
        drawing = DnaDrawing(model, how, asked.n, length=asked.length)
    drawn = _draw(drawing, asked.seed)
    return drawn if asked.records else [one.sequence for one in drawn]


def fill_sequences(asked: InfillRequest, holder: Any) -> Any:
    """What `genodiff.Model.infill` gives: the sequences filled, in the form of what was given."""
    model = refuse_fitted(holder.inner).in_blocks(asked.block)
    how = asked.read_sampling(holder.memory)
    given = asked.sequences
    if model.alphabet.domain == "text":
        texts = [parse_template(one) for one in read_texts(given)]
        drawn = _draw(TextDrawing(model, how, 1, holder.tokenizer, texts), asked.seed)
        filled = [one.sequence for one in drawn]
        restored: Any = filled[0] if isinstance(given, str) else filled
    else:
        records = read_records(given, extra=MARK)
        templates = [Template(one.name, one.description, one.sequence) for one in records]
        drawn = _draw(DnaDrawing(model, how, 1, templates=templates), asked.seed)
        restored = restore_form(given, [one.sequence for one in drawn], MARK)
    if not asked.records:
        return restored
    return drawn[0] if is_single(given, MARK) else drawn


def _draw(drawing: DnaDrawing | TextDrawing, seed: int) -> list[SampledSequence]:
    drawn = []
    for sample in drawing.draw(seed):
        filled = drawing.read(sample)
        drawn.append(SampledSequence(drawing.name(sample.number), filled.text.decode(), sample.nfe))
    return drawn
