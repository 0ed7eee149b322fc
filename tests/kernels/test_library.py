"""The C library: a stale one, a broken one or none at all is refused with a reason, and the scan
goes on in torch.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from scans import needs_library

from genodiff.kernels import library
from genodiff.kernels.library import find_missing


class Other:
    """A library with another interface, as ctypes would give it."""

    def __init__(self, *lines: bytes) -> None:
        self.genodiff_interface = lambda i: (*lines, None)[i]


@needs_library
def test_another_version_or_other_structures_are_refused():
    own = library._library()[0]
    number, *kernels = library._read_interface(own)
    assert library._version(Other(number, *kernels)) == library.INTERFACE
    for lines in (
        [b"0", *kernels],
        [number, *kernels[1:]],
        [number, kernels[0].replace(b"*u, *delta", b"*delta, *u"), *kernels[1:]],
        [number, kernels[0] + b" int64_t more;", *kernels[1:]],
    ):
        assert library._version(Other(*lines)) != library.INTERFACE
    assert library._version(object()) != library.INTERFACE


@needs_library
def test_a_field_that_a_kernel_does_not_have_is_an_error():
    with pytest.raises(AttributeError):
        library.call("segments", {"scores": None, "scales": None}, backward=False)


@needs_library
def test_a_stale_a_broken_and_a_missing_library_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    assert "was not built" in library._open("base")[1]
    name = tmp_path / "_native_base.so"
    shutil.copy(next(Path(torch.__file__).parent.glob("lib/libc10.*")), name)
    assert "is of another version" in library._open("base")[1]
    name.with_name(name.name.replace("base", "broken")).write_bytes(b"not a library")
    assert "cannot be loaded" in library._open("broken")[1]


def test_without_the_library_nothing_fits_and_the_reason_is_told(monkeypatch):
    monkeypatch.setattr(library, "_library", lambda: (None, "it was not built"))
    assert not library.fits(torch.zeros(1))
    assert find_missing() == "it was not built"
    assert library.instruction_set() == ""


STARVED = """
import resource
import torch
from genodiff.kernels.conv import causal_conv1d
x, w = torch.randn(1, 2, 2_000_000, requires_grad=True), torch.randn(2_000_000, 2)
y = causal_conv1d(x, w, None)
g = torch.ones_like(y)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 200_000_000, -1))
y.backward(g)
"""


@pytest.mark.slow
@needs_library
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limits")
def test_no_memory_for_scratch_space_is_an_error():
    env = os.environ | {"GENODIFF_SCAN": "native"}
    command = [sys.executable, "-c", STARVED]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert "MemoryError: no memory for the scratch space of the conv" in done.stderr
