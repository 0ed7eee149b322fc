/* The backward pass of the selective scan; the equations are in scan.h. Included by native.c. */

/* Folds nb vectors v[0], v[1], ... in the loop that makes them: v[n] with the vectors before it, as
   soon as it is there. The lane sums of all nb end in the lanes of v[nb - 1]. Like carries in
   counting: n is folded at level 1 where its last bit is 1, at level 2 where its last two are. */
#define FOLD_AT(v, n, bit, level)                                                                  \
    if (nb > bit && (n & (2 * bit - 1)) == 2 * bit - 1) v[n] = v_fold(v[n - bit], v[n], level);
#define FOLD(v, n) FOLD_AT(v, n, 1, 1) FOLD_AT(v, n, 2, 2) FOLD_AT(v, n, 4, 3)

/* Backward of `project`, from the gradient of delta, which is in gdt. dr holds one vector for each
   step, `stride` apart, of lane sums that are folded. */
INLINE void project_back(const scan_args *s, const scan_scratch *w, int64_t b, int64_t t0, int m,
                         int64_t e, int lanes, int64_t k0, const int nb, vf *dr, int stride,
                         float *dw) {
    vf row[NB_BACK], grow[NB_BACK];
    UNROLLED(k, nb) {
        row[k] = v_load(s->w + (k0 + k) * s->E + e, lanes);
        grow[k] = v_splat(0.0f);
    }
    int64_t r_l = s->reverse ? -s->r_l : s->r_l;
    const float *r = s->r + b * s->r_b + at(s, t0) * s->r_l + k0;
    for (int i = 0; i < m; i++) {
        vf g = w->gdt[i], v[NB_BACK];
        UNROLLED(k, nb) {
            grow[k] += g * r[k];
            v[k] = g * row[k];
            FOLD(v, k)
        }
        /* Added up over the vectors of channels, in their order; lanes are summed at the chunk's
           end. */
        dr[i * stride] += v[nb - 1];
        r += r_l;
    }
    UNROLLED(k, nb) {
        float *to = dw + (k0 + k) * s->E + e;
        v_store(to, v_load(to, lanes) + grow[k], lanes);
    }
}

/* Backward over a chunk for nb states from n0 on. `start` has the state before the chunk. `adjoint`
   has exp(dt A) g of the first step after the chunk, and in the end that of the chunk's first step.
   dB and dC hold one vector for each step, `stride` apart, of lane sums that are folded. */
INLINE void pass_bwd(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int run,
                     int64_t e, int lanes, int64_t n0, const int nb, const float *start,
                     float *adjoint, vf *dB, vf *dC, int stride, float *dA, const int tame) {
    /* With `keep` the state is not written, so the cast is safe. */
    pass_fwd(s, w, b, t0, m, run, e, lanes, n0, nb, (float *)start, tame, 1);
    vf pair[NB_BACK], g[NB_BACK], A[NB_BACK], gA[NB_BACK];
    UNROLLED(n, nb) {
        g[n] = v_load(adjoint + (n0 + n) * s->E + e, lanes);
        gA[n] = v_splat(0.0f);
        A[n] = v_load(s->A + (n0 + n) * s->E + e, lanes);
    }
    int64_t B_l = s->reverse ? -s->B_l : s->B_l, C_l = s->reverse ? -s->C_l : s->C_l;
    const float *B = s->B + b * s->B_b + at(s, t0 + m - 1) * s->B_l + n0,
                *C = s->C + b * s->C_b + at(s, t0 + m - 1) * s->C_l + n0;
    for (int i = m - 1, r = i / run; r >= 0; r--) {
        int first = run < m && s->streams == 2 && !(r & 1);
        /* Nothing follows the end of a block, or of the first of a pair, whose own start follows. */
        if (first || (run < m && s->streams == 1))
            UNROLLED(n, nb) {
                pair[n] = g[n];
                g[n] = v_splat(0.0f);
            }
        for (; i >= r * run; i--) {
            vf dt = w->dt[i], dtu = w->dtu[i], gy = w->gy[i], sB = v_splat(0.0f),
               sA = v_splat(0.0f);
            vf vB[NB_BACK], vC[NB_BACK];
            UNROLLED(n, nb) {
                g[n] += gy * C[n]; /* g was exp(dt_{t+1} A) g_{t+1} */
                vC[n] = gy * w->h[i + r + 1][n];
                vB[n] = dtu * g[n];
                sB += g[n] * B[n];
                g[n] *= w->a[i][n]; /* from here on exp(dt_t A) g_t, for the step before */
                vf ga = g[n] * w->h[i + r][n];
                sA += ga * A[n];
                gA[n] += ga * dt;
                FOLD(vB, n)
                FOLD(vC, n)
            }
            dB[i * stride] += vB[nb - 1];
            dC[i * stride] += vC[nb - 1];
            /* The first pass sets the sums over states, the others add to them. */
            w->gdtu[i] = n0 ? w->gdtu[i] + sB : sB;
            w->gdt[i] = n0 ? w->gdt[i] + sA : sA;
            B -= B_l;
            C -= C_l;
        }
        if (first)
            UNROLLED(n, nb) g[n] += pair[n];
    }
    UNROLLED(n, nb) {
        v_store(adjoint + (n0 + n) * s->E + e, g[n], lanes);
        float *to = dA + (n0 + n) * s->E + e;
        v_store(to, v_load(to, lanes) + gA[n], lanes);
    }
}

