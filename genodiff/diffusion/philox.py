"""The generator of `counter.py` in torch: the same numbers, bit for bit, made where they are used.

Philox-4x64-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), as numpy ships
it. A block of four 64-bit numbers is ten rounds of

    (c0, c1, c2, c3) <- (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0))

over the counter c, with the key k growing between them. Arithmetic is modulo 2^64, which int64 is
too; only shifts and the upper halves of products need care.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.counter import Purpose

_HALF = (1 << 32) - 1
_M0, _M1 = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_GROWTH = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10


def philox_uniforms(
    seeds: Int[Tensor, " R"], purpose: Purpose, n: int, sub_index: int = 0
) -> Float[Tensor, "R n"]:
    """Row i is `uniforms(seeds[i], purpose, 0, n, sub_index)`, on the device of the seeds."""
    # numpy counts before it draws: the first block is that of counter 1.
    block = torch.arange(1, -(-n // 4) + 1, device=seeds.device)
    key = [seeds[:, None].long(), torch.full_like(seeds, int(purpose))[:, None].long()]
    zero = torch.zeros_like(block * key[0])
    c = [block + zero, zero, zero + sub_index, zero]
    for i in range(_ROUNDS):
        if i:
            key = [k + _to_int64(g) for k, g in zip(key, _GROWTH, strict=True)]
        (high0, low0), (high1, low1) = _multiply(_M0, c[0]), _multiply(_M1, c[2])
        c = [high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0]
    numbers = torch.stack(c, -1).flatten(1)[:, :n]
    return _shift(numbers, 11).double() * 2.0**-53


def _to_int64(value: int) -> int:
    """The int64 of the same 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def _shift(x: Tensor, by: int) -> Tensor:
    """x >> by of unsigned numbers: torch shifts int64 with its sign."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _multiply(m: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """The upper and lower 64 bits of m x, from four products of halves."""
    m0, m1, x0, x1 = m & _HALF, m >> 32, x & _HALF, _shift(x, 32)
    low, cross, other = x0 * m0, x1 * m0, x0 * m1
    carried = _shift(low, 32) + (cross & _HALF) + (other & _HALF)
    high = x1 * m1 + _shift(cross, 32) + _shift(other, 32) + _shift(carried, 32)
    return high, x * _to_int64(m)
