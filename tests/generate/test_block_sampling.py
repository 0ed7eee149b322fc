"""Records that are drawn block after block: the law that the bound is of, and the same bytes."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import markov_world
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from markov_world import MASK, distance, draft, drawn
from tiny_networks import network
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.backbones.blocks import BlockPast, read_by_pass
from genodiff.counter import Purpose, uniform_rows, uniforms
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objective import OBJECTIVES
from genodiff.diffusion.objectives.block import BlockDiffusion
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions
from genodiff.diffusion.schedule import Linear
from genodiff.errors import UsageError
from genodiff.generate import filler
from genodiff.generate.block_reading import list_reads, plan_blocks
from genodiff.generate.filler import RecordParts
from genodiff.generate.infill import split_contig
from genodiff.generate.sample import Sampling, infill, measure_workload, plan_draft, sample

PROCESS = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
MASKED = [name for name, one in SAMPLERS.items() if "masked" in one.fits]


def model(block: int, *, scale: float = 1.0, **settings: Any) -> Any:
    """A small network of random weights in the place of a trained model."""
    net = network(3, scale=scale, **{"strands": "single"} | settings)
    return markov_world.model(net, 32, objective=BlockDiffusion(PROCESS, block=block))


def draw_naively(of: Any, start: Tensor, seed: int, name: str, steps: int) -> Tensor:
    """Each block by its sampler, from a whole pass in double precision for each evaluation."""
    net, x, size = of.backbone.double(), start.clone(), of.objective.block
    order, token = (
        torch.from_numpy(uniform_rows(seed, one, range(len(start)), len(start[0])))
        for one in (Purpose.SAMPLE_ORDER, Purpose.SAMPLE_TOKEN)
    )
    for begin in range(0, x.shape[1], size):
        here = slice(begin, min(begin + size, x.shape[1]))
        past = x[:, :begin]

        for row in range(len(x)):

            def denoiser(xt: Tensor, sigma: Tensor, past: Tensor = past[row : row + 1]) -> Tensor:
                whole = torch.cat([past, xt], 1)
                return read_by_pass(net, whole, whole, size)[:, past.shape[1] :]

            options = SamplerOptions(order[row, None, here], token[row, None, here], steps)
            found = SAMPLERS[name].draw(PROCESS, denoiser, x[row, None, here], options)
            x[row, here] = found.x0[0]
    return x


@pytest.mark.few(2)
@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize(("length", "block"), [(7, 3), (3, 1), (4, 9)])
@torch.inference_mode()
def test_kept_states_draw_what_a_whole_pass_for_each_evaluation_draws(name, length, block):
    of = model(block)
    found = drawn(sample(of, 2, length, seed=5, sampler=name, steps=6))
    wanted = draw_naively(of, torch.full((2, length), MASK), 5, name, 6)
    assert np.array_equal(np.asarray(found), wanted.numpy())


def test_the_bytes_depend_on_neither_batch_nor_threads_and_close_draws_are_decided():
    of = model(4, scale=2.0)
    wanted = drawn(sample(of, 3, 10, seed=2, batch_size=3))
    threads = torch.get_num_threads()
    try:
        for n, batch_size in ((1, 1), (2, 2)):
            torch.set_num_threads(n)
            assert np.array_equal(drawn(sample(of, 3, 10, seed=2, batch_size=batch_size)), wanted)
    finally:
        torch.set_num_threads(threads)


def call_all_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draw is decided by the record's own states in double precision."""
    init = SamplerOptions.__init__

    def begin(self: Any, *args: Any, **more: Any) -> None:
        init(self, *args, **(more | {"tolerance": 1e3}))

    monkeypatch.setattr(SamplerOptions, "__init__", begin)


def test_every_draw_may_be_decided_in_double_precision(monkeypatch):
    of = model(4)
    wanted = drawn(sample(of, 2, 10, seed=2))
    call_all_close(monkeypatch)
    assert np.array_equal(drawn(sample(of, 2, 10, seed=2)), wanted)


def find_law(
    read: Callable[[Tensor], Tensor], whole: Tensor, places: range, hidden: slice
) -> np.ndarray:
    """The chance of the bases at these places, over all orders in which they may be drawn."""
    found = []
    for order in itertools.permutations(places):
        chance, xt = torch.ones(len(whole), dtype=torch.float64), whole.clone()
        xt[:, hidden] = MASK
        for place in order:
            with torch.no_grad():
                logp = PROCESS.log_x0(read(xt), xt)[:, place].double()
            chance *= logp.gather(1, whole[:, place, None])[:, 0].exp()
            xt[:, place] = whole[:, place]
        found.append(chance.numpy())
    return np.mean(found, 0)


