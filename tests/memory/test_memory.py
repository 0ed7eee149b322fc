"""What a memory must and must not do to a denoiser, whatever its search."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_up_text import draw_bases, hide, mutate
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.remembering import remembering
from genodiff.memory.search import Effort
from genodiff.memory.text import MOST_WINDOW, NONE, Codes, turn_codes

LENGTH = 256
EXHAUSTIVE = Effort(scored=None)
GENOME = draw_bases(20_000, 5)
IDS = np.array([*DNA.targets, DNA.mask_id])


@pytest.fixture(scope="module")
def memory():
    return Memory.build([("one", 0, GENOME[:12_000]), ("two", 100, GENOME[12_000:])])


def invent_logits(xt: Tensor, *_: Tensor) -> Tensor:
    """A denoiser: logits that depend on the batch's shape alone."""
    return torch.randn(*xt.shape, DNA.padded_size, generator=torch.Generator().manual_seed(1))


def to_ids(codes: Codes) -> Tensor:
    return torch.from_numpy(IDS[codes])


def count_bits(memory: Memory | None, clean: Codes, codes: Codes, **more: object) -> float:
    """Bits of the hidden bases under a denoiser that says 1/4, with the memory."""

    def know_nothing(xt: Tensor) -> Tensor:
        return torch.zeros(*xt.shape, DNA.padded_size)

    denoiser = know_nothing if memory is None else remembering(know_nothing, memory, **more)
    logp = denoiser(to_ids(codes[None]))[0][:, list(DNA.targets)].log_softmax(-1)
    hidden = torch.from_numpy(codes == NONE)
    truth = torch.from_numpy(clean.astype(np.int64))
    return float(-logp[torch.arange(len(clean)), truth][hidden].mean() / np.log(2))


@pytest.mark.parametrize("effort", [Effort(), EXHAUSTIVE])
@pytest.mark.parametrize("turned", [False, True])
def test_a_diverged_copy_is_remembered_on_either_strand(memory, effort, turned):
    memory = memory.with_effort(effort)
    x = mutate(GENOME[3000 : 3000 + LENGTH], 0.05, 6)
    x = np.delete(np.insert(x, 100, [0, 1, 2]), range(200, 203))  # an insertion and a deletion
    x = turn_codes(x) if turned else x
    assert count_bits(memory, x, hide(x, 0.5, 7)) < 0.7
    assert count_bits(memory, x, hide(x, 0.75, 7)) < 1.0


def test_an_empty_memory_leaves_every_bit():
    xt = to_ids(hide(draw_bases(LENGTH, 1), 0.5, 1)[None])
    for stretches in ([], [("c", 0, np.full(300, NONE, np.uint8))]):
        memory = Memory.build(stretches)
        for effort in (Effort(), EXHAUSTIVE):
            wrapped = remembering(invent_logits, memory.with_effort(effort))
            assert torch.equal(wrapped(xt), invent_logits(xt))
        assert (
            memory.recall(hide(draw_bases(20, 1), 0.5, 1)[None], every=True).background.min() == 1
        )


@pytest.mark.parametrize("effort", [Effort(), Effort(scored=None, most=2000, least_odds=-60.0)])
def test_every_visible_pattern_of_a_small_world(effort):
    """200 bases, windows of 12: a distribution, w0 p + copy, and the same on both strands.

    `test_copying.py` has the enumeration.
    """
    parts = [("one", 0, draw_bases(90, 1)), ("two", 7, draw_bases(110, 2))]
    numbers = MemoryNumbers(copies=1.0, start=0.2, end=0.1, shift=0.0)
    memory = Memory.build(parts, k=4, order=2, numbers=numbers).with_effort(effort)
    shown = (np.arange(4096)[:, None] >> np.arange(12)) & 1 == 1
    codes = np.where(shown, parts[0][2][30:42], NONE).astype(np.uint8)
    found, turned = memory.recall(codes), memory.recall(turn_codes(codes))
    assert np.abs(found.background + found.copy.sum(-1) - 1).max() < 1e-12
    assert (found.background < 0.5).any()
    assert np.abs(turned.background[:, ::-1] - found.background).max() < 1e-9
    assert np.abs(turned.copy[:, ::-1, ::-1] - found.copy).max() < 1e-9
    columns = list(DNA.targets)
    logits = invent_logits(to_ids(codes)).double()
    mixed = remembering(lambda *_: logits, memory)(to_ids(codes))[..., columns].softmax(-1)
    own = logits[..., columns].softmax(-1).numpy()
    expected = np.where(shown[..., None], own, found.background[..., None] * own + found.copy)
    assert np.abs(mixed.numpy() - expected).max() < 1e-12


