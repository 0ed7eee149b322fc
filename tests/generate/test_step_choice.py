"""Steps for a wanted loss of bits: curves with a known loss, and a curve that is measured once."""

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

from genodiff.diffusion.schedule import schedule
from genodiff.errors import GenodiffError, UsageError
from genodiff.generate.step_choice import bits_lost, choose_steps, find_curve

RATES = [(i + 0.5) / 200 for i in range(200)]
SLOPE = 0.8 * math.log(2)


def rising() -> list[tuple[float, float]]:
    """C_k / k = 0.8 bits x masked share: T linear steps lose 0.8 / (2 T) bits a base."""
    return [(0.0, 0.0), *((r, SLOPE * r) for r in RATES), (1.0, SLOPE)]


@pytest.mark.parametrize(
    ("wanted", "steps"), [(0.41, 1), (0.05, 8), (0.4 / 37.5, 38), (4e-4, 1000)]
)
def test_the_fewest_steps_of_a_known_curve(wanted, steps):
    found = choose_steps(rising(), schedule("linear"), wanted * (1 + 1e-4))
    assert found == steps
    assert bits_lost(rising(), schedule("linear"), found) <= wanted * (1 + 1e-4)
    if found > 1:
        assert bits_lost(rising(), schedule("linear"), found - 1) > wanted


def test_a_flat_curve_needs_one_step():
    assert choose_steps([(r, 1.3) for r in RATES], schedule("cosine"), 1e-6) == 1


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="loses so little"):
        choose_steps(rising(), schedule("linear"), 1e-6)


def evaluation(nats: float = 1.0) -> dict[str, Any]:
    return {"split": "valid", "curve": [{"rate_lo": 0.0, "rate_hi": 1.0, "nats": nats}]}


def test_the_curve_is_measured_once_and_kept_with_the_hash_of_the_weights(tmp_path):
    calls = []

    def measure() -> dict[str, Any]:
        calls.append(1)
        return evaluation(len(calls))

    model: Any = SimpleNamespace(run=tmp_path, digest="aaa")
    assert find_curve(model, measure) == find_curve(model, measure) == [(0.5, 1.0)]
    assert len(calls) == 1
    other: Any = SimpleNamespace(run=tmp_path, digest="bbb")
    assert find_curve(other, measure) == [(0.5, 2.0)]
    assert len(calls) == 2


def test_an_evaluation_of_the_same_weights_is_read_first(tmp_path):
    (tmp_path / "eval.json").write_text(
        json.dumps({"valid": evaluation(1.5) | {"checkpoint": "aaa"}})
    )
    model: Any = SimpleNamespace(run=tmp_path, digest="aaa")
    assert find_curve(model, dict) == [(0.5, 1.5)]
    changed: Any = SimpleNamespace(run=tmp_path, digest="bbb")
    with pytest.raises(GenodiffError, match="no curve"):
        find_curve(changed, dict)
