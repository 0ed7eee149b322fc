"""Batches: pure functions of (seed, number), whatever the workers, ranks, micro-batches and
restarts.
"""

import time

import numpy as np
import pytest
import torch
from genomes import covered, random_dna, windows_of
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from genodiff.alphabet import DNA, SOFT
from genodiff.counter import Purpose, uniform_rows, uniforms
from genodiff.data.dna_store import N_ID
from genodiff.data.loader import (
    Batch,
    BatchStream,
    EvalBatches,
    TrainBatches,
    _epoch,
    complement_rows,
    golden_stride,
)
from genodiff.errors import UsageError
from genodiff.runs.denoiser import make_inputs

CONTIGS = {
    "a": random_dna(1000),
    "b": "acgtn" * 60 + "N" * 20 + random_dna(200, 1).lower(),
    "s": random_dna(21, 2),
    "v": random_dna(160, 3),
}


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    return windows_of(tmp_path_factory.mktemp("l"), CONTIGS, 32, valid=("v",))


def same(one: Batch, two: Batch) -> bool:
    return all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(one, two, strict=True)
    )


def together(parts: list[Batch]) -> Batch:
    """Micro-batches of one step as one batch in the order of their slots."""
    order = torch.argsort(torch.cat([p.slot for p in parts]))
    columns = [
        torch.cat(column)[order] if isinstance(column[0], torch.Tensor) else column[0]
        for column in zip(*parts, strict=True)
    ]
    return Batch(*columns)


def test_a_batch_does_not_depend_on_what_was_asked_before(windows):
    one = TrainBatches(windows, 3, 8)
    forwards = [one.batch(k) for k in range(30)]
    two = TrainBatches(windows, 3, 8)
    assert all(same(two.batch(k), forwards[k]) for k in (29, 3, 17, 0))


def test_seeds_and_steps_give_other_batches(windows):
    batches = [TrainBatches(windows, seed, 8).batch(k) for seed in (1, 2) for k in (0, 1)]
    for field in ("u_mask", "u_time", "x0"):
        assert len({getattr(b, field).numpy().tobytes() for b in batches}) == 4
    assert len({b.u_shared for b in batches}) == 4


@pytest.mark.parametrize(
    ("accumulate", "world_size"), [(1, 2), (2, 1), (4, 1), (2, 2), (1, 4), (3, 4)]
)
def test_micro_batches_and_ranks_deal_out_the_same_steps(windows, accumulate, world_size):
    whole = TrainBatches(windows, 5, 24, rc_augment=True)
    ranks = [
        TrainBatches(windows, 5, 24, accumulate, rank, world_size, rc_augment=True)
        for rank in range(world_size)
    ]
    for step in (0, 1, 7):
        parts = [
            rank.batch(step * accumulate + micro) for micro in range(accumulate) for rank in ranks
        ]
        assert sum(len(p.index) for p in parts) == 24
        assert same(together(parts), whole.batch(step))


@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
@pytest.mark.parametrize("workers", [0, 3])
def test_any_number_of_workers_gives_the_batches_in_one_order(windows, workers):
    batches = TrainBatches(windows, 5, 4, accumulate=2)
    loaded = DataLoader(BatchStream(batches, 3, 10), batch_size=None, num_workers=workers)
    found = list(loaded)
    assert len(found) == 7
    assert all(same(Batch(*b), batches.batch(3 + i)) for i, b in enumerate(found))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_epoch_sees_no_base_twice_and_nearly_all_of_them(windows, seed):
    batches = TrainBatches(windows, seed, 1)
    for epoch in (0, 1, 5):
        index = np.arange(windows.per_epoch) + epoch * windows.per_epoch
        count = covered(windows.store, *batches.place(index))
        assert count.max() == 1
        assert count.sum() > 0.85 * windows.intervals.n_bases


def test_epochs_differ_in_order_and_phase(windows):
    orders = [_epoch(1, epoch, windows) for epoch in range(12)]
    assert len({phase for _, phase in orders}) > 4
    assert not (orders[0][0][:20] == orders[1][0][:20]).all()


