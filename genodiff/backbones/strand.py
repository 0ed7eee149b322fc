"""Both strands of DNA as rows [x; rc x] of one batch, with a vote at the head.

Rows hold the strands one after the other: the first B rows the given ones, the last B their reverse
complements, each reversed within its own length so that padding stays on the right. R is the flip
of positions and channels: R s(rc x) stands beside s(x), base by base. Source: Schiff et al., 2024,
arXiv 2403.03234 (parameter sharing); Shrikumar et al., 2017, on reverse-complement equivariance.
"""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


def flip_positions(
    x: Shaped[Tensor, "B L *rest"], lengths: Int[Tensor, " B"] | None = None
) -> Shaped[Tensor, "B L *rest"]:
    """Each row read from its end; positions from `lengths` on, the padding, stay where they are."""
    if lengths is None:
        return x.flip(1)
    at = torch.arange(x.shape[1], device=x.device)
    source = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
    return x.gather(1, source.reshape(*source.shape, *[1] * (x.ndim - 2)).expand(x.shape))


def stack_strands(
    xt: Int[Tensor, "B L"], complement: Int[Tensor, " V"], lengths: Int[Tensor, " B"] | None = None
) -> Int[Tensor, "2*B L"]:
    """The rows [x; rc x]."""
    return torch.cat([xt, flip_positions(complement[xt], lengths)])


def _halves(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Both strands' rows; as `chunk`, for a number of rows that may be a symbol (torch.export)."""
    half = rows.shape[0] // 2
    return rows[:half], rows[half:]


def vote(
    logits: Float[Tensor, "rows L V"],
    complement: Int[Tensor, " V"],
    lengths: Int[Tensor, " B"] | None = None,
) -> Float[Tensor, "B L V"]:
    """The sum of what both strands say about each base of the given one."""
    given, other = _halves(logits)
    return given + flip_positions(other, lengths)[..., complement]


def join_strands(
    rows: Float[Tensor, "rows L D"], lengths: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "B L 2*D"]:
    """[s(x), R s(rc x)] over channels.

    For rc x it is the same tensor, flipped in positions and channels.
    """
    given, other = _halves(rows)
    return torch.cat([given, flip_positions(other, lengths).flip(2)], 2)


def exchange_strands(
    rows: Float[Tensor, "rows L D"], lengths: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "rows L D"]:
    """The rows after the two halves of `join_strands` have changed places."""
    given, other = _halves(rows)
    return torch.cat([flip_positions(half, lengths).flip(2) for half in (other, given)])
