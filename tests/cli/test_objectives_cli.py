"""Objectives from the command line: an autoregressive model trained, measured and sampled."""

import json

import pytest

from tests.commands import check_refused, exit_code

SMALL = ("--seq-len", "64", "--d-model", "16", "--n-layer", "1", "--d-state", "4", "--batch-size",
         "4", "--max-steps", "4")  # fmt: skip


def call(*words: object) -> None:
    assert exit_code(*words, "--threads", 1) == 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    call("train", "toy", "--preset", "mamba-tiny", "--objective", "ar", *SMALL, "--out",
         folder / "ar", "-q")  # fmt: skip
    call("train", "toy", "--preset", "caduceus-ps-tiny", "--objective", "sedd", *SMALL, "--out",
         folder / "sedd", "-q")  # fmt: skip
    return folder


def test_an_exact_likelihood_is_called_so_and_a_bound_has_its_curve(runs, capsys):
    capsys.readouterr()
    for name, figure in (("ar", "exact"), ("sedd", "bound")):
        call("eval", runs / name, "--json", "--no-baselines", "--max-windows", 8, "-q")
        found = json.loads(capsys.readouterr().out)
        assert (found["objective"], found["figure"]) == (name, figure)
        assert bool(found["curve"]) == (figure == "bound")
    call("eval", runs / "ar", "--no-baselines", "--max-windows", 8, "-q")
    out = capsys.readouterr().out
    assert "\n  model  " in out
    assert "at most" not in out


def test_an_autoregressive_model_goes_on_in_any_batch_and_fills_no_gaps(runs, here, capsys):
    outputs = []
    for size in (1, 3):
        out = here / f"b{size}.fa"
        call("sample", "--checkpoint", runs / "ar", "--fasta", out, "--n", 3, "--length", 40,
             "--batch-size", size, "-q")  # fmt: skip
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    assert b"sampler=left-to-right steps=40 nfe=40" in outputs[0]
    template = here / "t.fa"
    template.write_text(">a\nACGTACGTNNNN\n")
    call("sample", "--checkpoint", runs / "ar", "--fasta", here / "on.fa", "--template",
         template, "-q")  # fmt: skip
    assert "\nACGTACGT" in (here / "on.fa").read_text()
    template.write_text(">a\nACGTNNNNACGT\n")
    for words, said in (
        (("--template", template), "a gap must be at the end"),
        (("--sampler", "ancestral"), "does not go with objective ar"),
    ):
        asked = ("sample", "--checkpoint", runs / "ar", "--fasta", here / "no.fa", *words, "-q")
        check_refused(capsys, asked, 2, said)
