"""`redesign --from-noise`: what stands there, noised a while, by masks or by letters."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_objectives_cli import SMALL, call

from genodiff.api.load import load
from tests.commands import check_refused

REGION = "ACGTTGCAACCATGGATCCA" * 6
GENOME = "TTGACCATGA" * 4 + REGION + "GGCATTCAGT" * 4


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    words = ("train", "toy", "--preset", "caduceus-ps-tiny", *SMALL, "-q")
    call(*words, "--out", folder / "mdlm")
    call(*words, "--objective", "uniform", "--out", folder / "uniform")
    call(*words, "--objective", "uniform", "--mask-share", 0.5, "--out", folder / "half")
    (folder / "g.fa").write_text(f">c\n{GENOME}\n")
    return folder


def redesign(runs: Path, name: str, out: Path, *words: object) -> dict:
    call(
        "redesign", runs / name, "--fasta", runs / "g.fa", "--region", "c:41-160", "--out", out,
        "-n", 6, "--steps", 8, "-q", *words,
    )  # fmt: skip
    return dict(json.loads(Path(f"{out}.json").read_text()))


@pytest.mark.parametrize("name", ["mdlm", "uniform", "half"])
def test_the_less_noise_the_fewer_edits_and_no_batch_changes_a_byte(runs, tmp_path, name):
    edits = []
    for time in (0.05, 0.4, 1.0):
        out = tmp_path / f"{time}.fa"
        told = redesign(runs, name, out, "--from-noise", time, "--batch-size", 2)
        assert told["from_noise"] == time
        edits.append(np.mean([one["edits"] for one in told["records"]]) / 120)
    redesign(runs, name, tmp_path / "again.fa", "--from-noise", 0.4, "--batch-size", 5)
    assert (tmp_path / "again.fa").read_text() == (tmp_path / "0.4.fa").read_text()
    assert edits[0] < edits[1] < edits[2]
    assert edits[0] < 0.12
    assert edits[2] > 0.6  # a network that knows little draws three in four otherwise


def test_masks_are_a_share_of_the_region_and_the_rest_stands(runs):
    """At time 0.3, by the linear schedule, three in ten are masked, and of these few come back."""
    model = load(runs / "mdlm")
    found = model.redesign(GENOME, 60, regions=[(40, 160)], from_noise=0.3)
    changed = np.array([[a != b for a, b in zip(one, GENOME, strict=True)] for one in found])
    assert not changed[:, :40].any()
    assert not changed[:, 160:].any()
    share = changed[:, 40:160].mean()
    assert 0.3 * 0.6 < share < 0.3 * 0.9
    assert len(set(found)) == len(found)


def test_without_a_time_letters_as_noise_design_from_nothing(runs, tmp_path):
    told = redesign(runs, "uniform", tmp_path / "d.fa", "--keep", "c:41-60")
    assert "from_noise" not in told
    assert told["sampler"] == "uniform-ancestral"
    lines = "".join((tmp_path / "d.fa").read_text().splitlines()[1:3])
    assert lines.startswith(REGION[:20])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mdlm", "--from-noise", "0"), "--from-noise 0 is no time of the noise"),
        (("mdlm", "--from-noise", "1.5"), "--from-noise 1.5 is no time of the noise"),
        (("mdlm", "--from-noise", "nan"), "--from-noise nan is no time of the noise"),
        (("mdlm", "--from-noise", "much"), "from-noise"),
        (("mdlm", "--from-noise", "0.3", "--max-run", "5"),
         "--from-noise draws each base independently, and constraints need joint draws"),
        (("uniform", "--avoid", "GGTCTC"),
         "uniform noise draws each base independently, and constraints"),
        (("mdlm", "--from-noise", "0.3", "--guidance", "smc", "--oracle", "gc:gc"),
         "--oracle gc:gc"),
        (("mdlm", "--sampler", "uniform-ancestral"), "does not go with objective mdlm"),
        (("uniform", "--sampler", "confidence"), "does not go with objective uniform"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("here")
def test_what_does_not_go_together_is_one_line(runs, words, said, capsys):
    given = ["redesign", runs / words[0], "--fasta", runs / "g.fa", "--region", "c:41-160"]
    check_refused(capsys, [*given, "-o", "d.fa", *words[1:], "--threads", 1, "-q"], 2, said)


def test_a_template_has_nothing_to_begin_with(runs, here, capsys):
    (here / "t.fa").write_text(">a\nACGTNNNNACGT\n")
    words = ["redesign", runs / "mdlm", "--template", "t.fa", "--from-noise", 0.3, "-o", "d.fa"]
    check_refused(capsys, [*words, "--threads", 1], 2, "a template has no bases to change")
