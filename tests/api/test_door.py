"""The public door: one table, loaded when it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import genodiff
from genodiff import _DOOR


def run(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-c", code], capture_output=True, text=True, timeout=120
    )


def test_the_import_takes_less_than_a_fifth_of_a_second_and_loads_nothing_heavy() -> None:
    done = run("import genodiff", "-X", "importtime")
    ours = [line for line in done.stderr.splitlines() if line.split("|")[-1].strip() == "genodiff"]
    assert len(ours) == 1
    assert int(ours[0].split("|")[1]) < 200_000  # µs, with all that it imports
    heavy = "{'torch', 'numpy', 'polars', 'pydantic', 'cyclopts'}"
    done = run(f"import sys, genodiff; dir(genodiff); sys.exit(bool({heavy} & set(sys.modules)))")
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_found_listed_and_has_a_docstring() -> None:
    for name in _DOOR:
        assert (getattr(genodiff, name).__doc__ or "").strip(), name
        assert name in dir(genodiff)
    assert not {"Any", "TYPE_CHECKING", "_DOOR", "importlib"} & set(dir(genodiff))
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        genodiff.lode  # noqa: B018


def test_type_checkers_see_the_same_names_in_the_same_modules() -> None:
    tree = ast.parse(Path(str(genodiff.__file__)).read_text())
    typed = {
        alias.asname: (node.module, alias.name)
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == {name: (module, name) for name, module in _DOOR.items()}
