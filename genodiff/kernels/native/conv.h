/* The short causal convolution with its SiLU and, where P > 0, the projection of its outputs. w is
   (K, E).

     p_t = bias + sum_k w[k,e] x_{t-K+1+k}        y_t = p_t / (1 + exp(-p_t))
     projected_t = v y_t
   Reversed, x_{t+K-1-k} stands for x_{t-K+1+k}, and q_{t-K+1+k} for q_{t+K-1-k}. Backward computes
   p again: only x is kept. With gy_t increased by v^T gp_t, and q_t = gy_t y'(p_t):
     dx_t = sum_k w[k,e] q_{t+K-1-k}     dw[k,e] = sum_t q_t x_{t-K+1+k}     dv = sum_t gp_t y_t^T
   v comes as (E, P) forward and as (P, E) backward.

   A sequence may be cut into blocks: then taps outside of a step's block count as 0, too.

   Rows are read in the order of memory, a row as a whole: neighbouring rows lie up to a page apart,
   and a few channels of many rows would touch as many pages. With K = FOUR, the usual width, FOUR
   steps at a time share the rows that they read. At a sequence's ends, and for other widths, steps
   go one by one. */
#define FOUR 4

/* How many steps of its block stand before step t, or with `after` behind it. */
static inline int64_t conv_steps_to_end(const conv_args *s, int64_t t, int after) {
    int64_t before = t % s->block;
    return after ? s->block - 1 - before : before;
}

/* The first tap of step t is x_first, which is returned. Taps before *k0 lie outside the block,
   where x counts as 0. */
static inline int64_t conv_reach(const conv_args *s, int64_t t, int *k0) {
    int64_t first = s->reverse ? t + s->K - 1 : t - s->K + 1,
            out = s->K - 1 - conv_steps_to_end(s, t, (int)s->reverse);
    *k0 = out > 0 ? (int)out : 0;
    return first;
}

/* p of one step, over the taps from k0 on; `step` leads from a tap to the next. */
INLINE vf conv_at(const conv_args *s, const float *x, int64_t step, int k0, int64_t e, int lanes) {
    vf p = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f);
    for (int k = k0; k < s->K; k++)
        p += v_load(s->w + k * s->E + e, lanes) * v_load(x + k * step + e, lanes);
    return p;
}

/* p_j += sum_k w[k,e] x_{j+k} for FOUR steps. Their 2 FOUR - 1 rows of x, `step` apart, are read
   once and left in `row`, for dw. */
INLINE void conv_four(const conv_args *s, const float *x, int64_t step, int64_t e, int lanes, vf *p,
                      vf *row) {
    UNROLLED(i, 2 * FOUR - 1) row[i] = v_load(x + i * step + e, lanes);
    UNROLLED(k, FOUR) {
        vf w = v_load(s->w + k * s->E + e, lanes);
        UNROLLED(j, FOUR) p[j] += w * row[j + k];
    }
}

/* Steps [t, t + FOUR) in the order in which the convolution reads. Step j is from + j way, and its
   first tap x_{first + j way}. */
typedef struct {
    int64_t from, first, way;
} conv_steps;

/* Whether there are FOUR steps before `end`, with all taps inside one block. With `reverse` the taps
   lie to the right. */
static inline int conv_steps_at(const conv_args *s, int64_t t, int64_t end, int reverse,
                                conv_steps *at) {
    *at = reverse ? (conv_steps){t + FOUR - 1, t + 2 * FOUR - 2, -1}
                  : (conv_steps){t, t - FOUR + 1, 1};
    return s->K == FOUR && t + FOUR <= end &&
           (reverse ? conv_steps_to_end(s, t, 1) >= 2 * FOUR - 2
                    : conv_steps_to_end(s, t + FOUR - 1, 0) >= 2 * FOUR - 2);
}

INLINE void conv_forward_four(const conv_args *s, int64_t b, conv_steps at, int64_t e, int lanes) {
    vf p[FOUR], row[2 * FOUR - 1], bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f);
    const float *x = s->x + b * s->x_b + at.first * s->x_l;
    float *y = s->y + b * s->y_b + at.from * s->y_l + e;
    UNROLLED(j, FOUR) {
        p[j] = bias;
        /* The rows that are new two groups of FOUR later. */
        WANT(x + (s->reverse ? -j : j + FOUR - 1) * s->x_l + 2 * FOUR * s->x_l + e, 0);
        WANT(y + j * at.way * s->y_l + 2 * FOUR * s->y_l, 1);
    }
    conv_four(s, x, at.way * s->x_l, e, lanes, p, row);
    UNROLLED(j, FOUR)
        v_store(y + j * at.way * s->y_l, s->silu ? p[j] * v_sigmoid(p[j]) : p[j], lanes);
}

