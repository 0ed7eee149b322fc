/* The model of copies: forward-backward over the background and (diagonal, divergence class).
   `memory/copying.py` has the equations. */

/* (L, D): what each place would copy on each diagonal; 4 is no base. */
static void read_sources(const recall_args *s, recall_space *o, const int64_t *without,
                         int64_t first, int64_t D) {
    const uint8_t *high = s->planes, *low = high + s->plane_bytes, *base = low + s->plane_bytes;
    for (int64_t m = 0; m < D; m++)
        for (int64_t i = 0; i < s->L; i++) {
            int64_t place = o->diagonals[m] + i, at = place + PAD_BASES;
            int code = 4, bit = at & 7;
            if ((base[at >> 3] >> bit & 1) && !(place >= without[0] && place < without[1]))
                code = (high[at >> 3] >> bit & 1) * 2 | (low[at >> 3] >> bit & 1);
            if (m < first) o->sources[i * D + m] = (uint8_t)code;
            else o->sources[(s->L - 1 - i) * D + m] = (uint8_t)(code < 4 ? 3 - code : code);
        }
}

/* For each diagonal those of its strand within reach, and shift times g of their distance. */
static void list_pairs(const recall_args *s, recall_space *o, int64_t first, int64_t D) {
    double scale = 0;
    for (int j = 1; j <= REACH; j++) scale += 2.0 / j;
    for (int64_t m = 0; m < D; m++) {
        int32_t n = 0;
        for (int64_t j = m - REACH > 0 ? m - REACH : 0; j < D && j <= m + REACH; j++) {
            int64_t far = o->diagonals[j] - o->diagonals[m];
            far = far < 0 ? -far : far;
            if (j == m || (j < first) != (m < first) || far > REACH) continue;
            o->pair_of[m * 2 * REACH + n] = (int32_t)j;
            o->pair_g[m * 2 * REACH + n++] = s->chances[2] / (scale * far);
        }
        o->pairs[m] = n;
    }
}

/* Σ_j shift g(m, j) from_j. */
INLINE vd shifted(const recall_space *o, const vd *from, int64_t m) {
    vd sum = {0};
    const int32_t *of = o->pair_of + m * 2 * REACH;
    const double *g = o->pair_g + m * 2 * REACH;
    for (int32_t j = 0; j < o->pairs[m]; j++) sum += from[of[j]] * g[j];
    return sum;
}

/* The likelihood of a place by what its source shows: hit, miss, or 0 for no base. */
INLINE void emissions(const recall_args *s, int x, double evidence, vd *likely) {
    for (int c = 0; c < 5; c++)
        for (int e = 0; e < KINDS_OF_COPY; e++) {
            double eps = s->divergence[e], chance = c == x ? 1 - eps : eps / 3;
            likely[c][e] = c == 4 ? 0 : x == 4 ? 1 : chance / evidence;
        }
}

INLINE double over_classes(vd v) {
    double sum = 0;
    for (int e = 0; e < KINDS_OF_COPY; e++) sum += v[e];
    return sum;
}

