/* The selective scan for vectors of W lanes, NB states to a pass. Included by native.c. A and dA come transposed, (N, E).

   Notation (Gu and Dao 2023, Mamba-1), per batch row and channel e, with dt = v_softplus(delta + bias):
     h_t[n] = exp(dt_t A[e,n]) h_{t-1}[n] + dt_t u_t B_t[n],      y_t = sum_n C_t[n] h_t[n] + D[e] u_t.
   Layout is channels-last; a vector holds W neighbouring channels. Time runs in chunks of CHUNK; the state at the start of
   each chunk is kept, and backward recomputes what lies between. Backward, with g_t[n] the adjoint of h_t[n]:
     g_t = C_t gy_t + exp(dt_{t+1} A) g_{t+1},   dC_t = sum_e gy_t h_t,   dB_t = sum_e g_t dt_t u_t,
     ddt_t = sum_n g_t (A exp(dt_t A) h_{t-1} + u_t B_t),   dA = sum_t g_t dt_t exp(dt_t A) h_{t-1},   du_t = dt_t sum_n g_t B_t + D gy_t.
   delta comes as it is or, of low rank, as r_t w with w (R, E): then it is never in memory, nor is its gradient; dr_t = ddelta_t w^T and
   dw = sum_t r_t ddelta_t take its place. */

typedef struct {
    vf dt[CHUNK], u[CHUNK], dtu[CHUNK], y[CHUNK];
    vf sig[CHUNK], gy[CHUNK], gdtu[CHUNK], gdt[CHUNK];
    vf a[CHUNK][NB_BACK], h[CHUNK + 1][NB_BACK];
} scan_scratch;

/* t-th step of the scan in memory order: reversed scans walk from the end. */
static inline int64_t at(const scan_args *s, int64_t t) { return s->reverse ? s->L - 1 - t : t; }

/* bias + r w of a chunk into dt, for nb of the R terms from k0 on. */
static inline __attribute__((always_inline)) void project(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes, int64_t k0,
                                                          const int nb) {
    vf row[NB_BACK], bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f);
#pragma GCC unroll 16
    for (int k = 0; k < nb; k++) row[k] = v_load(s->w + (k0 + k) * s->E + e, lanes);
    int64_t r_l = s->reverse ? -s->r_l : s->r_l;
    const float *r = s->r + b * s->r_b + at(s, t0) * s->r_l + k0;
    for (int i = 0; i < m; i++) {
        vf d = k0 ? w->dt[i] : bias;
#pragma GCC unroll 16
        for (int k = 0; k < nb; k++) d += row[k] * r[k];
        w->dt[i] = d;
        r += r_l;
    }
}

