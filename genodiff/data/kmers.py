"""k-mers on either strand: what sequences have in common with other sequences.

A k-mer (k ≤ 31) is packed at two bits a base into a uint64, and counts as the same as its reverse
complement: the smaller of both codes stands for it. k-mers with a letter other than A, C, G, T are
left out.

Whether a k-mer stands in a genome is asked of the k-mers of the query. They are held (8 bytes for
each distinct one, and a bit table of 8 to 16 bytes for each, at most 1 GiB), and the genome is
streamed past them. So memory does not grow with the genome, and nothing is subsampled: 4,096
windows of 1,024 bases against 3 billion bases take a minute or two and under 300 MB.

Genomes are compared by sketches: a sample of their k-mers and where they stand. A canonical 24-mer
is of the sketch when its hash falls below 2^64 / SCALE: the same k-mers of every genome
(FracMinHash: Irber et al. 2022, bioRxiv 2022.01.11.475838). The share c of the sampled k-mers of
one that the other has estimates its containment, and c^(1/24) their identity where they are alike
(Ondov et al. 2016, Mash).

    sketch.kmers    uint64, hash by hash in the order of the genome
    sketch.places   int64, where each 24-mer begins in genome.ids
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import LETTER_CODES, encode_bases
from genodiff.data.store import Codes, Stretch
from genodiff.words import Words, find_whole, pack_kmers

K = 24
SLICES = 16
_LARGE = 1 << 24
_OTHER = 4
_CHUNK = 1 << 20
_JOINED = 1 << 22  # letters of sequences that are packed together
_MAX_TABLE = 1 << 30
_MIX = np.uint64(0x9E3779B97F4A7C15)


def canonical_kmers(codes: Codes, k: int = K) -> tuple[Words, NDArray[np.bool_]]:
    """Canonical codes of the n − k + 1 k-mers of `codes`, and which of them hold only bases."""
    n = len(codes) - k + 1
    if not 1 <= k <= 31:
        raise ValueError(f"k {k} is not in 1..31")
    if n <= 0:
        return np.empty(0, np.uint64), np.empty(0, np.bool_)
    bases = codes & np.uint8(3)
    forward = pack_kmers(bases.astype(np.uint64), k)
    backward = pack_kmers((np.uint8(3) - bases)[::-1].astype(np.uint64), k)[::-1]
    return np.minimum(forward, backward), find_whole(codes, k)


def collect_kmers(
    sequences: Sequence[bytes], sample: bool = False
) -> tuple[Words, NDArray[np.int64]]:
    """All that `iterate_kmers` yields."""
    parts = [(np.zeros(0, np.uint64), np.zeros(0, np.int64)), *iterate_kmers(sequences, sample)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def iterate_kmers(
    sequences: Sequence[bytes], sample: bool = False
) -> Iterator[tuple[Words, NDArray[np.int64]]]:
    """Canonical 24-mers of upper-case sequences, place by place, and which each is from, some
    sequences at a time; with `sample`, those of one slice (`find_slices`).
    """
    first, size = 0, 0
    for i, sequence in enumerate(sequences):
        size += len(sequence) + 1
        if size > _JOINED or i == len(sequences) - 1:
            some = sequences[first : i + 1]
            codes = LETTER_CODES[np.frombuffer(b"\n".join(some) + b"\n", np.uint8)]
            kmers, whole = canonical_kmers(codes)
            if sample:
                whole &= find_slices(kmers) == 0
            at = np.flatnonzero(whole)
            ends = np.cumsum([len(s) + 1 for s in some])
            yield kmers[at], np.searchsorted(ends, at, side="right") + first
            first, size = i + 1, 0


def find_slices(kmers: Words) -> NDArray[np.uint8]:
    """To which of the `SLICES` slices each k-mer belongs: a hash. Each stands for all."""
    return ((kmers * _MIX) >> np.uint64(64 - (SLICES - 1).bit_length())).astype(np.uint8)


def shared_kmer_fractions(query: list[bytes], target: list[bytes]) -> NDArray[np.float64]:
    """The share of each query sequence's 24-mers, by place, that some target sequence has.

    It is NaN for a sequence without a 24-mer. For large sets only the 24-mers of one slice are
    counted, the same ones on both sides, which leaves the shares unbiased.
    """
    sample = sum(map(len, target)) + sum(map(len, query)) > _LARGE
    known = np.sort(collect_kmers(target, sample)[0])  # np.unique would hash, which is far slower
    kmers, owner = collect_kmers(query, sample)
    return _average(find_known(kmers, known), owner, len(query))


def streamed_kmer_fractions(
    query: Sequence[bytes], train: Iterable[Stretch]
) -> NDArray[np.float64]:
    """As `shared_kmer_fractions` of all 24-mers, with `train` read once, piece by piece."""
    kmers, owner = collect_kmers(query)
    wanted = keep_distinct(kmers)
    found = find_streamed(wanted, train)[np.searchsorted(wanted, kmers)]
    return _average(found, owner, len(query))


def _average(found: NDArray[np.bool_], owner: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return np.bincount(owner, found, n) / np.bincount(owner, minlength=n)


def find_known(words: Words, known: Words) -> NDArray[np.bool_]:
    """Which of the words are among the `known` (sorted)."""
    if not len(known):
        return np.zeros(len(words), np.bool_)
    return known[np.minimum(np.searchsorted(known, words), len(known) - 1)] == words


def find_streamed(wanted: Words, train: Iterable[Stretch], k: int = K) -> NDArray[np.bool_]:
    """Which of the `wanted` canonical k-mers (sorted, distinct) stand in `train`."""
    hit = np.zeros(len(wanted), np.bool_)
    if not len(wanted):
        return hit
    table = _BitTable(wanted)
    for words in _stream(train, k):
        words = words[table.may_hold(words)]
        hit[np.searchsorted(wanted, words[find_known(words, wanted)])] = True
    return hit


class _BitTable:
    """A hashed table of bits that says of nearly every k-mer that it is not wanted."""

    def __init__(self, wanted: Words) -> None:
        size = min(max(int(8 * len(wanted) - 1).bit_length(), 10), _MAX_TABLE.bit_length() - 1)
        self._shift = np.uint64(64 - 3 - size)
        self._bytes = np.zeros(1 << size, np.uint8)
        for first in range(0, len(wanted), _CHUNK):
            place, bit = self._find_places(wanted[first : first + _CHUNK])
            np.bitwise_or.at(self._bytes, place, np.uint8(1) << bit)

    def may_hold(self, words: Words) -> NDArray[np.bool_]:
        """False for a k-mer that is not wanted; True for all that are, and one in 64 others."""
        place, bit = self._find_places(words)
        return (self._bytes[place] >> bit) & 1 != 0

    def _find_places(self, words: Words) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        hashed = (words * _MIX) >> self._shift
        return (hashed >> np.uint64(3)).view(np.int64), (hashed & np.uint64(7)).astype(np.uint8)


def shared_kmers(scored: Iterable[Stretch], train: Iterable[Stretch], k: int = K) -> Words:
    """The canonical k-mers, sorted, that stand both in `scored` and in `train`, on any strand."""
    wanted = _merge_distinct(_stream(scored, k))
    return wanted[find_streamed(wanted, train, k)]


def measure_shared_cover(
    windows: Iterable[Codes], shared: Words, k: int = K
) -> NDArray[np.float64]:
    """For each window, the share of its bases that lie in a k-mer of `shared` (sorted)."""
    found = []
    for codes in windows:
        words, whole = canonical_kmers(codes, k)
        inside = np.zeros(len(codes) + 1, np.int64)
        starts = np.flatnonzero(whole & find_known(words, shared))
        inside[starts] += 1
        inside[starts + k] -= 1
        bases = int(np.count_nonzero(codes < 4))
        found.append(int(np.count_nonzero(inside.cumsum())) / max(bases, 1))
    return np.array(found, np.float64)


def _stream(stretches: Iterable[Stretch], k: int) -> Iterator[Words]:
    for stretch in stretches:
        for start in range(0, len(stretch) - k + 1, _CHUNK):
            codes = stretch[start : start + _CHUNK + k - 1]
            if codes.min() < 4:  # much of an assembly may be N
                words, whole = canonical_kmers(codes, k)
                yield words[whole]


def _merge_distinct(parts: Iterable[Words]) -> Words:
    """Sorted distinct words, merged part by part so that duplicates never fill memory."""
    kept: Words = np.empty(0, np.uint64)
    waiting: list[Words] = []
    size = 0
    for words in parts:
        waiting.append(words)
        size += len(words)
        if size > max(_CHUNK, len(kept)):
            kept = keep_distinct(np.concatenate([kept, *waiting]))
            waiting, size = [], 0
    return keep_distinct(np.concatenate([kept, *waiting]))


def keep_distinct(words: Words) -> Words:
    """The distinct words, sorted."""
    found = np.sort(words)  # np.unique would hash, which is far slower
    new = np.ones(len(found), np.bool_)
    new[1:] = found[1:] != found[:-1]
    return found[new]


SCALE = 32
SAMPLED = np.uint64((1 << 64) // SCALE)
KMERS, PLACES = "sketch.kmers", "sketch.places"
_PIECE = 1 << 18  # fits a core's cache

Places = NDArray[np.int64]


class Sketch(NamedTuple):
    """The sampled k-mers of a genome, as hashes, and where each begins; both mapped from files."""

    kmers: Words
    places: Places


class SketchWriter:
    """Writes the sketch of ids that come in pieces; memory for one piece."""

    def __init__(self, kmers: IO[bytes], places: IO[bytes]) -> None:
        self._kmers, self._places = kmers, places
        self._sha = (hashlib.sha256(), hashlib.sha256())
        self._tail = np.zeros(0, np.uint8)
        self._at = 0  # flat position of the tail's first base
        self.n = 0

    def begin(self, at: int) -> None:
        """A contig begins at the flat position `at`; no k-mer reaches over its start."""
        self._tail, self._at = np.zeros(0, np.uint8), at

    def add(self, ids: NDArray[np.uint8]) -> None:
        """The next stored bytes of the contig."""
        for first in range(0, len(ids), _PIECE):
            codes = np.concatenate((self._tail, encode_bases(ids[first : first + _PIECE])))
            words, whole = canonical_kmers(codes, K)
            hashes = mix(words)
            kept = np.flatnonzero(whole & (hashes < SAMPLED))
            pieces = (hashes[kept], (kept + self._at).astype(np.int64))
            for file, sha, data in zip((self._kmers, self._places), self._sha, pieces, strict=True):
                little = data.astype(data.dtype.newbyteorder("<"))
                file.write(little.data)
                sha.update(little.data)
            self.n += len(kept)
            rest = min(K - 1, len(codes))
            self._at += len(codes) - rest
            self._tail = codes[len(codes) - rest :]

    def digests(self) -> tuple[str, str]:
        """sha256 (hex) of the two files."""
        return self._sha[0].hexdigest(), self._sha[1].hexdigest()


def mix(words: Words) -> Words:
    """A hash of each word: the finaliser of splitmix64, which is one to one."""
    with np.errstate(over="ignore"):
        z = words + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def open_sketch(folder: Path) -> Sketch:
    """The sketch of the genome in `folder`."""
    found = []
    for name, dtype in ((KMERS, "<u8"), (PLACES, "<i8")):
        path = folder / name
        empty = path.stat().st_size == 0
        found.append(np.zeros(0, dtype) if empty else np.memmap(path, dtype, "r"))
    return Sketch(*found)
