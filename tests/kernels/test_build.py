"""A compiler without OpenMP, such as Apple's: the C library is built all the same, on POSIX
threads, and gives the same bits.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_mixer import problem, run

from genodiff.kernels import library

ROOT = Path(__file__).parents[2]
COMPILER = """#!/bin/sh
for word; do
    case $word in -fopenmp) echo "cc: error: unsupported option '-fopenmp'" >&2; exit 1;; esac
done
exec {} "$@"
"""


@pytest.fixture
def without_openmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Another copy of the library, for the instruction set in use, takes its place."""
    ours, gcc = library.instruction_set(), shutil.which("gcc")
    if not ours or gcc is None:
        pytest.skip("needs gcc and the C library")
    cc = tmp_path / "cc"
    cc.write_text(COMPILER.format(gcc))
    cc.chmod(0o755)
    build = [
        sys.executable,
        "setup.py",
        "-q",
        "build_ext",
        "--build-lib",
        str(tmp_path),
        "--build-temp",
        str(tmp_path / "temp"),
    ]
    done = subprocess.run(
        build, cwd=ROOT, env=os.environ | {"CC": str(cc)}, capture_output=True, text=True
    )
    assert "unsupported option" in done.stderr
    built = tmp_path / "genodiff/kernels"
    monkeypatch.setenv("GENODIFF_SCAN", "native")
    monkeypatch.setattr(library, "__file__", str(built / "library.py"))
    copies = {path.name.split(".")[0] for path in built.iterdir()}
    assert f"_native_{ours}" in copies
    for path in built.iterdir():
        assert b"GOMP_" not in path.read_bytes()
    return ours


@pytest.mark.slow
def test_posix_threads_give_the_bits_of_openmp(
    without_openmp: str, threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = problem(3, 1500, 40, 16, d_model=24, rank=2)
    truth = run(inputs, torch.float32)
    opened, why = library._open(without_openmp)
    assert opened is not None, why
    monkeypatch.setattr(library, "_library", lambda: (opened, without_openmp))
    for n in threads:
        torch.set_num_threads(n)
        found = run(inputs, torch.float32)
        assert all(torch.equal(found[name], truth[name]) for name in truth)
