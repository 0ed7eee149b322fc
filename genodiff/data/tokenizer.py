"""Tokenizers: text to ids and back.

UTF-8 bytes and the letters of text8 are built in. Tokenizers that are read from files are in
file_tokenizer.py. Strings such as "[MASK]" or "<|endoftext|>" in a text are ordinary characters,
never special tokens.
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

    `lossless` is true if decoding restores every text. `files` maps names to contents, for
    the run folder.
    """

    vocabulary: Vocabulary
    lossless = True
    files: dict[str, bytes]

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """The ids (tokens,) of each text, without start and end tokens.

        Raises `DataError` for a character that has no id.
        """

    @abstractmethod
    def decode(self, ids: Ids) -> bytes:
        """The text of ids (tokens,) as UTF-8 bytes; special tokens have no text.

        A character that the ids cut is cut in the result.
        """

    @abstractmethod
    def token_bytes(self) -> NDArray[np.uint16] | None:
        """The number of bytes of text of each id, (padded vocabulary size,).

        None if the tokenizer is not lossless.
        """


class ByteTokenizer(Tokenizer):
    """UTF-8 bytes as ids 0 to 255."""

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
    """The 27 characters of text8: a to z and the space. Any other raises `DataError`."""

    vocabulary = TEXT8

    def __init__(self) -> None:
        self.files = {}
        self._id_of = np.full(256, 255, np.uint8)
        self._id_of[list(_LETTERS)] = range(len(_LETTERS))
        self._letters = np.frombuffer(_LETTERS, np.uint8)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        return [self._encode_text(text) for text in texts]

    def _encode_text(self, text: str) -> Ids:
        ids = self._id_of[np.frombuffer(text.encode("latin-1", "replace"), np.uint8)]
        if (ids == 255).any():
            what = f"{text[int(np.argmax(ids == 255))]!r} is not a letter of text8"
            raise DataError(what, fix="give text of a to z and spaces, or use --tokenizer bytes")
        return ids

    def decode(self, ids: Ids) -> bytes:
        ids = np.asarray(ids)
        return self._letters[ids[ids < len(_LETTERS)]].tobytes()

    def token_bytes(self) -> NDArray[np.uint16]:
        return (np.arange(TEXT8.padded_size) < len(_LETTERS)).astype(np.uint16)
