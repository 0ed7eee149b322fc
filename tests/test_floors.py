"""The house's rules, executed: imports point down, files stay short, class names are unique."""

import ast
import json
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "genodiff"
FLOOR = {
    "version": -2, "errors": -1, "__init__": -1,
    "alphabet": 0, "words": 0, "vocabulary": 0, "settings": 0, "counter": 0, "registry": 0,
    "domain": 0, "io": 0, "statistics": 0, "constraints": 0, "kernels": 0,
    "diffusion": 1, "backbones": 1, "data": 1, "memory": 1,
    "runs": 2,
    "training": 3, "tasks": 3, "jobs": 3, "annotation": 3,
    "finetuning": 4, "scoring": 4, "hub": 4,
    "models": 5,
    "variants": 6, "maps": 6, "embedding": 6, "generate": 6, "evaluation": 6,
    "design": 7, "conservation": 7, "laws": 7, "quality": 7, "diagnosis": 7,
    "reports": 8,
    "studies": 9,
    "api": 10, "hf": 10,
    "cli": 11,
}  # fmt: skip
# The ground floor: its rooms may import one another, but not torch.
GROUND = {
    "alphabet", "words", "vocabulary", "settings", "counter", "registry", "domain", "io",
    "statistics", "constraints",
}  # fmt: skip
OPTIONAL = {
    "tokenizers", "triton", "optuna", "pyBigWig", "pysam", "python_codon_tables",
    "mamba_ssm", "causal_conv1d", "selective_scan_cuda", "causal_conv1d_cuda",
    "tensorboard", "wandb",
}  # fmt: skip
# Class names that stand in several files: of which rooms, and why.
SHARED_CLASS_NAMES = {
    "Caduceus": (
        {"backbones", "hf"},
        "the network, and transformers' model of it under its published name",
    ),
    "Block": ({"backbones"}, "the repeated layer of each network"),
    "_Scan": ({"kernels"}, "one operation, an autograd function for each implementation"),
    "_Linear": ({"kernels"}, "one operation, an autograd function for each implementation"),
    "_Mixer": ({"kernels"}, "one operation, an autograd function for each implementation"),
}
# What the command line may import: the door, and the ground floor but the kernels.
OPEN_TO_CLI = GROUND | {"cli", "api", "jobs", "errors", "version", "__init__"}
# What is imported here follows from what is asked for or found, and comes after what can be judged.
CHOOSERS = {"genodiff.jobs.machine", "genodiff.models.opening"}
LINES = 400
FILES = sorted(PACKAGE.rglob("*.py"))
BUDGET = {
    "annotation": 939, "api": 3_240, "backbones": 2_251, "cli": 740, "conservation": 1_694,
    "constraints": 2_477, "data": 6_354, "design": 1_315, "diagnosis": 535, "diffusion": 4_468,
    "embedding": 915, "evaluation": 3_764, "finetuning": 7_151, "generate": 3_672, "hf": 1_192,
    "hub": 2_702, "io": 9_269, "jobs": 1_369, "kernels": 5_042, "laws": 381, "maps": 3_348,
    "memory": 4_652, "models": 148, "modules": 1_216, "quality": 1_562, "reports": 4_074,
    "runs": 5_587, "scoring": 2_641, "statistics": 593, "studies": 1_518, "tasks": 4_128,
    "training": 2_647, "variants": 3_480,
}  # fmt: skip
"""Lines of Python that a room may have. Who needs more takes them from another room's number."""


def module_of(path: Path) -> str:
    return ".".join(("genodiff", *path.relative_to(PACKAGE).with_suffix("").parts))


def room_of(module: str) -> str:
    parts = module.split(".")
    return "cli" if parts[-1] == "__main__" else parts[1] if len(parts) > 1 else "__init__"


class Import(NamedTuple):
    """One import of the package: where it stands, in which function if in any, and of what."""

    path: Path
    function: str | None
    name: str
    line: int

    @property
    def module(self) -> str:
        return module_of(self.path)


@cache
def read_package() -> tuple[list[Import], dict[str, list[str]]]:
    """Every import, and the modules of every class by its name: each file is read once."""
    found: list[Import] = []
    classes = defaultdict(list)

    def walk(node: ast.AST, path: Path, function: str | None) -> None:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [f"genodiff.{a.name}" for a in node.names] if base == "genodiff" else [base]
        elif isinstance(node, ast.ClassDef):
            classes[node.name].append(module_of(path))
        found.extend(Import(path, function, name, node.lineno) for name in names)  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if not isinstance(node, ast.expr):  # an expression imports nothing
            for child in ast.iter_child_nodes(node):
                walk(child, path, function)

    for path in FILES:
        walk(ast.parse(path.read_text()), path, None)
    return found, classes


def list_imports() -> list[tuple[str, str, int]]:
    """(importing module, imported module, line) of every import of the package."""
    return [(one.module, one.name, one.line) for one in read_package()[0]]


def test_imports_point_down_and_rooms_on_one_floor_are_strangers():
    wrong = []
    for module, name, line in list_imports():
        here, there = room_of(module), room_of(name)
        if not name.startswith("genodiff") or there.startswith("__"):
            continue
        if here == there or {here, there} <= GROUND:
            continue
        if there not in FLOOR or FLOOR[there] >= FLOOR[here]:
            wrong.append(f"{module}, line {line}: {name} is not below it")
    assert not wrong, "\n".join(wrong)


