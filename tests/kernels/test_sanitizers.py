"""The C kernels under the sanitizers of addresses, of undefined behaviour and of threads: every
copy, every awkward shape.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import FLAGS, MARCH, SOURCES

from genodiff.kernels.library import instruction_set

ROOT = Path(__file__).parents[2]
START = """
import sys
if sys.argv[4] == "thread":  # polars, which nothing here calls, ends a process under this sanitizer
    from unittest.mock import MagicMock
    sys.modules["polars"] = MagicMock()
import torch
from genodiff.kernels import library
library.__file__ = sys.argv[1] + "/library.py"
if sys.argv[4] == "thread":  # it does not follow the threads of an OpenMP that it has not compiled
    library._find_openmp = lambda: None
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/.."]
from scans import Problem
from test_mixer import problem, run
import test_block_mixer as blocks
from recalls import draw_shapes, recall_shapes
from genodiff.kernels.norm import rms_norm
assert library.instruction_set() == sys.argv[3], library.find_missing()
"""
SHAPES = """
draw_shapes()
for threads, lengths in ((1, (1, 63, 130)), (3, (2, 65))):
    torch.set_num_threads(threads)
    for length in lengths:
        for channels in (1, 7, 15, 16, 17, 40):
            for states, batch in ((1, 1), (5, 2), (16, 9), (24, 3)):
                p = Problem(batch, length, channels, states, h0=True, z=True, reverse=states == 5)
                p.solve("native", torch.float32)
            for taps, rank in ((1, 1), (4, 8), (9, 19)):
                odd = {"padding": taps - 1, "in_bias": taps == 4}
                run(problem(2, length, channels, 16, taps=taps, rank=rank, **odd), torch.float32)
            x = torch.randn(length, channels, requires_grad=True)
            rms_norm(x, torch.ones(channels), 1e-5).sum().backward()
recall_shapes()
for shape in blocks.SHAPES:
    blocks.gradients(*blocks.problem(*shape, 2), shape[1], None, "native")
for taps in (3, 4):
    run(problem(1, 300, 17, 16, taps=taps, rank=8), torch.float32)
print("clean")
"""
RACES = """
torch.set_num_threads(3)
recall_shapes()
for batch, length, channels in ((3, 65, 17), (1, 300, 236), (3, 1500, 40)):
    Problem(batch, length, channels, 16, h0=True, z=True).solve("native", torch.float32)
    run(problem(batch, length, channels, 16, rank=8, in_bias=True), torch.float32)
    for shape in blocks.SHAPES[-3:]:
        blocks.gradients(*blocks.problem(*shape, batch), shape[1], None, "native")
    x = torch.randn(4 * length, channels, requires_grad=True)
    rms_norm(x, torch.ones(channels), 1e-5).sum().backward()
print("clean")
"""


def outcome(
    name: str, folder: Path, sanitizers: list[str], code: str
) -> subprocess.CompletedProcess[str]:
    """Run `code` on the copy `name` under sanitizers."""
    gcc, ours = shutil.which("gcc"), instruction_set()
    if gcc is None or ours not in MARCH or list(MARCH).index(ours) < list(MARCH).index(name):
        pytest.skip("needs gcc and a processor that runs this copy")
    flags = [*FLAGS, "-shared", "-fPIC", "-O1", "-g", f"-fsanitize={','.join(sanitizers)}",
             "-fno-sanitize-recover=all"]  # fmt: skip
    for copy in {"base", name}:
        out = folder / f"_native_{copy}.so"
        subprocess.run(
            [gcc, *flags, *MARCH[copy], str(SOURCES / "native.c"), "-o", str(out), "-lm"],
            check=True,
        )
    libraries = {"address": "libasan", "undefined": "libubsan", "thread": "libtsan"}
    asked = ([gcc, f"-print-file-name={libraries[name]}.so"] for name in sanitizers)
    preload = [
        subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
        for ask in asked
    ]
    env = os.environ | {
        "LD_PRELOAD": ":".join(preload), "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1", "PYTHONPATH": str(ROOT),
        "GENODIFF_SCAN": "native",
    }  # fmt: skip
    given = [str(folder), str(Path(__file__).parent), name, sanitizers[0]]
    command = [sys.executable, "-c", START + code, *given]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("base", instruction_set()) else pytest.mark.long)
        for name in MARCH
    ],
)
def test_nothing_is_read_or_written_out_of_bounds_and_nothing_is_undefined(name, tmp_path):
    done = outcome(name, tmp_path, ["address", "undefined"], SHAPES)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == "clean"


@pytest.mark.slow
def test_no_thread_touches_what_another_writes(tmp_path):
    """The same tasks on POSIX threads: those of an OpenMP the sanitizer does not follow."""
    done = outcome(instruction_set(), tmp_path, ["thread"], RACES)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this kernel places memory where the sanitizer cannot work")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == "clean"
