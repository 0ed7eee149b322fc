"""The bound of windows, from batches to figures, where the truth is known exactly.

Intervals hold what they say: in worlds whose bound is known, 93 to 97 of 100 hold it. Such a world
is made of groups of g bases, all fixed by any one of them: the first that is revealed costs two
bits, the others nothing, so that the bound is 2 / g bits per base. What a masked base costs rises
steeply with the masked share r, as 2 r^(g - 1).
"""

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from worlds import LongChain, dna_like

from genodiff.alphabet import DNA, SOFT
from genodiff.data.dna_windows import SequenceWindows
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.loss import count_terms, nelbo_exact
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.schedule import Cosine, Linear, Schedule
from genodiff.errors import GenodiffError
from genodiff.evaluation.bound import Bound, measure_bound
from genodiff.evaluation.contigs import measure_contig_bound
from genodiff.evaluation.lines import MarkovLines
from genodiff.evaluation.summary import summarise
from genodiff.io.sequences import read_records

N = DNA.tokens.index("N")


def spell(row: NDArray[np.uint8]) -> str:
    """The letters of stored bytes, soft-masked ones in lower case."""
    letters = np.frombuffer(DNA.decode(row & (SOFT - 1)).encode(), np.uint8)
    return (letters + np.uint8(32) * (row >= SOFT)).tobytes().decode()


def scored(
    world: LongChain | None,
    rows: NDArray[np.uint8],
    *,
    seed: int = 1,
    repeats: int = 1,
    batch_size: int = 1000,
    lengths: Any = None,
    schedule: Schedule | None = None,
    denoiser: Any = None,
) -> Bound:
    diffusion = MaskedDiffusion(schedule or Linear(), DNA.mask_id, DNA.targets)
    ends = [rows.shape[1]] * len(rows) if lengths is None else lengths
    texts = [spell(row[:end]) for row, end in zip(rows, ends, strict=True)]
    windows = SequenceWindows(read_records(texts), rows.shape[1])
    chosen = denoiser or (world.denoiser if world is not None else flat_denoiser)
    return measure_bound(Mdlm(diffusion), chosen, EvalBatches(windows, batch_size, seed, repeats))


