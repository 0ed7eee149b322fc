"""What `finetune audit` and `finetune check` are asked. No torch."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.errors import printable
from genodiff.jobs.request import Option, Request, find_named
from genodiff.jobs.verbs import verb
from genodiff.studies.sweep_request import ROWS_HELP, SuiteFiles, TableFields
from genodiff.tasks.split_names import Split

_log = logging.getLogger("genodiff")
_KEEP = ("suite", "task", "split", "classes", "counts", "lengths", "notes")


@verb(
    "finetune audit",
    function="",
    help="""
Report data leakage in a test part: duplicates of train, overlaps, and prediction without sequence.

SUITE/all audits every task of a suite. For Genomic Benchmarks coordinates are enough. Nothing is
written.
""",
)
@dataclass(frozen=True, kw_only=True)
class AuditRequest(SuiteFiles, TableFields, Request[dict[str, Any]]):
    """Describe a data set, its overlap between test and train, and other data leakage.

    `dataset` is SUITE/TASK (its files in the folder `data`), a folder (train/CLASS/*.txt and
    test/CLASS/*.txt, or train.csv and test.csv), its zip, or a table with its `test` part or the
    share of it used for testing. For SUITE/all, `tasks` yields the result of each task. For Genomic
    Benchmarks coordinates are enough. For each run in `model`, `pretraining` counts the test
    sequences that overlap with its training data. Nothing is written. Raises `DataError`,
    `UsageError`, `CheckpointError`.
    """

    work: ClassVar[str] = "genodiff.studies.sweeping:audit"
    json_help: ClassVar[str] = ROWS_HELP

    dataset: Annotated[
        str | Path,
        Option(
            "A folder (train/CLASS/*.txt and test/CLASS/*.txt, or train.csv and test.csv), its "
            "zip, a table, or SUITE/TASK.",
            is_word=True,
        ),
    ] = field(kw_only=False)
    split: Annotated[Split, Option("Split to audit.")] = "official"
    max_length: Annotated[
        int | None, Option("Longer sequences are cut.", ("--max-length", "--seq-len"))
    ] = None
    model: Annotated[
        Sequence[str | Path],
        Option("A run: report how much of the test part its pretraining saw. Repeatable."),
    ] = ()

    def list_rows(self, answer: Any) -> Iterable[dict[str, Any]]:
        """What is found of each task."""
        tasks: list[dict[str, Any]] = answer.get("tasks", [answer])
        return tasks

    def show(self, answer: Any) -> None:
        """What an audit finds, as lines."""
        for each in self.list_rows(answer):
            print(*find_named("genodiff.studies.sweeping:describe_audit")(each), sep="\n")


@verb(
    "finetune check",
    function="",
    help="""
Check a whole data set; exit 3 with one line if it is not sound.

Leaks between train and test give warnings. Nothing is written.
""",
)
@dataclass(frozen=True, kw_only=True)
class LabelledCheckRequest(AuditRequest):
    """Check whether a data set is sound, and report what devalues a test score on it."""

    model: Annotated[Sequence[str | Path], Option("None.", on_line=False)] = ()

    def list_rows(self, answer: Any) -> Iterable[dict[str, Any]]:
        """What each data set is, with its warnings."""
        for _, each, warnings in self._judge(answer):
            yield {key: each[key] for key in _KEEP} | {"warnings": warnings}

    def show(self, answer: Any) -> None:
        """A line about each data set that is sound."""
        for name, each, _ in self._judge(answer):
            counts = "; ".join(
                f"{part} {' + '.join(f'{n:,}' for n in of.values())}"
                for part, of in each["counts"].items()
            )
            spans = each["lengths"].values()
            unit = "bases" if each["domain"] == "dna" else "bytes"
            bases = f"{min(s[0] for s in spans):,} to {max(s[2] for s in spans):,} {unit}"
            of = f"classes {', '.join(each['classes'])}" if each["classes"] else "values"
            print(f"{name}: sound; {of}; {counts}; {bases}")

    def _judge(self, answer: Any) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        """The name of each data set, what is found of it, and its warnings, which are logged."""
        for each in super().list_rows(answer):
            name = f"{each['suite']}/{each['task']}" if "tasks" in answer else str(self.dataset)
            warnings: list[str] = find_named("genodiff.tasks.audit:list_warnings")(each)
            for warning in warnings:
                _log.warning("warning: %s: %s", printable(name), warning)
            yield printable(name), each, warnings


@verb("finetune list", function="")
@dataclass(frozen=True, kw_only=True)
class SuiteListRequest(Request[list[dict[str, Any]]]):
    """List the suites, or the tasks of one suite."""

    json_help: ClassVar[str] = "One JSON object per line."
    has_machine: ClassVar[bool] = False

    suite: Annotated[
        str | None, Option("A suite (default: all suites).", ("SUITE",), is_word=True)
    ] = field(default=None, kw_only=False)

    def answer(self, *given: Any) -> list[dict[str, Any]]:
        """A row for each suite (`suite`, number of `tasks`, `description`), or for each task: kind,
        classes, metrics, longest sequence, published counts. Raises `UsageError` for no suite.
        """
        load = find_named("genodiff.tasks.suite:load_suite")
        if self.suite is not None:
            return [task.model_dump(mode="json") for task in load(self.suite).tasks]
        names = find_named("genodiff.tasks.suite_files:list_suite_files")()
        found = {name: load(name) for name in names}
        return [
            {"suite": name, "tasks": len(suite.tasks), "description": suite.description}
            for name, suite in found.items()
        ]

    def list_rows(self, answer: Any) -> Iterable[dict[str, Any]]:
        """The rows."""
        rows: list[dict[str, Any]] = answer
        return rows

    def show(self, answer: Any) -> None:
        """A line for each row."""
        for row in answer:
            if self.suite is None:
                print(f"{row['suite']:<20} {row['tasks']:>3} tasks  {row['description']}")
                continue
            unit = "bases" if row["domain"] == "dna" else "tokens"
            n = len(row["classes"])
            classes = " / ".join(row["classes"]) if n < 5 else f"{n} classes"
            line = f"{row['name']:<34} {row['kind']:<11} {classes:<36} {row['metrics'][0]:<9} ≤ "
            print(f"{line}{row['max_length']:,} {unit}  {row['note']}".rstrip())
