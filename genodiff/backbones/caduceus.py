"""Caduceus: blocks of pre-norm bidirectional Mamba, on one strand or on both.

The whole of it, for ids x (L,), without what makes it fast:

    s = E[stack([x, complement[x].flip(0)])]              # (2, L, D): both strands are rows
    for norm, mamba in blocks:
        s = s + mamba(norm(s))                            # Mamba in both directions, added
    logits = final_norm(s) @ E.T
    return logits[0] + logits[1].flip(0)[:, complement]   # the vote: equivariant by construction

Without "paired" there is one row and no vote. Source: Schiff et al., 2024, arXiv 2403.03234.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from math import ceil, sqrt
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import (
    NETWORKS,
    Backbone,
    InitialValues,
    Norm,
    exchange_strands,
    flip_positions,
    join_strands,
    mask_padding,
    recompute,
    stack_strands,
    take_last,
    vote,
)
from genodiff.backbones.blocks import read_streams
from genodiff.backbones.conditioning import embed_classes
from genodiff.backbones.kinds.caduceus import RECALLED, CaduceusSettings
from genodiff.backbones.mamba import Mamba
from genodiff.errors import UsageError
from genodiff.kernels.direction import DirectionState, DirectionWeights, zero_state
from genodiff.kernels.linear import linear, look_up
from genodiff.kernels.mixer import scan_piece

_AT_A_TIME = 1 << 16
"""Positions, where blocks are recomputed to save memory: a longer row goes alone."""
_LONG = 1 << 17  # positions of all rows, from where even the blocks' inputs are too many to keep


class Block(nn.Module):
    """One step of the residual stream: norm, then mixer."""

    def __init__(self, settings: CaduceusSettings, draws: InitialValues) -> None:
        super().__init__()
        s = settings
        self.norm = Norm(s.norm, s.d_model, s.norm_eps)
        self.mixer = Mamba(s.d_model, s, draws)
        self.mixer.recompute = s.recompute_states

    def forward(self, residual: Tensor, mask: Tensor | None, mirrored: bool) -> Tensor:
        return self.mixer(self.norm(residual, mirrored), mask, mirrored)

    def read_at(self, residual: Float[Tensor, "B L D"], at: int) -> Float[Tensor, "B D"]:
        """The residual stream after this block, at one position."""
        return residual[:, at] + self.mixer.read_at(self.norm(residual), at)


def _recomputed(block: nn.Module, residual: Tensor, mask: Tensor | None, mirrored: bool) -> Tensor:
    """The block's output; the backward pass keeps its input alone and computes it again.

    Rows do not depend on one another, so a few are taken at a time.
    """
    rows = max(1, _AT_A_TIME // max(residual.shape[1], 1))
    masks = repeat(None) if mask is None else mask.split(rows)
    parts = [
        recompute(block, part, of, mirrored)
        for part, of in zip(residual.split(rows), masks, strict=False)
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


@NETWORKS.register("caduceus")
class Caduceus(Backbone):
    """Logits for every position of a partly masked sequence: a denoiser, `(xt, sigma) -> logits`.
    Time is not an input.
    """

    settings: CaduceusSettings
    complement: Tensor | None
    blocks: Sequence[Block]
    selects_rows = True

    def __init__(
        self,
        *,
        settings: CaduceusSettings,
        vocab_size: int,
        complement: tuple[int, ...] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.settings, self.vocab_size = settings, vocab_size
        self.paired = settings.paired
        if self.paired and (complement is None or sorted(complement) != list(range(vocab_size))):
            what = "paired strands need a complement for every token"
            raise UsageError(what, fix="choose strands: single for this alphabet")
        map_ = torch.tensor(complement) if self.paired else None
        self.register_buffer("complement", map_, persistent=False)
        draws = InitialValues(seed)
        self.embedding = draws.table(vocab_size, settings.d_model)
        blocks: Any = nn.ModuleList(Block(settings, draws) for _ in range(settings.n_layer))
        self.blocks = blocks
        self.final_norm = Norm(settings.norm, settings.d_model, settings.norm_eps)
        self.head = None if settings.tied_head else draws.table(vocab_size, settings.d_model)
        # Zeros at first: until it has learnt a class, the network is the one without classes, and
        # until it has learnt to read a memory, the one without a memory.
        self.classes, self.recalled = (
            nn.Parameter(torch.zeros(rows, settings.d_model)) if rows else None
            for rows in (settings.n_classes, RECALLED * settings.recalls)
        )
        # Stores the residual stream in this dtype between blocks; None leaves it as computed
        # (float32 under autocast).
        self.residual_dtype: torch.dtype | None = None

    @property
    def d_out(self) -> int:
        return self.settings.d_model * (2 if self.paired else 1)

    def forward(
        self,
        xt: Int[Tensor, "B L"],
        sigma: Tensor | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        *,
        rows: Bool[Tensor, "B L"] | None = None,
        labels: Int[Tensor, " B"] | None = None,
        recalled: Float[Tensor, "B L 4"] | None = None,
        clean: Int[Tensor, "B L"] | None = None,
        block: int | None = None,
    ) -> Float[Tensor, "*positions {self.vocab_size}"]:
        """Logits (B, L, V), or those of the true positions of `rows`, (n, V), in reading order.

        `lengths` gives each row's length where rows are padded on the right; padding then changes
        nothing. `labels` are the rows' classes, -1 for none. `recalled` is what a memory says of
        each position: weights of four tokens, those of the other strand in reverse order.

        With `block` a position sees its own block of so many, and of those before it the tokens of
        `clean`; without `clean`, those of xt (`blocks.py`).
        """
        if block is not None:
            return read_streams(self, xt if clean is None else clean, xt, block, lengths, labels)
        hidden = take_last(self._read(xt, lengths, labels, recalled=recalled))
        if self.complement is None:
            return linear(hidden if rows is None else hidden[rows], self.head_weight)
        logits = vote(linear(hidden, self.head_weight), self.complement, lengths)
        return logits if rows is None else logits[rows]

    def logits_at(self, xt: Int[Tensor, "B L"], at: int) -> Float[Tensor, "B {self.vocab_size}"]:
        """The logits of position `at` of each row, as `forward` gives them up to float error.

        The last block is computed only as far as it reaches that position.
        """
        last = self.blocks[-1]
        if not last.mixer.adds or self.settings.alternate_strands or self.residual_dtype:
            return self(xt)[:, at]
        residual = self.embed(xt)
        for i in range(len(self.blocks) - 1):
            residual, _ = self._step(i, residual, None, False)
        strands = [(residual, at)]
        if self.complement is not None:
            given, other = residual.chunk(2)
            strands = [(given, at), (other, xt.shape[1] - 1 - at)]
        rows = torch.cat([last.read_at(strand, place) for strand, place in strands])
        logits = linear(self.final_norm(rows)[:, None], self.head_weight)
        return (logits if self.complement is None else vote(logits, self.complement, None))[:, 0]

    def features(  # type: ignore[override]
        self,
        xt: Int[Tensor, "B L"],
        sigma: Tensor | None = None,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B L {self.d_out}"]:
        """What the head reads.

        With paired strands it is [s(x), R s(rc x)] side by side; R flips positions and channels.
        """
        rows = take_last(self._read(xt, lengths))
        return join_strands(rows, lengths) if self.paired else rows

    def _stream(  # type: ignore[override]
        self, xt: Tensor, sigma: Tensor | None, lengths: Tensor | None
    ) -> Iterator[Tensor]:
        """The embedding, the output of each mixer but the last, and the features, laid out so."""
        for i, rows in enumerate(self._read(xt, lengths, every=True)):
            if self.settings.alternate_strands and i % 2 and i < self.settings.n_layer:
                rows = exchange_strands(rows, lengths)
            yield join_strands(rows, lengths) if self.paired else rows

    def embed(
        self,
        xt: Int[Tensor, "B L"],
        labels: Int[Tensor, " B"] | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        recalled: Float[Tensor, "B L 4"] | None = None,
    ) -> Float[Tensor, "rows L D"]:
        """What the first block reads. With paired strands, the strands are rows.

        Both strands have the same class, and what is recalled of the other one is turned, so the
        network stays equivariant.
        """
        labels = self.fill_labels(xt, labels)
        if recalled is not None and self.recalled is None:
            raise UsageError("this network reads no memory", fix="train one with --memory")
        if self.complement is not None:
            xt = stack_strands(xt, self.complement, lengths)
            labels = None if labels is None else labels.repeat(2)
        found = look_up(xt, self.embedding)
        if recalled is not None and self.recalled is not None:
            if self.complement is not None:
                recalled = torch.cat([recalled, flip_positions(recalled, lengths).flip(2)])
            found = found + recalled.to(found.dtype) @ self.recalled
        if labels is None or self.classes is None:
            return found
        return found + embed_classes(labels, self.classes)[:, None]

    def _read(
        self,
        xt: Tensor,
        lengths: Tensor | None,
        labels: Tensor | None = None,
        every: bool = False,
        recalled: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """The input of each block without the residual, then the output of the last norm.

        With paired strands, the strands are rows. Without `every`, only the last one is sure to
        come.
        """
        hidden = self.embed(xt, labels, lengths, recalled)
        of_rows = lengths.repeat(2) if lengths is not None and self.paired else lengths
        mask = mask_padding(hidden, of_rows, self.embedding)
        yield hidden
        again = self.settings.checkpointing and torch.is_grad_enabled()
        if not again and self.residual_dtype is None:
            yield from self._add_late(hidden, mask, lengths)
            return
        residual, n = hidden, len(self.blocks)
        if again and not every and hidden.shape[:2].numel() >= _LONG:
            # Inputs of groups of blocks are kept, and of blocks within one group: about 2 √n of n,
            # for one more forward pass.
            size = ceil(sqrt(n))
            for first in range(0, n, size):
                group = partial(self._group, range(first, min(first + size, n)))
                residual = recompute(group, residual, mask)
        else:
            for i in range(n):
                residual, hidden = self._step(i, residual, mask, again)
                if i + 1 < n:
                    yield hidden
        if self.settings.alternate_strands and len(self.blocks) % 2:
            residual = exchange_strands(residual, lengths)
        yield self.final_norm(residual)

    def _add_late(
        self, residual: Tensor, mask: Tensor | None, lengths: Tensor | None
    ) -> Iterator[Tensor]:
        """What `_read` yields after the embedding.

        What a block gives is added to the residual stream where the next norm reads it: on a GPU
        one kernel does both.
        """
        hidden: Tensor | None = None
        for i, block in enumerate(self.blocks):
            mirrored = self.settings.alternate_strands and i % 2 == 0
            if hidden is None:
                normed = block.norm(residual, mirrored)
            else:
                residual, normed = block.norm.add(residual, hidden, mirrored)
            hidden = block.mixer(normed, mask, mirrored)
            del normed
            if i + 1 < len(self.blocks):
                yield hidden
        assert hidden is not None
        if self.settings.alternate_strands and len(self.blocks) % 2:
            yield self.final_norm(exchange_strands(residual + hidden, lengths))
        else:
            yield self.final_norm.add(residual, hidden)[1]

    def _group(self, blocks: range, residual: Tensor, mask: Tensor | None) -> Tensor:
        for i in blocks:
            residual, _ = self._step(i, residual, mask, True)
        return residual

    def _step(
        self, i: int, residual: Tensor, mask: Tensor | None, again: bool
    ) -> tuple[Tensor, Tensor]:
        """The residual stream after block i, and what the block has added to it."""
        block, mirrored = self.blocks[i], self.settings.alternate_strands and i % 2 == 0
        given = (residual, mask, mirrored)
        hidden = _recomputed(block, *given) if again else block(*given)
        if self.residual_dtype is not None:
            residual = residual.to(self.residual_dtype)
        return residual + hidden, hidden

    def cache(self, capacity: int) -> list[DirectionState]:
        """An empty cache for `decode`: what each block carries over, whatever the `capacity`."""
        if not self.settings.causal:
            what = "only a causal network can continue from a cached state"
            raise UsageError(what, fix="train a one-way network")
        return []

    def decode(
        self, x: Int[Tensor, "B n"], cache: list[DirectionState], sigma: Tensor | None = None
    ) -> Float[Tensor, "B n {self.vocab_size}"]:
        """Logits of the n positions that follow those in the cache, which then holds them too."""
        residual = self.embed(x)
        for i, block in enumerate(self.blocks):
            if i == len(cache):
                cache.append(zero_state(block.mixer.ahead.weights(), len(x)))

            def read(x: Tensor, weights: DirectionWeights, reverse: bool, i: int = i) -> Tensor:
                y, cache[i] = scan_piece(x, weights, reverse, cache[i])
                return y

            residual = residual + block.mixer(block.norm(residual), None, False, read)
        return F.linear(self.final_norm(residual), self.head_weight)
