"""What pretraining saw of a test part: the shares of its sequences that stand in the training data.

A test sequence counts as seen in some, half or all of its 24-mers, on either strand, by place
(`data.kmers`). Nothing is subsampled. The shares of a set of sequences are kept in the cache under
the hashes of both sides, so they outlive the training data. What cannot be known is said, with the
reason, and is never 0.
"""

import hashlib
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.kmers import K, streamed_kmer_fractions
from genodiff.errors import GenodiffError
from genodiff.io import atomic
from genodiff.io.target import cache_dir
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.trained_on import find_trained_on
from genodiff.tasks.split_names import LEVELS, Level

NOT_KNOWN = "not_known"

_LEAST = {"some": np.nextafter(0.0, 1.0), "half": 0.5, "all": 1.0}
_log = logging.getLogger("genodiff")


class Contamination(NamedTuple):
    """The share of each test sequence's 24-mers that a model was trained on (NaN: it has none).

    `shares` is None where that is not known, and `reason` says why.
    """

    shares: NDArray[np.float64] | None
    reason: str = ""

    def reaches(self, level: Level) -> NDArray[np.bool_]:
        """Which sequences were seen in some, half or all of their 24-mers."""
        assert self.shares is not None
        with np.errstate(invalid="ignore"):
            found: NDArray[np.bool_] = self.shares >= _LEAST[level]
        return found

    def take(self, rows: NDArray[Any]) -> "Contamination":
        """That of some of the sequences."""
        return self if self.shares is None else Contamination(self.shares[rows])

    def to_json(self) -> dict[str, Any]:
        """Counts by level, and `of` how many sequences; or `not_known` and the reason."""
        if self.shares is None:
            return {NOT_KNOWN: self.reason}
        counts: dict[str, Any] = {level: int(self.reaches(level).sum()) for level in LEVELS}
        return counts | {"of": len(self.shares)}


def measure_contamination(model: TrainedModel, sequences: Sequence[bytes]) -> Contamination:
    """How much of each sequence (upper-case DNA) a model was trained on."""
    trained_on = find_trained_on(model)
    if trained_on.unknown:
        return Contamination(None, trained_on.unknown)
    digest = hashlib.sha256(f"{K} {trained_on.key} ".encode())
    for sequence in sequences:
        digest.update(sequence + b"\n")
    path = cache_dir() / "contamination" / f"{digest.hexdigest()[:32]}.npy"
    try:
        kept = np.load(path, allow_pickle=False)
        if kept.shape == (len(sequences),) and kept.dtype == np.float64:
            return Contamination(kept)
    except (OSError, ValueError, EOFError):
        pass
    try:
        stretches = [s for part in trained_on.open(None) for s in part.stretches()]
    except (GenodiffError, OSError) as fault:
        return Contamination(None, f"what it was trained on is not on this machine: {fault}")
    what = "looking for %d test sequences in %d bases of training data"
    _log.info(what, len(sequences), sum(map(len, stretches)))
    shares = streamed_kmer_fractions(sequences, stretches)
    with atomic.open_atomic(path) as file:
        np.save(file, shares)
    return Contamination(shares)


def describe_left_out(found: dict[str, Any]) -> str:
    """How many test sequences were left out, as a sentence: `n`, `of`, `level`."""
    return (
        f"{found['n']:,} of {found['of']:,} test sequences were left out for all models: "
        f"{found['level']} of their {K}-mers occur in pretraining data"
    )


def describe_contamination(name: str, found: dict[str, Any]) -> str:
    """What `Contamination.to_json` says of the model `name`, as a sentence."""
    if NOT_KNOWN in found:
        why = found[NOT_KNOWN]
        return f"it is not known what pretraining of {name} saw of the test part: {why}"
    n = found["of"]
    some, half, whole = (f"{found[level] / n:.1%}" if n else "none" for level in LEVELS)
    return (
        f"of {n:,} test sequences, {some} share at least one {K}-mer with the "
        f"pretraining data of {name}, {half} at least half of their {K}-mers, {whole} all"
    )