INLINE void conv_row(const conv_args *s, int64_t b, int64_t t, int64_t e, int lanes, const float *x,
                     int64_t step, int k0) {
    vf p = conv_at(s, x, step, k0, e, lanes);
    if (s->silu) p *= v_sigmoid(p);
    float *y = s->y + b * s->y_b + t * s->y_l + e;
    WANT(x + (s->reverse ? 0 : s->K - 1) * s->x_l + AHEAD * s->x_l + e, 0);
    WANT(y + AHEAD * s->y_l, 1);
    v_store(y, p, lanes);
}

static void conv_forward(const conv_args *s, int64_t b, int64_t t0, int64_t t1) {
    int64_t step = s->reverse ? -s->x_l : s->x_l, whole = s->E / W * W;
    conv_steps four;
    for (int64_t t = t0; t < t1; t++) {
        int k0;
        int64_t e = 0;
        if (conv_steps_at(s, t, t1, s->reverse, &four)) {
            for (; e < whole; e += W) conv_forward_four(s, b, four, e, W);
            if (e < s->E) conv_forward_four(s, b, four, e, (int)(s->E - e));
            t += FOUR - 1;
            continue;
        }
        const float *x = s->x + b * s->x_b + conv_reach(s, t, &k0) * s->x_l;
        for (; e < whole; e += W) conv_row(s, b, t, e, W, x, step, k0);
        if (e < s->E) conv_row(s, b, t, e, (int)(s->E - e), x, step, k0);
    }
    /* The chunk's outputs are still in the cache. */
    if (s->P) {
        thin_args to = {.a = s->y + b * s->y_b + t0 * s->y_l, .a_m = s->y_l, .a_k = 1, .w = s->v,
                        .w_k = s->P, .M = t1 - t0, .N = s->P, .K = s->E};
        to.out = s->p + b * s->p_b + t0 * s->p_l, to.out_m = s->p_l;
        thin(&to);
    }
}

/* What backward knows of the steps [lo, lo + CONV_CHUNK + K) that it is at: q and, where dv needs
   it, y again. Both have E to a row. `part` is the task's share of dw, dbias and dv. */
typedef struct {
    float *q, *y, *part;
    int64_t lo;
} conv_scratch;

/* gy of a step. Where the projection has a share in it, the sum was written to where q will be. */
static inline const float *conv_gy(const conv_args *s, const conv_scratch *w, int64_t b,
                                   int64_t t) {
    return s->P ? w->q + (t - w->lo) * s->E : s->gy + b * s->gy_b + t * s->gy_l;
}

/* q of one row, and its share of dw and dbias if the row is `mine`. The q of rows beyond the task's
   own is needed for dx; their shares are the neighbouring task's. */
INLINE void conv_back_row(const conv_args *s, const conv_scratch *w, int64_t b, int64_t t,
                          int64_t e, int lanes, const float *x, int64_t step, int k0, int mine) {
    vf gy = v_load(conv_gy(s, w, b, t) + e, lanes);
    /* y'(p) = s + p s (1 - s) with s the sigmoid of p. */
    vf p = conv_at(s, x, step, k0, e, lanes), gate = s->silu ? v_sigmoid(p) : v_splat(1.0f);
    if (s->silu) gy *= gate * (1.0f + p * (1.0f - gate));
    if (s->P) v_store(w->y + (t - w->lo) * s->E + e, p * gate, lanes);
    v_store(w->q + (t - w->lo) * s->E + e, gy, lanes);
    /* Row K of `part` is dbias. */
    for (int k = k0; mine && k <= s->K; k++) {
        float *to = w->part + k * s->E + e;
        v_store(to, v_load(to, lanes) + (k < s->K ? gy * v_load(x + k * step + e, lanes) : gy),
                lanes);
    }
}

