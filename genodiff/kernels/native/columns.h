/* One factor for each base from all relatives: `genodiff/memory/columns.py` has the equations.

   A task is one window. The rates of a column lie side by side, RATES of them; those that are not
   used have weight 0. Of the chain's step, (1 - leave) stays and the rest is drawn in proportion to
   `toward`, so a step takes K products and not K * K. */

#define RATES 16

typedef double vr __attribute__((vector_size(RATES * 8), aligned(64)));
/* As Python lays them out. */
typedef double vr_u __attribute__((vector_size(RATES * 8), aligned(8), may_alias));

#define COLUMNS_ARRAYS(X)                                                                          \
    X(vr, column, L * 4) X(vr, partial, s->nodes * 4) X(vr, seen, L)                               \
    X(double, emission, L * K) X(double, forward, L * K) X(double, scale, L) X(double, now, K)

typedef struct {
    COLUMNS_ARRAYS(DECLARE_ARRAY)
} columns_space;

static uintptr_t columns_lay(const columns_args *s, columns_space *o, uintptr_t space) {
    int64_t L = s->L, K = s->K;
    COLUMNS_ARRAYS(CUT_ARRAY)
    return space;
}

INLINE double vr_sum(vr v) {
    double sum = 0;
    for (int j = 0; j < RATES; j++) sum += v[j];
    return sum;
}

/* (4): the weight of what stands over place i of window b, given each base of the target. */
static void columns_weigh(const columns_args *s, columns_space *o, int64_t b, int64_t i,
                          vr *column) {
    const vr_u *chances = (const vr_u *)s->chances; /* (nodes, 4, 4): base above, base below */
    for (int x = 0; x < 4; x++) column[x] = (vr){0} + 1;
    for (int64_t n = 0; n < s->nodes; n++)
        for (int y = 0; y < 4; y++) o->partial[n * 4 + y] = (vr){0} + 1;
    for (int64_t n = 0; n + 1 < s->nodes; n++) {
        int64_t node = s->order[n], above = s->parent[node];
        vr *own = o->partial + node * 4, *to = above ? o->partial + above * 4 : column;
        if (node <= s->G) {
            const double *over = s->over + (((node - 1) * s->batch + b) * s->L + i) * 4;
            double none = 1 - ((over[0] + over[1]) + (over[2] + over[3]));
            for (int y = 0; y < 4; y++) own[y] = (vr){0} + (none + over[y] / s->bases[y]);
        }
        const vr_u *p = chances + node * 16;
        for (int y = 0; y < 4; y++, p += 4)
            to[y] *= (own[0] * p[0] + own[1] * p[1]) + (own[2] * p[2] + own[3] * p[3]);
    }
}

static void columns_task(const void *args, int64_t b, void *own, int backward) {
    const columns_args *s = args;
    columns_space o;
    columns_lay(s, &o, (uintptr_t)own);
    int64_t K = s->K;
    const vr_u *weights = (const vr_u *)s->weights; /* (3, K) */
    const double *leave = s->leave, *toward = s->toward;
    for (int64_t k = 0; k < K; k++) o.now[k] = s->share[k];
    for (int64_t i = 0; i < s->L; i++) {
        vr *column = o.column + 4 * i, seen = {0};
        columns_weigh(s, &o, b, i, column);
        uint8_t x = s->codes[b * s->L + i];
        const double *prior = s->prior + (b * s->L + i) * 4;
        if (x < 4) seen = column[x];
        else
            for (int y = 0; y < 4; y++) seen += column[y] * prior[y];
        o.seen[i] = seen;
        double total = 0, left = 0, *e = o.emission + i * K, *f = o.forward + i * K;
        for (int64_t k = 0; k < K; k++) {
            e[k] = vr_sum(weights[i % 3 * K + k] * seen);
            f[k] = o.now[k];
            o.now[k] *= e[k];
            total += o.now[k];
        }
        o.scale[i] = total;
        for (int64_t k = 0; k < K; k++) o.now[k] /= total, left += leave[k] * o.now[k];
        for (int64_t k = 0; k < K; k++)
            o.now[k] = (1 - leave[k]) * o.now[k] + toward[k] * left;
    }
    for (int64_t k = 0; k < K; k++) o.now[k] = 1;
    for (int64_t i = s->L - 1; i >= 0; i--) {
        const double *e = o.emission + i * K, *f = o.forward + i * K;
        double *out = s->factors + (b * s->L + i) * 4, most = 0, back = 0;
        vr rates = {0};
        for (int64_t k = 0; k < K; k++) rates += weights[i % 3 * K + k] * (f[k] * o.now[k]);
        for (int y = 0; y < 4; y++) {
            out[y] = vr_sum(rates * o.column[4 * i + y]);
            most = out[y] > most ? out[y] : most;
        }
        for (int y = 0; y < 4; y++) out[y] /= most;
        if (s->rates) {
            vr own = rates * o.seen[i];
            *(vr_u *)(s->rates + (b * s->L + i) * RATES) = own / vr_sum(own);
            double *states = s->posterior + (b * s->L + i) * K, all = 0;
            for (int64_t k = 0; k < K; k++) all += states[k] = f[k] * e[k] * o.now[k];
            for (int64_t k = 0; k < K; k++) states[k] /= all;
        }
        for (int64_t k = 0; k < K; k++) {
            o.now[k] *= e[k] / o.scale[i];
            back += toward[k] * o.now[k];
        }
        for (int64_t k = 0; k < K; k++) o.now[k] = (1 - leave[k]) * o.now[k] + leave[k] * back;
    }
}

int genodiff_columns(const columns_args *s, int backward, int threads) {
    columns_space nowhere;
    return tasks_run(columns_task, s, s->batch, columns_lay(s, &nowhere, 0), 0, threads);
}
