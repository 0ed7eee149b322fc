"""What the folders of a sweep and of a unit hold, by name; this module imports no torch.

`results.jsonl` of a sweep has a row for each unit, and UNITS/KEY is the folder of one.
"""

from pathlib import Path

from genodiff.errors import CheckpointError
from genodiff.jobs.journal import SUFFIX

ROWS, UNITS = "results.jsonl", "units"
RESULT, PREDICTOR = "result.json", "predictor.json"
LABELLER = "labeller.json"
"""What the folder of a model that labels bases has in place of all of these."""
RESUME = "run its `genodiff finetune` command again: it resumes"


def is_fitted(path: str | Path) -> bool:
    """Whether a folder is of fine-tuning, and no run of pre-training."""
    path = Path(path)
    return any((path / name).exists() for name in (PREDICTOR, RESULT, ROWS, UNITS, LABELLER))


def labels_bases(path: str | Path) -> bool:
    """Whether a folder holds a model that labels each base."""
    return (Path(path) / LABELLER).is_file()


def check_fitted(path: str | Path) -> Path:
    """The folder of a sweep or of a unit. Raises `CheckpointError` where `path` is none.

    >>> check_fitted("runs/toy")                                        # doctest: +SKIP
    """
    path = Path(path)
    fix = "give the folder of a sweep (`genodiff finetune`) or of one of its units"
    if not path.is_dir():
        if Path(f"{path}{SUFFIX}").exists():
            raise CheckpointError("is not finished", file=path, fix=RESUME)
        what = "is a file, not a folder" if path.exists() else "is not there (not found)"
        raise CheckpointError(what, file=path, fix=fix)
    if not is_fitted(path):
        what = f"is no fine-tuned model: neither {PREDICTOR} nor {ROWS} is there"
        raise CheckpointError(what, file=path, fix=fix)
    return path
