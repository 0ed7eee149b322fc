"""Labelled sequences as batches, padded on the right, in an order that has no state.

Epoch e of seed s visits its examples in the order of uniforms (FINETUNE_ORDER, e), in batches of B.
Where lengths differ, the batches of a stretch of 16 are formed from its examples sorted by length
and visited in random order, which saves padding.

Sentences as a network of text reads them: [start] first [end], or with a second [end].

There is a start token if the tokenizer has one (BERT's [CLS]). The end token is the one that ended
documents in pre-training (BERT's [SEP], GPT-2's <|endoftext|>), so the network knows both. Text
that is too long loses tokens at the end of the longer sentence.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.alphabet import Alphabet
from genodiff.counter import Purpose, uniform_rows, uniforms
from genodiff.data.tokenizer import Tokenizer
from genodiff.tasks.examples import Examples
from genodiff.tasks.layouts.glue import TAB

Ids = NDArray[Any]


class SentenceEncoder:
    """Sentences to ids by a tokenizer; `pad_id` fills a batch."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.vocabulary = tokenizer, tokenizer.vocabulary
        self.pad_id, self.mask_id = self.vocabulary.pad_id, self.vocabulary.mask_id

    def rows(self, sentences: list[bytes], max_length: int) -> tuple[list[Ids], int]:
        """The ids of each text, at most `max_length`, and how many texts were shortened.

        A tab stands between two sentences. Raises `DataError` for text that the tokenizer cannot
        read.
        """
        fields = [sentence.split(TAB) for sentence in sentences]
        flat = iter(self.tokenizer.encode([text.decode() for of in fields for text in of]))
        kind = np.uint16 if self.vocabulary.padded_size <= 1 << 16 else np.uint32
        start = [] if self.vocabulary.start_id is None else [self.vocabulary.start_id]
        found, cut = [], 0
        for of in fields:
            parts = [next(flat) for _ in of]
            whole, room = [len(part) for part in parts], max_length - len(start) - len(of)
            sizes = shorten(whole, max(len(of), room))
            cut += sizes != whole
            row = [np.array(start, kind)]
            for part, size in zip(parts, sizes, strict=True):
                row += [part[:size].astype(kind), np.array([self.vocabulary.end_id], kind)]
            found.append(np.concatenate(row))
        return found, cut


def count_texts(sentences: list[bytes]) -> int:
    """How many sentences an example has: one, or two with a tab between."""
    return 1 + max((sentence.count(TAB) for sentence in sentences), default=0)


def shorten(sizes: list[int], most: int) -> list[int]:
    """One size or two, cut so that they come to at most `most`: the longer loses first."""
    if sum(sizes) <= most:
        return sizes
    if len(sizes) == 1:
        return [most]
    half = most // 2
    first, second = sizes
    if first <= half:
        return [first, most - first]
    if second <= most - half:
        return [most - second, second]
    return [half, most - half]


Index = NDArray[np.int64]

_STRETCH = 16  # batches that share their examples' lengths


class EncodedPart(NamedTuple):
    """Encoded examples with their labels.

    `ids` holds one sequence after another, `lengths` their sizes; `cut` of them were shortened.
    `mask_id` is what stands for a base, or a token, that is hidden.
    """

    ids: NDArray[Any]
    starts: Index
    lengths: Index
    labels: NDArray[Any]
    pad_id: int
    cut: int
    mask_id: int

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.lengths)

    def take(self, rows: Index) -> "EncodedPart":
        """The examples at `rows`, in that order; the ids are shared."""
        return self._replace(
            starts=self.starts[rows], lengths=self.lengths[rows], labels=self.labels[rows]
        )

    def crop(self, seed: int, epoch: int, most: int) -> "EncodedPart":
        """The examples without up to `most` tokens at each end, drawn anew for each epoch."""
        cut = uniforms(seed, Purpose.FINETUNE_STRAND, epoch, 2 * self.n, sub_index=1)
        left, right = np.floor(cut.reshape(2, self.n) * (most + 1)).astype(np.int64)
        kept = self.lengths > 2 * most  # a shorter one stays whole
        left, right = left * kept, right * kept
        return self._replace(starts=self.starts + left, lengths=self.lengths - left - right)

    def collate(self, rows: Index, extra: int = 0) -> tuple[Tensor, Tensor]:
        """Ids (B, L) padded on the right to the longest and `extra` more, and lengths (B)."""
        lengths = self.lengths[rows]
        x0 = np.full((len(rows), int(lengths.max()) + extra), self.pad_id, np.int64)
        for row, start, length in zip(x0, self.starts[rows], lengths, strict=True):
            row[:length] = self.ids[start : start + length]
        return torch.from_numpy(x0), torch.from_numpy(lengths)


Encoder = Alphabet | SentenceEncoder
"""What makes ids of an example: an alphabet of its bases, or a tokenizer of its sentences."""


def encode(examples: Examples, encoder: Encoder, max_length: int) -> EncodedPart:
    """The examples as ids: the first `max_length` bases, or at most so many tokens of a text."""
    if isinstance(encoder, SentenceEncoder):
        rows, cut = encoder.rows(examples.sequences, max_length)
    else:
        cut = sum(len(s) > max_length for s in examples.sequences)
        rows = [encoder.encode(s[:max_length]) for s in examples.sequences]
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    ids, labels = np.concatenate(rows) if rows else np.zeros(0, np.uint8), examples.labels
    return EncodedPart(ids, starts, lengths, labels, encoder.pad_id, cut, encoder.mask_id)


def shuffle_batches(lengths: Index, batch_size: int, seed: int, epoch: int) -> list[Index]:
    """The rows of each batch of an epoch: every example once."""
    order = np.argsort(uniforms(seed, Purpose.FINETUNE_ORDER, epoch, len(lengths)), kind="stable")
    if lengths.min() == lengths.max():
        return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    found: list[Index] = []
    for i in range(0, len(order), _STRETCH * batch_size):
        some = order[i : i + _STRETCH * batch_size]
        some = some[np.argsort(lengths[some], kind="stable")]
        found += [some[j : j + batch_size] for j in range(0, len(some), batch_size)]
    shuffled = np.argsort(
        uniforms(seed, Purpose.FINETUNE_ORDER, epoch, len(found), sub_index=1), kind="stable"
    )
    return [found[i] for i in shuffled]


def draw_turned(seed: int, epoch: int, n: int) -> NDArray[np.bool_]:
    """Which of `n` examples are shown from the other strand in an epoch."""
    return uniforms(seed, Purpose.FINETUNE_STRAND, epoch, n) < 0.5


def dropout_draws(seed: int, epoch: int, rows: Index, width: int) -> Tensor:
    """Uniforms (B, width) of examples in an epoch, for dropout."""
    return torch.from_numpy(
        uniform_rows(seed, Purpose.FINETUNE_DROPOUT, rows, width, sub_index=epoch)
    ).float()


def draw_hidden(seed: int, epoch: int, rows: Index, length: int, share: float) -> Tensor:
    """Which places (B, length) of examples are hidden in an epoch."""
    drawn = uniform_rows(seed, Purpose.FINETUNE_MASK, rows, length, sub_index=epoch)
    return torch.from_numpy(drawn < share)
