"""Agreements on every diagonal: the same in C as in NumPy, also where little is visible."""

import numpy as np
import pytest
import torch
from made_up_text import NEEDS_LIBRARY, check_diagonals, draw_bases, hide, mutate

from genodiff.memory import search
from genodiff.memory.memory import Memory
from genodiff.memory.search import Effort
from genodiff.memory.text import NONE, Codes, join_stretches, turn_codes

EFFORT = Effort(most=300, least_odds=-60.0)


def make_genome(n: int) -> Codes:
    genome = draw_bases(n, 2)
    genome[100:400] = mutate(draw_bases(300, 1), 0.1, 3)
    genome[n - 350 : n - 50] = turn_codes(mutate(draw_bases(300, 1), 0.05, 8))
    genome[n // 2 : n // 2 + 20] = NONE
    return genome


@pytest.mark.few(5)
@NEEDS_LIBRARY
@pytest.mark.parametrize("n", [900, 4097, 9000])
@pytest.mark.parametrize("length", [1, 9, 64, 300, 1100])
def test_the_same_diagonals_in_c(n, length):
    genome = make_genome(n)
    text = join_stretches([("one", 0, genome[:450]), ("two", 0, genome[450:])])
    memory = Memory.build_sampled(text).with_effort(EFFORT)
    clean = np.append(mutate(draw_bases(300, 1), 0.05, 2), draw_bases(1000, 7))[:length]
    windows = np.stack([hide(clean, share, 4) for share in (0.0, 0.3, 0.8, 0.95, 1.0)])
    without = [(0, 0), (0, 0), (120, 300), (0, 0), (0, 0)]
    assert check_diagonals(memory, windows, without).sum() > 4 or length < 64


@pytest.mark.slow
@NEEDS_LIBRARY
def test_the_longest_window():
    genome = draw_bases(9000, 5)
    memory = Memory.build_sampled(join_stretches([("one", 0, genome)])).with_effort(EFFORT)
    window = hide(mutate(genome[500:8600], 0.1, 1), 0.6, 2)[None]
    check_diagonals(memory, window)
    assert 500 in memory.find_all(window)[0][0]


def test_a_diverged_copy_is_found_where_few_places_are_visible():
    genome = make_genome(60_000)
    memory = Memory.build_sampled(join_stretches([("one", 0, genome)]))
    window = hide(mutate(genome[20_000:20_600], 0.12, 1), 0.94, 2)
    there, back = memory.find_all(np.stack([window, turn_codes(window)]))
    assert 20_000 in there[0]
    for one, other in zip(there, back[::-1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_about_as_many_pass_by_chance_as_is_said(monkeypatch):
    text = join_stretches([("one", 0, draw_bases(200_000, 3))])
    codes, tells = draw_bases(40, 9), np.ones(40, np.bool_)
    passed = len(search.sift(text, codes, tells))
    assert passed < search.BY_CHANCE
    monkeypatch.setattr(search, "AGREES", 0.25)
    monkeypatch.setattr(search, "list_least_hits", search.list_least_hits.__wrapped__)
    assert search.BY_CHANCE / 8 < len(search.sift(text, codes, tells)) < 1.3 * search.BY_CHANCE


def test_long_texts_and_windows_with_few_masks_are_searched_by_seeds():
    assert search.count_sparse(12_000_000, 1000, 25_000) == 550
    assert search.count_sparse(3_000_000_000, 1024, 25_000) == -1
    assert search.count_sparse(12_000_000, 1000, 400) == -1


@pytest.mark.parametrize("informative", [0, 1, 31, 32, 63, 64, 543, 1400])
def test_groups_hold_each_place_once(informative):
    tells = np.zeros(1500, np.bool_)
    tells[np.random.default_rng(1).permutation(1500)[:informative]] = True
    groups = search.list_groups(tells)
    places = np.concatenate(groups)
    assert places.tolist() == np.flatnonzero(tells).tolist()
    assert all(len(g) < 2 * search.GROUP for g in groups)


@pytest.mark.parametrize("share", [0.0, 0.4, 0.6, 0.9])
def test_a_turned_window_has_the_turned_diagonals_alone_or_among_others(share, threads):
    genome = make_genome(30_000)
    memory = Memory.build_sampled(join_stretches([("one", 0, genome)]))
    rows = [mutate(genome[a : a + 400], 0.15, a) for a in (50, 9000, 14_900, 29_600)]
    windows = np.stack([hide(x, share, 2) for x in rows])
    there, back = [], []
    for n in threads:
        torch.set_num_threads(n)
        there.append(memory.find_all(windows))
        back.append(memory.find_all(turn_codes(windows)))
    alone = [memory.find_all(windows[i : i + 1])[0] for i in range(4)]
    for i, (one, other) in enumerate(zip(there[0], back[0], strict=True)):
        assert sum(map(len, one)) > 0
        for strand in (0, 1):
            np.testing.assert_array_equal(one[strand], other[1 - strand])
            np.testing.assert_array_equal(one[strand], alone[i][strand])
            for again in there[1:]:
                np.testing.assert_array_equal(one[strand], again[i][strand])
