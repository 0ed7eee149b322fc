"""The cache: what lies there is counted by kind, and goes by kind and age; nothing else goes."""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from genodiff import clean_cache, list_cache
from genodiff.diagnosis.checks import check_cache
from genodiff.errors import UsageError
from genodiff.io.file_lock import HELD, FileLock
from tests.commands import command, exit_code

KEY, OTHER = "0123456789abcdef" * 2, "fedcba9876543210" * 2
DAY = 86_400


def write(path: Path, size: int, days: float = 0) -> Path:
    """A file of `size` bytes that was last used `days` ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


def list_all(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A cache of 1,111 bytes: two stores, a download, an array."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GENODIFF_CACHE", str(folder))
    write(folder / "stores" / KEY / "genome.ids", 1000, 40)
    write(folder / "stores" / f"{KEY}.lock", 1, 40)
    write(folder / "stores" / OTHER / "tokens.ids", 100, 2)
    write(folder / "downloads" / KEY[:12] / "a.fa.gz", 7, 10)
    write(folder / "downloads" / KEY[:12] / "a.fa.gz.lock", 0, 10)
    write(folder / "lines-1" / f"{KEY}.npy", 3, 50)
    return folder


def test_each_kind_is_told_with_number_size_and_last_use(kept):
    found = list_cache()
    rows = {row["kind"]: (row["number"], row["bytes"]) for row in found["kinds"]}
    assert rows == {"stores": (2, 1101), "downloads": (1, 7), "lines": (1, 3)}
    assert (found["folder"], found["bytes"], found["foreign"]) == (str(kept), 1111, [])
    day = time.strftime("%Y-%m-%d", time.gmtime((kept / "stores" / OTHER / "tokens.ids").stat()[8]))
    assert found["kinds"][0]["last_used"][:10] == day
    assert "holds 0.0 MB" in check_cache().detail
    assert "genodiff cache" in check_cache().detail


def test_a_lock_that_was_taken_lately_is_a_use(kept):
    write(kept / "stores" / f"{KEY}.lock", 1, 1)
    assert clean_cache(older_than=30)["bytes"] == 3
    assert (kept / "stores" / KEY / "genome.ids").exists()


def test_what_is_old_goes_with_its_lock_and_a_plan_removes_nothing(kept):
    before = list_all(kept)
    planned = clean_cache(older_than=30, plan=True)
    assert list_all(kept) == before
    assert [(row["kind"], row["bytes"]) for row in planned["removed"]] == [
        ("stores", 1001), ("lines", 3),
    ]  # fmt: skip
    told = clean_cache(older_than=30)
    assert told == planned | {"plan": False}
    assert list_all(kept) == {
        "stores", f"stores/{OTHER}", f"stores/{OTHER}/tokens.ids", "downloads", "lines-1",
        f"downloads/{KEY[:12]}", f"downloads/{KEY[:12]}/a.fa.gz",
        f"downloads/{KEY[:12]}/a.fa.gz.lock",
    }  # fmt: skip


def test_kind_and_age_go_together(kept):
    assert clean_cache(kinds=["stores"], older_than=5)["bytes"] == 1001
    assert clean_cache(kinds=["downloads"], older_than=30)["bytes"] == 0
    assert clean_cache(kinds=["downloads"])["bytes"] == 7


def test_nothing_foreign_nothing_behind_a_link_and_nothing_outside_goes(kept, tmp_path):
    mine = tmp_path / "mine"
    write(mine / "genome.ids", 5, 90)
    write(kept / "thesis.txt", 1, 90)
    write(kept / "genomes" / "hg38.fa", 1, 90)
    write(kept / "tasks" / "monday" / "own" / "notes.txt", 1, 90)
    write(kept / "stores" / KEY / "also.bin", 1, 90)
    (kept / "memories").symlink_to(mine)
    (kept / "stores" / ("a" * 32)).symlink_to(mine)
    (kept / "stores" / KEY / "link").symlink_to(mine)
    write(kept / "tasks" / "gue" / "promoters" / "train.csv", 20)
    foreign = {
        "thesis.txt", "genomes/hg38.fa", "tasks/monday/own", "memories", f"stores/{'a' * 32}",
    }  # fmt: skip
    assert {str(Path(path).relative_to(kept)) for path in list_cache()["foreign"]} == foreign
    assert clean_cache(everything=True)["bytes"] == 1111 + 1 + 20
    folders = {"genomes", "stores", "tasks", "tasks/monday", "tasks/monday/own/notes.txt"}
    assert list_all(kept) == foreign | folders
    assert (mine / "genome.ids").stat().st_size == 5


def test_an_empty_cache_folder_goes_too_with_all(kept):
    assert clean_cache(everything=True)["bytes"] == 1111
    assert not kept.exists()
    assert list_cache()["bytes"] == clean_cache(everything=True)["bytes"] == 0


def test_what_another_process_makes_or_has_open_stays_with_a_line(kept, caplog):
    store, file = kept / "stores" / KEY, kept / "stores" / OTHER / "tokens.ids"
    locks = [FileLock(f"{store}.lock"), FileLock(kept / "downloads" / KEY[:12] / "a.fa.gz.lock")]
    assert all(lock.take() for lock in locks)
    try:
        with open(file, "rb"), caplog.at_level(logging.WARNING, "genodiff"):
            told = clean_cache(everything=True)
    finally:
        for lock in locks:
            lock.release()
    assert told["bytes"] == (3 if sys.platform == "linux" else 103)
    assert f"{store} stays: held by pid {os.getpid()} on " in caplog.text
    assert (store / "genome.ids").exists()
    assert (kept / "downloads" / KEY[:12] / "a.fa.gz").exists()
    if sys.platform == "linux":
        assert f"{file.parent} stays: pid {os.getpid()} has it open" in caplog.text
        assert file.exists()


def test_what_killed_processes_left_goes_and_what_is_written_now_stays(kept):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    write(kept / "stores" / f".genodiff-{dead.pid}-00ff.tmp" / "genome.ids", 9)
    write(kept / "stores" / f".genodiff-{os.getpid()}-00ff.tmp", 9)
    write(kept / "genomes" / f"{KEY}.lock{HELD}", 2)
    told = clean_cache(kinds=["leftovers", "locks"])
    assert [(row["kind"], row["bytes"]) for row in told["removed"]] == [("leftovers", 9)]
    assert [Path(row["path"]).name for row in told["kept"]] == [
        KEY, f".genodiff-{os.getpid()}-00ff.tmp",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words", ["", "--kind stors", "--older-than -1", "--older-than nan", "--all --kind stores"]
)
def test_clean_that_does_not_say_what_is_to_go_is_refused(kept, words):
    assert exit_code("cache", "clean", *words.split()) == 2
    assert list_cache()["bytes"] == 1111
    with pytest.raises(UsageError, match="did you mean 'stores'"):
        clean_cache(kinds=["stors"])


def test_the_verb_prints_kinds_and_says_the_bytes_without_numpy(kept):
    code = (
        "import sys\nfrom contextlib import suppress\nfrom genodiff.cli import main\n"
        "for words in (['cache'], ['cache', 'clean', '--all']):\n"
        "    with suppress(SystemExit): main(words)\n"
        "sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split()[:3] for line in done.stdout.splitlines()[:4]] == [
        ["stores", "2", "0.0"], ["downloads", "1", "0.0"], ["lines", "1", "0.0"],
        ["in", "all", "4"],
    ]  # fmt: skip
    assert "freed 1,111 bytes" in done.stderr
    assert not kept.exists()


def test_the_json_of_both_verbs_is_what_the_functions_return(kept, capsys):
    code, out, _ = command(capsys, "cache", "list", "--json")
    assert (code, json.loads(out)) == (0, list_cache())
    code, out, _ = command(capsys, *"cache clean --older-than 30 --plan --json".split())
    assert (code, json.loads(out)) == (0, clean_cache(older_than=30, plan=True))
