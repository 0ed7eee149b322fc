"""A memory on disk: whole or absent, the same when opened again, refused where it is another."""

import json

import numpy as np
import pytest
from made_up_text import draw_bases, hide

from genodiff.errors import DataError, MachineError
from genodiff.io import atomic
from genodiff.memory.memory import FILES, MANIFEST, Memory, fingerprint_memory, open_memory
from genodiff.memory.memory import write_memory as write

GENOME = draw_bases(3000, 1)
FROM = {"content": "abc"}


@pytest.fixture(scope="module")
def memory():
    return Memory.build([("one", 5, GENOME[:2000]), ("two", 0, GENOME[2000:])], k=5)


@pytest.fixture
def folder(memory, tmp_path):
    write(tmp_path / "memory", memory, FROM)
    return tmp_path / "memory"


def test_what_is_opened_is_what_was_written(memory, folder):
    found = open_memory(folder, made_from=FROM, verify=True)
    assert found.text.sources == memory.text.sources
    windows = np.stack([hide(GENOME[a : a + 150], 0.5, a) for a in (0, 1900, 2500)])
    there, again = memory.recall(windows), found.recall(windows)
    assert there.background.min() < 0.1
    assert np.array_equal(there.background, again.background)
    assert np.array_equal(there.copy, again.copy)
    slow = found.recall_slowly(windows)
    np.testing.assert_allclose(slow.copy, there.copy, atol=1e-9)


def test_the_fingerprint_is_of_the_content(memory, folder, tmp_path):
    first = fingerprint_memory(folder)
    assert write(tmp_path / "again", memory, FROM) == first
    assert write(tmp_path / "other", memory, {"content": "abd"}) != first
    other = Memory.build([("one", 5, GENOME[:2001]), ("two", 0, GENOME[2000:])], k=5)
    assert write(tmp_path / "longer", other, FROM) != first


def test_another_memory_is_refused(folder):
    with pytest.raises(DataError, match="memory of other data"):
        open_memory(folder, made_from={"content": "abd"})
    with pytest.raises(DataError, match="is another memory"):
        open_memory(folder, fingerprint="0" * 64)


@pytest.mark.parametrize("name", [*(f"{n}.npy" for n in sorted(FILES[0])), MANIFEST])
def test_a_part_that_is_missing_or_cut_is_refused(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="is not a whole memory"):
        open_memory(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match="is not a whole memory"):
        open_memory(folder)


def test_a_byte_that_changed_is_found(folder):
    path = folder / "planes.npy"
    content = bytearray(path.read_bytes())
    content[-600] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="sha256"):
        open_memory(folder, verify=True)


def test_a_manifest_that_does_not_fit_its_arrays_is_refused(folder):
    told = json.loads((folder / MANIFEST).read_text())
    for change in ({"k": 6}, {"size": 17}, {"stretches": [["one", 0]]}):
        (folder / MANIFEST).write_text(json.dumps({**told, **change}))
        with pytest.raises(DataError, match="is not a whole memory"):
            open_memory(folder)


def test_nothing_is_left_where_writing_fails(memory, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise MachineError("cannot be written")

    monkeypatch.setattr(atomic, "write_json", fail)
    with pytest.raises(MachineError):
        write(tmp_path / "memory", memory, FROM)
    assert not list(tmp_path.iterdir())
