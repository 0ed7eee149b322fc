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

static inline vf v_load(const float *p, int lanes) {
    if (lanes == W) return (vf) * (const vfu *)p;
    float v[W] __attribute__((aligned(64))) = {0};
    for (int i = 0; i < lanes; i++) v[i] = p[i];
    return *(vf *)v;
}
static inline void v_store(float *p, vf v, int lanes) {
    if (lanes == W) { *(vfu *)p = (vfu)v; return; }
    for (int i = 0; i < lanes; i++) p[i] = v[i];
}
static inline vf v_splat(float x) { return x - (vf){0}; }
static inline vf v_pick(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); }

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

/* v_softplus(x) and its derivative sigmoid(x), accurate to a few ulp for every x: log1p(y) = 2 atanh(y / (2 + y)), y = exp(-|x|) <= 1. */
static inline vf v_softplus(vf x, vf *sigmoid) {
    vf ax = (vf)((vi)x & 0x7fffffff), y = v_exp2(ax * -1.44269504088896f);
    vf s = y / (y + 2.0f), q = s * s;
    vf p = q * (1.0f / 13) + (1.0f / 11);
    p = p * q + (1.0f / 9);
    p = p * q + (1.0f / 7);
    p = p * q + (1.0f / 5);
    p = p * q + (1.0f / 3);
    p = p * q + 1.0f;
    vf positive = v_pick(x > 0.0f, x, v_splat(0.0f));
    if (sigmoid) *sigmoid = v_pick(x > 0.0f, v_splat(1.0f), y) / (y + 1.0f);
    return positive + 2.0f * s * p;
}

typedef struct {
    vf dt[CHUNK], u[CHUNK], dtu[CHUNK], y[CHUNK];
    vf sig[CHUNK], gy[CHUNK], gdtu[CHUNK], gdt[CHUNK];
    vf a[CHUNK][NB], h[CHUNK][NB];
} scan_scratch;

/* t-th step of the scan in memory order: reversed scans walk from the end. */
static inline int64_t at(const scan_args *s, int64_t t) { return s->reverse ? s->L - 1 - t : t; }

static inline void stage(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes, int backward) {
    vf bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f);
    for (int i = 0; i < m; i++) {
        int64_t t = at(s, t0 + i);
        vf u = v_load(s->u + b * s->u_b + t * s->u_l + e, lanes);
        vf d = v_load(s->delta + b * s->delta_b + t * s->delta_l + e, lanes) + bias;
        if (s->softplus) d = v_softplus(d, backward ? &w->sig[i] : 0);
        w->u[i] = u;
        w->dt[i] = d;
        w->dtu[i] = d * u;
        if (backward) w->gy[i] = v_load(s->gy + b * s->gy_b + t * s->gy_l + e, lanes);
    }
}

