"""Which row of a published embedding is which token: others' ids and ours.

A published network comes with its own ids; a run has those of `genodiff.alphabet`. The rows of the
embedding and of the head are put in our order when the weights come in and back when they go out,
so that nothing inside ever sees another id. A token that the publisher writes as another one ([UNK]
for N) gives its row to both.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from genodiff.alphabet import DNA, Alphabet
from genodiff.errors import CheckpointError, did_you_mean

TEXT = "text"
"""The vocabulary of a tokenizer: ids as they are."""


class PublishedVocabulary(NamedTuple):
    """Published ids: `rows[i]` is the published row of our row i, or -1 where there is none."""

    name: str
    alphabet: Alphabet
    rows: tuple[int, ...]
    size: int  # published rows, padding included

    def inwards(self, table: Tensor) -> Tensor:
        """A published table (size, ...) in the order of our rows; rows that nobody has are zero.

        Spare rows, beyond those of the tokens, stay at the end: here and on the way back.
        """
        source = torch.tensor(self.rows)
        ours = table[source.clamp(min=0)]
        ours[source < 0] = 0
        return torch.cat([ours, table[self.size :]])

    def outwards(self, table: Tensor) -> Tensor:
        """The published table of one of ours.

        Where two of our rows stand for one of theirs, the first counts.
        """
        theirs = table.new_zeros(self.size, *table.shape[1:])
        for ours in reversed(range(len(self.rows))):
            if self.rows[ours] >= 0:
                theirs[self.rows[ours]] = table[ours]
        return torch.cat([theirs, table[len(self.rows) :]])

    def complement(self) -> tuple[int, ...] | None:
        """Our complement in published ids."""
        ours = self.alphabet.complement
        if ours is None:
            return None
        theirs = list(range(self.size))
        for i, row in enumerate(self.rows):
            if row >= 0 and self.rows[ours[i]] >= 0:
                theirs[row] = self.rows[ours[i]]
        return tuple(theirs)


def _keep_ids(name: str, alphabet: Alphabet, rows: int) -> PublishedVocabulary:
    """A vocabulary whose ids are ours; only the number of padding rows may differ."""
    ours = tuple(i if i < rows else -1 for i in range(alphabet.padded_size))
    return PublishedVocabulary(name, alphabet, ours, rows)


# [PAD] [MASK] [UNK] a c g t and a padding row; its tokenizer has no N and writes [UNK] instead.
_PLANT = PublishedVocabulary(
    "plantcaduceus", DNA, (-1, -1, -1, 1, 0, -1, 2, 3, 4, 5, 6, 2, 7, -1, -1, -1), 8
)
_PLANT_TOKENS = ("[PAD]", "[MASK]", "[UNK]", "A", "C", "G", "T")


def find_vocabulary(
    rows: int, complement: Mapping[int, int] | None, tokens: list[str] | None = None
) -> PublishedVocabulary:
    """The vocabulary of a table of `rows` rows.

    It is known by its size, its complement map and, where they are given, its tokens. Raises
    `CheckpointError` for one that is not known: ids that mean something else make wrong DNA without
    a word.
    """
    if DNA.size <= rows <= DNA.padded_size:
        published, names = _keep_ids("caduceus", DNA, rows), DNA.tokens
    elif rows in (_PLANT.size, _PLANT.size - 1):
        kept = tuple(row if row < rows else -1 for row in _PLANT.rows)
        published, names = _PLANT._replace(size=rows, rows=kept), _PLANT_TOKENS
    else:
        what = f"a vocabulary of {rows} rows is unknown"
        fix = "give a network of DNA with one of these vocabularies"
        raise CheckpointError(f"{what}: published Caduceus has 12 to 16, PlantCaduceus 8", fix=fix)
    told = [token.upper() for token in (names if tokens is None else tokens)]
    for i, name in enumerate(names):
        if told[i : i + 1] != [name.upper()]:
            what = f"the vocabulary differs from that of {published.name} in its order"
            fix = "give weights of DNA with a known vocabulary"
            raise CheckpointError(f"{what}: id {i} is not '{name}'", fix=fix)
    expected = published.complement()
    if complement is not None and expected is not None:
        for token, other in complement.items():
            if 0 <= token < rows and other != expected[token]:
                what = f"the complement of id {token} is {other}, but {expected[token]} in the "
                what += f"vocabulary of {published.name}"
                raise CheckpointError(what, fix="check complement_map in the config")
    return published


def make_text_vocabulary(alphabet: Alphabet, rows: int) -> PublishedVocabulary:
    """The vocabulary of a network of text with this many rows.

    Raises `CheckpointError` where the tokenizer has another number.
    """
    if not alphabet.size <= rows <= alphabet.padded_size:
        what = f"the network has {rows} rows, the tokenizer {alphabet.name} {alphabet.size} "
        what += "tokens with its special ones"
        raise CheckpointError(what, fix="give the tokenizer that the network was trained with")
    return _keep_ids(TEXT, alphabet, rows)


def find_vocabulary_by_name(name: str, size: int, alphabet: Alphabet) -> PublishedVocabulary:
    """The vocabulary that an earlier import recorded by name, for a run of `alphabet`.

    Raises `CheckpointError`.
    """
    if name == TEXT:
        return make_text_vocabulary(alphabet, size)
    if name == "caduceus":
        return _keep_ids(name, DNA, size)
    if name == _PLANT.name:
        return find_vocabulary(size, None)
    what = f"vocabulary '{name}' is not known; {did_you_mean(name, ['caduceus', _PLANT.name])}"
    raise CheckpointError(what, fix="upgrade genodiff")
