"""New text from a trained model, from nothing, after a prompt, or into the gaps of a template.

A template is plain text in which `[[12]]` stands for 12 tokens to be filled in; everything else is
kept, to the byte. A prompt is a template that ends in one gap. As with DNA, record i depends on
(seed, i) alone.

Texts stand in the output one after another, with a line `<|endoftext|>` between them; an end token
inside a sample (packed text runs through several documents) is written in the same way. The sidecar
says where each record begins.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.tokenizer import Tokenizer
from genodiff.domain import TEXT
from genodiff.errors import DataError, UsageError
from genodiff.generate.journal import SampleJournal
from genodiff.generate.output import WrittenSamples, count_steps, count_written
from genodiff.generate.output_file import SampleFile, Target
from genodiff.generate.sample import Sample, Sampling, choose_sampler, choose_stride, infill
from genodiff.io.input_file import name_input
from genodiff.io.text_file import read_text_pieces
from genodiff.runs.model import TrainedModel

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
    """The template in a text file (- for stdin). Raises `DataError` where it is no text or has no
    gap.
    """
    return parse_template("".join(read_text_pieces(path)), name_input(path))


def parse_template(text: str, file: str | None = None) -> TextTemplate:
    """The template in `text`, of `file`. Raises `DataError` where it has no gap."""
    parts: list[str | int] = []
    for i, part in enumerate(GAP.split(text)):
        if i % 2:
            parts.append(_gap(part, file))
        elif part:
            parts.append(part)
    if not any(isinstance(part, int) for part in parts):
        raise DataError(
            "has no gap to fill",
            file=file,
            fix="write [[20]] where 20 tokens are to be filled in",
        )
    return TextTemplate(tuple(parts))


def make_prompt_template(prompt: str, length: int, tokenizer: Tokenizer) -> TextTemplate:
    """`prompt` and as many new tokens as make `length` with it. Raises `UsageError` where none are
    left.
    """
    used = len(tokenizer.encode([prompt])[0])
    if used >= length:
        raise UsageError(
            f"the prompt has {used} tokens, and the text is to have {length}",
            fix=f"give --length {used + 1} or more",
        )
    return TextTemplate((prompt, length - used))


def make_draft(template: TextTemplate, tokenizer: Tokenizer, start: bool) -> Draft:
    """The template's ids, after the start token where `start`."""
    vocabulary = tokenizer.vocabulary
    pieces: list[Ids] = (
        [np.array([vocabulary.start_id], np.int64)]
        if start and vocabulary.start_id is not None
        else []
    )
    at, spans = sum(map(len, pieces)), []
    for part in template.parts:
        ids = (
            np.full(part, vocabulary.mask_id, np.int64)
            if isinstance(part, int)
            else np.asarray(tokenizer.encode([part])[0], np.int64)
        )
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
            documents[0] = _joining(documents[0], parts[-1])
        parts.append((b"\n" + END + b"\n").join(documents))
    raw = b"".join(parts)
    text = raw.decode(errors="replace")
    return Filled(text.encode(), text.count("�") - raw.count("�".encode()))


def _joining(words: bytes, before: bytes) -> bytes:
    """What a tokenizer of words says after a fixed text: the rest of its last word, or a word of
    its own.
    """
    if words.startswith(b"##"):
        return words[2:]
    return words if before[-1:].isspace() or not before else b" " + words


def write_texts(
    target: Target,
    model: TrainedModel,
    tokenizer: Tokenizer,
    templates: Sequence[TextTemplate],
    *,
    n: int = 1,
    how: Sampling | None = None,
    seed: int = 1,
    sidecar: str | Path | None = None,
    journal: SampleJournal | None = None,
    about: dict[str, Any] | None = None,
    tick: Callable[[int], None] | None = None,
) -> WrittenSamples:
    """Write `n` fillings of each template. A path is written atomically and gets its sidecar beside
    it unless `sidecar` says where; an open binary file gets none unless it does. `journal` keeps
    finished records until the file is there. Raises `UsageError`, `MachineError`.
    """
    how = choose_sampler(how, model)
    whole = model.config.data.packing == "padded"
    drafts = [make_draft(template, tokenizer, whole) for template in templates]
    entries: list[dict[str, Any]] = []

    def draw(first: int) -> Iterable[Sample]:
        wanted = islice((made.ids for made in drafts for _ in range(n)), first, None)
        return infill(model, wanted, how=how, seed=seed, tick=tick, first=first)

    def texts() -> Iterator[bytes]:
        at = 0
        for sample in draw(0) if journal is None else journal.pass_through(draw, tick):
            template, made = templates[sample.number // n], drafts[sample.number // n]
            done = fill_text(template, made, sample.ids, tokenizer, whole=whole)
            name = f"genodiff_{sample.number + 1:06d}"
            entry = {
                "name": name,
                "length": len(sample.ids),
                "filled": template.gaps,
                "nfe": sample.nfe,
            }
            entries.append(
                entry | {"start": at, "bytes": len(done.text), "invalid_utf8": done.invalid}
            )
            piece = done.text + b"\n" if sample.number == 0 else END + b"\n" + done.text + b"\n"
            entries[-1]["start"] = at + len(piece) - len(done.text) - 1
            at += len(piece)
            yield piece

    out = SampleFile(target, sidecar, journal)
    with out.open() as file:
        for piece in texts():
            file.write(piece)
    evaluations = sum(e["nfe"] for e in entries)
    told = out.finish(
        {
            "domain": TEXT.name,
            "seed": seed,
            "sampler": how.sampler,
            **({"sampler_options": dict(how.options)} if how.options else {}),
            "steps": count_steps(how),
            "temperature": how.temperature,
            "top_p": how.top_p,
            "stride": choose_stride(model, how),
            "tokenizer": tokenizer.vocabulary.name,
            "separator": END.decode(),
            **(about or {}),
            "run": model.run.name,
            "step": model.step,
            "checkpoint": model.digest,
            "evaluations": evaluations,
            "records": entries,
        }
    )
    return count_written(entries, evaluations, told)


def _gap(digits: str, file: str | None) -> int:
    size = int(digits) if len(digits) < 10 else LONGEST + 1
    if not 1 <= size <= LONGEST:
        what = f"has a gap of {digits} tokens, which is not between 1 and {LONGEST:,}"
        raise DataError(what, file=file, fix="write a smaller number")
    return size
