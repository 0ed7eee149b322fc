/* The gate of a mixer and the projection w (D, E) of its outputs:
     gated = y silu(z),   out = w gated.
   Backward, with g the gradient of out:
     q = w^T g,   gy = q silu(z),   dz = q y silu'(z),   dw = sum over rows of g gated^T.
   w comes as (E, D) forward and as (D, E) backward. What is gated is never in memory as a whole:
   rows are projected while they are in the cache, and gated again for dw. */

/* Rows [from, to); `q` and `gated` (rows, E) begin with the first of them. */
static void gate_rows(const gate_args *s, int64_t from, int64_t to, const float *q, float *gated,
                      int backward) {
    for (int64_t i = from; i < to; i++)
        for (int64_t e = 0; e < s->E; e += W) {
            int lanes = s->E - e < W ? (int)(s->E - e) : W;
            vf y = v_load(s->y + i * s->y_l + e, lanes), z = v_load(s->z + i * s->z_l + e, lanes);
            /* For z = NaN the sigmoid may be any number; z times it is NaN again. */
            vf sigmoid = v_sigmoid(z), gate = z * sigmoid;
            WANT(s->y + (i + AHEAD) * s->y_l + e, 0);
            WANT(s->z + (i + AHEAD) * s->z_l + e, 0);
            WANT(gated + (i - from + AHEAD) * s->E + e, 1);
            v_store(gated + (i - from) * s->E + e, y * gate, lanes);
            if (backward) {
                vf g = v_load(q + (i - from) * s->E + e, lanes);
                WANT(q + (i - from + AHEAD) * s->E + e, 0);
                WANT(s->gy + (i + AHEAD) * s->gy_l + e, 1);
                WANT(s->dz + (i + AHEAD) * s->dz_l + e, 1);
                v_store(s->gy + i * s->gy_l + e, g * gate, lanes);
                /* silu'(z) = s + z s (1 - s) with s the sigmoid of z. */
                v_store(s->dz + i * s->dz_l + e, g * y * (sigmoid + gate * (1.0f - sigmoid)),
                        lanes);
            }
        }
}

/* As gate_rows, with the projection after it or, backward, before it. `own` has room for q and for
   what is gated, GATE_CHUNK rows each. dw is added to. */
static void gate_projected(const gate_args *s, int64_t from, int64_t to, float *own, float *dw,
                           int backward) {
    const float *g = s->g + from * s->g_l;
    float *gated = own + GATE_CHUNK * s->E;
    thin_args rows = {.a_k = 1, .M = to - from, .w = s->w};
    if (!backward) {
        gate_rows(s, from, to, 0, gated, 0);
        rows.a = gated, rows.a_m = s->E, rows.K = s->E, rows.N = rows.w_k = s->D;
        rows.out = s->out + from * s->out_l, rows.out_m = s->out_l;
        thin(&rows);
        return;
    }
    rows.a = g, rows.a_m = s->g_l, rows.K = s->D, rows.N = rows.w_k = s->E;
    rows.out = own, rows.out_m = s->E;
    thin(&rows);
    gate_rows(s, from, to, own, gated, 1);
    /* g is read as g^T, by its steps: rows are summed over. */
    thin_args weight = {.a = g, .a_m = 1, .a_k = s->g_l, .w = gated, .w_k = s->E,
                        .M = s->D, .N = s->E, .K = to - from};
    weight.out = dw, weight.init = dw, weight.out_m = weight.init_m = s->E;
    thin(&weight);
}

static void gate_task(const void *args, int64_t i, void *own, int backward) {
    const gate_args *s = args;
    int64_t start = i * s->piece, end = least(start + s->piece, s->rows);
    /* A part of dw for each task, added up by the caller in their order. */
    float *dw = backward ? s->part + i * s->D * s->E : 0;
    if (backward) memset(dw, 0, s->D * s->E * sizeof(float));
    for (int64_t t = start; t < end; t += GATE_CHUNK)
        gate_projected(s, t, least(t + GATE_CHUNK, end), own, dw, backward);
}

int genodiff_gate(const gate_args *s, int backward, int threads) {
    return tasks_run(gate_task, s, (s->rows + s->piece - 1) / s->piece,
                     2 * GATE_CHUNK * s->E * sizeof(float), backward, threads);
}
