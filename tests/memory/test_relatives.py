"""Relatives in a small world: what they add to a denoiser, and what they must not change."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from made_up_text import draw_bases, hide, mutate

from genodiff.alphabet import DNA
from genodiff.errors import DataError
from genodiff.memory.alignment import choose_sparse_start
from genodiff.memory.fitting import measure_bits
from genodiff.memory.memory import Memory
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.relatives_fit import fit_relatives, hide_bases, measure_distances
from genodiff.memory.remembering import relating
from genodiff.memory.text import NONE, Codes, turn_codes

LENGTH = 240
ANCESTOR = draw_bases(6000, 1)
TARGET = mutate(ANCESTOR, 0.05, 2)
NEAR, FAR = mutate(ANCESTOR, 0.05, 3), mutate(ANCESTOR, 0.15, 4)
TURNED = np.concatenate([turn_codes(FAR[3000:]), FAR[:3000]])
SHUFFLED = np.random.default_rng(5).permutation(NEAR)
IDS = np.array([*DNA.targets, DNA.mask_id])


def build(*genomes: Codes) -> list[Memory]:
    return [Memory.build([(f"g{i}", 0, g)]) for i, g in enumerate(genomes)]


def cut(starts: Sequence[int]) -> Codes:
    return np.stack([TARGET[a : a + LENGTH] for a in starts])


@pytest.fixture(scope="module")
def relatives():
    return fit_relatives(build(NEAR, TURNED), cut(range(0, 3000, 500)), rounds=3)


CLEAN = cut((3300, 4100, 5200))
SHARES = (0.2, 0.5, 0.8)
MASKED = np.stack([hide(x, s, i) for i, (x, s) in enumerate(zip(CLEAN, SHARES, strict=True))])
UNIFORM = np.full((*MASKED.shape, 4), 0.25)


def measure(relatives: Relatives) -> float:
    p = relatives.weigh(MASKED, UNIFORM)
    return float(measure_bits(p / p.sum(-1, keepdims=True), MASKED, CLEAN).mean())


@pytest.mark.slow
def test_a_copy_begins_as_readily_as_hidden_bases_want(relatives):
    """Where the windows are alike a copy begins at once; where nothing lies, nothing is learnt."""
    windows = cut(range(0, 3000, 250))
    hidden = hide_bases(windows)
    shares = (hidden == NONE).mean(1)
    assert (np.diff(shares) > 0).all()
    assert shares[-1] == 1
    assert ((hidden == windows) | (hidden == NONE)).all()
    numbers = relatives.genomes[0].numbers

    def choose(genome: Codes, start: float) -> float:
        memory = build(genome)[0]
        given = memory.text, *memory.search(hidden), windows
        tried = type(numbers)(**{**numbers.model_dump(), "start": start})
        return choose_sparse_start(*given, tried).sparse_start

    assert choose(NEAR, 0.02) > 0.05
    assert choose(SHUFFLED, 0.3) == 0.3


def test_a_window_of_which_most_is_hidden_has_a_start_of_its_own(relatives):
    """Whatever else is in the batch; the numbers of a genome without one are written as before."""
    genome = relatives.genomes[0]
    plain = type(genome.numbers)(**{**genome.numbers.model_dump(), "sparse_start": 0.0})
    assert "sparse_start" not in plain.model_dump()
    quick = type(plain)(**{**plain.model_dump(), "start": 0.4})
    both = type(plain)(**{**plain.model_dump(), "sparse_start": 0.4})
    windows = np.stack([hide(CLEAN[0], 0.1, 1), hide(CLEAN[1], 0.75, 1), hide(CLEAN[2], 0.5, 1)])
    alone, other, mixed = (
        Relatives((genome._replace(numbers=n),), None).align(windows) for n in (plain, quick, both)
    )
    np.testing.assert_array_equal(mixed[:, [0, 2]], alone[:, [0, 2]])
    np.testing.assert_array_equal(mixed[:, 1], other[:, 1])
    assert (alone[:, 1] != other[:, 1]).any()


@pytest.mark.slow
def test_a_second_genome_says_more_and_a_shuffled_one_nothing(relatives):
    windows = cut(range(0, 3000, 500))
    alone = fit_relatives(build(NEAR), windows, rounds=3)
    both, one = measure(relatives), measure(alone)
    assert both < one - 0.02
    assert one < 1.1
    with_noise = fit_relatives(build(NEAR, SHUFFLED), windows, rounds=3)
    assert measure(with_noise) < one + 0.001
    assert measure(fit_relatives(build(SHUFFLED), windows, rounds=3)) < 2.001


def test_a_genome_of_other_composition_is_judged_against_the_target():
    """Beside its own chain of GC every diagonal of AT looks like a copy (bacteria beside yeast)."""
    rng = np.random.default_rng(7)
    strange = rng.choice(4, 200_000, p=(0.2, 0.3, 0.3, 0.2)).astype(np.uint8)
    rich = rng.choice(4, (10, 512), p=(0.3, 0.2, 0.2, 0.3)).astype(np.uint8)
    (genome,) = fit_relatives(build(strange), rich[:6], rounds=3).genomes
    assert np.shape(genome.numbers.background) == (64, 4)
    found = Relatives((genome,), None).align(rich[6:])
    assert found.sum(-1).mean() < 0.01  # by its own chain: 0.25
    again = type(genome.numbers).model_validate_json(genome.numbers.model_dump_json())
    kept = RelativeGenome.join(build(strange)[0], again)
    assert (Relatives((kept,), None).align(rich[6:]) == found).all()


def test_a_relative_keeps_its_own_chain(relatives):
    assert all(one.numbers.background == () for one in relatives.genomes)
    assert "background" not in relatives.genomes[0].numbers.model_dump()


def test_only_masked_places_change(relatives):
    """Codes hold no base where a place is hidden; ids of a denoiser's window are the mask there."""
    ids = torch.from_numpy(IDS[MASKED])
    seen = []

    def denoiser(xt: torch.Tensor) -> torch.Tensor:
        seen.append(xt)
        return torch.zeros((*xt.shape, 12))

    found = relating(denoiser, relatives)(ids)
    assert seen[0] is ids
    changed = (found != 0).any(-1).numpy()
    assert not changed[MASKED < NONE].any()
    assert changed[MASKED == NONE].mean() > 0.9


