"""What the package imports is what it declares, and what others import of it is there."""

import ast
import importlib
import re
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import packages_distributions

from genodiff.diagnosis.checks import _OPTIONAL
from tests.folders import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Packages that are imported by their names, and may be absent.
BY_NAME = {"mamba_ssm": "mamba-ssm", "causal_conv1d": "causal-conv1d"} | {
    name: name for name in ("triton", "tensorboard", "wandb")
}
# Built by the extensions themselves, on a machine with CUDA.
PARTS = {"selective_scan_cuda": "mamba-ssm", "causal_conv1d_cuda": "causal-conv1d"}


def normal(requirement: str) -> str:
    """The name of a requirement as the packaging standard compares names."""
    return re.sub("[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement)[0]).lower()


CORE = {normal(line) for line in PROJECT["dependencies"]}
EXTRAS = {
    normal(line)
    for extra, lines in PROJECT["optional-dependencies"].items()
    if extra not in ("test", "dev", "bench", "docs")
    for line in lines
}


def imports_of(folder: str) -> dict[str, set[str]]:
    """Distribution → files of `folder` that import it, standard library and ourselves left out."""
    owners = packages_distributions()
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # A package that may be broken is imported by its name.
                modules = [node.value] if node.value.split(".")[0] in BY_NAME else []
            for module in (name.split(".")[0] for name in modules):
                if module in sys.stdlib_module_names or module == "genodiff":
                    continue
                owner = PARTS.get(module) or owners.get(module, [BY_NAME.get(module, module)])[0]
                found.setdefault(normal(owner), set()).add(str(path.relative_to(ROOT)))
    return found


def test_every_import_is_declared_and_every_declared_dependency_is_imported():
    found = imports_of("genodiff")
    undeclared = {name: files for name, files in found.items() if name not in CORE | EXTRAS}
    assert not undeclared, f"imported and not in pyproject.toml: {undeclared}"
    assert not CORE - set(found), "declared and never imported"
    assert not EXTRAS - set(found), "an extra that nothing imports"


def test_benchmarks_import_what_some_extra_declares():
    lines = PROJECT["optional-dependencies"]["bench"]
    assert {normal(line) for line in lines} <= set(imports_of("benchmarks"))


def test_doctor_promises_only_extras():
    assert {normal(name) for name in _OPTIONAL} <= EXTRAS


def _is_there(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    with suppress(ModuleNotFoundError):
        importlib.import_module(f"{module}.{name}")
        return True
    return False


def test_what_files_import_that_no_test_runs_is_there():
    rooms = ("benchmarks", "data_recipes", "docs", "examples")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py")]
    asked = {
        (node.module, one.name, file.relative_to(ROOT))
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "genodiff"
        for one in node.names
    }
    assert len(asked) > 500
    lacking = [(file, module, name) for module, name, file in asked if not _is_there(module, name)]
    assert not lacking
