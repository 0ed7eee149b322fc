"""What is found of labelled sequences before anything is trained on them."""

from pathlib import Path
from typing import Any

from genodiff.errors import DataError, UsageError
from genodiff.runs.model import load_model
from genodiff.studies.audit_request import AuditRequest
from genodiff.tasks.audit import audit as audit_parts
from genodiff.tasks.audit import audit_lines
from genodiff.tasks.contamination import describe_contamination, measure_contamination
from genodiff.tasks.labelled_file import TableColumns
from genodiff.tasks.own_data import load_own_data
from genodiff.tasks.suite import list_suite_names, list_task_names
from genodiff.tasks.task import load_task


def audit(asked: AuditRequest) -> dict[str, Any]:
    """What is found of one data set, or of each task of SUITE/all."""
    dataset = str(asked.dataset)
    suite, _, task = dataset.partition("/")
    if Path(dataset).exists() or suite not in list_suite_names():
        return _audit(asked)
    if not task:
        raise UsageError(
            f"{dataset} is a suite: which of its tasks?",
            fix=f"give {dataset}/TASK; see `genodiff finetune list {dataset}`",
        )
    if task != "all":
        return _audit(asked, suite, task)
    return {"tasks": (_audit(asked, suite, name) for name in list_task_names(suite))}


def _audit(asked: AuditRequest, suite: str = "", task: str = "") -> dict[str, Any]:
    """What is found of one task of a suite, or of own sequences."""
    if suite:
        files = {name: Path(path) for name, path in (asked.reference or {}).items()}
        parts = load_task(
            suite, task, source=asked.data, split=asked.split, references=files, offline=True,
            sequences=bool(files), similarity=asked.similarity,
        )  # fmt: skip
    else:
        layout = TableColumns(asked.sequence, tuple(asked.label), drop_missing=asked.drop_missing)
        parts = load_own_data(
            str(asked.dataset), asked.test, asked.valid, layout=layout, kind=asked.kind,
            max_length=asked.max_length, split=asked.split, similarity=asked.similarity,
            test_share=asked.test_share,
        )  # fmt: skip
    found = audit_parts(parts)
    if asked.model:
        if not parts.test.sequences:
            raise DataError(
                "the test part has coordinates but no sequences, which --model needs",
                fix="give the genome with --reference NAME=FASTA",
            )
        found["pretraining"] = {
            one.run.resolve().name: measure_contamination(one, parts.test.sequences).to_json()
            for one in map(load_model, asked.model)
        }
    return found


def describe_audit(found: dict[str, Any]) -> list[str]:
    """An audit for a person to read, with what pretraining saw."""
    seen = found.get("pretraining", {})
    return audit_lines(found) + [f"  {describe_contamination(*each)}" for each in seen.items()]
