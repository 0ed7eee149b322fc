"""Parts of the Triton scan kernels, which work on a tile of 32 channels by T steps.

Each lane has one channel, and holds its steps in registers. Inline PTX does what Triton cannot
express: the hardware's 2^x without subnormal results, a reversal of time that only renames
registers, and sums over lanes on the tensor cores. ASM is off under Triton's interpreter, which has
no PTX.
"""
# mypy: ignore-errors

# no_type_check: the tests' run-time shape checks must not wrap what Triton compiles.
from typing import no_type_check

import triton
import triton.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


def _quarter_sums(split: bool) -> str:
    """PTX of `sum_quarters`.

    Operands 0 to 3 are results (4 to 15 only fill the tile), 16 to 31 a tile's 16 steps.
    mma.m16n8k8 takes four steps of all lanes as A: lane l gives rows l/4 and l/4 + 8, columns l%4
    and l%4 + 4. Two columns of B have ones in their first, or last, four rows. So each element of
    the product is one step's sum over four lanes. A tf32 operand keeps 10 bits of the fraction.
    With `split`, a second product adds the bits that were cut off.
    """
    lines = [
        "{",
        ".reg .f32 s<4>, m;",
        ".reg .b32 b<8>, hi<4>, lo<4>, g;",
        ".reg .pred p;",
        "mov.u32 g, %laneid;",
        "shr.u32 g, g, 2;",
    ]
    # Lanes l with l/4 == i hold column i of B: there b_i is 1, elsewhere 0.
    for i in range(8):
        lines += [f"setp.eq.u32 p, g, {i};", f"selp.b32 b{i}, 0x3f800000, 0, p;"]
    lines += [f"mov.f32 s{i}, 0f00000000;" for i in range(4)]
    for j in range(4):
        picked = [f"${16 + 4 * j + i}" for i in range(4)]
        operands = [picked]
        if split:
            # 0xffffe000 keeps what tf32 keeps; the difference is exact.
            for i, x in enumerate(picked):
                lines += [
                    f"and.b32 hi{i}, {x}, 0xffffe000;",
                    f"mov.b32 m, hi{i};",
                    f"sub.f32 m, {x}, m;",
                    f"mov.b32 lo{i}, m;",
                ]
            operands = [[f"{part}{i}" for i in range(4)] for part in ("hi", "lo")]
        for operand in operands:
            lines.append(
                "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {s0, s2, s1, s3}, "
                f"{{{', '.join(operand)}}}, {{b{2 * j}, b{2 * j + 1}}}, {{s0, s2, s1, s3}};"
            )
    lines += (
        [f"mov.f32 ${i}, s{i};" for i in range(4)]
        + [f"mov.f32 ${i}, 0f00000000;" for i in range(4, 16)]
        + ["}"]
    )
    return "\n".join(lines)


def _exchanges() -> str:
    """PTX of `sum_lanes`: operand 0 is the result, 16 to 19 and 32 to 35 are two tiles' quarters.

    Three exchanges sum over the eight groups of four lanes. In each, a lane sends half of its
    numbers to its partner lane, and adds the numbers that it receives to the other half.
    """
    lines = [
        "{",
        ".reg .f32 s<8>, m, r;",
        ".reg .b32 lane, bit;",
        ".reg .pred q;",
        "mov.u32 lane, %laneid;",
    ]
    lines += [f"mov.f32 s{i}, ${16 + i};" for i in range(4)] + [
        f"mov.f32 s{4 + i}, ${32 + i};" for i in range(4)
    ]
    # Pairs are added in a fixed order, so that the same inputs give the same bits.
    for half, bit in ((4, 16), (2, 8), (1, 4)):
        lines += [f"and.b32 bit, lane, {bit};", "setp.ne.u32 q, bit, 0;"]
        for i in range(half):
            lines += [f"selp.f32 m, s{i}, s{half + i}, q;", f"selp.f32 s{i}, s{half + i}, s{i}, q;"]
            lines += [
                f"shfl.sync.bfly.b32 r, m, {bit}, 0x1f, 0xffffffff;",
                f"add.f32 s{i}, s{i}, r;",
            ]
    lines += ["mov.b32 $0, s0;"] + [f"mov.b32 ${i}, 0;" for i in range(1, 16)] + ["}"]
    return "\n".join(lines)


