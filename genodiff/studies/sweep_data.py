"""Which tasks and models a sweep means, and all of it that can be judged without torch."""

from pathlib import Path
from typing import NamedTuple

from genodiff.backbones.settings import PRESETS
from genodiff.errors import UsageError, did_you_mean, printable
from genodiff.finetuning.model_words import SCRATCH, list_baselines, split_words
from genodiff.finetuning.protocol import FitSettings
from genodiff.jobs.request import list_fields
from genodiff.studies.sweep_request import OwnData, SweepRequest
from genodiff.tasks.class_folders import refuse_archive
from genodiff.tasks.data_request import SUITE, DataRequest
from genodiff.tasks.split_names import check_similarity, choose_split
from genodiff.tasks.suite import choose_tasks

_SHARED = {"what", "split", "similarity"}
"""What one's own data and a suite's have both."""


class Judged(NamedTuple):
    """The data, the names of its tasks, and the folder of the sweep."""

    data: DataRequest
    tasks: list[str]
    folder: Path


def judge(asked: SweepRequest) -> Judged:
    """What is meant. Raises `UsageError` for what does not go together."""
    if asked.is_suite:
        choose_tasks(str(asked.what), asked.task)
    data = _read_suite(asked) if asked.is_suite else _read_own(asked)
    check_similarity(data.split, asked.similarity)
    data = data.model_copy(update={"max_train": asked.max_train, "similarity": asked.similarity})
    if data.data is not None:
        refuse_archive(data.data)
    tasks = data.names(asked.task)
    FitSettings.parse(asked.over)
    for _, word in split_words(asked.words, list_baselines(data.domain)):
        preset = word.removeprefix(f"{SCRATCH}:")
        if preset != word and preset not in PRESETS:
            raise UsageError(f"unknown preset '{preset}'; {did_you_mean(preset, PRESETS)}")
    name = data.suite if data.table is None else data.table.name
    folder = Path("runs") / f"finetune-{name}" if asked.out is None else Path(asked.out)
    asked.check_out(folder)
    return Judged(data, tasks, folder)


def _read_suite(asked: SweepRequest) -> DataRequest:
    own = [one.name for one in list_fields(OwnData) if one.name not in _SHARED]
    extra = [name for name in own if getattr(asked, name)]
    if extra:
        what = f"{extra[0]} is for your own data, and '{asked.what}' is a suite"
        raise UsageError(what, fix="leave it out")
    values = {
        "suite": asked.what, "split": asked.split,
        "data": None if asked.data is None else str(asked.data),
        "references": {name: str(file) for name, file in (asked.reference or {}).items()}, 
        "offline": asked.offline,
    }  # fmt: skip
    data = DataRequest.parse(values)
    if data.domain == "text" and asked.reference:
        what = "--reference is for DNA tasks, and these are text tasks"
        raise UsageError(what, fix="leave it out")
    return data


def _read_own(asked: SweepRequest) -> DataRequest:
    path, split = Path(asked.what), choose_split(asked.split, asked.test_share)
    name = asked.name or printable(path.name.split(".")[0])
    table = asked.name_files(path) | {"name": name, "metric": asked.metric}
    split = "own" if split == "official" else split
    return DataRequest.parse(
        {"suite": SUITE, "split": split, "table": table, "offline": asked.offline}
    )
