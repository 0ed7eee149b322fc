/* RMSNorm, row by row: y = w x r with r = 1 / sqrt(mean(x^2) + eps), and r kept.

   Backward, with n = x r and a = gy w:
     dx = r (a - n mean(a n)),   dw = sum over rows of gy n, one part for each piece of rows. */

static void norm_forward(const norm_args *s, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) {
        const float *x = s->x + i * s->D;
        vf sum = v_splat(0.0f);
        /* Lanes past the end are loaded as 0, which adds nothing. */
        for (int64_t d = 0; d < s->D; d += W) {
            vf v = v_load(x + d, s->D - d < W ? (int)(s->D - d) : W);
            sum += v * v;
        }
        float r = 1.0f / sqrtf(v_sum(sum) / s->D + *s->eps);
        s->scale[i] = r;
        for (int64_t d = 0; d < s->D; d += W) {
            int lanes = s->D - d < W ? (int)(s->D - d) : W;
            v_store(s->y + i * s->D + d, v_load(x + d, lanes) * r * v_load(s->w + d, lanes), lanes);
        }
    }
}

static void norm_backward(const norm_args *s, int64_t from, int64_t to, float *part) {
    /* Each piece has a part of dw to itself, so that no task waits for another and the order of the
       sum is that of the pieces. */
    memset(part, 0, s->D * sizeof(float));
    for (int64_t i = from; i < to; i++) {
        const float *x = s->x + i * s->D, *g = s->gy + i * s->D;
        float r = s->scale[i];
        vf sum = v_splat(0.0f);
        for (int64_t d = 0; d < s->D; d += W) {
            int lanes = s->D - d < W ? (int)(s->D - d) : W;
            vf n = v_load(x + d, lanes) * r, gy = v_load(g + d, lanes);
            sum += gy * v_load(s->w + d, lanes) * n;
            v_store(part + d, v_load(part + d, lanes) + gy * n, lanes);
        }
        float along = v_sum(sum) / s->D;
        for (int64_t d = 0; d < s->D; d += W) {
            int lanes = s->D - d < W ? (int)(s->D - d) : W;
            vf n = v_load(x + d, lanes) * r;
            v_store(s->dx + i * s->D + d,
                    (v_load(g + d, lanes) * v_load(s->w + d, lanes) - n * along) * r, lanes);
        }
    }
}

static void norm_task(const void *args, int64_t i, void *own, int backward) {
    const norm_args *s = args;
    int64_t start = i * NORM_PIECE, end = least(start + NORM_PIECE, s->rows);
    if (backward) norm_backward(s, start, end, s->part + i * s->D);
    else norm_forward(s, start, end);
}

int genodiff_norm(const norm_args *s, int backward, int threads) {
    return tasks_run(norm_task, s, (s->rows + NORM_PIECE - 1) / NORM_PIECE, 0, backward, threads);
}
