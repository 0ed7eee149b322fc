"""How much each estimate of the bound varies on a DNA-like reference, and that exact counts vary
least.
"""

import functools

import pytest
import torch
from worlds import dna_like

from genodiff.diffusion.loss import continuous_time_loss, exact_count_loss
from genodiff.diffusion.masked import Clean, MaskedDiffusion, counts, times
from genodiff.diffusion.schedule import Linear

BATCH, LENGTH = 32, 256


@functools.cache
def spread(repeats: int, stay: float) -> dict[tuple[str, str], torch.Tensor]:
    """Nats per token of `repeats` estimates of one batch, for each estimate and way of drawing
    times.
    """
    world = dna_like(LENGTH, stay)
    diffusion = MaskedDiffusion(Linear(), world.mask_id, world.targets)
    g = torch.Generator().manual_seed(1)
    x0 = world.draw(torch.rand(BATCH, LENGTH, generator=g, dtype=torch.float64))
    ok, slot = torch.ones(BATCH, LENGTH, dtype=torch.bool), torch.arange(BATCH)
    found: dict[tuple[str, str], list[torch.Tensor]] = {}
    for _ in range(repeats):
        own, u = (
            torch.rand(*shape, generator=g, dtype=torch.float64)
            for shape in ((BATCH,), (BATCH, LENGTH))
        )
        shared = torch.rand(1, generator=g).item()
        for method in ("iid", "stratified", "systematic"):
            t = times(method, own, shared, slot, BATCH)
            k = counts(t, ok.sum(-1))
            for name, loss in (
                (
                    "continuous",
                    continuous_time_loss(diffusion, world.denoiser, Clean(x0, ok), t, u),
                ),
                ("exact count", exact_count_loss(diffusion, world.denoiser, Clean(x0, ok), k, u)),
            ):
                found.setdefault((name, method), []).append(loss.nats / loss.n_tokens)
    return {key: torch.stack(values) for key, values in found.items()}


@pytest.mark.slow
def test_exact_count_systematic_varies_at_most_half_as_much_as_stratified():
    found = spread(120, stay=0.4)
    assert found["exact count", "systematic"].std() <= found["continuous", "stratified"].std() / 2
    assert found["exact count", "systematic"].std() < found["continuous", "iid"].std() / 2
