/* The selective scan for vectors of W lanes, NB states to a pass. Included by native.c. A and dA come transposed, (N, E).

   Notation (Gu and Dao 2023, Mamba-1), per batch row and channel e, with dt = v_softplus(delta + bias):
     h_t[n] = exp(dt_t A[e,n]) h_{t-1}[n] + dt_t u_t B_t[n],      y_t = sum_n C_t[n] h_t[n] + D[e] u_t.
   Layout is channels-last; a vector holds W neighbouring channels. Time runs in chunks of CHUNK; the state at the start of
   each chunk is kept, and backward recomputes what lies between. Backward, with g_t[n] the adjoint of h_t[n]:
     g_t = C_t gy_t + exp(dt_{t+1} A) g_{t+1},   dC_t = sum_e gy_t h_t,   dB_t = sum_e g_t dt_t u_t,
     ddt_t = sum_n g_t (A exp(dt_t A) h_{t-1} + u_t B_t),   dA = sum_t g_t dt_t exp(dt_t A) h_{t-1},   du_t = dt_t sum_n g_t B_t + D gy_t. */

typedef float vf __attribute__((vector_size(W * 4)));
typedef float vfu __attribute__((vector_size(W * 4), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(W * 4)));

#if W == 8
static const int32_t v_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
#endif
static inline vf v_load(const float *p, int lanes) {
    if (lanes == W) return (vf) * (const vfu *)p;
#if W == 16
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << lanes) - 1), p);
#elif W == 8
    const int32_t *in = v_lanes + 8 - lanes;
    return (vf)_mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)in));
#else
    vf v = {0};
    for (int i = 0; i < W; i++)
        if (i < lanes) v[i] = p[i];
    return v;
#endif
}
static inline void v_store(float *p, vf v, int lanes) {
    if (lanes == W) { *(vfu *)p = (vfu)v; return; }
#if W == 16
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << lanes) - 1), (__m512)v);
#elif W == 8
    const int32_t *in = v_lanes + 8 - lanes;
    _mm256_maskstore_ps(p, _mm256_loadu_si256((const __m256i *)in), (__m256)v);
#else
    for (int i = 0; i < W; i++)
        if (i < lanes) p[i] = v[i];
#endif
}
static inline vf v_splat(float x) { return x - (vf){0}; }
static inline vf v_pick(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); }

static inline float v_sum(vf v) {
    float s[W];
    for (int i = 0; i < W; i++) s[i] = v[i];
    for (int k = W / 2; k; k /= 2)
        for (int i = 0; i < k; i++) s[i] += s[i + k];
    return s[0];
}

/* 2^x, relative error 6e-8, exactly 1 at 0: rounding to nearest keeps decays near 1 unbiased over long memory. */
static inline vf v_exp2(vf x) {
#if W == 16 && defined(__AVX512F__)
    vf r = (vf)_mm512_roundscale_ps((__m512)x, 8), f = x - r;
#else
    x = v_pick(x < -126.0f, v_splat(-126.0f), x);
    x = v_pick(x > 127.0f, v_splat(127.0f), x);
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    vf shifted = x + magic, r = shifted - magic, f = x - r;
#endif
    vf p = f * 0x1.41fbbcp-13f + 0x1.5f3e54p-10f;
    p = p * f + 0x1.3b2d4cp-7f;
    p = p * f + 0x1.c6aee8p-5f;
    p = p * f + 0x1.ebfbdcp-3f;
    p = p * f + 0x1.62e430p-1f;
    p = p * f + 1.0f;
#if W == 16 && defined(__AVX512F__)
    return (vf)_mm512_scalef_ps((__m512)p, (__m512)r);
#else
    return (vf)((vi)p + ((vi)shifted << 23));
#endif
}

/* Folding: sums over pairs of lanes of two vectors, into one vector that holds half of each. Folding NB_BACK vectors level by level
   leaves the sum of vector n spread over W / NB_BACK lanes from v_folded(n). */
