"""The one writer: complete or absent, at every moment at which a machine may die."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from genodiff.errors import MachineError
from genodiff.io import atomic
from genodiff.io.file_lock import flock
from tests.commands import SERVER

WRITE = "from genodiff.io import atomic; atomic.write_bytes('out.bin', b'new' * 1_200_000)"


def python(code: str, where: Path) -> subprocess.CompletedProcess[str]:
    return SERVER.run_code(code, cwd=where, timeout=60)


def kill_everywhere(work: Callable[[], None], folder: Path) -> Iterator[int]:
    """The exit code of a fork that does `work` and dies at its 1st, 2nd, ... operation; 0 ends it.

    What it left in `folder` is cleared before the next.
    """
    for n in count(1):
        child = os.fork()
        if child == 0:
            atomic._operations, os.environ["GENODIFF_CRASH_AT"] = 0, str(n)
            with suppress(BaseException):
                work()
                os._exit(0)
            os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (-9, 0)
        yield code
        if code == 0:
            return
        atomic.clear_leftovers(folder)


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_what_is_written_is_read_back(tmp_path):
    atomic.write_bytes(tmp_path / "new" / "a.bin", bytes(range(256)))
    atomic.write_text(tmp_path / "b.txt", "Größe\n")
    atomic.write_json(tmp_path / "c.json", {"x": [1, 2.5, None], "é": "ü"})
    assert (tmp_path / "new" / "a.bin").read_bytes() == bytes(range(256))
    assert (tmp_path / "b.txt").read_bytes() == "Größe\n".encode()
    assert json.loads((tmp_path / "c.json").read_text()) == {"x": [1, 2.5, None], "é": "ü"}
    assert names(tmp_path) == ["b.txt", "c.json", "new", "new/a.bin"]


def test_json_refuses_nan_and_leaves_the_old_file(tmp_path):
    atomic.write_json(tmp_path / "a.json", 1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        atomic.write_json(tmp_path / "a.json", float("nan"))
    assert (tmp_path / "a.json").read_text() == "1\n"


def fill_the_disk() -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        full.write(b"x")


@pytest.mark.parametrize(
    ("work", "fault", "said"),
    [
        (lambda file: file.write("new" * 1_000_000) / 0, ZeroDivisionError, "division"),
        (lambda file: file.write(b"no text"), TypeError, "must be str"),
        (lambda file: Path("gone").read_bytes(), FileNotFoundError, "gone"),  # not ours to name
    ],
)
def test_a_fault_inside_a_block_leaves_the_old_file_and_nothing_else(tmp_path, work, fault, said):
    (tmp_path / "a").write_text("old")
    with pytest.raises(fault, match=said), atomic.open_atomic(tmp_path / "a", "w") as file:
        work(file)
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("work", "fault", "said"),
    [
        (fill_the_disk, MachineError, "cannot be written: No space left"),
        (lambda: Path("gone").read_bytes(), FileNotFoundError, "gone"),
    ],
)
def test_a_fault_inside_a_folder_leaves_nothing(tmp_path, work, fault, said):
    with pytest.raises(fault, match=said), atomic.atomic_directory(tmp_path / "run"):
        work()
    assert names(tmp_path) == []


def test_the_first_fault_is_the_one_that_is_told():
    with pytest.raises(ZeroDivisionError), atomic.open_atomic("/dev/full") as file:
        file.write(b"x") / 0  # buffered; the device will refuse it


def test_killed_at_every_operation_a_file_is_the_old_one_or_the_new_one(tmp_path):
    path, old, new = tmp_path / "out.bin", b"old", b"new" * 1_200_000
    path.write_bytes(old)
    seen = []
    for code in kill_everywhere(lambda: atomic.write_bytes(path, new), tmp_path):
        assert path.read_bytes() in (old, new), f"torn file after a kill at {len(seen) + 1}"
        seen.append((path.read_bytes() == new, code))
        path.write_bytes(old)
    # create, four chunks, fsync and rename leave the old file; killed before the folder's fsync it
    # is the new one.
    assert seen == [(False, -9)] * 7 + [(True, -9), (True, 0)]
    assert names(tmp_path) == ["out.bin"]


@pytest.mark.slow
def test_killed_at_every_operation_a_folder_is_complete_or_absent(tmp_path):
    def fill() -> None:
        with atomic.atomic_directory(tmp_path / "run") as folder:
            (folder / "inner").mkdir()
            atomic.write_text(folder / "inner" / "a.txt", "a" * 100)
            (folder / "b.bin").write_bytes(b"b" * 100)

    seen = []
    for code in kill_everywhere(fill, tmp_path):
        seen.append(((tmp_path / "run").exists(), code))
        if seen[-1][0]:
            assert names(tmp_path / "run") == ["b.bin", "inner", "inner/a.txt"]
            assert (tmp_path / "run/inner/a.txt").read_text() == "a" * 100
            shutil.rmtree(tmp_path / "run")
    n = len(seen)
    assert n > 10
    assert seen == [(False, -9)] * (n - 2) + [(True, -9), (True, 0)]
    assert names(tmp_path) == []


def test_leftovers_of_the_living_stay(tmp_path):
    with atomic.open_atomic(tmp_path / "a") as file, atomic.atomic_directory(tmp_path / "b"):
        file.write(b"x")
        other = python(
            "from genodiff.io import atomic; print(atomic.clear_leftovers('.'))", tmp_path
        )
        assert other.stdout == "[]\n"
        assert len(names(tmp_path)) == 2
    assert names(tmp_path) == ["a", "b"]


def test_a_leftover_that_is_locked_is_of_the_living_whatever_its_number(tmp_path):
    path = tmp_path / f"{atomic._PREFIX}999999999-x{atomic._SUFFIX}"  # of another container
    with open(path, "w") as file:
        assert flock(file.fileno())
        assert atomic.clear_leftovers(tmp_path) == []
    assert atomic.clear_leftovers(tmp_path) == [path]


def test_a_full_device_is_one_error_that_names_it():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with pytest.raises(
        MachineError, match=r"/dev/full: cannot be written: No space left.*free some disk space"
    ):
        atomic.write_bytes("/dev/full", b"x" * 10)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_file_that_outgrows_the_limit_leaves_the_old_one(tmp_path):
    (tmp_path / "out.bin").write_bytes(b"old")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000));"
    done = python(limit + WRITE, tmp_path)
    assert "MachineError: out.bin: cannot be written: File too large" in done.stderr
    assert "Exception ignored" not in done.stderr
    assert (tmp_path / "out.bin").read_bytes() == b"old"
    assert names(tmp_path) == ["out.bin"]


def test_a_text_that_hits_the_limit_while_closing_is_reported_once(tmp_path):
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); from "
        "genodiff.io import atomic\nwith atomic.open_atomic('a', 'w') as f: f.write('x' * 100)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "Exception ignored" not in done.stderr
    assert done.stderr.count("genodiff.errors.MachineError: a: cannot be written") == 1
    assert names(tmp_path) == []


def test_devices_and_pipes_are_written_to_and_never_replaced(tmp_path):
    atomic.write_bytes("/dev/null", b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE)
    atomic.write_bytes(tmp_path / "pipe", b"through")
    assert reader.communicate(timeout=20)[0] == b"through"
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    shown = python(
        "from genodiff.io import atomic; atomic.write_text('/dev/stdout', 'out')", tmp_path
    )
    assert shown.stdout == "out"


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    atomic.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_the_permissions_of_a_file_that_is_replaced_stay(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o640)
    atomic.write_text(tmp_path / "a", "new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_name_of_255_bytes_can_be_written(tmp_path):
    atomic.write_text(tmp_path / ("n" * 255), "x")
    assert names(tmp_path) == ["n" * 255]


def test_what_cannot_be_a_file_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(MachineError, match="is a directory"):
        atomic.write_text(tmp_path, "x")
    with pytest.raises(MachineError, match="cannot be written: Not a directory"):
        atomic.write_text(tmp_path / "file" / "below", "x")
    with pytest.raises(MachineError, match="cannot be written: File name too long"):
        atomic.write_text(tmp_path / ("n" * 256), "x")


def test_a_folder_that_exists_is_kept(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "old").write_text("old")
    with (
        pytest.raises(MachineError, match="already exists"),
        atomic.atomic_directory(tmp_path / "run") as folder,
    ):
        (folder / "new").write_text("new")
    with atomic.atomic_directory(tmp_path / "run", exist_ok=True) as folder:
        (folder / "new").write_text("new")
    assert names(tmp_path) == ["run", "run/old"]


def test_the_bytes_are_on_the_disk_before_they_have_their_name(tmp_path, monkeypatch):
    done: list[str] = []
    real_sync, real_replace, real_rename = os.fsync, os.replace, os.rename

    def sync(descriptor: int) -> None:
        done.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        real_sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("name"), real_replace(*names)))
    monkeypatch.setattr(os, "rename", lambda *names: (done.append("name"), real_rename(*names)))
    atomic.write_text(tmp_path / "a", "x")
    assert done == ["sync file", "name", "sync folder"]
    done.clear()
    with atomic.atomic_directory(tmp_path / "run") as folder:
        (folder / "b").write_text("x")
    assert done == ["sync file", "sync folder", "name", "sync folder"]


def test_a_replaced_folder_goes_when_the_new_one_is_there(tmp_path):
    out = tmp_path / "o"
    for number in (1, 2):
        with atomic.atomic_directory(out, replace=True) as folder:
            (folder / f"{number}").touch()
            assert out.exists() == (number == 2)
    assert [one.name for one in out.iterdir()] == ["2"]
    with pytest.raises(ZeroDivisionError), atomic.atomic_directory(out, replace=True):
        raise ZeroDivisionError
    assert [one.name for one in tmp_path.iterdir()] == ["o"]
    assert [one.name for one in out.iterdir()] == ["2"]
