"""The C kernels under the address and undefined-behaviour sanitizers: every copy, every awkward shape, one thread and three."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from genodiff.kernels.library import instruction_set

ROOT = Path(__file__).parents[2]
CODE = """
import sys
import torch
from genodiff.kernels import library
library.__file__ = sys.argv[1] + "/library.py"
sys.path.insert(0, sys.argv[2])
from scans import Problem
from test_mixer import problem, run
from genodiff.kernels.norm import rms_norm
assert library.instruction_set() == sys.argv[3], library.why_not()
for threads in (1, 3):
    torch.set_num_threads(threads)
    for length in (1, 2, 63, 65, 130):
        for channels in (1, 7, 15, 16, 17, 40):
            for states, batch in ((1, 1), (5, 2), (16, 9), (24, 3)):
                Problem(batch, length, channels, states, h0=True, z=True, reverse=states == 5).solve("native", torch.float32)
            for taps, rank in ((1, 1), (4, 8), (9, 19)):
                run(problem(2, length, channels, 16, taps=taps, rank=rank, padding=taps - 1, in_bias=taps == 4), torch.float32)
            x = torch.randn(length, channels, requires_grad=True)
            rms_norm(x, torch.ones(channels), 1e-5).sum().backward()
    for taps in (3, 4):
        run(problem(1, 300, 17, 16, taps=taps, rank=8), torch.float32)
print("clean")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base", "avx2", "avx512"])
def test_nothing_is_read_or_written_out_of_bounds_and_nothing_is_undefined(name: str, tmp_path: Path) -> None:
    gcc = shutil.which("gcc")
    order = ["base", "avx2", "avx512"]
    if gcc is None or instruction_set() not in order or order.index(instruction_set()) < order.index(name):
        pytest.skip("needs gcc and a processor that runs this copy")
    march = {"base": [], "avx2": ["-march=x86-64-v3"], "avx512": ["-march=x86-64-v4"]}[name]
    source = ROOT / "genodiff/kernels/native/native.c"
    flags = "-shared -fPIC -std=gnu11 -O1 -g -fno-math-errno -fno-trapping-math -ffp-contract=fast -fopenmp -Wno-psabi".split()
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    for copy in {"base", name}:
        march_ = march if copy == name else []
        out = tmp_path / f"_native_{copy}{EXTENSION_SUFFIXES[0]}"
        subprocess.run([gcc, *flags, *sanitize, *march_, str(source), "-o", str(out), "-lm"], check=True)
    asked = ([gcc, f"-print-file-name={name}.so"] for name in ("libasan", "libubsan"))
    preload = [subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() for ask in asked]
    env = os.environ | {
        "LD_PRELOAD": ":".join(preload), "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(ROOT), "GENODIFF_SCAN": "native",
    }  # fmt: skip
    command = [sys.executable, "-c", CODE, str(tmp_path), str(Path(__file__).parent), name]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == "clean"
