"""The bound of T steps: exact against enumeration, unbiased from any law of counts, with intervals
that hold it.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from worlds import independent, markov_chain

from genodiff.alphabet import DNA
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.likelihood import count_terms, nelbo_discrete
from genodiff.diffusion.loss import cross_entropy
from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.objectives.mlm import Mlm
from genodiff.diffusion.objectives.sedd import Sedd
from genodiff.diffusion.schedule import (
    SCHEDULES,
    Cosine,
    Linear,
    LogLinear,
    OneMinusCosine,
    Schedule,
)
from genodiff.errors import UsageError
from genodiff.evaluation.bound import measure_bound
from genodiff.evaluation.step_chain import (
    MOST_POWERS,
    count_density,
    draw_counts,
    make_chain,
    mean_powers,
)
from genodiff.evaluation.steps import (
    STEPS,
    CountDraws,
    WindowSizes,
    check_steps,
    choose_chains,
    count_uniform,
    has_steps,
    measure_chains,
    step_bits,
)
from genodiff.statistics.interval import BITS
from tests.evaluation.test_coverage import make_denoiser
from tests.evaluation.test_score_bound import FakeWindows

WORLD = markov_chain(4)
N = 4
ALL = slice(0, 2)


def world_terms() -> NDArray[np.float64]:
    """C_0 .. C_4 of every sequence."""
    ones = torch.ones(N, dtype=torch.bool)
    of = [count_terms(WORLD.diffusion(), WORLD.denoiser, x, ones).numpy() for x in WORLD.sequences]
    return np.stack(of)


def exact_bits(schedule: Schedule, steps: int) -> float:
    """Bits of a window, averaged over the world."""
    found = [
        float(nelbo_discrete(torch.from_numpy(terms), schedule, steps)) for terms in world_terms()
    ]
    return float(WORLD.p.numpy() @ found) * BITS


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=list(SCHEDULES))
@pytest.mark.parametrize("steps", [1, 2, 10, 1000])
def test_the_law_of_counts_is_one_and_its_mean_is_the_bound_of_the_chain(schedule, steps):
    chain, k = make_chain(schedule(), steps), np.arange(1, N + 1)
    chance = count_density(chain, np.full(N, N), k) / N
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    terms = world_terms()[3]
    wanted = float(nelbo_discrete(torch.from_numpy(terms), schedule(), steps))
    assert chain.hidden * (chance * N / k) @ terms[1:] == pytest.approx(wanted, rel=1e-9)
    powers = mean_powers(chain, np.array([N]), MOST_POWERS)[0]
    assert powers == pytest.approx([chance @ (k / N) ** p for p in range(MOST_POWERS + 1)])


@pytest.mark.parametrize("schedule", [Linear(), Cosine(), OneMinusCosine(), LogLinear(eps=0.1)])
def test_counts_are_drawn_by_the_law_of_the_chains_together(schedule):
    chains, n, draws = [make_chain(schedule, steps) for steps in (1, 3, 10)], 6, 60_000
    k = draw_counts(chains, np.full(draws, n), (np.arange(draws) + 0.5) / draws)
    sizes = np.full(n, n), np.arange(1, n + 1)
    wanted = sum(count_density(chain, *sizes) for chain in chains) / (len(chains) * n)
    assert np.bincount(k, minlength=n + 1)[1:] / draws == pytest.approx(wanted, abs=3e-4)
    assert draw_counts(chains, np.array([0, 1]), np.array([0.3, 1.0])).tolist() == [0, 1]


def table() -> NDArray[np.float64]:
    """(sequences, masks): nats of the masked tokens under each of the 16 sets of masks."""
    masks = torch.tensor(list(itertools.product([False, True], repeat=N)))
    rows = []
    for x in WORLD.sequences:
        clean = Clean(x.expand(len(masks), -1), torch.ones(len(masks), N, dtype=torch.bool))
        sigma = torch.zeros(len(masks), dtype=torch.float64)
        rows.append(cross_entropy(WORLD.diffusion(), WORLD.denoiser, clean, masks, sigma).sum(-1))
    return torch.stack(rows).numpy()


SUBSETS = [[m for m in range(16) if bin(m).count("1") == k] for k in range(N + 1)]


@pytest.mark.parametrize("own", [False, True])
def test_the_mean_over_all_masks_is_the_bound_of_the_chain(own):
    """Every count and set of masks once, each weighed by its chance: nothing is left to luck."""
    objective, nats = Mdlm(WORLD.diffusion()), table()
    chains, k = [make_chain(Linear(), 2), make_chain(Linear(), 10)], np.arange(1, N + 1)
    size = WindowSizes(*np.full((3, 1), float(N)))
    law = count_density(chains[0], np.full(N, N), k) / N if own else np.full(N, 1 / N)
    mean = np.zeros(2)
    for sequence, uniform, drawn in itertools.product(range(16), k, k if own else [0]):
        chance = WORLD.p[sequence].item() / N * (law[drawn - 1] if own else 1)
        # The mean over the sets of masks of a count: the estimate is linear in them.
        estimate = [N / c * nats[sequence, SUBSETS[c]].mean() if c else 0 for c in (uniform, drawn)]
        sets = [
            CountDraws(np.array([[[e]], [[0.0]]]), np.array([[c]]))
            for e, c in zip(estimate, (uniform, drawn), strict=True)
        ]
        more = (chains[:1], sets[1]) if own else ()
        found = step_bits(objective, size, ALL, np.zeros(1), chains, sets[0], *more)
        mean += chance * np.array([found["2"]["bits"], found["10"]["bits"]])
    wanted = [exact_bits(Linear(), steps) / N for steps in (2, 10)]
    assert mean == pytest.approx(wanted, rel=1e-9)
    assert wanted[1] * N / BITS == pytest.approx(1.758858, abs=1e-5)


def draw_world(
    seed: int, windows: int, schedule: Schedule, asked: tuple[int, ...]
) -> dict[str, dict[str, Any]]:
    """`step_bits` of random windows of the world, uniform and own draws."""
    random, nats = np.random.default_rng(seed), table()
    sequence = random.choice(16, windows, p=WORLD.p.numpy())
    chains = [make_chain(schedule, steps) for steps in asked]
    size, n = WindowSizes(*np.full((3, windows), float(N))), np.full(windows, N)
    t = (random.permutation(windows) + random.random()) / windows
    sets = []
    for k in (np.ceil(t * N).astype(int), draw_counts(chains, n, random.permutation(t))):
        mask = [random.choice(SUBSETS[c]) for c in k]
        y = N / k * nats[sequence, mask]
        sets.append(CountDraws(np.stack([y, np.zeros(windows)])[:, None], k[None]))
    objective = Mdlm(WORLD.diffusion(schedule))
    return step_bits(objective, size, ALL, np.zeros(windows), chains, sets[0], chains, sets[1])


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("schedule", [Linear(), OneMinusCosine()])
def test_the_curve_that_is_taken_out_leaves_the_mean_as_it_is(schedule):
    runs = [draw_world(seed, 80, schedule, (2, 5)) for seed in range(60)]
    for steps in (2, 5):
        values = np.array([run[str(steps)]["bits"] for run in runs])
        wanted = exact_bits(schedule, steps) / N
        assert abs(values.mean() - wanted) < 4 * values.std() / math.sqrt(len(values))


def test_more_steps_cost_less_and_many_cost_what_infinitely_many_do():
    found = draw_world(1, 40_000, Linear(), STEPS)
    bits = [found[str(steps)]["bits"] for steps in STEPS]
    assert bits == sorted(bits, reverse=True)
    assert bits[0] * N / BITS == pytest.approx(1.758858, abs=0.02)
    assert bits[-1] * N / BITS == pytest.approx(1.669279, abs=0.02)


def evaluate_groups(
    group: int, seed: int, asked: tuple[int, ...] | None, schedule: Schedule = Linear()
) -> dict[str, dict[str, Any]]:
    """The figures of 60 windows whose bases are fixed in groups; see `test_coverage`."""
    rows = np.random.default_rng(1).choice(DNA.targets, (60, 1000)).astype(np.uint8)
    net = make_denoiser(group, torch.from_numpy(rows))
    objective = Mdlm(MaskedDiffusion(schedule, DNA.mask_id, DNA.targets))
    windows: Any = FakeWindows(rows)
    bound = measure_bound(objective, net, EvalBatches(windows, 1000, seed))
    tokens = bound.tokens.sum(0)
    chains, far = choose_chains(objective, tokens, asked)
    batches = EvalBatches(windows, 1000, seed, drawn=1)
    own = measure_chains(objective, net, batches, far) if far else None
    assert bound.rate is not None
    uniform = count_uniform(bound.drawn, tokens, bound.rate)
    size, model = WindowSizes(tokens, tokens, tokens), bound.nats.sum(0).mean(0)
    return step_bits(objective, size, ALL, model, chains, uniform, far, own)


def group_bits(group: int, schedule: Schedule, steps: int, n: int = 1000) -> float:
    """A masked base costs two bits where all of its group is masked, else nothing."""
    chain, k = make_chain(schedule, steps), np.arange(1, n + 1)
    chance = count_density(chain, np.full(n, n), k) / n
    together = np.prod([(k - j) / (n - j) for j in range(1, group)], axis=0)
    return 2 * (chain.hidden * float(chance @ together) + 1 - chain.hidden)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("group", [2, 4])
@pytest.mark.parametrize("schedule", [Linear(), LogLinear(eps=0.05)])
def test_intervals_hold_the_bound_of_few_steps_as_often_as_they_say(group, schedule):
    runs = [evaluate_groups(group, seed, (10, 20, 200), schedule) for seed in range(400)]
    for steps in (10, 20, 200):
        wanted = group_bits(group, schedule, steps)
        found = [run[str(steps)] for run in runs]
        held = [one["ci95"][0] <= wanted <= one["ci95"][1] for one in found]
        values = np.array([one["bits"] for one in found])
        assert values.mean() == pytest.approx(wanted, abs=4 * values.std() / 20)
        assert 0.93 <= np.mean(held) <= 0.98


def test_draws_of_their_own_make_few_steps_sure():
    found = evaluate_groups(2, 1, (1, 10))["10"]
    low, high = found["ci95"]
    assert low <= group_bits(2, Linear(), 10) <= high
    assert high - low < 0.04
    assert found["minus_model_bits"]["ci95"][0] > 0


def test_without_being_asked_only_what_the_draws_can_tell_is_told():
    assert list(evaluate_groups(2, 1, None)) == ["50", "100", "200", "500", "1000"]
    assert list(evaluate_groups(2, 1, (7, 3, 7))) == ["3", "7"]


@pytest.mark.parametrize("steps", [1, 3, 50])
def test_uniform_tokens_cost_two_bits_prior_included(steps):
    world = independent(4)
    chain, n = make_chain(LogLinear(eps=0.3), steps), np.full(3, 4.0)
    objective = Mdlm(world.diffusion(LogLinear(eps=0.3)))
    draws = CountDraws(np.full((2, 1, 3), [[[4 * math.log(4)]], [[0.0]]]), np.array([[1, 2, 4]]))
    own = CountDraws(draws.nats, draw_counts([chain], np.full((1, 3), 4), np.full((1, 3), 0.4)))
    found = step_bits(objective, WindowSizes(n, n, n), ALL, n, [chain], draws, [chain], own)
    free = [count_density(chain, np.full(k.shape, 4), k) for k in (draws.k, own.k)]
    weight = np.concatenate([2 * part / (1 + part) for part in free]).mean()
    assert found[str(steps)]["bits"] == pytest.approx(2 * (0.7 * weight + 0.3), abs=1e-12)


def test_a_figure_that_is_no_cross_entropy_of_counts_has_no_such_bound():
    plain, told = WORLD.diffusion(), WORLD.diffusion(time_conditioning=True)
    assert has_steps(Mdlm(plain))
    assert has_steps(Mlm(plain))
    for objective in (Sedd(plain), Mdlm(plain, time_steps=10), Mdlm(plain, carry_over=False),
                      Mdlm(told)):  # fmt: skip
        assert choose_chains(objective, np.full(3, 4.0), None) == ([], [])
        with pytest.raises(UsageError, match="--t-steps"):
            check_steps(objective, (10,), "window")
        check_steps(objective, None, "window")
    with pytest.raises(UsageError, match="contig"):
        check_steps(Mdlm(plain), (10,), "contig")


def test_a_window_without_tokens_is_passed_over():
    objective, tokens = Mdlm(WORLD.diffusion()), np.array([4.0, 0.0])
    draws = CountDraws(np.array([[[1.0, 0.0]], [[0.0, 0.0]]]), np.array([[2, 0]]))
    size = WindowSizes(tokens, tokens, tokens)
    found = step_bits(objective, size, ALL, tokens, [make_chain(Linear(), 10)], draws)
    assert np.isfinite(found["10"]["bits"])
    assert found["10"]["ci95"] is None
