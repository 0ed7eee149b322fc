"""Votes, mutation-selection columns and reading frames, against worlds summed by hand."""

from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.linalg import expm

from genodiff.memory.frames import (
    ANY,
    CONTEXTS,
    STATES,
    STEADY,
    STEPS,
    FrameState,
    read_contexts,
    run_frames,
)
from genodiff.memory.profiles import (
    HEADS,
    ProfileColumns,
    ProfileScores,
    fit_profiles,
    fix,
    list_classes,
    measure_near_kappa,
    spread_weights,
)
from genodiff.memory.tree import (
    ProfileNumbers,
    Tree,
    count_votes,
    measure_change,
    measure_kappa,
    score_heads,
    score_plainly,
    score_votes,
    share_bases,
    weigh_relatives,
)

TREE = Tree((-1, 3, 3, 0), (0.0, 0.1, 0.4, 0.2))  # the target above an inner node of two genomes
GC, KAPPA = 0.4, 5.0


def spell_rates(rate: float, fitness: np.ndarray, kappa: float) -> np.ndarray:
    """q(a -> b) as the module's docstring has it."""
    share, mutation = share_bases(GC), np.zeros((4, 4))
    for a, b in product(range(4), repeat=2):
        if a != b:
            mutation[a, b] = share[b] * (kappa if (a ^ b) == 2 else 1)
    mutation /= share @ mutation.sum(1)
    out = np.zeros((4, 4))
    for a, b in product(range(4), repeat=2):
        if a != b:
            s = fitness[b] - fitness[a]
            out[a, b] = rate * mutation[a, b] * (s / (1 - np.exp(-s)) if s else 1)
    return out - np.diag(out.sum(1))


@cache
def weigh_slowly(kappa: float) -> np.ndarray:
    """(4, 4, C, 4): pi(b) / p(b) P(column | b) of each column of two bases, summed over the inner
    node i; a relative's base in units of the bases' shares."""
    rates, fitness, _ = list_classes()
    share, out = share_bases(GC), np.zeros((4, 4, len(rates), 4))
    for c, rate in enumerate(rates):
        flow = spell_rates(rate, fitness[c], kappa)
        steps = [expm(flow * length) for length in TREE.length]
        profile = share * np.exp(fitness[c])
        leaves = np.einsum("bi,ix,iy->xyb", steps[3], steps[1], steps[2])
        out[:, :, c] = leaves * profile / profile.sum() / share
    return out / share[:, None, None, None] / share[:, None, None]


def make_world(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, n)
    columns = np.where(rng.random((2, n)) < 0.8, codes, rng.integers(0, 4, (2, n)))
    return np.eye(4)[columns], codes.astype(np.uint8)


def fit_world(over: np.ndarray, codes: np.ndarray) -> ProfileNumbers:
    far = np.full((3, 3), 0.5) - 0.5 * np.eye(3)
    return fit_profiles(over[:, None], codes[None], far, TREE, GC)


@pytest.fixture(scope="module")
def world():
    """Columns of 700 positions with the target's bases, and numbers that are fitted on them."""
    over, codes = make_world(700, 6)
    return over, codes, fit_world(over, codes)