def flat_denoiser(xt: Tensor, sigma: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Knows nothing of bases, but is sure of everything that is none."""
    logits = torch.full((*xt.shape, 16), 30.0)
    logits[..., list(DNA.targets)] = 0.0
    return logits


def bits(bound: Bound) -> float:
    return float(bound.nats.sum(0).mean(0).sum() / bound.tokens.sum() / math.log(2))


def drawn(world: LongChain, n: int, seed: int) -> NDArray[np.uint8]:
    fixed = torch.Generator().manual_seed(seed)
    u = torch.rand(n, world.length, generator=fixed, dtype=torch.float64)
    return world.draw(u).numpy().astype(np.uint8)


def test_a_denoiser_that_knows_nothing_costs_exactly_two_bits_a_base():
    rng = np.random.default_rng(0)
    rows = rng.choice([*DNA.targets, N, DNA.targets[1] | SOFT, N | SOFT], (7, 33)).astype(np.uint8)
    rows[3] = N
    lengths = np.array([33, 20, 1, 33, 33, 5, 33])
    bound = scored(None, rows, repeats=5, lengths=lengths)
    inside = np.arange(33) < lengths[:, None]
    is_base = np.isin(rows & 0x7F, DNA.targets) & inside
    np.testing.assert_array_equal(bound.tokens[0], (is_base & (rows < SOFT)).sum(1))
    np.testing.assert_array_equal(bound.tokens[1], (is_base & (rows >= SOFT)).sum(1))
    wanted = np.tile(is_base.sum(1) * math.log(4), (5, 1))
    np.testing.assert_allclose(bound.nats.sum(0), wanted, rtol=1e-6)
    assert bits(bound) == pytest.approx(2, abs=1e-6)
    assert ((bound.rate > 0) == (is_base.sum(1) > 0)).all()
    assert bound.rate.max() <= 1


def test_the_denoiser_sees_every_n_and_never_a_base_it_is_asked_for():
    rows = np.random.default_rng(1).choice([*DNA.targets, N], (6, 40)).astype(np.uint8)
    asked: list[Tensor] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        asked.append(xt.clone())
        return flat_denoiser(xt, sigma)

    scored(None, rows, denoiser=watching, batch_size=6)
    xt, x0 = asked[-1].numpy(), rows  # before, one window was asked about alone
    assert ((xt == x0) | (xt == DNA.mask_id)).all()
    assert (xt[x0 == N] == N).all()
    assert ((xt == DNA.mask_id).sum(1) >= 1).all()


@pytest.mark.parametrize("schedule", [Linear(), Cosine()], ids=["linear", "cosine"])
def test_the_mean_over_masks_is_the_enumerated_bound_of_the_window(schedule):
    world = dna_like(6)
    rows = drawn(world, 3, 2)
    diffusion = MaskedDiffusion(schedule, DNA.mask_id, DNA.targets)
    for row in rows:
        x0 = torch.from_numpy(row.astype(np.int64))
        terms = count_terms(diffusion, world.denoiser, x0, torch.ones(6, dtype=torch.bool))
        estimates = scored(world, np.tile(row, (5000, 1)), schedule=schedule).nats[0]
        error = estimates.std() / estimates.size**0.5
        assert estimates.mean() == pytest.approx(nelbo_exact(terms).item(), abs=4 * error)


def test_shares_of_the_bound_add_up_and_each_is_unbiased():
    world = dna_like(5)
    row = drawn(world, 1, 3)
    soft = row.copy()
    soft[0, [1, 4]] |= SOFT
    plain, split = (scored(world, np.tile(r, (5000, 1))) for r in (row, soft))
    np.testing.assert_allclose(plain.nats[0], split.nats.sum(0))
    assert split.tokens[:, 0].tolist() == [3, 2]
    # The share of a base is its mean cost when a random set of the others is seen: enumerate sets
    # by order of reveal.
    expected = _share_of(world, row[0], [1, 4])
    assert split.nats[1].mean() == pytest.approx(expected, abs=4 * split.nats[1].std() / 5000**0.5)


def _share_of(world: LongChain, row: NDArray[np.uint8], positions: list[int]) -> float:
    n, total = len(row), 0.0
    x0 = torch.from_numpy(row.astype(np.int64))
    for chosen in range(1, 2**n):
        masked = torch.tensor([bool(chosen >> i & 1) for i in range(n)])
        k = int(masked.sum())
        xt = x0.masked_fill(masked, DNA.mask_id)[None]
        logp = world.denoiser(xt, torch.zeros(1))[0][:, list(DNA.targets)].log_softmax(-1)
        nll = -logp[torch.arange(n), x0 - DNA.targets[0]]
        # k is uniform on 1..n, the mask uniform among those of its size, the weight n / k.
        total += sum(float(nll[p]) for p in positions if masked[p]) / (k * math.comb(n, k))
    return total


def test_every_window_meets_every_mask_rate_alike_and_the_split_as_a_whole_evenly():
    rows = np.full((40, 64), DNA.targets[0], np.uint8)
    bound = scored(None, rows, repeats=4)
    assert np.unique(np.ceil(bound.rate * 64)).size == 64
    first = np.stack([scored(None, rows[:10], seed=s).rate[0] for s in range(200)])
    # Uniform on 1/64 .. 1 for each window by itself: mean 0.508, sd 0.29 / sqrt(200).
    np.testing.assert_allclose(first.mean(0), 65 / 128, atol=4 * 0.2887 / 200**0.5)


def test_a_bound_that_is_not_finite_is_an_error_and_not_a_figure():
    rows = np.full((2, 8), DNA.targets[0], np.uint8)
    with pytest.raises(GenodiffError, match="not finite"):
        scored(None, rows, denoiser=lambda xt, sigma: flat_denoiser(xt, sigma) * torch.nan)


def test_repeats_make_the_interval_narrower_and_say_how_much_is_due_to_masks():
    world = dna_like(48)
    rows = drawn(world, 100, 5)
    one, many = (summary_of(scored(world, rows, repeats=r)) for r in (1, 8))
    assert many["se_bits"] < 0.8 * one["se_bits"]
    assert one["mask_se_bits"] is None
    # Repeats of one window differ by their masks alone: many evaluations of it show what the masks
    # are worth.
    again = [bits(scored(world, rows, repeats=8, seed=s)) for s in range(2, 26)]
    assert 0.6 * np.std(again) < many["mask_se_bits"] < 1.6 * np.std(again)


def summary_of(bound: Bound, *lines: Any, **options: Any) -> dict[str, Any]:
    contig = np.arange(bound.tokens.shape[1]) // 10
    names = [f"c{i}" for i in range(contig.max() + 1)]
    return summarise(bound, contig, names, *lines, **options)


def test_the_curve_is_the_cost_of_a_masked_base_at_each_rate_and_its_mean_is_the_bound():
    world = dna_like(40)
    rows = drawn(world, 400, 6)
    summary = summary_of(scored(world, rows, repeats=5))
    curve = summary["curve"]
    assert [p["n"] for p in curve] == [100] * 20
    assert np.mean([p["nats"] for p in curve]) == pytest.approx(summary["nelbo_nats"], abs=1e-3)
    assert curve[-1]["nats"] == pytest.approx(math.log(4), abs=0.05)
    # One base masked alone: its entropy given both neighbours (edges and pairs, which cost more,
    # are few).
    p = world.transition.numpy()
    joint = 0.25 * p[:, :, None] * p[None, :, :]
    alone = -(joint * np.log(joint / joint.sum(1, keepdims=True))).sum()
    assert -4 * curve[0]["se"] < curve[0]["nats"] - alone < 0.03 + 4 * curve[0]["se"]
    costs = [p["nats"] for p in curve]
    assert costs[0] < costs[10] < costs[-1]


def test_parts_add_up_to_the_whole():
    world = dna_like(40)
    rows = drawn(world, 60, 7)
    rows[:, ::3] |= SOFT
    bound = scored(world, rows)
    cover = np.repeat([0.0, 0.1, 0.25, 1.0], 15)
    nats = np.abs(np.random.default_rng(8).standard_normal((4, 2, 60))) * 50
    summary = summary_of(bound, MarkovLines(nats[:3], nats[3], [5.0, 6.0]), cover)
    assert set(summary["regions"]) == {"unique", "touched", "repeat", "upper_case", "soft_masked"}
    for group in (["unique", "touched", "repeat"], ["upper_case", "soft_masked"]):
        parts = [summary["regions"][name] for name in group]
        _add_up(summary, parts)
    _add_up(summary, list(summary["contigs"].values()))
    assert (summary["repeat_share"], summary["touched_share"]) == (0.5, 0.25)
    regions = [summary["regions"][name]["windows"] for name in ("unique", "touched", "repeat")]
    assert regions == [15, 15, 30]
    fitted = summary["markov_fitted"]
    assert (fitted["order"], fitted["pseudo"]) == (1, [5.0, 6.0])
    assert fitted["bits"] == pytest.approx(nats[3].sum() / summary["tokens"] / math.log(2))
    lines = [(summary["markov_bits"][k], summary["markov_minus_model_bits"][k]) for k in "012"]
    for bits_of_line, difference in [*lines, (fitted["bits"], fitted["minus_model_bits"])]:
        assert difference["bits"] == pytest.approx(bits_of_line - summary["bits_per_base"])
        assert difference["ci95"][0] < difference["bits"] < difference["ci95"][1]


def _add_up(summary: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    tokens = sum(p["tokens"] for p in parts)
    assert tokens == summary["tokens"]
    bits_of_parts = sum(p["tokens"] * p["bits_per_base"] for p in parts) / tokens
    assert bits_of_parts == pytest.approx(summary["bits_per_base"])
    for k, line in summary["markov_bits"].items():
        assert sum(p["tokens"] * p["markov_bits"][k] for p in parts) / tokens == pytest.approx(line)
    for p in [summary, *parts]:
        assert p["perplexity"] == pytest.approx(2 ** p["bits_per_base"])
        assert p["nelbo_nats"] == pytest.approx(math.log(p["perplexity"]))
        assert p["ci95_bits"][0] < p["bits_per_base"] < p["ci95_bits"][1]
    assert summary["nelbo_nats_total"] == pytest.approx(summary["nelbo_nats"] * tokens)
    fitted = sum(p["tokens"] * p["fitted_bits"] for p in parts) / tokens
    assert fitted == pytest.approx(summary["markov_fitted"]["bits"])


def test_without_soft_masked_bases_the_figure_is_that_of_the_others():
    world = dna_like(40)
    rows = drawn(world, 30, 9)
    rows[:, :10] |= SOFT
    bound = scored(world, rows)
    both, upper = (summary_of(bound, source=np.ones(30), soft_masked=s) for s in (True, False))
    assert upper["tokens"] == 30 * 30
    assert upper["bits_per_base"] == both["regions"]["upper_case"]["bits_per_base"]
    assert upper["source_bits"] is None
    assert both["source_bits"] == pytest.approx(1 / 40 / math.log(2))
    gap = both["bits_per_base"] - both["source_bits"]
    assert both["model_minus_source_bits"]["bits"] == pytest.approx(gap)
    assert (upper["soft_masked"], both["soft_masked"]) == (0, 1)


BASES, WINDOW = 60_000, 1_000
WORLDS = [(2, 4, None), (2, 6, 5000), (2, 3, 3000), (4, 1, None), (4, 3, 3000), (4, 4, None)]
WORLDS += [(4, 6, 5000)]
DIFFUSION = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)


def make_denoiser(group: int, x0: Tensor) -> Any:
    """Sure of a base where another of its group is visible, else undecided. `x0` (B, L)."""

    def denoise(xt: Tensor, sigma: Tensor, lengths: Tensor | None = None) -> Tensor:
        visible = (xt != DNA.mask_id).view(len(xt), -1, group).any(-1)
        known = visible.repeat_interleave(group, -1)
        logits = torch.zeros(*xt.shape, DNA.padded_size)
        true = x0[: len(xt), :, None].long()  # one window may be asked about alone
        return logits.scatter_(-1, true, torch.where(known, 60.0, 0.0)[..., None])

    return denoise


def draw_rows(seed: int, rows: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(DNA.targets, (rows, length)).astype(np.uint8)


def evaluate_windows(group: int, repeats: int, seed: int) -> dict[str, Any]:
    rows = draw_rows(1, BASES // WINDOW, WINDOW)
    net = make_denoiser(group, torch.from_numpy(rows))
    return summary_of(scored(None, rows, seed=seed, repeats=repeats, denoiser=net))


def evaluate_contig(group: int, repeats: int, seed: int, block: int | None) -> dict[str, Any]:
    flat = draw_rows(1, 1, BASES)[0]
    windows: Any = SequenceWindows(read_records([spell(flat)]), WINDOW)
    start, end = np.array([[0], [BASES]])
    windows.intervals = SimpleNamespace(contig=start, start=start, end=end)
    size = block or BASES
    at = iter([x for x in range(0, BASES, size) for _ in range(repeats)])

    def stream(xt: Tensor) -> Iterator[tuple[int, Tensor]]:
        start = next(at)
        x0 = torch.from_numpy(flat[start : start + len(xt)].copy())[None]
        yield 0, make_denoiser(group, x0)(xt[None], xt)[0]

    how = {"repeats": repeats, "seed": seed, "block": block}
    return summary_of(measure_contig_bound(DIFFUSION, stream, windows, **how))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("repeats", "block"), [(1, None), (4, None), (50, None), (1, 3000), (4, 5000)]
)
def test_few_counts_of_masks_have_no_interval(repeats, block):
    found = evaluate_contig(2, repeats, 1, block)
    assert found["ci95_bits"] is None
    assert found["se_bits"] is None
    assert (found["mask_se_bits"] is None) == (repeats == 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "repeats", "block"),
    [(2, 1, None), *(pytest.param(*world, marks=pytest.mark.long) for world in WORLDS)],
    ids=str,
)
def test_intervals_hold_the_bound_as_often_as_they_say(group, repeats, block):
    held, values, errors, runs = 0, [], [], 400
    for seed in range(runs):
        if block is None:
            found = evaluate_windows(group, repeats, seed)
        else:
            found = evaluate_contig(group, repeats, seed, block)
        low, high = found["ci95_bits"]
        held += low <= 2 / group <= high
        values.append(found["bits_per_base"])
        errors.append(found["se_bits"])
    spread = float(np.std(values))
    assert 0.8 < np.median(errors) / spread < 1.25
    assert np.mean(values) == pytest.approx(2 / group, abs=4 * spread / math.sqrt(runs))
    assert 0.93 <= held / runs <= 0.97
