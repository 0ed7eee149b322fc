"""What others run on a CPU: scans to compare with, and the structure that published Caduceus code
has around one.

Every scan takes (u, delta, A, B, C, D, bias) as `naive_scan`, with softplus, and is differentiable
by torch.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from genodiff.backbones.mamba import Direction, Mamba
from genodiff.kernels.direction import ScanInputs, native_scan
from genodiff.kernels.torch_scan import chunked_scan

Scan = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def native(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, bias: Tensor
) -> Tensor:
    """The C scan."""
    return native_scan(ScanInputs(u, delta, A, B, C, D, bias), True, False)[0]


def chunked(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, bias: Tensor
) -> Tensor:
    """The scan in torch that runs where nothing was compiled."""
    return chunked_scan(ScanInputs(u, delta, A, B, C, D, bias), True, False)[0]


def mambapy() -> Scan:
    """mambapy's parallel scan (PyPI; the fallback of transformers), with the state sum around it as
    its own model has it.
    """
    from mambapy.pscan import pscan

    def scan(
        u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, bias: Tensor
    ) -> Tensor:
        dt = F.softplus(delta + bias)
        a = torch.exp(dt.unsqueeze(-1) * A)
        x = dt.unsqueeze(-1) * B.unsqueeze(2) * u.unsqueeze(-1)
        return (pscan(a, x) @ C.unsqueeze(-1)).squeeze(3) + D * u

    return scan


def loop(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, bias: Tensor
) -> Tensor:
    """A loop over time that never makes anything of size (B, L, E, N)."""
    dt = F.softplus(delta + bias)
    h, ys = u.new_zeros(u.shape[0], *A.shape), []
    for dt_t, x_t, B_t, C_t in zip(
        dt.unbind(1), (dt * u).unbind(1), B.unbind(1), C.unbind(1), strict=True
    ):
        h = torch.exp(dt_t.unsqueeze(-1) * A) * h + x_t.unsqueeze(-1) * B_t.unsqueeze(1)
        ys.append((h @ C_t.unsqueeze(-1)).squeeze(-1))
    return torch.stack(ys, 1) + D * u


def compiled(steps: int = 16) -> Scan:
    """torch.compile of the loop over a few steps, called piece by piece."""

    def piece(
        h: Tensor, dt: Tensor, x: Tensor, A: Tensor, B: Tensor, C: Tensor
    ) -> tuple[Tensor, Tensor]:
        ys = []
        for t in range(steps):
            h = torch.exp(dt[:, t].unsqueeze(-1) * A) * h + x[:, t].unsqueeze(-1) * B[
                :, t
            ].unsqueeze(1)
            ys.append((h * C[:, t].unsqueeze(1)).sum(-1))
        return h, torch.stack(ys, 1)

    run = torch.compile(piece, dynamic=False)

    def scan(
        u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, bias: Tensor
    ) -> Tensor:
        dt = F.softplus(delta + bias)
        h, ys = u.new_zeros(u.shape[0], *A.shape), []
        for dt_, x_, B_, C_ in zip(*(v.split(steps, 1) for v in (dt, dt * u, B, C)), strict=True):
            h, y = run(h, dt_, x_, A, B_, C_)
            ys.append(y)
        return torch.cat(ys, 1) + D * u

    return scan


def associative(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, bias: Tensor
) -> Tensor:
    """The whole scan over log2(L) levels: the maps h -> a h + x of neighbours are composed, then of
    those two apart, and so on (Hillis and Steele 1986). Each level makes tensors (B, L, E, N).
    """
    dt = F.softplus(delta + bias)
    a = torch.exp(dt.unsqueeze(-1) * A)
    x = (dt * u).unsqueeze(-1) * B.unsqueeze(2)
    reach, length = 1, u.shape[1]
    while reach < length:
        x = torch.cat([x[:, :reach], a[:, reach:] * x[:, :-reach] + x[:, reach:]], 1)
        a = torch.cat([a[:, :reach], a[:, reach:] * a[:, :-reach]], 1)
        reach *= 2
    return (x @ C.unsqueeze(-1)).squeeze(-1) + D * u


def compiled_associative() -> Scan:
    """torch.compile of the whole of `associative`, levels and all, as one graph."""
    return torch.compile(associative, dynamic=False, fullgraph=True)


def two_calls(mixer: Mamba, scan: Scan) -> Callable[..., Tensor]:
    """The forward of published bidirectional code, with the weights of `mixer`: two whole Mamba
    calls, one on the flipped sequence, each with its own run of both projections, channels first in
    the convolution.
    """

    def one(h: Tensor, d: Direction) -> Tensor:
        x, z = F.linear(h, mixer.in_proj.weight).chunk(2, -1)
        width = d.conv_weight.shape[1]
        c = F.conv1d(
            x.transpose(1, 2),
            d.conv_weight[:, None],
            d.conv_bias,
            padding=width - 1,
            groups=x.shape[2],
        )[..., : x.shape[1]]
        c = F.silu(c).transpose(1, 2)
        r, B, C = d.x_proj(c).split([d.dt_rank, d.d_state, d.d_state], -1)
        y = scan(c, F.linear(r, d.dt_weight), -torch.exp(d.A_log), B, C, d.D, d.dt_bias)
        return F.linear(y * F.silu(z), mixer.out_proj.weight)

    def forward(h: Tensor, mask: Tensor | None = None, mirrored: bool = False) -> Tensor:
        return one(h, mixer.ahead) + one(h.flip(1), mixer.back).flip(1)

    return forward
