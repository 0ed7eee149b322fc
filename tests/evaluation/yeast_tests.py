"""The yeast genome of the shared data, where it is there, as base codes."""

import gzip
from functools import lru_cache

import numpy as np
import pytest
from folders import SHARED
from numpy.typing import NDArray


@lru_cache(maxsize=1)
def yeast_codes() -> dict[str, NDArray[np.uint8]]:
    """Contig name to codes A 0, C 1, G 2, T 3, other 4; skips the test without the file."""
    path = SHARED / "data" / "genomes" / "sacCer3.fa.gz"
    if not path.is_file():
        pytest.skip("no shared yeast genome here (set GENODIFF_SHARED)")
    table = np.full(256, 4, np.uint8)
    table[list(b"ACGT")] = table[list(b"acgt")] = range(4)
    genome = {}
    for record in gzip.decompress(path.read_bytes()).split(b">")[1:]:
        name, _, lines = record.partition(b"\n")
        genome[name.split()[0].decode()] = table[np.frombuffer(lines.replace(b"\n", b""), np.uint8)]
    return genome