/* As conv_back_row for FOUR steps that are all of the task's own. */
INLINE void conv_back_four(const conv_args *s, const conv_scratch *w, int64_t b, conv_steps at,
                           int64_t e, int lanes) {
    vf p[FOUR], row[2 * FOUR - 1], bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f);
    const float *x = s->x + b * s->x_b + at.first * s->x_l, *from = conv_gy(s, w, b, at.from) + e;
    int64_t down = at.way * s->E, first = (at.from - w->lo) * s->E + e,
            gy_l = at.way * (s->P ? s->E : s->gy_l);
    UNROLLED(j, FOUR) {
        p[j] = bias;
        /* With a projection, gy of a whole chunk is read at once, so it is wanted a chunk ahead. */
        WANT(x + (s->reverse ? -j : j + FOUR - 1) * s->x_l + 2 * FOUR * s->x_l + e, 0);
        WANT(s->gy + b * s->gy_b +
                 (at.from + j * at.way + (s->P ? CONV_CHUNK : 2 * FOUR)) * s->gy_l + e,
             0);
        WANT(s->dx + b * s->dx_b + (at.from + j * at.way) * s->dx_l + e, 1);
    }
    conv_four(s, x, at.way * s->x_l, e, lanes, p, row);
    UNROLLED(j, FOUR) {
        vf gy = v_load(from + j * gy_l, lanes), gate = s->silu ? v_sigmoid(p[j]) : v_splat(1.0f);
        if (s->silu) gy *= gate * (1.0f + p[j] * (1.0f - gate));
        if (s->P) v_store(w->y + first + j * down, p[j] * gate, lanes);
        /* Where gy came from q, this replaces it; p goes on as q, for dw. */
        v_store(w->q + first + j * down, p[j] = gy, lanes);
    }
    UNROLLED(k, FOUR + 1) {
        float *to = w->part + k * s->E + e;
        vf sum = v_load(to, lanes);
        UNROLLED(j, FOUR) sum += k < FOUR ? p[j] * row[j + k] : p[j];
        v_store(to, sum, lanes);
    }
}

/* As conv_back_dx for FOUR steps; q points to the row of the first tap of the first of them. */
INLINE void conv_back_dx_four(const conv_args *s, int64_t b, conv_steps at, int64_t e, int lanes,
                              const float *q) {
    vf dx[FOUR], row[2 * FOUR - 1];
    float *to = s->dx + b * s->dx_b + at.from * s->dx_l + e;
    int64_t step = at.way * s->dx_l;
    UNROLLED(j, FOUR)
        dx[j] = s->accumulate ? v_load(to + j * step, lanes) : v_splat(0.0f);
    conv_four(s, q, at.way * s->E, e, lanes, dx, row);
    UNROLLED(j, FOUR) v_store(to + j * step, dx[j], lanes);
}

INLINE void conv_back_dx(const conv_args *s, int64_t b, int64_t t, int64_t e, int lanes,
                         const float *last, int64_t way, int k0) {
    float *to = s->dx + b * s->dx_b + t * s->dx_l + e;
    vf dx = s->accumulate ? v_load(to, lanes) : v_splat(0.0f);
    for (int k = k0; k < s->K; k++)
        dx += v_load(s->w + k * s->E + e, lanes) * v_load(last - k * way + e, lanes);
    v_store(to, dx, lanes);
}

/* q of the steps [from, to), and what those of them in [start, end) add to dw, dbias and dv. */
static void conv_back_rows(const conv_args *s, const conv_scratch *w, int64_t b, int64_t from,
                           int64_t to, int64_t start, int64_t end) {
    int64_t step = s->reverse ? -s->x_l : s->x_l, whole = s->E / W * W, E = s->E;
    int64_t mine0 = from < start ? start : from, mine1 = to < end ? to : end;
    /* gy + v^T gp of all rows, written to where their q will be. */
    if (s->P) {
        thin_args gy = {.a = s->gp + b * s->gp_b + from * s->gp_l, .a_m = s->gp_l, .a_k = 1,
                        .w = s->v, .w_k = E, .M = to - from, .N = E, .K = s->P};
        gy.init = s->gy + b * s->gy_b + from * s->gy_l, gy.init_m = s->gy_l;
        gy.out = w->q + (from - w->lo) * E, gy.out_m = E;
        thin(&gy);
    }
    conv_steps four;
    for (int64_t t = from; t < to; t++) {
        int64_t e = 0;
        if (t >= start && conv_steps_at(s, t, mine1, s->reverse, &four)) {
            for (; e < whole; e += W) conv_back_four(s, w, b, four, e, W);
            if (e < E) conv_back_four(s, w, b, four, e, (int)(E - e));
            t += FOUR - 1;
            continue;
        }
        int k0, mine = t >= start && t < end;
        const float *x = s->x + b * s->x_b + conv_reach(s, t, &k0) * s->x_l;
        for (; e < whole; e += W) conv_back_row(s, w, b, t, e, W, x, step, k0, mine);
        if (e < E) conv_back_row(s, w, b, t, e, (int)(E - e), x, step, k0, mine);
    }
    if (s->P && mine0 < mine1) {
        thin_args dv = {.a = s->gp + b * s->gp_b + mine0 * s->gp_l, .a_m = 1, .a_k = s->gp_l,
                        .w = w->y + (mine0 - w->lo) * E, .w_k = E, .M = s->P, .N = E};
        dv.K = mine1 - mine0, dv.out = w->part + (s->K + 1) * E, dv.init = dv.out;
        dv.init_m = dv.out_m = E;
        thin(&dv);
    }
}

