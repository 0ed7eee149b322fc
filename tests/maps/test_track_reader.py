"""Chances base by base: against a law that can be summed, and against the naive form."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from worlds import uneven_chain

from genodiff.alphabet import DNA
from genodiff.errors import DataError, UsageError
from genodiff.jobs.machine import time_steps
from genodiff.maps.naive_maps import naive_tracks
from genodiff.maps.request import HeldTracksRequest
from genodiff.maps.track_reader import TrackReading, find_information, measure_company, read_pieces
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.variant_windows import (
    HeldContigs,
    count_pieces,
    count_tiles,
    cut_pieces,
    find_bound,
    find_tile,
    merge_intervals,
    place_tile,
)
from tests.scoring.test_variant_scores import COMPLEMENT, make_reader, read_network

LENGTHS = [1, 2, 7, 15, 16, 17, 24, 25, 33, 40, 47]
CONTEXT = 16


def letters(length: int, seed: int = 0, alphabet: str = "ACGT") -> bytes:
    rng = np.random.default_rng(seed)
    return "".join(rng.choice(list(alphabet), length)).encode()


def read(
    reader: MaskedReader, contig: bytes, *spans: tuple[int, int], every: int | None = None
) -> Any:
    genome = HeldContigs({"c": contig})
    spans = spans or ((0, len(contig)),)
    pieces = cut_pieces([("c", *span) for span in spans], genome.contigs, CONTEXT)
    found = [p for _, p in read_pieces(reader, genome, DNA, pieces, TrackReading(CONTEXT, every))]
    return np.concatenate(found)


@pytest.mark.few(16)
@pytest.mark.parametrize("length", [*range(1, 60), 1000, 1023, 1024, 99_999])
@pytest.mark.parametrize("context", [8, 9, 16, 21])
def test_tiles_cover_a_contig_once_and_are_those_of_the_other_strand(length, context):
    tiles = count_tiles(length, context)
    bounds = [find_bound(length, tiles, number) for number in range(tiles + 1)]
    assert bounds[0] == 0
    assert bounds[-1] == length
    assert bounds == [length - one for one in reversed(bounds)]
    widths = np.diff(bounds)
    assert (widths > 0).all()
    assert tiles % 2 == 1
    assert tiles == 1 or widths.max() <= context // 2
    assert np.ptp(widths) <= 2
    pieces = list(cut_pieces([("c", 0, length)], {"c": length}, context))
    assert [one.first for one in pieces] == bounds[:-1]
    assert count_pieces(("c", 0, length), {"c": length}, context) == tiles
    for piece in pieces:
        start, end = place_tile(piece, context, length)
        assert 0 <= start <= piece.first
        assert piece.last <= end <= length
        assert end - start in (min(context, length), min(context, length) - 1)
        assert piece.first - start >= context // 4 - 1 or start == 0
        assert end - piece.last >= context // 4 - 1 or end == length


@pytest.mark.parametrize("most", [3, 12])
def test_tiles_of_another_width_cut_the_same_bases_and_lie_within_their_windows(most):
    pieces = list(cut_pieces([("c", 0, 47)], {"c": 47}, CONTEXT, most))
    counted = count_pieces(("c", 0, 47), {"c": 47}, CONTEXT, most)
    assert len(pieces) == count_tiles(47, CONTEXT, most) == counted
    assert [one.end for one in pieces[:-1]] == [one.start for one in pieces[1:]]
    assert max(one.end - one.start for one in pieces) <= most
    for piece in pieces:
        start, end = place_tile(piece, CONTEXT, 47)
        assert start <= piece.first < piece.last <= end
    assert count_tiles(CONTEXT, CONTEXT, most) == 1


def test_pieces_of_a_region_are_counted_without_being_cut():
    for start, end in ((0, 1), (3, 40), (46, 47), (8, 16), (0, 47)):
        pieces = list(cut_pieces([("c", start, end)], {"c": 47}, CONTEXT))
        assert count_pieces(("c", start, end), {"c": 47}, CONTEXT) == len(pieces)
        assert [pieces[0].start, pieces[-1].end] == [start, end]
        assert all(one.end == other.start for one, other in itertools.pairwise(pieces))
        for piece in pieces:
            assert find_tile(47, CONTEXT, piece.start) == (piece.first, piece.last)


def test_intervals_are_merged_so_that_each_base_is_read_once():
    given = [("b", 5, 9), ("a", 3, 3), ("b", 0, 5), ("b", 2, 4), ("B", 1, 2), ("b", 11, 12)]
    assert merge_intervals(given) == [("B", 1, 2), ("b", 0, 9), ("b", 11, 12)]


@pytest.mark.few(4)
@pytest.mark.parametrize("length", LENGTHS)
def test_an_exact_denoiser_gives_the_chain_s_conditional_law(length):
    chain, contig = uneven_chain(), letters(length, length)
    states = ["ACGT".index(chr(letter)) for letter in contig]
    step, start = chain.transition.numpy(), chain.stationary.numpy()
    found = read(make_reader(chain.denoiser), contig)
    for i in range(length):
        left = start if i == 0 else step[states[i - 1]]
        right = np.ones(4) if i + 1 == length else step[:, states[i + 1]]
        wanted = left * right / (left * right).sum()
        assert found[i] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.few(4)
@pytest.mark.parametrize("strands", ["paired", "single"])
@pytest.mark.parametrize("every", [None, 3, 5, 40])
@pytest.mark.parametrize("length", [1, 15, 17, 40])
def test_the_fast_form_is_the_naive_form(strands, every, length):
    reader, contig = read_network(strands), letters(length, 3, "ACGTN")
    how = {"every": every, "complement": COMPLEMENT if strands == "single" else None}
    ids = DNA.encode(contig)
    naive = naive_tracks(reader.denoiser, reader.diffusion, ids, CONTEXT, **how)
    found = read(reader, contig, every=every)
    assert found == pytest.approx(naive, abs=1e-6, nan_ok=True)
    missing = np.array([chr(letter) == "N" for letter in contig])
    assert (np.isnan(found).all(1) == missing).all()
    assert found[~missing].sum(1) == pytest.approx(1, abs=1e-6)


@pytest.mark.few(3)
@pytest.mark.parametrize("strands", ["paired", "single"])
@pytest.mark.parametrize("every", [None, 4])
@pytest.mark.parametrize("length", [7, 16, 33, 40])
def test_the_other_strand_has_the_same_tracks(strands, every, length):
    contig = letters(length, 5, "ACGTN")
    turned = contig.translate(bytes.maketrans(b"ACGT", b"TGCA"))[::-1]
    found, other = (read(read_network(strands), one, every=every) for one in (contig, turned))
    assert other[::-1, ::-1] == pytest.approx(found, abs=1e-5, nan_ok=True)


def test_a_base_has_the_same_bits_in_any_region_batch_and_company():
    contig = letters(47, 1)
    for every in (None, 3):
        whole = read(read_network("single", batch_size=8), contig, every=every)
        for spans in (((0, 47),), ((5, 6),), ((0, 9), (9, 30), (40, 47))):
            some = read(read_network("single", batch_size=3), contig, *spans, every=every)
            wanted = np.concatenate([whole[start:end] for start, end in spans])
            assert some.tobytes() == wanted.tobytes()


def test_a_piece_does_not_hear_of_the_pieces_before_it():
    """Even of a network whose numbers depend on how many windows stand in a batch."""
    chain = uneven_chain()

    def denoiser(xt: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = chain.denoiser(xt, sigma)
        return found + 0.01 * len(xt) * torch.arange(found.shape[-1])

    contig = letters(150, 9)
    for every in (None, 3):
        whole = read(make_reader(denoiser), contig, (4, 20), (89, 140), every=every)
        rest = read(make_reader(denoiser), contig, (89, 140), every=every)
        assert rest.tobytes() == whole[16:].tobytes()


def test_threads_change_no_bit(threads):
    found = set()
    for n in threads:
        torch.set_num_threads(n)
        found.add(read(read_network(), letters(33, 2)).tobytes())
    assert len(found) == 1


@pytest.mark.slow
def test_the_difference_of_every_to_leave_one_out_is_that_of_all_bases():
    reader, contig = read_network(), letters(60, 4)
    genome = HeldContigs({"c": contig})
    spans = [("c", 0, 60)]
    for every in (2, 4):
        found = measure_company(reader, genome, DNA, spans, TrackReading(CONTEXT, every))
        one, other = (read(reader, contig, every=m).astype(np.float64) for m in (None, every))
        nats = np.ptp(np.log(one) - np.log(other), axis=1)
        assert found["sites"] == 60
        assert 0 < found["nats"][0] <= found["nats"][1] <= nats.max() + 1e-9
        assert found["nats"][1] > np.median(nats)
    alone = measure_company(reader, genome, DNA, spans, TrackReading(CONTEXT, 16))
    assert alone["nats"] == (0, 0)
    assert measure_company(reader, HeldContigs({"c": b"NNN"}), DNA, [("c", 0, 3)],
                           TrackReading(CONTEXT, 2)) is None  # fmt: skip


def test_information_is_two_bits_less_the_entropy():
    p = np.array([[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0], [np.nan] * 4])
    assert find_information(p) == pytest.approx([0, 2, 1, math.nan], nan_ok=True)


def test_settings_and_letters_that_cannot_be_meant_are_refused():
    for how in ({"context": 7}, {"every": 1}):
        with pytest.raises(UsageError, match="is below"):
            HeldTracksRequest("ACGT", **how)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"between 1 and 12: 'x' at position 3"):
        read(read_network(), b"ACxTACGTACGT")


@pytest.mark.parametrize(("first", "n"), [(0.2, 3), (9.0, 1)])
def test_a_step_is_timed_without_the_first_for_about_a_second(monkeypatch, first, n):
    """After a long first step there is one more."""
    clock = [7.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    def step() -> int:
        clock[0] += first if clock[0] == 7.0 else 0.4
        return 5

    assert time_steps(step) == pytest.approx(0.4 / 5)
    assert clock[0] == pytest.approx(7.0 + first + n * 0.4)
