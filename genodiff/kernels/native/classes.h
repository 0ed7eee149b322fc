/* Slow classes beside the others along a row of columns: `genodiff/memory/column_rates.py` has
   the equations. A task is a block of the row, read with `around` columns on either side. */

static void classes_task(const void *args, int64_t task, void *own, int backward) {
    const classes_args *s = args;
    int64_t K = s->K, low = task * s->block, high = least(low + s->block, s->n);
    int64_t first = low > s->around ? low - s->around : 0, end = least(high + s->around, s->n);
    double *forward = own, *now = forward + (s->block + 2 * s->around) * K;
    for (int64_t k = 0; k < K; k++) now[k] = s->share[k];
    for (int64_t i = first; i < end; i++) {
        double *f = forward + (i - first) * K, total = 0, left = 0;
        for (int64_t k = 0; k < K; k++) f[k] = s->ids[i] < 0 ? s->share[k] : now[k];
        if (s->ids[i] < 0) {
            memcpy(now, s->share, (size_t)K * sizeof(double));
            continue;
        }
        const double *likely = s->likely + s->ids[i] * s->M;
        for (int64_t k = 0; k < K; k++) total += now[k] *= likely[s->of[i % 3 * K + k]];
        for (int64_t k = 0; k < K; k++) left += s->leave[k] * (now[k] /= total);
        for (int64_t k = 0; k < K; k++) now[k] = (1 - s->leave[k]) * now[k] + s->toward[k] * left;
    }
    for (int64_t k = 0; k < K; k++) now[k] = 1;
    for (int64_t i = end - 1; i >= first; i--) {
        if (s->ids[i] < 0) {
            for (int64_t k = 0; k < K; k++) now[k] = 1;
            if (low <= i && i < high) s->lods[i] = NAN;
            continue;
        }
        const double *f = forward + (i - first) * K, *likely = s->likely + s->ids[i] * s->M;
        double sums[4] = {0, 0, 0, 0}, all = 0, back = 0; /* told and seen, of others and of slow */
        for (int64_t k = 0; k < K; k++) {
            double told = f[k] * now[k], seen = told * likely[s->of[i % 3 * K + k]];
            double *sum = sums + 2 * (s->slow[k] > 0);
            sum[0] += told, sum[1] += seen, all += seen;
        }
        if (low <= i && i < high)
            s->lods[i] = log(sums[3] / sums[2]) - log(sums[1] / sums[0]);
        for (int64_t k = 0; k < K; k++) {
            now[k] *= likely[s->of[i % 3 * K + k]] / all;
            back += s->toward[k] * now[k];
        }
        for (int64_t k = 0; k < K; k++) now[k] = (1 - s->leave[k]) * now[k] + s->leave[k] * back;
    }
}

int genodiff_classes(const classes_args *s, int backward, int threads) {
    size_t bytes = (size_t)((s->block + 2 * s->around + 1) * s->K) * sizeof(double);
    return tasks_run(classes_task, s, (s->n + s->block - 1) / s->block, bytes, 0, threads);
}
