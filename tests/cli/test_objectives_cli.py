"""Objectives from the command line: trained, measured, sampled, exported; designs from noise."""

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_run import write_fasta, write_run

from genodiff.api.load import load
from genodiff.io.fasta import read_fasta
from genodiff.runs.model import load_model
from tests.commands import check_refused, exit_code

SMALL = ("--seq-len", "64", "--d-model", "16", "--n-layer", "1", "--d-state", "4", "--batch-size",
         "4", "--max-steps", "4")  # fmt: skip


def call(*words: object) -> None:
    assert exit_code(*words, "--threads", 1) == 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Trained networks: autoregressive, of scores, of uniform noise, and half of that and masks."""
    folder = tmp_path_factory.mktemp("runs")
    for name, preset, *objective in (
        ("ar", "mamba-tiny", "ar"),
        ("sedd", "caduceus-ps-tiny", "sedd"),
        ("letters", "caduceus-ps-tiny", "uniform"),
        ("half", "caduceus-ps-tiny", "uniform", "--mask-share", 0.5),
    ):
        words = ("train", "toy", "--preset", preset, *SMALL, "--out", folder / name, "-q")
        call(*words, "--objective", *objective)
    assert "mask_share" not in (folder / "letters" / "config.yaml").read_text()
    return folder


def test_an_exact_likelihood_is_called_so_and_a_bound_has_its_curve(runs, capsys):
    capsys.readouterr()
    for name, objective, figure in (
        ("ar", "ar", "exact"), ("sedd", "sedd", "bound"), ("letters", "uniform", "bound"),
    ):  # fmt: skip
        call("eval", runs / name, "--json", "--no-baselines", "--max-windows", 8, "-q")
        found = json.loads(capsys.readouterr().out)
        assert (found["objective"], found["figure"]) == (objective, figure)
        assert bool(found["curve"]) == (name == "sedd")
        low, high = found["ci95_bits"]
        assert low < found["bits_per_base"] < high
    call("eval", runs / "ar", "--no-baselines", "--max-windows", 8, "-q")
    out = capsys.readouterr().out
    assert "\n  model  " in out
    assert "at most" not in out


def test_an_autoregressive_model_goes_on_and_fills_no_gaps(runs, here, capsys):
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


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("ar", ("--length", 40), "sampler=left-to-right steps=40 nfe=40"),
        ("half", ("--steps", 12, "--sampler-option", "correct=0.1"), "sampler=uniform-ancestral"),
    ],
)
def test_samples_are_the_same_in_any_batch(runs, here, name, more, said):
    for size in (1, 3):
        words = ("sample", runs / name, "--fasta", f"b{size}.fa", "--n", 3, *more, "-q")
        call(*words, "--batch-size", size)
    assert (here / "b1.fa").read_bytes() == (here / "b3.fa").read_bytes()
    assert said in (here / "b1.fa").read_text()


def test_templates_keep_what_is_given(runs, tmp_path):
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
    write_fasta(tmp_path / "g.fa", {"c": "ACGTTGCAAC" * 20})
    words = ("--fasta", tmp_path / "g.fa", "--region", "c:51-60", "--out", tmp_path / "m.tsv")
    call("ism", runs / "half", *words, "-q")
    assert (tmp_path / "m.tsv").exists()


REGION = "ACGTTGCAACCATGGATCCA" * 6
GENOME = "TTGACCATGA" * 4 + REGION + "GGCATTCAGT" * 4


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("untrained")
    for name, diffusion in (
        ("mdlm", {}),
        ("uniform", {"objective": "uniform"}),
        ("half", {"objective": "uniform", "objective_options": {"mask_share": 0.5}}),
    ):
        write_run(folder, name, diffusion=diffusion)
    write_fasta(folder / "g.fa", {"c": GENOME})
    return folder


def redesign(untrained: Path, name: str, out: Path, *words: object) -> dict:
    place = ("--fasta", untrained / "g.fa", "--region", "c:41-160", "--out", out)
    call("redesign", untrained / name, *place, "-n", 4, "--steps", 6, "-q", *words)
    return dict(json.loads(Path(f"{out}.json").read_text()))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["mdlm", "uniform", "half"])
def test_the_less_noise_the_fewer_edits_and_no_batch_changes_a_byte(untrained, tmp_path, name):
    edits = []
    for time in (0.05, 0.4, 1.0):
        out = tmp_path / f"{time}.fa"
        told = redesign(untrained, name, out, "--from-noise", time, "--batch-size", 2)
        assert told["from_noise"] == time
        edits.append(np.mean([one["edits"] for one in told["records"]]) / 120)
    redesign(untrained, name, tmp_path / "again.fa", "--from-noise", 0.4, "--batch-size", 5)
    assert (tmp_path / "again.fa").read_text() == (tmp_path / "0.4.fa").read_text()
    assert edits[0] < edits[1] < edits[2]
    assert edits[0] < 0.12
    assert edits[2] > 0.6  # a network that knows little draws three in four otherwise


def test_masks_are_a_share_of_the_region_and_the_rest_stands(untrained):
    """At time 0.3, by the linear schedule, three in ten are masked, and of these few come back."""
    model = load(untrained / "mdlm")
    found = model.redesign(GENOME, 30, regions=[(40, 160)], from_noise=0.3)
    changed = np.array([[a != b for a, b in zip(one, GENOME, strict=True)] for one in found])
    assert not changed[:, :40].any()
    assert not changed[:, 160:].any()
    share = changed[:, 40:160].mean()
    assert 0.3 * 0.6 < share < 0.3 * 0.9
    assert len(set(found)) == len(found)


def test_without_a_time_letters_as_noise_design_from_nothing(untrained, tmp_path):
    told = redesign(untrained, "uniform", tmp_path / "d.fa", "--keep", "c:41-60")
    assert "from_noise" not in told
    assert told["sampler"] == "uniform-ancestral"
    lines = "".join((tmp_path / "d.fa").read_text().splitlines()[1:3])
    assert lines.startswith(REGION[:20])
