"""The flags that name labelled sequences, and opening what they name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from genodiff.cli.common import parse_references, whole
from genodiff.errors import UsageError
from genodiff.tasks.labelled_file import TableColumns
from genodiff.tasks.own_data import load_own_data
from genodiff.tasks.suite import suite_names
from genodiff.tasks.task import TaskData, load_task

Split = Literal["official", "chrom-holdout", "dedup", "local", "partial"]

DATASET = (
    "A folder (train/CLASS/*.txt and test/CLASS/*.txt, or train.csv and test.csv), its "
    "zip, a table, or SUITE/TASK."
)


@Parameter(name="*")
@dataclass(frozen=True)
class DataFlags:
    """Where a data set is and how to read it."""

    data: Annotated[
        Path | None, Parameter(help="For SUITE/TASK: the folder that holds the suite's data.")
    ] = None
    test: Annotated[
        Path | None, Parameter(help="The test table, where DATASET is the train table.")
    ] = None
    valid: Annotated[Path | None, Parameter(help="A validation table, used by every seed.")] = None
    split: Annotated[Split, Parameter(help="Which split to look at.")] = "official"
    kind: Annotated[
        Literal["binary", "multiclass", "multilabel", "regression"] | None,
        Parameter(help="What the labels are [told by them]."),
    ] = None
    sequence: Annotated[str | None, Parameter(help="The column of sequences [sequence, seq].")] = (
        None
    )
    label: Annotated[
        list[str] | None,
        Parameter(help="The column of labels [label]; repeatable: a multi-label task."),
    ] = None
    reference: Annotated[
        list[str] | None,
        Parameter(
            help="Repeatable: NAME=FASTA, your own copy of a genome, for example hg38=hg38.fa."
        ),
    ] = None
    max_length: Annotated[
        int | None,
        Parameter(
            name=["--max-length", "--seq-len"], converter=whole, help="Longer sequences are cut."
        ),
    ] = None


def open_dataset(dataset: str, flags: DataFlags) -> TaskData:
    """What the words name: files where there are such, else a task of a suite."""
    suite, _, task = dataset.partition("/")
    if dataset in suite_names() and not Path(dataset).exists():
        raise UsageError(
            f"{dataset} is a suite: which of its tasks?",
            fix=f"give {dataset}/TASK; see `genodiff finetune list {dataset}`",
        )
    if suite in suite_names() and task and not Path(dataset).exists():
        references = {k: Path(v) for k, v in parse_references(flags.reference).items()}
        return load_task(
            suite,
            task,
            source=flags.data,
            split=flags.split,
            references=references,
            offline=True,
            sequences=bool(references),
        )
    layout = TableColumns(flags.sequence, tuple(flags.label or ()))
    return load_own_data(
        dataset,
        flags.test,
        flags.valid,
        layout=layout,
        kind=flags.kind,
        max_length=flags.max_length,
        split=flags.split,
    )
