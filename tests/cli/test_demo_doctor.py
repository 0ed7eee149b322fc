"""The demo from nothing to its report, and the doctor's verdict."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from genodiff.api.demo import format_outcome
from genodiff.errors import GenodiffError
from genodiff.reports.evaluation import Evaluation
from genodiff.reports.folder import read_folder
from genodiff.studies import demo
from genodiff.studies.demo import DemoResult, judge, make_demo_config, run_demo
from tests.commands import SERVER, command, exit_code

SOME = {"batch_size": 4, "max_steps": 20, "validate_every": 10, "validate_windows": 4}
MINI = {"recipe": "toy", "seq_len": 64, "d_model": 16, "n_layer": 1, "lr": 5e-3, "warmup_steps": 2}
MINI |= {"train": SOME | {"checkpoint_every": 10}}


def genodiff(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    env = os.environ | environment
    return SERVER.run([*words, "--threads", "1"], env=env, timeout=900)


@contextlib.contextmanager
def small_demo() -> Iterator[Any]:
    """The demo made small: its configuration, in seconds, on one thread."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SAMPLES", 2), ("LENGTH", 80), ("STEPS", 8), ("REPEATS", 1)):
            patch.setattr(demo, name, value)
        yield make_demo_config(settings=MINI, minutes=5)