@pytest.mark.few(1)
@pytest.mark.parametrize(("length", "block"), [(3, 2), (3, 1)])
def test_samples_follow_the_law_that_the_bound_is_of(length, block):
    of = model(block, scale=2.0)
    ids = drawn(sample(of, 4000, length, seed=4, sampler="first-hitting", batch_size=2000))
    all_of = torch.tensor(list(itertools.product(DNA.targets, repeat=length)))
    law = np.ones(len(all_of))
    for begin in range(0, length, block):
        places = range(begin, min(begin + block, length))
        read = functools.partial(of.backbone, clean=all_of, block=block)
        law *= find_law(read, all_of, places, slice(begin, None))
    assert law.sum() == pytest.approx(1, abs=1e-5)
    number = {tuple(one): i for i, one in enumerate(all_of.tolist())}
    found = [number[tuple(one)] for one in np.asarray(ids).tolist()]
    assert abs(distance(found, law)) < 4
    assert distance(found, np.full(len(law), 1 / len(law))) > 10, "no law but its own"


def test_a_longer_record_begins_as_a_shorter_one_and_what_is_given_stays():
    of = model(4)
    short, long = (drawn(sample(of, 2, n, seed=9))[:, :24] for n in (24, 41))
    assert np.array_equal(short, long)
    start = draft("ACGTTGCANNNNNNN")
    [one] = infill(of, [start], seed=9)
    assert np.array_equal(one.ids[:8], start[:8])
    assert not (one.ids == MASK).any()
    assert one.nfe <= 7


def test_the_work_is_that_of_the_blocks():
    of, gaps = model(4), np.ones(10, np.bool_)
    assert plan_blocks(gaps, 4) == [(0, 4), (4, 8), (8, 10)]
    assert plan_blocks(np.zeros(10, np.bool_), 4) == []
    how = Sampling(sampler="first-hitting")
    work = measure_workload(of, how, [(gaps, plan_draft(of, how, gaps))])
    assert (work.windows, work.bases, work.evaluations) == (3, 10, 10)
    [one] = sample(of, 1, 10, sampler="first-hitting")
    assert one.nfe == 10


def test_what_blocks_cannot_do_is_refused():
    of = model(4)
    with pytest.raises(UsageError, match="--stride is for windows"):
        list(sample(of, 1, 8, stride=4))
    with pytest.raises(UsageError, match="both strands at once"):
        list(sample(model(4, strands="paired"), 1, 8))


def open_records(block: int | None) -> tuple[Any, list[Any], Sampling]:
    """A model of blocks, or of windows that slide, and records to fill."""
    of = model(block or 4)
    if block is None:
        of.objective = OBJECTIVES["mdlm"](PROCESS)
    n = 50 if block is None else 36  # blocks take longer
    texts = [draft("N" * (n + 25)), draft("ACGTTG" + "N" * 34), draft("N" * n + "AAA")]
    return of, texts, Sampling(steps=3, batch_size=3, stride=None if block else 8)


def fill(block: int | None, batch_size: int, parts: RecordParts) -> tuple[list[Any], int]:
    """The records, and how many evaluations they took."""
    of, texts, how = open_records(block)
    calls: list[int] = []
    sized = replace(how, batch_size=batch_size)
    return list(infill(of, texts, how=sized, seed=3, tick=calls.append, parts=parts)), sum(calls)


@functools.cache
def draw_whole(block: int | None, batch_size: int = 3) -> tuple[list[Any], list[bytes], int]:
    """The same, and between them what is kept of the records."""
    kept: list[bytes] = []
    found, calls = fill(block, batch_size, RecordParts([], 0, kept.append))
    return found, kept, calls


@pytest.fixture
def short_parts(monkeypatch):
    monkeypatch.setattr(filler, "EACH", 6)


@pytest.mark.few(1)
@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("block", [4, None])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
@pytest.mark.parametrize("keeps", [1, 4, 7])
def test_records_go_on_after_what_is_kept_of_them(block, batch_size, keeps):
    whole, kept, _ = draw_whole(block)
    assert len(kept) > 7
    again, calls = fill(block, batch_size, RecordParts(kept[:keeps]))
    for one, wanted in zip(again, whole, strict=True):
        assert np.array_equal(one.ids, wanted.ids)
        assert one.nfe == wanted.nfe
    assert calls == draw_whole(block, batch_size)[2]


@pytest.mark.few(1)
@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("block", [4, None])
@pytest.mark.parametrize("keeps", [1, 4, 7])
def test_what_is_kept_of_records_is_read(block, keeps):
    whole, kept, _ = draw_whole(block)
    of, texts, how = open_records(block)
    other = [part[:-1] + bytes([part[-1] ^ 1]) for part in kept[:keeps]]
    changed = list(infill(of, texts, how=how, seed=3, parts=RecordParts(other)))
    pairs = zip(changed, whole, strict=True)
    assert any(not np.array_equal(one.ids, wanted.ids) for one, wanted in pairs)
    late = list(infill(of, texts[2:], how=how, seed=3, first=2, parts=RecordParts(kept, 2)))
    assert np.array_equal(late[0].ids, whole[2].ids)


