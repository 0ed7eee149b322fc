"""A command that is forked is the process that it stands for."""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from benchmarks.fork_server import ForkServer
from tests.commands import SERVER

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux alone")


@pytest.mark.few(1)
@pytest.mark.parametrize("words", ["sample --checkpoint nothing", "data check - --json"])
def test_a_fork_says_and_ends_as_a_process_of_its_own(words, tmp_path):
    asked = {"cwd": tmp_path, "input": ">a\nACGTN\r\n", "timeout": 120}
    forked, real = (s.run(words.split(), **asked) for s in (SERVER, ForkServer(forks=False)))
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        real.returncode, real.stdout, real.stderr,
    )  # fmt: skip


@LINUX
def test_a_signal_reaches_a_fork_and_the_next_command_does_not_hear_of_it(tmp_path):
    reader, writer = os.pipe()  # the command waits for its input
    with tempfile.TemporaryFile() as said:
        child = SERVER.start(["data", "check", "-"], reader, said, said, cwd=tmp_path)
        os.close(reader)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        child.send_signal(signal.SIGKILL)
        assert child.wait(60) == -signal.SIGKILL
    os.close(writer)
    assert SERVER.run(["--version"], cwd=tmp_path).returncode == 0


@LINUX
def test_what_is_read_at_import_takes_a_process_of_its_own():
    server = ForkServer()
    assert server.serves(os.environ | {"GENODIFF_CACHE": "elsewhere", "HOME": "/"})
    for name in ("OMP_NUM_THREADS", "PYTHONPATH", "POLARS_MAX_THREADS", "TRITON_INTERPRET"):
        assert not server.serves(os.environ | {name: "7"})
