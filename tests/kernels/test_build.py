"""The C library links no OpenMP and knows no Python. It runs on the threads that torch has loaded,
or on POSIX threads of its own, with the same bits.
"""

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from scans import needs_library
from test_mixer import problem, run

from genodiff.kernels import library
from genodiff.kernels.norm import rms_norm

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads the tables of ELF files")
pytestmark = needs_library
FILE = Path(library.__file__).with_name(f"_native_{library.instruction_set() or 'base'}.so")


@pytest.fixture
def own_threads(tmp_path, monkeypatch):
    """A second instance of the library, which is handed no OpenMP, takes the place of the first."""
    shutil.copy(FILE, tmp_path)
    monkeypatch.setenv("GENODIFF_SCAN", "native")
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    monkeypatch.setattr(library, "_find_openmp", lambda: None)
    opened, why = library._open(library.instruction_set())
    assert opened is not None, why
    name = library.instruction_set()
    monkeypatch.setattr(library, "_library", lambda: (opened, name))


@pytest.mark.usefixtures("own_threads")
def test_posix_threads_give_the_bits_of_openmp(threads, monkeypatch):
    inputs = problem(3, 1500, 40, 16, d_model=24, rank=2)
    found = []
    for n in threads:
        torch.set_num_threads(n)
        found.append(run(inputs, torch.float32))
    monkeypatch.undo()
    monkeypatch.setenv("GENODIFF_SCAN", "native")
    truth = run(inputs, torch.float32)
    for one in found:
        assert all(torch.equal(one[name], truth[name]) for name in truth)


@pytest.mark.usefixtures("own_threads")
def test_an_openmp_that_is_handed_over_runs_the_tasks(threads):
    work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    asked = []

    @ctypes.CFUNCTYPE(None, work, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    def team(run_tasks: Callable[[int], None], data: int, count: int, flags: int) -> None:
        asked.append((count, flags))
        for _ in range(count):
            run_tasks(data)

    opened, _ = library._library()
    opened.genodiff_use_openmp(team)  # type: ignore[union-attr]
    x, weight = torch.randn(3000, 16), torch.rand(16)
    truth = torch.nn.functional.rms_norm(x, (16,), weight, 1e-5)
    for n in threads:
        torch.set_num_threads(n)
        torch.testing.assert_close(rms_norm(x, weight, 1e-5), truth)
    assert asked == [(n, 0) for n in threads]


OPENMP = """
import torch
from genodiff.kernels import library
assert library.is_loaded()
found = library._find_openmp()
files = set()
for line in open("/proc/self/maps"):
    place, *_, name = line.split()
    start, end = (int(x, 16) for x in place.split("-"))
    if found and start <= found.value < end:
        print(name)
    if "omp" in name.rpartition("/")[2]:
        files.add(name)
print(*files)
"""


@pytest.mark.slow
@LINUX
def test_one_openmp_is_loaded_and_it_is_torchs():
    done = subprocess.run([sys.executable, "-c", OPENMP], capture_output=True, text=True)
    first, *files = done.stdout.split()
    assert files == [first], done.stderr


@LINUX
def test_the_library_needs_the_c_library_alone():
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    for path in FILE.parent.glob("_native_*.so"):
        done = subprocess.run(["readelf", "-dW", str(path)], capture_output=True, text=True)
        needed = {line.split("[")[1][:-1] for line in done.stdout.splitlines() if "NEEDED" in line}
        # The loader is part of the C library; a thread's own buffer asks it for its place.
        own = {name.split(".")[0] for name in needed if not name.startswith("ld-linux")}
        assert own <= {"libc", "libm", "libpthread"}, path.name
