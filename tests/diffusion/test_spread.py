"""Exact counts at systematic times vary least, of a DNA-like reference."""

from collections import defaultdict

import pytest
import torch
from worlds import dna_like

from genodiff.diffusion.loss import continuous_time_loss, exact_count_loss
from genodiff.diffusion.masked import Clean, MaskedDiffusion, counts, times
from genodiff.diffusion.schedule import Linear

BATCH, LENGTH = 32, 256


@pytest.mark.slow
def test_exact_counts_at_systematic_times_vary_at_most_half_as_much_as_stratified_times():
    world, g = dna_like(LENGTH, stay=0.4), torch.Generator().manual_seed(1)
    diffusion = MaskedDiffusion(Linear(), world.mask_id, world.targets)
    x0 = world.draw(torch.rand(BATCH, LENGTH, generator=g, dtype=torch.float64))
    clean, slot = Clean(x0, torch.ones(BATCH, LENGTH, dtype=torch.bool)), torch.arange(BATCH)
    found = defaultdict(list)
    for _ in range(120):
        own = torch.rand(BATCH, generator=g, dtype=torch.float64)
        u = torch.rand(BATCH, LENGTH, generator=g, dtype=torch.float64)
        shared = torch.rand(1, generator=g).item()
        for method in ("iid", "stratified", "systematic"):
            t = times(method, own, shared, slot, BATCH)
            if method == "systematic":
                t = counts(t, clean.n)
            loss = exact_count_loss if method == "systematic" else continuous_time_loss
            found[method].append(loss(diffusion, world.denoiser, clean, t, u).nats)
    spread = {method: torch.stack(nats).std() for method, nats in found.items()}
    assert spread["systematic"] <= spread["stratified"] / 2
    assert spread["systematic"] < spread["iid"] / 2
