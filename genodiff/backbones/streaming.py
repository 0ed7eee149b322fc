"""A Caduceus over a sequence of any length, in pieces, equal to one pass over the whole.

A bidirectional layer needs what its two directions carry into a piece, from the left and from the
right: the last d_conv − 1 inputs of the convolution and the state h of the scan. They are found
layer by layer, sweeping once each way; they are small (d_inner · (d_state + d_conv) numbers a
piece), so the memory is that of one piece. The residual stream between layers is kept where it fits
into `keep` bytes, which costs twice one pass, and computed again otherwise.

    carried to the right by layer l:   (x_{e−d_conv+1 .. e−1},  h_e)   at each piece's end e,
    h_e = Ā_e h_{e−1} + B̄_e x_e

Pieces of the other strand are the mirror images of those of the given one, so that the vote is
taken piece by piece.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.backbones.backbone import exchange_strands, vote
from genodiff.backbones.caduceus import Block, Caduceus
from genodiff.kernels.direction import DirectionState, DirectionWeights, zero_state
from genodiff.kernels.mixer import scan_piece

PIECE = 1 << 15
KEEP = 2 << 30


def stream(
    network: Caduceus, xt: Int[Tensor, " L"], *, piece: int = PIECE, keep: int = KEEP
) -> Iterator[tuple[int, Float[Tensor, "n V"]]]:
    """(start, logits from there on) of pieces of at most `piece` bases, from left to right.

    Equal to `network(xt[None])[0]` up to float error, for the ids `xt` of one sequence. `keep` is
    how many bytes of intermediate results may be held. Raises `ValueError` for a piece of no bases.
    """
    if piece < 1:
        raise ValueError(f"a piece of {piece} bases cannot be cut")
    ends = [*range(piece, len(xt), piece), len(xt)] if len(xt) else []
    strands = [_Strand(network, xt, ends)]
    if network.complement is not None:
        other = network.complement[xt.long()].to(xt.dtype).flip(0)
        turned = [len(xt) - start for start in reversed([0, *ends[:-1]])]
        strands.append(_Strand(network, other, turned))
    n = len(network.blocks)
    size = len(strands) * len(xt) * network.settings.d_model * network.embedding.element_size()
    for strand in strands:
        strand.sweep(size <= keep)
    for i, start in enumerate([0, *ends[:-1]] if ends else []):
        pieces = (i, len(ends) - 1 - i)
        tops = [strand.residual(n, at) for strand, at in zip(strands, pieces, strict=False)]
        yield start, _logits(network, torch.cat(tops))


@torch.no_grad()
def _logits(network: Caduceus, rows: Tensor) -> Tensor:
    if network.settings.alternate_strands and len(network.blocks) % 2:
        rows = exchange_strands(rows)
    logits = F.linear(network.final_norm(rows), network.head_weight)
    return (logits if network.complement is None else vote(logits, network.complement))[0]


class _Strand:
    """One strand in its own reading direction, cut at `ends`."""

    def __init__(self, network: Caduceus, xt: Tensor, ends: list[int]) -> None:
        self._network, self._xt = network, xt
        self._spans = list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []
        # What comes into each piece from the left and from the right, for each layer.
        self._edges: list[tuple[list[DirectionState], list[DirectionState]]] = []
        self._kept: list[Tensor] | None = None

    @torch.no_grad()
    def sweep(self, keep: bool) -> None:
        """Find what every layer carries from piece to piece."""
        if keep:
            self._kept = [self._embedded(i) for i in range(len(self._spans))]
        for layer in range(len(self._network.blocks)):
            self._edges.append((self._carried(layer, False), self._carried(layer, True)[::-1]))
            if self._kept is not None:
                kept = enumerate(self._kept)
                self._kept = [rows + self._mixed(layer, rows, i) for i, rows in kept]

    @torch.no_grad()
    def residual(self, layer: int, i: int) -> Tensor:
        """(1, n, D): what this layer's norm reads on piece i, or after all layers the last norm."""
        if self._kept is not None:
            return self._kept[i]
        rows = self._embedded(i)
        for below in range(layer):
            rows = rows + self._mixed(below, rows, i)
        return rows

    def _embedded(self, i: int) -> Tensor:
        start, end = self._spans[i]
        return F.embedding(self._xt[None, start:end].long(), self._network.embedding)

    def _mixed(self, layer: int, rows: Tensor, i: int) -> Tensor:
        left, right = self._edges[layer]

        def read(x: Tensor, weights: DirectionWeights, reverse: bool) -> Tensor:
            return scan_piece(x, weights, reverse, (right if reverse else left)[i])[0]

        block, mirrored = self._block(layer)
        mixed: Tensor = block.mixer(block.norm(rows, mirrored), None, mirrored, read)
        return mixed

    def _carried(self, layer: int, backward: bool) -> list[DirectionState]:
        """What comes into each piece from the left, or from the right, in the order read."""
        block, mirrored = self._block(layer)
        found = [zero_state(block.mixer.ahead.weights())]

        def read(x: Tensor, weights: DirectionWeights, reverse: bool) -> Tensor:
            if reverse == backward:
                y, edge = scan_piece(x, weights, reverse, found[-1])
                found.append(edge)
                return y
            return torch.zeros_like(x)

        pieces = range(len(self._spans))
        for i in reversed(pieces[1:]) if backward else pieces[:-1]:
            block.mixer(block.norm(self.residual(layer, i), mirrored), None, mirrored, read)
            if not (block.mixer.bidirectional or mirrored == backward):
                found.append(found[-1])
        return found

    def _block(self, layer: int) -> tuple[Block, bool]:
        """A block, and whether it reads the strand mirrored."""
        mirrored = self._network.settings.alternate_strands and layer % 2 == 0
        return self._network.blocks[layer], mirrored
