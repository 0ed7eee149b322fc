"""The mixture of context orders: its counts against a slow version, its probabilities, its weights,
and yeast.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_markov import codes_of, counted_slowly
from yeast_tests import yeast_codes

from genodiff.data.stretches import LETTERS, Codes
from genodiff.errors import DataError
from genodiff.evaluation import mixture
from genodiff.evaluation.markov import KmerCounts, count
from genodiff.evaluation.mixture import (
    MAX_ORDER,
    TABLED,
    Mixture,
    Seen,
    choose_tabled,
    fit_mixture,
    look_up,
    mixture_nll,
)

UNIT = st.text("ACGT", min_size=1, max_size=14)


@st.composite
def repetitive(draw: st.DrawFn) -> str:
    """Text with long repeats, so that high orders have something to find."""
    units = draw(st.lists(UNIT, min_size=1, max_size=3))
    return "".join(draw(st.lists(st.sampled_from([*units, "N"]), min_size=1, max_size=9)))


def seen_of(codes: Codes, train: list[Codes], tables: KmerCounts | None = None) -> Seen:
    return look_up(codes, codes < 4, tables or count(train, 8), lambda: train)


@pytest.mark.few(1)
@pytest.mark.parametrize(("tabled", "examples"), [(4, 40), (TABLED, 3)])
def test_every_order_is_counted_on_both_strands_as_the_slow_way_does(tabled, examples):
    """Mostly with short tables: those of the highest order take half a second each."""

    @settings(max_examples=examples)
    @given(repetitive(), st.lists(repetitive(), min_size=1, max_size=3))
    def agree(text: str, train: list[str]) -> None:
        read = [codes_of(t) for t in train]
        seen = seen_of(codes_of(text), read, count(read, tabled))
        rows = [i for i, c in enumerate(text) if c != "N"]
        assert len(seen) == len(rows)
        tables = [counted_slowly(train, k) for k in range(MAX_ORDER + 1)]
        for row, i in enumerate(rows):
            longest = -1
            for k in range(MAX_ORDER + 1):
                context = text[i - k : i] if i >= k else "N"
                counts = [tables[k].get(context + b, 0) for b in "ACGT"]
                if "N" in context or sum(counts) == 0:
                    assert not seen.total[row, k:].any()
                    break
                longest = k
                assert seen.total[row, k] == sum(counts)
                assert seen.hits[row, k] == counts["ACGT".index(text[i])]
            assert seen.longest[row] == longest

    agree()


@pytest.mark.few(1)
@pytest.mark.parametrize("chunk", [1, 7, 26, 1000])
def test_the_counts_do_not_depend_on_how_the_train_split_is_read(chunk, monkeypatch):
    rng = np.random.default_rng(1)
    unit = rng.integers(0, 4, 60).astype(np.uint8)
    train = [np.concatenate([unit, unit[:30], [np.uint8(4)], unit[::-1], unit])]
    tables = count(train, 8)
    whole = seen_of(unit, train, tables)
    monkeypatch.setattr(mixture, "_CHUNK", chunk)
    pieces = seen_of(unit, train, tables)
    assert np.array_equal(whole.total, pieces.total)
    assert np.array_equal(whole.hits, pieces.hits)
    assert whole.total[-1, MAX_ORDER] >= 2


def test_the_four_bases_share_a_probability_of_one():
    rng = np.random.default_rng(2)
    unit = rng.integers(0, 4, 200).astype(np.uint8)
    train = [np.concatenate([unit, rng.integers(0, 4, 300).astype(np.uint8), unit[50:150]])]
    tables = count(train, 8)
    fitted = fit_mixture(seen_of(unit[100:180], train, tables))
    for past in (0, 5, 40):
        total = sum(
            float(np.exp(-mixture_nll(fitted, _last(np.append(unit[:past], b), train, tables))[0]))
            for b in range(4)
        )
        assert total == pytest.approx(1)


def test_tables_are_as_deep_as_the_train_split_is_long():
    lengths = {0: 8, 14_000: 8, 2**19: 9, 2**21: 10, 4_600_000: 11, 12_000_000: 11, 10**10: 11}
    assert {bases: choose_tabled(bases) for bases in lengths} == lengths


def _last(codes: Codes, train: list[Codes], tables: KmerCounts) -> Seen:
    codes = codes.astype(np.uint8)
    where = np.zeros(len(codes), bool)
    where[-1] = True
    return look_up(codes, where, tables, lambda: train)


def test_a_copy_is_nearly_free_and_random_bases_cost_two_bits():
    rng = np.random.default_rng(3)
    train = rng.integers(0, 4, 40_000).astype(np.uint8)
    valid = np.concatenate([rng.integers(0, 4, 3_000).astype(np.uint8), train[1_000:4_000]])
    tables = count([train], 8)
    fitted = fit_mixture(seen_of(valid, [train], tables))
    fresh, copied = rng.integers(0, 4, 2_000).astype(np.uint8), train[20_000:22_000]
    assert mixture_nll(fitted, seen_of(fresh, [train], tables)).mean() / np.log(2) == pytest.approx(
        2, abs=0.05
    )
    assert mixture_nll(fitted, seen_of(copied, [train], tables)).mean() / np.log(2) < 0.1
    on_the_other_strand = (3 - copied)[::-1].astype(np.uint8)
    assert (
        mixture_nll(fitted, seen_of(on_the_other_strand, [train], tables)).mean() / np.log(2) < 0.1
    )


def test_no_class_of_contexts_weighs_an_order_that_it_has_not():
    rng = np.random.default_rng(4)
    train = rng.integers(0, 4, 5_000).astype(np.uint8)
    fitted: Mixture = fit_mixture(seen_of(train[:500], [train]))
    kinds = np.arange(len(fitted.weights))
    longest = kinds * (MAX_ORDER + 1) // len(fitted.weights)
    assert fitted.weights.sum(1) == pytest.approx(1)
    assert (fitted.weights[np.arange(MAX_ORDER + 1) > longest[:, None]] == 0).all()


def test_fitting_on_nothing_and_letters_that_are_no_base_are_errors():
    codes = codes_of("ACGT")
    with pytest.raises(DataError, match="valid split"):
        fit_mixture(look_up(codes, codes > 4, count([codes], 8), lambda: [codes]))
    with pytest.raises(ValueError, match="only bases"):
        look_up(codes_of("AN"), np.array([True, True]), count([codes], 8), lambda: [codes])


@pytest.mark.slow
@pytest.mark.long
def test_on_yeast_the_mixture_reaches_its_reference_perplexities():
    """Field note: 1.278 nats over chrXIV, and no worse than 1.3445 ± 0.0009 where nothing is
    copied.
    """
    contigs = yeast_codes()
    train = [c for name, c in contigs.items() if name not in ("chrXIV", "chrXVI", "chrM")]
    tables = count(train, TABLED)
    valid, test = contigs["chrXVI"][:400_000], contigs["chrXIV"]
    fitted = fit_mixture(look_up(valid, valid < len(LETTERS), tables, lambda: train))
    nll = mixture_nll(fitted, look_up(test, test < len(LETTERS), tables, lambda: train))
    assert 1.25 < nll.mean() < 1.279
