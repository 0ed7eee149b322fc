"""Triton kernels of the selective scan, forward and backward. Notation as in `naive.py`; how they
are called: `scan.py`.

A program is one warp: a row, 32 channels (one per lane), a segment of time. It walks in tiles of T
steps that stand in registers, time along registers and never across lanes, so that a scan over time
is T fused multiply-adds in each lane and no shuffle:

    a_t = 2^(dt_t A log₂e)    h_t = a_t h_{t-1} + dt_t u_t B_t    y_t = Σ_n h_t C_t
    g_t = C_t ∂y_t + c_{t+1}  c_t = a_t g_t    w_t = c_t h_{t-1}  ∂A = Σ_t w_t dt_t
    ∂dt_t = Σ_n w_t A + u_t Σ_n g_t B_t

States and adjoints pass from tile to tile through memory (the state before each tile is what the
backward pass needs saved), so that the loop over n is a loop and its body stays in the instruction
cache. B and C come as float32 (rows, 2N, L′), time innermost and in the order of the scan, padded
with zeros: all lanes read the same 16 bytes at once. ∂B and ∂C are summed over the lanes by the
matrix unit (`over_lanes`), then over programs in a fixed order: no atomics.

The scans over time carry a third value, what the recurrence held one step earlier. That is no
associative operation; it is right because time lies within a lane, where Triton combines from the
left, one by one. The self-test of `scan.py` would notice.
"""
# mypy: ignore-errors

from typing import (
    # keeps checked shapes (tests/conftest.py) away from functions that Triton compiles
    no_type_check,
)

import triton
import triton.language as tl

from genodiff.kernels.triton.tiles import (
    LN2,
    LOG2E,
    backwards,
    exp2,
    forwards,
    over_lanes,
    place,
    pointers,
    quarters,
    step_sizes,
    turned,
)


