"""Each copy of the C library that this processor can run, and not its widest alone, and arm64's
where it can be emulated, against the truth in float64.
"""

from functools import partial
from itertools import product

import arm64
import numpy as np
import pytest
import torch
from compiling import MARCH
from far_homologs import check_far
from recalls import EFFORTS, align_both, make_columns, make_memory, make_windows
from scans import Problem, differences, differentiate, needs_library
from test_mixer import assert_agrees, problem

from genodiff.conservation.elements import find_segments, find_segments_slowly
from genodiff.kernels import library
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.norm import rms_norm
from genodiff.memory.column_rates import ColumnClasses
from genodiff.memory.columns import combine, combine_slowly
from genodiff.memory.memory import Memory
from genodiff.memory.tables import build_sampled_table_slowly

pytestmark = needs_library
ORDER = list(MARCH)
NARROWER = ORDER[: max(ORDER.index(library.instruction_set() or "base"), 1)]


NO_ARM64 = pytest.mark.skipif(
    bool(arm64.MISSING), reason=f"not installed here: {', '.join(arm64.MISSING)}"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return arm64.compiled(tmp_path_factory.mktemp("arm64"))


@pytest.fixture(params=[*NARROWER, pytest.param("arm64", marks=[pytest.mark.slow, NO_ARM64])])
def copy(request, monkeypatch, tmp_path):
    monkeypatch.setenv("GENODIFF_SCAN", "native")
    if request.param == "arm64":
        emulated = arm64.Arm64(request.getfixturevalue("program"), tmp_path / "call", monkeypatch)
        yield "arm64"
        assert emulated.calls
        return
    opened, why = library._open(request.param)
    assert opened is not None, why
    monkeypatch.setattr(library, "_library", lambda: (opened, request.param))
    assert library.instruction_set() == request.param
    yield str(request.param)


@pytest.mark.few(3)
@pytest.mark.usefixtures("copy")
@pytest.mark.parametrize("channels", [7, 236])
@pytest.mark.parametrize("states", [1, 5, 16])
def test_the_scan(channels, states):
    p = Problem(2, 67, channels, states, h0=True, z=True, reverse=states == 5)
    found = differences(p.solve("native", torch.float32), p.solve("naive"))
    assert found["y"] < 2e-6
    assert max(found.values()) < 2e-5


@pytest.mark.usefixtures("copy")
@pytest.mark.parametrize("rank", [1, 8, 11])
def test_the_mixer(rank):
    with pytest.MonkeyPatch.context() as patch:
        assert_agrees(problem(2, 70, 21, 16, rank=rank, taps=4, in_bias=True, padding=30), patch)


@pytest.mark.usefixtures("copy")
@pytest.mark.parametrize("taps", [4, 9])
def test_the_convolution_and_the_norm(taps):
    g = torch.Generator().manual_seed(taps)
    x, weight, bias, gy = (
        torch.randn(s, generator=g) for s in ((2, 300, 37), (37, taps), (37,), (2, 300, 37))
    )
    norm = partial(rms_norm, eps=1e-3)
    for function, inputs in ((causal_conv1d, (x, weight, bias)), (norm, (x, bias))):
        found = differentiate(function, inputs, gy)
        truth = differentiate(function, inputs, gy, torch.float64)
        for got, wanted in zip(found, truth, strict=True):
            assert (got.double() - wanted).norm() < 1e-5 * wanted.norm()


@pytest.mark.usefixtures("copy")
def test_the_memory():
    memory = make_memory()
    windows, without = make_windows(memory, 57)
    sampled = Memory.build_sampled(memory.text, k=5)
    slowly = build_sampled_table_slowly(memory.text, 5)
    assert all(map(np.array_equal, sampled.table, slowly))
    for effort, one in product(EFFORTS, (memory, sampled)):
        tried = one.with_effort(effort)
        slow, found = tried.recall_slowly(windows, without), tried.recall(windows, without)
        assert slow.background.min() < 0.9
        np.testing.assert_allclose(found.background, slow.background, atol=1e-9)
        np.testing.assert_allclose(found.copy, slow.copy, atol=1e-9)


@pytest.mark.usefixtures("copy")
def test_relatives():
    slow, found = align_both(make_memory(), 57)
    assert sum(one.over.sum() for one in slow) > 57
    for one, other in zip(slow, found, strict=True):
        np.testing.assert_allclose(other.over, one.over, atol=1e-9)
    given = make_columns(2, 57)
    np.testing.assert_allclose(combine(*given), combine_slowly(*given), rtol=1e-9)


@pytest.mark.usefixtures("copy")
@pytest.mark.parametrize("sifted", [True, False])
def test_regions_of_a_far_relative(sifted):
    assert check_far(130, sifted=sifted) >= sifted


@pytest.mark.usefixtures("copy")
def test_segments():
    scores = np.random.default_rng(57).normal(-0.2, 1.0, 757)
    found, slow = find_segments(scores, 4.0), find_segments_slowly(scores, 4.0)
    assert len(slow.end) > 5
    for one, other in zip(found, slow, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("copy")
def test_classes():
    numbers = make_columns(2, 57)[-1]
    columns = np.random.default_rng(57).integers(0, 5, (40, 1 + numbers.tree.relatives))
    classes = ColumnClasses(numbers, numbers.rate[-1], columns.astype(np.uint8))
    ids = np.random.default_rng(58).integers(-1, 40, 757).astype(np.int32)
    np.testing.assert_allclose(classes.compare(ids), classes.compare_slowly(ids), atol=1e-9)
