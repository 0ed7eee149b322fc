"""What `finetune audit` and `finetune check` are asked. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.jobs.request import Option, Request
from genodiff.studies.sweep_request import SuiteFiles, TableFields
from genodiff.tasks.split_names import Split


@dataclass(frozen=True, kw_only=True)
class AuditRequest(SuiteFiles, TableFields, Request[dict[str, Any]]):
    """What a data set is, and what its test part shares with train or gives away otherwise.

    `dataset` is SUITE/TASK (its files in the folder `data`), a folder (train/CLASS/*.txt and
    test/CLASS/*.txt, or train.csv and test.csv), its zip, or a table with its `test` part or the
    share of it that tests. Of SUITE/all, `tasks` goes through what is found of each task. For
    Genomic Benchmarks coordinates are enough. For each run in `model`, `pretraining` says how many
    test sequences its training data have in part. Nothing is written. Raises `DataError`,
    `UsageError`, `CheckpointError`.
    """

    work: ClassVar[str] = "genodiff.studies.auditing:audit"

    dataset: Annotated[
        str | Path,
        Option(
            "A folder (train/CLASS/*.txt and test/CLASS/*.txt, or train.csv and test.csv), its "
            "zip, a table, or SUITE/TASK.",
            is_word=True,
        ),
    ] = field(kw_only=False)
    split: Annotated[Split, Option("Which split to look at.")] = "official"
    max_length: Annotated[
        int | None, Option("Longer sequences are cut.", ("--max-length", "--seq-len"))
    ] = None
    model: Annotated[
        Sequence[str | Path],
        Option("A run: how much of the test part its pretraining saw. Repeatable."),
    ] = ()
