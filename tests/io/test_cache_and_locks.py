"""Where the cache is, without a home too; locks with and without `flock`; one run per folder."""

import errno
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from genodiff.diagnosis.checks import check_cache
from genodiff.errors import MachineError, UsageError
from genodiff.io import file_lock, target
from genodiff.io.atomic import write_text
from genodiff.io.file_lock import HELD, FileLock, hold_file
from genodiff.io.target import cache_dir, can_be_written, lock_folder, place_library_caches
from genodiff.runs.folder import remove_unused_folder
from genodiff.runs.lock import FILE, check_lock_free, forget_locks, hold_lock


def lock(folder: Path) -> None:
    with lock_folder(folder, "tests"):
        pass


@pytest.fixture
def homeless(tmp_path, monkeypatch):
    """The folder for temporary files of a user whose home is below a file."""
    (tmp_path / "file").write_text("")
    for name in ("GENODIFF_CACHE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(target, "_told", set())
    return tmp_path


def test_without_a_home_the_cache_is_temporary_and_one_line_says_so(homeless, caplog):
    own = homeless / f"genodiff-{os.getuid()}"
    with caplog.at_level(logging.WARNING, "genodiff"):
        assert [cache_dir(), cache_dir()] == [own, own]
    assert len(caplog.records) == 1
    assert "GENODIFF_CACHE sets it" in caplog.text
    assert own.stat().st_mode & 0o777 == 0o700
    assert check_cache().status == "ok"


def test_a_chosen_cache_that_cannot_be_written_is_told_by_its_variable(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "file" / "cache"))
    for work in (lambda: write_text(cache_dir() / "x", ""), lambda: lock(cache_dir() / "x")):
        with pytest.raises(MachineError, match="set GENODIFF_CACHE to a folder"):
            work()
    with pytest.raises(MachineError, match="choose a path that you may write to"):
        write_text(tmp_path / "file" / "x", "")


def test_a_temporary_cache_that_is_not_ones_own_is_refused(homeless):
    (homeless / "elsewhere").mkdir()
    (homeless / f"genodiff-{os.getuid()}").symlink_to(homeless / "elsewhere")
    with pytest.raises(MachineError, match=r"is not yours.*set GENODIFF_CACHE"):
        cache_dir()
    assert check_cache().status == "fail"


def test_matplotlib_gets_a_folder_where_it_has_none(homeless, monkeypatch):
    monkeypatch.setenv("MPLCONFIGDIR", "")  # so that it is put back in the end
    del os.environ["MPLCONFIGDIR"]
    place_library_caches()
    assert os.environ["MPLCONFIGDIR"] == str(homeless / f"genodiff-{os.getuid()}" / "matplotlib")
    monkeypatch.setenv("GENODIFF_CACHE", str(homeless / "mine"))
    del os.environ["MPLCONFIGDIR"]
    place_library_caches()
    assert os.environ["MPLCONFIGDIR"] == str(homeless / "mine" / "matplotlib")


def test_a_home_that_nobody_knows_is_no_folder_of_the_working_directory(homeless):
    assert not can_be_written(Path("~") / ".cache")
    assert can_be_written(homeless / "new" / "folder")


NOBODY = {"pid": 4242, "host": "another-node", "started": "2026-01-01T00:00:00+00:00"}