def test_columns_are_the_sums_over_all_histories():
    every = list(product(range(4), repeat=2))
    found = ProfileColumns(TREE, GC, KAPPA).read(np.eye(4)[np.array(every).T])
    expected = weigh_slowly(KAPPA).reshape(16, -1, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    share = share_bases(GC)
    joint = found * [[[share[a] * share[b]]] for a, b in every] * share
    np.testing.assert_allclose(joint.sum((0, 2)), 1)  # of each class, over all columns and bases


def test_the_score_is_the_log_ratio_of_the_mixtures(world):
    over, codes, numbers = world
    over, codes = over[:, None, :60], codes[None, :60]
    change, weights = measure_change(over, codes)[0], np.array(numbers.weights)
    mirror = list_classes()[2]
    columns = weigh_slowly(numbers.kappa)[tuple(over[:, 0].argmax(-1))]

    def mix(state: FrameState, i: int) -> np.ndarray:
        context = ANY
        if state.kind == "codon":
            at = [i + state.strand * (j - state.phase) for j in range(3) if j != state.phase]
            if min(at) >= 0 and max(at) < 60:
                pair = [int(codes[0, j]) if state.strand > 0 else 3 - int(codes[0, j]) for j in at]
                context = 4 * pair[0] + pair[1]
        of = weights[state.group]
        z = CONTEXTS + int(np.searchsorted(numbers.edges, change[i]))
        w = of[context] * of[z] / of[ANY]
        return (w if state.strand > 0 else w[mirror]) / w.sum()

    mixed = np.array([[mix(state, i) @ columns[i] for state in STATES] for i in range(60)])
    own = np.take_along_axis(mixed, codes[0][:, None, None].astype(int), -1)[..., 0]
    likely = np.einsum("lk,lkb->lb", run_frames(own[None]).told[0], mixed)
    expected = np.log(likely / likely[np.arange(60), codes[0].astype(int)][:, None])
    expected += HEADS / 2 * score_heads(over[:, 0], codes[0], change)
    found = ProfileScores(TREE, GC, numbers).score(over, codes)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_both_strands_have_the_same_scores(world):
    over, codes, numbers = world
    scores = ProfileScores(TREE, GC, numbers)
    over, codes = over[:, None, :150], codes[None, :150]
    here = scores.score(over, codes)
    there = scores.score(over[:, :, ::-1, ::-1], 3 - codes[:, ::-1])
    np.testing.assert_allclose(here, there[:, ::-1, ::-1], atol=1e-9)


@pytest.mark.slow
def test_weights_sum_to_one_and_slow_stretches_have_slower_classes():
    rng = np.random.default_rng(3)
    quick = np.arange(4000) < 2000
    codes = rng.integers(0, 4, 4000)
    same = rng.random((2, 4000)) < np.where(quick, 0.5, 0.97)
    over = np.eye(4)[np.where(same, codes, rng.integers(0, 4, (2, 4000)))]
    numbers = fit_world(over, codes.astype(np.uint8))
    np.testing.assert_allclose(np.sum(numbers.weights, -1), 1)
    np.testing.assert_allclose(spread_weights(np.array(numbers.weights)).sum(-1), 1)
    logs = ProfileScores(TREE, GC, numbers).weigh(over[:, None], codes[None].astype(np.uint8))[0]
    own = logs[np.arange(4000), codes]
    others = (logs.sum(1) - own) / 3 - own
    alike = same.all(0)
    assert others[alike & quick].mean() > others[alike & ~quick].mean() + 0.5


def test_a_base_that_relatives_have_is_tolerated(world):
    over, codes, numbers = world
    scores = ProfileScores(TREE, GC, numbers)
    here, at = over[:, None, :90].copy(), 45
    here[:, 0, at] = np.eye(4)[[0, 1]]
    seen = scores.weigh(here, codes[None, :90])[0, at]
    assert seen[1] > max(seen[2], seen[3])


@pytest.fixture(scope="module")
def genes():
    """Windows with a gene each on either strand: over (3, B, L, 4), codes (B, L), the position of
    the codon (B, L): -1 between genes."""
    rng = np.random.default_rng(7)
    codes, phase = rng.integers(0, 4, (16, 500)), np.full((16, 500), -1)
    stops = {(3, 0, 0), (3, 0, 2), (3, 2, 0)}
    for row in range(16):
        gene = [(0, 3, 2)]
        while len(gene) < 100:
            codon = tuple(rng.integers(0, 4, 3).tolist())
            gene += [] if codon in stops else [codon]
        gene.append((3, 0, 0))
        codes[row, 100:403], phase[row, 100:403] = np.ravel(gene), np.tile(range(3), 101)
    rate = np.where(phase < 0, 0.3, np.where(phase == 2, 0.4, 0.03))
    rate[(phase >= 0) & (np.arange(500) < 103)] = 0.003  # the first codon
    changed = rng.random((3, 16, 500)) < rate
    over = np.eye(4)[np.where(changed, codes ^ 2, codes)]  # transitions
    turned = np.arange(16) % 2 == 1
    codes[turned], phase[turned] = 3 - codes[turned, ::-1], phase[turned, ::-1]
    over[:, turned] = over[:, turned, ::-1, ::-1]
    return over, codes.astype(np.uint8), phase


def test_frames_and_starts_are_found_on_both_strands(genes):
    over, codes, phase = genes
    tree = Tree((-1, 5, 5, 4, 0, 4), (0.0, 0.1, 0.1, 0.1, 0.1, 0.02))
    far = np.full((4, 4), 0.2) - 0.2 * np.eye(4)
    scores = ProfileScores(tree, 0.5, fit_profiles(over, codes, far, tree, 0.5))
    coding = 1 - scores.tell_states(over, codes)[..., 0]
    inside, edge = phase >= 0, np.abs(np.arange(500) - 249.5) > 210
    assert coding[inside].mean() > 0.9
    assert coding[:, edge].mean() < 0.15
    logs = scores.weigh(over, codes)
    own = np.take_along_axis(logs, codes[..., None].astype(int), -1)
    turned = np.take_along_axis(logs, codes[..., None].astype(int) ^ 2, -1)
    score = (turned - own)[..., 0]
    alike = (over.argmax(-1) == codes).all(0)  # of columns that say the same
    assert score[alike & (phase == 2)].mean() > score[alike & (phase == 0)].mean() + 1
    starts = np.array([state.kind == "start" for state in STATES])
    told = scores.tell_states(over, codes)[..., starts].sum(-1)
    first = np.concatenate([told[::2, 100], told[1::2, 399]])
    assert first.mean() > 0.5 > 0.1 > told.mean()


def test_fixation_of_a_neutral_mutation_is_one():
    np.testing.assert_allclose(fix(np.array([0.0, 1e-6, -1e-6])), 1, rtol=1e-5)
    assert fix(np.array([3.0]))[0] / fix(np.array([-3.0]))[0] == pytest.approx(np.exp(3))


def test_kappa_is_counted_between_the_nearest():
    codes = np.zeros(40, np.uint8)
    near, far = np.zeros(40, int), np.zeros(40, int)
    near[:6], near[6] = 2, 1  # six transitions and a transversion
    far[:30] = 1
    over = np.eye(4)[np.stack([near, far])]
    distances = np.array([[0, 0.03, 0.6], [0.03, 0, 0.6], [0.6, 0.6, 0]])
    assert measure_near_kappa(over, codes, distances) == pytest.approx(2 * 7 / 3)
    apart = np.array([[0, 0.6, 0.6], [0.6, 0, 0.03], [0.6, 0.03, 0]])
    both = np.eye(4)[np.stack([np.full(40, 1), np.where(np.arange(40) < 4, 3, 1)])]
    assert measure_near_kappa(both, codes, apart) == pytest.approx(2 * 5 / 2)


def test_few_positions_of_a_bin_leave_its_weights_near_those_of_the_whole():
    over, codes = make_world(80, 5)  # ten a bin
    plain = np.array(fit_world(over, codes).weights)[0, CONTEXTS:]
    assert np.abs(plain - plain.mean(0)).sum(1).max() < 0.3


def test_a_window_has_the_same_bits_in_any_batch(world):
    over, codes, numbers = world
    scores = ProfileScores(TREE, GC, numbers)
    over, codes = over.reshape(2, 7, 100, 4), codes.reshape(7, 100)
    every = scores.score(over, codes)
    for i in (3, 6):
        np.testing.assert_array_equal(every[i], scores.score(over[:, [i]], codes[[i]])[0])


def flip(state: FrameState) -> FrameState:
    return state if state.kind == "plain" else state._replace(strand=-state.strand)


def test_steps_are_probabilities_and_the_same_from_the_other_strand():
    np.testing.assert_allclose(STEPS.sum(1), 1)
    np.testing.assert_allclose(STEADY @ STEPS, STEADY, atol=1e-12)
    turned = [STATES.index(flip(state)) for state in STATES]
    flow = STEADY[:, None] * STEPS
    np.testing.assert_allclose(flow, flow.T[np.ix_(turned, turned)], atol=1e-12)


@pytest.mark.slow
def test_told_is_the_sum_over_all_sequences_of_states():
    emission = np.random.default_rng(0).random((1, 4, len(STATES)))
    expected, total = np.zeros((4, len(STATES))), 0.0
    for path in product(range(len(STATES)), repeat=4):
        steps = np.prod([STEPS[a, b] for a, b in pairwise(path)])
        if steps == 0:
            continue
        weights = emission[0, np.arange(4), path]
        for i in range(4):
            expected[i, path[i]] += STEADY[path[0]] * steps * np.delete(weights, i).prod()
        total += STEADY[path[0]] * steps * weights.prod()
    found = run_frames(emission)
    np.testing.assert_allclose(found.told[0], expected / expected.sum(1, keepdims=True))
    np.testing.assert_allclose(found.scale.prod(), total)


def test_the_context_is_the_other_two_bases_of_the_codon():
    codes = np.array([0, 1, 2, 3, 4], np.uint8)  # A C G T, and one that is not known
    found = dict(zip(STATES, read_contexts(codes), strict=True))
    assert found[FrameState("codon", 1, 0)].tolist() == [4 * 1 + 2, 4 * 2 + 3, ANY, ANY, ANY]
    assert found[FrameState("codon", 1, 2)].tolist() == [ANY, ANY, 4 * 0 + 1, 4 * 1 + 2, 4 * 2 + 3]
    # On the other strand the codon runs back: of T its mates are C (for G) and G (for C).
    assert found[FrameState("codon", -1, 0)].tolist()[3] == 4 * 1 + 2
    assert (found[STATES[0]] == ANY).all()


BASES = np.eye(4)


def test_plain_votes_count_each_relative_once():
    over = np.stack([BASES[[0, 1]], BASES[[0, 1]], BASES[[2, 1]]])
    votes = count_votes(over, np.ones(3))
    np.testing.assert_array_equal(votes, [[2, 0, 1, 0], [0, 3, 0, 0]])
    found = score_plainly(votes, np.array([0, 1]))
    assert found[0, 2] == pytest.approx(np.log(1.5 / 2.5))
    assert found[0, 0] == 0


def test_relatives_that_are_alike_share_a_vote():
    far = np.full((4, 4), 0.2)
    far[1, 2] = far[2, 1] = 0.01
    np.fill_diagonal(far, 0)
    np.testing.assert_allclose(weigh_relatives(far), [0.5, 0.5, 1])


def test_the_farther_a_relative_the_less_it_counts():
    far = np.abs(np.subtract.outer([0, 0.1, 0.2], [0, 0.1, 0.2]))
    first, second = weigh_relatives(far, reaches=0.1)
    assert second / first == pytest.approx(np.exp(-1))


def test_seen_bases_are_likelier_than_unseen_transitions_and_these_than_transversions():
    ref = np.array([0])
    found = score_votes(np.array([[5.0, 0, 0, 0]]), ref, total=5.0, kappa=8.0)[0]
    assert found[2] > found[1] == pytest.approx(found[3])
    assert found[0] == 0
    found = score_votes(np.array([[4.0, 1.0, 0, 0]]), ref, total=5.0, kappa=1.0)[0]
    assert found[1] > found[2]
    found = score_votes(np.zeros((1, 4)), np.array([3]), total=2.0, kappa=4.0)[0]  # the prior
    assert np.isfinite(found).all()
    assert found[1] > found[0]


def test_change_is_that_of_the_places_around():
    codes = np.zeros((1, 100), np.uint8)
    over = np.zeros((2, 1, 100, 4))
    over[:, 0, :, 0] = 1
    over[0, 0, 50] = BASES[1]
    codes[0, 20:30] = 4
    found = measure_change(over, codes)[0]
    places = 2 * (64 - 10)  # 32 on either side, of which 10 are hidden, in two relatives
    assert found[50] == pytest.approx(0.5 / (places + 5))
    assert found[51] == pytest.approx(1.5 / (places + 5))
    assert found[99] == pytest.approx(0.5 / (2 * 32 + 5))


def test_heads_are_plain_votes_and_how_much_changes_around():
    over = np.stack([BASES[[0, 0]], BASES[[0, 0]], BASES[[2, 0]]])
    slow, quick = score_heads(over, np.zeros(2, int), np.array([0.02, 0.3]))
    assert slow[2] == pytest.approx(np.log(1.5 / 2.5) + 0.6 * np.log(0.02))
    assert quick[1] == quick[2] == pytest.approx(np.log(0.5 / 3.5) + 0.6 * np.log(0.3))
    assert slow[0] == quick[0] == 0


def test_kappa_is_counted_where_relatives_are_sure():
    codes = np.zeros(100, np.uint8)
    base = np.zeros(100, int)
    base[:20], base[20:30], base[30:] = 2, 1, 0
    assert measure_kappa(BASES[base][None], codes) == pytest.approx(2 * 21 / 12)
    assert measure_kappa(0.5 * BASES[base][None], codes) == pytest.approx(1.0)
