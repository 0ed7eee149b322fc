"""The names of the splits of labelled sequences, for flags, checks and results."""

from typing import Literal, get_args

from genodiff.errors import UsageError

Resplit = Literal["chrom-holdout", "dedup", "homology"]
OwnSplit = Literal["official", Resplit]
Split = Literal["official", Resplit, "local", "partial"]

RESPLITS: tuple[str, ...] = get_args(Resplit)
SPLITS: tuple[str, ...] = get_args(Split)
Level = Literal["some", "half", "all"]
"""How many of a test sequence's 24-mers the training data have."""
LEVELS: tuple[Level, ...] = get_args(Level)
HOMOLOGY = "homology"
THRESHOLD = 0.5
"""The share of 24-mers that makes two sequences alike, where nothing else is asked for."""


def name_split(split: str, similarity: float | None) -> str:
    """How a split is called in results: with its threshold where that is not the usual one."""
    usual = similarity is None or similarity == THRESHOLD
    return split if usual else f"{split} {similarity:g}"


def check_similarity(split: str, similarity: float | None) -> None:
    """Raises `UsageError` where a threshold is out of range, or the split has none."""
    if similarity is None:
        return
    if split != HOMOLOGY:
        raise UsageError(f"--similarity is for --split {HOMOLOGY}", fix="leave it out")
    if not 0 < similarity <= 1:
        raise UsageError(f"--similarity {similarity:g} is not in (0, 1]", fix="give 0.5")
