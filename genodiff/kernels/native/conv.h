/* The short causal convolution with its SiLU, for one vector width; helpers and types in scan.h. w is (K, E).

     p_t = bias + sum_k w[k,e] x_{t-K+1+k},   y_t = p_t / (1 + exp(-p_t));   reversed, x_{t+K-1-k} stands for x_{t-K+1+k}.
   Backward recomputes p: only x is kept. With q_t = gy_t y'(p_t):  dx_t = sum_k w[k,e] q_{t+K-1-k},  dw[k,e] = sum_t q_t x_{t-K+1+k}.
   Rows are read in the order of memory: neighbouring rows lie a page apart. */

/* Taps [*k0, *k1) reach into the sequence from step t; x of tap k stands at x[(t + *shift + k * way)]. */
static inline int64_t conv_reach(const conv_args *s, int64_t t, int *k0, int *k1) {
    int64_t K = s->K, first = s->reverse ? t + K - 1 : t - K + 1;
    *k0 = 0, *k1 = (int)K;
    if (s->reverse) {
        if (first > s->L - 1) *k0 = (int)(first - (s->L - 1));
    } else if (first < 0)
        *k0 = (int)-first;
    return first;
}

static inline __attribute__((always_inline)) vf conv_at(const conv_args *s, const float *x, int64_t step, int k0, const int k1, int64_t e, int lanes) {
    vf p = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f);
#pragma GCC unroll 4
    for (int k = k0; k < k1; k++) p += v_load(s->w + k * s->E + e, lanes) * v_load(x + k * step + e, lanes);
    return p;
}

static inline __attribute__((always_inline)) void conv_row(const conv_args *s, int64_t b, int64_t t, int64_t e, int lanes, const float *x, int64_t step, int k0,
                                                           const int k1) {
    vf p = conv_at(s, x, step, k0, k1, e, lanes);
    if (s->silu) p *= v_sigmoid(p);
    float *y = s->y + b * s->y_b + t * s->y_l + e;
    WANT(x + (s->reverse ? 0 : s->K - 1) * s->x_l + AHEAD * s->x_l + e, 0);
    WANT(y + AHEAD * s->y_l, 1);
    v_store(y, p, lanes);
}

static void conv_forward(const conv_args *s, int64_t b, int64_t t0, int64_t t1) {
    int64_t step = s->reverse ? -s->x_l : s->x_l, whole = s->E / W * W;
    for (int64_t t = t0; t < t1; t++) {
        int k0, k1;
        const float *x = s->x + b * s->x_b + conv_reach(s, t, &k0, &k1) * s->x_l;
        int64_t e = 0;
        if (k0 == 0 && k1 == 4)
            for (; e < whole; e += W) conv_row(s, b, t, e, W, x, step, 0, 4);
        for (; e < whole; e += W) conv_row(s, b, t, e, W, x, step, k0, k1);
        if (e < s->E) conv_row(s, b, t, e, (int)(s->E - e), x, step, k0, k1);
    }
}

/* q of one row, and its share of dw and dbias where the row is `mine`. */
static inline __attribute__((always_inline)) void conv_back_row(const conv_args *s, int64_t b, int64_t t, int64_t e, int lanes, const float *x, int64_t step,
                                                                int k0, const int k1, float *q, float *part, int mine) {
    const float *from = s->gy + b * s->gy_b + t * s->gy_l + e;
    vf gy = v_load(from, lanes);
    WANT(x + (s->reverse ? 0 : s->K - 1) * s->x_l + AHEAD * s->x_l + e, 0);
    WANT(from + AHEAD * s->gy_l, 0);
    WANT(s->dx + b * s->dx_b + t * s->dx_l + e, 1);
    if (s->silu) {
        vf p = conv_at(s, x, step, k0, k1, e, lanes);
        vf gate = v_sigmoid(p);
        gy *= gate * (1.0f + p * (1.0f - gate));
    }
    v_store(q + e, gy, lanes);
    if (mine) {
#pragma GCC unroll 4
        for (int k = k0; k < k1; k++) {
            float *to = part + k * s->E + e;
            v_store(to, v_load(to, lanes) + gy * v_load(x + k * step + e, lanes), lanes);
        }
        float *to = part + s->K * s->E + e;
        v_store(to, v_load(to, lanes) + gy, lanes);
    }
}