@triton.jit
@no_type_check
def scan_forward(
    u, delta, A2, bc, D, bias, y, states, spans, L, tiles, u_b, delta_b, y_b,
    u_l: tl.constexpr, delta_l: tl.constexpr, y_l: tl.constexpr, E: tl.constexpr, N: tl.constexpr,
    REVERSE: tl.constexpr, SOFTPLUS: tl.constexpr, EVEN: tl.constexpr, OUTPUT: tl.constexpr,
    KEEP: tl.constexpr, ONTO: tl.constexpr,
    EXACT: tl.constexpr, ASM: tl.constexpr, UNROLL: tl.constexpr, T: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """y, added to what stands there with ONTO, and the states after each tile.

    Without OUTPUT only a segment's last state and the sum of its step sizes. `states` is (rows,
    tiles + 1, N, E), or (rows, segments, N, E) without KEEP; the state before each segment stands
    in it.
    """
    # Channels lie side by side, which makes them the lanes (on a tie with time, releases differ);
    # called a multiple of no more than 1, they are loaded one per lane.
    e = tl.multiple_of(tl.program_id(0) * BE + tl.arange(0, BE), 1)
    segment, row = tl.program_id(1), tl.program_id(2).to(tl.int64)
    there = e < E if E % BE else tl.full([BE], True, tl.int1)
    n_tiles = tl.cdiv(L, T)
    first = segment * tiles
    last = tl.minimum(first + tiles, n_tiles)
    b = tl.load(bias + e, mask=there, other=0.0)
    d = tl.load(D + e, mask=there, other=0.0)
    slots = n_tiles + 1 if KEEP else tl.num_programs(1)
    state = states + (row * slots + (first if KEEP else segment)) * N * E + e
    bc += row * (2 * N) * (n_tiles * T) + tl.arange(0, T)
    span = tl.zeros([BE], tl.float32)
    for tile in range(first, last):
        start, way, live = place(tile, L, row * 0, T, EVEN, REVERSE)
        mask = live & there[:, None]
        u_ = tl.load(pointers(u, row * u_b, start, e, way, u_l), mask=mask, other=0.0).to(
            tl.float32
        )
        dt, _ = step_sizes(
            pointers(delta, row * delta_b, start, e, way, delta_l),
            mask,
            live,
            b,
            SOFTPLUS,
            EXACT,
            ASM,
        )
        x = dt * u_
        acc = u_ * d[:, None]
        if not OUTPUT:
            span += tl.sum(dt, 1)
        after = state + N * E if KEEP else state
        begins = (tl.arange(0, T) == 0)[None, :]
        ends = (tl.arange(0, T) == T - 1)[None, :]
        # The state before a later segment is that segment's own affair. (A block, not a number:
        # Triton 3.9's interpreter spreads the truth of a comparison of numbers over a block as
        # integers, which are no mask.)
        next_tile = tl.full([BE], tile + 1, tl.int32)
        kept = there & ((next_tile < last) | (next_tile == n_tiles)) if KEEP else there
        # What comes from far away is asked for one n ahead.
        next_A, next_before = (
            tl.load(A2 + e, mask=there, other=0.0),
            tl.load(state, mask=there, other=0.0),
        )
        for n in tl.range(0, N, loop_unroll_factor=UNROLL):
            B = tl.load(bc + n * (n_tiles * T) + tile * T)
            A_n, before = next_A, next_before
            ahead = tl.minimum(n + 1, N - 1)
            next_A = tl.load(A2 + ahead * E + e, mask=there, other=0.0)
            next_before = tl.load(state + ahead * E, mask=there, other=0.0)
            a = exp2(dt * A_n[:, None], EXACT, ASM)
            b_x = x * B[None, :]
            b_x = tl.where(begins, tl.fma(a, tl.broadcast_to(before[:, None], (BE, T)), b_x), b_x)
            _, h, _ = tl.associative_scan((a, b_x, b_x), 1, forwards)
            if OUTPUT:
                C = tl.load(bc + (N + n) * (n_tiles * T) + tile * T)
                acc += h * C[None, :]
            tl.store(after + n * E, tl.sum(tl.where(ends, h, 0.0), 1), mask=kept)
        if OUTPUT:
            y_at = pointers(y, row * y_b, start, e, way, y_l)
            if ONTO:
                acc += tl.load(y_at, mask=mask, other=0.0).to(tl.float32)
            tl.store(y_at, acc.to(y.dtype.element_ty), mask=mask)
        state = after
    if not OUTPUT:
        tl.store(spans + (row * tl.num_programs(1) + segment) * E + e, span, mask=there)


@triton.jit
@no_type_check
def scan_carry(
    delta, dy, A2, bc, bias, carry, spans, L, tiles, delta_b, dy_b,
    delta_l: tl.constexpr, dy_l: tl.constexpr, E: tl.constexpr, N: tl.constexpr,
    REVERSE: tl.constexpr, SOFTPLUS: tl.constexpr, EVEN: tl.constexpr,
    EXACT: tl.constexpr, ASM: tl.constexpr, UNROLL: tl.constexpr, T: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """What a segment hands to the one before it in the backward pass: its first c, the last one
    being `carry` (rows, segments, N, E).
    """
    e = tl.multiple_of(tl.program_id(0) * BE + tl.arange(0, BE), 1)
    segment, row = tl.program_id(1), tl.program_id(2).to(tl.int64)
    there = e < E if E % BE else tl.full([BE], True, tl.int1)
    n_tiles = tl.cdiv(L, T)
    first = segment * tiles
    last = tl.minimum(first + tiles, n_tiles)
    b = tl.load(bias + e, mask=there, other=0.0)
    carry += (row * tl.num_programs(1) + segment) * N * E + e
    bc += row * (2 * N) * (n_tiles * T) + tl.arange(0, T)
    span = tl.zeros([BE], tl.float32)
    for back in range(first, last):
        tile = last - 1 - (back - first)
        start, way, live = place(tile, L, row * 0, T, EVEN, REVERSE)
        mask = live & there[:, None]
        dy_ = tl.load(pointers(dy, row * dy_b, start, e, way, dy_l), mask=mask, other=0.0).to(
            tl.float32
        )
        dt, _ = step_sizes(
            pointers(delta, row * delta_b, start, e, way, delta_l),
            mask,
            live,
            b,
            SOFTPLUS,
            EXACT,
            ASM,
        )
        dy_ = turned(dy_, ASM)
        span += tl.sum(dt, 1)
        ends = (tl.arange(0, T) == T - 1)[None, :]
        for n in tl.range(0, N, loop_unroll_factor=UNROLL):
            C = tl.load(bc + (N + n) * (n_tiles * T) + tile * T)
            A_n = tl.load(A2 + n * E + e, mask=there, other=0.0)
            c_after = tl.load(carry + n * E, mask=there, other=0.0)
            a = exp2(dt * A_n[:, None], EXACT, ASM)
            a = turned(a, ASM)
            C_ = turned(tl.broadcast_to(C[None, :], (BE, T)), ASM)
            g = tl.fma(C_, dy_, tl.broadcast_to(c_after[:, None], (BE, T)))
            _, _, _, _, c = tl.associative_scan((a, C_, dy_, g, a * g), 1, backwards)
            tl.store(carry + n * E, tl.sum(tl.where(ends, c, 0.0), 1), mask=there)
    tl.store(spans + (row * tl.num_programs(1) + segment) * E + e, span, mask=there)


@triton.jit
@no_type_check
def scan_chain(
    local, spans, A2, out, segments, out_row, out_segment, NE: tl.constexpr, E: tl.constexpr,
    BACK: tl.constexpr, EXACT: tl.constexpr, ASM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The state before each segment from what each makes of a zero state; `out` holds the first
    one. BACK: c, from the last segment.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(1).to(tl.int64)
    there = i < NE
    A_n = tl.load(A2 + i, mask=there, other=0.0)
    out += row * out_row + i
    begin = row * 0 + (segments - 1 if BACK else 0)
    h = tl.load(out + begin * out_segment, mask=there, other=0.0)
    for step in range(0, segments - 1):
        s = segments - 1 - step if BACK else step
        to = row * 0 + (s - 1 if BACK else s + 1)
        span = tl.load(spans + (row * segments + s) * E + i % E, mask=there, other=0.0)
        h = tl.fma(
            exp2(span * A_n, EXACT, ASM),
            h,
            tl.load(local + (row * segments + s) * NE + i, mask=there, other=0.0),
        )
        tl.store(out + to * out_segment, h, mask=there)


@triton.jit
@no_type_check
def scan_backward(
    u, delta, dy, A2, bc, D, bias, states, carry, du, ddelta, dbc, dA, dD, dbias,
    L, tiles, u_b, delta_b, dy_b, u_l: tl.constexpr, delta_l: tl.constexpr, dy_l: tl.constexpr,
    E: tl.constexpr, N: tl.constexpr,
    REVERSE: tl.constexpr, SOFTPLUS: tl.constexpr, EVEN: tl.constexpr, SUMS: tl.constexpr,
    EXACT: tl.constexpr, ASM: tl.constexpr, UNROLL: tl.constexpr, T: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """All gradients. `carry` (rows, segments, N, E) holds c after each segment, and in the end c
    before it; dA of its shape is zero.

    du and ddelta are (rows, L, E); dbc, (blocks of channels, rows, 2N, L′), dD and dbias, (rows,
    segments, E), wait to be summed.
    """
    block = tl.program_id(0)
    lane = tl.arange(0, BE)
    e = tl.multiple_of(block * BE + lane, 1)
    segment, row = tl.program_id(1), tl.program_id(2).to(tl.int64)
    there = e < E if E % BE else tl.full([BE], True, tl.int1)
    n_tiles = tl.cdiv(L, T)
    first = segment * tiles
    last = tl.minimum(first + tiles, n_tiles)
    b = tl.load(bias + e, mask=there, other=0.0)
    d = tl.load(D + e, mask=there, other=0.0)
    t = tl.arange(0, T)
    padded = n_tiles * T
    own = (row * tl.num_programs(1) + segment) * N * E + e
    carry += own
    dA += own
    states += row * (n_tiles + 1) * N * E + e
    bc += row * (2 * N) * padded + t
    dbc += (block.to(tl.int64) * tl.num_programs(2) + row) * (2 * N) * padded
    lane_step = (lane // 16) * N * padded + 4 * (lane % 4) + 2 * (lane // 8 % 2) + lane // 4 % 2
    dD_ = tl.zeros([BE], tl.float32)
    dbias_ = tl.zeros([BE], tl.float32)
    for back in range(first, last):
        tile = last - 1 - (back - first)
        start, way, live = place(tile, L, row * 0, T, EVEN, REVERSE)
        mask = live & there[:, None]
        u_at = pointers(u, row * u_b, start, e, way, u_l)
        u_ = tl.load(u_at, mask=mask, other=0.0).to(tl.float32)
        dy_ = tl.load(pointers(dy, row * dy_b, start, e, way, dy_l), mask=mask, other=0.0).to(
            tl.float32
        )
        delta_at = pointers(delta, row * delta_b, start, e, way, delta_l)
        dt, _ = step_sizes(delta_at, mask, live, b, SOFTPLUS, EXACT, ASM)
        dy_turned = turned(dy_, ASM)
        x = dt * u_
        dD_ += tl.sum(dy_ * u_, 1)
        along = tl.zeros([BE, T], tl.float32)  # Σ_n w A log₂e
        across = tl.zeros([BE, T], tl.float32)  # Σ_n g B
        begins, ends = (t == 0)[None, :], (t == T - 1)[None, :]
        state = states + (row * 0 + tile * N) * E
        next_A, next_before = (
            tl.load(A2 + e, mask=there, other=0.0),
            tl.load(state, mask=there, other=0.0),
        )
        next_c, next_dA = tl.load(carry, mask=there, other=0.0), tl.load(dA, mask=there, other=0.0)
        for n in tl.range(0, N, loop_unroll_factor=UNROLL):
            B = tl.load(bc + n * padded + tile * T)
            C = tl.load(bc + (N + n) * padded + tile * T)
            A_n, before, c_after, sum_before = next_A, next_before, next_c, next_dA
            ahead = tl.minimum(n + 1, N - 1)
            next_A = tl.load(A2 + ahead * E + e, mask=there, other=0.0)
            next_before = tl.load(state + ahead * E, mask=there, other=0.0)
            next_c, next_dA = (
                tl.load(carry + ahead * E, mask=there, other=0.0),
                tl.load(dA + ahead * E, mask=there, other=0.0),
            )
            a = exp2(dt * A_n[:, None], EXACT, ASM)
            b_x = x * B[None, :]
            before_ = tl.broadcast_to(before[:, None], (BE, T))
            b_x = tl.where(begins, tl.fma(a, before_, b_x), b_x)
            _, h, h_before = tl.associative_scan((a, b_x, before_), 1, forwards)
            if SUMS == "plain":
                dC = tl.sum(h * dy_, 0)
            else:
                dC = quarters(h * dy_, SUMS)
            a = turned(a, ASM)
            C_ = turned(tl.broadcast_to(C[None, :], (BE, T)), ASM)
            g = tl.fma(C_, dy_turned, tl.broadcast_to(c_after[:, None], (BE, T)))
            _, _, _, g, c = tl.associative_scan((a, C_, dy_turned, g, a * g), 1, backwards)
            tl.store(carry + n * E, tl.sum(tl.where(ends, c, 0.0), 1), mask=there)
            g, w = turned(g, ASM), turned(c, ASM) * h_before
            along += w * A_n[:, None]
            across += g * B[None, :]
            tl.store(dA + n * E, sum_before + tl.sum(w * dt, 1), mask=there)
            at = dbc + n * padded + tile * T
            if SUMS == "plain":
                tl.store(at + t, tl.sum(g * x, 0))
                tl.store(at + N * padded + t, dC)
            else:
                tl.store(at + lane_step, over_lanes(quarters(g * x, SUMS), dC, T))
        # Read again rather than kept: registers are dear, and they are in the cache.
        u_ = tl.load(u_at, mask=mask, other=0.0).to(tl.float32)
        tl.store(
            pointers(du, row * L * E, start, e, way, E),
            (dt * across + dy_ * d[:, None]).to(du.dtype.element_ty),
            mask=mask,
        )
        ddt = along * LN2 + u_ * across
        if SOFTPLUS:
            raw = tl.load(delta_at, mask=mask, other=0.0).to(tl.float32) + b[:, None]
            ddt *= exp2((raw - dt) * LOG2E, EXACT, ASM)  # softplus' slope
        ddt = tl.where(live, ddt, 0.0)
        dbias_ += tl.sum(ddt, 1)
        tl.store(
            pointers(ddelta, row * L * E, start, e, way, E),
            ddt.to(ddelta.dtype.element_ty),
            mask=mask,
        )
    out = (row * tl.num_programs(1) + segment) * E + e
    tl.store(dD + out, dD_, mask=there)
    tl.store(dbias + out, dbias_, mask=there)
