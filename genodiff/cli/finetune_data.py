"""`genodiff finetune list|check|audit`: which tasks there are, whether data are sound, and what
they give away.

All three read and judge, and write nothing.
"""

import json as json_module
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from genodiff.cli.common import Common, whole
from genodiff.errors import UsageError, printable

Split = Literal["official", "chrom-holdout", "dedup", "local", "partial"]

_DATASET = (
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


def register(app: App) -> None:
    """Add the verbs about data to `genodiff finetune`."""
    app.command(list_tasks, name="list")
    app.command(check)
    app.command(audit)


def list_tasks(
    suite: Annotated[str | None, Parameter(help="One suite; without it all suites.")] = None,
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON object per line.")] = False,
) -> None:
    """The suites, or the tasks of one suite."""
    from genodiff.tasks.task import load_suite, suite_names

    if suite is None:
        for name in suite_names():
            found = load_suite(name)
            row = {"suite": name, "tasks": len(found.tasks), "description": found.description}
            _line(
                json_module.dumps(row)
                if json
                else f"{name:<20} {len(found.tasks):>3} tasks  {found.description}"
            )
        return
    for task in load_suite(suite).tasks:
        if json:
            _line(task.model_dump_json())
        else:
            unit = "bases" if task.domain == "dna" else "tokens"
            of = (
                " / ".join(task.classes)
                if len(task.classes) < 5
                else f"{len(task.classes)} classes"
            )
            _line(
                f"{task.name:<34} {task.kind:<11} {of:<36} {task.metrics[0]:<9} ≤ "
                f"{task.max_length:,} {unit}  {task.note}".rstrip()
            )


def check(
    dataset: Annotated[str, Parameter(help=_DATASET)],
    /,
    *,
    flags: DataFlags = DataFlags(),
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Read a data set from end to end and judge it; exit 3 with one line where it is not sound.
    Leaks are warned of.
    """
    from genodiff.tasks.audit import audit as look
    from genodiff.tasks.audit import warnings_of

    found = look(_load(dataset, flags))
    warnings = warnings_of(found)
    if not common.quiet:
        for warning in warnings:
            print(f"genodiff: warning: {printable(dataset)}: {warning}", file=sys.stderr)
    if json:
        keep = ("suite", "task", "split", "classes", "counts", "lengths", "notes")
        _line(json_module.dumps({key: found[key] for key in keep} | {"warnings": warnings}))
    else:
        counts = "; ".join(
            f"{part} {' + '.join(f'{n:,}' for n in of.values())}"
            for part, of in found["counts"].items()
        )
        spans = [of for of in found["lengths"].values()]
        unit = "bases" if found["domain"] == "dna" else "bytes"
        bases = f"{min(s[0] for s in spans):,} to {max(s[2] for s in spans):,} {unit}"
        of = f"classes {', '.join(found['classes'])}" if found["classes"] else "values"
        _line(f"{printable(dataset)}: sound; {of}; {counts}; {bases}")


def audit(
    dataset: Annotated[str, Parameter(help=_DATASET)],
    /,
    *,
    flags: DataFlags = DataFlags(),
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """What the test part gives away: duplicates and overlaps with train per class, and what needs
    no sequence to be told.

    SUITE/all audits every task of a suite. For Genomic Benchmarks coordinates are enough.
    """
    from genodiff.tasks.audit import audit as look
    from genodiff.tasks.audit import audit_lines

    for name in _every(dataset):
        found = look(_load(name, flags))
        for line in [json_module.dumps(found)] if json else audit_lines(found):
            _line(line)


def _every(dataset: str) -> Sequence[str]:
    """SUITE/all as the suite's tasks; anything else as it is."""
    from genodiff.tasks.task import suite_names, task_names

    suite, _, task = dataset.partition("/")
    if task == "all" and suite in suite_names() and not Path(dataset).exists():
        return [f"{suite}/{name}" for name in task_names(suite)]
    return [dataset]


def _load(dataset: str, flags: DataFlags) -> Any:
    """The data set that the words name: files first, then a task of a suite."""
    from genodiff.tasks.own import load_own
    from genodiff.tasks.table import Layout
    from genodiff.tasks.task import load_task, suite_names

    suite, _, task = dataset.partition("/")
    if dataset in suite_names() and not Path(dataset).exists():
        raise UsageError(
            f"{dataset} is a suite: which of its tasks?",
            fix=f"give {dataset}/TASK; see `genodiff finetune list {dataset}`",
        )
    if suite in suite_names() and task and not Path(dataset).exists():
        references = dict(_reference(word) for word in flags.reference or [])
        return load_task(
            suite,
            task,
            source=flags.data,
            split=flags.split,
            references=references,
            offline=True,
            sequences=bool(references),
        )
    layout = Layout(flags.sequence, tuple(flags.label or ()))
    return load_own(
        dataset,
        flags.test,
        flags.valid,
        layout=layout,
        kind=flags.kind,
        max_length=flags.max_length,
        split=flags.split,
    )


def _reference(word: str) -> tuple[str, Path]:
    name, equals, path = word.partition("=")
    if not equals or not path:
        raise UsageError(
            f"--reference {word}: expected NAME=FASTA",
            fix="for example --reference hg38=hg38.fa.gz",
        )
    return name, Path(path)


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
