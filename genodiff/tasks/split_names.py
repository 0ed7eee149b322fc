"""The names of the splits of labelled sequences, and which of them data can have."""

from pathlib import Path
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


def choose_split(split: str, test_share: float | None) -> str:
    """The split of one table of which a share tests: homology, unless `split` says so already.

    Raises `UsageError` for a split that a share does not make.
    """
    if test_share is None or split == HOMOLOGY:
        return split
    if split not in ("official", "own"):
        kept = f"similar sequences are already kept on one side (--split {HOMOLOGY})"
        what = f"--test-share does not go with --split {split}"
        raise UsageError(what, fix=f"leave --split out: {kept}")
    return HOMOLOGY


def refuse_single_table(
    train: str | Path, test: str | Path | None, valid: str | Path | None, test_share: float | None
) -> None:
    """Raises `UsageError` where one table has no test part, or a share of what is no single table.

    No file is read.
    """
    path = Path(train)
    single = test is None and path.is_file() and path.suffix.lower() != ".zip"
    if test_share is None:
        if single:
            what = f"{path} is one table: which one tests?"
            fix = "give --test FILE, --test-share 0.2, or a folder with train and test"
            raise UsageError(what, fix=fix)
        return
    if not 0 < test_share < 1:
        raise UsageError(f"--test-share {test_share:g} is not between 0 and 1", fix="give 0.2")
    if valid is not None or (path.exists() and not single):
        what = "--test-share is for one table, which train, validation and test are taken from"
        raise UsageError(what, fix="leave it out, or give one table alone")
