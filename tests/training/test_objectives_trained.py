"""Objectives in a run: each trains, validates and is loaded again; what makes no sense is refused
before it begins.
"""

import math
from typing import Any

import pytest
from tiny_training import read_rows, run_tiny, tiny

from genodiff.diffusion.objective import OBJECTIVES
from genodiff.diffusion.objectives.d3pm import D3pm
from genodiff.errors import UsageError
from genodiff.runs.model import load_model

ONE_WAY = {"preset": "mamba-tiny"}


def shape(name: str) -> dict[str, Any]:
    return {"causal": ONE_WAY, "block": {"strands": "single"}}.get(OBJECTIVES[name].kind, {})


@pytest.mark.few(1)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_trains_validates_and_is_known_again(name, tmp_path):
    steps = 90 if name == "uniform" else 30  # letters as noise: the loss of a step varies more
    run_tiny(tmp_path / "run", objective=name, steps=steps, lr=0.02, warmup_steps=1, batch_size=8,
             validate_every=steps, **shape(name))  # fmt: skip
    rows = read_rows(tmp_path / "run")
    losses = [float(row["loss_bits"]) for row in rows]
    assert all(math.isfinite(loss) for loss in losses)
    assert sum(losses[-5:]) < sum(losses[:5])
    assert 1.0 < float(rows[-1]["valid_bits"]) < 4.0
    model = load_model(tmp_path / "run")
    assert model.objective.name == name
    assert (model.objective.kind == "causal") == model.config.backbone.causal


def test_the_ablations_are_switched_one_by_one():
    config = tiny(time_steps=50, carry_over=False, rao_blackwell=False)
    assert config.diffusion.own() == {
        "time_steps": 50, "carry_over": False, "rao_blackwell": False,
        "time_sampling": "systematic", "exact_count": True,
    }  # fmt: skip
    assert tiny(objective="d3pm").diffusion.own()["exact_count"]
    assert (D3pm.time_steps, D3pm.carry_over, D3pm.zero_masking) == (1000, False, False)
    assert D3pm.rao_blackwell


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"objective": "ar"}, "objective ar needs a network that reads one way .*mamba-470k"),
        (ONE_WAY, "objective mdlm needs a network that sees both sides of a mask.*--objective ar"),
        ({"objective": "sedd", "carry_over": False}, "objective sedd has no setting 'carry_over'"),
        ({"objective": "mdlm", "mask_rate": 0.15}, "objective mdlm has no setting 'mask_rate'"),
        ({"rao_blackwell": False}, "--time-steps 1000"),
        ({"objective": "bert"}, "objective"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(settings, said):
    with pytest.raises(UsageError, match=said) as fault:
        tiny(**settings)
    assert "\n" not in str(fault.value)


def test_an_objective_is_part_of_a_runs_identity():
    digests = {tiny(objective=name, **shape(name)).digest() for name in OBJECTIVES}
    assert len(digests) == len(OBJECTIVES)
    assert tiny(objective="d3pm", time_steps=100).digest() not in digests
