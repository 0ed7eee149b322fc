"""Suites of tasks by name: the YAML files in `data_recipes/tasks/` and those of plug-ins.

A plug-in adds a suite with one line, and the file is called as the suite is:

    register_suite(Path(__file__).parent / "mysuite.yaml")
"""

import re
from pathlib import Path

from genodiff.data.recipe import list_recipe_folders
from genodiff.errors import UsageError
from genodiff.registry import Registry

SUITES: Registry[Path] = Registry("suite of tasks")
"""The YAML files of plug-ins; `list_suite_files` has those of the package too."""


def register_suite(path: Path) -> None:
    """Add the suite in a YAML file. Raises `UsageError` where the name is taken."""
    SUITES.add(path.stem, path)


def list_suite_files() -> dict[str, Path]:
    """The YAML file of every suite, by name."""
    ours = {
        p.stem: p for folder in list_recipe_folders() for p in (folder / "tasks").glob("*.yaml")
    }
    taken = sorted(set(ours) & set(SUITES))
    if taken:
        raise UsageError(f"two suites of tasks are called '{taken[0]}'", fix="rename one of them")
    return dict(sorted([*ours.items(), *SUITES.items()]))


def describe_suites() -> dict[str, str]:
    """The `description` of every suite, by name. A file is not parsed: a list must be quick."""
    found = {}
    for name, path in list_suite_files().items():
        text = path.read_text(encoding="utf-8", errors="replace")
        line = re.search(r"^description: *(.*?) *$", text, flags=re.M)
        found[name] = line[1].strip("\"'") if line else ""
    return found
