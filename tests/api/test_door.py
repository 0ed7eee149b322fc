"""The public door: one table, loaded when it is used; and the script in README, as it stands."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import genodiff
from genodiff.jobs.options import FileRequest
from genodiff.jobs.verbs import list_functions, list_verbs, read_verbs

ROOT = Path(__file__).resolve().parents[2]
DOOR = {*genodiff._BESIDE, *list_functions()}


def run(code: str, *flags: str, **how: Any) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *flags, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, **how)


def test_the_import_takes_less_than_a_fifth_of_a_second_and_loads_nothing_heavy():
    done = run("import genodiff", "-X", "importtime")
    ours = [line for line in done.stderr.splitlines() if line.split("|")[-1].strip() == "genodiff"]
    assert len(ours) == 1
    assert int(ours[0].split("|")[1]) < 200_000  # µs, with all that it imports
    heavy = "{'torch', 'numpy', 'polars', 'pydantic', 'cyclopts'}"
    done = run(f"import sys, genodiff; dir(genodiff); sys.exit(bool({heavy} & set(sys.modules)))")
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_found_listed_and_has_a_docstring():
    for name in DOOR:
        assert (getattr(genodiff, name).__doc__ or "").strip(), name
        assert name in dir(genodiff)
    assert not {"Any", "_BESIDE", "importlib"} & set(dir(genodiff))
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        genodiff.lode  # noqa: B018


def test_type_checkers_see_the_same_names_and_arguments():
    body = ast.parse((ROOT / "genodiff/__init__.pyi").read_text()).body
    imports = {
        str(alias.asname or alias.name): (node.module, alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    door, functions = {**genodiff._BESIDE, "__version__": "genodiff.version"}, list_functions()
    assert {name: imports[name] for name in door} == {
        name: (module, name) for name, module in door.items()
    }
    made = {}
    for node in body:
        if isinstance(node, ast.Assign):
            name, request = map(ast.unparse, node.value.args)  # type: ignore[attr-defined]
            made[ast.literal_eval(name)] = ":".join(imports[request])  # type: ignore[arg-type]
            assert ast.unparse(node.targets[0]) == ast.literal_eval(name)
    spelled = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
    assert made == {name: functions[name].entry for name in functions.keys() - spelled.keys()}
    for name, node in spelled.items():  # those with *words or **settings, which no field can say
        said = inspect.signature(getattr(genodiff, name)).parameters.values()
        plain = [one for one in said if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        args = [*node.args.args, *node.args.kwonlyargs]
        assert [one.arg for one in args] == [one.name for one in plain]
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        assert [ast.literal_eval(one) for one in defaults if one] == [one.default for one in plain]
        assert len(plain) < len(said), f"{name} is what its request says: make_function"


def test_every_verb_of_the_tree_is_read_from_its_source_as_it_is():
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


def read_script() -> str:
    section = (ROOT / "README.md").read_text().split("## In Python\n")[1].split("\n## ")[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    return found[1]


def test_the_script_of_the_readme_is_short_and_imports_nothing_else():
    script = read_script()
    assert len([line for line in script.splitlines() if line.strip()]) <= 12
    statements = ast.walk(ast.parse(script))
    imported = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imported] == ["import genodiff"]


def test_the_script_of_the_readme_runs_and_prints_what_it_says(tmp_path):
    done = run(read_script(), "-W", "error", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    samples, filled, probabilities, shape, *network = done.stdout.splitlines()
    first, second = ast.literal_eval(samples)
    assert {*first, *second} <= set("ACGT")
    assert len(first) == len(second) == 60
    assert re.fullmatch("ACGTTGCA[ACGT]{8}TGCAACGT", filled)
    numbers = [float(word) for word in probabilities.strip("[]").split()]
    assert len(numbers) == 4
    assert abs(sum(numbers) - 1) < 1e-6
    assert re.fullmatch(r"\(2, \d+\)", shape)
    assert len(network) > 5
