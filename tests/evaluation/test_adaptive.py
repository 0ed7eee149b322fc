"""The adaptive mixture: C as plain Python, chances that sum to one, what it is good at, and its
line of an evaluation, whose windows are of a split that is read as one text.
"""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from genodiff.alphabet import SOFT
from genodiff.data.store import split_stretches
from genodiff.evaluation.adaptive import adaptive_nats, choose_seed_length, nats_naively
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.lines import adaptive_mixture_nats
from genodiff.kernels import library

pytestmark = pytest.mark.skipif(not library.is_loaded(), reason="needs the C library")
Codes = NDArray[np.uint8]


def draw_genome(seed: int, n: int = 1500) -> Codes:
    """Random bases, with copies on both strands that have substitutions, ends and Ns."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, n).astype(np.uint8)
    for _ in range(6):
        start, end, length = *rng.integers(0, n - 200, 2), int(rng.integers(40, 200))
        part = x[start : start + length].copy()
        part = 3 - part[::-1] if rng.random() < 0.5 else part
        changed = rng.integers(0, length, length // 20)
        part[changed] = rng.integers(0, 4, len(changed))
        x[end : end + length] = part
    x[rng.integers(0, n, 3)] = 4
    return x


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("grow", [False, True])
@pytest.mark.parametrize("fit", [0, 300])
@pytest.mark.parametrize("length", [5, 11])
def test_c_gives_what_plain_python_gives(seed, grow, fit, length):
    x = draw_genome(seed)
    train, held, text = x[:800], x[800 : 800 + fit], x[900:]
    found = adaptive_nats(train, held, text, grow=grow, seed_length=length)
    wanted = nats_naively(train, held, text, grow=grow, seed_length=length)
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
    assert (found[text > 3] == 0).all()


@pytest.mark.parametrize(("train", "fit", "text"), [(0, 0, 5), (30, 0, 0), (0, 9, 1), (3, 2, 2)])
def test_short_and_empty_parts(train, fit, text):
    x = draw_genome(9)
    parts = x[:train], x[100 : 100 + fit], x[200 : 200 + text]
    for grow in (False, True):
        found = adaptive_nats(*parts, grow=grow, seed_length=3)
        np.testing.assert_allclose(found, nats_naively(*parts, grow=grow, seed_length=3), rtol=1e-9)


@pytest.mark.parametrize("grow", [False, True])
def test_the_chances_of_all_texts_sum_to_one(grow):
    train = np.tile(np.array([0, 1, 2, 3, 0, 0, 2], np.uint8), 12)
    head = train[:10]  # so that copies are being followed where the texts part
    total = 0.0
    for tail in itertools.product(range(4), repeat=3):
        text = np.concatenate([head, np.array(tail, np.uint8)])
        found = adaptive_nats(train, train[:0], text, grow=grow, seed_length=4)
        total += float(np.exp(-found[len(head) :].sum()))
    assert total == pytest.approx(1, abs=1e-12)


def test_a_base_costs_the_same_whatever_follows_it():
    x = draw_genome(5)
    whole = adaptive_nats(x[:700], x[:0], x[700:1200], grow=True)
    part = adaptive_nats(x[:700], x[:0], x[700:900], grow=True)
    np.testing.assert_array_equal(whole[:200], part)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_copy_with_substitutions_costs_little_and_random_bases_about_two_bits(backwards):
    rng = np.random.default_rng(2)
    train = rng.integers(0, 4, 40_000).astype(np.uint8)
    copy = train[9000:13000].copy()
    changed = rng.random(len(copy)) < 0.05
    copy[changed] = rng.integers(0, 4, changed.sum())
    copy = 3 - copy[::-1] if backwards else copy
    new = rng.integers(0, 4, 4000).astype(np.uint8)
    found = adaptive_nats(train, train[:0], np.concatenate([new, copy]), grow=False)
    bits = found / np.log(2)
    assert 1.99 < bits[:4000].mean() < 2.03
    assert bits[4000:].mean() < 0.6  # the entropy is 0.29
    again = adaptive_nats(train[:0], train[:0], np.concatenate([new, new]), grow=True)
    assert again[4200:].mean() < 0.1


def test_the_seed_grows_with_the_genome():
    assert [choose_seed_length(n) for n in (0, 10**6, 10**7, 10**8, 10**9)] == [11, 11, 12, 14, 14]


def test_without_a_compiler_there_is_no_such_line(monkeypatch):
    monkeypatch.setattr(library, "is_loaded", lambda: False)
    x = draw_genome(1)
    assert adaptive_nats(x, x, x, grow=True) is None


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
