"""One run per folder."""

import os
import socket
import subprocess
import sys
import time

import pytest

from genodiff.errors import UsageError
from genodiff.runs.lock import FILE, check_lock_free, forget_locks, hold_lock

HOLD = """
import sys, time, pathlib
from genodiff.runs.lock import hold_lock
with hold_lock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process  # type: ignore[misc]
    process.kill()
    process.communicate()


def test_a_second_run_is_refused_at_once_and_told_by_whom(tmp_path, holder):
    began = time.monotonic()
    for refuse in (check_lock_free, lambda run: hold_lock(run).__enter__()):
        with pytest.raises(
            UsageError, match=f"pid {holder.pid} on {socket.gethostname()}, started 20"
        ):
            refuse(tmp_path)
    assert time.monotonic() - began < 1


def test_the_lock_of_a_killed_run_is_free(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert (tmp_path / FILE).exists()
    check_lock_free(tmp_path)
    with hold_lock(tmp_path):
        pass


def test_a_run_may_follow_another_in_one_process(tmp_path):
    for _ in range(2):
        with hold_lock(tmp_path):
            assert str(os.getpid()) in (tmp_path / FILE).read_text()
    check_lock_free(tmp_path)


def test_looking_at_a_folder_without_a_lock_makes_none(tmp_path):
    check_lock_free(tmp_path)
    check_lock_free(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_workers_copy_does_not_keep_the_lock(tmp_path):
    ready, go = os.pipe(), os.pipe()
    with hold_lock(tmp_path):
        pid = os.fork()
        if not pid:
            forget_locks()
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            os._exit(0)
        os.read(ready[0], 1)
    check_lock_free(tmp_path)
    os.write(go[1], b"x")
    os.waitpid(pid, 0)


def test_importing_the_lock_does_not_import_torch():
    code = (
        "import sys, genodiff.runs.lock\nassert not {'torch', 'lightning', 'numpy'} & "
        "set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
