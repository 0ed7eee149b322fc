"""Sketches: a sample of a genome's k-mers and where they stand, by which genomes are compared.

A canonical 24-mer is of the sketch when its hash falls below 2^64 / SCALE: the same k-mers of every
genome, so sketches are compared instead of genomes (FracMinHash: Irber et al. 2022, bioRxiv
2022.01.11.475838). The share c of the sampled k-mers of one that the other has estimates its
containment, and c^(1/24) their identity where they are alike (Ondov et al. 2016, Mash).

    sketch.kmers    uint64, hash by hash in the order of the genome
    sketch.places   int64, where each 24-mer begins in genome.ids
"""

import hashlib
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import encode_bases
from genodiff.data.kmers import K, canonical_kmers

SCALE = 32
KMERS, PLACES = "sketch.kmers", "sketch.places"
_CHUNK = 1 << 18  # fits a core's cache

Words = NDArray[np.uint64]
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
        for first in range(0, len(ids), _CHUNK):
            codes = np.concatenate((self._tail, encode_bases(ids[first : first + _CHUNK])))
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


SAMPLED = np.uint64((1 << 64) // SCALE)


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