def test_n_padding_and_specials_are_visible_and_never_maskable(windows):
    batches = TrainBatches(windows, 5, 16, rc_augment=True)
    seen: set[int] = set()
    for k in range(windows.per_epoch // 16 + 1):
        batch = batches.batch(k)
        seen |= set(batch.x0.unique().tolist())
        assert torch.equal(batch.maskable, torch.isin(batch.x0, torch.tensor(DNA.targets)))
        real = torch.arange(32) < batch.lengths[:, None]
        assert torch.equal(batch.x0 == DNA.pad_id, ~real)
        assert not batch.soft[~real].any()
        assert batch.maskable.any(1).all()
        assert batch.x0.dtype == torch.int64
        assert batch.u_mask.dtype == torch.float64
    assert seen == {*DNA.targets, N_ID, DNA.pad_id}


def test_the_bases_and_their_case_are_the_genomes(windows):
    batches = TrainBatches(windows, 9, 16)
    batch = batches.batch(2)
    starts, lengths = batches.place(batch.index.numpy())
    for row, (start, n) in enumerate(zip(starts, lengths, strict=True)):
        stored = windows.store.flat[start : start + n]
        assert batch.x0[row, :n].tolist() == (stored & 0x7F).tolist()
        assert batch.soft[row, :n].tolist() == (stored >= SOFT).tolist()


def test_augmentation_turns_about_half_of_the_windows_whole_and_leaves_the_draws_alone(windows):
    plain, turned = TrainBatches(windows, 5, 64), TrainBatches(windows, 5, 64, rc_augment=True)
    n_turned = 0
    for k in range(4):
        a, b = plain.batch(k), turned.batch(k)
        assert torch.equal(a.u_mask, b.u_mask)
        for row, n in enumerate(a.lengths.tolist()):
            other = DNA.rc(a.x0[row, :n].numpy())
            same_strand = torch.equal(a.x0[row], b.x0[row])
            assert same_strand or b.x0[row, :n].tolist() == other.tolist()
            assert same_strand or b.soft[row, :n].tolist() == a.soft[row, :n].flip(0).tolist()
            n_turned += not same_strand
    assert 90 < n_turned < 166


@given(
    st.lists(
        st.lists(st.sampled_from([7, 8, 9, 10, 11, 135, 136, 137, 138, 139]), min_size=1),
        min_size=1,
    )
)
def test_the_other_strand_of_the_other_strand_is_the_window_with_n_case_and_padding(rows):
    width = max(map(len, rows))
    data = np.full((len(rows), width), DNA.pad_id, np.uint8)
    for i, row in enumerate(rows):
        data[i, : len(row)] = row
    lengths = np.array([len(row) for row in rows])
    turned = complement_rows(data, lengths)
    assert (complement_rows(turned, lengths) == data).all()
    for i, row in enumerate(rows):
        text = DNA.decode(np.array(row) & 0x7F, np.array(row) >= SOFT)
        other = turned[i, : len(row)]
        assert DNA.decode(other & 0x7F, other >= SOFT) == text[::-1].translate(
            str.maketrans("ACGTacgt", "TGCAtgca")
        )


def test_soft_masked_bases_weigh_what_they_are_told_to(windows):
    batch = TrainBatches(windows, 5, 64).batch(0)
    assert batch.soft.any()
    assert make_inputs(batch, torch.nn.Identity(), "cpu").clean.weight is None
    weight = make_inputs(batch, torch.nn.Identity(), "cpu", 0.1).clean.weight
    assert weight.dtype == torch.float32
    assert torch.equal(weight == 1, ~batch.soft & batch.maskable)
    assert torch.equal(weight == 0, ~batch.maskable)
    assert torch.allclose(weight[batch.soft & batch.maskable], torch.tensor(0.1))


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_evaluation_sees_every_window_once_a_repeat(windows, batch_size, repeats):
    batches = EvalBatches(windows, batch_size, 4, repeats)
    found = list(batches)
    assert len(found) == len(batches)
    assert torch.cat([b.index for b in found]).tolist() == list(range(repeats * len(windows)))
    assert sorted(torch.cat([b.slot for b in found]).tolist()) == list(
        range(repeats * len(windows))
    )
    assert {b.n_slots for b in found} == {repeats * len(windows)}
    assert {b.u_shared for b in found} == {found[0].u_shared}


def test_evaluation_draws_do_not_depend_on_the_batch_size(windows):
    one, two = list(EvalBatches(windows, 5, 4)), list(EvalBatches(windows, 1000, 4))
    for field in ("x0", "u_mask", "u_time", "slot", "maskable"):
        assert torch.equal(torch.cat([getattr(b, field) for b in one]), getattr(two[0], field))


def test_the_slots_of_one_windows_repeats_and_of_its_neighbours_lie_apart(windows):
    found = list(EvalBatches(windows, 1000, 4, 3))
    slots = torch.stack([b.slot for b in found])
    n = found[0].n_slots
    assert (slots.sort(0).values.diff(dim=0) > n / 8).all()
    assert ((slots[0].diff().abs() > n / 20) & (slots[0].diff().abs() < 19 * n / 20)).all()


@given(st.integers(1, 3000))
def test_slots_of_neighbours_are_spread_and_none_is_taken_twice(n):
    slots = np.arange(n) * golden_stride(n) % n
    assert len(set(slots.tolist())) == n


@pytest.mark.parametrize("n", [512, 765, 1144, 7188, 10090])
def test_every_stretch_of_windows_meets_all_times_evenly(n):
    slots = np.arange(n) * golden_stride(n) % n
    for first in range(0, n - 64, 97):
        gaps = np.diff(np.sort(slots[first : first + 64]))
        assert gaps.max() < 3 * n / 64


@pytest.mark.parametrize(
    "layout", [(0, 1, 0, 1), (8, 3, 0, 1), (8, 1, 2, 2), (8, 1, 0, 3), (8, 0, 0, 1)]
)
def test_a_batch_that_cannot_be_dealt_evenly_is_a_usage_error(windows, layout):
    with pytest.raises(UsageError):
        TrainBatches(windows, 1, *layout)


def test_rows_of_uniforms_are_the_single_draws():
    rows = uniform_rows(7, Purpose.MASK, [3, 0, 2**40], 5, sub_index=1)
    for row, index in zip(rows, [3, 0, 2**40], strict=True):
        assert row.tolist() == uniforms(7, Purpose.MASK, index, 5, sub_index=1).tolist()


def test_the_loader_takes_less_than_a_fiftieth_of_a_cpu_training_step(windows, tmp_path):
    """A step costs about 50 µs a base on one core: 2 % are 1 µs a base."""
    windows = windows_of(tmp_path, {"a": random_dna(300_000)}, 1024)
    batches = TrainBatches(windows, 1, 32, rc_augment=True)
    batches.batch(0)
    start = time.process_time()
    for k in range(20):
        batches.batch(k)
    assert (time.process_time() - start) / (20 * 32 * 1024) < 1e-6