_QUARTERS: tl.constexpr = tl.constexpr(_quarter_sums(False))
_EXACT_QUARTERS: tl.constexpr = tl.constexpr(_quarter_sums(True))
_EXCHANGES: tl.constexpr = tl.constexpr(_exchanges())
# Operands of inline PTX: 16 results, then the 16 registers of one tile or of two.
_TWO_TILES: tl.constexpr = tl.constexpr(",".join(["=r"] * 16 + ["f"] * 32))
_TURN: tl.constexpr = tl.constexpr("\n".join(f"mov.b32 ${i}, ${31 - i};" for i in range(16)))
_FETCH_L1: tl.constexpr = tl.constexpr("prefetch.global.L1 [$1]; mov.b32 $0, 0;")
_FETCH_L2: tl.constexpr = tl.constexpr("prefetch.global.L2 [$1]; mov.b32 $0, 0;")
_ONE_TILE: tl.constexpr = tl.constexpr(",".join(["=f"] * 16 + ["f"] * 16))


@triton.jit
@no_type_check
def exp2(x, EXACT: tl.constexpr, ASM: tl.constexpr):
    """2^x for x < 127, accurate to about one unit in the last place if EXACT.

    If EXACT, it is exactly 1 at 0, and 0 where it underflows. Otherwise it is the hardware's
    approximation.
    """
    if EXACT:
        # At -127, p is 1 and the exponent below becomes that of zero, so the result is 0.
        x = tl.maximum(x, -127.0)
        # Floats near 1.5 · 2²³ are 1 apart. So this sum rounds x to an integer, which is in the
        # last bits of the sum. Rounding to nearest avoids drift of decays near 1.
        shifted = x + 12582912.0
        f = x - (shifted - 12582912.0)
        p = f * 1.5252733804059841e-05 + 0.00015403530393381609
        p = p * f + 0.0013333558146428443
        p = p * f + 0.009618129107628477
        p = p * f + 0.05550410866482158
        p = p * f + 0.24022650695910072
        p = p * f + 0.6931471805599453
        p = p * f + 1.0
        # Adding the integer to the exponent of 2^f multiplies it by that power of 2.
        return ((shifted.to(tl.int32, bitcast=True) << 23) + p.to(tl.int32, bitcast=True)).to(
            tl.float32, bitcast=True
        )
    elif ASM:
        # One instruction. tl.exp2 adds a test and two products for subnormal results, which a decay
        # does not need.
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return tl.exp2(x)


@triton.jit
@no_type_check
def softplus(x, EXACT: tl.constexpr, ASM: tl.constexpr):
    """log(1 + eˣ) = max(x, 0) + log(1 + q) with q = e^−|x|, to a small relative error."""
    q = exp2(tl.abs(x) * -LOG2E, EXACT, ASM)
    # p = log(1 + q) / q. The product p q keeps its relative precision when q is tiny.
    p = q * 0.005232623778283596 - 0.029504956677556038
    p = p * q + 0.07822549343109131
    p = p * q - 0.1366320699453354
    p = p * q + 0.1910598874092102
    p = p * q - 0.2484297752380371
    p = p * q + 0.3331909477710724
    p = p * q - 0.4999949336051941
    p = p * q + 1.0
    return tl.maximum(x, 0.0) + p * q


@triton.jit
@no_type_check
def step_forward(a1, h1, p1, a2, b2, p2):
    """(a_t, h_t, h_{t−1}) from the step before and (a_t, b_t, ·): h_t = a_t h_{t−1} + b_t.

    The operation is not associative. It is correct only if a scan combines one step at a time from
    the left, as Triton does along registers.
    """
    return a2, tl.fma(a2, h1, b2), h1


@triton.jit
@no_type_check
def step_backward(a2, C2, dy2, g2, c2, a1, C1, dy1, g1, c1):
    """g_t = C_t ∂y_t + c_{t+1} and c_t = a_t g_t, with time reversed. Not associative either."""
    g = tl.fma(C1, dy1, c2)
    return a1, C1, dy1, g, a1 * g


@triton.jit
@no_type_check
def reverse_time(x, ASM: tl.constexpr):
    """A tile with its time reversed, which renames registers and moves no data.

    Triton's own reverse scan would move data between lanes.
    """
    if ASM:
        return tl.inline_asm_elementwise(
            _TURN, _ONE_TILE, [x], dtype=tl.float32, is_pure=True, pack=16
        )
    else:
        return tl.flip(x, 1)


@triton.jit
@no_type_check
def sum_quarters(p, SUMS: tl.constexpr):
    """A tile (32, 16) summed over groups of four lanes, on the tensor cores.

    Register i < 4 of lane l has step 4 (l%4) + i of the group l/4. SUMS is "tf32", or "split" for
    products of full precision.
    """
    asm: tl.constexpr = _QUARTERS if SUMS == "tf32" else _EXACT_QUARTERS
    return tl.inline_asm_elementwise(asm, _ONE_TILE, [p], dtype=tl.float32, is_pure=True, pack=16)