#if defined(__clang__)
#define V_MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define V_MIX(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif
static inline vf v_fold(vf a, vf b, const int level) {
#if W == 16
    if (level == 1)
        return V_MIX(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + V_MIX(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    if (level == 2)
        return V_MIX(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) + V_MIX(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    return V_MIX(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) + V_MIX(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
#elif W == 8
    if (level == 1) return V_MIX(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + V_MIX(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    return V_MIX(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + V_MIX(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
#else
    if (level == 1) return V_MIX(a, b, 0, 1, 4, 5) + V_MIX(a, b, 2, 3, 6, 7);
    return V_MIX(a, b, 0, 2, 4, 6) + V_MIX(a, b, 1, 3, 5, 7);
#endif
}
static inline int v_folded(int n) {
#if W == 16
    return (n & 1) * 4 + (n >> 1 & 1) * 8 + (n >> 2 & 1) * 2;
#elif W == 8
    return (n & 1) * 4 + (n >> 1 & 1) * 2;
#else
    return n;
#endif
}

/* v_softplus(x) and its derivative sigmoid(x), accurate to a few ulp for every x: log1p(y) = 2 atanh(y / (2 + y)), y = exp(-|x|) <= 1. */
static inline vf v_softplus(vf x, vf *sigmoid) {
    vf ax = (vf)((vi)x & 0x7fffffff), y = v_exp2(ax * -1.44269504088896f);
    vf s, y2 = y + 2.0f;
    if (sigmoid) {
        vf y1 = y + 1.0f, r = 1.0f / (y1 * y2);
        s = y * y1 * r;
        *sigmoid = v_pick(x > 0.0f, v_splat(1.0f), y) * y2 * r;
    } else
        s = y / y2;
    vf q = s * s, p = q * 0x1.208bd0p-3f + 0x1.1e510ap-3f;
    p = p * q + 0x1.99dae6p-3f;
    p = p * q + 0x1.5554e0p-2f;
    p = p * q + 1.0f;
    vf positive = v_pick(x > 0.0f, x, v_splat(0.0f));
    return positive + (s + s) * p;
}

typedef struct {
    vf dt[CHUNK], u[CHUNK], dtu[CHUNK], y[CHUNK];
    vf sig[CHUNK], gy[CHUNK], gdtu[CHUNK], gdt[CHUNK];
    vf a[CHUNK][NB_BACK], h[CHUNK + 1][NB_BACK];
} scan_scratch;

/* t-th step of the scan in memory order: reversed scans walk from the end. */
static inline int64_t at(const scan_args *s, int64_t t) { return s->reverse ? s->L - 1 - t : t; }

static inline __attribute__((always_inline)) void stage(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes,
                                                        int64_t e_lo, int64_t e_hi, const int backward) {
    vf bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f), D = s->D ? v_load(s->D + e, lanes) : v_splat(0.0f);
    int64_t way = s->reverse ? -1 : 1;
    const float *pu = s->u + b * s->u_b + at(s, t0) * s->u_l + e, *pd = s->delta + b * s->delta_b + at(s, t0) * s->delta_l + e;
    const float *pg = backward ? s->gy + b * s->gy_b + at(s, t0) * s->gy_l + e : 0;
    /* What is wanted next: the neighbouring channels or, after the last of them, the first of the next chunk. */
    int64_t aside = e + W < e_hi ? W : e_lo - e, on = e + W < e_hi ? 0 : backward ? -way * s->chunk : way * s->chunk;
    int64_t next_u = aside + on * s->u_l, next_d = aside + on * s->delta_l, next_g = aside + on * s->gy_l;
    for (int i = 0; i < m; i++) {
        vf u = v_load(pu, lanes), d = v_load(pd, lanes) + bias;
        __builtin_prefetch((void *)((uintptr_t)pu + 4 * next_u));
        __builtin_prefetch((void *)((uintptr_t)pd + 4 * next_d));
        if (s->softplus) d = v_softplus(d, backward ? &w->sig[i] : 0);
        w->u[i] = u;
        w->dt[i] = d;
        w->dtu[i] = d * u;
        if (backward) {
            w->gy[i] = v_load(pg, lanes);
            __builtin_prefetch((void *)((uintptr_t)pg + 4 * next_g));
            w->gdtu[i] = w->gdt[i] = v_splat(0.0f);
            pg += way * s->gy_l;
        } else
            w->y[i] = D * u;
        pu += way * s->u_l;
        pd += way * s->delta_l;
    }
}

/* Forward over m <= CHUNK steps for nb states from n0, kept in registers. keep: a and h are stored for backward instead of y. */
static inline __attribute__((always_inline)) void pass_fwd(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes,
                                                           int64_t n0, const int nb, float *state, const int keep) {
    vf h[NB_MOST], A2[NB_MOST];
#pragma GCC unroll 16
    for (int n = 0; n < nb; n++) {
        h[n] = v_load(state + (n0 + n) * s->E + e, lanes);
        A2[n] = v_load(s->A + (n0 + n) * s->E + e, lanes) * 1.44269504088896f;
        if (keep) w->h[0][n] = h[n];
    }
    int64_t B_l = s->reverse ? -s->B_l : s->B_l, C_l = s->reverse ? -s->C_l : s->C_l;
    const float *B = s->B + b * s->B_b + at(s, t0) * s->B_l + n0, *C = s->C + b * s->C_b + at(s, t0) * s->C_l + n0;
    for (int i = 0; i < m; i++) {
        vf dt = w->dt[i], dtu = w->dtu[i], y = keep ? v_splat(0.0f) : w->y[i], y2 = v_splat(0.0f);
#pragma GCC unroll 16
        for (int n = 0; n < nb; n++) {
            vf a = v_exp2(dt * A2[n]);
            h[n] = a * h[n] + dtu * B[n];
            if (keep) { w->a[i][n] = a; w->h[i + 1][n] = h[n]; }
            else if (n & 1) y2 += h[n] * C[n];
            else y += h[n] * C[n];
        }
        if (!keep) w->y[i] = y + y2;
        B += B_l;
        C += C_l;
    }
    if (!keep)
#pragma GCC unroll 16
        for (int n = 0; n < nb; n++) v_store(state + (n0 + n) * s->E + e, h[n], lanes);
}

static void forward_task(const scan_args *s, int64_t b, int64_t g, void *own, float *state) {
    scan_scratch *w = own;
    int64_t e_lo = g * s->group, e_hi = e_lo + s->group < s->E ? e_lo + s->group : s->E;
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t e = e_lo; e < e_hi; e++) state[n * s->E + e] = s->h0 ? s->h0[(b * s->E + e) * s->N + n] : 0.0f;
    int64_t chunks = (s->L + s->chunk - 1) / s->chunk;
    for (int64_t c = 0; c < chunks; c++) {
        int64_t t0 = c * s->chunk;
        int m = s->L - t0 < s->chunk ? (int)(s->L - t0) : (int)s->chunk;
        if (s->states)
            for (int64_t n = 0; n < s->N; n++)
                memcpy(s->states + ((b * chunks + c) * s->N + n) * s->E + e_lo, state + n * s->E + e_lo, (e_hi - e_lo) * sizeof(float));
        for (int64_t e = e_lo; e < e_hi; e += W) {
            int lanes = e_hi - e < W ? (int)(e_hi - e) : W;
            stage(s, w, b, t0, m, e, lanes, e_lo, e_hi, 0);
            int64_t n = 0;
            for (; n + NB_MOST <= s->N; n += NB_MOST) pass_fwd(s, w, b, t0, m, e, lanes, n, NB_MOST, state, 0);
            for (; n + NB_BACK <= s->N; n += NB_BACK) pass_fwd(s, w, b, t0, m, e, lanes, n, NB_BACK, state, 0);
            for (; n < s->N; n++) pass_fwd(s, w, b, t0, m, e, lanes, n, 1, state, 0);
            for (int i = 0; i < m; i++) {
                float *to = s->y + b * s->y_b + at(s, t0 + i) * s->y_l + e;
                v_store(to, s->accumulate ? v_load(to, lanes) + w->y[i] : w->y[i], lanes);
            }
        }
    }
    if (s->hlast)
        for (int64_t n = 0; n < s->N; n++)
            for (int64_t e = e_lo; e < e_hi; e++) s->hlast[(b * s->E + e) * s->N + n] = state[n * s->E + e];
}

/* Backward over a chunk for nb states from n0. dB and dC: one vector per step, `stride` apart, in which the lanes are folded. */
static inline __attribute__((always_inline)) void pass_bwd(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes,
                                                           int64_t n0, const int nb, const float *start, float *adjoint, vf *dB, vf *dC, int stride, float *dA) {
    pass_fwd(s, w, b, t0, m, e, lanes, n0, nb, (float *)start, 1);
    vf g[NB_BACK], A[NB_BACK], gA[NB_BACK];
#pragma GCC unroll 16
    for (int n = 0; n < nb; n++) {
        g[n] = v_load(adjoint + (n0 + n) * s->E + e, lanes);
        gA[n] = v_splat(0.0f);
        A[n] = v_load(s->A + (n0 + n) * s->E + e, lanes);
    }
    int64_t B_l = s->reverse ? -s->B_l : s->B_l, C_l = s->reverse ? -s->C_l : s->C_l;
    const float *B = s->B + b * s->B_b + at(s, t0 + m - 1) * s->B_l + n0, *C = s->C + b * s->C_b + at(s, t0 + m - 1) * s->C_l + n0;
    for (int i = m - 1; i >= 0; i--) {
        vf dt = w->dt[i], dtu = w->dtu[i], gy = w->gy[i], sB = v_splat(0.0f), sA = v_splat(0.0f);
        vf vB[NB_BACK], vC[NB_BACK];
#pragma GCC unroll 16
        for (int n = 0; n < nb; n++) {
            g[n] += gy * C[n];
            vC[n] = gy * w->h[i + 1][n];
            vB[n] = dtu * g[n];
            sB += g[n] * B[n];
            g[n] *= w->a[i][n];
            vf ga = g[n] * w->h[i][n];
            sA += ga * A[n];
            gA[n] += ga * dt;
#define FOLD(bit, level)                            \
    if (nb > bit && (n & (2 * bit - 1)) == 2 * bit - 1) { \
        vB[n] = v_fold(vB[n - bit], vB[n], level);  \
        vC[n] = v_fold(vC[n - bit], vC[n], level);  \
    }
            FOLD(1, 1)
            FOLD(2, 2)
            FOLD(4, 3)
        }
        dB[i * stride] += vB[nb - 1];
        dC[i * stride] += vC[nb - 1];
        w->gdtu[i] += sB;
        w->gdt[i] += sA;
        B -= B_l;
        C -= C_l;
    }
#pragma GCC unroll 16
    for (int n = 0; n < nb; n++) {
        v_store(adjoint + (n0 + n) * s->E + e, g[n], lanes);
        float *to = dA + (n0 + n) * s->E + e;
        v_store(to, v_load(to, lanes) + gA[n], lanes);
    }
}

/* The lane sums of nb states, folded or, where nb is 1, not. */
static inline void unfold(vf v, const int nb, float *to) {
    const int width = W / nb;
    float s[W];
    for (int i = 0; i < W; i++) s[i] = v[i];
    for (int k = width / 2; k; k /= 2)
        for (int i = 0; i < W; i += width)
            for (int j = 0; j < k; j++) s[i + j] += s[i + j + k];
    for (int n = 0; n < nb; n++) to[n] = s[nb == 1 ? 0 : v_folded(n)];
}

static void backward_task(const scan_args *s, int64_t b, int64_t g, void *own, float *adjoint) {
    scan_scratch *w = own;
    int passes = (int)(s->N / NB_BACK + s->N % NB_BACK);
    vf *dB = (vf *)((char *)own + sizeof(scan_scratch)), *dC = dB + s->chunk * passes;
    int64_t e_lo = g * s->group, e_hi = e_lo + s->group < s->E ? e_lo + s->group : s->E;
    int64_t chunks = (s->L + s->chunk - 1) / s->chunk;
    float *dA = s->dA + b * s->E * s->N;
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t e = e_lo; e < e_hi; e++) adjoint[n * s->E + e] = s->ghlast ? s->ghlast[(b * s->E + e) * s->N + n] : 0.0f;
    for (int64_t e = e_lo; e < e_hi; e++) {
        for (int64_t n = 0; n < s->N; n++) dA[n * s->E + e] = 0.0f;
        s->dD[b * s->E + e] = s->dbias[b * s->E + e] = 0.0f;
    }
    for (int64_t c = chunks - 1; c >= 0; c--) {
        int64_t t0 = c * s->chunk;
        int m = s->L - t0 < s->chunk ? (int)(s->L - t0) : (int)s->chunk;
        const float *start = s->states + (b * chunks + c) * s->N * s->E;
        memset(dB, 0, 2 * s->chunk * passes * sizeof(vf));
        for (int64_t e = e_lo; e < e_hi; e += W) {
            int lanes = e_hi - e < W ? (int)(e_hi - e) : W;
            stage(s, w, b, t0, m, e, lanes, e_lo, e_hi, 1);
            int64_t n = 0, p = 0;
            for (; n + NB_BACK <= s->N; n += NB_BACK, p++) pass_bwd(s, w, b, t0, m, e, lanes, n, NB_BACK, start, adjoint, dB + p, dC + p, passes, dA);
            for (; n < s->N; n++, p++) pass_bwd(s, w, b, t0, m, e, lanes, n, 1, start, adjoint, dB + p, dC + p, passes, dA);
            vf D = s->D ? v_load(s->D + e, lanes) : v_splat(0.0f), gD = v_splat(0.0f), gbias = v_splat(0.0f);
            for (int i = 0; i < m; i++) {
                int64_t t = at(s, t0 + i);
                vf gdelta = w->gdt[i] + w->gdtu[i] * w->u[i];
                if (s->softplus) gdelta *= w->sig[i];
                gD += w->gy[i] * w->u[i];
                gbias += gdelta;
                v_store(s->du + b * s->du_b + t * s->du_l + e, w->gdtu[i] * w->dt[i] + D * w->gy[i], lanes);
                v_store(s->ddelta + b * s->ddelta_b + t * s->ddelta_l + e, gdelta, lanes);
            }
            v_store(s->dD + b * s->E + e, v_load(s->dD + b * s->E + e, lanes) + gD, lanes);
            v_store(s->dbias + b * s->E + e, v_load(s->dbias + b * s->E + e, lanes) + gbias, lanes);
        }
        for (int i = 0; i < m; i++) {
            int64_t row = ((g * s->batch + b) * s->L + at(s, t0 + i)) * s->N, n = 0;
            for (int p = 0; p < passes; p++) {
                int nb = n + NB_BACK <= s->N ? NB_BACK : 1;
                if (nb == 1) {
                    unfold(dB[i * passes + p], 1, s->dB + row + n);
                    unfold(dC[i * passes + p], 1, s->dC + row + n);
                } else {
                    unfold(dB[i * passes + p], NB_BACK, s->dB + row + n);
                    unfold(dC[i * passes + p], NB_BACK, s->dC + row + n);
                }
                n += nb;
            }
        }
    }
    if (s->dh0)
        for (int64_t n = 0; n < s->N; n++)
            for (int64_t e = e_lo; e < e_hi; e++) s->dh0[(b * s->E + e) * s->N + n] = adjoint[n * s->E + e];
}

static void scan_run(scan_args *s, int backward, int threads) {
    int64_t groups = (s->E + s->group - 1) / s->group, tasks = s->batch * groups;
    int64_t passes = s->N / NB_BACK + s->N % NB_BACK;
    size_t bytes = sizeof(scan_scratch) + (backward ? 2 * s->chunk * passes * sizeof(vf) : 0);
    bytes = (bytes + 63) / 64 * 64;
    size_t state = ((size_t)s->N * s->E * 4 + 63) / 64 * 64;
    int failed = 0;
#pragma omp parallel num_threads(threads)
    {
        char *own = aligned_alloc(64, bytes + state);
        if (!own) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp barrier
        int skip;
#pragma omp atomic read
        skip = failed;
        if (!skip) {
#pragma omp for schedule(dynamic, 1)
            for (int64_t i = 0; i < tasks; i++)
                (backward ? backward_task : forward_task)(s, i / groups, i % groups, own, (float *)(own + bytes));
        }
        free(own);
    }
    s->failed = failed;
}
