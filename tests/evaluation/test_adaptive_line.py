"""The adaptive mixture as a line of an evaluation: windows of a split that is read as one text."""

import numpy as np
import pytest

from genodiff.alphabet import SOFT
from genodiff.data.store import split_stretches
from genodiff.evaluation.adaptive import adaptive_nats
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.lines import adaptive_mixture_nats
from genodiff.kernels import library
from genodiff.runs.model import load_model

pytestmark = pytest.mark.skipif(not library.is_loaded(), reason="needs the C library")


@pytest.fixture(scope="module")
def model(run):
    return load_model(run)


@pytest.mark.parametrize("grow", [False, True])
def test_each_window_has_the_nats_of_its_own_bases(model, grow, monkeypatch, tmp_path):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path))
    store, windows = (data := open_data(model)).store, data.windows

    def join(split: str) -> np.ndarray:
        end = np.full(1, 4, np.uint8)
        return np.concatenate([p for s in split_stretches(store, split) for p in (s[:], end)])

    nats = adaptive_nats(join("train"), join("valid"), join("test"), grow=grow)
    test = store.intervals_of("test")
    starts, place, at = store.offsets[test.contig] + test.start, {}, 0
    for start, length in sorted(
        zip(starts.tolist(), (test.end - test.start).tolist(), strict=True)
    ):
        place |= {start + i: at + i for i in range(length)}
        at += length + 1
    some = windows.spread(max(2, len(windows) // 2))
    found = adaptive_mixture_nats(some, store, grow=grow)  # type: ignore[arg-type]
    for row in range(len(some)):
        start, length = int(some.flat_start[row]), int(some.length[row])
        soft = store.flat[start : start + length] >= SOFT
        each = np.array([nats[place[start + i]] for i in range(length)])
        np.testing.assert_allclose(found[:, row], [each[~soft].sum(), each[soft].sum()], rtol=1e-9)


def test_an_evaluation_has_the_line_in_all_its_parts(model):
    result = evaluate(model)
    line = result["adaptive_mixture"]
    gap = line["bits"] - result["bits_per_base"]
    assert line["bits"] > 0
    assert line["minus_model_bits"]["bits"] == pytest.approx(gap, abs=1e-9)
    for part in [*result["contigs"].values(), *result["regions"].values()]:
        assert part["adaptive_bits"] > 0
