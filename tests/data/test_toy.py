"""The toy source: its likelihood against the plain forward algorithm of the same hidden Markov
model, its laws, and what a network learns of it.
"""

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import genodiff
from genodiff.alphabet import DNA, SOFT
from genodiff.data.toy import ToySource

SMALL = ToySource(
    motifs=("ACG", "GGTAC", "T"), motif_rate=0.4, fidelity=0.9, at=0.6, lengths=(500,)
)
TOY = ToySource()
GENOME = "60aa0e14ff85c8f24f9b3f4c33cb48cb3de6694e73c6005a040d10caadd19af2"
SOURCES = pytest.mark.parametrize("source", [SMALL, TOY], ids=["small", "toy"])


def chain(source: ToySource) -> tuple[NDArray, NDArray, NDArray]:
    """Stationary law, transitions and emissions of the hidden states: background, then each motif's
    positions.
    """
    laws = [np.array([source.at, 1 - source.at, 1 - source.at, source.at])[None] / 2]
    for motif in source.motifs:
        law = np.full((len(motif), 4), (1 - source.fidelity) / 3)
        law[range(len(motif)), ["ACGT".index(c) for c in motif]] = source.fidelity
        laws += [law, law[::-1, ::-1]]
    starts = np.cumsum([0, *map(len, laws)])
    n = starts[-1]
    begin = np.zeros(n)
    begin[0] = 1 - source.motif_rate
    begin[starts[1:-1]] = source.motif_rate / (2 * len(source.motifs))
    move = np.eye(n, k=1)
    move[starts[1:] - 1] = begin
    system = np.vstack((move.T - np.eye(n), np.ones(n)))
    stationary = np.linalg.lstsq(system, np.eye(n + 1)[-1], rcond=None)[0]
    return stationary, move, np.concatenate(laws)


def forward(source: ToySource, bases: NDArray) -> float:
    """log P(bases) in nats by the textbook recursion."""
    law, move, emit = chain(source)
    total = 0.0
    for i, base in enumerate(bases):
        law = (law if i == 0 else law @ move) * emit[:, base]
        total += np.log(law.sum())
        law = law / law.sum()
    return total


@SOURCES
@pytest.mark.parametrize("length", [1, 2, 3, 5, 11, 12, 13, 40, 300])
def test_the_likelihood_is_that_of_the_plain_forward_algorithm(source, length):
    for index in range(3):
        ids = source.sample(length, 7, index)
        assert float(source.log_likelihood(ids)) == pytest.approx(
            forward(source, ids - 7), rel=1e-10
        )


@given(st.lists(st.sampled_from(DNA.targets), min_size=1, max_size=200))
def test_a_sequence_and_its_other_strand_are_equally_probable(ids):
    forward_, reverse = TOY.log_likelihood(np.array([ids, DNA.rc(np.array(ids))], np.uint8))
    assert forward_ == pytest.approx(reverse, rel=1e-12)


@given(st.lists(st.sampled_from([*DNA.targets, 11]), min_size=1, max_size=6), st.integers(0, 9))
def test_unknown_letters_and_padding_are_summed_over(ids, pad):
    row = np.array([*ids, *[DNA.pad_id] * pad], np.uint8)
    options = [[i] if i in DNA.targets else DNA.targets for i in ids]
    everything = np.array(list(itertools.product(*options)), np.uint8)
    total = np.log(np.exp(SMALL.log_likelihood(everything)).sum())
    assert float(SMALL.log_likelihood(row)) == pytest.approx(total, rel=1e-10)


def test_soft_mask_bits_and_wider_integers_change_nothing():
    ids = TOY.sample(300, 3)
    for same in (ids | SOFT, ids.astype(np.int64)):
        assert TOY.log_likelihood(same) == TOY.log_likelihood(ids)
    assert TOY.bits_per_base(ids | SOFT) == TOY.bits_per_base(ids)


def test_a_batch_of_windows_is_scored_row_by_row():
    rows = TOY.sample(6 * 50, 3).reshape(2, 3, 50)
    one_by_one = [[float(TOY.log_likelihood(row)) for row in group] for group in rows]
    assert TOY.log_likelihood(rows).tolist() == pytest.approx(np.array(one_by_one), rel=1e-13)


@SOURCES
def test_samples_have_the_sources_law_from_their_first_base_on(source):
    stationary, _, emit = chain(source)
    expected = stationary @ emit
    draws = np.stack([source.sample(40, 11, i) for i in range(800)]) - 7
    for column in (0, 1, 20, 39):
        share = np.bincount(draws[:, column], minlength=4) / len(draws)
        assert np.abs(share - expected).max() < 4.5 * np.sqrt(0.25 / len(draws))


def test_a_sample_is_a_function_of_its_seed_and_index():
    assert (TOY.sample(500, 1, 0) == TOY.sample(500, 1, 0)).all()
    assert (TOY.sample(500, 1, 0) != TOY.sample(500, 1, 1)).any()
    assert (TOY.sample(500, 1, 0) != TOY.sample(500, 2, 0)).any()


def test_no_other_source_codes_its_samples_in_fewer_bits():
    """Gibbs' inequality, with every neighbour of the parameters in the place of "other"."""
    ids = TOY.sample(20_000, 5).reshape(-1, 500)
    best = TOY.bits_per_base(ids)
    others = {"fidelity": (0.9, 0.995), "motif_rate": (0.06, 0.25), "at": (0.3,)}
    for change in ({name: value} for name, some in others.items() for value in some):
        assert ToySource(**change).bits_per_base(ids) > best + 0.004


def test_the_toy_genome_has_about_two_bits_by_letters_and_one_and_a_quarter_in_truth():
    ids = np.concatenate([ids for _, ids in TOY.contigs()][:4])
    p = np.bincount(ids, minlength=11)[7:11] / len(ids)
    assert 1.97 < -(p * np.log2(p)).sum() < 1.99
    assert 1.24 < TOY.bits_per_base(ids.reshape(-1, 256)) < 1.28
    short, long = (TOY.bits_per_base(ids.reshape(-1, n)) for n in (256, 65536))
    assert 0.01 < short - long < 0.03


def test_the_genome_is_the_same_on_every_machine():
    contigs = dict(TOY.contigs())
    assert [*contigs] == [f"toy{i + 1}" for i in range(10)]
    first = "GGTATAACGAATCACTTCCGGTTGAGGATATCTGATAAGGTAGAATCACTTCCGGAATCA"
    assert DNA.decode(contigs["toy1"][:60]) == first
    assert hashlib.sha256(np.concatenate([*contigs.values()]).tobytes()).hexdigest() == GENOME
    assert TOY.fingerprint() != SMALL.fingerprint()


@pytest.mark.slow
def test_a_tiny_network_closes_a_third_of_the_gap_in_sixty_steps_and_never_beats_the_source(
    tmp_path,
):
    done = genodiff.train(
        "toy", out=tmp_path / "run", preset="caduceus-ps-tiny", seq_len=256, batch_size=16,
        max_steps=60, lr=8e-3, warmup_steps=6, weight_decay=0.0, betas=[0.9, 0.95], ema_decay=0.9,
        validate_windows=0, device="cpu",
    )  # fmt: skip
    assert done.step == 60
    found = genodiff.evaluate(tmp_path / "run", device="cpu", mixture=False)
    source, letters = found["source_bits"], found["markov_bits"]["0"]
    assert source < found["bits_per_base"] < letters - (letters - source) / 3
