"""Blocks after all of their contig before them: the sum of one whole pass, and its exact case."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny_run import NETWORK, genome_text, write_run

from genodiff.alphabet import DNA, SOFT
from genodiff.backbones.blocks import read_by_pass
from genodiff.counter import Purpose, uniforms
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.masked import times
from genodiff.diffusion.objectives.block import BlockDiffusion, mask_blocks
from genodiff.evaluation.bound import measure_bound
from genodiff.evaluation.contigs import find_spans
from genodiff.evaluation.dna_evaluation import measure_block_contigs
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.evaluation_file import write_evaluation
from genodiff.runs.model import TrainedModel, load_model


@pytest.fixture
def run(tmp_path):
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
def test_kept_states_give_a_window_its_share_of_one_pass_over_its_interval(run, size):
    model = load_model(run).in_blocks(size)
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
def test_blocks_of_one_base_are_a_likelihood_which_no_draw_changes(run):
    model = load_model(run).in_blocks(1)
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


def test_an_evaluation_of_blocks_in_contigs_has_its_own_name(run):
    model, said = load_model(run), []
    how: Any = {"context": "contig", "repeats": 2, "baselines": False}
    told = evaluate(model, progress=lambda *at: said.append(at), **how)
    assert (told["context"], told["block"]) == ("contig", 16)
    assert write_evaluation(run, told) == "test in whole contigs in blocks of 16"
    assert said[-1][0] == said[-1][1]
    assert evaluate(model, **how)["bits_per_base"] == told["bits_per_base"]