@triton.jit
@no_type_check
def sum_lanes(p, q, T: tl.constexpr):
    """Two tiles' quarters summed over all lanes.

    Lane l has step 4 (l%4) + 2 (l/8%2) + l/4%2 of p where l < 16, of q where not.
    """
    bits = tl.inline_asm_elementwise(
        _EXCHANGES, _TWO_TILES, [p, q], dtype=tl.int32, is_pure=True, pack=16
    )
    # The first register holds the result; the others are zeros that fill the tile's shape.
    first = tl.arange(0, T)[None, :] == 0
    return tl.sum(tl.where(first, bits, 0), 1).to(tl.float32, bitcast=True)


@triton.jit
@no_type_check
def pointers(x, row, start, e, way, stride: tl.constexpr):
    """Pointers to the elements of a tile.

    The constant part is added last. It then becomes an offset inside the load instructions, and
    needs no registers.
    """
    return (x + (row + start * stride) + e)[:, None] + (way * stride)[None, :]


@triton.jit
@no_type_check
def step_sizes(
    delta, mask, live, bias, SOFTPLUS: tl.constexpr, EXACT: tl.constexpr, ASM: tl.constexpr
):
    """dt of a tile, and its value before softplus; dt is 0 past the end, to keep the state."""
    raw = tl.load(delta, mask=mask, other=0.0).to(tl.float32) + bias[:, None]
    dt = softplus(raw, EXACT, ASM) if SOFTPLUS else raw
    return tl.where(live, dt, 0.0), raw


@triton.jit
@no_type_check
def locate_tile(tile, L, zero, T: tl.constexpr, EVEN: tl.constexpr, REVERSE: tl.constexpr):
    """A tile's first time, the offsets of its other times, and which of its times exist.

    `zero` is a 64-bit 0, since the first time multiplied by a stride may exceed 32 bits.
    """
    t = tl.arange(0, T)
    if REVERSE:
        start, way = zero + (L - 1 - tile * T), -t
    else:
        start, way = zero + tile * T, t
    live = (tile * T + t < L)[None, :] | EVEN
    return start, way, live


@triton.jit
@no_type_check
def fetch(at, CACHE: tl.constexpr):
    """Have what these 32 pointers point at fetched into the L1 or L2 cache; nothing waits for it.

    That takes sectors of 32 bytes, so a lane asks for one of its own. All pointers must be valid.
    """
    asm: tl.constexpr = _FETCH_L1 if CACHE == "L1" else _FETCH_L2
    tl.inline_asm_elementwise(asm, "=r,l", [at.to(tl.int64)], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
@no_type_check
def fetch_row(x, start, length: tl.constexpr, CACHE: tl.constexpr):
    """`fetch` `length` elements from x + start on, side by side."""
    lane = tl.arange(0, 32)
    EACH: tl.constexpr = 32 // (x.dtype.element_ty.primitive_bitwidth // 8)
    for first in tl.static_range(0, length, 32 * EACH):
        fetch(x + start + tl.minimum(first + lane * EACH, length - 1), CACHE)


@triton.jit
@no_type_check
def fetch_tile(x, row, tile, L, E: tl.constexpr, REVERSE: tl.constexpr, stride: tl.constexpr,
               T: tl.constexpr, BE: tl.constexpr, CACHE: tl.constexpr):  # fmt: skip
    """`fetch` a tile of T times and this program's BE channels; `row` is where x's row begins."""
    EACH: tl.constexpr = 32 // (x.dtype.element_ty.primitive_bitwidth // 8)
    SECTORS: tl.constexpr = BE // EACH
    for first in tl.static_range(0, T * SECTORS, 32):
        i = first + tl.arange(0, 32)
        t = tl.minimum(tile * T + i // SECTORS, L - 1)
        t = L - 1 - t if REVERSE else t
        e = tl.minimum(tl.program_id(0) * BE + i % SECTORS * EACH, E - 1)
        fetch(x + row + t.to(tl.int64) * stride + e, CACHE)


@triton.jit
@no_type_check
def fetch_states(x, tile, N: tl.constexpr, E: tl.constexpr, BE: tl.constexpr,
                 CACHE: tl.constexpr):  # fmt: skip
    """`fetch` the states of this program's channels before a tile, from x (tiles, N, E)."""
    EACH: tl.constexpr = 32 // (x.dtype.element_ty.primitive_bitwidth // 8)
    SECTORS: tl.constexpr = BE // EACH
    for first in tl.static_range(0, N * SECTORS, 32):
        i = first + tl.arange(0, 32)
        n = tl.minimum(i // SECTORS, N - 1)
        e = tl.minimum(tl.program_id(0) * BE + i % SECTORS * EACH, E - 1)
        fetch(x + tile.to(tl.int64) * (N * E) + n * E + e, CACHE)
