"""A table of the k-mers that begin at every fourth place of a text: about 1.2 bytes a base.

Which places are sampled depends on nothing that a mask may hide. So every word of a window is
looked up, those with masked places too, and a stretch of k + 3 agreeing places is always found.

    at      (m,) uint32: the places, word by word, ascending for each
    ends    a bit vector, in uint64: for word 0, 1, ... a 0 for each of its places, then a 1
    jumps   (4^k / 32 + 1,) uint32: the bit where every 32nd word begins

The places of word w are at[b - w : e - w], where b is the bit after the end of word w − 1, and e
is its own end. In C: `native/sampled.h`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import is_loaded
from genodiff.kernels.native.sampled import fill_sampled
from genodiff.memory.text import MemoryText
from genodiff.words import pack_words

STEP = 4
GROUP = 32
"""Words of a jump."""
LEAST_K, MOST_K = 4, 15
SPARE = 2
"""Words of 64 bits behind the last end, so that a read may go beyond it."""


class SampledTable(NamedTuple):
    """Where the k-mers stand whose place is a multiple of `STEP`; see the module."""

    k: int
    ends: NDArray[np.uint64]
    jumps: NDArray[np.uint32]
    at: NDArray[np.uint32]

    def find_places(self, word: int) -> NDArray[np.uint32]:
        """The places of a word, ascending. Words are numbers in base 4, the first base first."""
        group, rest = divmod(word, GROUP)
        first, last = int(self.jumps[group]), int(self.jumps[group + 1])
        bits = np.unpackbits(
            self.ends[first // 64 : last // 64 + 1].view(np.uint8), bitorder="little"
        )
        ends = first // 64 * 64 + np.flatnonzero(bits)
        ends = ends[ends >= first]
        begin = int(ends[rest - 1]) + 1 if rest else first
        return self.at[begin - word : int(ends[rest]) - word]

    @property
    def is_whole(self) -> bool:
        """Whether its parts have the sizes of one another."""
        bits = 4**self.k + len(self.at)
        sizes = (len(self.ends), len(self.jumps))
        wanted = (count_end_words(bits), 4**self.k // GROUP + 1)
        return sizes == wanted and int(self.jumps[-1]) == bits


def count_end_words(bits: int) -> int:
    """Words of 64 bits that hold so many ends and places."""
    return (bits + 63) // 64 + SPARE


def choose_sampled_k(bases: int) -> int:
    """The least k of which there are as many words as sampled places."""
    places = -(-max(bases, 1) // STEP)
    return min(max(((places - 1).bit_length() + 1) // 2, LEAST_K), MOST_K)


def build_sampled_table(text: MemoryText, k: int | None = None) -> SampledTable:
    """The sampled table of a text, by default with the k of `choose_sampled_k`."""
    k = k or choose_sampled_k(text.n_bases)
    if is_loaded():
        ends, jumps, at = fill_sampled(text.planes, text.size, k, SPARE)
        return SampledTable(k, ends, jumps, at)
    return build_sampled_table_slowly(text, k)


def build_sampled_table_slowly(text: MemoryText, k: int) -> SampledTable:
    """The definition, in NumPy: some 40 bytes for each base of the text."""
    words, whole = pack_words(text.read_codes(0, text.size), k)
    at = np.flatnonzero(whole[::STEP]) * STEP
    order = np.argsort(words[at], kind="stable")
    counts = np.bincount(words[at], minlength=4**k)
    end = np.cumsum(counts) + np.arange(4**k)
    bits = np.zeros(count_end_words(4**k + len(at)) * 64, np.uint8)
    bits[end] = 1
    ends = np.packbits(bits, bitorder="little").view(np.uint64)
    jumps = np.append(0, end[GROUP - 1 :: GROUP] + 1).astype(np.uint32)
    return SampledTable(k, ends, jumps, at[order].astype(np.uint32))