static inline __attribute__((always_inline)) void conv_back_dx(const conv_args *s, int64_t b, int64_t t, int64_t e, int lanes, const float *last, int64_t way,
                                                               int k0, const int k1) {
    float *to = s->dx + b * s->dx_b + t * s->dx_l + e;
    vf dx = s->accumulate ? v_load(to, lanes) : v_splat(0.0f);
#pragma GCC unroll 4
    for (int k = k0; k < k1; k++) dx += v_load(s->w + k * s->E + e, lanes) * v_load(last - k * way + e, lanes);
    v_store(to, dx, lanes);
}

/* dx over [t0, t1), and the shares of dw and dbias of the same steps: part (K + 1, E), added to. q has a row for each step and halo. */
static void conv_backward(const conv_args *s, int64_t b, int64_t t0, int64_t t1, float *part, float *q) {
    int64_t halo = s->K - 1, lo = s->reverse ? t0 - halo : t0, hi = s->reverse ? t1 : t1 + halo;
    int64_t step = s->reverse ? -s->x_l : s->x_l, whole = s->E / W * W, E = s->E;
    if (lo < 0) lo = 0;
    if (hi > s->L) hi = s->L;
    for (int64_t t = lo; t < hi; t++) {
        int k0, k1, mine = t >= t0 && t < t1;
        const float *x = s->x + b * s->x_b + conv_reach(s, t, &k0, &k1) * s->x_l;
        float *row = q + (t - lo) * E;
        int64_t e = 0;
        if (k0 == 0 && k1 == 4 && mine)
            for (; e < whole; e += W) conv_back_row(s, b, t, e, W, x, step, 0, 4, row, part, 1);
        for (; e < whole; e += W) conv_back_row(s, b, t, e, W, x, step, k0, k1, row, part, mine);
        if (e < E) conv_back_row(s, b, t, e, (int)(E - e), x, step, k0, k1, row, part, mine);
    }
    int64_t way = s->reverse ? -E : E;
    for (int64_t t = t0; t < t1; t++) {
        /* q of tap k stands at last - k * way; taps [k0, k1) reach into the sequence. */
        int64_t ahead = s->reverse ? t : s->L - 1 - t;
        int k0 = ahead < halo ? (int)(halo - ahead) : 0, k1 = (int)s->K;
        const float *last = q + (t - lo) * E + halo * way;
        int64_t e = 0;
        if (k0 == 0 && k1 == 4)
            for (; e < whole; e += W) conv_back_dx(s, b, t, e, W, last, way, 0, 4);
        for (; e < whole; e += W) conv_back_dx(s, b, t, e, W, last, way, k0, k1);
        if (e < E) conv_back_dx(s, b, t, e, (int)(E - e), last, way, k0, k1);
    }
}

static void conv_run(conv_args *s, int backward, int threads) {
    int64_t pieces = (s->L + CONV_PIECE - 1) / CONV_PIECE, tasks = s->batch * pieces;
    int failed = 0;
#pragma omp parallel num_threads(threads)
    {
        float *q = backward ? malloc((CONV_CHUNK + s->K) * s->E * sizeof(float)) : 0;
        if (backward && !q) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp barrier
        int skip;
#pragma omp atomic read
        skip = failed;
        if (!skip) {
#pragma omp for schedule(dynamic, 1)
            for (int64_t i = 0; i < tasks; i++) {
                int64_t b = i / pieces, start = i % pieces * CONV_PIECE, end = start + CONV_PIECE < s->L ? start + CONV_PIECE : s->L;
                float *part = backward ? s->part + i * (s->K + 1) * s->E : 0;
                if (backward) memset(part, 0, (s->K + 1) * s->E * sizeof(float));
                for (int64_t t = start; t < end; t += CONV_CHUNK) {
                    int64_t stop = t + CONV_CHUNK < end ? t + CONV_CHUNK : end;
                    if (backward) conv_backward(s, b, t, stop, part, q);
                    else conv_forward(s, b, t, stop);
                }
            }
        }
        free(q);
    }
    s->failed = failed;
}
