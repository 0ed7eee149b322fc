"""`genodiff watch`: how runs stand, read while they write."""

import json
import os
import socket
from pathlib import Path

import pytest

import genodiff
from genodiff.errors import UsageError
from genodiff.runs.metrics import COLUMNS
from genodiff.runs.progress_reader import ProgressReader
from tests.commands import exit_code


def row(step: int, bits: float, valid: str = "") -> str:
    cells = dict.fromkeys(COLUMNS, "") | {
        "step": step, "tokens": 100 * step, "seconds": 2.0 * step, "loss_bits": bits,
        "valid_bits": valid,
    }  # fmt: skip
    return ",".join(str(cells[name]) for name in COLUMNS) + "\n"


def write_run(run: Path, steps: int = 8, pid: int | None = None, host: str | None = None) -> Path:
    run.mkdir(exist_ok=True)
    rows = [row(n, 2 - n / 10, "1.5" if n % 4 == 0 else "") for n in range(1, steps + 1)]
    (run / "metrics.csv").write_text(",".join(COLUMNS) + "\n" + "".join(rows))
    (run / "plan.json").write_text(json.dumps({"decisions": [{"step": 0, "horizon": 10}]}))
    about = {"pid": pid or 2**22 + 1, "host": host or socket.gethostname(), "started": "now"}
    (run / ".lock").write_text(json.dumps(about))
    return run


def test_a_run_in_training_is_told_with_its_pace_and_the_time_to_go(tmp_path):
    found = ProgressReader(write_run(tmp_path / "run", pid=os.getpid())).read()
    assert found.steps == list(range(1, 9))
    assert found.valid == [(4, 1.5), (8, 1.5)]
    said = found.describe()
    assert (
        "step 8/10 · loss 1.5500 bits · validation 1.5000 at step 8 · 50 tok/s · 4 s to go" in said
    )
    assert said.endswith(f"training, pid {os.getpid()}")


@pytest.mark.parametrize(("steps", "state"), [(8, "stopped"), (10, "finished"), (0, "stopped")])
def test_a_run_whose_process_is_gone_is_stopped_or_finished(tmp_path, steps, state):
    assert ProgressReader(write_run(tmp_path / "run", steps)).read().state == state


def test_a_process_on_another_machine_counts_while_rows_come(tmp_path):
    run = write_run(tmp_path / "run", pid=1, host="elsewhere")
    assert ProgressReader(run).read().state == "training, pid 1 on elsewhere"
    os.utime(run / "metrics.csv", (1, 1))
    assert ProgressReader(run).read().state == "stopped"


def test_only_new_whole_rows_are_taken_and_a_run_that_went_back_is_read_anew(tmp_path):
    reader = ProgressReader(write_run(tmp_path / "run", 3))
    assert reader.read().steps == [1, 2, 3]
    with (tmp_path / "run" / "metrics.csv").open("a") as file:
        file.write(row(4, 1.0) + row(5, 1.0)[:9])
    assert reader.read().steps == [1, 2, 3, 4]
    with (tmp_path / "run" / "metrics.csv").open("a") as file:
        file.write(row(5, 1.0)[9:])
    assert reader.read().steps == [1, 2, 3, 4, 5]
    write_run(tmp_path / "run", 2)
    assert reader.read().steps == [1, 2]


def test_damaged_files_are_no_end(tmp_path):
    run = write_run(tmp_path / "run", 2)
    (run / "plan.json").write_text("{")
    (run / ".lock").write_text("")
    with (run / "metrics.csv").open("a") as file:
        file.write("7,x,y\n\x00\n" + row(3, float("nan")))
    found = ProgressReader(run).read()
    assert found.steps == [1, 2, 3]
    assert found.horizon is None
    assert "loss 1.8500" in found.describe()


def test_python_gets_the_figures_and_is_told_of_a_wrong_folder(tmp_path):
    (found,) = list(genodiff.watch(write_run(tmp_path / "run")))
    assert found[0].tokens[-1] == 800
    with pytest.raises(UsageError, match="is no run folder"):
        next(genodiff.watch(tmp_path))
    with pytest.raises(UsageError, match="no run to watch"):
        next(genodiff.watch())
    with pytest.raises(UsageError, match="not above 0"):
        next(genodiff.watch(tmp_path / "run", interval=0))


def test_the_verb_looks_once_where_stdout_is_no_terminal(tmp_path, capsys):
    run = write_run(tmp_path / "run", pid=os.getpid())
    assert exit_code("watch", run, write_run(tmp_path / "other", 10)) == 0
    said = capsys.readouterr().out
    # Where a line is broken depends on how long the folder's name is.
    assert "step 8/10" in " ".join(said.split())
    assert "finished" in said
    assert exit_code("watch", run, "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["steps"][-1], told["horizon"]) == (8, 10)
