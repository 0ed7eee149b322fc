"""Where the cache is: also for a user whose home cannot be written."""

import logging
import os
import tempfile
from pathlib import Path

import pytest

from genodiff.diagnosis.checks import check_cache
from genodiff.errors import MachineError
from genodiff.io import cache
from genodiff.io.atomic import write_text
from genodiff.io.cache import cache_dir, can_be_written, lock_folder, place_library_caches


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
    monkeypatch.setattr(cache, "_told", set())
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
