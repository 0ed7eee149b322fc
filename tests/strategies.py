"""Hypothesis strategies: processes, windows, logits and uniforms of every awkward shape."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import SCHEDULES, schedule

seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Windows:
    """A process and a batch it could meet: x0 (B, L), what may be masked, logits (B, L, V), a
    source of uniforms.
    """

    schedule: str
    mask_id: int
    targets: tuple[int, ...]
    x0: Tensor
    maskable: Tensor
    logits: Tensor
    seed: int

    @property
    def diffusion(self) -> MaskedDiffusion:
        return MaskedDiffusion(schedule(self.schedule), self.mask_id, self.targets)

    def uniforms(self, *shape: int, stream: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed + 1000 * (stream + 1))
        return torch.rand(*shape, generator=generator, dtype=torch.float64)


@st.composite
def windows(draw: st.DrawFn, max_batch: int = 4, max_length: int = 12) -> Windows:
    """Any vocabulary, any targets, any mask id; windows with few, many or no maskable positions."""
    vocab_size = draw(st.integers(3, 12))
    ids = draw(st.permutations(range(vocab_size)))
    n_targets = draw(st.integers(1, vocab_size - 1))
    targets, mask_id = tuple(ids[:n_targets]), ids[n_targets]
    others = [i for i in ids if i != mask_id]
    batch, length, seed = (
        draw(st.integers(1, max_batch)),
        draw(st.integers(1, max_length)),
        draw(seeds),
    )
    generator = torch.Generator().manual_seed(seed)
    maskable = torch.rand(batch, length, generator=generator) < draw(
        st.sampled_from([0.0, 0.3, 0.8, 1.0])
    )
    pick = torch.randint(0, 10**6, (batch, length), generator=generator)
    x0 = torch.where(
        maskable, torch.tensor(targets)[pick % n_targets], torch.tensor(others)[pick % len(others)]
    )
    logits = 3 * torch.randn(batch, length, vocab_size, generator=generator, dtype=torch.float64)
    return Windows(
        draw(st.sampled_from(sorted(SCHEDULES))), mask_id, targets, x0, maskable, logits, seed
    )
