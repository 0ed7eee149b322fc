"""Relatives: genomes of related species, and what they say together of masked windows.

Each genome lies over a window by itself (`alignment.py`); then a tree and a chain of classes make
one factor for each base of all of them (`columns.py`). A denoiser's distribution p becomes

    p'(b at i) ∝ p(b at i) · L_i(b)

so without relatives, or where none says anything, it is p, bit for bit. Only visible bases are
read. The genomes are part of a model that uses them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from genodiff.alphabet import DNA, code_letters
from genodiff.memory.alignment import align_windows
from genodiff.memory.columns import ColumnNumbers, combine
from genodiff.memory.evidence import Floats
from genodiff.memory.memory import Intervals, Memory
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.text import Codes

Denoiser = Callable[..., Tensor]
Loci = tuple[tuple[int, int], ...]
"""Of one window: for each genome the interval of its text that counts as if it were not there."""


class RelativeGenome(NamedTuple):
    """A genome as text and index, and how the target species differs from it."""

    memory: Memory
    numbers: RelativeNumbers


class Relatives(NamedTuple):
    """Genomes, in the order of the leaves of the tree, and the numbers that join them."""

    genomes: tuple[RelativeGenome, ...]
    columns: ColumnNumbers | None
    """None where there are no genomes."""

    def align(self, windows: Codes, without: Sequence[Loci] | None = None) -> Floats:
        """(G, B, L, 4): the chance that each genome has each base over each place, as told by all
        visible bases but that of the place; what is left to 1: that it says nothing.

        `windows` (B, L): codes, 4 where no base is visible. `without`: for each window the interval
        of each genome to leave out.
        """
        over = np.zeros((len(self.genomes), *windows.shape, 4))
        for g, genome in enumerate(self.genomes):
            own: Intervals | None = None if without is None else [loci[g] for loci in without]
            prepared, found = genome.memory.search(windows, own)
            text = genome.memory.text
            for b, one in enumerate(align_windows(text, prepared, found, genome.numbers)):
                over[g, b] = one.over.sum(1)
        return over

    def weigh(self, windows: Codes, prior: Floats, without: Sequence[Loci] | None = None) -> Floats:
        """(B, L, 4): L, the factor of each base, the largest of a place being 1.

        `prior` (B, L, 4): what is said of hidden bases without relatives.

        Example: `relatives.weigh(windows, np.full((*windows.shape, 4), 0.25))`
        """
        if self.columns is None or not windows.size:
            return np.ones((*windows.shape, 4))
        return self.combine(self.align(windows, without), windows, prior)

    def combine(self, over: Floats, windows: Codes, prior: Floats) -> Floats:
        """As `weigh`, where `over` is what `align` found."""
        assert self.columns is not None
        factors = combine(over, windows, prior, self.columns)
        silent = ~over.any((0, 3))
        factors[silent] = 1.0
        return factors


def relating(
    denoiser: Denoiser,
    relatives: Relatives,
    *,
    without: Sequence[Loci] | None = None,
    targets: Sequence[int] = DNA.targets,
    mask_id: int = DNA.mask_id,
    pad_id: int = DNA.pad_id,
) -> Denoiser:
    """`denoiser` with `relatives`: (xt (B, L), sigma) → logits (B, L, V).

    The logits change at masked places of which relatives say something, and only in the columns of
    `targets` (ids of A, C, G, T), whose total chance stays. Padding on the right of a row is not
    read. `without`: for each row and genome the interval to leave out.
    """
    if not relatives.genomes:
        return denoiser
    columns = torch.tensor(list(targets))
    code_of = code_letters(targets)

    def relate(xt: Tensor, *more: Tensor, **options: Any) -> Tensor:
        logits = denoiser(xt, *more, **options)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        ids, at = xt.cpu().numpy(), columns.to(logits.device)
        mine = logits[..., at].double()
        total = mine.logsumexp(-1, keepdim=True)
        prior = (mine - total).detach().exp().cpu().numpy()
        lengths = ((ids != pad_id) * np.arange(1, ids.shape[1] + 1)).max(1, initial=0)
        factors = np.ones(prior.shape)
        for n in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == n)
            own = None if without is None else [without[i] for i in rows.tolist()]
            codes = np.ascontiguousarray(code_of[ids[rows, :n]])
            factors[rows, :n] = relatives.weigh(codes, prior[rows, :n], own)
        changes = (xt == mask_id) & torch.from_numpy((factors != 1).any(-1)).to(xt.device)
        joint = mine + torch.from_numpy(np.log(factors)).to(logits.device)
        joint = joint - joint.logsumexp(-1, keepdim=True) + total
        new = logits.index_copy(-1, at, joint.to(logits.dtype))
        return torch.where(changes[..., None], new, logits)

    return relate
