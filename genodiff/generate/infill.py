"""Templates and windows: which bases are filled, and in which order in a long text.

A template is a FASTA record in which every N, n and ? is a gap; every other letter is kept as it
stands, lower case and IUPAC codes included. The network sees a kept IUPAC code as a visible N, and
a gap as a mask.

A network trained on windows of W tokens fills a longer text round by round, left to right.
`plan_rounds` says how: a round fills at most `stride` positions, so that W − stride known tokens
stand before them, and it centres its window on the gaps it fills, so that known bases
after them are seen too. On a text that is all gap this is semi-autoregressive sampling: W tokens
first, then `stride` more per round behind a clean prefix of W − stride.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.io.fasta import read_fasta

GAPS = b"Nn?"
_LOWER = 0x20


@dataclass(frozen=True)
class Template:
    """A named text with gaps."""

    name: str
    description: str
    text: bytes

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """True where a base is to be filled in."""
        return np.isin(np.frombuffer(self.text, np.uint8), np.frombuffer(GAPS, np.uint8))

    def ids(self, alphabet: Alphabet) -> NDArray[np.uint8]:
        """What the network sees: the mask at the gaps, N for a kept ambiguity code."""
        ids = alphabet.encode(self.text.replace(b"?", b"N")).astype(np.uint8)
        ids[self.gaps] = alphabet.mask_id
        return ids

    def filled(self, ids: NDArray[np.uint8], alphabet: Alphabet) -> bytes:
        """The text with its gaps filled from `ids`, an n in lower case; other letters stay."""
        text = np.frombuffer(self.text, np.uint8).copy()
        gaps = self.gaps
        letters = np.frombuffer(alphabet.decode(ids[gaps]).encode("ascii"), np.uint8)
        text[gaps] = letters | np.where(text[gaps] == ord("n"), _LOWER, 0).astype(np.uint8)
        return text.tobytes()


def read_templates(path: str | Path) -> Iterator[Template]:
    """The records of a FASTA file as templates; `?` is allowed here.

    Raises `DataError` like every strict reader.
    """
    for record in read_fasta(path, extra=b"?"):
        yield Template(record.name, record.description, record.sequence)


def plan_rounds(gaps: NDArray[np.bool_], window: int, stride: int) -> list[tuple[int, int]]:
    """The windows (start, end) in which the gaps are filled, one round after the other.

    None is longer than `window`.

    Each gap lies in exactly one window that starts at or before it while it is still open, and
    every gap inside a window is filled in that round. `stride` (1 … window) bounds the gaps'
    stretch per round, except that what the left end of the text lacks in context is given to the
    gaps.
    """
    edges = np.flatnonzero(np.diff(gaps.astype(np.int8), prepend=0, append=0))
    return plan_rounds_of_edges(
        edges[0::2].tolist(), edges[1::2].tolist(), len(gaps), window, stride
    )


def plan_rounds_of_edges(
    starts: Sequence[int], ends: Sequence[int], length: int, window: int, stride: int
) -> list[tuple[int, int]]:
    """The rounds of gaps given by their edges, in order, apart from one another."""
    plan: list[tuple[int, int]] = []
    run, filled = 0, 0
    while run < len(starts):
        first = max(starts[run], filled)
        reach = first + window - min(first, window - stride)
        if ends[run] > reach:
            plan.append((max(0, reach - window), reach))
            filled = reach
            continue
        last = int(np.searchsorted(ends, reach, side="right"))
        end = ends[last - 1]
        wall = starts[last] if last < len(starts) else length
        spare = window - (end - first)
        start = max(0, min(end + spare - spare // 2, wall) - window)
        plan.append((start, min(start + window, wall)))
        run = last
    return plan
