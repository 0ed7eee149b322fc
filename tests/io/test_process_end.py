"""How a process of genodiff ends: fast, with its code, and with all that was registered done."""

import subprocess
import sys
from pathlib import Path

import pytest


def run(code: str, **more: object) -> subprocess.CompletedProcess[str]:
    text = f"from genodiff.io.process import end_process\n{code}"
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, **more
    )


def test_what_was_registered_is_done_and_what_was_said_is_written_but_no_module_taken_down():
    code = """
import atexit, sys
class Late:
    def __del__(self): print("torn down")
keep = Late()
atexit.register(print, "registered")
sys.stdout.write("said ")
end_process(7)
print("came back")
"""
    done = run(code)
    assert (done.returncode, done.stdout) == (7, "said registered\n")


def test_a_thread_that_still_works_is_waited_for():
    code = """
import threading, time
threading.Thread(target=lambda: (time.sleep(0.3), print("work"))).start()
end_process(7)
raise SystemExit(3)
"""
    done = run(code)
    assert (done.returncode, done.stdout) == (3, "work\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_words_that_cannot_be_written_are_not_passed_over():
    with open("/dev/full", "w") as full:
        text = "from genodiff.io.process import end_process\nprint('x')\nend_process(0)"
        done = subprocess.run([sys.executable, "-c", text], stdout=full, timeout=60, check=False)
    assert done.returncode == 120  # the interpreter's own code for it


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_an_error_keeps_its_code_where_stderr_is_full():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "genodiff", "train", "--no-such-flag"]
        done = subprocess.run(command, stderr=full, timeout=60, check=False)
    assert done.returncode == 2


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "code"), [("--version", 0), ("train --no-such-flag", 2), ("config schema", 0)]
)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_code(words, code, closed):
    command = f"'{sys.executable}' -m genodiff {words} {closed}"
    done = subprocess.run(command, shell=True, timeout=60, check=False, capture_output=True)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
