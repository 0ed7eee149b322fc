"""Counted lines that are kept in the cache, and what a limit of time leaves of them."""

import logging
from typing import Any

import numpy as np
import pytest

from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.recipe import make_user_recipe
from genodiff.evaluation import lines
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.evaluate import evaluate
from genodiff.kernels import library
from tests.tiny_run import genome_text

needs_library = pytest.mark.skipif(not library.is_loaded(), reason="needs the C library")


@pytest.fixture
def windows(model, tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    found = open_data(model).windows
    assert isinstance(found, DnaWindows)
    return found


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("counted again")


@needs_library
def test_what_was_counted_serves_any_windows_of_the_same_intervals(windows, monkeypatch):
    """One window of each of the four contigs, then others of them: the figures of all are kept."""
    some = windows.take(np.array([1, 5, 7, 9]))
    plain = lines.adaptive_mixture_nats(some, some.store)
    first = lines.markov_lines(some, True)
    assert first.adaptive is not None
    assert np.array_equal(first.adaptive, plain)
    monkeypatch.setattr(lines, "adaptive_mixture_nats", refuse)
    again = lines.markov_lines(windows, True)
    assert np.array_equal(again.adaptive[:, [1, 5, 7, 9]], first.adaptive)


@needs_library
def test_windows_of_fewer_intervals_are_read_anew(windows, monkeypatch):
    """What the adaptive mixture remembers of one contig is not what it has read of four."""
    lines.markov_lines(windows, True)
    monkeypatch.setattr(lines, "adaptive_mixture_nats", refuse)
    with pytest.raises(AssertionError, match="counted again"):
        lines.markov_lines(windows.take(np.array([9])), True)


@needs_library
def test_another_train_split_is_counted_anew(windows, tmp_path, monkeypatch):
    lines.markov_lines(windows, True)
    bed = tmp_path / "less.bed"
    bed.write_text("c1\t0\t4000\ttrain\nc2\t0\t640\tvalid\nc4\t0\t640\ttest\n")
    fasta = windows.store.source.path
    assert fasta is not None
    other = build_dna_store(make_user_recipe(fasta, bed), fasta)
    monkeypatch.setattr(lines, "adaptive_mixture_nats", refuse)
    with pytest.raises(AssertionError, match="counted again"):
        lines.markov_lines(windows, True, other)


@needs_library
def test_lines_that_are_kept_take_no_time(windows):
    before = lines.plan_lines(windows, windows.store, True)
    assert before.seconds["adaptive"] > 0
    lines.markov_lines(windows, True)
    after = lines.plan_lines(windows, windows.store, True)
    assert after.total == after.seconds["markov"] < before.total


def test_a_limit_of_time_holds_for_the_lines_too(model, windows, monkeypatch, caplog):
    """The Markov lines take 3 s and the mixtures 30: half of 8 s is enough for the first."""
    monkeypatch.setattr(lines, "_MARKOV", 3.0)
    monkeypatch.setattr(lines, "estimate_mixtures", lambda *_: {"adaptive": 30.0})
    found = evaluate(model, max_minutes=8 / 60)
    assert found["markov_bits"]
    assert found["adaptive_mixture"] is None
    assert evaluate(model, max_minutes=5 / 60)["markov_bits"] == {}
    for said in ("mixtures, which take about 30 s of the 8 s", "baselines, which take about 3 s"):
        assert f"skipping the {said}" in caplog.text
    assert lines.plan_lines(windows, windows.store, True, 5 / 60).mixture is True
    plan = lines.plan_lines(windows, windows.store, None, 70 / 60)
    assert plan.total == pytest.approx(33, abs=0.1)


def test_long_counting_is_told_before_it_begins(model, monkeypatch, caplog):
    monkeypatch.setattr(lines, "_MARKOV", 90.0)
    with caplog.at_level(logging.INFO, "genodiff"):
        evaluate(model, mixture=False)
    assert "counting the baselines, about 90 s; --no-baselines leaves them out" in caplog.text


def test_known_bases_of_the_train_split(tmp_path):
    """c1 has five N at 5,960; c2 at 3,960, of which the interval holds two; c3 none in it."""
    fasta, bed = tmp_path / "genome.fa", tmp_path / "genome.bed"
    fasta.write_text(genome_text())
    bed.write_text("c1\t5900\t6000\ttrain\nc2\t3963\t3980\ttrain\nc3\t0\t100\ttrain\n")
    store = build_dna_store(make_user_recipe(fasta, bed), fasta)
    assert lines.count_known_bases(store) == 95 + 15 + 100