/* Forward over m <= CHUNK steps for nb states from n0; h lives in registers. keep: store a and h for backward. */
static inline __attribute__((always_inline)) void pass_fwd(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes,
                                                              int64_t n0, const int nb, float *state, const int keep) {
    vf h[NB], A2[NB];
#pragma GCC unroll 16
    for (int n = 0; n < nb; n++) {
        h[n] = v_load(state + (n0 + n) * s->E + e, lanes);
        A2[n] = v_load(s->A + (n0 + n) * s->E + e, lanes) * 1.44269504088896f;
    }
    for (int i = 0; i < m; i++) {
        int64_t t = at(s, t0 + i);
        const float *B = s->B + b * s->B_b + t * s->B_l + n0, *C = s->C + b * s->C_b + t * s->C_l + n0;
        vf dt = w->dt[i], dtu = w->dtu[i], y = v_splat(0.0f), y2 = v_splat(0.0f);
#pragma GCC unroll 16
        for (int n = 0; n < nb; n++) {
            vf a = v_exp2(dt * A2[n]);
            h[n] = a * h[n] + dtu * B[n];
            if (keep) { w->a[i][n] = a; w->h[i][n] = h[n]; }
            else if (n & 1) y2 += h[n] * C[n];
            else y += h[n] * C[n];
        }
        if (!keep) w->y[i] += y + y2;
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
    int64_t chunks = (s->L + CHUNK - 1) / CHUNK;
    for (int64_t c = 0; c < chunks; c++) {
        int64_t t0 = c * CHUNK;
        int m = s->L - t0 < CHUNK ? (int)(s->L - t0) : CHUNK;
        if (s->states)
            for (int64_t n = 0; n < s->N; n++) {
                float *to = s->states + ((b * chunks + c) * s->N + n) * s->E;
                for (int64_t e = e_lo; e < e_hi; e++) to[e] = state[n * s->E + e];
            }
        for (int64_t e = e_lo; e < e_hi; e += W) {
            int lanes = e_hi - e < W ? (int)(e_hi - e) : W;
            stage(s, w, b, t0, m, e, lanes, 0);
            vf D = s->D ? v_load(s->D + e, lanes) : v_splat(0.0f);
            for (int i = 0; i < m; i++) w->y[i] = D * w->u[i];
            int64_t n = 0;
            for (; n + NB <= s->N; n += NB) pass_fwd(s, w, b, t0, m, e, lanes, n, NB, state, 0);
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

/* Backward over a chunk for nb states from n0. dBl and dCl hold one vector of lanes per (step, state). */
static inline __attribute__((always_inline)) void pass_bwd(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes,
                                                              int64_t n0, const int nb, const float *start, float *adjoint, vf *dBl, vf *dCl, float *dA) {
    vf h0[NB];
#pragma GCC unroll 16
    for (int n = 0; n < nb; n++) h0[n] = v_load(start + (n0 + n) * s->E + e, lanes);
    pass_fwd(s, w, b, t0, m, e, lanes, n0, nb, (float *)start, 1);
    vf g[NB], A[NB], gA[NB];
#pragma GCC unroll 16
    for (int n = 0; n < nb; n++) {
        g[n] = v_load(adjoint + (n0 + n) * s->E + e, lanes);
        gA[n] = v_splat(0.0f);
        A[n] = v_load(s->A + (n0 + n) * s->E + e, lanes);
    }
    for (int i = m - 1; i >= 0; i--) {
        int64_t t = at(s, t0 + i);
        const float *B = s->B + b * s->B_b + t * s->B_l + n0, *C = s->C + b * s->C_b + t * s->C_l + n0;
        vf dt = w->dt[i], dtu = w->dtu[i], gy = w->gy[i], sB = v_splat(0.0f), sA = v_splat(0.0f);
        vf *dB = dBl + (int64_t)i * s->N + n0, *dC = dCl + (int64_t)i * s->N + n0;
        const vf *before = i ? w->h[i - 1] : h0;
#pragma GCC unroll 16
        for (int n = 0; n < nb; n++) {
            g[n] += gy * C[n];
            dC[n] += gy * w->h[i][n];
            dB[n] += g[n] * dtu;
            sB += g[n] * B[n];
            g[n] *= w->a[i][n];
            vf ga = g[n] * before[n];
            sA += ga * A[n];
            gA[n] += ga * dt;
        }
        w->gdtu[i] += sB;
        w->gdt[i] += sA;
    }
#pragma GCC unroll 16
    for (int n = 0; n < nb; n++) {
        v_store(adjoint + (n0 + n) * s->E + e, g[n], lanes);
        float *to = dA + (n0 + n) * s->E + e;
        v_store(to, v_load(to, lanes) + gA[n], lanes);
    }
}

static inline float v_sum(vf v) {
    float s[W];
    for (int i = 0; i < W; i++) s[i] = v[i];
    for (int k = W / 2; k; k /= 2)
        for (int i = 0; i < k; i++) s[i] += s[i + k];
    return s[0];
}

static void backward_task(const scan_args *s, int64_t b, int64_t g, void *own, float *adjoint) {
    scan_scratch *w = own;
    vf *dBl = (vf *)((char *)own + sizeof(scan_scratch)), *dCl = dBl + CHUNK * s->N;
    int64_t e_lo = g * s->group, e_hi = e_lo + s->group < s->E ? e_lo + s->group : s->E;
    int64_t chunks = (s->L + CHUNK - 1) / CHUNK;
    float *dA = s->dA + b * s->E * s->N;
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t e = e_lo; e < e_hi; e++) adjoint[n * s->E + e] = s->ghlast ? s->ghlast[(b * s->E + e) * s->N + n] : 0.0f;
    for (int64_t e = e_lo; e < e_hi; e++) {
        for (int64_t n = 0; n < s->N; n++) dA[n * s->E + e] = 0.0f;
        s->dD[b * s->E + e] = s->dbias[b * s->E + e] = 0.0f;
    }
    for (int64_t c = chunks - 1; c >= 0; c--) {
        int64_t t0 = c * CHUNK;
        int m = s->L - t0 < CHUNK ? (int)(s->L - t0) : CHUNK;
        const float *start = s->states + (b * chunks + c) * s->N * s->E;
        memset(dBl, 0, 2 * CHUNK * s->N * sizeof(vf));
        for (int64_t e = e_lo; e < e_hi; e += W) {
            int lanes = e_hi - e < W ? (int)(e_hi - e) : W;
            stage(s, w, b, t0, m, e, lanes, 1);
            for (int i = 0; i < m; i++) w->gdtu[i] = w->gdt[i] = v_splat(0.0f);
            int64_t n = 0;
            for (; n + NB <= s->N; n += NB) pass_bwd(s, w, b, t0, m, e, lanes, n, NB, start, adjoint, dBl, dCl, dA);
            for (; n < s->N; n++) pass_bwd(s, w, b, t0, m, e, lanes, n, 1, start, adjoint, dBl, dCl, dA);
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
            int64_t t = at(s, t0 + i), row = ((g * s->batch + b) * s->L + t) * s->N;
            for (int64_t n = 0; n < s->N; n++) {
                s->dB[row + n] = v_sum(dBl[(int64_t)i * s->N + n]);
                s->dC[row + n] = v_sum(dCl[(int64_t)i * s->N + n]);
            }
        }
    }
    if (s->dh0)
        for (int64_t n = 0; n < s->N; n++)
            for (int64_t e = e_lo; e < e_hi; e++) s->dh0[(b * s->E + e) * s->N + n] = adjoint[n * s->E + e];
}

static void scan_run(scan_args *s, int backward, int threads) {
    int64_t groups = (s->E + s->group - 1) / s->group, tasks = s->batch * groups;
    size_t bytes = sizeof(scan_scratch) + (backward ? 2 * CHUNK * s->N * sizeof(vf) : 0);
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
