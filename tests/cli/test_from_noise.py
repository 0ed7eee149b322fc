"""`redesign --from-noise`: what stands there, noised a while, by masks or by letters."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_objectives_cli import call
from tiny_run import write_run

from genodiff.api.load import load

REGION = "ACGTTGCAACCATGGATCCA" * 6
GENOME = "TTGACCATGA" * 4 + REGION + "GGCATTCAGT" * 4


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, diffusion in (
        ("mdlm", {}),
        ("uniform", {"objective": "uniform"}),
        ("half", {"objective": "uniform", "objective_options": {"mask_share": 0.5}}),
    ):
        write_run(folder, name, diffusion=diffusion)
    (folder / "g.fa").write_text(f">c\n{GENOME}\n")
    return folder


def redesign(runs: Path, name: str, out: Path, *words: object) -> dict:
    call(
        "redesign", runs / name, "--fasta", runs / "g.fa", "--region", "c:41-160", "--out", out,
        "-n", 4, "--steps", 6, "-q", *words,
    )  # fmt: skip
    return dict(json.loads(Path(f"{out}.json").read_text()))


@pytest.mark.few(2)
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
    found = model.redesign(GENOME, 30, regions=[(40, 160)], from_noise=0.3)
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
