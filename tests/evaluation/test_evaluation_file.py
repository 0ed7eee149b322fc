"""Evaluations side by side: nothing fuller is replaced, each stands under what it was of."""

import json
from typing import Any

import pytest

from genodiff.evaluation.evaluation_file import EVAL, join_evaluation, write_evaluation

OWN, OTHER = "a" * 64, "b" * 64
WEIGHTS = "0123456789ab" + "c" * 52


def one(**changes: Any) -> dict[str, Any]:
    """A whole evaluation of the run's own test split."""
    return {
        "split": "test", "seed": 1, "repeats": 1, "checkpoint": WEIGHTS[:12], "step": 9,
        "recipe": "own", "fasta": "/data/mine.fa", "fingerprint": OWN, "seq_len": 64,
        "context": "window", "windows": 765, "windows_total": 765, "soft_masked": 1,
        "bits_per_base": 1.941, "markov_bits": {"0": 1.97}, "adaptive_mixture": None,
        "created": "2026-11-22T10:00:00Z",
    } | changes  # fmt: skip


LOOK = {"windows": 20, "markov_bits": {}, "bits_per_base": 1.930, "created": "2026-11-22T11:00:00Z"}


def joined(*results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    kept: dict[str, dict[str, Any]] = {}
    for result in results:
        kept = join_evaluation(kept, result, OWN, WEIGHTS)
    return kept


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_quick_look_stands_beside_the_whole_evaluation_whichever_came_first(order):
    two = (one(), one(**LOOK))
    kept = joined(*(two[i] for i in order))
    assert kept == {"test": two[0], "test, 20 of 765 windows, no baselines": two[1]}


def test_the_same_evaluation_again_replaces_itself():
    newer = one(created="2026-11-23T00:00:00Z", seconds=3)
    kept = {"test": newer, "test, 20 of 765 windows, no baselines": one(**LOOK)}
    assert joined(one(), one(**LOOK), newer) == kept


def test_more_masks_baselines_and_soft_masked_bases_are_fuller():
    results = one(), one(repeats=4), one(markov_bits={}), one(soft_masked=0, repeats=8)
    lacking = ("", ", no baselines", ", 8 masks each, without soft-masked bases")
    names = {"test", *(f"test, 765 of 765 windows{what}" for what in lacking)}
    assert set(joined(*results)) == names
    assert joined(*results)["test"]["repeats"] == 4


def test_other_data_have_names_of_their_own_even_where_their_files_are_called_alike():
    x, y = (
        one(fingerprint=f * 64, fasta=f"/{f}/other.fa", created=f"2026-11-2{i}T00:00:00Z")
        for i, f in enumerate("de")
    )
    kept = joined(one(), x, y, one(split="valid"), one(context="contig"))
    assert set(kept) == {
        "test", "test of other.fa", "test of other.fa (eeeeeeee)", "valid",
        "test in whole contigs",
    }  # fmt: skip
    assert kept["test of other.fa"] is x
    assert "test of other.fa (mine.bed)" in joined(x | {"bed": "/d/mine.bed"})


def test_a_look_at_new_weights_does_not_lose_what_older_ones_had():
    old = one(checkpoint="f" * 12, step=5)
    kept = joined(old, one(**LOOK))
    assert kept["test"]["checkpoint"] == WEIGHTS[:12]
    assert kept["test, step 5, 765 of 765 windows"] == old


def test_files_of_older_versions_are_read_and_what_is_no_evaluation_is_left_alone(tmp_path):
    (tmp_path / EVAL).write_text(json.dumps({"test": one(), "mine": {"note": 1}, "valid": 3}))
    (tmp_path / "provenance.json").write_text(json.dumps({"data": {"fingerprint": OWN}}))
    assert write_evaluation(tmp_path, one(**LOOK)) == "test, 20 of 765 windows, no baselines"
    assert list(json.loads((tmp_path / EVAL).read_text())) == [
        "test", "test, 20 of 765 windows, no baselines", "mine", "valid",
    ]  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == [EVAL, "provenance.json"]


def test_no_two_evaluations_share_a_name():
    results = [
        one(seed=s, windows=w, repeats=r, checkpoint=c * 12, fingerprint=f * 64)
        for s in (1, 2) for w in (5, 765) for r in (1, 2) for c in "xy" for f in "ab"
    ]  # fmt: skip
    assert len(joined(*results)) == len(results) == 32
