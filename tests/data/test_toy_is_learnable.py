"""The toy genome and the real network together: a few hundred steps close much of the gap, and none
of it by a leak.
"""

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS
from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.loader import Batch, EvalBatches, TrainBatches
from genodiff.data.recipe import load_recipe
from genodiff.data.toy import ToySource
from genodiff.diffusion.loss import LossTerms, exact_count_loss
from genodiff.diffusion.masked import Clean, MaskedDiffusion, counts, times
from genodiff.diffusion.schedule import Linear

STEPS, LENGTH, ROWS = 60, 256, 16


@pytest.mark.slow
def test_a_tiny_network_closes_a_third_of_the_gap_in_sixty_steps_and_never_beats_the_source():
    recipe = load_recipe("toy")
    store = build_dna_store(recipe)
    train, test = (DnaWindows(store, recipe, split, LENGTH) for split in ("train", "test"))
    net = PRESETS["caduceus-ps-tiny"].build(DNA.padded_size, DNA.complement)
    process = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
    optimizer = torch.optim.AdamW(net.parameters(), lr=8e-3, betas=(0.9, 0.95), weight_decay=0.0)

    def terms(batch: Batch) -> LossTerms:
        t = times("systematic", batch.u_time, batch.u_shared, batch.slot, batch.n_slots)
        k = counts(t, batch.maskable.sum(-1))
        return exact_count_loss(
            process, lambda xt, _: net(xt), Clean(batch.x0, batch.maskable), k, batch.u_mask
        )

    batches = TrainBatches(train, seed=1, batch_size=ROWS)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = (
                8e-3
                * min(1, (step + 1) / 6)
                * (0.05 + 0.95 * 0.5 * (1 + np.cos(np.pi * step / STEPS)))
            )
        loss = terms(batches.batch(step))
        optimizer.zero_grad()
        (loss.nats / loss.n_tokens).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    nats, tokens = 0.0, 0
    with torch.no_grad():
        for batch in EvalBatches(test, 64, seed=1):
            loss = terms(batch)
            nats, tokens = nats + float(loss.nats_unweighted), tokens + int(loss.n_tokens)
    bound = nats / tokens / np.log(2)
    rows = test.gather(test.flat_start, test.length, DNA.pad_id)
    source = ToySource().bits_per_base(rows)
    share = np.bincount(rows.ravel(), minlength=11)[7:11] / rows.size
    order_0 = -(share * np.log2(share)).sum()
    assert source < bound < order_0 - (order_0 - source) / 3
