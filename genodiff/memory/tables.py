"""Tables of the k-mers of a text: where each stands, on the forward strand.

A `KmerTable` holds every position; it suits small texts. A `SampledTable` holds the k-mers that
begin at every fourth position, in about 1.2 bytes a base. The sampled positions do not depend on
the bases, so every word of a window is looked up, also one with masked positions, and a stretch of
k + 3 agreeing positions is always found.

    at      (m,) uint32: the positions, by STEP, word by word, ascending for each
    ends    a bit vector, in uint64: for word 0, 1, ... a 0 for each of its positions, then a 1
    jumps   (4^k / 32 + 1,) uint64: the bit where every 32nd word begins

The positions of word w are STEP · at[b - w : e - w], where b is the bit after the end of word w − 1
and e is its own end. In C: `native/recall.h` and `native/sampled.h`.

Copies are judged against what a short Markov chain says of the visible bases.
With x_V the visible bases of a window, f_i = p(x_i | visible bases before i) and b_i = p(x_i |
visible bases after i), masked bases summed over,

    evidence_i = sqrt(f_i b_i)

The product over a window is p(x_V), as each of Π f_i and Π b_i is. Unlike f_i alone, evidence_i is
the same on both strands, because the chain counts both. At a hidden place it is 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.kernels.library import call, is_loaded
from genodiff.memory.text import NONE, PAD, Codes, MemoryText, turn_codes
from genodiff.words import pack_words, turn_words

LEAST_TABLE_K, MOST_TABLE_K = 4, 14
MOST_EVERY = (1 << 32) - 1 - PAD
"""Places of the longest text with a table of every one of them."""
STEP = 4
TABLE_FORMAT = 2
"""Of sampled tables; what an older version has cached is not used."""
GROUP = 32
"""Words of a jump."""
LEAST_K, MOST_K = 4, 15
SPARE = 2
"""Words of 64 bits behind the last end, so that a read may go beyond it."""
_PIECES = 8
_LEAST_BITS, _MOST_BITS = 2, 10
_WORD_BITS = 18
"""Where there may be as many pieces, one has 2^18 words: their counts fit a cache."""


class KmerTable(NamedTuple):
    """Where each k-mer of the text stands: `at[start[w]:start[w + 1]]`, ascending, for word w."""

    k: int
    start: NDArray[np.uint32]
    at: NDArray[np.uint32]

    def find_places(self, word: int) -> NDArray[np.uint32]:
        """The places of a word, ascending. Words are numbers in base 4, the first base first."""
        return self.at[self.start[word] : self.start[word + 1]]

    @property
    def is_whole(self) -> bool:
        """Whether its parts have the sizes of one another."""
        return len(self.start) == 4**self.k + 1 and len(self.at) == int(self.start[-1])


def count_kmers(codes: NDArray[np.uint8], k: int) -> NDArray[np.integer]:
    """(4^k,): how often each word of k bases stands in `codes`, 0..3, anything else 4."""
    if not is_loaded():
        words, whole = pack_words(codes, k)
        return np.bincount(words[whole], minlength=4**k)
    start = np.zeros(4**k + 1, np.uint32)
    tensors = {"codes": codes, "start": start}
    call("kmers", tensors, backward=False, n=len(codes), k=k, pieces=1)
    return start[1:]


def choose_k(bases: int) -> int:
    """The k of which there are about as many words as bases, or fewer."""
    return min(max((max(bases, 1).bit_length() - 1) // 2, LEAST_TABLE_K), MOST_TABLE_K)


def build_table(text: MemoryText, k: int) -> KmerTable:
    """Find the positions of every k-mer without a 4, ascending for each, in C if it is there.

    Raises `DataError` for a text whose places 32 bits cannot count, `MemoryError`.
    """
    if text.size > MOST_EVERY:
        what = f"a memory of a training genome holds at most {MOST_EVERY:,} bases"
        raise DataError(what, fix="train on fewer contigs with it")
    if not is_loaded():
        return build_table_slowly(text, k)
    codes, start = text.codes[PAD : PAD + text.size], np.zeros(4**k + 1, np.uint32)
    numbers = dict(n=len(codes), k=k, pieces=_PIECES)
    tensors = {"codes": codes, "start": start}
    call("kmers", tensors, backward=False, **numbers)
    np.cumsum(start, out=start)
    at = np.zeros(int(start[-1]), np.uint32)
    call("kmers", tensors | {"at": at}, backward=True, **numbers)
    return KmerTable(k, start, at)


def build_table_slowly(text: MemoryText, k: int) -> KmerTable:
    """Compute `build_table` in NumPy: the definition."""
    words, whole = pack_words(text.codes[PAD : PAD + text.size], k)
    at = np.flatnonzero(whole).astype(np.uint32)
    words = words[at]
    start = np.zeros(4**k + 1, np.uint32)
    start[1:] = np.cumsum(np.bincount(words, minlength=4**k))
    return KmerTable(k, start, at[np.argsort(words, kind="stable")])


class SampledTable(NamedTuple):
    """Where the k-mers stand whose place is a multiple of `STEP`; see the module."""

    k: int
    ends: NDArray[np.uint64]
    jumps: NDArray[np.uint64]
    at: NDArray[np.uint32]

    def find_places(self, word: int) -> NDArray[np.int64]:
        """The places of a word, ascending. Words are numbers in base 4, the first base first."""
        group, rest = divmod(word, GROUP)
        first, last = int(self.jumps[group]), int(self.jumps[group + 1])
        bits = np.unpackbits(
            self.ends[first // 64 : last // 64 + 1].view(np.uint8), bitorder="little"
        )
        ends = first // 64 * 64 + np.flatnonzero(bits)
        ends = ends[ends >= first]
        begin = int(ends[rest - 1]) + 1 if rest else first
        return STEP * self.at[begin - word : int(ends[rest]) - word].astype(np.int64)

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
    """The sampled table of a text, by default with the k of `choose_sampled_k`.

    Raises `MemoryError`.
    """
    k = k or choose_sampled_k(text.n_bases)
    if not is_loaded():
        return build_sampled_table_slowly(text, k)
    bits = min(max(2 * k - _WORD_BITS, _LEAST_BITS), _MOST_BITS)
    totals = np.zeros(2**bits + 1, np.int64)
    numbers = dict(plane_bytes=text.planes.shape[1], size=text.size, k=k, piece_bits=bits)
    fixed = {"planes": text.planes, "totals": totals}
    call("sampled", fixed, backward=False, **numbers)
    np.cumsum(totals, out=totals)  # the first place of each piece
    n = int(totals[-1])
    ends = np.zeros(count_end_words(4**k + n), np.uint64)
    jumps, at = np.zeros(4**k // GROUP + 1, np.uint64), np.zeros(n, np.uint32)
    jumps[-1] = 4**k + n
    out = {"ends": ends, "jumps": jumps, "at": at}
    call("sampled", {**fixed, **out}, backward=True, **numbers)
    return SampledTable(k, ends, jumps, at)


def build_sampled_table_slowly(text: MemoryText, k: int) -> SampledTable:
    """The definition, in NumPy: some 40 bytes for each base of the text."""
    words, whole = pack_words(text.read_codes(0, text.size), k)
    at = np.flatnonzero(whole[::STEP])
    order = np.argsort(words[STEP * at], kind="stable")
    counts = np.bincount(words[STEP * at], minlength=4**k)
    end = np.cumsum(counts) + np.arange(4**k)
    bits = np.zeros(count_end_words(4**k + len(at)) * 64, np.uint8)
    bits[end] = 1
    ends = np.packbits(bits, bitorder="little").view(np.uint64)
    jumps = np.append(0, end[GROUP - 1 :: GROUP] + 1).astype(np.uint64)
    return SampledTable(k, ends, jumps, at[order].astype(np.uint32))


ORDER = 4
_CHUNK = 1 << 20

Floats = NDArray[np.float64]


class Chain:
    """A Markov chain of both strands: `next[c, a]`, the chance of base a after context c, and
    `first[c]`, the chance of context c. A context is a base-4 number, its last base the last digit.
    """

    def __init__(self, counts: Floats) -> None:
        """`counts`: (4^order, 4), of both strands."""
        self.counts = counts
        counts = np.asarray(counts, np.float64) + 1
        self.next: Floats = counts / counts.sum(1, keepdims=True)
        self.first: Floats = counts.sum(1) / counts.sum()
        self.order = round(np.log2(len(counts)) / 2)


def count_words(codes: Codes | MemoryText, order: int) -> Floats:
    """(4^order, 4): how often each base follows each context, on both strands of `codes`."""
    k = order + 1
    forward = np.zeros(4**k, np.int64)
    for first in range(0, max(len(codes) - k + 1, 0), _CHUNK):
        forward += count_kmers(codes[first : first + _CHUNK + k - 1], k)
    return (forward + turn_words(forward)).reshape(-1, 4).astype(np.float64)


def measure_evidence(windows: Codes, chain: Chain) -> Floats:
    """(B, L) of windows (B, L): see the module. The loop over places; in C, `native/recall.h`."""
    return np.stack(
        [
            np.sqrt(_filter(x, chain) * _filter(turn_codes(x), chain)[::-1])
            for x in np.atleast_2d(windows)
        ]
    ).reshape(windows.shape)


def _filter(x: Codes, chain: Chain) -> Floats:
    """p(x_i | visible bases before i) at visible places, else 1.

    After `order` + 1 visible bases one context has all the mass, and a row of `next` is looked up.
    """
    visible, places = x < NONE, np.arange(len(x))
    run = places - np.maximum.accumulate(np.where(visible, -1, places))  # visible, up to a place
    sure = np.append(False, run > chain.order)[: len(x)]
    words = np.zeros(len(x), np.int64)
    for back in range(chain.order, 0, -1):
        words[back:] = 4 * words[back:] + x[:-back]
    found = np.ones(len(x))
    looked = sure & visible
    found[looked] = chain.next[words[looked], x[looked]]
    states = chain.first
    for i in np.flatnonzero(~looked).tolist():
        if sure[i]:
            states = np.zeros_like(chain.first)
            states[words[i]] = 1
        joint = states[:, None] * chain.next
        total = joint[:, x[i]].sum() if visible[i] else joint.sum()
        if visible[i]:
            found[i] = total
            joint[:, np.arange(4) != x[i]] = 0
        joint /= total
        states = joint.reshape(4, -1, 4).sum(0).reshape(-1)
    return found
