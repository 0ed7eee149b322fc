"""Letters as noise from the command line: trained, gone on with, measured, drawn, and refused."""

import json
import shutil

import pytest
from test_objectives_cli import SMALL, call

from genodiff.io.fasta import read_fasta
from genodiff.runs.checkpoint import locate_checkpoint
from genodiff.runs.model import load_model
from tests.commands import check_refused


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of letters alone, and one of half masks that was stopped and gone on with."""
    folder = tmp_path_factory.mktemp("runs")
    words = ("train", "toy", "--preset", "caduceus-ps-tiny", "--objective", "uniform", *SMALL[:-2],
             "-q")  # fmt: skip
    call(*words, "--max-steps", 4, "--out", folder / "letters")
    half = (*words, "--mask-share", 0.5, "--checkpoint-every", 2)
    call(*half, "--max-steps", 4, "--out", folder / "whole")
    shutil.copytree(folder / "whole", folder / "half")
    shutil.rmtree(locate_checkpoint(folder / "half", 4))
    for name in ("model.safetensors", "model.json"):
        (folder / "half" / name).unlink()
    call(*half, "--max-steps", 4, "--out", folder / "half")  # from step 2 on
    return folder


def test_a_run_that_was_stopped_and_gone_on_with_is_the_same_run(runs):
    one, other = ((runs / name / "model.safetensors").read_bytes() for name in ("whole", "half"))
    assert one == other
    assert load_model(runs / "half").objective.mask_share == 0.5  # type: ignore[attr-defined]
    assert "mask_share" not in (runs / "letters" / "config.yaml").read_text()


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("eval", "letters", "--order", "left-to-right"), "--order needs masked noise"),
        (("eval", "letters", "--block", "4"), "--block is for masked diffusion"),
        (("eval", "letters", "--context", "contig"), "contig"),
        (("sample", "letters", "--fasta", "x.fa", "--memory", "on"), "--memory is for masked"),
        (("sample", "letters", "--fasta", "x.fa", "--block", "4"), "--block is for masked"),
        (("sample", "letters", "--fasta", "x.fa", "--sampler", "confidence"),
         "sampler 'confidence' does not go with objective uniform"),
        (("sample", "letters", "--fasta", "x.fa", "--allow-n"), "--allow-n is for networks"),
        (("sample", "half", "--fasta", "x.fa", "--sampler-option", "correct=2"), "correct = 2"),
        (("train", "toy", "--mask-share", "0.5"), "objective mdlm has no setting 'mask_share'"),
        (("train", "toy", "--objective", "uniform", "--mask-share", "1.5"), "share"),
        (("train", "toy", "--objective", "uniform", "--mask-share", "x"), "share"),
        (("train", "toy", "--objective", "uniform", "--memory"), "--memory is for masked"),
        (("train", "toy", "--objective", "uniform", "--block", "4"), "no setting 'block'"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("here")
def test_what_does_not_go_together_is_one_line_with_a_remedy(runs, words, said, capsys):
    given = [runs / one if one in ("letters", "half") else one for one in words]
    check_refused(capsys, [*given, "--threads", 1, "-q"], 2, said)


def test_scores_need_a_network_that_has_seen_masks(runs, here, capsys):
    (here / "g.fa").write_text(">c\n" + "ACGTTGCAAC" * 20 + "\n")
    words = ["--fasta", "g.fa", "--region", "c:51-60", "--out", "m.tsv", "-q"]
    said = "has never seen a mask"
    check_refused(capsys, ["ism", runs / "letters", *words, "--threads", 1], 2, said)
    call("ism", runs / "half", *words)
    assert (here / "m.tsv").exists()
