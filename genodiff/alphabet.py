"""Tokens and their ids: what a model reads, what it may write, and what the other strand says.

An alphabet is a value; text has a vocabulary, whose tokens a tokenizer makes. DNA is the one of
published Caduceus (https://github.com/kuleshov-group/caduceus, Apache-2.0): [CLS] 0, [SEP] 1, [BOS]
2, [MASK] 3, [PAD] 4, [RESERVED] 5, [UNK] 6, A 7, C 8, G 9, T 10, N 11, and rows 12 to 15 that exist
only because the network's vocabulary is padded to a multiple of 8. Upper and lower case have the
same id (lower case is a soft mask, a property of a base and not another base). IUPAC ambiguity
codes are N. Anything else is an error.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import CheckpointError, DataError
from genodiff.io.file_kinds import sha256_json

SOFT = 0x80
"""The soft-mask bit of a stored byte: a store keeps `id | SOFT` for a base that the FASTA gives in
lower case.
"""

AMBIGUOUS = "RYSWKMBDHV"
"""The IUPAC codes that stand for two or three bases; N, which stands for any, is a token of its
own.
"""

_INVALID = 0xFF
_IUPAC = b"ACGTRYSWKMBDHVNacgtryswkmbdhvn"
_COMPLEMENT = bytes.maketrans(_IUPAC, b"TGCAYRSWMKVHDBNtgcayrswmkvhdbn")


@dataclass(frozen=True)
class Alphabet:
    """Tokens by id, with the special ids a diffusion needs and the complement a strand needs.

    `complement` (or None where there are no strands) has one id for each of the `padded_size` rows
    and is an involution. `targets` are the ids that may be predicted and emitted. Only tokens of
    one character are letters.
    """

    name: str
    tokens: tuple[str, ...]
    complement: tuple[int, ...] | None
    mask_id: int
    pad_id: int
    unk_id: int
    targets: tuple[int, ...]
    padded_size: int
    domain: str
    _encoding: NDArray[np.uint8] = field(init=False, repr=False, compare=False)
    _exact: NDArray[np.uint8] = field(init=False, repr=False, compare=False)
    _letters: NDArray[np.uint8] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        size = len(self.tokens)
        if len(set(self.tokens)) != size or not all(self.tokens):
            raise ValueError("tokens are empty or stand twice")
        if not size <= self.padded_size <= SOFT:
            what = f"padded_size {self.padded_size} is not between {size} tokens and {SOFT}"
            raise ValueError(what)
        specials = (self.mask_id, self.pad_id, self.unk_id)
        if not all(0 <= i < size for i in (*specials, *self.targets)):
            raise ValueError("an id is outside the tokens")
        if not self.targets or len({*self.targets} - {*specials}) != len(self.targets):
            raise ValueError("targets are missing, stand twice or include a special token")
        if self.complement is not None:
            pairs = dict(enumerate(self.complement))
            if len(pairs) != self.padded_size or pairs != {c: i for i, c in pairs.items()}:
                raise ValueError("the complement is not an involution of the padded ids")
            if any(self.complement[i] != i for i in specials):
                raise ValueError("the complement moves a special token")
        exact, letters = np.full(256, _INVALID, np.uint8), np.zeros(256, np.uint8)
        for i, token in enumerate(self.tokens):
            if len(token) == 1:
                letters[i] = ord(token)
                if self.domain == "dna":
                    exact[[ord(token.upper()), ord(token.lower())]] = i
                else:
                    exact[ord(token)] = i
        encoding = exact.copy()
        if self.domain == "dna" and "N" in self.tokens:
            encoding[list((AMBIGUOUS + AMBIGUOUS.lower()).encode())] = self.tokens.index("N")
        for table, value in (("_encoding", encoding), ("_exact", exact), ("_letters", letters)):
            value.flags.writeable = False
            object.__setattr__(self, table, value)

    @property
    def size(self) -> int:
        """Number of tokens, without the padding rows."""
        return len(self.tokens)

    def encode(
        self, seq: str | bytes, *, unknown: Literal["error", "unk"] = "error"
    ) -> NDArray[np.uint8]:
        """Ids of the letters of `seq`, one each.

        IUPAC ambiguity codes become N; any other character raises `DataError`. With `unknown="unk"`
        they and everything else outside the tokens become [UNK], as the tokenizer of published
        Caduceus has it.
        """
        if unknown == "unk":
            text = seq.upper() if isinstance(seq, str) else seq
            ids = self._exact[np.frombuffer(_bytes(text), np.uint8)]
            ids[ids == _INVALID] = self.unk_id
            return ids
        raw = np.frombuffer(_bytes(seq), np.uint8)
        ids = self._encoding[raw]
        if (ids == _INVALID).any():
            self._refuse(seq, int(np.argmax(ids == _INVALID)))
        return ids

    def soft_mask(self, seq: str | bytes) -> NDArray[np.bool_]:
        """True where a letter of `seq` is lower case (soft-masked: a repeat, in most genomes)."""
        raw = np.frombuffer(_bytes(seq), np.uint8)
        return (raw >= ord("a")) & (raw <= ord("z"))

    def decode(self, ids: NDArray[Any], soft: NDArray[np.bool_] | None = None) -> str:
        """Text of a one-dimensional array of ids, in lower case where `soft` is true; other tokens
        as `[MASK]` etc.

        Raises `ValueError` for an id that is no token.
        """
        ids = np.asarray(ids)
        if ids.size and (ids.min() < 0 or ids.max() >= self.size):
            raise ValueError(
                f"ids run from {ids.min()} to {ids.max()}, but {self.name} has {self.size} tokens"
            )
        letters = self._letters[ids]
        if soft is not None:
            letters = np.where(
                soft & (letters >= ord("A")) & (letters <= ord("Z")), letters | 0x20, letters
            )
        if letters.all():
            return letters.tobytes().decode("latin-1")
        return "".join(chr(c) if c else self.tokens[i] for c, i in zip(letters, ids, strict=True))

    def rc(self, ids: NDArray[Any]) -> NDArray[Any]:
        """The reverse complement along the last axis (a new array, same dtype). Raises `ValueError`
        without strands.
        """
        if self.complement is None:
            raise ValueError(f"the alphabet {self.name} has no complement")
        ids = np.asarray(ids)
        return np.asarray(self.complement, dtype=ids.dtype)[ids[..., ::-1]]

    def to_json(self) -> dict[str, Any]:
        """The alphabet as plain values for a JSON file; `from_json` takes them back."""
        return {k: v for k, v in asdict(self).items() if not k.startswith("_")}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The alphabet that `to_json` wrote. Raises `CheckpointError` for impossible values."""
        try:
            complement = values["complement"]
            ids = ("mask_id", "pad_id", "unk_id", "padded_size")
            return cls(
                name=str(values["name"]),
                tokens=tuple(str(token) for token in values["tokens"]),
                complement=None if complement is None else tuple(int(i) for i in complement),
                targets=tuple(int(i) for i in values["targets"]),
                domain=str(values["domain"]),
                **{name: int(values[name]) for name in ids},
            )
        except (KeyError, TypeError, ValueError) as fault:
            what = f"does not describe an alphabet ({type(fault).__name__}: {fault})"
            raise CheckpointError(what, fix="use an undamaged checkpoint") from None

    def fingerprint(self) -> str:
        """sha256 (hex) of the canonical JSON: equal if and only if every id means the same in the
        same way.
        """
        return sha256_json(self.to_json(), compact=True)

    def _refuse(self, seq: str | bytes, position: int) -> None:
        text = seq.decode("latin-1") if isinstance(seq, bytes) else seq
        letter = text[position]
        if letter in "Uu":
            fix = "convert U to T first"
            raise DataError(f"'{letter}' at position {position + 1}: this is RNA, not DNA", fix=fix)
        what = f"{letter!r} at position {position + 1} is not a letter of the {self.name} alphabet"
        fix = "give A, C, G, T, N or IUPAC ambiguity codes" if self.domain == "dna" else "remove it"
        raise DataError(what, fix=fix)


