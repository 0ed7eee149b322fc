"""The best path of genes whose codons are read: ATG first, a stop codon last, and none before.

The 13 states of `gene_grammar` say nothing of letters. Here the first codon of a gene and its last
are states of their own, three on each strand, that letters allow or forbid:

    between → start 0 1 2 → exon 0 1 2 … → stop 0 1 2 → between

A step has the score of the step that it is among the 13 states. An intron may cut any codon but the
first and the last; a stop codon that an intron cuts is not seen. A gene that an end of the contig
cuts off needs neither. The code is the standard one: TAA, TAG and TGA stop.

The genes that scores of states mean: those of the best path that the grammar allows.

Scores are natural logarithms, at each base one for each of the 13 states. Without scores of steps
all allowed ones weigh alike, so that the path is the one whose bases are right most probably, each
by itself. Of letters, genes begin and end with their codons (`codon_states`). A contig may begin
and end in any state; a gene that an end cuts off is not among those found.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import reverse_complement
from genodiff.annotation.gene_grammar import BETWEEN, EXON, INTRON, N_STATES, STRAND, allow_steps
from genodiff.annotation.state_chain import FORBIDDEN, find_long_path

STARTS, STOPS = (b"ATG",), (b"TAA", b"TAG", b"TGA")
_START, _EXON, _INTRON, _STOP, _SIDE = 1, 4, 7, 10, 12
_N = 1 + 2 * _SIDE
_ONE = (*range(EXON, EXON + 3), *range(EXON, EXON + 3), *range(INTRON, INTRON + 3),
        *range(EXON, EXON + 3))  # fmt: skip
_PLAIN = np.array([BETWEEN, *_ONE, *(one + STRAND for one in _ONE)])
"""Of each state that of the 13 that it is."""


class _Rule(NamedTuple):
    """`state` needs, or must not have, a word that begins `back` bases before it."""

    state: int
    word: int
    back: int
    needed: bool


_RULES = (
    *(_Rule(_START + p, 0, p, True) for p in range(3)),
    *(_Rule(_STOP + p, 1, p, True) for p in range(3)),
    _Rule(_EXON + 2, 1, 2, False),
    *(_Rule(_SIDE + _START + p, 2, 2 - p, True) for p in range(3)),
    *(_Rule(_SIDE + _STOP + p, 3, 2 - p, True) for p in range(3)),
    _Rule(_SIDE + _EXON + 2, 3, 0, False),
)


def _allow() -> NDArray[np.bool_]:
    """Which state may follow which, from left to right."""
    start, exon, intron, stop = (range(i, i + 3) for i in (_START, _EXON, _INTRON, _STOP))
    pairs = [(BETWEEN, start[0]), (stop[2], BETWEEN)]
    for three in (start, exon, stop):
        pairs += [(three[0], three[1]), (three[1], three[2])]
    for last in (start[2], exon[2], intron[2]):
        pairs += [(last, exon[0]), (last, stop[0])]
    pairs += [(start[2], intron[2]), *zip(exon, intron, strict=True)]
    pairs += [*zip(intron, intron, strict=True), (intron[0], exon[1]), (intron[1], exon[2])]
    found = np.zeros((_N, _N), bool)
    found[BETWEEN, BETWEEN] = True
    for one, other in pairs:
        found[one, other] = True
        found[(other + _SIDE) * (other > 0), (one + _SIDE) * (one > 0)] = True
    return found


_ALLOWED = _allow()


class CodonScores:
    """Scores (L, 25) of the states, made as they are read: whole they would be four times (L, 13).

    `scores` (L, 13) are those of the plain states, `letters` the contig's.
    """

    def __init__(self, scores: NDArray[np.floating], letters: bytes) -> None:
        self.scores, self.shape = scores, (len(scores), _N)
        text = np.frombuffer(letters.upper(), np.uint8)
        turned = [tuple(bytes(reverse_complement(one)) for one in words)  # type: ignore[arg-type]
                  for words in (STARTS, STOPS)]  # fmt: skip
        self._words = [_find(text, words) for words in (STARTS, STOPS, *turned)]

    def __getitem__(self, at: NDArray[np.int64]) -> NDArray[np.float32]:
        """The rows at some places."""
        rows = self.scores[at][:, _PLAIN].astype(np.float32)
        for state, word, back, needed in _RULES:
            rows[self._words[word][at + 2 - back] != needed, state] = FORBIDDEN
        return rows


def _find(text: NDArray[np.uint8], words: tuple[bytes, ...]) -> NDArray[np.bool_]:
    """Where a word begins, behind two places before the text."""
    found = np.zeros(len(text) + 2, bool)
    for word in words if len(text) > 2 else ():
        same = [text[i : len(text) - 2 + i] == letter for i, letter in enumerate(word)]
        found[2 : len(text)] |= same[0] & same[1] & same[2]
    return found


def find_codon_path(
    scores: NDArray[np.floating], steps: NDArray[np.floating], letters: bytes
) -> NDArray[np.int8]:
    """The path (L,) of the 13 states of the greatest weight whose genes have their codons.

    `scores` (L, 13) and `steps` (13, 13) are natural logarithms.
    """
    walk = np.where(_ALLOWED, steps[np.ix_(_PLAIN, _PLAIN)], FORBIDDEN).astype(np.float32)
    free = np.zeros(_N, np.float32)
    path = find_long_path(CodonScores(scores, letters), walk, free, free)
    return _PLAIN[path].astype(np.int8)


_STEPS = np.where(allow_steps(), 0.0, FORBIDDEN).astype(np.float32)
_FREE = np.zeros(N_STATES, np.float32)


def decode_path(
    scores: NDArray[np.floating],
    steps: NDArray[np.float32] | None = None,
    letters: bytes | None = None,
    never: Sequence[int] = (),
) -> NDArray[np.int8]:
    """The allowed path of the greatest sum of scores (L, 13), and of steps (13, 13) if given.

    It passes through no state of `never`.
    """
    walk = (_STEPS if steps is None else steps).copy()
    walk[list(never)] = walk[:, list(never)] = FORBIDDEN
    if letters is not None:
        return find_codon_path(scores, walk, letters)
    return find_long_path(scores, walk, _FREE, _FREE)
