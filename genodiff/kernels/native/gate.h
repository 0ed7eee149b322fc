/* The gate of a mixer, row by row: out = y silu(z). Backward, with g the gradient of out: out again, gy = g silu(z), dz = g y silu'(z). */

static void gate_rows(const gate_args *s, int64_t from, int64_t to, int backward) {
    for (int64_t i = from; i < to; i++)
        for (int64_t e = 0; e < s->E; e += W) {
            int lanes = s->E - e < W ? (int)(s->E - e) : W;
            vf y = v_load(s->y + i * s->y_l + e, lanes), z = v_load(s->z + i * s->z_l + e, lanes);
            vf sigmoid = v_sigmoid(z), gate = z * sigmoid;
            WANT(s->y + (i + AHEAD) * s->y_l + e, 0);
            WANT(s->z + (i + AHEAD) * s->z_l + e, 0);
            WANT(s->out + (i + AHEAD) * s->out_l + e, 1);
            v_store(s->out + i * s->out_l + e, y * gate, lanes);
            if (backward) {
                vf g = v_load(s->g + i * s->g_l + e, lanes);
                WANT(s->g + (i + AHEAD) * s->g_l + e, 0);
                WANT(s->gy + (i + AHEAD) * s->gy_l + e, 1);
                WANT(s->dz + (i + AHEAD) * s->dz_l + e, 1);
                v_store(s->gy + i * s->gy_l + e, g * gate, lanes);
                v_store(s->dz + i * s->dz_l + e, g * y * (sigmoid + gate * (1.0f - sigmoid)), lanes);
            }
        }
}

static void gate_run(const gate_args *s, int backward, int threads) {
    int64_t piece = 256, pieces = (s->rows + piece - 1) / piece;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < pieces; i++) gate_rows(s, i * piece, (i + 1) * piece < s->rows ? (i + 1) * piece : s->rows, backward);
}
