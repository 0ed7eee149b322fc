"""No function of `import genodiff` starts a process, and a plain script runs once."""

import _posixsubprocess
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import genodiff
from genodiff.jobs.verbs import list_functions
from tests.finetuning.motif_task import write_tables
from tests.jobs.verb_calls import list_usual_values, write_inputs

pytestmark = pytest.mark.slow
GFF = "c1\tx\tCDS\t31\t60\t.\t+\t0\tID=a\nc1\tx\tCDS\t301\t330\t.\t-\t0\tID=b\n"


@pytest.fixture
def home(run, tmp_path, monkeypatch):
    """A folder with what the functions read; the command's module is not loaded."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.startswith("genodiff.cli")]:
        monkeypatch.delitem(sys.modules, name)
    write_inputs()
    Path("s.fa").unlink()  # the samples go there
    Path("g.gff3").write_text("##gff-version 3\n" + GFF)
    write_tables(tmp_path)
    Path("words").mkdir()
    for split in ("train", "valid", "test"):
        Path(f"words/{split}.txt").write_text("a few words of a text\n" * 40)
    return tmp_path


def list_calls(run: Path) -> dict[str, Callable[[], Any]]:
    """A call of each public function, in an order in which each finds its input."""
    g, net = genodiff, genodiff.load(run, device="cpu")
    tiny = {"preset": "caduceus-ps-tiny", "d_model": 16, "n_layer": 1, "d_state": 4, "seq_len": 64}
    tiny |= {"batch_size": 4, "steps": 2, "validate_windows": 4}
    related = {"relatives": ["r1.fa", "r2.fa"], "strains": True}
    region = {"region": ["c1:100-120"]}
    head = {"core": 60, "context": 20, "batch_size": 3, "max_steps": 2, "head": "linear"}
    return {
        "load": lambda: g.load(run, **related),
        "Model": lambda: g.load(run, memory="on").sample(1, length=20),
        "build_genomes": lambda: g.build_genomes("l.tsv", seq_len=64),
        "build_relatives": lambda: g.build_relatives("l.tsv", out="built"),
        "list_relatives": g.list_relatives,
        "build_store": lambda: g.build_store("g.fa", seq_len=64),
        "list_recipes": g.list_recipes,
        "fetch_data": lambda: g.fetch_data("toy"),
        "check_documents": lambda: g.check_documents("words"),
        "train": lambda: g.train("toy", out="trained", **tiny),
        "demo": lambda: g.demo("demo", minutes=0.05),
        "doctor": lambda: g.doctor(offline=True),
        "evaluate": lambda: g.evaluate(run, max_windows=2, keep=False),
        "compare": lambda: g.compare([run, "trained"], fasta="g.fa", max_windows=2),
        "sample": lambda: g.sample(run, n=2, length=40, out="s.fa"),
        "scorecard": lambda: g.scorecard("s.fa", run=run),
        "redesign": lambda: g.redesign(run, fasta="g.fa", out="d.fa", **region),
        "score": lambda: g.score(run, "v.vcf", fasta="g.fa", out="o.vcf", **related),
        "score_variants": lambda: g.score_variants(run, "v.vcf", fasta="g.fa"),
        "ism": lambda: g.ism(run, "g.fa", out="i.tsv", **region),
        "dependencies": lambda: g.dependencies(run, "g.fa", out="x.tsv", region=["c1:100-104"]),
        "tracks": lambda: g.tracks(
            run, "g.fa", out="tracks", formats=["bedgraph"], **region, **related
        ),
        "constraint": lambda: g.constraint(
            "g.fa", out="constraint", formats=["bedgraph"], **region, **related
        ),
        "align": lambda: g.align("g.fa", out="r1.paf", relatives=["r1.fa"], strains=True, **region),
        "embed": lambda: g.embed(run, "s.fa", out="e.npz"),
        "finetune_bases": lambda: g.finetune_bases(
            run, "g.fa", genes="g.gff3", valid=["c1:1-200"], out="bases", **head
        ),
        "finetune": lambda: g.finetune(
            "train.csv", test="train.csv", model=["cnn"], seeds=1, out="sweep"
        ),
        "predict": lambda: g.predict("bases", "g.fa", out="p.gff3"),
        "FinetunedModel": lambda: g.load("sweep"),
        "report": lambda: g.report("trained"),
        "fit_memory": lambda: g.fit_memory("trained", windows=1, draws=1),
        "check_checkpoint": lambda: g.check_checkpoint(run),
        "export_checkpoint": lambda: g.export_checkpoint(run, out="exported"),
        "import_checkpoint": lambda: g.import_checkpoint("exported", out="imported"),
        "list_models": g.list_models,
        "show_model": lambda: g.show_model("yeast"),
        "merge": lambda: [
            [g.score(run, "v.vcf", fasta="g.fa", out=f"{i}.tsv", shard=f"{i}/2") for i in (1, 2)],
            g.merge(["1.tsv", "2.tsv"], out="m.tsv"),
        ],
        "one_hot_network": lambda: g.one_hot_network(net),
    }


def test_no_public_function_starts_a_process(home, run, monkeypatch):
    monkeypatch.setattr("genodiff.io.process.count_usable_cores", lambda: 8)
    monkeypatch.setattr("genodiff.runs.relatives.count_usable_cores", lambda: 8)
    calls, started = list_calls(run), []

    def trap(name: str) -> Callable[..., Any]:
        def refuse(*args: Any, **_: Any) -> Any:
            started.append((current, name, args[:1]))
            raise OSError(f"{current} starts a process ({name})")

        return refuse

    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen"):
        monkeypatch.setattr(os, name, trap(name))
    monkeypatch.setattr(_posixsubprocess, "fork_exec", trap("fork_exec"))  # of every spawn
    monkeypatch.setattr(subprocess, "_fork_exec", trap("Popen"))
    for name, verb in list_functions().items():
        values = list_usual_values(verb.open(), run, home)  # of a new verb
        calls.setdefault(name, partial(getattr(genodiff, name), **values))
    assert set(calls) == {*genodiff._BESIDE, *list_functions()}
    for current, call in calls.items():
        call()
        assert "genodiff.cli" not in sys.modules, current
    assert not started


SCRIPT = """
print("once", flush=True)
import genodiff
genodiff.finetune("train.csv", test="train.csv", model=["kmer-lr", "majority"], out="two", jobs=2)
"""


def test_a_plain_script_runs_once(home):
    Path("script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["once"]), done.stderr
