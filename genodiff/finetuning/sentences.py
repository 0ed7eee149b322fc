"""Sentences as a network of text reads them: [start] first [end], or with a second [end].

There is a start token if the tokenizer has one (BERT's [CLS]). The end token is the one that ended
documents in pre-training (BERT's [SEP], GPT-2's <|endoftext|>), so the network knows both. Text
that is too long loses tokens at the end of the longer sentence.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.data.tokenizer import Tokenizer
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
            sizes = shorten(
                [len(part) for part in parts], max(len(of), max_length - len(start) - len(of))
            )
            cut += sizes != [len(part) for part in parts]
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
