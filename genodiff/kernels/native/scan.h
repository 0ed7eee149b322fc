/* The selective scan for vectors of W lanes. Included by native.c. A and dA come transposed, (N,
   E).

   Notation (Gu and Dao 2023, Mamba-1), for each row of the batch and channel e, with dt =
   softplus(delta + bias):
     h_t[n] = exp(dt_t A[e,n]) h_{t-1}[n] + dt_t u_t B_t[n]
     y_t = sum_n C_t[n] h_t[n] + D[e] u_t
   Backward, with g_t[n] the adjoint of h_t[n]:
     g_t = C_t gy_t + exp(dt_{t+1} A) g_{t+1}
     dC_t = sum_e gy_t h_t          dB_t = sum_e g_t dt_t u_t
     ddt_t = sum_n g_t (A exp(dt_t A) h_{t-1} + u_t B_t)
     dA = sum_t g_t dt_t exp(dt_t A) h_{t-1}
     du_t = dt_t sum_n g_t B_t + D gy_t

   Channels are contiguous, and a vector holds W neighbouring channels: each lane is a scan of its
   own, and forward no sum crosses lanes. Time runs in chunks. The state at the start of each chunk
   is kept, and backward computes the others again.

   delta comes as it is or, of low rank, as r_t w with w (R, E). Then it is never in memory, nor is
   its gradient: dr_t = ddelta_t w^T and dw = sum_t r_t ddelta_t take its place.

   Blocks: time may be cut into blocks of `block` steps. With one stream each block begins at zero.
   With two streams blocks stand in pairs: the first of a pair begins at the state that is before the
   pair, and is followed by nothing; the second begins at the same state, and goes on. A chunk holds
   whole blocks or, for two streams, pairs; or it lies within one block.

   Names of arguments: b, a row of the batch; t0 and m, a chunk's first step and its steps; e and
   lanes, a vector's first channel and its channels; n0 and nb, a pass's first state and its states.
   */

/* What a thread knows of W channels in a chunk. Forward uses dt, dtu (dt u) and y. Backward also
   uses sig (the slope of softplus), the sums over n of g B and of g A exp(dt A) h (gdtu and gdt),
   and the decays a and states h of a pass; h[0] is the state before the chunk. */
typedef struct {
    vf dt[CHUNK], u[CHUNK], dtu[CHUNK], y[CHUNK];
    vf sig[CHUNK], gy[CHUNK], gdtu[CHUNK], gdt[CHUNK];
    vf a[CHUNK][NB_BACK], h[2 * CHUNK][NB_BACK];
} scan_scratch;

/* Where the t-th step of the scan lies in memory: a reversed scan walks from the end. */
static inline int64_t at(const scan_args *s, int64_t t) { return s->reverse ? s->L - 1 - t : t; }

/* How many blocks a chunk holds; 0 where it lies within one. */
static inline int64_t blocks_in_chunk(const scan_args *s) {
    return s->block ? s->chunk / (s->block * s->streams) * s->streams : 0;
}
static inline int64_t scan_chunks(const scan_args *s) {
    int64_t whole = blocks_in_chunk(s) * s->block, block = s->block ? s->block : s->L;
    if (whole) return (s->L + whole - 1) / whole;
    return (block + s->chunk - 1) / s->chunk * (s->L / block);
}

/* Chunk c: its first step, its number of steps, and how many of them are from one block (`run`).
   Where it lies within one: whether that begins or ends with it, and is the first of a pair. */
typedef struct {
    int64_t t0;
    int m, run, begins, ends, first;
} scan_chunk;
static inline scan_chunk scan_locate(const scan_args *s, int64_t c) {
    int64_t whole = blocks_in_chunk(s) * s->block, block = s->block ? s->block : s->L;
    if (whole)
        return (scan_chunk){.t0 = c * whole, .m = (int)least(whole, s->L - c * whole),
                            .run = (int)block, .begins = s->streams == 1, .ends = s->streams == 1};
    int64_t each = (block + s->chunk - 1) / s->chunk, turn = c / each, from = c % each * s->chunk;
    int m = (int)least(s->chunk, block - from);
    return (scan_chunk){.t0 = turn * block + from, .m = m, .run = m, .begins = from == 0,
                        .ends = from + m == block, .first = s->streams == 2 && turn % 2 == 0};
}

/* to = from, or zero, for the channels of a task and all states (N, E). */
static inline void scan_set(const scan_args *s, float *to, const float *from, int64_t e_lo,
                            int64_t e_hi) {
    for (int64_t n = 0; n < s->N; n++)
        if (from)
            memcpy(to + n * s->E + e_lo, from + n * s->E + e_lo, (e_hi - e_lo) * sizeof(float));
        else memset(to + n * s->E + e_lo, 0, (e_hi - e_lo) * sizeof(float));
}

