"""Block diffusion: a network of Mamba blocks reads a block of the sequence after its clean past.

    x¹ … x^B   blocks of `size` positions, the last one maybe shorter; z^b is x^b with masks
    ahead      reads x¹ … x^(b−1), then z^b
    back       reads z^b alone, from its right end

So the logits at z^b know what is before the block and, on both sides, what is visible in it. With
one block they are the network's own; with blocks of one position the network reads one way, and
has a likelihood. The clean past is read in the same blocks, and all that is kept of it is what the
way ahead has at its end: per layer the scan's state and the convolution's last inputs.

`read_by_pass` is the definition, one pass over past and block for each block. `read_streams` reads
all blocks at once, on a noised and a clean stream. `BlockPast` keeps the states and goes on.

Upstream on one strand is downstream on the other, so block diffusion needs a network of single
strands, and models the strand that is read.

Source: Arriola et al. 2025, arXiv 2503.09573, whose networks keep keys and values instead.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import mask_padding, recompute
from genodiff.backbones.mamba import Mamba, Reader
from genodiff.errors import UsageError
from genodiff.kernels.blocks import read_back, scan_blocks
from genodiff.kernels.direction import DirectionState, DirectionWeights, zero_state
from genodiff.kernels.linear import linear
from genodiff.kernels.mixer import join, scan_direction, scan_piece, separate

if TYPE_CHECKING:
    from genodiff.backbones.caduceus import Block, Caduceus


def read_by_pass(
    network: "Caduceus",
    clean: Int[Tensor, "B L"],
    xt: Int[Tensor, "B L"],
    size: int,
    labels: Int[Tensor, " B"] | None = None,
) -> Float[Tensor, "B L V"]:
    """Logits at xt, each block from a pass over the clean past and itself."""

    def read(x: Tensor, weights: DirectionWeights, reverse: bool) -> Tensor:
        if not reverse:
            return scan_direction(x, weights, False)
        return torch.cat([scan_direction(part, weights, True) for part in x.split(size, 1)], 1)

    logits = []
    for start in range(0, xt.shape[1], size):
        end = min(start + size, xt.shape[1])
        seen = torch.cat([clean[:, :start], xt[:, start:end]], 1)
        found = _pass(network, network.embed(seen, labels), _by_readers(lambda _: read))
        logits.append(_head(network, found)[:, start:])
    return torch.cat(logits, 1)


def read_streams(
    network: "Caduceus",
    clean: Int[Tensor, "B L"],
    xt: Int[Tensor, "B L"],
    size: int,
    lengths: Int[Tensor, " B"] | None = None,
    labels: Int[Tensor, " B"] | None = None,
) -> Float[Tensor, "B L V"]:
    """As `read_by_pass`, with one clean and one noised stream; `lengths` as in a Caduceus.

    Raises `UsageError` for a network that cannot read blocks.
    """
    check_network(network)
    length, size = xt.shape[1], min(size, max(xt.shape[1], 1))
    noised, given = (F.pad(of, (0, -length % size)) for of in (xt, clean))
    mask = None
    if lengths is not None or noised.shape[1] > length:
        at = torch.arange(noised.shape[1], device=xt.device)
        ends = torch.full_like(xt[:, 0], length) if lengths is None else lengths
        inside = at < ends[:, None]
        mask = join(inside, inside, size)[..., None].to(network.embedding.dtype)

    def read(x: Tensor, weights: DirectionWeights, reverse: bool) -> Tensor:
        if not reverse:
            return scan_blocks(x, weights, size)
        return read_back(x, weights, size, mask)

    def mix(_: int, mixer: Mamba, hidden: Tensor) -> Tensor:
        mixed: Tensor = mixer(hidden, mask, False, None if mixer.adds else read, size)
        return mixed

    found = _pass(network, network.embed(join(noised, given, size), labels), mix)
    return _head(network, separate(found, size)[0][:, :length])


class BlockPast:
    """The states at the end of what has been read of B sequences; its size is the same throughout.

    `length` positions have been read.
    """

    def __init__(self, network: "Caduceus", batch: int) -> None:
        """Raises `UsageError` for a network that cannot read blocks."""
        check_network(network)
        self.network, self.length = network, 0
        weights = [block.mixer.ahead.weights() for block in network.blocks]
        self._edges = [zero_state(one, batch) for one in weights]

    def read(
        self,
        xt: Int[Tensor, "A n"],
        rows: Int[Tensor, " A"] | None = None,
        lengths: Int[Tensor, " A"] | None = None,
    ) -> Float[Tensor, "A n V"]:
        """Logits at the block that follows, of these rows [all]; the states stay as they are."""
        return _head(self.network, self._go(xt, rows, lengths, False))

    def add(self, x: Int[Tensor, "A n"], rows: Int[Tensor, " A"] | None = None) -> None:
        """Read a clean block into the states of these rows [all]; others have no further block."""
        self._go(x, rows, None, True)
        self.length += x.shape[1]

    def _go(
        self, x: Tensor, rows: Tensor | None, lengths: Tensor | None, keep: bool
    ) -> Float[Tensor, "A n D"]:
        mask = mask_padding(x, lengths, self.network.embedding)

        def read(i: int, x: Tensor, weights: DirectionWeights, reverse: bool) -> Tensor:
            if reverse:
                return scan_direction(x, weights, True, mask)
            before = self._edges[i]
            if rows is not None:
                before = DirectionState(*(part[rows] for part in before))
            y, after = scan_piece(x, weights, False, before)
            if keep and rows is not None:
                for part, new in zip(self._edges[i], after, strict=True):
                    part[rows] = new
            elif keep:
                self._edges[i] = after
            return y

        mix = _by_readers(lambda i: partial(read, i), mask)
        return _pass(self.network, self.network.embed(x), mix)


def check_network(network: nn.Module) -> "Caduceus":
    """The network, typed. Raises `UsageError` for a network that cannot read blocks."""
    s: Any = network.settings
    if not getattr(s, "reads_blocks", False) and s.kind != "caduceus":
        what = f"block diffusion (--block) needs a network of Mamba blocks, and this is a {s.kind}"
        raise UsageError(what, fix="give a Caduceus of single strands")
    if s.paired or not s.bidirectional:
        what = "with both strands at once" if s.paired else "one way already"
        raise UsageError(
            f"block diffusion (--block) reads a strand from left to right, and this network reads "
            f"{what}",
            fix="give a preset of single strands, such as caduceus-ph-470k",
        )
    if s.recalls:
        raise UsageError("block diffusion (--block) reads no memory", fix="leave --memory out")
    return network  # type: ignore[return-value]


Mix = Callable[[int, Mamba, Tensor], Tensor]
"""What block i adds to the residual stream: (i, its mixer, what its norm gives) -> added."""


def _by_readers(of_layer: Callable[[int], Reader], mask: Tensor | None = None) -> Mix:
    """Mixers whose directions are read by their block's reader."""
    return lambda i, mixer, hidden: mixer(hidden, mask, False, of_layer(i))


def _pass(network: "Caduceus", residual: Tensor, mix: Mix) -> Tensor:
    """The residual stream after all blocks."""
    again = network.settings.checkpointing and torch.is_grad_enabled()
    for i, block in enumerate(network.blocks):

        def add(residual: Tensor, i: int = i, block: "Block" = block) -> Tensor:
            return mix(i, block.mixer, block.norm(residual))

        residual = residual + (recompute(add, residual) if again else add(residual))
    return residual


def _head(network: "Caduceus", residual: Tensor) -> Tensor:
    return linear(network.final_norm(residual), network.head_weight)