def test_the_ground_floor_and_the_public_door_do_not_import_torch():
    wrong = [
        f"{module}, line {line}: {name}"
        for module, name, line in list_imports()
        if room_of(module) in GROUND | {"errors", "__init__"}
        and name.split(".")[0] in {"torch", "lightning"}
    ]
    assert not wrong, "\n".join(wrong)


def test_the_command_line_calls_the_door_and_nothing_deeper():
    wrong = [
        f"{module}, line {line}: {name}"
        for module, name, line in list_imports()
        if room_of(module) == "cli" and name.startswith("genodiff.")
        if (there := room_of(name)) not in OPEN_TO_CLI and there[0] != "_"
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_imported_inside_a_function_but_optional_libraries_and_in_cli_and_api():
    wrong = [
        f"{one.module}, line {one.line}: {one.name} is imported inside {one.function}()"
        for one in read_package()[0]
        if one.function is not None
        if room_of(one.module) not in ("cli", "api") and one.module not in CHOOSERS
        if one.name.split(".")[0] not in OPTIONAL
    ]
    assert not wrong, "\n".join(wrong)


def test_files_are_short_and_none_is_a_drawer_for_anything():
    sources = [*FILES, *PACKAGE.rglob("*.c"), *PACKAGE.rglob("*.h"), *PACKAGE.rglob("*.inc")]
    lengths = {str(p.relative_to(PACKAGE)): len(p.read_text().splitlines()) for p in sources}
    long = {name: n for name, n in lengths.items() if n > LINES}
    assert not long, f"files of more than {LINES} lines: {long}"
    drawers = [p for p in FILES if p.stem in {"utils", "helpers", "misc", "base", "core"}]
    assert not drawers


def test_no_room_has_more_lines_than_its_budget():
    lines: dict[str, int] = defaultdict(int)
    for path in FILES:
        parts = path.relative_to(PACKAGE).parts
        lines[parts[0] if len(parts) > 1 else "modules"] += len(path.read_text().splitlines())
    over = {room: n for room, n in lines.items() if n > BUDGET.get(room, 0)}
    assert not over, f"more lines than {BUDGET}: {over}"


def test_class_names_are_unique_in_the_package():
    several = {name: where for name, where in read_package()[1].items() if len(where) > 1}
    wrong = {
        name: modules
        for name, modules in several.items()
        if {room_of(module) for module in modules} != SHARED_CLASS_NAMES.get(name, (set(), ""))[0]
    }
    assert not wrong, "\n".join(f"{name}: {', '.join(modules)}" for name, modules in wrong.items())


def test_help_and_the_version_do_not_load_torch():
    code = (
        "import sys\nfrom genodiff.cli import build_app\napp = build_app()\n"
        "for words in (['--help'], ['--version'], []):\n    app(words, exit_on_error=False, "
        "result_action='return_value')\n"
        "heavy = {'torch', 'lightning', 'polars', 'sklearn', 'matplotlib', 'numpy'} & "
        "set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_package_imports_with_nothing_optional():
    code = (
        "import importlib, importlib.metadata as metadata, pkgutil, sys\n"
        "ABSENT = {'triton', 'mamba_ssm', 'causal_conv1d', 'tokenizers', 'transformers'}\n"
        "found = metadata.distribution\n"
        "def distribution(name):\n"
        "    if name in ABSENT: raise metadata.PackageNotFoundError(name)\n"
        "    return found(name)\n"
        "metadata.distribution = distribution\n"  # libraries of others ask here
        "for name in ABSENT: sys.modules[name] = None\n"
        "import genodiff\n"
        "NEEDED = [f'.triton.{x}' for x in ('scan_jit', 'tiles', 'mixer_jit', "
        "'weights_jit', 'norm_jit')] + ['genodiff.hf']\n"
        "for m in pkgutil.walk_packages(genodiff.__path__, 'genodiff.'):\n"
        "    if not any(s in m.name for s in ('__main__', '_native_', *NEEDED)): "
        "importlib.import_module(m.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


CODE = """
import json, sys
from genodiff.backbones.settings import BACKBONES, PRESETS
from genodiff.diffusion.registries import OBJECTIVES, SAMPLERS, SCHEDULES
from genodiff.maps.track_format import FORMATS
registries = [BACKBONES, PRESETS, OBJECTIVES, SAMPLERS, SCHEDULES, FORMATS]
light = [r.list_names() for r in registries[2:]] + [list(r) for r in registries[:2]]
heavy = [m for m in ("torch", "numpy", "jaxtyping") if m in sys.modules]
from genodiff.scoring.methods import SCORE_METHODS  # of these, numpy is loaded
light.append(SCORE_METHODS.list_names())
heavy += [m for m in ("torch", "scipy", "polars") if m in sys.modules]
full = [list(r) for r in [*registries[2:], *registries[:2], SCORE_METHODS]]
print(json.dumps([light, full, heavy]))
"""


def test_names_are_known_before_torch_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120
    )
    light, full, heavy = json.loads(done.stdout)
    assert heavy == []
    assert [sorted(names) for names in light] == [sorted(names) for names in full]
    assert all(full)