/* dx over [start, end), and the shares of the same steps in dw, dbias and dv, which are added to
   part (K + 1 + P, E). dx_t needs q of up to K - 1 steps beyond t, the halo. What a chunk has
   computed beyond its end is moved to the front for the next chunk, so that each q is computed once
   in a task. */
static void conv_backward(const conv_args *s, int64_t b, int64_t start, int64_t end,
                          conv_scratch *w) {
    int64_t halo = s->K - 1, whole = s->E / W * W, E = s->E, way = s->reverse ? -E : E,
            done = s->reverse ? start - halo : start;
    if (done < 0) done = 0;
    w->lo = done;
    conv_steps four;
    for (int64_t t0 = start; t0 < end; t0 += CONV_CHUNK) {
        int64_t t1 = least(t0 + CONV_CHUNK, end), from = s->reverse ? t0 - halo : t0,
                to = s->reverse ? t1 : t1 + halo;
        if (from < 0) from = 0;
        if (to > s->L) to = s->L;
        /* What the chunk before has left; source and target may overlap. */
        memmove(w->q, w->q + (from - w->lo) * E, (done - from) * E * sizeof(float));
        w->lo = from;
        conv_back_rows(s, w, b, done, to, start, end);
        done = to;
        for (int64_t t = t0; t < t1; t++) {
            int64_t e = 0;
            /* The taps of dx lie on the other side of t than those of y. */
            if (conv_steps_at(s, t, t1, !s->reverse, &four)) {
                const float *row = w->q + (four.first - w->lo) * E;
                for (; e < whole; e += W) conv_back_dx_four(s, b, four, e, W, row);
                if (e < E) conv_back_dx_four(s, b, four, e, (int)(E - e), row);
                t += FOUR - 1;
                continue;
            }
            /* q of tap k stands at last - k * way; taps from k0 on reach into the block. */
            int64_t ahead = conv_steps_to_end(s, t, !s->reverse);
            int k0 = ahead < halo ? (int)(halo - ahead) : 0;
            const float *last = w->q + (t - w->lo) * E + halo * way;
            for (; e < whole; e += W) conv_back_dx(s, b, t, e, W, last, way, k0);
            if (e < E) conv_back_dx(s, b, t, e, (int)(E - e), last, way, k0);
        }
    }
}

static int64_t conv_pieces(const conv_args *s) { return (s->L + s->piece - 1) / s->piece; }

static void conv_task(const void *args, int64_t i, void *own, int backward) {
    const conv_args *s = args;
    int64_t b = i / conv_pieces(s), start = i % conv_pieces(s) * s->piece,
            end = least(start + s->piece, s->L), each = (s->K + 1 + s->P) * s->E;
    if (!backward) {
        for (int64_t t = start; t < end; t += CONV_CHUNK)
            conv_forward(s, b, t, least(t + CONV_CHUNK, end));
        return;
    }
    conv_scratch w = {own, s->P ? (float *)own + (CONV_CHUNK + s->K) * s->E : 0, s->part + i * each,
                      0};
    memset(w.part, 0, each * sizeof(float));
    conv_backward(s, b, start, end, &w);
}

int genodiff_conv(const conv_args *s, int backward, int threads) {
    size_t bytes = backward ? (s->P ? 2 : 1) * (CONV_CHUNK + s->K) * s->E * sizeof(float) : 0;
    return tasks_run(conv_task, s, s->batch * conv_pieces(s), bytes, backward, threads);
}
