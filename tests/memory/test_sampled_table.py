"""The sampled table, and agreements on every diagonal: the same in C as in NumPy."""

import numpy as np
import pytest
import torch
from made_up_text import (
    NEEDS_LIBRARY,
    check_diagonals,
    draw_bases,
    hide,
    make_genome,
    mutate,
)

from genodiff.memory import search, tables
from genodiff.memory.memory import Memory, open_memory, write_memory
from genodiff.memory.search import Effort
from genodiff.memory.tables import (
    STEP,
    Chain,
    SampledTable,
    build_sampled_table,
    build_sampled_table_slowly,
    choose_sampled_k,
)
from genodiff.memory.text import (
    NONE,
    PAD,
    Codes,
    MemoryText,
    TextStretch,
    count_plane_bytes,
    join_stretches,
    turn_codes,
)
from genodiff.words import pack_words

GENOME = make_genome()


def make_text(genome: Codes = GENOME) -> MemoryText:
    return join_stretches([("one", 0, genome[:4501]), ("two", 0, genome[4501:])])


@pytest.fixture(scope="module")
def memory():
    return Memory.build_sampled(make_text(), k=6)


@pytest.mark.parametrize("k", [4, 6])
def test_every_word_has_the_places_where_it_stands(k):
    text = make_text()
    table = build_sampled_table_slowly(text, k)
    words, whole = pack_words(text.read_codes(0, text.size), k)
    at = np.arange(len(words))
    for word in range(4**k):
        wanted = np.flatnonzero((words == word) & whole & (at % STEP == 0))
        np.testing.assert_array_equal(table.find_places(word), wanted)


@NEEDS_LIBRARY
@pytest.mark.few(8)
@pytest.mark.parametrize("k", [4, 5, 7, 9])
@pytest.mark.parametrize("n", [1, 17, 4502, 8003])
def test_the_table_in_c(k, n, threads):
    text = join_stretches([("one", 0, GENOME[: n // 2]), ("two", 0, GENOME[n // 2 : n])])
    slow = build_sampled_table_slowly(text, k)
    for count in threads:
        torch.set_num_threads(count)
        found = build_sampled_table(text, k)
        for one, other in zip(found[1:], slow[1:], strict=True):
            np.testing.assert_array_equal(one, other)
    assert slow.is_whole


@pytest.mark.parametrize("bases", [1, 5000, 1 << 16, (1 << 16) + 1, 12_000_000, 3_000_000_000])
def test_an_index_takes_at_most_one_and_a_half_bytes_a_base(bases):
    k = choose_sampled_k(bases)
    bits = 4**k + -(-bases // STEP)
    if bases > 5000:
        assert bits / 8 + 4**k / 8 + 4 * bases / STEP <= 1.5 * bases


@NEEDS_LIBRARY
@pytest.mark.few(8)
@pytest.mark.parametrize("length", [1, 5, 70, 331])
@pytest.mark.parametrize("share", [0.0, 0.35, 0.7, 0.9])
def test_the_search_in_c_finds_the_same(memory, length, share, monkeypatch):
    monkeypatch.setattr(search, "LONGEST", 0)
    memory = memory.with_effort(Effort(scored=150, most=8, wild=4))
    rows = [mutate(GENOME[a : a + length], 0.05, a) for a in (505, 3100, 3950, 6500)]
    windows = np.stack([hide(x, share, 3) for x in [*rows, draw_bases(length, 9)]])
    without = [(0, 0), (3000, 3150), (0, 0), (0, 0), (0, 0)]
    check_diagonals(memory, windows, without)


def test_it_is_opened_as_it_was_written(memory, tmp_path):
    write_memory(tmp_path / "memory", memory, {"content": "abc"}, contigs=[])
    found = open_memory(tmp_path / "memory", verify=True)
    assert isinstance(found.table, SampledTable)
    windows = np.stack([hide(GENOME[a : a + 150], 0.5, a) for a in (505, 2010)])
    for one, other in zip(memory.find_all(windows), found.find_all(windows), strict=True):
        np.testing.assert_array_equal(one[0], other[0])


def test_it_is_built_without_the_library(monkeypatch):
    text = make_text()
    there = build_sampled_table(text)
    monkeypatch.setattr(tables, "is_loaded", lambda: False)
    for one, other in zip(there, build_sampled_table(text), strict=True):
        np.testing.assert_array_equal(one, other)


@NEEDS_LIBRARY
@pytest.mark.slow
def test_a_text_of_more_places_than_32_bits_count_is_searched_to_its_end():
    size = (1 << 32) + (1 << 22)
    rows = [mutate(draw_bases(900, 31), 0.1, i) for i in range(2)]
    planes = np.zeros((3, count_plane_bytes(size)), np.uint8)
    places = (5003, size - 2 - 1000)
    for at, row in zip(places, rows, strict=True):
        first = (at + PAD) // 8 * 8
        bits = np.zeros((3, 8 * 120), np.uint8)
        bits[:, at + PAD - first : at + PAD - first + 900] = row >> 1, row & 1, row >= 0
        planes[:, first // 8 : first // 8 + 120] = np.packbits(bits, axis=1, bitorder="little")
    text = MemoryText(planes, size, (TextStretch("long", 0, size - 1),))
    assert text.n_bases == 1800
    memory = Memory(text, build_sampled_table(text, 9), Chain(np.ones((4**2, 4), np.uint32)))
    window = draw_bases(900, 31)[None, 100:700]
    for turned, one in enumerate((window, turn_codes(window))):
        found = memory.find_all(one)[0][turned]
        assert {at + 100 for at in places} <= set(found.tolist())


EFFORT = Effort(most=300, least_odds=-60.0)


def plant_copies(n: int) -> Codes:
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
    genome = plant_copies(n)
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
    genome = plant_copies(60_000)
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
    genome = plant_copies(30_000)
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
