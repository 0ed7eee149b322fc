"""The calls on a lent GPU (`benchmarks/gpu`): stages, deadlines, archives, and refusals."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

GPU = Path(__file__).resolve().parents[1] / "benchmarks" / "gpu"
STAGES = """
from stages import GpuCall, Stage
FAILS = "{python} -c 'import sys; print(1); sys.exit(3)'"
SLOW = "{python} -c 'import time; print(2, flush=True); time.sleep(60)'"
LAST = "{python} -c 'open(r\\"{results}/last.json\\", \\"w\\").write(\\"[4]\\")'"
WAIT = "for i in $(seq 200); do [ -e {results}/%s ] && exit; sleep .1; done; exit 1"
MEET = f"sh -c 'touch {{results}}/%s; {WAIT}'"
CALLS = {1: GpuCall("a try", 60, (
    Stage("fails", "", 20, FAILS),
    (Stage("one", "", 20, MEET % ("a", "b")), Stage("other", "", 20, MEET % ("b", "a"))),
    Stage("slow", "", 4, SLOW), Stage("last", "", 20, LAST),
))}
"""


def call(tmp_path: Path, *code: str) -> subprocess.CompletedProcess[str]:
    """A call with stages of our own."""
    names = {f"GENODIFF_GPU_{n}": str(tmp_path / n.lower()) for n in ("OUT", "WORK", "CARRIED")}
    text = "\n".join((f"import sys; sys.path.insert(0, {str(GPU)!r})", *code))
    return subprocess.run(
        [sys.executable, "-c", text + "\ncall.main()", "1"],
        capture_output=True, text=True, timeout=120, env=os.environ | names,
    )  # fmt: skip


def read_archive(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        files = {m.name: archive.extractfile(m) for m in archive.getmembers() if m.isfile()}
        return {name.split("/")[-1]: f.read().decode() for name, f in files.items() if f}


def test_a_stage_that_fails_or_hangs_is_recorded_and_the_rest_goes_on(tmp_path):
    done = call(tmp_path, STAGES, "import call; call.CALLS = CALLS")
    assert done.returncode == 1, done.stderr
    found = read_archive(tmp_path / "out" / "call-1.tar.gz")
    first, *rows = map(json.loads, found["steps.jsonl"].splitlines())
    assert first["call"] == 1
    # The two that stand together wait for each other.
    assert sorted((r["stage"], r["code"]) for r in rows if "why" not in r) == [
        ("fails", 3), ("last", 0), ("one", 0), ("other", 0),
    ]  # fmt: skip
    assert [r["stage"] for r in rows if r.get("why") == "out of time"] == ["slow"]
    assert found["last.json"] == "[4]"
    assert found["slow.log"] == "2\n"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["call-1.log", "call-1.tar.gz"]


def test_what_a_call_that_was_cut_off_has_found_is_folded(tmp_path):
    folder = tmp_path / "call-1"
    folder.mkdir()
    row = {"kind": "norm", "batch": 1, "length": 3, "channels": 5, "decay": 1.0, "reverse": False}
    row |= {"segments": None, "float32": {"y": 2e-7}, "bfloat16": {"y": 3e-3}}
    row |= {"float32 repeats": True, "bfloat16 repeats": True}
    lost = {"kind": "scan", "error": "out of time"}
    found = {
        "machine": {"device": "a GPU of tests", "copy_bytes_per_s": 4e12},
        "parity": {"rows": [row, lost]},
    }
    for name, value in found.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    steps = [{"commit": "abc", "call": 1}, {"stage": "step", "code": -15, "why": "out of time"}]
    (folder / "steps.jsonl").write_text("".join(json.dumps(s) + "\n" for s in steps))
    archive = tmp_path / "call-1.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, "call-1")
    command = [sys.executable, str(GPU / "fold.py"), str(archive), "--to", str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "## Measured: a GPU of tests" in text
    assert "copies 4.00 TB/s" in text
    assert "| norm | 1 | 3 | 5 | 1 | False |  | 2.0e-07 |" in text
    assert 'Failed: {"stage": "step", "code": -15, "why": "out of time"}' in text
    assert 'Failed: {"kind": "scan", "error": "out of time"}' in text
    assert "mamba-ssm" not in text


def test_every_stage_runs_a_script_that_is_there_and_a_call_ends_in_200_seconds():
    code = "import stages, json; print(json.dumps({n: c for n, c in stages.CALLS.items()}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=GPU, capture_output=True, text=True, check=True
    )
    calls: dict[str, Any] = json.loads(done.stdout)
    assert sorted(calls) == ["1", "2", "3", "4", "5"]
    for _, seconds, stages in calls.values():
        assert seconds <= 200
        together = [part if isinstance(part[0], list) else [part] for part in stages]
        # A stage that takes its whole time must not cost the last one its turn.
        assert sum(max(stage[2] for stage in part) for part in together[:-1]) < seconds
        for name, about, most, command, *_ in (stage for part in together for stage in part):
            assert name
            assert about
            assert most > 0
            scripts = [w for w in command.split() if w.startswith("{here}/")]
            assert all((GPU / w.removeprefix("{here}/")).is_file() for w in scripts), command


@pytest.mark.parametrize(
    "script", ["parity", "scan", "step", "timeline", "machine", "peers", "resume"]
)
@pytest.mark.slow
def test_without_a_gpu_nothing_is_measured(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(GPU / f"{script}.py"), "--out", str(tmp_path / "x.json")],
        capture_output=True, text=True, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "no CUDA device" in done.stderr
    assert not (tmp_path / "x.json").exists()


@pytest.mark.slow
def test_a_training_that_fails_is_recorded_in_words(tmp_path):
    out, keep = tmp_path / "train.json", tmp_path / "kept"
    done = subprocess.run(
        [sys.executable, str(GPU / "train.py"), "--out", str(out), "--rehearse", "--steps", "0",
         "--folder", str(tmp_path / "runs")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    found = json.loads(out.read_text())
    assert found["code"] == 2
    assert any("max-steps" in line or "max_steps" in line for line in found["said"])
    done = subprocess.run(
        [sys.executable, str(GPU / "keep.py"), str(tmp_path / "runs" / "genome"), str(keep)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("nothing to keep: ")


@pytest.mark.slow
def test_at_length_1_errors_are_numbers():
    """Nothing passes a decay there: the gradient of A is zero, and so is its size."""
    code = (
        "import json, torch, parity; truth = {'y': torch.ones(2), 'dA': torch.zeros(2)};"
        "print(json.dumps(parity.errors(truth, truth), allow_nan=False))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=GPU, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"y": 0.0, "dA": 0.0}