/* Step sizes and what does not depend on the state; returns, lane by lane, the largest step size or one beyond all bounds. */
static inline __attribute__((always_inline)) vf stage(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes, int64_t e_lo,
                                                      int64_t e_hi, const int backward) {
    vf bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f), D = s->D ? v_load(s->D + e, lanes) : v_splat(0.0f), most = v_splat(0.0f);
    int64_t way = s->reverse ? -1 : 1, t = at(s, t0), k = 0;
    for (; s->r && k + NB_BACK <= s->R; k += NB_BACK) project(s, w, b, t0, m, e, lanes, k, NB_BACK);
    for (; s->r && k < s->R; k++) project(s, w, b, t0, m, e, lanes, k, 1);
    const float *pu = s->u + b * s->u_b + t * s->u_l + e, *pd = s->delta ? s->delta + b * s->delta_b + t * s->delta_l + e : pu;
    const float *pg = backward ? s->gy + b * s->gy_b + t * s->gy_l + e : 0;
    /* Written at the end of the chunk: y or, backward, du and ddelta. */
    const float *py = backward ? s->du + b * s->du_b + t * s->du_l + e : s->y + b * s->y_b + t * s->y_l + e;
    const float *pw = backward ? (s->ddelta ? s->ddelta + b * s->ddelta_b + t * s->ddelta_l + e : py) : 0;
    int64_t u_l = way * s->u_l, d_l = s->delta ? way * s->delta_l : u_l, g_l = way * s->gy_l, y_l = way * (backward ? s->du_l : s->y_l), w_l = s->ddelta ? way * s->ddelta_l : y_l;
    /* What is wanted next: the neighbouring channels or, after the last of them, the first of the next chunk. A row need not begin with a
       line of the cache: the line of a vector's last number is asked for, that of its first came with the vector before. */
    int64_t last = lanes - 1, aside = last + (e + W < e_hi ? W : e_lo - e), on = e + W < e_hi ? 0 : backward ? -s->chunk : s->chunk;
    int64_t next_u = aside + on * u_l, next_d = aside + on * d_l, next_g = aside + on * g_l;
    for (int i = 0; i < m; i++) {
        vf u = v_load(pu, lanes), d = s->r ? w->dt[i] : v_load(pd, lanes) + bias;
        WANT(pu + next_u, 0);
        WANT(pd + next_d, 0);
        WANT(py + last, 1);
        if (s->softplus) d = v_softplus(d, backward ? &w->sig[i] : 0);
        most = v_larger(d, most);
        w->dt[i] = d;
        w->dtu[i] = d * u;
        if (backward) {
            w->u[i] = u;
            w->gy[i] = v_load(pg, lanes);
            WANT(pg + next_g, 0);
            WANT(pw + last, 1);
            pg += g_l;
            pw += w_l;
        } else
            w->y[i] = D * u;
        pu += u_l;
        pd += d_l;
        py += y_l;
    }
    return most;
}

/* Whether |dt A| log2 e is at most 126 for all states, so that 2^x needs no bounds: nearly always. */
static int is_tame(const scan_args *s, vf dt, int64_t e, int lanes) {
    vf A = v_splat(0.0f);
    for (int64_t n = 0; n < s->N; n++) A = v_larger(v_load(s->A + n * s->E + e, lanes), A);
    return v_all(dt * A <= 126.0f / 1.44269504088896f);
}

