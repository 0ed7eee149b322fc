"""GC in windows that begin at every base: few states where edits are few, and a refusal."""

import numpy as np
import pytest

from genodiff.constraints import composition
from genodiff.constraints.check import find_violations
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import (
    AllOf,
    Constraint,
    DesignSpace,
    KeepBases,
    MaxEdits,
    free_space,
)
from genodiff.constraints.layers import compile_constraints
from genodiff.errors import UsageError
from tests.constraints.enumerated_designs import enumerate_designs, list_accepted


def make_space(length: int, seed: int) -> DesignSpace:
    text = np.random.default_rng(seed).choice(list("ACGT"), length, p=[0.3, 0.2, 0.2, 0.3])
    return DesignSpace("".join(text).encode(), np.ones(length, bool), 0, length)


def count_explored(rule: Constraint, space: DesignSpace, monkeypatch: pytest.MonkeyPatch) -> int:
    """The states of a product before it is minimised."""
    from genodiff.constraints import layers

    seen: list[int] = []
    minimise = layers._minimise

    def counting(tables: list[np.ndarray], *more: object) -> object:
        seen.append(sum(map(len, tables)))
        return minimise(tables, *more)

    monkeypatch.setattr(layers, "_minimise", counting)
    assert compile_constraints(rule, space) is not None
    return seen[0]


def test_settled_windows_are_forgotten(monkeypatch):
    space = make_space(120, 1)
    few = GcContent(0.3, 0.7, window=50) & MaxEdits(2)
    assert count_explored(few, space, monkeypatch) < 3000  # 7,381 sets of two edits, each base
    blocks = GcContent(0.3, 0.7, window=50, step=10)
    assert count_explored(blocks, free_space(80), monkeypatch) < 1_000_000


@pytest.mark.few(4)
@pytest.mark.parametrize("span", [None, (2, 9)], ids=["everywhere", "in a span"])
@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_limits_of_edits_keep_the_law(most, span):
    for seed in range(3):
        letters = bytearray(make_space(12, seed).letters)
        letters[5] = ord("N")
        free = np.isin(np.arange(12), [1, 3, 4, 5, 8, 10])
        space = DesignSpace(bytes(letters), free, 0, 12)
        rule = AllOf(
            (GcContent(0.4, 0.7, 5), MaxEdits(most, span), MaxEdits(4, (0, 6)), KeepBases((3, 4)))
        )
        layers = compile_constraints(rule, space)
        found = [] if layers is None else list_accepted(layers, space)
        assert found == enumerate_designs(rule, space)


def test_rows_whose_numbers_collide_are_still_told_apart(monkeypatch):
    rows = np.random.default_rng(1).integers(-1, 3, (200, 4)).astype(np.int32)
    first, ids = composition._merge_rows(rows, np.zeros(4, np.int64))
    assert (first[ids] == rows).all()
    assert len(np.unique(first, axis=0)) == len(first)


def test_what_needs_too_many_states_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr(composition, "MOST_NUMBERS", 1 << 17)
    with pytest.raises(UsageError, match=r"windows of 40 every 1 needs more than [0-9,]+ states"):
        compile_constraints(GcContent(0.3, 0.7, window=40), free_space(60))
    before = free_space(60).letters.decode()
    assert find_violations(GcContent(0.3, 0.7, window=40), "A" * 60, before, 0, 60)