def fill_naively(of: Any, start: Any, seed: int, blocks: list[tuple[int, int]]) -> Any:
    """The gaps of one record in these blocks, from its own states in double precision."""
    net, x = of.backbone.double(), torch.from_numpy(start.astype(np.int64))[None]
    u = [
        torch.from_numpy(uniforms(seed, one, 0, len(start)))[None]
        for one in (Purpose.SAMPLE_ORDER, Purpose.SAMPLE_TOKEN)
    ]
    past = BlockPast(net, 1)
    for begin, end in blocks:
        if (x[0, begin:end] == MASK).any():
            here = x[:, begin:end]
            options = SamplerOptions(u[0][:, begin:end], u[1][:, begin:end], 256)
            draw = SAMPLERS["ancestral"].draw
            x[:, begin:end] = draw(PROCESS, lambda xt, sigma: past.read(xt), here, options).x0
        past.add(x[:, begin:end])
    return x[0].numpy()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("ACGTNNGTACGTNNNA", [(0, 4), (4, 8), (8, 12), (12, 16)]),
        ("ACGTGNNGTACGTNNNA", [(0, 4), (4, 5), (5, 9), (9, 13), (13, 17)]),
        ("NNACNNNNNNNGTACG", [(0, 4), (4, 8), (8, 12)]),
        ("NNANNNTTTTTTNACG", [(0, 3), (3, 7), (7, 11), (11, 12), (12, 16)]),
    ],
)
@torch.inference_mode()
def test_a_gap_begins_a_block_that_sees_what_stands_after_it(text, blocks):
    of, start = model(4, scale=2.0), draft(text)
    [one] = infill(of, [start], seed=3)
    assert np.array_equal(one.ids, fill_naively(of, start, 3, blocks))
    assert np.array_equal(one.ids[start != MASK], start[start != MASK])


@pytest.mark.few(1)
def test_a_gap_follows_the_law_of_its_block_with_what_stands_after_it():
    of, text = model(4, scale=2.0), "ACGTNNGT"
    found = infill(of, [draft(text)] * 3000, seed=4, how=Sampling(sampler="first-hitting"))
    ids = np.stack([one.ids for one in found])[:, 4:6]
    pairs = torch.tensor(list(itertools.product(DNA.targets, repeat=2)))
    whole = torch.from_numpy(draft(text).astype(np.int64)).repeat(len(pairs), 1)
    whole[:, 4:6] = pairs
    read = functools.partial(read_by_pass, of.backbone, whole, size=4)
    law = find_law(read, whole, range(4, 6), slice(4, 6))
    assert law.sum() == pytest.approx(1, abs=1e-5)
    number = {tuple(one): i for i, one in enumerate(pairs.tolist())}
    assert abs(distance([number[tuple(one)] for one in ids.tolist()], law)) < 4
    other = infill(of, [draft("ACGTNNCA")] * 3000, seed=4, how=Sampling(sampler="first-hitting"))
    numbers = [number[tuple(one.ids[4:6].tolist())] for one in other]
    assert distance(numbers, law) > 10, "what stands after a gap decides"


def test_templates_of_any_gaps_are_the_same_bytes_in_any_batch(monkeypatch):
    of = model(4, scale=2.0)
    texts = ["NNACNNNNNGTACGNN", "ACGTGNNGTA", "NNNNNNNNN", "ACG", "TTTTTTTTTTNNNNA"]
    drafts = [draft(text) for text in texts]
    wanted = [one.ids for one in infill(of, drafts, seed=2, how=Sampling(batch_size=1))]
    found = infill(of, drafts, seed=2, how=Sampling(batch_size=3))
    assert all(np.array_equal(one.ids, a) for one, a in zip(found, wanted, strict=True))
    call_all_close(monkeypatch)
    found = infill(of, drafts, seed=2, how=Sampling(batch_size=5))
    assert all(np.array_equal(one.ids, a) for one, a in zip(found, wanted, strict=True))


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 9))
def test_every_gap_is_in_one_block_and_all_before_it_is_read(wanted, size):
    gaps = np.array(wanted, np.bool_)
    plan = plan_blocks(gaps, size)
    assert all(0 < end - start <= size and gaps[start] for start, end in plan)
    assert [a for _, a in plan[:-1]] <= [b for b, _ in plan[1:]]
    covered = [i for start, end in plan for i in range(start, end)]
    assert len(covered) == len(set(covered))
    assert set(np.flatnonzero(gaps).tolist()) <= set(covered)
    reads = list_reads(plan, size)
    read = [i for start, end in reads for i in range(start, end)]
    assert read == list(range(plan[-1][0] if plan else 0))
    assert {start for start, _ in plan[:-1]} <= {start for start, _ in reads}


def test_a_region_sees_as_much_before_it_as_a_window_and_its_block_after_it():
    gaps = [(100, 103), (105, 107), (170, 172), (300, 311), (390, 395)]
    found = [(s.start, s.end, s.rounds) for s in split_contig("x", gaps, 400, 64, 32, 8)]
    assert found == [
        (36, 178, [(100, 108), (170, 178)]),
        (236, 316, [(300, 308), (308, 316)]),
        (326, 398, [(390, 398)]),
    ]