/* Finish folded sums: write the nb lane sums that a vector holds, each in W / nb neighbouring
   lanes; for nb = 1 the sum of all lanes. */
static inline void unfold(vf v, const int nb, float *to) {
    const int width = W / nb;
    float s[W];
    for (int i = 0; i < W; i++) s[i] = v[i];
    for (int k = width / 2; k; k /= 2)
        for (int i = 0; i < W; i += width)
            for (int j = 0; j < k; j++) s[i + j] += s[i + j + k];
    for (int n = 0; n < nb; n++) to[n] = s[nb == 1 ? 0 : v_folded(n)];
}

/* Write the n lane sums of a step: NB_BACK of them in each vector, then one in each. */
static void unfold_all(const vf *from, int64_t n, float *to) {
    int64_t i = 0;
    for (; i + NB_BACK <= n; i += NB_BACK) unfold(*from++, NB_BACK, to + i);
    for (; i < n; i++) unfold(*from++, 1, to + i);
}
/* Vectors that hold n folded sums. */
static inline int vectors(int64_t n) { return (int)(n / NB_BACK + n % NB_BACK); }

/* Backward of the g-th group of channels of row b. What sums over time (dA, dw, dD, dbias) is added
   to from the last chunk to the first, in rows that belong to this task alone. dB, dC and dr also
   sum over channels: each group writes a part, and the caller adds the parts in their order. */