def test_a_memory_of_something_else_says_nothing(memory):
    """Of a window that the genome does not hold: |Δ| ≤ .001 bits, by index and exhaustively."""
    for seed, share in ((11, 0.05), (12, 0.5), (13, 0.95)):
        x = draw_bases(LENGTH, seed)
        codes = hide(x, share, seed)
        plain = count_bits(None, x, codes)
        for effort in (Effort(), EXHAUSTIVE):
            assert abs(count_bits(memory.with_effort(effort), x, codes) - plain) < 1e-3


def test_a_shuffled_genome_says_nothing():
    """Its bases are those of the window's own genome, in another order: |Δ| ≤ .001 bits."""
    rng = np.random.default_rng(3)
    units = [draw_bases(n, n) for n in (1, 2, 3, 7, 40)]  # runs of short repeats, as genomes have
    parts = [
        np.concatenate([draw_bases(60, i), np.tile(units[i % 5], 30 // len(units[i % 5]))])
        for i in range(200)
    ]
    genome = np.concatenate(parts)
    memory = Memory.build([("c", 0, rng.permutation(genome))])
    for start, share in ((500, 0.05), (4000, 0.5), (9000, 0.8)):
        x = genome[start : start + LENGTH]
        codes = hide(x, share, start)
        plain = count_bits(None, x, codes)
        assert abs(count_bits(memory, x, codes) - plain) < 1e-3
        own = Memory.build([("c", 0, genome)])
        assert count_bits(own, x, codes) < plain - 0.5


def test_only_masked_places_and_only_bases_change(memory):
    x = GENOME[500 : 500 + LENGTH].copy()
    xt = to_ids(hide(x, 0.5, 3)[None])
    xt[0, 7], xt[0, 8] = DNA.pad_id, DNA.tokens.index("N")
    found, plain = remembering(invent_logits, memory)(xt), invent_logits(xt)
    masked = xt == DNA.mask_id
    assert torch.equal(found[~masked], plain[~masked])
    others = [i for i in range(DNA.padded_size) if i not in DNA.targets]
    assert torch.equal(found[..., others], plain[..., others])
    assert (found[masked] != plain[masked]).any(-1).float().mean() > 0.9
    torch.testing.assert_close(
        found[..., list(DNA.targets)].logsumexp(-1), plain[..., list(DNA.targets)].logsumexp(-1)
    )


@pytest.mark.parametrize("says", [True, False, None])
def test_a_denoiser_is_told_what_is_recalled_where_it_says_that_it_reads_it(memory, says):
    told: list[bool] = []

    def denoiser(xt: Tensor, **more: Tensor) -> Tensor:
        told.append("recalled" in more)
        return torch.zeros(*xt.shape, DNA.padded_size)

    if says is not None:
        denoiser.recalls = says  # type: ignore[attr-defined]
    remembering(denoiser, memory)(to_ids(hide(GENOME[:LENGTH], 0.5, 7)[None]))
    assert told == [says is True]


def test_a_network_that_knows_both_strands_still_does(memory):
    """Logits of the reverse complement are those of the window, turned: gap ≤ 1e-6."""
    turn = torch.from_numpy(DNA.rc(np.arange(DNA.padded_size))[::-1].copy())
    weights = torch.randn(DNA.padded_size, 9, generator=torch.Generator().manual_seed(2))

    def see(xt: Tensor) -> Tensor:
        return sum(weights[torch.roll(xt, j, 1)].roll(j, 2) for j in range(9))  # type: ignore[return-value]

    def network(xt: Tensor) -> Tensor:
        logits = torch.zeros(*xt.shape, DNA.padded_size)
        logits[..., :9] = see(xt)
        other = torch.zeros_like(logits)
        other[..., :9] = see(turn[xt.flip(1)])
        return logits + other.flip(1)[..., turn]

    denoiser, targets = remembering(network, memory), list(DNA.targets)
    for share in (0.2, 0.6, 0.9):
        xt = to_ids(hide(mutate(GENOME[7000 : 7000 + LENGTH], 0.1, 8), share, 9)[None])
        there, back = denoiser(xt), denoiser(turn[xt.flip(1)])
        assert not torch.equal(there, network(xt))
        gap = there.softmax(-1) - back.flip(1)[..., turn].softmax(-1)
        assert gap[..., targets].abs().max() < 1e-6


@pytest.mark.parametrize("effort", [Effort(), EXHAUSTIVE])
@pytest.mark.parametrize("turned", [False, True])
def test_its_own_locus_left_out_is_as_if_it_were_not_there(effort, turned):
    """Planted as a contig of its own, on either strand; the chain is the same for both."""
    x = mutate(GENOME[3000 : 3000 + LENGTH], 0.2, 4)
    planted = turn_codes(x) if turned else x
    parts = [("one", 0, GENOME[:9000]), ("two", 0, GENOME[9000:])]
    bare = Memory.build(parts, k=7).with_effort(effort)
    full = replace(Memory.build([parts[0], ("own", 0, planted), parts[1]], k=7), chain=bare.chain)
    full = full.with_effort(effort)
    codes = hide(x, 0.5, 2)
    without = full.text.find_interval("own", 0, LENGTH)
    assert without == (9001, 9001 + LENGTH)
    expected, found = bare.recall(codes[None]), full.recall(codes[None], [without])
    np.testing.assert_allclose(found.background, expected.background, atol=1e-12)
    np.testing.assert_allclose(found.copy, expected.copy, atol=1e-12)
    leaking = full.recall(codes[None])
    assert np.abs(leaking.copy - expected.copy).max() > 0.3


def test_the_bases_under_the_mask_are_never_read():
    """The window's own locus has other bases where the window is masked: the same bits."""
    x = GENOME[3000 : 3000 + LENGTH]
    codes = hide(x, 0.5, 2)
    scrambled = GENOME.copy()
    scrambled[3000 : 3000 + LENGTH] = np.where(codes == NONE, draw_bases(LENGTH, 9), x)
    # A second copy elsewhere, so that there is something to remember.
    both = [np.concatenate([g, mutate(x, 0.1, 3)]) for g in (GENOME, scrambled)]
    first = Memory.build([("c", 0, both[0])])
    second = replace(Memory.build([("c", 0, both[1])]), chain=first.chain)
    without = [first.exclude("c", 3000, 3000 + LENGTH)]
    there, back = first.recall(codes[None], without), second.recall(codes[None], without)
    assert there.background.min() < 0.5
    assert np.array_equal(there.background, back.background)
    assert np.array_equal(there.copy, back.copy)


def test_the_neighbourhood_of_a_window_is_left_out_with_it(memory):
    assert memory.exclude("one", 500, 700) == (300, 900)
    assert memory.exclude("two", 110, 210) == (12_001, 12_001 + 210)  # its contig begins there
    assert memory.exclude("three", 0, 100) == (0, 0)
    assert memory.text.locate(12_001) == ("two", 100)


def test_windows_that_cannot_be_read_are_refused(memory):
    with pytest.raises(ValueError, match="at most"):
        memory.recall(np.zeros((1, MOST_WINDOW + 1), np.uint8))
    with pytest.raises(ValueError, match="1 intervals for 2 windows"):
        memory.recall(np.zeros((2, 10), np.uint8), [(0, 0)])


def test_numbers_are_checked():
    for wrong in (
        {"start": 0.0},
        {"copies": 0.0},
        {"copies": 1.1},
        {"share": (0.5, 0.6)},
        {"end": 0.999},
        {"divergence": (0.9,)},
    ):
        with pytest.raises(ValueError):
            MemoryNumbers(**{"divergence": (0.1, 0.2), "share": (0.5, 0.5), **wrong})
