"""Objectives from the command line: an autoregressive model trained, measured and sampled."""

import json

import pytest

from genodiff.cli import build_app, main

SMALL = ("--seq-len", "64", "--d-model", "16", "--n-layer", "1", "--d-state", "4", "--batch-size",
         "4", "--max-steps", "4")  # fmt: skip


def call(*words: object) -> None:
    build_app()(
        [*(str(word) for word in words), "--threads", "1"],
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )


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


def test_an_autoregressive_model_goes_on_in_any_batch_and_fills_no_gaps(runs, tmp_path, capsys):
    outputs = []
    for size in (1, 3):
        out = tmp_path / f"b{size}.fa"
        call("sample", "--checkpoint", runs / "ar", "--fasta", out, "--n", 3, "--length", 40,
             "--batch-size", size, "-q")  # fmt: skip
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    assert b"sampler=left-to-right steps=40 nfe=40" in outputs[0]
    template = tmp_path / "t.fa"
    template.write_text(">a\nACGTACGTNNNN\n")
    call("sample", "--checkpoint", runs / "ar", "--fasta", tmp_path / "on.fa", "--template",
         template, "-q")  # fmt: skip
    assert "\nACGTACGT" in (tmp_path / "on.fa").read_text()
    template.write_text(">a\nACGTNNNNACGT\n")
    for words, said in (
        (("--template", template), "a gap must be at the end"),
        (("--sampler", "ancestral"), "does not go with objective ar"),
    ):
        with pytest.raises(SystemExit) as ending:
            main(
                [
                    str(w)
                    for w in ("sample", "--checkpoint", runs / "ar", "--fasta", tmp_path / "no.fa",
                              *words, "-q")
                ]
            )  # fmt: skip
        assert ending.value.code == 2
        assert said in capsys.readouterr().err