def test_the_other_strand_gives_the_same(relatives):
    there = relatives.weigh(MASKED, UNIFORM)
    back = relatives.weigh(turn_codes(MASKED), UNIFORM)
    np.testing.assert_allclose(back[:, ::-1, ::-1], there, rtol=1e-6)


def test_a_window_does_not_depend_on_its_batch(relatives):
    all_ = relatives.weigh(MASKED, UNIFORM)
    for i in range(len(MASKED)):
        alone = relatives.weigh(MASKED[i : i + 1], UNIFORM[:1])
        np.testing.assert_allclose(alone[0], all_[i], rtol=1e-12)


def test_no_relatives_give_the_networks_own_bits(relatives):
    def denoiser(xt: torch.Tensor) -> torch.Tensor:
        return torch.randn((*xt.shape, 12), generator=torch.Generator().manual_seed(1))

    ids = torch.from_numpy(IDS[MASKED])
    assert relating(denoiser, Relatives((), None)) is denoiser
    np.testing.assert_array_equal(Relatives((), None).weigh(MASKED, UNIFORM), 1)
    strange = torch.from_numpy(IDS[hide(draw_bases(LENGTH, 77), 0.97, 1)[None]])
    np.testing.assert_array_equal(relating(denoiser, relatives)(strange), denoiser(strange))
    mixed = relating(denoiser, relatives)(ids)
    chances = mixed[..., list(DNA.targets)].double().logsumexp(-1)
    expected = denoiser(ids)[..., list(DNA.targets)].double().logsumexp(-1)
    np.testing.assert_allclose(chances, expected, atol=1e-5)


def test_rows_of_several_lengths_are_read_each_by_itself(relatives):
    def denoiser(xt: torch.Tensor) -> torch.Tensor:
        return torch.zeros((*xt.shape, 12))

    relate, ids = relating(denoiser, relatives), torch.from_numpy(IDS[MASKED])
    padded = torch.full((2, LENGTH), DNA.pad_id)
    padded[0], padded[1, :150] = ids[0], ids[1, :150]
    found = relate(padded)
    np.testing.assert_allclose(found[1, :150], relate(ids[1:2, :150])[0], atol=1e-6)
    assert not found[1, 150:].any()


def test_a_locus_is_left_out_where_it_is_said(relatives):
    """A strain has the window itself; left out, it says as much as if it were not there."""
    strain = Memory.build([("s", 0, TARGET)])
    windows = cut(range(0, 3000, 500))
    both = Relatives(
        (relatives.genomes[0]._replace(memory=strain), relatives.genomes[1]), relatives.columns
    )
    own = [(strain.exclude("s", a, a + LENGTH), (0, 0)) for a in range(0, 3000, 500)]
    hidden = np.stack([hide(x, 0.5, i) for i, x in enumerate(windows)])
    assert both.align(hidden)[0].sum(-1).mean() > 0.9
    assert both.align(hidden, own)[0].sum(-1).mean() < 0.02


def test_distances_are_changes_of_a_place(relatives):
    windows = cut(range(0, 6000 - LENGTH, LENGTH))
    found = measure_distances(relatives.align(windows), windows)
    assert found[0, 1] == pytest.approx(0.1, abs=0.02)
    assert found[0, 2] == pytest.approx(0.21, abs=0.04)
    np.testing.assert_array_equal(found, found.T)


def test_no_window_to_fit_on_is_refused():
    with pytest.raises(DataError, match="no windows to fit relatives on"):
        fit_relatives(build(NEAR), np.zeros((0, LENGTH), np.uint8))
    assert fit_relatives([], CLEAN) == Relatives((), None)