def _bytes(seq: str | bytes) -> bytes:
    """One byte per character, so that positions agree; what latin-1 lacks becomes a byte that is no
    letter.
    """
    return seq if isinstance(seq, bytes) else seq.encode("latin-1", "replace")


def reverse_complement(seq: str | bytes) -> str | bytes:
    """The other strand of a text, with all IUPAC codes and the case kept: `ACgtR` → `YacGT`. Type
    as given.

    Raises `DataError` for anything that is no IUPAC letter: copying it unchanged would put it on
    the wrong strand.
    """
    raw = _bytes(seq)
    other = raw.translate(None, _IUPAC)
    if other:
        at = raw.index(other[0])
        shown = seq[at] if isinstance(seq, str) else chr(seq[at])
        fix = "convert U to T first" if shown in "Uu" else "give IUPAC DNA letters only"
        raise DataError(f"{shown!r} at position {at + 1} has no complement", fix=fix)
    turned = raw.translate(_COMPLEMENT)[::-1]
    return turned if isinstance(seq, bytes) else turned.decode("ascii")


DNA = Alphabet(
    name="dna",
    tokens=("[CLS]", "[SEP]", "[BOS]", "[MASK]", "[PAD]", "[RESERVED]", "[UNK]", *"ACGTN"),
    complement=(0, 1, 2, 3, 4, 5, 6, 10, 9, 8, 7, 11, 12, 13, 14, 15),
    mask_id=3,
    pad_id=4,
    unk_id=6,
    targets=(7, 8, 9, 10),
    padded_size=16,
    domain="dna",
)


def code_letters(symbols: Sequence[int]) -> NDArray[np.uint8]:
    """(256,): the place of each byte among `symbols`, and their number for any other."""
    table = np.full(256, len(symbols), np.uint8)
    table[list(symbols)] = range(len(symbols))
    return table


LETTER_CODES = code_letters(b"ACGT")
ID_CODES = code_letters(DNA.targets)
"""The codes 0 to 3 of A, C, G and T by their letters and by their ids, and 4 of all else."""
LETTERS = np.frombuffer(b"ACGT", np.uint8)
_CODE_OF = ID_CODES[np.arange(256) & (0xFF ^ SOFT)]


def encode_bases(ids: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The codes of DNA ids, with or without the store's soft-mask bit."""
    return _CODE_OF[ids]


ALPHABETS: dict[str, Alphabet] = {DNA.name: DNA}
