"""The vocabulary of a tokenizer: which ids a model of text reads, and which it may write.

Its tokens stand in the tokenizer's own files, which are named here by their hash. The two built-in
vocabularies have one id for each byte or letter.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.domain import TEXT
from genodiff.errors import CheckpointError

MOST_TOKENS = 1 << 24
"""Ids that a vocabulary may have: far beyond any tokenizer's, and still small beside memory."""


_KEPT = (
    "name n_tokens mask_id pad_id end_id start_id unk_id padded_size domain tokenizer_sha256"
).split()
_NUMBERS = ("n_tokens", "mask_id", "pad_id", "end_id", "unk_id", "padded_size")


@dataclass(frozen=True)
class Vocabulary(Alphabet):
    """The ids of a tokenizer for text: an alphabet whose tokens stand in the tokenizer's own files,
    named by their hash.

    `end_id` ends a document and is predicted like any token; `start_id` (or None) is given and
    never predicted.
    """

    n_tokens: int = field(kw_only=True)
    end_id: int = field(kw_only=True)
    start_id: int | None = field(kw_only=True, default=None)
    tokenizer_sha256: str = field(kw_only=True)

    @classmethod
    def of(
        cls,
        name: str,
        n_tokens: int,
        *,
        mask_id: int,
        pad_id: int,
        end_id: int,
        tokenizer_sha256: str,
        start_id: int | None = None,
        unk_id: int = -1,
        never: tuple[int, ...] = (),
        padded_size: int | None = None,
    ) -> Self:
        """The vocabulary of `n_tokens` ids that predicts all but mask, start, the padding's own id
        and `never`.

        The padding may be the end's id; `unk_id` -1 means that there is none. Raises `ValueError`.
        """
        hidden = {mask_id, start_id, *never} | ({pad_id} - {end_id})
        return cls(
            name=name,
            tokens=(),
            complement=None,
            mask_id=mask_id,
            pad_id=pad_id,
            unk_id=unk_id,
            targets=tuple(i for i in range(n_tokens) if i not in hidden),
            padded_size=n_tokens if padded_size is None else padded_size,
            domain=TEXT.name,
            n_tokens=n_tokens,
            end_id=end_id,
            start_id=start_id,
            tokenizer_sha256=tokenizer_sha256,
        )

    def __post_init__(self) -> None:
        ids = [i for i in (self.mask_id, self.pad_id, self.end_id, self.start_id) if i is not None]
        if not 2 <= self.n_tokens <= self.padded_size <= MOST_TOKENS:
            raise ValueError(
                f"{self.n_tokens} tokens and padded_size {self.padded_size} are not between 2 "
                f"and {MOST_TOKENS}"
            )
        if not all(0 <= i < self.n_tokens for i in ids) or not -1 <= self.unk_id < self.n_tokens:
            raise ValueError("a special id is outside the tokens")
        if not self.targets or self.mask_id in self.targets or self.end_id not in self.targets:
            raise ValueError("the targets are missing, include the mask or lack the end")
        if self.mask_id in (self.pad_id, self.end_id, self.start_id):
            raise ValueError("the mask is another special token too")

    @property
    def size(self) -> int:
        """Number of tokens, without padding rows."""
        return self.n_tokens

    def encode(
        self, seq: str | bytes, *, unknown: Literal["error", "unk"] = "error"
    ) -> NDArray[np.uint8]:
        """Raises `TypeError`: text is encoded by its tokenizer."""
        raise TypeError(f"{self.name} is the vocabulary of a tokenizer: encode with that")

    def decode(self, ids: NDArray[Any], soft: NDArray[np.bool_] | None = None) -> str:
        """Raises `TypeError`: ids of text are decoded by its tokenizer."""
        raise TypeError(f"{self.name} is the vocabulary of a tokenizer: decode with that")

    def to_json(self) -> dict[str, Any]:
        """As `Alphabet.to_json`; instead of the targets, the few ids that are none."""
        never = sorted({*range(self.n_tokens)}.difference(self.targets))
        return {name: getattr(self, name) for name in _KEPT} | {"never": never}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The vocabulary that `to_json` wrote. Raises `CheckpointError` for impossible values."""
        try:
            if values["domain"] != TEXT.name or int(values["n_tokens"]) > MOST_TOKENS:
                raise ValueError(f"domain {values['domain']} with {values['n_tokens']} tokens")
            numbers = {name: int(values[name]) for name in _NUMBERS}
            start, never = values["start_id"], tuple(int(i) for i in values["never"])
            return cls.of(
                str(values["name"]),
                start_id=None if start is None else int(start),
                never=never,
                tokenizer_sha256=str(values["tokenizer_sha256"]),
                **numbers,
            )
        except (KeyError, TypeError, ValueError) as fault:
            what = f"does not describe a vocabulary ({type(fault).__name__}: {fault})"
            raise CheckpointError(what, fix="use an undamaged checkpoint") from None


def _characters(name: str, letters: int, padded_size: int) -> Vocabulary:
    """One id for each letter, then the end of a document, the mask and the padding."""
    definition = hashlib.sha256(f"genodiff {name} 1".encode()).hexdigest()
    end, mask, pad = letters, letters + 1, letters + 2
    ids: dict[str, Any] = {"end_id": end, "mask_id": mask, "pad_id": pad}
    ids["padded_size"] = padded_size
    return Vocabulary.of(name, letters + 3, tokenizer_sha256=definition, **ids)


BYTES = _characters("bytes", 256, 264)
"""Bytes of UTF-8: ids 0 to 255, [END] 256, [MASK] 257, [PAD] 258."""

TEXT8 = _characters("text8", 27, 32)
"""The 27 letters of text8, a to z and the blank: ids 0 to 26, [END] 27, [MASK] 28, [PAD] 29."""
