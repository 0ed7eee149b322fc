"""Templates of text: what is kept, what is filled in, and what a filled one says.

A template is plain text in which `[[12]]` stands for 12 tokens to be filled in; everything else is
kept, to the byte. A prompt is a template that ends in one gap. An end token inside a sample (packed
text runs through several documents) is written as a line `<|endoftext|>`.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.tokenizer import Tokenizer
from genodiff.errors import DataError, UsageError
from genodiff.io.input_file import name_input
from genodiff.io.text_file import read_text_pieces

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


def _gap(digits: str, file: str | None) -> int:
    size = int(digits) if len(digits) < 10 else LONGEST + 1
    if not 1 <= size <= LONGEST:
        what = f"has a gap of {digits} tokens, which is not between 1 and {LONGEST:,}"
        raise DataError(what, file=file, fix="write a smaller number")
    return size
