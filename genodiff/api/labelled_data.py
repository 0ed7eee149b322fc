"""Labelled sequences, looked at before anything is trained on them: audits and lists of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.errors import DataError, UsageError
from genodiff.kernels.defaults import own_defaults

if TYPE_CHECKING:
    from genodiff.api.sweep import Split, TaskKind


@own_defaults()
def audit(
    dataset: str | Path,
    *,
    data: str | Path | None = None,
    test: str | Path | None = None,
    valid: str | Path | None = None,
    split: Split = "official",
    similarity: float | None = None,
    kind: TaskKind | None = None,
    sequence: str | None = None,
    label: Sequence[str] = (),
    reference: Mapping[str, str] | None = None,
    max_length: int | None = None,
    test_share: float | None = None,
    drop_missing: bool = False,
    model: Sequence[str | Path] = (),
) -> dict[str, Any]:
    """What a data set is, and what its test part shares with train or gives away otherwise.

    `dataset` is SUITE/TASK (its files in the folder `data`), a folder (train/CLASS/*.txt and
    test/CLASS/*.txt, or train.csv and test.csv), its zip, or a table with its `test` part or the
    share of it that tests. `drop_missing` leaves out, and counts, rows that lack a value. For
    Genomic Benchmarks coordinates are enough. For each run in `model`, `pretraining` says how many
    test sequences its training data have in part. Nothing is written. Raises `DataError`,
    `UsageError`, `CheckpointError`.
    """
    from genodiff.tasks.audit import audit as audit_parts
    from genodiff.tasks.labelled_file import TableColumns
    from genodiff.tasks.own_data import load_own_data
    from genodiff.tasks.suite import list_suite_names
    from genodiff.tasks.task import load_task

    dataset, known = str(dataset), [] if Path(dataset).exists() else list_suite_names()
    suite, _, task = dataset.partition("/")
    if dataset in known:
        raise UsageError(
            f"{dataset} is a suite: which of its tasks?",
            fix=f"give {dataset}/TASK; see `genodiff finetune list {dataset}`",
        )
    if suite in known and task:
        files = {name: Path(path) for name, path in (reference or {}).items()}
        parts = load_task(
            suite, task, source=data, split=split, references=files, offline=True,
            sequences=bool(files), similarity=similarity,
        )  # fmt: skip
    else:
        layout = TableColumns(sequence, tuple(label), drop_missing=drop_missing)
        parts = load_own_data(
            dataset, test, valid, layout=layout, kind=kind, max_length=max_length, split=split,
            similarity=similarity, test_share=test_share,
        )  # fmt: skip
    found = audit_parts(parts)
    if model:
        from genodiff.runs.model import load_model
        from genodiff.tasks.contamination import measure_contamination

        if not parts.test.sequences:
            raise DataError(
                "the test part has coordinates but no sequences, which --model needs",
                fix="give the genome with --reference NAME=FASTA",
            )
        found["pretraining"] = {
            one.run.resolve().name: measure_contamination(one, parts.test.sequences).to_json()
            for one in map(load_model, model)
        }
    return found


def list_warnings(found: dict[str, Any]) -> list[str]:
    """What in an audit makes a test score worth less, a sentence each."""
    from genodiff.tasks.audit import list_warnings as warnings_of

    return warnings_of(found)


def audit_lines(found: dict[str, Any]) -> list[str]:
    """An audit for a person to read."""
    from genodiff.tasks.audit import audit_lines as lines_of

    lines = lines_of(found)
    if "pretraining" in found:
        from genodiff.tasks.contamination import describe_contamination

        lines += [
            f"  {describe_contamination(name, told)}" for name, told in found["pretraining"].items()
        ]
    return lines


def list_datasets(dataset: str) -> list[str]:
    """SUITE/all as the suite's tasks; anything else as it is."""
    from genodiff.tasks.suite import list_suite_names, list_task_names

    suite, _, task = dataset.partition("/")
    if task == "all" and suite in list_suite_names() and not Path(dataset).exists():
        return [f"{suite}/{name}" for name in list_task_names(suite)]
    return [dataset]


def describe_suites() -> dict[str, str]:
    """The description of every suite, by name."""
    from genodiff.tasks.suite_files import describe_suites as descriptions

    return descriptions()


def list_suites() -> list[dict[str, Any]]:
    """Every suite: `suite`, the number of its `tasks`, `description`."""
    from genodiff.tasks.suite import list_suite_names, load_suite

    found = ((name, load_suite(name)) for name in list_suite_names())
    return [
        {"suite": name, "tasks": len(suite.tasks), "description": suite.description}
        for name, suite in found
    ]


def list_tasks(suite: str) -> list[dict[str, Any]]:
    """Every task of a suite: kind, classes, metrics, longest sequence, published counts.

    Raises `UsageError` for an unknown suite.
    """
    from genodiff.tasks.suite import load_suite

    return [task.model_dump(mode="json") for task in load_suite(suite).tasks]
