"""Triton kernels of the selective scan, forward and backward, which `scan.py` launches.

The notation is that of `naive.py`.

A program is one warp: a row, 32 channels (one a lane), a segment of time. It works through tiles of
T steps. Time lies along registers and never across lanes, so that a scan over time is T fused
multiply-adds in each lane, without a shuffle:

    a_t = 2^(dt_t A log₂e)    h_t = a_t h_{t-1} + dt_t u_t B_t    y_t = Σ_n h_t C_t
    g_t = C_t ∂y_t + c_{t+1}  c_t = a_t g_t    w_t = c_t h_{t-1}  ∂A = Σ_t w_t dt_t
    ∂dt_t = Σ_n w_t A + u_t Σ_n g_t B_t

States and adjoints pass from tile to tile through memory, in float32, so that the loop over n can
be a loop, whose body stays in the instruction cache. The backward pass needs the state before each
tile. It is kept in bfloat16 where the inputs are: half of all that a layer keeps, for an error that
begins anew in each tile and is in no output. B and C come as (rows, tiles, 2N, T), in the order of
the scan, and padded with zeros: all lanes read the same 16 bytes at once, and what a tile reads is
in few lines of the cache. They are float32 for the forward pass, which saves it conversions, and as
they came for the backward pass, which saves it registers. With AHEAD, a cache's name, a program has
its next tile fetched there (`fetch`) before it works through one, so that no load waits for memory.
∂B and ∂C are summed over the lanes by the matrix unit (`sum_lanes`), then over programs in a fixed
order, without atomics.

Rows come in groups: all rows of a group have the same A, D and bias. A mixer's two directions are
two groups of one launch.

The scans over time also carry what the recurrence held one step earlier. That operation is not
associative. It is right because time lies within a lane, where Triton combines from the left, one
by one. The self-test (`naive.py`) would notice a Triton that does not.
"""
# mypy: ignore-errors

# no_type_check keeps the tests' run-time checks of shapes away from what Triton compiles.
from typing import no_type_check

import triton
import triton.language as tl

from genodiff.kernels.triton.tiles import (
    LN2,
    LOG2E,
    exp2,
    fetch_row,
    fetch_states,
    fetch_tile,
    locate_tile,
    pointers,
    reverse_time,
    step_backward,
    step_forward,
    step_sizes,
    sum_lanes,
    sum_quarters,
)


