"""The Pareto table of designs, in worlds where it is known who hacked what."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genodiff.quality.compared_designs import (
    DesignJudges,
    compare_methods,
    find_front,
    measure_gains,
)
from genodiff.quality.train_text import TrainText
from tests.quality.test_scorecard import ids, random_text

rows_of_goals = st.integers(1, 3).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 3), min_size=k, max_size=k), min_size=1, max_size=8)
)


@given(rows_of_goals)
def test_the_front_is_what_no_other_row_dominates(goals):
    wanted = [
        not any(
            all(x >= y for x, y in zip(other, row, strict=True)) and other != row for other in goals
        )
        for row in goals
    ]
    assert find_front(goals) == wanted
    assert any(wanted)


def test_gains_are_in_standard_deviations_and_transfer_is_their_ratio():
    rng = np.random.default_rng(1)
    real = np.stack([rng.normal(5, 2, 400), rng.normal(0, 0.5, 400)])
    made = np.stack([rng.normal(11, 1, 200), rng.normal(0.9, 0.5, 200)])
    found = measure_gains(made, real)
    wanted = (made.mean(1) - real.mean(1)) / real.std(1, ddof=1)
    assert [found[name]["value"] for name in ("guided", "judge")] == pytest.approx(wanted)
    spread = 2 * 1.96 * np.sqrt(1 / 400 + 0.25 / 200 + wanted[0] ** 2 / 800)  # the delta method
    assert np.ptp(found["guided"]["ci95"]) == pytest.approx(spread, rel=0.25)
    low, high = found["transfer"]["ci95"]
    assert low < 0.5 < high
    assert not found["hacked"]
    lower = measure_gains(2 * real.mean(1, keepdims=True) - made, real, sign=-1)
    assert lower["guided"]["value"] == pytest.approx(found["guided"]["value"], abs=1e-9)
    nothing = measure_gains(real[:, :200], real)
    assert nothing["transfer"] is None


def count_c(some: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([(one == ids("C")[0]).sum() for one in some], float)


def count_cg(some: Sequence[np.ndarray]) -> np.ndarray:
    words = ids("CG")
    return np.array([((one[:-1] == words[0]) & (one[1:] == words[1])).sum() for one in some], float)


def test_each_method_is_shown_for_what_it_did():
    """The judge counts CG. One method makes them, one fills with the C that its oracle counts, one
    copies train, one makes one sequence again and again.
    """
    real = [ids(random_text(i, 40)) for i in range(60)]
    train = ids(random_text(99, 3000))
    honest = [ids("CG" * 10 + random_text(200 + i, 20)) for i in range(30)]
    hacked = [ids(random_text(300 + i, 15) + "C" * 25) for i in range(30)]
    copied = [train[i * 40 : i * 40 + 40] for i in range(30)]
    collapsed = [honest[0]] * 30
    methods = {"honest": honest, "hacked": hacked, "copied": copied, "collapsed": collapsed}
    judges = DesignJudges(count_c, count_cg, count_cg, TrainText(lambda: [train]))
    rows = {row["method"]: row for row in compare_methods(methods, real, judges)}
    assert list(rows) == [*methods, "real"]
    assert [name for name, row in rows.items() if row["gains"] and row["gains"]["hacked"]] == [
        "hacked"
    ]
    assert rows["copied"]["match"]["near"] == 1
    assert rows["honest"]["match"]["long"] == 0
    assert rows["collapsed"]["duplicates"] == 29
    assert rows["collapsed"]["difference"]["mean"] == 0
    assert rows["collapsed"]["effective"] == pytest.approx(1 / 30)
    assert rows["honest"]["front"]
    assert not rows["real"]["front"]
    assert rows["real"]["words"]["value"] == pytest.approx(1)
    assert rows["hacked"]["words"]["value"] < rows["copied"]["words"]["value"]


def test_dull_sequence_is_not_better_for_its_few_bits():
    """Bits count C here: one method has fewer than real sequence, and the same of all else."""
    real = [ids(random_text(i, 40)) for i in range(20)]
    plain = real[::-1]
    dull = [np.where(one == ids("C")[0], ids("A")[0], one) for one in plain]
    judges = DesignJudges(judge=count_cg, bits=count_c)
    first, second, _ = compare_methods({"plain": plain, "dull": dull}, real, judges)
    assert second["bits"]["mean"] == 0
    assert (first["front"], second["front"]) == (True, False)


def test_what_is_not_asked_for_is_no_goal():
    real = [ids(random_text(i, 40)) for i in range(8)]
    (row, other) = compare_methods({"one": real[:4]}, real, DesignJudges())
    assert row["judge"] is row["bits"] is row["match"] is row["gains"] is None
    assert row["front"]
    assert other["method"] == "real"