static void backward_task(const scan_args *s, int64_t b, int64_t g, void *own, float *adjoint) {
    scan_scratch *w = own;
    int passes = vectors(s->N), parts = s->r ? vectors(s->R) : 0;
    vf *dB = (vf *)((char *)own + sizeof(scan_scratch)), *dC = dB + s->chunk * passes,
       *dr = dC + s->chunk * passes;
    int64_t e_lo = g * s->group, e_hi = e_lo + s->group < s->E ? e_lo + s->group : s->E;
    int64_t chunks = scan_chunks(s);
    float *after = adjoint + s->N * s->E; /* the adjoint after the first of a pair */
    float *dA = s->dA + b * s->E * s->N, *dw = s->r ? s->dw + b * s->E * s->R : 0;
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t e = e_lo; e < e_hi; e++)
            adjoint[n * s->E + e] = s->ghlast ? s->ghlast[(b * s->E + e) * s->N + n] : 0.0f;
    scan_set(s, dA, 0, e_lo, e_hi);
    for (int64_t k = 0; dw && k < s->R; k++)
        memset(dw + k * s->E + e_lo, 0, (e_hi - e_lo) * sizeof(float));
    for (int64_t e = e_lo; e < e_hi; e++) s->dD[b * s->E + e] = s->dbias[b * s->E + e] = 0.0f;
    for (int64_t c = chunks - 1; c >= 0; c--) {
        const scan_chunk part = scan_locate(s, c);
        int64_t t0 = part.t0;
        int m = part.m, run = part.run;
        if (part.ends && (part.first || (s->streams == 1 && c < chunks - 1))) {
            if (part.first) scan_set(s, after, adjoint, e_lo, e_hi);
            scan_set(s, adjoint, 0, e_lo, e_hi);
        }
        const float *start = s->states + (b * chunks + c) * s->N * s->E;
        memset(dB, 0, m * passes * sizeof(vf));
        memset(dC, 0, m * passes * sizeof(vf));
        memset(dr, 0, m * parts * sizeof(vf));
        for (int64_t e = e_lo; e < e_hi; e += W) {
            int lanes = e_hi - e < W ? (int)(e_hi - e) : W;
            int tame = is_tame(s, stage(s, w, b, t0, m, e, lanes, e_lo, e_hi, 1), e, lanes);
            int64_t n = 0, k = 0, p = 0;
            for (; n + NB_BACK <= s->N; n += NB_BACK, p++)
                if (tame)
                    pass_bwd(s, w, b, t0, m, run, e, lanes, n, NB_BACK, start, adjoint, dB + p,
                             dC + p, passes, dA, 1);
                else
                    pass_bwd(s, w, b, t0, m, run, e, lanes, n, NB_BACK, start, adjoint, dB + p,
                             dC + p, passes, dA, 0);
            for (; n < s->N; n++, p++)
                pass_bwd(s, w, b, t0, m, run, e, lanes, n, 1, start, adjoint, dB + p, dC + p,
                         passes, dA, 0);
            vf D = s->D ? v_load(s->D + e, lanes) : v_splat(0.0f), gD = v_splat(0.0f),
               gbias = v_splat(0.0f);
            for (int i = 0; i < m; i++) {
                int64_t t = at(s, t0 + i);
                /* ddt_t, then through softplus to delta. */
                vf gdelta = w->gdt[i] + w->gdtu[i] * w->u[i];
                if (s->softplus) gdelta *= w->sig[i];
                gD += w->gy[i] * w->u[i];
                gbias += gdelta;
                v_store(s->du + b * s->du_b + t * s->du_l + e, w->gdtu[i] * w->dt[i] + D * w->gy[i],
                        lanes);
                /* Of low rank, the gradient stays in scratch space, for project_back. */
                if (s->r) w->gdt[i] = gdelta;
                else v_store(s->ddelta + b * s->ddelta_b + t * s->ddelta_l + e, gdelta, lanes);
            }
            v_store(s->dD + b * s->E + e, v_load(s->dD + b * s->E + e, lanes) + gD, lanes);
            v_store(s->dbias + b * s->E + e, v_load(s->dbias + b * s->E + e, lanes) + gbias, lanes);
            for (p = 0; s->r && k + NB_BACK <= s->R; k += NB_BACK)
                project_back(s, w, b, t0, m, e, lanes, k, NB_BACK, dr + p++, parts, dw);
            for (; s->r && k < s->R; k++)
                project_back(s, w, b, t0, m, e, lanes, k, 1, dr + p++, parts, dw);
        }
        for (int i = 0; i < m; i++) {
            int64_t step = (g * s->batch + b) * s->L + at(s, t0 + i);
            unfold_all(dB + i * passes, s->N, s->dB + step * s->N);
            unfold_all(dC + i * passes, s->N, s->dC + step * s->N);
            if (s->r) unfold_all(dr + i * parts, s->R, s->dr + step * s->R);
        }
        if (part.begins && part.first)
            for (int64_t n = 0; n < s->N; n++)
                for (int64_t e = e_lo; e < e_hi; e++) adjoint[n * s->E + e] += after[n * s->E + e];
    }
    if (s->dh0)
        for (int64_t n = 0; n < s->N; n++)
            for (int64_t e = e_lo; e < e_hi; e++)
                s->dh0[(b * s->E + e) * s->N + n] = adjoint[n * s->E + e];
}

/* Scratch space of a thread before its state, in whole lines of the cache. */
static size_t scan_bytes(const scan_args *s, int backward) {
    int64_t folded = backward ? 2 * vectors(s->N) + (s->r ? vectors(s->R) : 0) : 0;
    return (sizeof(scan_scratch) + s->chunk * folded * sizeof(vf) + 63) / 64 * 64;
}
static int64_t scan_groups(const scan_args *s) { return (s->E + s->group - 1) / s->group; }
static void scan_task(const void *args, int64_t i, void *own, int backward) {
    const scan_args *s = args;
    float *state = (float *)((char *)own + scan_bytes(s, backward));
    (backward ? backward_task : forward_task)(s, i / scan_groups(s), i % scan_groups(s), own,
                                              state);
}

int genodiff_scan(const scan_args *s, int backward, int threads) {
    size_t bytes = scan_bytes(s, backward) + (size_t)s->streams * s->N * s->E * sizeof(float);
    return tasks_run(scan_task, s, s->batch * scan_groups(s), bytes, backward, threads);
}