/* Forward over m <= CHUNK steps for nb states from n0, kept in registers. keep: a and h are stored for backward instead of y. */
static inline __attribute__((always_inline)) void pass_fwd(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes,
                                                           int64_t n0, const int nb, float *state, const int tame, const int keep) {
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
            vf a = tame ? v_tame_exp2(dt * A2[n]) : v_exp2(dt * A2[n]);
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
            int tame = is_tame(s, stage(s, w, b, t0, m, e, lanes, e_lo, e_hi, 0), e, lanes);
            int64_t n = 0;
            for (; n + NB_MOST <= s->N; n += NB_MOST)
                if (tame) pass_fwd(s, w, b, t0, m, e, lanes, n, NB_MOST, state, 1, 0);
                else pass_fwd(s, w, b, t0, m, e, lanes, n, NB_MOST, state, 0, 0);
            for (; n + NB_BACK <= s->N; n += NB_BACK) pass_fwd(s, w, b, t0, m, e, lanes, n, NB_BACK, state, 0, 0);
            for (; n < s->N; n++) pass_fwd(s, w, b, t0, m, e, lanes, n, 1, state, 0, 0);
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

/* The sum over lanes of nb vectors, one after the other, ends in the lanes of the last. */
#define FOLD_AT(v, n, bit, level) \
    if (nb > bit && (n & (2 * bit - 1)) == 2 * bit - 1) v[n] = v_fold(v[n - bit], v[n], level);
#define FOLD(v, n) FOLD_AT(v, n, 1, 1) FOLD_AT(v, n, 2, 2) FOLD_AT(v, n, 4, 3)

/* Backward of `project`, from the gradient of delta in gdt. dr: one vector per step, `stride` apart, in which the lanes are folded. */
static inline __attribute__((always_inline)) void project_back(const scan_args *s, const scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes,
                                                               int64_t k0, const int nb, vf *dr, int stride, float *dw) {
    vf row[NB_BACK], grow[NB_BACK];
#pragma GCC unroll 16
    for (int k = 0; k < nb; k++) {
        row[k] = v_load(s->w + (k0 + k) * s->E + e, lanes);
        grow[k] = v_splat(0.0f);
    }
    int64_t r_l = s->reverse ? -s->r_l : s->r_l;
    const float *r = s->r + b * s->r_b + at(s, t0) * s->r_l + k0;
    for (int i = 0; i < m; i++) {
        vf g = w->gdt[i], v[NB_BACK];
#pragma GCC unroll 16
        for (int k = 0; k < nb; k++) {
            grow[k] += g * r[k];
            v[k] = g * row[k];
            FOLD(v, k)
        }
        dr[i * stride] += v[nb - 1];
        r += r_l;
    }
#pragma GCC unroll 16
    for (int k = 0; k < nb; k++) {
        float *to = dw + (k0 + k) * s->E + e;
        v_store(to, v_load(to, lanes) + grow[k], lanes);
    }
}

/* Backward over a chunk for nb states from n0. dB and dC: one vector per step, `stride` apart, in which the lanes are folded. */
static inline __attribute__((always_inline)) void pass_bwd(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e, int lanes,
                                                           int64_t n0, const int nb, const float *start, float *adjoint, vf *dB, vf *dC, int stride, float *dA, const int tame) {
    pass_fwd(s, w, b, t0, m, e, lanes, n0, nb, (float *)start, tame, 1);
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
            FOLD(vB, n)
            FOLD(vC, n)
        }
        dB[i * stride] += vB[nb - 1];
        dC[i * stride] += vC[nb - 1];
        w->gdtu[i] = n0 ? w->gdtu[i] + sB : sB;
        w->gdt[i] = n0 ? w->gdt[i] + sA : sA;
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

/* All lane sums of a step: n of them, NB_BACK to a vector and the rest one by one. */
static void unfold_all(const vf *from, int64_t n, float *to) {
    int64_t i = 0;
    for (; i + NB_BACK <= n; i += NB_BACK) unfold(*from++, NB_BACK, to + i);
    for (; i < n; i++) unfold(*from++, 1, to + i);
}
static inline int vectors(int64_t n) { return (int)(n / NB_BACK + n % NB_BACK); }

static void backward_task(const scan_args *s, int64_t b, int64_t g, void *own, float *adjoint) {
    scan_scratch *w = own;
    int passes = vectors(s->N), parts = s->r ? vectors(s->R) : 0;
    vf *dB = (vf *)((char *)own + sizeof(scan_scratch)), *dC = dB + s->chunk * passes, *dr = dC + s->chunk * passes;
    int64_t e_lo = g * s->group, e_hi = e_lo + s->group < s->E ? e_lo + s->group : s->E;
    int64_t chunks = (s->L + s->chunk - 1) / s->chunk;
    float *dA = s->dA + b * s->E * s->N, *dw = s->r ? s->dw + b * s->E * s->R : 0;
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t e = e_lo; e < e_hi; e++) adjoint[n * s->E + e] = s->ghlast ? s->ghlast[(b * s->E + e) * s->N + n] : 0.0f;
    for (int64_t n = 0; n < s->N; n++) memset(dA + n * s->E + e_lo, 0, (e_hi - e_lo) * sizeof(float));
    for (int64_t k = 0; dw && k < s->R; k++) memset(dw + k * s->E + e_lo, 0, (e_hi - e_lo) * sizeof(float));
    for (int64_t e = e_lo; e < e_hi; e++) s->dD[b * s->E + e] = s->dbias[b * s->E + e] = 0.0f;
    for (int64_t c = chunks - 1; c >= 0; c--) {
        int64_t t0 = c * s->chunk;
        int m = s->L - t0 < s->chunk ? (int)(s->L - t0) : (int)s->chunk;
        const float *start = s->states + (b * chunks + c) * s->N * s->E;
        memset(dB, 0, s->chunk * (2 * passes + parts) * sizeof(vf));
        for (int64_t e = e_lo; e < e_hi; e += W) {
            int lanes = e_hi - e < W ? (int)(e_hi - e) : W;
            int tame = is_tame(s, stage(s, w, b, t0, m, e, lanes, e_lo, e_hi, 1), e, lanes);
            int64_t n = 0, k = 0, p = 0;
            for (; n + NB_BACK <= s->N; n += NB_BACK, p++)
                if (tame) pass_bwd(s, w, b, t0, m, e, lanes, n, NB_BACK, start, adjoint, dB + p, dC + p, passes, dA, 1);
                else pass_bwd(s, w, b, t0, m, e, lanes, n, NB_BACK, start, adjoint, dB + p, dC + p, passes, dA, 0);
            for (; n < s->N; n++, p++) pass_bwd(s, w, b, t0, m, e, lanes, n, 1, start, adjoint, dB + p, dC + p, passes, dA, 0);
            vf D = s->D ? v_load(s->D + e, lanes) : v_splat(0.0f), gD = v_splat(0.0f), gbias = v_splat(0.0f);
            for (int i = 0; i < m; i++) {
                int64_t t = at(s, t0 + i);
                vf gdelta = w->gdt[i] + w->gdtu[i] * w->u[i];
                if (s->softplus) gdelta *= w->sig[i];
                gD += w->gy[i] * w->u[i];
                gbias += gdelta;
                v_store(s->du + b * s->du_b + t * s->du_l + e, w->gdtu[i] * w->dt[i] + D * w->gy[i], lanes);
                if (s->r) w->gdt[i] = gdelta;
                else v_store(s->ddelta + b * s->ddelta_b + t * s->ddelta_l + e, gdelta, lanes);
            }
            v_store(s->dD + b * s->E + e, v_load(s->dD + b * s->E + e, lanes) + gD, lanes);
            v_store(s->dbias + b * s->E + e, v_load(s->dbias + b * s->E + e, lanes) + gbias, lanes);
            for (p = 0; s->r && k + NB_BACK <= s->R; k += NB_BACK) project_back(s, w, b, t0, m, e, lanes, k, NB_BACK, dr + p++, parts, dw);
            for (; s->r && k < s->R; k++) project_back(s, w, b, t0, m, e, lanes, k, 1, dr + p++, parts, dw);
        }
        for (int i = 0; i < m; i++) {
            int64_t row = (g * s->batch + b) * s->L + at(s, t0 + i);
            unfold_all(dB + i * passes, s->N, s->dB + row * s->N);
            unfold_all(dC + i * passes, s->N, s->dC + row * s->N);
            if (s->r) unfold_all(dr + i * parts, s->R, s->dr + row * s->R);
        }
    }
    if (s->dh0)
        for (int64_t n = 0; n < s->N; n++)
            for (int64_t e = e_lo; e < e_hi; e++) s->dh0[(b * s->E + e) * s->N + n] = adjoint[n * s->E + e];
}

static size_t scan_bytes(const scan_args *s, int backward) {
    int64_t folded = backward ? 2 * vectors(s->N) + (s->r ? vectors(s->R) : 0) : 0;
    return (sizeof(scan_scratch) + s->chunk * folded * sizeof(vf) + 63) / 64 * 64;
}
static int64_t scan_groups(const scan_args *s) { return (s->E + s->group - 1) / s->group; }
static void scan_task(const void *args, int64_t i, void *own, int backward) {
    const scan_args *s = args;
    float *state = (float *)((char *)own + scan_bytes(s, backward));
    (backward ? backward_task : forward_task)(s, i / scan_groups(s), i % scan_groups(s), own, state);
}

static int scan_run(const scan_args *s, int backward, int threads) {
    size_t bytes = scan_bytes(s, backward) + (size_t)s->N * s->E * sizeof(float);
    return tasks_run(scan_task, s, s->batch * scan_groups(s), bytes, backward, threads);
}
