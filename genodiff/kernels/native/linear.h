/* A linear layer over many rows, LINEAR_CHUNK of them at a time: y = bias + x w.

   Backward, with g the gradient of y:
     dx = g w^T,   dw^T = sum over rows of g x^T,   dbias = sum over rows of g.
   w comes as (K, N) forward and as (N, K) backward, and dw has the form (N, K): in each pass the
   vectors run along the last axis. */

static void linear_forward(const linear_args *s, int64_t from, int64_t to) {
    /* init_m is 0: every row begins with the bias. */
    thin_args y = {.a_m = s->x_l, .a_k = 1, .w_k = s->N, .M = to - from, .N = s->N,
                   .out = s->y + from * s->y_l, .out_m = s->y_l, .init = s->bias};
    /* LINEAR_DEPTH rows of w at a time stay in the cache for all rows of the chunk. The sums go on
       from where they are in `out`. */
    for (int64_t k = 0; k < s->K; k += LINEAR_DEPTH) {
        y.a = s->x + from * s->x_l + k, y.w = s->w + k * s->N,
        y.K = s->K - k < LINEAR_DEPTH ? s->K - k : LINEAR_DEPTH;
        thin(&y);
        y.init = y.out, y.init_m = y.out_m;
    }
}

/* `part` is dw and, where there is a bias, dbias after it; they are added to. */
static void linear_backward(const linear_args *s, int64_t from, int64_t to, float *part) {
    const float *g = s->g + from * s->g_l;
    thin_args dx = {.a_m = s->g_l, .a_k = 1, .w_k = s->K, .M = to - from, .N = s->K,
                    .out = s->dx + from * s->dx_l, .out_m = s->dx_l};
    for (int64_t n = 0; n < s->N; n += LINEAR_DEPTH) {
        dx.a = g + n, dx.w = s->w + n * s->K,
        dx.K = s->N - n < LINEAR_DEPTH ? s->N - n : LINEAR_DEPTH;
        thin(&dx);
        dx.init = dx.out, dx.init_m = dx.out_m;
    }
    /* g is read as g^T, by its steps: rows are summed over. */
    thin_args dw = {.a = g, .a_m = 1, .a_k = s->g_l, .w = s->x + from * s->x_l, .w_k = s->x_l,
                    .M = s->N, .N = s->K, .K = to - from};
    dw.out = part, dw.init = part, dw.out_m = dw.init_m = s->K;
    thin(&dw);
    for (int64_t i = from; s->bias && i < to; i++)
        for (int64_t n = 0; n < s->N; n += W) {
            int lanes = s->N - n < W ? (int)(s->N - n) : W;
            float *to_ = part + s->N * s->K + n;
            v_store(to_, v_load(to_, lanes) + v_load(s->g + i * s->g_l + n, lanes), lanes);
        }
}

static void linear_task(const void *args, int64_t i, void *own, int backward) {
    const linear_args *s = args;
    int64_t start = i * s->piece, end = least(start + s->piece, s->rows),
            each = s->N * s->K + (s->bias ? s->N : 0);
    /* A part of dw for each task, added up by the caller in their order: no task waits for another.
       */
    float *part = backward ? s->part + i * each : 0;
    if (backward) memset(part, 0, each * sizeof(float));
    for (int64_t t = start; t < end; t += LINEAR_CHUNK)
        if (backward) linear_backward(s, t, least(t + LINEAR_CHUNK, end), part);
        else linear_forward(s, t, least(t + LINEAR_CHUNK, end));
}

int genodiff_linear(const linear_args *s, int backward, int threads) {
    return tasks_run(linear_task, s, (s->rows + s->piece - 1) / s->piece, 0, backward, threads);
}
