"""Oracles: the three forms of input, slopes, and one clear line for whatever goes wrong."""

import math
import time
from typing import Any

import numpy as np
import pytest
import torch

from genodiff.errors import DataError, UsageError
from genodiff.generate.oracle import Oracle, encode_one_hot, load_oracle

CODES = np.array([[0, 1, 2, 3, 4], [2, 2, 1, 0, 0]])


def test_each_form_is_what_it_says():
    seen: list[Any] = []

    def keep(given: Any) -> list[float]:
        seen.append(given)
        return [0.5, 1.0]

    for form in ("strings", "ids", "one-hot"):
        assert Oracle(keep, "keep", form)(CODES).tolist() == [0.5, 1.0]
    assert seen[0] == ["ACGTN", "GGCAA"]
    assert np.array_equal(seen[1], CODES)
    assert seen[2].shape == (2, 4, 5)
    assert seen[2].argmax(1)[0, :4].tolist() == [0, 1, 2, 3]
    assert (seen[2][0, :, 4] == 0).all()
    assert Oracle(torch.nn.Identity(), "net").form == "one-hot"
    assert Oracle(keep, "keep").form == "strings"


def test_slopes_are_those_of_the_oracle_also_inside_inference_mode():
    weights = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))

    def linear(x: torch.Tensor) -> torch.Tensor:
        return (x * weights).sum((1, 2))[:, None]

    with torch.inference_mode():
        values, slope = Oracle(linear, "linear", "one-hot").gradient(CODES)
    assert values == pytest.approx(linear(encode_one_hot(CODES))[:, 0].tolist(), rel=1e-6)
    assert np.allclose(slope, weights.T[None])
    with pytest.raises(UsageError, match="takes strings"):
        Oracle(len, "len").gradient(CODES)
    with pytest.raises(UsageError, match="no gradient"):
        Oracle(lambda x: x.detach().sum((1, 2)), "cut", "one-hot").gradient(CODES)
    table = torch.nn.Embedding(4, 2)
    with pytest.raises(UsageError, match="no gradient"):  # but of its weights
        Oracle(lambda x: table(x.argmax(1)).mean((1, 2)), "ids", "one-hot").gradient(CODES)


def fail(given: object) -> None:
    raise RuntimeError("two\nlines")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: [math.nan, 1.0], "nan for sequence 1 of 2"),
        (lambda s: [1.0, math.inf], "inf for sequence 2 of 2"),
        (lambda s: [1.0], "shape"),
        (lambda s: 3.0, "shape"),
        (lambda s: ["much", "more"], "no real numbers"),
        (lambda s: [1j, 2.0], "no real numbers"),
        (lambda s: None, "shape|no real numbers|nan"),
        (fail, "RuntimeError: two lines"),
    ],
)
def test_a_wrong_answer_is_one_line(call, said):
    with pytest.raises(DataError, match=rf"{said}") as fault:
        Oracle(call, "mine")(CODES)
    assert "mine" in str(fault.value)
    assert "\n" not in str(fault.value)


def test_an_oracle_that_takes_too_long_is_left():
    began = time.monotonic()
    with pytest.raises(DataError, match="no answer"):
        Oracle(lambda s: time.sleep(30), "slow", timeout=0.1)(CODES)
    assert time.monotonic() - began < 20
    with pytest.raises(UsageError, match="inf is no limit"):
        Oracle(len, "len", timeout=math.inf)
    assert Oracle(lambda s: [1.0, 2.0], "quick", timeout=60)(CODES).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("neither", "MODULE:FUNCTION"),
        ("no_such_module_here:f", "no module"),
        ("math:no_such", "no 'no_such' in math"),
        ("math:pi", "cannot be called"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(spec, said):
    with pytest.raises(UsageError) as fault:
        load_oracle(spec)
    assert said in str(fault.value)
    assert load_oracle("math:sqrt").call is math.sqrt
