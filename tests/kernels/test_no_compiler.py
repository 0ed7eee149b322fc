"""An install without a C compiler: it succeeds, the scan runs in torch, the tests of the kernels
pass, and the doctor says what is lost.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_an_install_without_a_compiler_succeeds_and_runs_in_torch(tmp_path):
    source, site = tmp_path / "source", tmp_path / "site"
    skip = shutil.ignore_patterns(
        "*.so", "build", "*.egg-info", ".git", ".venv", "__pycache__", ".*_cache"
    )
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("genodiff", "data_recipes"):
        shutil.copytree(ROOT / name, source / name, ignore=skip)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "GENODIFF_SCAN")}
    env |= {"CC": "/nonexistent", "OMP_NUM_THREADS": "1"}
    offline = ["-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    pip = [sys.executable, "-m", "pip", "install", *offline, str(source)]
    installed = subprocess.run(pip, env=env, capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr[-2000:]
    assert not list(site.rglob("_native_*")), "something was compiled after all"

    env |= {"PYTHONPATH": str(site)}
    here: Any = {"cwd": tmp_path, "env": env, "capture_output": True, "text": True}
    python = [sys.executable, "-P", "-m"]
    doctor = subprocess.run([*python, "genodiff", "doctor", "--json", "--offline"], **here)
    found = json.loads(doctor.stdout)
    assert found["scan"] == "torch", doctor.stdout
    (lost,) = (c for c in found["checks"] if c["name"] == "scan native")
    assert lost["status"] == "warn"
    assert "slower" in lost["detail"]
    assert "compiler" in lost["fix"]

    suite = tmp_path / "suite"  # away from the tree, whose package has the library
    shutil.copytree(ROOT / "tests", suite / "tests", ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", suite)
    tests = [
        str(suite / "tests/kernels" / f"test_{name}.py")
        for name in ("scan", "conv", "norm", "streaming", "library", "mixer")
    ]
    run = [*python, "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(run, **here)
    assert done.returncode == 0, done.stdout[-3000:]