static void recall_copies(const recall_args *s, recall_space *o, const uint8_t *x,
                          const double *evidence, int64_t loci, int64_t D, double *w0,
                          double *copy) {
    double start = s->chances[0], end = s->chances[1], stay = 1 - end - s->chances[2];
    double old, background = end / (start + end), after = 1, likelihood = 0;
    vd rate, likely[5], *now = o->now, *passed = o->passed;
    for (int e = 0; e < KINDS_OF_COPY; e++) rate[e] = start * s->share[e] / loci;
    for (int64_t i = 0; i < s->L; i++) {
        vd *f = o->forward + i * D, sum = {0};
        const vd *before = f - D;
        emissions(s, x[i], evidence[i], likely);
        old = background;
        for (int64_t m = 0; i && m < D; m++) sum += before[m];
        if (i) background = (1 - start) * old + end * over_classes(sum);
        sum *= 0;
        for (int64_t m = 0; m < D; m++) {
            vd v = i ? before[m] * stay + shifted(o, before, m) + rate * old : rate / (start + end);
            f[m] = v * likely[o->sources[i * D + m]];
            sum += f[m];
        }
        double total = background + over_classes(sum);
        likelihood += log(total);
        background /= total;
        for (int64_t m = 0; m < D; m++) f[m] /= total;
        o->background[i] = background;
    }
    double any = 1, copies = s->chances[4]; /* the chance that the window copies at all */
    if (copies < 1) any = 1 / (1 + (1 - copies) / copies * exp(likelihood < -700 ? 700 : -likelihood));
    for (int64_t m = 0; m < D; m++) now[m] = (vd){0} + 1;
    for (int64_t i = s->L - 1; i >= 0; i--) {
        const vd *f = o->forward + i * D;
        const uint8_t *from = o->sources + i * D;
        vd by[5] = {{0}}, all = {0}, sum = {0};
        emissions(s, x[i], evidence[i], likely);
        for (int64_t m = 0; m < D; m++) {
            by[from[m]] += f[m] * now[m];
            passed[m] = now[m] * likely[from[m]];
            sum += passed[m] * rate;
        }
        for (int c = 0; c < 4; c++) all += by[c];
        double total = o->background[i] * after + over_classes(all), top;
        w0[i] = 1 - any * (1 - o->background[i] * after / total);
        for (int c = 0; c < 4; c++) {
            double chance = 0;
            for (int e = 0; e < KINDS_OF_COPY; e++) {
                double eps = s->divergence[e];
                chance += by[c][e] * (1 - eps) + (all[e] - by[c][e]) * eps / 3;
            }
            copy[i * 4 + c] = any * chance / total;
        }
        old = after;
        top = after = (1 - start) * old + over_classes(sum);
        for (int64_t m = 0; m < D; m++) {
            now[m] = passed[m] * stay + shifted(o, passed, m) + end * old;
            for (int e = 0; e < KINDS_OF_COPY; e++) top = now[m][e] > top ? now[m][e] : top;
        }
        after /= top;
        for (int64_t m = 0; m < D; m++) now[m] /= top;
    }
}

static void recall_task(const void *args, int64_t b, void *own, int backward) {
    (void)backward;
    const recall_args *s = args;
    recall_space o;
    recall_lay(s, &o, (uintptr_t)own);
    int64_t most = most_found(s), *kept = s->diagonals + b * 2 * most, *counts = s->counts + b * 2;
    const int64_t *without = s->without + 2 * b;
    const uint8_t *x = s->codes + b * s->L;
    double *w0 = s->background + b * s->L, *copy = s->copy + b * s->L * 4,
           *evidence = s->evidence + b * s->L;
    window_prepare(s, &o, x, evidence);
    counts[0] = counts[1] = 0;
    for (int64_t i = 0; i < s->L; i++) w0[i] = 1;
    memset(copy, 0, s->L * 4 * sizeof(double));
    if (!s->loci[b]) return;
    for (int strand_ = 0; strand_ < 2; strand_++) {
        int64_t *out = kept + strand_ * most;
        counts[strand_] = find_diagonals(s, &o, strand_, without, s->loci[b], out);
        memcpy(o.diagonals + (strand_ ? counts[0] : 0), out, counts[strand_] * 8);
    }
    int64_t D = counts[0] + counts[1];
    if (!D) return;
    read_sources(s, &o, without, counts[0], D);
    list_pairs(s, &o, counts[0], D);
    recall_copies(s, &o, x, evidence, s->loci[b], D, w0, copy);
}

static int recall_run(const recall_args *s, int threads) {
    recall_space nowhere;
    size_t bytes = recall_lay(s, &nowhere, 0);
    return tasks_run(recall_task, s, s->batch, bytes, 0, threads);
}

/* The table of k-mers: words counted into start[word + 1], or their places filled into `at`. A task
   has the words from one number to another, so no two tasks write the same place. */
static void kmers_task(const void *args, int64_t piece, void *own, int fill) {
    const kmers_args *s = args;
    uint64_t all = (uint64_t)1 << (2 * s->k), from = all * piece / s->pieces,
             to = all * (piece + 1) / s->pieces, word = 0;
    uint32_t *next = own;
    if (fill) memcpy(next, s->start + from, (to - from) * 4);
    int64_t run = 0;
    for (int64_t i = 0; i < s->n; i++) {
        uint8_t code = s->codes[i];
        run = code < 4 ? run + 1 : 0;
        word = (word << 2 | (code & 3)) & (all - 1);
        if (run < s->k || word < from || word >= to) continue;
        if (fill) s->at[next[word - from]++] = (uint32_t)(i - s->k + 1);
        else s->start[word + 1]++;
    }
}

static int kmers_run(const kmers_args *s, int fill, int threads) {
    size_t words = ((size_t)1 << (2 * s->k)) / s->pieces + 1;
    return tasks_run(kmers_task, s, s->pieces, fill ? words * 4 : 0, fill, threads);
}
