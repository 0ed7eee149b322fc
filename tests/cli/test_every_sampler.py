"""Every sampler of the registry through the verb and `Model.sample`, with each setting moved."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import genodiff
from genodiff.diffusion.sampler import SAMPLERS, Sampled, Sampler
from genodiff.errors import UsageError
from genodiff.io.fasta import read_fasta
from tests.tiny_run import write_run

MOVED = {"at_once": 2.0, "noise": 0.0}
"""Settings that are whole numbers; of others a number near the default is in range."""
OBJECTIVES = {"masked": "mdlm", "score": "sedd", "uniform": "uniform"}


@pytest.fixture(scope="module")
def find_run(tmp_path_factory):
    """An untrained run of a network that a sampler fits."""

    @cache
    def build(objective: str) -> Path:
        return write_run(tmp_path_factory.mktemp(objective), diffusion={"objective": objective})

    return lambda sampler: build(OBJECTIVES[sampler.fits[0]])


@pytest.mark.few(7)
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_setting_of_every_sampler_is_planned_drawn_and_written_down(
    find_run, sample, here, monkeypatch, name
):
    monkeypatch.setattr("genodiff.generate.estimate._TIMING", 0.01)
    run, defaults = find_run(SAMPLERS[name]), SAMPLERS[name].settings
    moved = {one: MOVED.get(one, 0.9 * usual + 0.05) for one, usual in defaults.items()}
    words = ["--checkpoint", run, "--n", 2, "--length", 12, "--steps", 6, "--sampler", name]
    for one, value in moved.items():
        words += ["--sampler-option", f"{one}={value}"]
    code, out, err = sample(*words, "--fasta", "out.fa", "--plan", "--json")
    assert code == 0, err
    assert json.loads(out)["evaluations"] > 0
    code, _, err = sample(*words, "--fasta", "out.fa")
    assert code == 0, err
    told = json.loads((here / "out.fa.json").read_text())
    assert told.get("sampler_options", {}) == moved
    how = {"steps": 6, "sampler": name, "sampler_options": moved}
    drawn = genodiff.load(run, device="cpu").sample(2, length=12, **how)
    records = list(read_fasta("out.fa"))
    assert drawn == [one.sequence.decode() for one in records]
    assert all(f"{one}={value}" in records[0].description for one, value in moved.items())


def draw(diffusion: Any, denoiser: Any, xt: Any, options: Any, eta: float = 0.1) -> Sampled:
    raise NotImplementedError


@pytest.mark.parametrize(
    "count",
    [lambda n, share, beta=0.1: n, lambda n, share, eta=0.2: n, lambda n, share, **own: n],
    ids=["unknown", "other default", "unnamed"],
)
def test_a_count_with_other_settings_than_the_draw_is_refused_at_registration(count):
    with pytest.raises(UsageError, match=r"`evaluations` counts with .*, and `draw` has"):
        Sampler(draw, ("masked",), count, uses_steps=True)
    fitting = Sampler(draw, ("masked",), lambda n, share: float(n), uses_steps=True)
    assert fitting.count_with({"eta": 0.5})(7, None) == 7