/* bias + r w of a chunk into dt, for nb of the R terms from k0 on. The nb rows of w stay in
   registers over the steps. The first call sets dt, the others add to it: the sum is in the order
   of k. */
INLINE void project(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e,
                    int lanes, int64_t k0, const int nb) {
    vf row[NB_BACK], bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f);
    UNROLLED(k, nb) row[k] = v_load(s->w + (k0 + k) * s->E + e, lanes);
    int64_t r_l = s->reverse ? -s->r_l : s->r_l;
    const float *r = s->r + b * s->r_b + at(s, t0) * s->r_l + k0;
    for (int i = 0; i < m; i++) {
        vf d = k0 ? w->dt[i] : bias;
        UNROLLED(k, nb) d += row[k] * r[k];
        w->dt[i] = d;
        r += r_l;
    }
}

/* Step sizes of a chunk, and what else does not depend on the state. Returns the largest |dt| of
   each lane, passing over NaN. */
INLINE vf stage(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int64_t e,
                int lanes, int64_t e_lo, int64_t e_hi, const int backward) {
    vf bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f),
       D = s->D ? v_load(s->D + e, lanes) : v_splat(0.0f), most = v_splat(0.0f);
    int64_t way = s->reverse ? -1 : 1, t = at(s, t0), k = 0;
    for (; s->r && k + NB_BACK <= s->R; k += NB_BACK) project(s, w, b, t0, m, e, lanes, k, NB_BACK);
    for (; s->r && k < s->R; k++) project(s, w, b, t0, m, e, lanes, k, 1);
    const float *pu = s->u + b * s->u_b + t * s->u_l + e,
                *pd = s->delta ? s->delta + b * s->delta_b + t * s->delta_l + e : pu;
    const float *pg = backward ? s->gy + b * s->gy_b + t * s->gy_l + e : 0;
    /* Where the end of the chunk writes: y or, backward, du and ddelta. */
    const float *py = backward ? s->du + b * s->du_b + t * s->du_l + e
                               : s->y + b * s->y_b + t * s->y_l + e;
    const float *pw = backward
                          ? (s->ddelta ? s->ddelta + b * s->ddelta_b + t * s->ddelta_l + e : py)
                          : 0;
    int64_t u_l = way * s->u_l, d_l = s->delta ? way * s->delta_l : u_l, g_l = way * s->gy_l,
            y_l = way * (backward ? s->du_l : s->y_l), w_l = s->ddelta ? way * s->ddelta_l : y_l;
    /* Prefetched are the rows that are read next: those of the neighbouring channels or, after the
       last channels, those of the first channels in the next chunk. A row need not begin with a
       line of the cache. So the line of a vector's last number is asked for: that of its first came
       with the vector before. */
    int64_t last = lanes - 1, aside = last + (e + W < e_hi ? W : e_lo - e),
            on = e + W < e_hi ? 0 : backward ? -s->chunk : s->chunk;
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
        } else w->y[i] = D * u;
        pu += u_l;
        pd += d_l;
        py += y_l;
    }
    return most;
}

/* Whether |dt A| log2 e is at most 126 for all states, so that 2^x needs no bounds: nearly always.
   dt is the largest of each lane: the largest dt times the largest |A| bounds all products. */
static int is_tame(const scan_args *s, vf dt, int64_t e, int lanes) {
    vf A = v_splat(0.0f);
    for (int64_t n = 0; n < s->N; n++) A = v_larger(v_load(s->A + n * s->E + e, lanes), A);
    return v_all(dt * A <= 126.0f / 1.44269504088896f);
}

/* Forward over m <= CHUNK steps for nb states from n0 on, which stay in registers. Blocks end after
   each `run` steps. With `keep`, a and h are stored for backward instead of y, and `state` is only
   read; of block r, h[i + r] is before step i. */
