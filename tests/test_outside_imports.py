"""What benchmarks, examples and the documentation's hooks import of genodiff is there."""

import ast
import importlib
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("benchmarks", "data_recipes", "docs", "examples")


def _is_there(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    with suppress(ModuleNotFoundError):
        importlib.import_module(f"{module}.{name}")
        return True
    return False


def test_what_files_import_that_no_test_runs_is_there():
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
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
