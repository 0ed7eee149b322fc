"""A small genome with two related genomes, in which some stretches evolve slowly."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from genodiff.jobs.journal import Journal
from tests.tiny_run import write_fasta

SLOW = ((2000, 2300), (5200, 5320), (9000, 9500))
LENGTH = 12_000
NEAR, FAR = 0.12, 0.2


class World(NamedTuple):
    genome: Path
    relatives: tuple[Path, Path]


def write_world(folder: Path) -> World:
    """ref.fa with two contigs, of which the second is in no relative; near.fa and far.fa."""
    rng = np.random.default_rng(3)
    ref = rng.integers(0, 4, LENGTH)
    rate = np.ones(LENGTH)
    for start, end in SLOW:
        rate[start:end] = 0.05
    rows = {"chr1": spell(ref), "alone": spell(rng.integers(0, 4, 1500))}
    genome = write_fasta(folder / "ref.fa", rows)
    others = []
    for name, far in (("near", NEAR), ("far", FAR)):
        other = (ref + rng.integers(1, 4, LENGTH)) % 4
        there = np.where(rng.random(LENGTH) < far * rate, other, ref)
        others.append(write_fasta(folder / f"{name}.fa", {f"{name}_1": spell(there)}))
    return World(genome, (others[0], others[1]))


def spell(codes: np.ndarray) -> str:
    return "".join("ACGT"[c] for c in codes.tolist())


def stop_at(patch: pytest.MonkeyPatch, is_last: Callable[[int], bool]) -> None:
    """Stop jobs after an entry with which so many are kept."""
    append = Journal.append

    def stop(journal: Journal, entry: bytes) -> None:
        append(journal, entry)
        if is_last(journal.kept):
            raise KeyboardInterrupt

    patch.setattr(Journal, "append", stop)
