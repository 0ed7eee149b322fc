"""`train --labels` to `sample --label`: one network learns a law for each class and one of all."""

import json
from pathlib import Path

import numpy as np
import pytest

import genodiff
from genodiff.errors import UsageError
from genodiff.io.fasta import read_fasta
from tests.cli.test_guidance_cli import count_gc
from tests.commands import check_refused, succeed

NET = {"d_model": 16, "n_layer": 1, "d_state": 4}
SMALL = {"backbone": NET, "seq_len": 32, "batch_size": 16, "validate_windows": 4, "lr": 0.02}


def write_genome(folder: Path) -> None:
    g = np.random.default_rng(0)
    law = {"at": [0.45, 0.05, 0.05, 0.45], "gc": [0.05, 0.45, 0.45, 0.05]}
    names = [("at", "gc")[i % 2] for i in range(24)]
    letters = ["".join(g.choice(list("ACGT"), 320, p=law[name])) for name in names]
    fasta = "".join(f">c{i}\n{text}\n" for i, text in enumerate(letters))
    (folder / "in.fa").write_text(fasta)
    (folder / "labels.tsv").write_text("".join(f"c{i}\t{n}\n" for i, n in enumerate(names)))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    write_genome(folder)
    for steps in (30, 60):  # the second goes on from the checkpoint
        done = genodiff.train(fasta=folder / "in.fa", labels=folder / "labels.tsv",
                              out=folder / "run", max_steps=steps, device="cpu",
                              **SMALL)  # fmt: skip
        assert done.step == steps
    return folder / "run"


@pytest.mark.slow
def test_each_class_is_drawn_and_cfg_goes_beyond_it(run, here, capsys):
    words = ["sample", run, "-n", 6, "--steps", 16, "--threads", 1, "-q"]
    cfg = ["--guidance", "cfg", "--strength"]
    asked = {
        "all": [],
        "zero": ["--label", "gc", *cfg, 0],
        "one": ["--label", "gc", *cfg, 1],
        "gc": ["--label", "gc"],
        "at": ["--label", "at"],
        "away": ["--label", "gc", *cfg, -1],
    }
    for name, more in asked.items():
        succeed(capsys, *words, "-o", f"{name}.fa", *more)
    found = {name: [r.sequence for r in read_fasta(here / f"{name}.fa")] for name in asked}
    assert found["zero"] == found["all"]
    assert found["one"] == found["gc"]
    assert count_gc(here / "gc.fa") > 0.7 > 0.3 > count_gc(here / "at.fa")
    assert count_gc(here / "away.fa") < count_gc(here / "all.fa") < count_gc(here / "gc.fa")
    told = {name: json.loads((here / f"{name}.fa.json").read_text()) for name in asked}
    digest = told["all"]["checkpoint"]
    assert "label" not in told["all"]
    assert (told["gc"]["label"], told["gc"]["checkpoint"]) == ("gc", f"{digest}:gc")
    assert (told["one"]["checkpoint"], told["one"]["conditional"]) == (digest, f"{digest}:gc")
    model = genodiff.load(run, device="cpu")
    assert model.with_label("gc").sample(6, steps=16) == [s.decode() for s in found["gc"]]
    assert model.sample(6, steps=16) == [s.decode() for s in found["all"]]
    high, low = (model.with_label(name).bits("GC" * 40, repeats=2).value for name in ("gc", "at"))
    assert high < 1.5 < 2.5 < low


def test_designs_take_a_label_too(run):
    model = genodiff.load(run, device="cpu").with_label("gc")
    (design,) = model.redesign("ACGT" + "N" * 24 + "ACGT", rules={"avoid": ["GG"]}, steps=8)
    assert "GG" not in design
    assert "CC" not in design
    assert sum(design[4:28].count(c) for c in "GC") > 12


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--label", "gx"], "no label 'gx'"), (["--guidance", "cfg"], "--label CLASS")],
)
@pytest.mark.usefixtures("here")
def test_a_wrong_label_is_one_line(run, capsys, words, said):
    check_refused(capsys, ["sample", run, "-o", "x.fa", "-q", *words], 2, said)


def test_a_run_is_another_with_other_labels(run, tmp_path):
    with pytest.raises(UsageError, match="another configuration"):
        genodiff.train(fasta=run.parent / "in.fa", out=run, max_steps=60, device="cpu", **SMALL)
    changed = tmp_path / "labels.tsv"
    changed.write_text((run.parent / "labels.tsv").read_text().replace("c0\tat", "c0\tgc"))
    with pytest.raises(UsageError, match="labels_sha256"):
        genodiff.train(
            fasta=run.parent / "in.fa", labels=changed, out=run, max_steps=60, device="cpu", **SMALL
        )
    with pytest.raises(UsageError, match="no labels"):
        genodiff.train(fasta=run.parent / "in.fa", out=tmp_path / "r", label_quantiles=4, **SMALL)
    changed.write_text("c0\tsame\nc1\tsame\n")
    with pytest.raises(UsageError, match="one label"):
        genodiff.train(fasta=run.parent / "in.fa", labels=changed, out=tmp_path / "r", **SMALL)
    assert not (tmp_path / "r").exists()


def test_unlabelled_weights_are_a_start_for_labelled_training(run, tmp_path):
    how = {"fasta": run.parent / "in.fa", "max_steps": 2, "device": "cpu", **SMALL}
    genodiff.train(out=tmp_path / "plain", **how)
    del how["backbone"]
    labels = run.parent / "labels.tsv"
    genodiff.train(out=tmp_path / "more", init=tmp_path / "plain", labels=labels, **how)
    assert genodiff.load(tmp_path / "more", device="cpu").config.classes == ("at", "gc")
