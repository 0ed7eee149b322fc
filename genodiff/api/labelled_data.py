"""Labelled sequences, looked at before anything is trained on them: audits and lists of tasks."""

from typing import Any

from genodiff.jobs.request import verb
from genodiff.studies.audit_request import AuditRequest

audit = verb("audit", AuditRequest)


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
