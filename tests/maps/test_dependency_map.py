"""Dependency maps: against laws that can be written down, and against their own double loop."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import tiny_networks
import torch
from numpy.typing import NDArray
from worlds import World, dna_like, markov_chain

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear
from genodiff.maps.dependency_map import (
    DependencyMap,
    MapWindow,
    _count_groups,
    check_pairs,
    find_log_odds,
)
from genodiff.maps.naive_maps import naive_dependencies
from genodiff.scoring.masked_reader import MaskedReader

COMPLEMENT = np.array(tiny_networks.COMPLEMENT, np.uint8)
TARGETS, MASK, N = (7, 8, 9, 10), 3, 11


def read_map(
    reader: MaskedReader, ids: Any, first: int = 0, last: int | None = None, every: Any = None
) -> NDArray[np.float32]:
    found = open_map(reader, ids, first, last, every)
    return np.abs(np.stack([row.change for row in found.read_sources()])).max(1)


def open_map(
    reader: MaskedReader, ids: Any, first: int = 0, last: int | None = None, every: Any = None
) -> DependencyMap:
    ids = np.asarray(ids, np.uint8)
    window = MapWindow(ids, first, len(ids) if last is None else last, 0, len(ids), "c")
    return DependencyMap(reader, window, reader.diffusion.targets, every)


def network_reader(strands: str = "paired", **options: Any) -> MaskedReader:
    both = strands == "single"
    process = MaskedDiffusion(Linear(), MASK, TARGETS)
    net = tiny_networks.network(strands=strands)
    return MaskedReader(net, process, complement=COMPLEMENT, both_strands=both, **options)


def letters(length: int, seed: int = 0, unknown: tuple[int, ...] = ()) -> NDArray[np.uint8]:
    ids = np.random.default_rng(seed).choice(TARGETS, length).astype(np.uint8)
    ids[list(unknown)] = N
    return ids


def pairwise_world(length: int, seed: int) -> tuple[World, NDArray[np.float64]]:
    """log p(x) = sum of h_i(x_i) and of W_ij(x_i, x_j), up to a constant; W_ij = W_ji turned."""
    rng = np.random.default_rng(seed)
    fields, couplings = rng.normal(size=(length, 4)), rng.normal(size=(length, length, 4, 4))
    couplings = couplings + couplings.transpose(1, 0, 3, 2)
    couplings[np.arange(length), np.arange(length)] = 0
    states = np.array(list(itertools.product(range(4), repeat=length)))
    at = np.arange(length)
    energy = fields[at, states].sum(1)
    energy += couplings[at[:, None], at, states[:, :, None], states[:, None]].sum((1, 2)) / 2
    p = torch.from_numpy(np.exp(energy - np.logaddexp.reduce(energy)))
    return World(torch.tensor(TARGETS)[torch.from_numpy(states)], p, TARGETS, MASK, 16), couplings


def test_a_pairwise_law_gives_the_closed_form():
    world, couplings = pairwise_world(5, 1)
    ids = letters(5, 2)
    states = np.array([TARGETS.index(int(i)) for i in ids])
    # The law with zero couplings of its targets gives the fields back: h_j from p itself.
    reader = MaskedReader(world.denoiser, world.diffusion())
    given = open_map(reader, ids).read_given()
    wanted = np.zeros((5, 5))
    for i, j in itertools.permutations(range(5), 2):
        for a in range(4):
            shift = couplings[i, j, a] - couplings[i, j, states[i]]  # of log p_j, up to a constant
            moved = find_log_odds((given[j] + shift)[None]) - find_log_odds(given[j][None])
            wanted[i, j] = max(wanted[i, j], np.abs(moved).max())
    found = read_map(reader, ids)
    assert found == pytest.approx(wanted, abs=1e-5)
    assert (wanted[~np.eye(5, dtype=bool)] > 0.1).all()


def test_two_letters_give_a_symmetric_map_of_four_couplings():
    """log odds of two letters move by 2 (W_ij + ...) whichever of i and j is asked."""
    stay = 0.8
    world = markov_chain(6, stay)
    reader = MaskedReader(world.denoiser, world.diffusion())
    found = read_map(reader, world.sequences[13].numpy())
    near = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) == 1
    assert found == pytest.approx(found.T, abs=1e-6)
    assert found[near] == pytest.approx(2 * math.log(stay / (1 - stay)), abs=1e-5)
    assert found[~near] == pytest.approx(0, abs=1e-6)


def test_independent_letters_depend_on_nothing():
    chain = dna_like(24, stay=0.25)
    reader = MaskedReader(chain.denoiser, MaskedDiffusion(Linear(), MASK, TARGETS))
    assert read_map(reader, letters(24)) == pytest.approx(0, abs=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("strands", ["paired", "single"])
@pytest.mark.parametrize(("length", "unknown"), [(1, ()), (5, ()), (6, (0, 3))])
def test_the_fast_form_is_the_double_loop(strands, length, unknown):
    reader, ids = network_reader(strands), letters(length, 3, unknown)
    complement = COMPLEMENT if strands == "single" else None
    wanted = naive_dependencies(reader.denoiser, reader.diffusion, ids, complement)
    found = read_map(reader, ids)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isnan(found).sum() == length**2 - (length - len(unknown)) ** 2
    assert np.nan_to_num(found) == pytest.approx(np.nan_to_num(wanted), abs=1e-5)
    assert np.nan_to_num(np.diag(found)).tolist() == [0.0] * length
    assert length == 1 or np.nanmax(found) > 0.01


@pytest.mark.slow
def test_a_region_of_a_window_is_a_block_of_its_map():
    reader, ids = network_reader(), letters(8, 4)
    whole = naive_dependencies(reader.denoiser, reader.diffusion, ids)
    for first, last in ((0, 3), (2, 6), (7, 8)):
        found = read_map(reader, ids, first, last)
        assert found == pytest.approx(whole[first:last, first:last], abs=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize("strands", ["paired", "single"])
@pytest.mark.parametrize("every", [None, 3])
def test_the_other_strand_has_the_map_turned(strands, every):
    reader, ids = network_reader(strands), letters(7, 5, (3,))
    found = read_map(reader, ids, every=every)
    turned = read_map(reader, COMPLEMENT[ids[::-1]], every=every)
    assert np.nan_to_num(turned[::-1, ::-1]) == pytest.approx(np.nan_to_num(found), abs=1e-5)
    assert np.nanmax(np.abs(found - found.T)) > 1e-3  # and a network's map is not symmetric


def test_signs_and_bases_are_those_of_the_largest_change():
    reader, ids = network_reader(), letters(5, 6)
    found = open_map(reader, ids)
    logs = find_log_odds(found.read_given())
    for source in range(5):
        row = found.read_source(source)
        own = TARGETS.index(int(ids[source]))
        assert row.change[own].tolist() == [0.0] * 5
        assert row.base[own].tolist() == [-1] * 5
        for a in set(range(4)) - {own}:
            other = ids.copy()
            other[source] = TARGETS[a]
            moved = find_log_odds(open_map(reader, other).read_given()) - logs
            moved[source] = 0
            best = np.abs(moved).argmax(1)
            assert row.change[a] == pytest.approx(moved[np.arange(5), best], abs=1e-5)
            assert np.delete(row.base[a], source).tolist() == np.delete(best, source).tolist()
            assert row.base[a, source] == -1


@pytest.mark.slow
def test_groups_are_the_exact_map_where_company_says_nothing():
    """In a Markov chain a mask two bases away changes nothing, since its neighbour is visible."""
    chain = dna_like(21)
    reader = MaskedReader(chain.denoiser, MaskedDiffusion(Linear(), MASK, TARGETS))
    ids = letters(21, 7, (5,))
    exact = read_map(reader, ids)
    for every in (3, 4, 10, 20):
        found = read_map(reader, ids, every=every)
        assert np.nan_to_num(found) == pytest.approx(np.nan_to_num(exact), abs=1e-6)
    assert np.nanmax(exact) > 1


@pytest.mark.slow
def test_company_is_measured_at_the_strongest_pairs_and_over_the_map():
    reader, ids = network_reader(), letters(9, 8)
    exact = open_map(reader, ids)
    whole = read_map(reader, ids)
    same = check_pairs(exact, whole)
    assert same["worst"] < 1e-5
    assert same["strongest"] == pytest.approx(float(whole.max()), abs=1e-5)
    near = check_pairs(exact, read_map(reader, ids, every=2))
    assert near["worst"] > same["worst"]
    assert near["worst"] <= np.abs(read_map(reader, ids, every=2) - whole).max() + 1e-5
    assert check_pairs(exact, np.zeros((1, 1), np.float32)) is None


@pytest.mark.few(3)
@pytest.mark.parametrize("every", [None, 2, 3, 50])
@pytest.mark.parametrize("unknown", [(), (0, 1, 6)])
def test_evaluations_are_known_beforehand(every, unknown):
    reader = network_reader()
    found = open_map(reader, letters(7, 9, unknown), every=every)
    list(found.read_sources())
    assert reader.evaluations == _count_groups(found.groups)
    if not unknown and every in (None, 50):
        assert reader.evaluations == 7 + 3 * 7 * 6


def test_a_network_without_company_changes_no_bit_with_the_batch():
    ids = letters(5, 10)
    one, *more = (read_map(network_reader(batch_size=n), ids, every=2) for n in (1, 5, 64))
    assert all(np.array_equal(one, other) for other in more)


def test_a_row_goes_on_where_another_ended():
    found = open_map(network_reader(), letters(4, 11), every=2)
    whole = [row.change for row in found.read_sources()]
    rest = [row.change for row in found.read_sources(skip=2)]
    assert all(np.array_equal(one, other) for one, other in zip(whole[2:], rest, strict=True))
