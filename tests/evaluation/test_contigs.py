"""Windows that see all of their contig, or all of it before their block: the bound of whole
intervals, shared out over the windows of the split.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tiny_run import NETWORK, genome_text, write_run

from genodiff.alphabet import DNA, SOFT
from genodiff.backbones.blocks import read_by_pass
from genodiff.backbones.streaming import stream
from genodiff.counter import Purpose, uniforms
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.masked import MaskedDiffusion, times
from genodiff.diffusion.objective import objective
from genodiff.diffusion.objectives.block import BlockDiffusion, mask_blocks
from genodiff.diffusion.schedule import Linear
from genodiff.errors import UsageError
from genodiff.evaluation.bound import measure_bound
from genodiff.evaluation.contigs import find_spans, measure_contig_bound
from genodiff.evaluation.dna_evaluation import measure_block_contigs
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.evaluation_file import write_evaluation
from genodiff.runs.model import TrainedModel, load_model


def test_a_window_has_its_share_of_one_pass_over_its_whole_interval(model):
    windows = open_data(model).windows
    seen: list[torch.Tensor] = []

    def whole(xt: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        seen.append(xt)
        yield 0, model.backbone(xt[None].long())[0]

    with torch.no_grad():
        found = measure_contig_bound(model.diffusion, whole, windows, repeats=2, seed=3)
    nats, tokens, rate = found.drawn, found.tokens, found.rate
    first = windows.store.offsets[windows.intervals.contig] + windows.intervals.start
    size = windows.intervals.end - windows.intervals.start
    assert [len(xt) for xt in seen] == [int(n) for n in size for _ in range(2)]
    for i, xt in enumerate(seen):
        interval, repeat = divmod(i, 2)
        data = windows.store.flat[first[interval] : first[interval] + size[interval]]
        x0 = torch.from_numpy(np.array(data) & (SOFT - 1)).long()
        masked = xt == DNA.mask_id
        assert torch.equal(torch.where(masked, x0, xt.long()), x0)
        n, k = np.isin(x0.numpy(), DNA.targets).sum(), int(masked.sum())
        with torch.no_grad():
            logp = model.backbone(xt[None].long())[0][:, list(DNA.targets)].log_softmax(-1)
        ce = np.zeros(len(x0))
        for j in masked.nonzero()[:, 0].tolist():
            ce[j] = -float(logp[j, DNA.targets.index(int(x0[j]))])
        at = windows.flat_start - first[interval]
        for w in np.flatnonzero((at >= 0) & (at < size[interval])).tolist():
            inside = slice(int(at[w]), int(at[w] + windows.length[w]))
            soft = np.array(data[inside]) >= SOFT
            assert nats[0, repeat, w] == pytest.approx(n / k * ce[inside][~soft].sum(), rel=1e-5)
            assert nats[1, repeat, w] == pytest.approx(n / k * ce[inside][soft].sum(), rel=1e-5)
            assert rate[repeat, w] == pytest.approx(k / n)
            assert tokens[:, w].sum() == np.isin(x0[inside].numpy(), DNA.targets).sum()


def test_the_rates_of_intervals_and_repeats_are_spread_over_all_rates(model):
    windows = open_data(model).windows
    rate = measure_contig_bound(
        model.diffusion, lambda xt: iter([(0, torch.zeros(len(xt), 16))]), windows, repeats=50
    ).rate
    first = windows.store.offsets[windows.intervals.contig] + windows.intervals.start
    of_interval = rate[:, np.searchsorted(windows.flat_start, first)]
    for rates in (of_interval.ravel(), *of_interval.T):
        assert np.sort(rates) == pytest.approx((np.arange(rates.size) + 0.5) / rates.size, abs=0.08)


def test_pieces_do_not_change_the_figures(model):
    windows = open_data(model).windows
    one, other = (
        measure_contig_bound(model.diffusion, partial(stream, model.backbone, piece=n), windows)
        for n in (37, 10**6)
    )
    assert one.drawn == pytest.approx(other.drawn, rel=1e-5, abs=1e-6)


def test_an_evaluation_in_whole_contigs_has_its_own_name_and_the_same_bases(model, run):
    alone, within = evaluate(model, repeats=2), evaluate(model, repeats=2, context="contig")
    assert (alone["tokens"], alone["markov_bits"]) == (within["tokens"], within["markov_bits"])
    assert (alone["context"], within["context"]) == ("window", "contig")
    assert alone["bits_per_base"] != within["bits_per_base"]
    assert within["bits_per_base"] == pytest.approx(alone["bits_per_base"], abs=0.2)
    assert write_evaluation(run, within) == "test in whole contigs"
    with pytest.raises(UsageError, match="scores all windows"):
        evaluate(model, context="contig", max_windows=3)


def test_the_objective_says_whether_its_bound_is_one_of_counted_masks():
    def counted(name: str, **own: object) -> bool:
        return objective(name, MaskedDiffusion(Linear(), 0, (1,)), **own).bound_counts_masks

    assert counted("mdlm")
    assert counted("mlm")
    assert not any(map(counted, ("ar", "d3pm", "sedd")))
    assert not counted("mdlm", time_steps=10)
    assert not counted("mdlm", carry_over=False)


@pytest.fixture
def block_run(tmp_path):
    """An untrained network of one strand that is told of blocks of 16."""
    contigs = genome_text().split(">")[3:]
    (tmp_path / "genome.fa").write_text(">" + ">".join(contigs))
    backbone = NETWORK | {"strands": "single", "n_layer": 2}
    return write_run(tmp_path, backbone=backbone, data={"seq_len": 32}, diffusion={"block": 16})


def measure(model: TrainedModel, rows: Any = slice(None), **how: Any) -> Any:
    windows = open_data(model).windows
    windows = windows.take(np.arange(len(windows))[rows])
    return measure_block_contigs(model.objective, model.backbone, windows, **how)  # type: ignore[arg-type]


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [5, 16])
def test_kept_states_give_a_window_its_share_of_one_pass_over_its_interval(block_run, size):
    model = load_model(block_run).in_blocks(size)
    objective, windows = model.objective, open_data(model).windows
    assert isinstance(objective, BlockDiffusion)
    found = measure(model, repeats=2, seed=3)
    assert found.rate is None
    spans = find_spans(windows)
    n_draws, shared = 2 * len(spans), float(uniforms(3, Purpose.EVAL_TIME, 0, 1, 3)[0])
    none, slots = torch.zeros(n_draws, dtype=torch.float64), torch.arange(n_draws)
    t = times("systematic", none, shared, slots, n_draws)
    for number, (start, end, rows) in enumerate(spans):
        data = np.array(windows.store.flat[start:end])
        x0 = torch.from_numpy(data & (SOFT - 1)).long()[None]
        maskable = torch.isin(x0, torch.tensor(DNA.targets))
        for repeat in range(2):
            draw = 2 * number + repeat
            u = torch.from_numpy(uniforms(3, Purpose.EVAL_MASK, draw, len(data), 3))[None]
            masked, scale = mask_blocks(maskable, t[draw : draw + 1], u, size)
            xt = torch.where(masked, DNA.mask_id, x0)
            with torch.no_grad():
                logits = read_by_pass(model.backbone, x0, xt, size)[0]  # type: ignore[arg-type]
            logp = logits[:, list(DNA.targets)].double().log_softmax(-1)
            cost = np.zeros(len(data))
            for j in masked[0].nonzero()[:, 0].tolist():
                cost[j] = -float(scale[0, j] * logp[j, DNA.targets.index(int(x0[0, j]))])
            for w in rows.tolist():
                first = int(windows.flat_start[w]) - start
                inside = slice(first, first + int(windows.length[w]))
                soft = data[inside] >= SOFT
                want = (cost[inside][~soft].sum(), cost[inside][soft].sum())
                assert found.nats[:, repeat, w] == pytest.approx(want, rel=1e-5, abs=1e-5)
                assert found.tokens[:, w].sum() == int(maskable[0, inside].sum())


@pytest.mark.slow
def test_blocks_of_one_base_are_a_likelihood_which_no_draw_changes(block_run):
    model = load_model(block_run).in_blocks(1)
    windows = open_data(model).windows
    (start, _, rows), *_ = find_spans(windows)
    whole = measure(model, rows, seed=2, repeats=2).nats
    assert whole[:, 1] == pytest.approx(whole[:, 0], rel=1e-6)
    # The first window of an interval has no past: it has what it has alone. Others see more.
    batches = EvalBatches(windows.take(rows), 4, 1)
    alone = measure_bound(model.objective, model.backbone, batches).nats[:, 0]
    first = windows.flat_start[rows] == start
    assert whole[:, 0, first] == pytest.approx(alone[:, first], rel=1e-5)
    assert np.abs(whole[:, 0, ~first] - alone[:, ~first]).max() > 1e-3


def test_an_evaluation_of_blocks_in_contigs_has_its_own_name(block_run):
    model, said = load_model(block_run), []
    how: Any = {"context": "contig", "repeats": 2, "baselines": False}
    told = evaluate(model, progress=lambda *at: said.append(at), **how)
    assert (told["context"], told["block"]) == ("contig", 16)
    assert write_evaluation(block_run, told) == "test in whole contigs in blocks of 16"
    assert said[-1][0] == said[-1][1]
    assert evaluate(model, **how)["bits_per_base"] == told["bits_per_base"]
