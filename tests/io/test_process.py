"""A process: its cores and threads; its end, with its code and all that was registered done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from genodiff.errors import UsageError
from genodiff.io.process import (
    THREAD_VARIABLES,
    count_default_threads,
    count_usable_cores,
    cut_environment,
)
from genodiff.jobs.machine import choose_device, prepare_machine


def test_the_cores_of_the_process_count_and_not_those_of_the_machine(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert count_usable_cores() == 2


def test_without_a_set_of_cores_all_of_the_machine_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert count_usable_cores() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert count_usable_cores() == 1


@pytest.mark.parametrize(("said", "threads"), [("1", 1), ("3,2", 3), ("", 2), ("0", 2), ("x", 2)])
def test_threads_are_what_openmp_is_told_else_one_a_core(said, threads, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert count_default_threads() == threads


def test_a_verb_computes_with_the_threads_that_openmp_is_told(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    prepare_machine()
    choose_device("cpu")
    assert torch.get_num_threads() == 1
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for wanted in (2, 99_999, 10**30):
        prepare_machine(threads=wanted)
        choose_device("cpu")
        assert torch.get_num_threads() == 2


@pytest.mark.parametrize("device", ["cuda:", "cuda:01", "cuda:\u0661", "cuda:x", "cpu:0", "auto:1"])
def test_a_device_that_torch_cannot_name_is_refused(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cuda:1") == "cuda:1"
    with pytest.raises(UsageError, match="no device"):
        choose_device(device)


@pytest.mark.parametrize("name", THREAD_VARIABLES)
def test_more_threads_than_cores_are_cut_with_a_line(name, monkeypatch, caplog):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv(name, "20000,4")
    cut_environment()
    cut_environment()
    assert os.environ[name] == "2"
    assert caplog.messages == [f"{name}=20000 is cut to the 2 cores of this machine"]
    for kept in ("2", "1"):
        monkeypatch.setenv(name, kept)
        cut_environment()
        assert os.environ[name] == kept
    for wrong in ("all", "-3", "", " "):  # of which libraries complain on screen
        monkeypatch.setenv(name, wrong)
        cut_environment()
        assert name not in os.environ
        said = f"{name}={wrong} is no number of threads: it is not used"
        assert (said in caplog.messages) == bool(wrong.strip())


@pytest.mark.slow
def test_no_number_of_threads_ends_the_process(tmp_path):
    code = "import sys; from genodiff.cli import main; main()"
    for names, more in (((), ["--threads", "99999"]), (THREAD_VARIABLES, [])):
        words = ["sample", "ecoli", "-n", "1", "--length", "20", "--steps", "2", "-o", "-", *more]
        env = os.environ | dict.fromkeys(names, "20000")
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=env, capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "of this machine" in done.stderr
        assert "libgomp" not in done.stderr


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


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("words", "code"), [("--version", 0), ("train --no-such-flag", 2), ("config schema", 0)]
)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_code(words, code, closed):
    command = f"'{sys.executable}' -m genodiff {words} {closed}"
    done = subprocess.run(command, shell=True, timeout=60, check=False, capture_output=True)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