@pytest.fixture
def no_flock(monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.usefixtures("no_flock")
def test_without_flock_one_holds_the_lock_and_the_next_gets_it(tmp_path):
    first, second = FileLock(tmp_path / "a.lock"), FileLock(tmp_path / "a.lock")
    assert first.take()
    assert second.is_taken()
    assert not second.take()
    assert (second.holder()["pid"], second.holder()["host"]) == (os.getpid(), socket.gethostname())
    first.release()
    assert not (tmp_path / f"a.lock{HELD}").exists()
    assert second.take()
    second.release()


@pytest.mark.usefixtures("no_flock")
@pytest.mark.parametrize("left", ["", "4242\nanother-node\n"])
def test_a_lock_file_that_was_left_behind_is_nobodys_lock(tmp_path, left):
    (tmp_path / "a.lock").write_text(left)
    assert FileLock(tmp_path / "a.lock").take()


@pytest.mark.usefixtures("no_flock")
def test_the_lock_of_a_process_that_ended_is_broken_at_once_with_a_line(tmp_path, caplog):
    path = tmp_path / "a.lock"
    if (child := os.fork()) == 0:
        FileLock(path).take()
        os._exit(0)
    os.waitpid(child, 0)
    pid = json.loads((tmp_path / f"a.lock{HELD}").read_text())["pid"]
    with caplog.at_level(logging.WARNING, "genodiff"):
        lock = FileLock(path)
        assert lock.take()
    assert f"(pid {pid} on {socket.gethostname()}) has ended" in caplog.text
    assert len(caplog.records) == 1
    lock.release()
    assert os.listdir(tmp_path) == ["a.lock"]


@pytest.mark.usefixtures("no_flock")
def test_the_lock_of_another_node_holds_until_a_minute_without_a_touch(tmp_path, caplog):
    held = tmp_path / f"a.lock{HELD}"
    held.write_text(json.dumps(NOBODY))
    os.utime(held, (time.time() - 30,) * 2)
    assert not FileLock(tmp_path / "a.lock").take()
    os.utime(held, (time.time() - 90,) * 2)
    with caplog.at_level(logging.WARNING, "genodiff"):
        assert FileLock(tmp_path / "a.lock").take()
    assert "(pid 4242 on another-node) has not been heard of for 9" in caplog.text
    assert json.loads(held.read_text())["pid"] == os.getpid()


@pytest.mark.usefixtures("no_flock")
def test_a_holder_touches_its_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(file_lock, "_BEAT", 0.01)
    held, lock = tmp_path / f"a.lock{HELD}", FileLock(tmp_path / "a.lock")
    assert lock.take()
    os.utime(held, (0, 0))
    until = time.monotonic() + 10
    while held.stat().st_mtime == 0 and time.monotonic() < until:
        time.sleep(0.01)
    assert held.stat().st_mtime > 0
    lock.release()


@pytest.mark.usefixtures("no_flock")
def test_a_lock_that_was_taken_over_is_not_removed_by_its_first_holder(tmp_path):
    held, lock = tmp_path / f"a.lock{HELD}", FileLock(tmp_path / "a.lock")
    assert lock.take()
    held.write_text(json.dumps(NOBODY))
    lock.release()
    assert json.loads(held.read_text()) == NOBODY


def test_a_lock_of_a_node_without_flock_is_respected_where_flock_works(tmp_path):
    (tmp_path / f"a.lock{HELD}").write_text(json.dumps(NOBODY))
    assert not FileLock(tmp_path / "a.lock").take()


@pytest.mark.parametrize("kind", ["flock", "no flock"])
def test_threads_with_one_lock_work_one_at_a_time(tmp_path, kind, request):
    if kind == "no flock":
        request.getfixturevalue("no_flock")
    (tmp_path / "count").write_text("0")

    def add(_: int) -> None:
        for _ in range(5):
            with hold_file(tmp_path / "a.lock"):
                number = int((tmp_path / "count").read_text())
                time.sleep(0.001)
                (tmp_path / "count").write_text(str(number + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert (tmp_path / "count").read_text() == "20"


def test_a_lock_whose_file_was_removed_is_taken_on_the_new_one(tmp_path):
    first, second, third = (FileLock(tmp_path / "a.lock") for _ in range(3))
    assert first.take()
    assert not second.take()
    first.path.unlink()
    first.release()
    assert second.take()
    assert not third.take()


@pytest.mark.usefixtures("no_flock")
def test_a_run_is_locked_without_flock_too(tmp_path):
    with hold_lock(tmp_path):
        with pytest.raises(UsageError, match=f"another run is writing here: pid {os.getpid()} on"):
            check_lock_free(tmp_path)
        remove_unused_folder(tmp_path)
        assert not tmp_path.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_what_is_there_in_a_cache_that_cannot_be_written_is_used(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    (tmp_path / "there").mkdir()
    monkeypatch.setattr(os, "open", refuse)
    with lock_folder(tmp_path / "there", "builds the same store"):
        pass
    with pytest.raises(Exception, match="cannot be written: Read-only"):
        lock_folder(tmp_path / "missing", "builds the same store").__enter__()


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
