"""The bidirectional Mamba-1 mixer.

One input projection, two directions of convolution and scan, one gate, one output projection.

    [x, z] = W_in h        c_d = silu(conv_d(x))        [r, B, C] = W_x,d c_d
    y_d = scan(c_d, W_dt,d r, A_d, B, C, D_d)

Tied directions under "add" share W_in and W_out, so that W_out(y_f ⊙ g) + W_out(y_r ⊙ g) =
W_out((y_f + y_r) ⊙ g) with g = silu(z): each projection runs once. The backward direction reads
time from the right end; nothing is flipped. Source: Gu and Dao, 2023, arXiv 2312.00752; Schiff et
al., 2024, arXiv 2403.03234.
"""

from collections.abc import Callable
from functools import partial
from math import log, sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.backbones.settings import MambaShape
from genodiff.kernels.blocks import mix_blocks
from genodiff.kernels.direction import DirectionWeights, compute_rates
from genodiff.kernels.mixer import mixer, scan_direction

_DT_MIN, _DT_MAX, _DT_FLOOR = 1e-3, 0.1, 1e-4


class Projection(nn.Module):
    """y = x Wᵀ + b, drawn from U(±scale/√inputs) with a bias of zero."""

    def __init__(
        self, inputs: int, outputs: int, bias: bool, draws: InitialValues, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.weight = draws.weight(outputs, inputs, bound=1 / sqrt(inputs), scale=scale)
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, x: Float[Tensor, "*shape inputs"]) -> Float[Tensor, "*shape outputs"]:
        return F.linear(x, self.weight, self.bias)


class Direction(nn.Module):
    """What each direction has of its own: convolution, projections to (dt, B, C), A, D."""

    def __init__(self, d_inner: int, shape: MambaShape, draws: InitialValues) -> None:
        super().__init__()
        d_state, rank = shape.d_state, shape.rank
        bound = 1 / sqrt(shape.d_conv)
        self.conv_weight = draws.weight(d_inner, shape.d_conv, bound=bound)
        self.conv_bias = draws.weight(d_inner, bound=bound) if shape.conv_bias else None
        self.x_proj = Projection(d_inner, rank + 2 * d_state, False, draws)
        self.dt_weight = draws.weight(d_inner, rank, bound=rank**-0.5)
        dt = torch.exp(draws.uniform(d_inner, low=log(_DT_MIN), high=log(_DT_MAX)))
        dt = dt.clamp(min=_DT_FLOOR)
        # The inverse of softplus.
        self.dt_bias = nn.Parameter((dt + torch.log(-torch.expm1(-dt))).float())
        self.A_log = nn.Parameter(torch.log(torch.arange(1.0, d_state + 1)).repeat(d_inner, 1))
        self.D = nn.Parameter(torch.ones(d_inner))
        for parameter in (self.dt_bias, self.A_log, self.D):
            parameter._no_weight_decay = True  # type: ignore[attr-defined]

    def weights(self, A: Tensor | None = None) -> DirectionWeights:
        """The weights as the kernels take them; `A` where it is known."""
        if A is None:
            (A,) = compute_rates([self.A_log])
        steps = (self.x_proj.weight, self.dt_weight, self.dt_bias)
        return DirectionWeights(self.conv_weight, self.conv_bias, *steps, A, self.D)


Reader = Callable[[Tensor, DirectionWeights, bool], Tensor]
"""How a direction reads its inputs (B, L, E): (x, its weights, reverse) -> y."""


