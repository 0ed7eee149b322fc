"""metrics.csv: one row per step, whatever happened between them."""

import csv
import os
from pathlib import Path

import pytest

from genodiff.errors import CheckpointError, MachineError
from genodiff.runs.metrics import COLUMNS, FILE, Metrics


def fill(run: Path, first: int, last: int) -> None:
    metrics = Metrics(run, first - 1)
    for step in range(first, last + 1):
        metrics.append(step=step, loss_hex=float(step).hex())
    metrics.sync()
    metrics.close()


def rows(run: Path) -> list[dict[str, str]]:
    with (run / FILE).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_row_without_room_is_one_error_and_closing_is_none(tmp_path):
    metrics = Metrics(tmp_path, 0)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, metrics._file.fileno())
    os.close(full)
    with pytest.raises(MachineError, match="cannot be written: No space left"):
        metrics.append(step=1)
    metrics.close()


def test_rows_beyond_the_step_that_a_run_goes_on_from_are_gone(tmp_path):
    fill(tmp_path, 1, 9)
    fill(tmp_path, 6, 7)
    found = rows(tmp_path)
    assert [int(r["step"]) for r in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [float.fromhex(r["loss_hex"]) for r in found] == [1, 2, 3, 4, 5, 6, 7]
    assert tuple(found[0]) == COLUMNS


def test_a_torn_last_row_is_gone(tmp_path):
    fill(tmp_path, 1, 5)
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-3])
    Metrics(tmp_path, 5).close()
    assert [r["step"] for r in rows(tmp_path)] == ["1", "2", "3", "4"]


def test_a_run_that_begins_anew_has_no_old_rows(tmp_path):
    fill(tmp_path, 1, 5)
    Metrics(tmp_path, 0).close()
    assert rows(tmp_path) == []


def test_a_file_of_other_columns_is_not_cut_up(tmp_path):
    (tmp_path / FILE).write_text("a,b\n1,2\n")
    with pytest.raises(CheckpointError, match="other columns"):
        Metrics(tmp_path, 3)
    assert (tmp_path / FILE).read_text() == "a,b\n1,2\n"
