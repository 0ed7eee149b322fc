"""The house's rules, executed: imports point down, rooms on one floor are strangers, files stay
short.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "genodiff"
FLOOR = {
    "errors": -1, "__init__": -1,
    "alphabet": 0, "settings": 0, "counter": 0, "registry": 0, "domain": 0, "io": 0, "kernels": 0,
    "diffusion": 1, "backbones": 1, "data": 1,
    "runs": 2,
    "train": 3, "tasks": 3,
    "finetune": 4, "generate": 4, "score": 4, "hub": 4,
    "report": 5,
    "studies": 6,
    "cli": 7,
}  # fmt: skip
GROUND = {
    "alphabet",
    "settings",
    "counter",
    "io",
}  # may know one another; none of them may know torch
OPTIONAL = {
    "tokenizers",
    "triton",
    "mamba_ssm",
    "causal_conv1d",
    "selective_scan_cuda",
    "causal_conv1d_cuda",
    "zarr",
    "optuna",
}
FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    parts = module.split(".")
    return "cli" if parts[-1] == "__main__" else parts[1] if len(parts) > 1 else "__init__"


def module_of(path: Path) -> str:
    return ".".join(("genodiff", *path.relative_to(PACKAGE).with_suffix("").parts))


def imports(tree: ast.AST) -> list[tuple[str, ast.stmt]]:
    found: list[tuple[str, ast.stmt]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            base = node.module or ""
            found += (
                [(f"genodiff.{alias.name}", node) for alias in node.names]
                if base == "genodiff"
                else [(base, node)]
            )
    return found


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_point_down_and_rooms_on_one_floor_are_strangers(path: Path) -> None:
    here = room_of(module_of(path))
    for name, _ in imports(ast.parse(path.read_text())):
        if not name.startswith("genodiff"):
            continue
        there = room_of(name)
        if there.startswith("__"):
            continue
        assert there in FLOOR, f"{path.name} imports {name}: a room without a floor"
        if here == there or (here in GROUND and there in GROUND):
            continue
        assert FLOOR[there] < FLOOR[here], (
            f"{module_of(path)} imports {name}, which is not below it"
        )


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if room_of(module_of(p)) in GROUND | {"errors", "__init__"}],
    ids=module_of,
)
def test_the_ground_floor_and_the_cli_shell_do_not_import_torch(path: Path) -> None:
    assert not {name.split(".")[0] for name, _ in imports(ast.parse(path.read_text()))} & {
        "torch",
        "lightning",
    }


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_nothing_is_imported_inside_a_function_but_optional_kernels_and_verbs(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for function in [
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]:
        for name, node in imports(function):
            allowed = name.split(".")[0] in OPTIONAL or room_of(module_of(path)) == "cli"
            assert allowed, (
                f"{module_of(path)}, line {node.lineno}: {name} is imported inside "
                f"{function.name}()"
            )


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_file_is_over_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_no_file_is_a_drawer_for_anything() -> None:
    assert not [p for p in FILES if p.stem in {"utils", "helpers", "misc", "base", "core"}]


def test_help_and_the_version_do_not_load_torch() -> None:
    code = (
        "import sys\nfrom genodiff.cli import app\n"
        "for words in (['--help'], ['--version'], []):\n    app(words, exit_on_error=False, "
        "result_action='return_value')\n"
        "heavy = {'torch', 'lightning', 'polars', 'sklearn', 'matplotlib', 'numpy'} & "
        "set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_package_imports_with_nothing_optional() -> None:
    code = (
        "import importlib, pkgutil, sys\n"
        "class Absent:\n    def find_spec(self, name, path=None, target=None):\n"
        "        absent = {'triton', 'mamba_ssm', 'causal_conv1d', 'tensorboard', 'tokenizers'}\n"
        "        if name.split('.')[0] in absent: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\nimport genodiff\n"
        "TRITON = [f'.triton.{x}' for x in ('scan_jit', 'tiles', 'staging', 'mixer_jit', "
        "'norm_jit')]\n"
        "for m in pkgutil.walk_packages(genodiff.__path__, 'genodiff.'):\n"
        "    if not any(s in m.name for s in ('__main__', '_native_', *TRITON)): "
        "importlib.import_module(m.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
