"""The public door: one table, loaded when it is used."""

import ast
import subprocess
import sys

import pytest

import genodiff
from genodiff.jobs.options import FileRequest
from genodiff.jobs.verbs import list_functions, list_verbs, read_verbs
from tests.jobs.stubs import ROOT, find_stub

DOOR = {*genodiff._BESIDE, *list_functions()}


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
    for name in DOOR:
        assert (getattr(genodiff, name).__doc__ or "").strip(), name
        assert name in dir(genodiff)
    assert not {"Any", "_BESIDE", "importlib"} & set(dir(genodiff))
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        genodiff.lode  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    body = ast.parse(find_stub("genodiff").read_text()).body
    typed = {one.name for one in body if isinstance(one, ast.FunctionDef)}
    aliases = {
        str(alias.asname): (node.module, alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert aliases.pop("__version__")
    assert typed == set(list_functions())
    assert aliases == {name: (module, name) for name, module in genodiff._BESIDE.items()}


def test_every_verb_of_the_tree_is_read_from_its_source_as_it_is() -> None:
    entries = {one.entry for one in [*list_verbs().values(), *list_functions().values()]}
    for file in (ROOT / "genodiff").rglob("*.py"):
        if "\n@verb(" in (text := file.read_text()) and file.name != "verbs.py":
            assert len(read_verbs(file)) == text.count("\n@verb("), file
            assert {one.entry for one in read_verbs(file)} <= entries, file
    for name, one in list_verbs().items():
        assert one.help, name
        if issubclass(request := one.open(), FileRequest):
            of = (FileRequest.conclude, FileRequest.summarise)
            assert (request.conclude, request.summarise) != of, f"{name} says nothing at its end"
        assert one.open().__name__ == one.entry.partition(":")[2]
