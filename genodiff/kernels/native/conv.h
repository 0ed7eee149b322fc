/* The short causal convolution with its SiLU, for one vector width; helpers and types in scan.h.

     p_t = bias + sum_k w[e,k] x_{t-K+1+k},   y_t = p_t / (1 + exp(-p_t));   reversed, x_{t+K-1-k} stands for x_{t-K+1+k}.
   Backward recomputes p: only x is kept. With q_t = gy_t y'(p_t):  dx_t = sum_k w[e,k] q_{t+K-1-k},  dw[e,k] = sum_t q_t x_{t-K+1+k}. */

static inline vf conv_at(const conv_args *s, int64_t b, int64_t t, int64_t e, int lanes, const vf *w, vf p) {
    for (int k = 0; k < s->K; k++) {
        int64_t from = s->reverse ? t + s->K - 1 - k : t - s->K + 1 + k;
        if (from >= 0 && from < s->L) p += w[k] * v_load(s->x + b * s->x_b + from * s->x_l + e, lanes);
    }
    return p;
}

static inline void conv_weights(const conv_args *s, int64_t e, int lanes, vf *w, vf *bias) {
    for (int k = 0; k < s->K; k++) {
        vf v = v_splat(0.0f);
        for (int i = 0; i < lanes; i++) v[i] = s->w[(e + i) * s->K + k];
        w[k] = v;
    }
    *bias = s->bias ? v_load(s->bias + e, lanes) : v_splat(0.0f);
}

static void conv_forward(const conv_args *s, int64_t b, int64_t t0, int64_t t1) {
    vf w[MAX_TAPS], bias;
    for (int64_t e = 0; e < s->E; e += W) {
        int lanes = s->E - e < W ? (int)(s->E - e) : W;
        conv_weights(s, e, lanes, w, &bias);
        for (int64_t t = t0; t < t1; t++) {
            vf p = conv_at(s, b, t, e, lanes, w, bias);
            if (s->silu) p = p / (1.0f + v_exp2(p * -1.44269504088896f));
            v_store(s->y + b * s->y_b + t * s->y_l + e, p, lanes);
        }
    }
}

/* dx over [t0, t1), and the shares of dw and dbias of the same steps: part (K + 1, E), added to. */
static void conv_backward(const conv_args *s, int64_t b, int64_t t0, int64_t t1, float *part) {
    vf w[MAX_TAPS], bias, q[CONV_CHUNK + MAX_TAPS];
    int64_t halo = s->K - 1, lo = s->reverse ? t0 - halo : t0, hi = s->reverse ? t1 : t1 + halo;
    if (lo < 0) lo = 0;
    if (hi > s->L) hi = s->L;
    for (int64_t e = 0; e < s->E; e += W) {
        int lanes = s->E - e < W ? (int)(s->E - e) : W;
        conv_weights(s, e, lanes, w, &bias);
        vf dw[MAX_TAPS], db = v_splat(0.0f);
        for (int k = 0; k < s->K; k++) dw[k] = v_splat(0.0f);
        for (int64_t t = lo; t < hi; t++) {
            vf gy = v_load(s->gy + b * s->gy_b + t * s->gy_l + e, lanes);
            if (s->silu) {
                vf p = conv_at(s, b, t, e, lanes, w, bias);
                vf gate = 1.0f / (1.0f + v_exp2(p * -1.44269504088896f));
                gy *= gate * (1.0f + p * (1.0f - gate));
            }
            q[t - lo] = gy;
            if (t >= t0 && t < t1) {
                db += gy;
                for (int k = 0; k < s->K; k++) {
                    int64_t from = s->reverse ? t + s->K - 1 - k : t - s->K + 1 + k;
                    if (from >= 0 && from < s->L) dw[k] += gy * v_load(s->x + b * s->x_b + from * s->x_l + e, lanes);
                }
            }
        }
        for (int64_t t = t0; t < t1; t++) {
            vf dx = v_splat(0.0f);
            for (int k = 0; k < s->K; k++) {
                int64_t to = s->reverse ? t - s->K + 1 + k : t + s->K - 1 - k;
                if (to >= 0 && to < s->L) dx += w[k] * q[to - lo];
            }
            float *to_dx = s->dx + b * s->dx_b + t * s->dx_l + e;
            v_store(to_dx, s->accumulate ? v_load(to_dx, lanes) + dx : dx, lanes);
        }
        for (int k = 0; k < s->K; k++) v_store(part + k * s->E + e, v_load(part + k * s->E + e, lanes) + dw[k], lanes);
        v_store(part + s->K * s->E + e, v_load(part + s->K * s->E + e, lanes) + db, lanes);
    }
}

static void conv_run(const conv_args *s, int backward, int threads) {
    int64_t pieces = (s->L + CONV_PIECE - 1) / CONV_PIECE, tasks = s->batch * pieces;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < tasks; i++) {
        int64_t b = i / pieces, start = i % pieces * CONV_PIECE, end = start + CONV_PIECE < s->L ? start + CONV_PIECE : s->L;
        float *part = backward ? s->part + i * (s->K + 1) * s->E : 0;
        if (backward) memset(part, 0, (s->K + 1) * s->E * sizeof(float));
        for (int64_t t = start; t < end; t += CONV_CHUNK) {
            int64_t stop = t + CONV_CHUNK < end ? t + CONV_CHUNK : end;
            if (backward) conv_backward(s, b, t, stop, part);
            else conv_forward(s, b, t, stop);
        }
    }
}
