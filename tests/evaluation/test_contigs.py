"""Windows that see all of their contig: the bound of whole intervals, shared out over the windows
of the split.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA, SOFT
from genodiff.backbones.streaming import stream
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objective import objective
from genodiff.diffusion.schedule import Linear
from genodiff.errors import UsageError
from genodiff.evaluation.contigs import measure_contig_bound
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.evaluation_file import write_evaluation


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
