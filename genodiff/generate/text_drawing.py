"""New text from a trained model: from nothing, after a prompt, or into the gaps of templates.

A template is plain text in which `[[12]]` stands for 12 tokens to be filled in; everything else is
kept, to the byte. A prompt is a template that ends in one gap. Texts stand in the output one after
another, with a line `<|endoftext|>` between them, which also ends a document inside a sample
(packed text runs through several). The sidecar says where each record begins.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.tokenizer import Tokenizer
from genodiff.domain import TEXT, Domain
from genodiff.errors import DataError, UsageError
from genodiff.generate.filler import Sample
from genodiff.generate.output_file import SampleFile
from genodiff.generate.sample import Drawing
from genodiff.generate.sampling import Sampling
from genodiff.io.input_file import name_input
from genodiff.io.text_file import read_text_pieces
from genodiff.runs.trained_model import TrainedModel

END = b"<|endoftext|>"
GAP = re.compile(r"\[\[(\d+)\]\]")
LONGEST = 1 << 24

Ids = NDArray[Any]


@dataclass(frozen=True)
class TextTemplate:
    """Text and gaps in turn: a string is kept, a number of tokens is filled in."""

    parts: tuple[str | int, ...]

    @property
    def gaps(self) -> int:
        """Tokens to fill in."""
        return sum(part for part in self.parts if isinstance(part, int))


class Draft(NamedTuple):
    """A template as ids, mask at the gaps; the parts of its ids, in the parts' order."""

    ids: Ids
    spans: list[tuple[int, int]]


class Filled(NamedTuple):
    """The text of a filled template, and how many bytes of it were no UTF-8 and are shown as
    U+FFFD.
    """

    text: bytes
    invalid: int


def read_template(path: str) -> TextTemplate:
    """The template in a text file (- for stdin). Raises `DataError`."""
    return parse_template("".join(read_text_pieces(path)), name_input(path))


def parse_template(text: str, file: str | None = None) -> TextTemplate:
    """The template in `text`, of `file`. Raises `DataError` where it has no gap."""
    parts: list[str | int] = []
    for i, part in enumerate(GAP.split(text)):
        if i % 2:
            size = int(part) if len(part) < 10 else LONGEST + 1
            if not 1 <= size <= LONGEST:
                what = f"has a gap of {part} tokens, which is not between 1 and {LONGEST:,}"
                raise DataError(what, file=file, fix="write a smaller number")
            parts.append(size)
        elif part:
            parts.append(part)
    if not any(isinstance(part, int) for part in parts):
        fix = "write [[20]] where 20 tokens are to be filled in"
        raise DataError("has no gap to fill", file=file, fix=fix)
    return TextTemplate(tuple(parts))


def make_prompt_template(prompt: str, length: int, tokenizer: Tokenizer) -> TextTemplate:
    """`prompt` and as many new tokens as make `length` with it. Raises `UsageError` where none are
    left.
    """
    used = len(tokenizer.encode([prompt])[0])
    if used >= length:
        what = f"the prompt has {used} tokens, and the text is to have {length}"
        raise UsageError(what, fix=f"give --length {used + 1} or more")
    return TextTemplate((prompt, length - used))


def make_draft(template: TextTemplate, tokenizer: Tokenizer, start: bool) -> Draft:
    """The template's ids, after the start token where `start`."""
    vocabulary, pieces = tokenizer.vocabulary, list[Ids]()
    if start and vocabulary.start_id is not None:
        pieces.append(np.array([vocabulary.start_id], np.int64))
    at, spans = sum(map(len, pieces)), []
    for part in template.parts:
        if isinstance(part, int):
            ids = np.full(part, vocabulary.mask_id, np.int64)
        else:
            ids = np.asarray(tokenizer.encode([part])[0], np.int64)
        pieces.append(ids)
        spans.append((at, at + len(ids)))
        at += len(ids)
    return Draft(np.concatenate(pieces) if pieces else np.zeros(0, np.int64), spans)


def fill_text(
    template: TextTemplate, made: Draft, ids: Ids, tokenizer: Tokenizer, *, whole: bool = False
) -> Filled:
    """The template's text with its gaps filled from `ids`; with `whole`, up to the first end token
    only.
    """
    parts: list[bytes] = []
    for part, (a, b) in zip(template.parts, made.spans, strict=True):
        if isinstance(part, str):
            parts.append(part.encode())
            continue
        ends = np.flatnonzero(ids[a:b] == tokenizer.vocabulary.end_id)
        if whole and len(ends):
            parts.append(tokenizer.decode(ids[a : a + ends[0]]))
            break
        documents = [tokenizer.decode(piece) for piece in np.split(ids[a:b], ends)]
        if not tokenizer.lossless and parts:
            # Of a tokenizer of words: the rest of the last word, or a word of its own.
            words, before = documents[0], parts[-1]
            apart = b" " * (bool(before) and not before[-1:].isspace())
            documents[0] = words[2:] if words.startswith(b"##") else apart + words
        parts.append((b"\n" + END + b"\n").join(documents))
    raw = b"".join(parts)
    text = raw.decode(errors="replace")
    return Filled(text.encode(), text.count("�") - raw.count("�".encode()))


class TextDrawing(Drawing):
    """`n` fillings of each template."""

    domain: ClassVar[Domain] = TEXT

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling,
        n: int,
        tokenizer: Tokenizer,
        templates: Sequence[TextTemplate],
        sources: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(model, how, n, sources)
        self.tokenizer, self.templates = tokenizer, templates
        self.padded = model.config.data.packing == "padded"
        self.made = [make_draft(one, tokenizer, self.padded) for one in templates]
        self.lengths = [len(make_draft(one, tokenizer, False).ids) for one in templates]

    def describe(self) -> Any:
        return [list(template.parts) for template in self.templates]

    def drafts(self) -> Iterable[Ids]:
        return [draft.ids for draft in self.made]

    def read(self, sample: Sample) -> Filled:
        """A sample as text."""
        at = sample.number // self.n
        template, draft = self.templates[at], self.made[at]
        return fill_text(template, draft, sample.ids, self.tokenizer, whole=self.padded)

    def write(
        self, out: SampleFile, samples: Iterator[Sample], seed: int, request: str
    ) -> dict[str, Any]:
        entries: list[dict[str, Any]] = []
        at = 0
        with out.open() as file:
            for sample in samples:
                filled = self.read(sample)
                head = END + b"\n" if sample.number else b""
                file.write(head + filled.text + b"\n")
                gaps, start = self.templates[sample.number // self.n].gaps, at + len(head)
                entry = {"name": self.name(sample.number), "length": len(sample.ids)}
                entry["filled"] = gaps
                size = {"start": start, "bytes": len(filled.text), "invalid_utf8": filled.invalid}
                entries.append({**entry, "nfe": sample.nfe, **size})
                at = start + len(filled.text) + 1
        said = {"domain": TEXT.name, "tokenizer": self.tokenizer.vocabulary.name}
        return {**said, "separator": END.decode(), **self.tell(seed, entries)}


def make_whole_template(
    model: TrainedModel, tokenizer: Tokenizer, length: int | None, prompt: str | None
) -> TextTemplate:
    """A text of `length` tokens, by default the trained length, that begins with `prompt`."""
    tokens = length or model.config.data.seq_len
    padded = model.config.data.packing == "padded"
    if length is None and padded and tokenizer.vocabulary.start_id is not None:
        tokens -= 1
    if prompt is None:
        return TextTemplate((tokens,))
    return make_prompt_template(prompt, tokens, tokenizer)