class Mamba(nn.Module):
    """A mixer (B, L, D) → (B, L, D), of one direction or two."""

    recompute = False
    """Whether a GPU's backward pass computes the states of scans again."""

    def __init__(self, d_model: int, shape: MambaShape, draws: InitialValues) -> None:
        super().__init__()
        d_inner, bias, scale = shape.expand * d_model, shape.proj_bias, 1 / sqrt(shape.n_layer)
        self.strategy, self.bidirectional = shape.bidirectional_strategy, shape.bidirectional
        self.tied = shape.tie_directions or not shape.bidirectional
        self.in_proj = Projection(d_model, 2 * d_inner, bias, draws)
        self.out_proj = Projection(d_inner, d_model, bias, draws, scale)
        if not self.tied:
            self.in_proj_back = Projection(d_model, 2 * d_inner, bias, draws)
            self.out_proj_back = Projection(d_inner, d_model, bias, draws, scale)
        self.ahead = Direction(d_inner, shape, draws)
        if self.bidirectional:
            self.back = Direction(d_inner, shape, draws)

    def forward(
        self,
        h: Float[Tensor, "B L D"],
        mask: Float[Tensor, "B L 1"] | None = None,
        mirrored: bool = False,
        reader: Reader | None = None,
        size: int | None = None,
    ) -> Float[Tensor, "B L D"]:
        """`mask` is 1 on the sequence and 0 on padding to its right, which then has no influence.
        `mirrored` applies R M R instead of M, R being the flip of time and channels: channels are
        flipped in the weights, time by reading the other way. `reader` takes the place of the
        directions' own reading, for one piece of a longer sequence. With `size`, where `adds`, a
        row is two streams of blocks (`kernels/blocks.py`).
        """
        directions = [self.ahead, self.back] if self.bidirectional else [self.ahead]
        rates = compute_rates([direction.A_log for direction in directions])
        readings = [d.weights(A) for d, A in zip(directions, rates, strict=True)]
        ways = [mirrored, not mirrored][: len(readings)]
        if reader is None and (self.adds or not self.bidirectional):
            into, onto = self.in_proj, self.out_proj
            w_in: Tensor = into.weight.flip(1) if mirrored else into.weight
            w_out: Tensor = onto.weight.flip(0) if mirrored else onto.weight
            b_out: Tensor | None = onto.bias
            given = (w_in, into.bias, w_out)
            if size is None:
                out = mixer(h, *given, readings, ways, mask, self.recompute)
            else:
                out = mix_blocks(h, *given, readings, size, mask)
            if b_out is None:
                return out
            # Each direction adds the bias once.
            return out + len(readings) * (b_out.flip(0) if mirrored else b_out)
        read = partial(scan_direction, mask=mask) if reader is None else reader
        sides = [(*self._project_in(self.in_proj, h, mask, mirrored), self.out_proj)] * len(ways)
        if not self.tied:
            back = self._project_in(self.in_proj_back, h, mask, mirrored)
            sides[1] = (*back, self.out_proj_back)
        out, *others = (
            self._project_out(onto, read(x, weights, way) * F.silu(z), mirrored)
            for (x, z, onto), weights, way in zip(sides, readings, ways, strict=True)
        )
        for other in others:
            out = out + other if self.strategy == "add" else out * other
        return out

    @property
    def adds(self) -> bool:
        """Whether two directions with shared projections are added."""
        return self.bidirectional and self.tied and self.strategy == "add"

    def read_at(self, h: Float[Tensor, "B L D"], at: int) -> Float[Tensor, "B D"]:
        """`forward` at one position, where `adds`.

        Each direction reads its own side of it: W_out is linear, so their sum is that of one call.
        """
        sides = ((h[:, : at + 1], self.ahead, False, -1), (h[:, at:], self.back, True, 0))
        found = [
            mixer(
                side.contiguous(), self.in_proj.weight, self.in_proj.bias, self.out_proj.weight,
                [direction.weights()], [reverse],
            )[:, place]
            for side, direction, reverse, place in sides
        ]  # fmt: skip
        out = found[0] + found[1]
        return out if self.out_proj.bias is None else out + 2 * self.out_proj.bias

    def _project_in(
        self, proj: Projection | nn.Linear, h: Tensor, mask: Tensor | None, mirrored: bool
    ) -> tuple[Tensor, Tensor]:
        x, z = F.linear(h, proj.weight.flip(1) if mirrored else proj.weight, proj.bias).chunk(2, -1)
        return (x if mask is None else x * mask), z

    def _project_out(self, proj: Projection | nn.Linear, y: Tensor, mirrored: bool) -> Tensor:
        if not mirrored:
            return proj(y)
        return F.linear(y, proj.weight.flip(0), None if proj.bias is None else proj.bias.flip(0))
