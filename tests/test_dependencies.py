"""What the package imports is what it declares, and what it declares it imports."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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
    from genodiff.diagnosis.checks import _OPTIONAL

    assert {normal(name) for name in _OPTIONAL} <= EXTRAS
