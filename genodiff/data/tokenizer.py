"""Tokenizers: text to ids and back. Bytes of UTF-8 and the letters of text8 are built in; those
that come from files are in file_tokenizer.py.

Text is text: "[MASK]" or "<|endoftext|>" in it are characters, never control tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.vocabulary import BYTES, TEXT8, Vocabulary

Ids = NDArray[Any]

_LETTERS = b"abcdefghijklmnopqrstuvwxyz "


class Tokenizer(ABC):
    """Text to ids and back.

    `lossless`: decoding gives back every text; `files`: name → content, for the run folder.
    """

    vocabulary: Vocabulary
    lossless = True
    files: dict[str, bytes]

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of each text, without start and end tokens.

        Raises `DataError` for what has no id.
        """

    @abstractmethod
    def decode(self, ids: Ids) -> bytes:
        """The text of ids as UTF-8, perhaps not whole characters; special tokens have no text."""

    @abstractmethod
    def token_bytes(self) -> NDArray[np.uint16] | None:
        """How many bytes of text each id stands for, for all padded ids; None where tokens lose
        some of the text.
        """


class ByteTokenizer(Tokenizer):
    """Bytes of UTF-8 as ids 0 to 255."""

    vocabulary = BYTES

    def __init__(self) -> None:
        self.files = {}

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        return [np.frombuffer(text.encode(), np.uint8) for text in texts]

    def decode(self, ids: Ids) -> bytes:
        ids = np.asarray(ids)
        return ids[ids < 256].astype(np.uint8).tobytes()

    def token_bytes(self) -> NDArray[np.uint16]:
        return (np.arange(BYTES.padded_size) < 256).astype(np.uint16)


class LetterTokenizer(Tokenizer):
    """The 27 letters of text8; any other character is an error."""

    vocabulary = TEXT8

    def __init__(self) -> None:
        self.files = {}
        self._id_of = np.full(256, 255, np.uint8)
        self._id_of[list(_LETTERS)] = range(len(_LETTERS))
        self._letters = np.frombuffer(_LETTERS, np.uint8)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Ids:
        ids = self._id_of[np.frombuffer(text.encode("latin-1", "replace"), np.uint8)]
        if (ids == 255).any():
            what = f"{text[int(np.argmax(ids == 255))]!r} is not a letter of text8"
            raise DataError(what, fix="give text of a to z and blanks, or use --tokenizer bytes")
        return ids

    def decode(self, ids: Ids) -> bytes:
        ids = np.asarray(ids)
        return self._letters[ids[ids < len(_LETTERS)]].tobytes()

    def token_bytes(self) -> NDArray[np.uint16]:
        return (np.arange(TEXT8.padded_size) < len(_LETTERS)).astype(np.uint16)
