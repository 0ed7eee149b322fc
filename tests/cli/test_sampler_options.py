"""`--sampler-option`: settings of a sampler, from the command line to header and sidecar."""

import json
import shutil

import pytest

from genodiff.io.fasta import read_fasta


def test_a_setting_reaches_the_sampler_its_header_and_the_sidecar(run, sample, here):
    words = ["--checkpoint", run, "--n", 3, "--length", 40, "--sampler", "entropy-bounded"]
    for name, bound in (("one.fa", 0), ("all.fa", 1000)):
        code, _, err = sample(*words, "--fasta", name, "--sampler-option", f"bound={bound}")
        assert code == 0, err
    one, every = (json.loads((here / f"{name}.fa.json").read_text()) for name in ("one", "all"))
    assert [entry["nfe"] for entry in one["records"]] == [40] * 3
    assert [entry["nfe"] for entry in every["records"]] == [1] * 3
    assert every["sampler_options"] == {"bound": 1000.0}
    assert "bound=1000.0" in next(iter(read_fasta(here / "all.fa"))).description


@pytest.mark.parametrize(
    ("sampler", "given", "said"),
    [
        ("remdm-cap", "etta=0.1", "eta"),
        ("ancestral", "eta=0.1", "leave --sampler-option out"),
        ("remdm-cap", "eta=2", "between 0 and 1"),
        ("remdm-cap", "eta", "NAME=NUMBER"),
        ("remdm-cap", "eta=much", "NAME=NUMBER"),
        ("entropy-bounded", "bound=inf", "finite"),
        ("p2", "noise=0.5", "neither 0 nor 1"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line_and_nothing_is_written(
    run, sample, here, sampler, given, said
):
    words = ["--checkpoint", run, "--fasta", "out.fa", "--n", 1, "--length", 20]
    code, _, err = sample(*words, "--sampler", sampler, "--sampler-option", given)
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert list(here.iterdir()) == []


def test_steps_are_chosen_for_a_wanted_loss_and_the_curve_is_kept(
    run, sample, here, tmp_path_factory
):
    own = tmp_path_factory.mktemp("run") / "run"
    shutil.copytree(run, own)
    steps = []
    for name, lost in (("few.fa", 40), ("many.fa", 10)):
        words = ["--checkpoint", own, "--fasta", name, "--n", 1, "--length", 30]
        code, _, err = sample(*words, "--bits-lost", lost)
        assert code == 0, err
        steps.append(json.loads((here / f"{name}.json").read_text())["steps"])
    assert 1 <= steps[0] <= steps[1]
    kept = json.loads((own / "mask_curve.json").read_text())
    assert kept["checkpoint"]
    assert kept["split"] == "valid"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--bits-lost", 1, "--steps", 8), "give one"),
        (("--bits-lost", 0), "above 0"),
        (("--bits-lost", 1, "--sampler", "confidence"), "ancestral"),
    ],
)
def test_a_wanted_loss_that_cannot_be_is_refused(run, sample, here, words, said):
    code, _, err = sample("--checkpoint", run, "--fasta", "out.fa", "--n", 1, *words)
    assert code == 2
    assert said in err
    assert list(here.iterdir()) == []
