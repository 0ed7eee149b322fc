"""Uniform noise from the command line: training, evaluation, sampling and export."""

import json

import pytest
from test_objectives_cli import SMALL, call

from genodiff.io.fasta import read_fasta
from genodiff.runs.model import load_model


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Trained networks of uniform noise, and of half uniform noise and half masks."""
    folder = tmp_path_factory.mktemp("runs")
    words = ("train", "toy", "--preset", "caduceus-ps-tiny", "--objective", "uniform", *SMALL, "-q")
    call(*words, "--out", folder / "letters")
    call(*words, "--mask-share", 0.5, "--out", folder / "half")
    assert "mask_share" not in (folder / "letters" / "config.yaml").read_text()
    return folder


def test_eval_says_a_bound_with_its_interval_by_shards_too(runs, tmp_path, capsys):
    capsys.readouterr()
    asked = ("eval", runs / "letters", "--no-baselines", "--max-windows", 8, "--repeats", 2, "-q")
    call(*asked, "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["objective"], found["figure"]) == ("uniform", "bound")
    low, high = found["ci95_bits"]
    assert low < found["bits_per_base"] < high
    assert found["curve"] == []


def test_samples_are_the_same_in_any_batch_and_templates_keep_what_is_given(runs, tmp_path):
    outputs = []
    for size in (1, 3):
        out = tmp_path / f"b{size}.fa"
        call(
            "sample", "--checkpoint", runs / "half", "--fasta", out, "--n", 3, "--length", 70,
            "--steps", 12, "--batch-size", size, "--sampler-option", "correct=0.1", "-q",
        )  # fmt: skip
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    assert json.loads((tmp_path / "b1.fa.json").read_text())["sampler"] == "uniform-ancestral"
    template = tmp_path / "t.fa"
    template.write_text(">a\nACGTNNNNNNNNACGT\n")
    out = tmp_path / "filled.fa"
    call("sample", runs / "letters", "--template", template, "--fasta", out, "--steps", 5, "-q")
    (record,) = read_fasta(out)
    assert record.sequence[:4] == record.sequence[-4:] == b"ACGT"
    assert set(record.sequence) <= set(b"ACGT")


def test_export_keeps_the_noise(runs, tmp_path):
    call("checkpoint", "export", runs / "half", "-o", tmp_path / "published", "-q")
    call("checkpoint", "import", tmp_path / "published", "-o", tmp_path / "again", "-q")
    found = load_model(tmp_path / "again").objective
    assert found.name == "uniform"
    assert found.mask_share == 0.5  # type: ignore[attr-defined]


def test_a_network_that_has_seen_masks_has_scores(runs, tmp_path):
    (tmp_path / "g.fa").write_text(">c\n" + "ACGTTGCAAC" * 20 + "\n")
    words = ("--fasta", tmp_path / "g.fa", "--region", "c:51-60", "--out", tmp_path / "m.tsv")
    call("ism", runs / "half", *words, "-q")
    assert (tmp_path / "m.tsv").exists()