INLINE void pass_fwd(const scan_args *s, scan_scratch *w, int64_t b, int64_t t0, int m, int run,
                     int64_t e, int lanes, int64_t n0, const int nb, float *state, const int tame,
                     const int keep) {
    vf h[NB_MOST], A2[NB_MOST], pair[NB_MOST];
    UNROLLED(n, nb) {
        h[n] = v_load(state + (n0 + n) * s->E + e, lanes);
        /* exp(dt A) = 2^(dt A2) with A2 = A log2 e: 2^x is cheaper. */
        A2[n] = v_load(s->A + (n0 + n) * s->E + e, lanes) * 1.44269504088896f;
    }
    int64_t B_l = s->reverse ? -s->B_l : s->B_l, C_l = s->reverse ? -s->C_l : s->C_l;
    const float *B = s->B + b * s->B_b + at(s, t0) * s->B_l + n0,
                *C = s->C + b * s->C_b + at(s, t0) * s->C_l + n0;
    for (int i = 0, r = 0; i < m; r++) {
        /* The state before a block, or before a pair of them. */
        UNROLLED(n, nb) {
            if (r && s->streams == 1) h[n] = v_splat(0.0f);
            else if (r & 1) h[n] = pair[n];
            else if (run < m) pair[n] = h[n];
            if (keep) w->h[i + r][n] = h[n];
        }
        for (int end = i + run < m ? i + run : m; i < end; i++) {
            /* Two sums for y, of the even and of the odd states: each addition waits for the one
               before it in its sum. */
            vf dt = w->dt[i], dtu = w->dtu[i], y = keep ? v_splat(0.0f) : w->y[i],
               y2 = v_splat(0.0f);
            UNROLLED(n, nb) {
                vf a = tame ? v_tame_exp2(dt * A2[n]) : v_exp2(dt * A2[n]);
                h[n] = a * h[n] + dtu * B[n];
                if (keep) {
                    w->a[i][n] = a;
                    w->h[i + r + 1][n] = h[n];
                } else if (n & 1) y2 += h[n] * C[n];
                else y += h[n] * C[n];
            }
            if (!keep) w->y[i] = y + y2;
            B += B_l;
            C += C_l;
        }
    }
    if (!keep)
        UNROLLED(n, nb) v_store(state + (n0 + n) * s->E + e, h[n], lanes);
}

/* The scan of the g-th group of channels of row b. `state` (N, E) is the thread's own, and not in
   registers over all of L: a vector's states leave them between chunks, so that inputs are read in
   the order of memory. */
static void forward_task(const scan_args *s, int64_t b, int64_t g, void *own, float *state) {
    scan_scratch *w = own;
    int64_t e_lo = g * s->group, e_hi = e_lo + s->group < s->E ? e_lo + s->group : s->E;
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t e = e_lo; e < e_hi; e++)
            state[n * s->E + e] = s->h0 ? s->h0[(b * s->E + e) * s->N + n] : 0.0f;
    int64_t chunks = scan_chunks(s);
    float *before = state + s->N * s->E; /* that before the pair */
    for (int64_t c = 0; c < chunks; c++) {
        const scan_chunk part = scan_locate(s, c);
        int64_t t0 = part.t0;
        int m = part.m, run = part.run;
        if (part.begins && part.first) scan_set(s, before, state, e_lo, e_hi);
        else if (part.begins && c) scan_set(s, state, s->streams == 2 ? before : 0, e_lo, e_hi);
        if (s->states)
            scan_set(s, s->states + (b * chunks + c) * s->N * s->E, state, e_lo, e_hi);
        for (int64_t e = e_lo; e < e_hi; e += W) {
            int lanes = e_hi - e < W ? (int)(e_hi - e) : W;
            int tame = is_tame(s, stage(s, w, b, t0, m, e, lanes, e_lo, e_hi, 0), e, lanes);
            /* NB_MOST states at a time and then fewer: the number has to be a constant for states
               to stay in registers. Only the usual pass has a second version, for bounded
               exponents. */
            int64_t n = 0;
            for (; n + NB_MOST <= s->N; n += NB_MOST)
                if (tame) pass_fwd(s, w, b, t0, m, run, e, lanes, n, NB_MOST, state, 1, 0);
                else pass_fwd(s, w, b, t0, m, run, e, lanes, n, NB_MOST, state, 0, 0);
            for (; n + NB_BACK <= s->N; n += NB_BACK)
                pass_fwd(s, w, b, t0, m, run, e, lanes, n, NB_BACK, state, 0, 0);
            for (; n < s->N; n++) pass_fwd(s, w, b, t0, m, run, e, lanes, n, 1, state, 0, 0);
            for (int i = 0; i < m; i++) {
                float *to = s->y + b * s->y_b + at(s, t0 + i) * s->y_l + e;
                v_store(to, s->accumulate ? v_load(to, lanes) + w->y[i] : w->y[i], lanes);
            }
        }
    }
    if (s->hlast)
        for (int64_t n = 0; n < s->N; n++)
            for (int64_t e = e_lo; e < e_hi; e++)
                s->hlast[(b * s->E + e) * s->N + n] = state[n * s->E + e];
}