@triton.jit
@no_type_check
def scan_forward(
    u, delta, A2, bc, D, bias, y, states, kept, spans, L, tiles, group, u_b, delta_b, y_b,
    u_l: tl.constexpr, delta_l: tl.constexpr, y_l: tl.constexpr, E: tl.constexpr, N: tl.constexpr,
    REVERSE: tl.constexpr, SOFTPLUS: tl.constexpr, EVEN: tl.constexpr, OUTPUT: tl.constexpr,
    KEEP: tl.constexpr,
    EXACT: tl.constexpr, ASM: tl.constexpr, UNROLL: tl.constexpr, AHEAD: tl.constexpr,
    T: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """y, and a segment's last state; without OUTPUT the sum of its step sizes instead of y.

    `states` (rows, segments, N, E) comes with the state before each segment and ends with the one
    after it. With KEEP the state before each tile is written to `kept` (rows, tiles, N, E) too.
    """
    # Triton gives the lanes to the axis that is contiguous, so channels must be, alone: on a tie
    # with time, releases differ. Declared a multiple of no more than 1, they are loaded one a lane.
    e = tl.multiple_of(tl.program_id(0) * BE + tl.arange(0, BE), 1)
    segment, row = tl.program_id(1), tl.program_id(2).to(tl.int64)
    # A mask that is true at compile time costs nothing.
    there = e < E if E % BE else tl.full([BE], True, tl.int1)
    n_tiles = tl.cdiv(L, T)
    first = segment * tiles
    last = tl.minimum(first + tiles, n_tiles)
    which = tl.program_id(2) // group
    A2 += which * N * E + e
    b = tl.load(bias + which * E + e, mask=there, other=0.0)
    d = tl.load(D + which * E + e, mask=there, other=0.0)
    state = states + (row * tl.num_programs(1) + segment) * N * E + e
    kept += row * n_tiles * N * E + e
    bc_all = bc + row * (2 * N) * (n_tiles * T)
    bc = bc_all + tl.arange(0, T)
    span = tl.zeros([BE], tl.float32)
    for tile in range(first, last):
        # row * 0 is a 64-bit zero.
        start, way, live = locate_tile(tile, L, row * 0, T, EVEN, REVERSE)
        mask = live & there[:, None]
        u_ = tl.load(pointers(u, row * u_b, start, e, way, u_l), mask=mask, other=0.0).to(
            tl.float32
        )
        dt, _ = step_sizes(
            pointers(delta, row * delta_b, start, e, way, delta_l),
            mask, live, b, SOFTPLUS, EXACT, ASM,
        )  # fmt: skip
        if AHEAD != "":
            following = tl.minimum(tile + 1, last - 1)
            fetch_row(bc_all, following * (2 * N * T), (2 * N if OUTPUT else N) * T, AHEAD)
            fetch_tile(u, row * u_b, following, L, E, REVERSE, u_l, T, BE, AHEAD)
            fetch_tile(delta, row * delta_b, following, L, E, REVERSE, delta_l, T, BE, AHEAD)
        x = dt * u_
        acc = u_ * d[:, None]
        if not OUTPUT:
            span += tl.sum(dt, 1)
        begins = (tl.arange(0, T) == 0)[None, :]
        ends = (tl.arange(0, T) == T - 1)[None, :]
        # Loads are issued one n ahead, to hide their latency: a GPU waited for B and C most.
        next_A = tl.load(A2, mask=there, other=0.0)
        next_before = tl.load(state, mask=there, other=0.0)
        bc_ = bc + tile * (2 * N * T)
        next_B = tl.load(bc_)
        if OUTPUT:
            next_C = tl.load(bc_ + N * T)
        keep = kept + (row * 0 + tile * N) * E
        for n in tl.range(0, N, loop_unroll_factor=UNROLL):
            A_n, before, B = next_A, next_before, next_B.to(tl.float32)
            if KEEP:
                tl.store(keep + n * E, before.to(kept.dtype.element_ty), mask=there)
            ahead = tl.minimum(n + 1, N - 1)
            next_B = tl.load(bc_ + ahead * T)
            if OUTPUT:
                C = next_C.to(tl.float32)
                next_C = tl.load(bc_ + (N + ahead) * T)
            next_A = tl.load(A2 + ahead * E, mask=there, other=0.0)
            next_before = tl.load(state + ahead * E, mask=there, other=0.0)
            a = exp2(dt * A_n[:, None], EXACT, ASM)
            b_x = x * B[None, :]
            # The state before the tile enters at its first step: h_0 = a_0 h_before + b_0.
            b_x = tl.where(begins, tl.fma(a, tl.broadcast_to(before[:, None], (BE, T)), b_x), b_x)
            _, h, _ = tl.associative_scan((a, b_x, b_x), 1, step_forward)
            if OUTPUT:
                acc += h * C[None, :]
            # The sum picks the last step: adding zeros within a lane leaves it as it is.
            tl.store(state + n * E, tl.sum(tl.where(ends, h, 0.0), 1), mask=there)
        if OUTPUT:
            y_at = pointers(y, row * y_b, start, e, way, y_l)
            tl.store(y_at, acc.to(y.dtype.element_ty), mask=mask)
    if not OUTPUT:
        tl.store(spans + (row * tl.num_programs(1) + segment) * E + e, span, mask=there)


@triton.jit
@no_type_check
def scan_carry(
    delta, dy, A2, bc, bias, carry, spans, L, tiles, group, delta_b, dy_b,
    delta_l: tl.constexpr, dy_l: tl.constexpr, E: tl.constexpr, N: tl.constexpr,
    REVERSE: tl.constexpr, SOFTPLUS: tl.constexpr, EVEN: tl.constexpr,
    EXACT: tl.constexpr, ASM: tl.constexpr, UNROLL: tl.constexpr, AHEAD: tl.constexpr,
    T: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """The first c of a segment, for the segment before it in the backward pass.

    `carry` (rows, segments, N, E) comes with c after each segment and ends with its first c.
    """
    e = tl.multiple_of(tl.program_id(0) * BE + tl.arange(0, BE), 1)
    segment, row = tl.program_id(1), tl.program_id(2).to(tl.int64)
    there = e < E if E % BE else tl.full([BE], True, tl.int1)
    n_tiles = tl.cdiv(L, T)
    first = segment * tiles
    last = tl.minimum(first + tiles, n_tiles)
    which = tl.program_id(2) // group
    A2 += which * N * E
    b = tl.load(bias + which * E + e, mask=there, other=0.0)
    carry += (row * tl.num_programs(1) + segment) * N * E + e
    bc_all = bc + row * (2 * N) * (n_tiles * T)
    bc = bc_all + tl.arange(0, T)
    span = tl.zeros([BE], tl.float32)
    for back in range(first, last):
        tile = last - 1 - (back - first)
        start, way, live = locate_tile(tile, L, row * 0, T, EVEN, REVERSE)
        mask = live & there[:, None]
        dy_ = tl.load(pointers(dy, row * dy_b, start, e, way, dy_l), mask=mask, other=0.0).to(
            tl.float32
        )
        dt, _ = step_sizes(
            pointers(delta, row * delta_b, start, e, way, delta_l),
            mask, live, b, SOFTPLUS, EXACT, ASM,
        )  # fmt: skip
        if AHEAD != "":
            following = tl.maximum(tile - 1, first)
            fetch_row(bc_all, (following * 2 + 1) * (N * T), N * T, AHEAD)
            fetch_tile(dy, row * dy_b, following, L, E, REVERSE, dy_l, T, BE, AHEAD)
            fetch_tile(delta, row * delta_b, following, L, E, REVERSE, delta_l, T, BE, AHEAD)
        dy_ = reverse_time(dy_, ASM)
        span += tl.sum(dt, 1)
        ends = (tl.arange(0, T) == T - 1)[None, :]
        next_A = tl.load(A2 + e, mask=there, other=0.0)
        next_c = tl.load(carry, mask=there, other=0.0)
        bc_ = bc + tile * (2 * N * T)
        next_C = tl.load(bc_ + N * T)
        for n in tl.range(0, N, loop_unroll_factor=UNROLL):
            A_n, c_after, C = next_A, next_c, next_C.to(tl.float32)
            ahead = tl.minimum(n + 1, N - 1)
            next_C = tl.load(bc_ + (N + ahead) * T)
            next_A = tl.load(A2 + ahead * E + e, mask=there, other=0.0)
            next_c = tl.load(carry + ahead * E, mask=there, other=0.0)
            a = exp2(dt * A_n[:, None], EXACT, ASM)
            a = reverse_time(a, ASM)
            C_ = reverse_time(tl.broadcast_to(C[None, :], (BE, T)), ASM)
            g = tl.fma(C_, dy_, tl.broadcast_to(c_after[:, None], (BE, T)))
            _, _, _, _, c = tl.associative_scan((a, C_, dy_, g, a * g), 1, step_backward)
            tl.store(carry + n * E, tl.sum(tl.where(ends, c, 0.0), 1), mask=there)
    tl.store(spans + (row * tl.num_programs(1) + segment) * E + e, span, mask=there)


@triton.jit
@no_type_check
def scan_chain(
    local, spans, A2, out, segments, group, NE: tl.constexpr, E: tl.constexpr,
    BACK: tl.constexpr, EXACT: tl.constexpr, ASM: tl.constexpr, T: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """The state before each segment, from what each segment makes of a zero state.

    A segment multiplies the state by 2^(A Σ dt) and adds what it makes of zero. `out` comes with
    the first state. With BACK it is c instead, from the last segment to the first.

    The segments are the steps of a scan. T of them are loaded at once, so that a program waits for
    memory once in T segments.
    """
    i = tl.multiple_of(tl.program_id(0) * BE + tl.arange(0, BE), 1)
    t = tl.arange(0, T)
    row = tl.program_id(1).to(tl.int64)
    there = i < NE
    A_n = tl.load(A2 + tl.program_id(1) // group * NE + i, mask=there, other=0.0)
    out += row * segments * NE + i
    local += row * segments * NE + i
    spans += row * segments * E + i % E
    # row * 0 is a 64-bit zero.
    h = tl.load(out + (row * 0 + (segments - 1 if BACK else 0)) * NE, mask=there, other=0.0)
    begins, ends = (t == 0)[None, :], (t == T - 1)[None, :]
    for first in range(0, segments - 1, T):
        step = row * 0 + first + t
        s = segments - 1 - step if BACK else step
        to = s - 1 if BACK else s + 1
        mask = (step < segments - 1)[None, :] & there[:, None]
        # Past the end a decay of 1 and nothing added: the state is kept.
        span = tl.load(spans[:, None] + (s * E)[None, :], mask=mask, other=0.0)
        b = tl.load(local[:, None] + (s * NE)[None, :], mask=mask, other=0.0)
        a = exp2(span * A_n[:, None], EXACT, ASM)
        b = tl.where(begins, tl.fma(a, tl.broadcast_to(h[:, None], (BE, T)), b), b)
        _, found, _ = tl.associative_scan((a, b, b), 1, step_forward)
        tl.store(out[:, None] + (to * NE)[None, :], found, mask=mask)
        h = tl.sum(tl.where(ends, found, 0.0), 1)


@triton.jit
@no_type_check
def scan_backward(
    u, delta, dy, A2, bc, D, bias, kept, carry, du, ddelta, dbc, dA, dD, dbias,
    L, tiles, group, u_b, delta_b, dy_b,
    u_l: tl.constexpr, delta_l: tl.constexpr, dy_l: tl.constexpr, E: tl.constexpr, N: tl.constexpr,
    REVERSE: tl.constexpr, SOFTPLUS: tl.constexpr, EVEN: tl.constexpr, SUMS: tl.constexpr,
    EXACT: tl.constexpr, ASM: tl.constexpr, UNROLL: tl.constexpr, AHEAD: tl.constexpr,
    T: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """All gradients.

    `carry` (rows, segments, N, E) comes with c after each segment, and ends with its first c; dA,
    of its shape, comes as zero. du and ddelta are (rows, L, E). The caller sums dA, dbc (blocks of
    channels, rows, tiles, 2N, T), and dD and dbias (rows, segments, E), in a fixed order.
    """
    block = tl.program_id(0)
    lane = tl.arange(0, BE)
    e = tl.multiple_of(block * BE + lane, 1)
    segment, row = tl.program_id(1), tl.program_id(2).to(tl.int64)
    there = e < E if E % BE else tl.full([BE], True, tl.int1)
    n_tiles = tl.cdiv(L, T)
    first = segment * tiles
    last = tl.minimum(first + tiles, n_tiles)
    which = tl.program_id(2) // group
    A2 += which * N * E
    b = tl.load(bias + which * E + e, mask=there, other=0.0)
    d = tl.load(D + which * E + e, mask=there, other=0.0)
    t = tl.arange(0, T)
    padded = n_tiles * T
    # Of B and C ahead there is room in registers where they are two bytes wide.
    LOW: tl.constexpr = bc.dtype.element_ty != tl.float32
    own = (row * tl.num_programs(1) + segment) * N * E + e
    carry += own
    dA += own
    kept_all = kept + row * n_tiles * N * E
    kept = kept_all + e
    bc_all = bc + row * (2 * N) * padded
    bc = bc_all + t
    dbc += (block.to(tl.int64) * tl.num_programs(2) + row) * (2 * N) * padded
    # Where each lane stores the sum that `sum_lanes` leaves it with: of B below lane 16, else of C.
    lane_step = (lane // 16) * N * T + 4 * (lane % 4) + 2 * (lane // 8 % 2) + lane // 4 % 2
    dD_ = tl.zeros([BE], tl.float32)
    dbias_ = tl.zeros([BE], tl.float32)
    for back in range(first, last):
        tile = last - 1 - (back - first)
        start, way, live = locate_tile(tile, L, row * 0, T, EVEN, REVERSE)
        mask = live & there[:, None]
        u_at = pointers(u, row * u_b, start, e, way, u_l)
        u_ = tl.load(u_at, mask=mask, other=0.0).to(tl.float32)
        dy_ = tl.load(pointers(dy, row * dy_b, start, e, way, dy_l), mask=mask, other=0.0).to(
            tl.float32
        )
        delta_at = pointers(delta, row * delta_b, start, e, way, delta_l)
        dt, _ = step_sizes(delta_at, mask, live, b, SOFTPLUS, EXACT, ASM)
        if AHEAD != "":
            following = tl.maximum(tile - 1, first)
            fetch_row(bc_all, following * (2 * N * T), 2 * N * T, AHEAD)
            fetch_tile(u, row * u_b, following, L, E, REVERSE, u_l, T, BE, AHEAD)
            fetch_tile(dy, row * dy_b, following, L, E, REVERSE, dy_l, T, BE, AHEAD)
            fetch_tile(delta, row * delta_b, following, L, E, REVERSE, delta_l, T, BE, AHEAD)
            fetch_states(kept_all, following, N, E, BE, AHEAD)
        dy_back = reverse_time(dy_, ASM)
        x = dt * u_
        dD_ += tl.sum(dy_ * u_, 1)
        along = tl.zeros([BE, T], tl.float32)  # Σ_n w A log₂e
        across = tl.zeros([BE, T], tl.float32)  # Σ_n g B
        begins, ends = (t == 0)[None, :], (t == T - 1)[None, :]
        state = kept + (row * 0 + tile * N) * E
        next_A = tl.load(A2 + e, mask=there, other=0.0)
        next_before = tl.load(state, mask=there, other=0.0)
        next_c, next_dA = tl.load(carry, mask=there, other=0.0), tl.load(dA, mask=there, other=0.0)
        bc_ = bc + tile * (2 * N * T)
        if LOW:
            next_B, next_C = tl.load(bc_), tl.load(bc_ + N * T)
        for n in tl.range(0, N, loop_unroll_factor=UNROLL):
            A_n, before, c_after, sum_before = next_A, next_before, next_c, next_dA
            ahead = tl.minimum(n + 1, N - 1)
            if LOW:
                B, C = next_B.to(tl.float32), next_C.to(tl.float32)
                next_B = tl.load(bc_ + ahead * T)
                next_C = tl.load(bc_ + (N + ahead) * T)
            else:
                B = tl.load(bc_ + n * T)
                C = tl.load(bc_ + (N + n) * T)
            next_A = tl.load(A2 + ahead * E + e, mask=there, other=0.0)
            next_before = tl.load(state + ahead * E, mask=there, other=0.0)
            next_c, next_dA = (
                tl.load(carry + ahead * E, mask=there, other=0.0),
                tl.load(dA + ahead * E, mask=there, other=0.0),
            )
            a = exp2(dt * A_n[:, None], EXACT, ASM)
            b_x = x * B[None, :]
            before_ = tl.broadcast_to(before.to(tl.float32)[:, None], (BE, T))
            b_x = tl.where(begins, tl.fma(a, before_, b_x), b_x)
            _, h, h_before = tl.associative_scan((a, b_x, before_), 1, step_forward)
            # Summed to quarters at once: a tile in waiting would take 16 registers more.
            if SUMS == "plain":
                dC = tl.sum(h * dy_, 0)
            else:
                dC = sum_quarters(h * dy_, SUMS)
            a = reverse_time(a, ASM)
            C_ = reverse_time(tl.broadcast_to(C[None, :], (BE, T)), ASM)
            g = tl.fma(C_, dy_back, tl.broadcast_to(c_after[:, None], (BE, T)))
            _, _, _, g, c = tl.associative_scan((a, C_, dy_back, g, a * g), 1, step_backward)
            tl.store(carry + n * E, tl.sum(tl.where(ends, c, 0.0), 1), mask=there)
            # w_t = c_t h_{t−1} is the gradient of the decay's exponent.
            g, w = reverse_time(g, ASM), reverse_time(c, ASM) * h_before
            along += w * A_n[:, None]
            across += g * B[None, :]
            # dA is summed in memory, by this program alone.
            tl.store(dA + n * E, sum_before + tl.sum(w * dt, 1), mask=there)
            at = dbc + (tile * (2 * N) + n) * T
            if SUMS == "plain":
                tl.store(at + t, tl.sum(g * x, 0))
                tl.store(at + N * T + t, dC)
            else:
                tl.store(at + lane_step, sum_lanes(sum_quarters(g * x, SUMS), dC, T))
        # Read again rather than kept: registers are scarce, and the numbers are in the cache.
        u_ = tl.load(u_at, mask=mask, other=0.0).to(tl.float32)
        tl.store(
            pointers(du, row * L * E, start, e, way, E),
            (dt * across + dy_ * d[:, None]).to(du.dtype.element_ty),
            mask=mask,
        )
        ddt = along * LN2 + u_ * across
        if SOFTPLUS:
            raw = tl.load(delta_at, mask=mask, other=0.0).to(tl.float32) + b[:, None]
            # The slope of softplus is the sigmoid: e^raw / (1 + e^raw) = e^(raw − softplus(raw)).
            ddt *= exp2((raw - dt) * LOG2E, EXACT, ASM)
        # Past the end, delta is only the bias, and must not count in its gradient.
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