@pytest.fixture
def mini():
    with small_demo() as settings:
        yield settings


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One demo that ran to its end; whoever changes it takes a copy."""
    with small_demo() as settings:
        return run_demo(tmp_path_factory.mktemp("finished") / "demo", settings)


@pytest.fixture
def run(finished, tmp_path):
    """A copy of the finished demo."""
    return Path(shutil.copytree(finished.run, tmp_path / "demo"))


def content(run: Path) -> dict[str, bytes]:
    return {
        p.name: p.read_bytes() for p in sorted(run.iterdir()) if p.is_file() and p.name != ".lock"
    }


@pytest.mark.slow
def test_the_demo_trains_scores_samples_and_reports(finished):
    run, outcome = finished.run, finished
    assert {"config.yaml", "metrics.csv", "model.safetensors", "eval.json", "samples.fa",
            "report.html"} <= set(content(run))  # fmt: skip
    assert outcome.steps == outcome.max_steps == 20
    assert (outcome.samples, outcome.sampled_bases) == (2, 160)
    e = outcome.evaluation
    assert e.source_bits < e.markov()[0] < 2.0
    text = (run / "report.html").read_text(encoding="utf-8")
    figures = [f"{bits:.3f}" for bits in (e.bits_per_base, e.source_bits, e.markov()[0])]
    assert all(said in text for said in (*figures, "of the gap closed"))


def test_the_demo_again_finds_everything_done(run, finished, mini, monkeypatch):
    before = content(run)
    for name in ("evaluate", "SampleRequest"):
        monkeypatch.setattr(demo, name, lambda *_, **__: pytest.fail("this was done already"))
    second = run_demo(run, mini)
    assert second._replace(seconds=0) == finished._replace(seconds=0, run=run)
    assert content(run) == before


@pytest.mark.slow
def test_a_limit_of_time_is_shared_by_training_and_what_follows(tmp_path, mini, monkeypatch):
    assert mini.train.max_minutes == 3.5  # of 5 minutes, 70 %
    # 10 s are for the report; 90 s are left for 80 s, then 30 s for a quarter of 100 s
    assert demo.choose_part(100, 80) == 1
    assert demo.choose_part(40, 100) == 4
    assert demo.choose_part(0, 80) == 16
    # a machine on which all of it would take 580 s: 300 s less training are for half of it
    monkeypatch.setattr(demo, "_time_rest", lambda _: 560.0)
    run_demo(tmp_path / "slow", mini)
    sidecar = json.loads((tmp_path / "slow" / "samples.fa.json").read_text())
    assert sidecar["steps"] == 4


def test_a_stage_that_is_missing_is_made_again_and_no_other(run, mini):
    before = content(run)
    for name in ("samples.fa", "samples.fa.json", "report.html"):
        (run / name).unlink()
    run_demo(run, mini)
    assert content(run) == before


def test_what_was_made_from_other_weights_is_made_again(run, finished, mini):
    samples = (run / "samples.fa").read_bytes()
    for name in ("eval.json", "samples.fa.json"):
        (run / name).write_text(
            (run / name).read_text().replace(str(finished.evaluation.checkpoint), "0" * 12)
        )
    (run / "samples.fa").write_text(">old\nACGT\n")
    second = run_demo(run, mini)
    assert (run / "samples.fa").read_bytes() == samples
    assert second.evaluation.checkpoint == finished.evaluation.checkpoint
    assert second.evaluation.bits_per_base == finished.evaluation.bits_per_base


def outcome(
    run: Path, bits: float, *, closed: float = 0.95, steps: int = 20, samples: str | None = None
) -> DemoResult:
    run.mkdir(exist_ok=True)
    (run / "config.yaml").write_text("recipe: toy\n")
    (run / "samples.fa").write_text(samples or "".join(f">{i}\n{'ACGT' * 20}\n" for i in range(2)))
    value = {"split": "test", "tokens": 10, "bits_per_base": bits, "perplexity": 2**bits}
    value["ci95_bits"] = [bits - 0.1, bits + 0.1]
    known = {"source_bits": 1.2, "markov_bits": {"0": 2.0, "3": 1.5}}
    return DemoResult(run, steps, 20, Evaluation.model_validate(value | known), closed, 2, 160, 1.0)


def test_claims_that_hold_pass(tmp_path, mini):
    judge(outcome(tmp_path, 1.3))
    judge(outcome(tmp_path, 1.15))
    judge(outcome(tmp_path, 1.9, closed=0.1, steps=7))


@pytest.mark.parametrize(
    ("bits", "changed", "said"),
    [
        (1.05, {}, "below the source's 1.2000"),
        (1.05, {"steps": 7}, "below the source's 1.2000"),
        (1.9, {"closed": 0.89}, "less than 90%"),
        (1.3, {"closed": float("nan")}, "less than 90%"),
        (1.3, {"samples": f">a\n{'ACGT' * 20}\n"}, "is not 2 sequences"),
        (1.3, {"samples": f">a\n{'ACGT' * 20}\n>b\n{'ACGN' * 20}\n"}, "is not 2 sequences"),
    ],
)
def test_a_claim_that_does_not_hold_is_an_error(tmp_path, mini, bits, changed, said):
    with pytest.raises(GenodiffError, match=said) as caught:
        judge(outcome(tmp_path, bits, **changed))
    assert caught.value.exit_code == 1


def test_the_summary_gives_the_three_numbers_and_admits_a_run_cut_short(tmp_path):
    text = format_outcome(outcome(tmp_path, 1.3))
    figures = ("2.000", "1.300   95 % interval 1.200 to 1.400", "1.200", "95%")
    assert all(said in text for said in (*figures, "samples.fa", "report.html"))
    assert "slow" not in text
    assert "stopped at step 7 of 20" in format_outcome(outcome(tmp_path, 1.3, steps=7))


def test_the_doctor_says_what_fails_and_exits_with_5(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("genodiff.diagnosis.checks._import_fault", lambda _: None)
    code, out, err = command(capsys, "doctor", "--threads", 1)
    assert code == 5
    assert "fail  cache" in out
    assert "-> set GENODIFF_CACHE" in out
    assert err.startswith("genodiff: error: genodiff cannot run well here: cache;")


@pytest.mark.slow
def test_the_doctor_speaks_where_torch_is_what_is_broken(tmp_path):
    (tmp_path / "torch.py").write_text(
        "raise ImportError('libtorch_cpu.so: cannot open shared object file')\n"
    )
    done = genodiff("doctor", "--json", PYTHONPATH=str(tmp_path))
    assert done.returncode == 5
    value = json.loads(done.stdout)
    broken = {c["name"]: c for c in value["checks"] if c["status"] == "fail"}
    assert set(broken) == {"torch"}
    assert "cannot open shared object file" in broken["torch"]["detail"]
    assert value["scan"] is None


@pytest.mark.slow
@pytest.mark.long
def test_the_whole_demo_closes_most_of_the_gap_and_can_be_run_again(tmp_path):
    done = genodiff("demo", "--out", str(tmp_path / "demo"), "--json", "--minutes", "14")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["steps"] == value["max_steps"]
    assert value["gap_closed"] >= 0.9
    assert value["source_bits"] < value["ci95_bits"][1]
    folder = read_folder(tmp_path / "demo")
    assert folder.samples is not None
    assert len(folder.samples) == demo.SAMPLES
    again = genodiff("demo", "--out", str(tmp_path / "demo"), "--json", "--minutes", "14")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) | {"seconds": 0} == value | {"seconds": 0}


@pytest.mark.parametrize(
    ("given", "told"),
    [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)],
    ids=["none", "count", "policy"],
)
def test_idle_threads_sleep_soon_unless_the_user_says_otherwise(given, told, monkeypatch):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert exit_code("--version") == 0
    assert os.environ.get("GOMP_SPINCOUNT") == told
