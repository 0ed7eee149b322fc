"""Scores of variants: against laws that can be summed, and against their own definitions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tiny_networks
import torch
from scipy.special import stdtrit
from worlds import uneven_chain

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear
from genodiff.laws.methods import make_pair
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.methods import ScoreOptions
from genodiff.scoring.naive_variants import naive_chain, naive_llr, naive_nelbo
from genodiff.scoring.span_scores import Estimate, run_steps, score_chain, score_llr
from genodiff.scoring.spelling_pair import SpellingPair
from genodiff.scoring.variant_scores import run_together, start_score
from genodiff.scoring.window_scores import DRAWS, FIRST_ROUNDS, score_nelbo

COMPLEMENT = np.array(tiny_networks.COMPLEMENT, np.uint8)
TARGETS, MASK = (7, 8, 9, 10), 3


def make_reader(denoiser: Any, **options: Any) -> MaskedReader:
    return MaskedReader(denoiser, MaskedDiffusion(Linear(), MASK, TARGETS), **options)


def read_network(strands: str = "paired", **options: Any) -> MaskedReader:
    both = strands == "single"
    network = tiny_networks.network(strands=strands)
    return make_reader(network, complement=COMPLEMENT, both_strands=both, **options)


WIDTHS = [(1, 1), (2, 2), (4, 4), (3, 0), (0, 4), (2, 5), (5, 5), (5, 1)]


@pytest.mark.parametrize(("ref", "alt"), WIDTHS)
def test_chain_is_the_conditional_log_ratio_of_an_exact_denoiser(ref, alt):
    chain, pair = uneven_chain(), make_pair(ref + 10 * alt, (ref, alt))
    found = run_steps(
        score_chain(make_reader(chain.denoiser), pair, 1, 4), make_reader(chain.denoiser)
    )
    wanted = chain.log_p_span(pair.alt, pair.alt_span) - chain.log_p_span(pair.ref, pair.ref_span)
    assert found.value == pytest.approx(wanted, abs=1e-6)
    assert found.se == pytest.approx(0, abs=1e-6)


def test_llr_is_exact_for_one_base_and_not_for_two():
    chain = uneven_chain()
    reader = make_reader(chain.denoiser)
    for width, exact in ((1, True), (2, False)):
        pair = make_pair(3, (width, width))
        found = run_steps(score_llr(reader, pair), reader)
        wanted = chain.log_p_span(pair.alt, pair.alt_span) - chain.log_p_span(
            pair.ref, pair.ref_span
        )
        assert (abs(found.value - wanted) < 1e-6) == exact
        assert found.windows == 1


@pytest.mark.few(2)
@pytest.mark.parametrize(("ref", "alt"), [(1, 1), (3, 3), (0, 2), (3, 1)])
def test_fast_forms_are_the_naive_forms(ref, alt):
    reader = read_network()
    process, pair = reader.diffusion, make_pair(5, (ref, alt), flank=3)
    assert run_steps(score_llr(reader, pair), reader).value == pytest.approx(
        naive_llr(reader.denoiser, process, pair), abs=1e-5
    )
    assert run_steps(score_chain(reader, pair, 1, 8), reader).value == pytest.approx(
        naive_chain(reader.denoiser, process, pair), abs=1e-5
    )
    found = run_steps(score_nelbo(reader, pair, 1, 0.1, 2000), reader)
    naive = naive_nelbo(reader.denoiser, process, pair)
    assert abs(found.value - naive) < 4 * found.se + 1e-4
    assert found.se < 0.2


def test_drawn_orders_agree_with_all_orders():
    reader, pair = read_network(), make_pair(6, (4, 4), flank=4)
    drawn = run_steps(score_chain(reader, pair, 1, 3), reader)
    every = run_steps(score_chain(reader, pair, 1, 4), reader)
    assert every.se == 0 < drawn.se
    assert every.value == pytest.approx(
        naive_chain(reader.denoiser, reader.diffusion, pair), abs=1e-5
    )
    assert abs(drawn.value - every.value) < 5 * drawn.se


def score(reader: MaskedReader, pair: SpellingPair, method: Any, seed: int = 1) -> Estimate:
    return run_steps(
        start_score(reader, pair, ScoreOptions(method=method, se=9.0, seed=seed)), reader
    )


def test_both_strands_of_a_network_that_reads_one_are_averaged():
    reader, pair = read_network("single"), make_pair(9, (1, 1))
    given = make_reader(reader.denoiser)
    parts = [score(given, some, "llr").value for some in (pair, pair.turn(COMPLEMENT))]
    assert abs(parts[0] - parts[1]) > 1e-3
    assert score(reader, pair, "llr").value == pytest.approx(sum(parts) / 2, abs=1e-12)


@pytest.mark.slow
def test_company_batches_and_threads_change_no_bit():
    pairs = [make_pair(i, (1 + i % 3, 1 + i % 4)) for i in range(5)]

    def run(order: Sequence[int], batch_size: int, method: Any) -> dict[int, Estimate]:
        reader = read_network(batch_size=batch_size)
        jobs = [start_score(reader, pairs[i], ScoreOptions(method=method, se=9.0)) for i in order]
        return dict(zip(order, run_together(jobs, reader), strict=True))

    for method, batch_size in (("chain", 5), ("nelbo", 32)):
        alone = {i: score(read_network(batch_size=1), pair, method) for i, pair in enumerate(pairs)}
        assert run(range(4, -1, -1), batch_size, method) == alone
    few = run([0, 1], 1, "chain")
    torch.set_num_threads(2)
    assert few == run([1, 0], 2, "chain")


def test_one_window_serves_all_that_ask_for_it():
    reader, pair, jobs = read_network(), make_pair(1, (1, 1)), []
    for other in set(TARGETS) - {pair.ref[8]}:
        alt = np.where(pair.ref_span, other, pair.ref).astype(np.uint8)
        jobs.append(score_llr(reader, SpellingPair(pair.ref, alt, pair.ref_span, pair.alt_span)))
    assert len({estimate.value for estimate in run_together(jobs, reader)}) == 3
    assert reader.evaluations == 1


def test_draws_depend_on_the_seed_and_the_pair():
    reader = read_network()
    one, other = make_pair(1, (5, 5)), make_pair(2, (5, 5))
    assert one.key() == one.swap().key() != other.key()
    assert score(reader, one, "nelbo", 1).value != score(reader, one, "nelbo", 2).value


@pytest.mark.slow
def test_nelbo_stops_at_the_wanted_error_or_at_its_limit():
    chain, pair = uneven_chain(), make_pair(3, (2, 2))
    reader = make_reader(chain.denoiser)
    loose, close = (run_steps(score_nelbo(reader, pair, 1, se, 10**6), reader) for se in (9, 0.05))
    assert loose.freedom == FIRST_ROUNDS - 1
    assert close.se < 0.06 < loose.se
    assert close.freedom > loose.freedom
    limited = run_steps(score_nelbo(reader, pair, 1, 1e-4, 400), reader)
    assert limited.freedom + 1 == 400 // (2 * DRAWS)
    assert limited.se > 1e-4


@pytest.mark.slow
def test_nelbo_never_reads_more_windows_than_it_may():
    reader, pair = read_network(), make_pair(10, (2, 5))
    for most, rounds in ((104, FIRST_ROUNDS), (200, 24), (203, 24)):  # (200 - 8) / 8
        options = ScoreOptions(method="nelbo", se=1e-9, max_evaluations=most)
        found = run_steps(start_score(reader, pair, options), reader)
        assert found.freedom == rounds - 1
        assert found.windows <= most


@pytest.mark.slow
def test_intervals_of_nelbo_hold_the_truth_as_often_as_they_say():
    chain, inside = uneven_chain(), 0
    reader = make_reader(chain.denoiser, batch_size=256)
    widths = [(1, 1), (3, 3), (0, 4), (5, 2)]
    for number in range(400):
        pair = make_pair(number, widths[number % 4], flank=10)
        found = run_steps(score_nelbo(reader, pair, 1, 0.3, 10**5), reader)
        reach = stdtrit(found.freedom, 0.975) * found.se
        inside += abs(found.value - chain.log_p(pair.alt) + chain.log_p(pair.ref)) <= reach
    assert 366 <= inside <= 393
