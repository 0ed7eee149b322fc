/* The model of copies: forward-backward over the background and (diagonal, divergence class).
   `memory/copying.py` has the equations.

   A row has the states of one place. Rows are kept as they are computed, with their total, and the
   next row divides by it. The forward rows of a whole window would not fit into a cache: the last
   row of each stretch of places is kept, and the others of the stretch are computed again when the
   backward pass comes there, to the same bits. */

typedef struct {
    int64_t D;
    double start, end, stay;
    vd rate;
} copy_model;

/* The forward row of place i after `before`, the row of the place before it. Returns its sum. */
static double forward_row(const recall_space *o, const copy_model *c, int64_t i, const vd *before,
                          vd *f) {
    double per = i ? 1 / o->total[i - 1] : 0, stay = c->stay * per;
    vd enter = i ? c->rate * (o->background[i - 1] * per) : c->rate / (c->start + c->end);
    const vd *likely = o->likely + 5 * i;
    const uint8_t *from = o->sources + i * c->D;
    vd sum[4] = {{0}};
    for (int64_t m = 0; m < c->D; m += 4)
        for (int k = 0; k < 4; k++) {
            vd v = (before[m + k] * stay + enter) * likely[from[m + k]];
            f[m + k] = v;
            sum[k] += v;
        }
    for (int64_t p = 0; p < o->n_linked; p++) {
        const reach *to = o->linked + p;
        vd v = weigh_links(o->pair_g + to->g, before + to->first, to->n) * per *
               likely[from[to->at]];
        f[to->at] += v;
        sum[p & 3] += v;
    }
    return over_classes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The row of place i with its background and total. */
static void forward_step(recall_space *o, const copy_model *c, int64_t i, const vd *before, vd *f,
                         double *copying) {
    if (i) {
        double per = 1 / o->total[i - 1];
        o->background[i] = (1 - c->start) * (o->background[i - 1] * per) + c->end * (*copying * per);
    } else
        o->background[i] = c->end / (c->start + c->end);
    *copying = forward_row(o, c, i, before, f);
    o->total[i] = o->background[i] + *copying;
}

/* What the backward row of a place says together with its forward row: by the base of the source,
   (5), into `by`. The row of the place before it takes its place. Returns Σ of what is passed on. */
static vd backward_row(const recall_space *o, const copy_model *c, int64_t i, const vd *f,
                       double per, double back, vd *now, vd *by) {
    const uint8_t *from = o->sources + i * c->D;
    vd likely[5], parts[4][5] = {{{0}}}, sum[4] = {{0}};
    for (int k = 0; k < 5; k++) likely[k] = o->likely[5 * i + k] * per;
    for (int64_t p = 0; p < o->n_linked; p++) {
        int64_t m = o->linked[p].at;
        o->passed[p] = now[m] * likely[from[m]];
    }
    for (int64_t m = 0; m < c->D; m += 4)
        for (int k = 0; k < 4; k++) {
            int code = from[m + k];
            vd passed = now[m + k] * likely[code];
            parts[k][code] += f[m + k] * now[m + k];
            sum[k] += passed;
            now[m + k] = passed * c->stay + back;
        }
    for (int64_t p = 0; p < o->n_linked; p++) {
        const reach *to = o->linked + p;
        now[to->at] += weigh_links(o->pair_g + to->g, o->passed + to->listed, to->n);
    }
    for (int k = 0; k < 5; k++)
        by[k] = (parts[0][k] + parts[1][k]) + (parts[2][k] + parts[3][k]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The odds that nothing is a copy, from the chance of copies and the logarithm of the likelihood. */
static double odds_of_none(double copies, double likelihood) {
    return copies == 1 ? 0 : (1 - copies) / copies * exp(likelihood < -700 ? 700 : -likelihood);
}

static void recall_copies(const recall_args *s, recall_space *o, int64_t loci, int64_t D,
                          double *w0, double *copy) {
    copy_model c = {D, s->chances[0], s->chances[1], 1 - s->chances[1] - s->chances[2], {0}};
    for (int e = 0; e < KINDS_OF_COPY; e++) c.rate[e] = c.start * s->share[e] / loci;
    int64_t C = stretch_places(s->L, D);
    double copying = 0, likelihood = 0, after = 1, per = 1;
    const vd *before = o->marks; /* mark g: the last row before stretch g; mark 0: zeros */
    memset(o->marks, 0, D * sizeof(vd));
    for (int64_t i = 0; i < s->L; i++) {
        vd *f = o->rows + i % C * D;
        forward_step(o, &c, i, before, f, &copying);
        likelihood += log(o->total[i]);
        before = f;
        if (i % C == C - 1 && i + 1 < s->L) memcpy(o->marks + (i / C + 1) * D, f, D * sizeof(vd));
    }
    double any = 1 / (1 + odds_of_none(s->chances[4], likelihood));
    for (int64_t m = 0; m < D; m++) o->now[m] = (vd){0} + 1;
    for (int64_t i = s->L - 1; i >= 0; i--) {
        if (i % C == C - 1 && i + 1 < s->L) { /* a stretch whose rows were written over */
            before = o->marks + i / C * D;
            for (int64_t j = i / C * C; j <= i; j++) {
                vd *f = o->rows + j % C * D;
                forward_row(o, &c, j, before, f);
                before = f;
            }
        }
        double old = after * per;
        vd by[5], all = {0};
        vd sum = backward_row(o, &c, i, o->rows + i % C * D, per, c.end * old, o->now, by);
        for (int k = 0; k < 4; k++) all += by[k];
        double total = o->background[i] * after + over_classes(all);
        w0[i] = 1 - any * (1 - o->background[i] * after / total);
        for (int k = 0; k < 4; k++) {
            double chance = 0;
            for (int e = 0; e < KINDS_OF_COPY; e++) {
                double eps = s->divergence[e];
                chance += by[k][e] * (1 - eps) + (all[e] - by[k][e]) * eps / 3;
            }
            copy[i * 4 + k] = any * chance / total;
        }
        after = (1 - c.start) * old + over_classes(c.rate * sum);
        per = 1 / (old + over_classes(sum)); /* no state is more than that */
    }
}

typedef struct {
    const recall_args *s;
    uint32_t *filled;
} recall_job;

static void recall_task(const void *args, int64_t b, void *own, int find) {
    const recall_job *job = args;
    const recall_args *s = job->s;
    recall_space o;
    recall_lay(s, &o, (uintptr_t)own);
    o.filled = job->filled;
    int64_t most = most_found(s), *kept = s->diagonals + b * 2 * most, *counts = s->counts + b * 2;
    const int64_t *without = s->without + 2 * b;
    const uint8_t *x = s->codes + b * s->L;
    double *w0 = s->background + b * s->L, *copy = s->copy + b * s->L * 4,
           *evidence = s->evidence + b * s->L;
    window_prepare(s, &o, x, evidence);
    counts[0] = counts[1] = 0;
    if (!find) {
        for (int64_t i = 0; i < s->L; i++) w0[i] = 1;
        memset(copy, 0, s->L * 4 * sizeof(double));
    }
    if (!s->loci[b]) return;
    seeker seekers[2];
    for (int strand_ = 0; strand_ < 2; strand_++)
        seekers[strand_] = (seeker){s, o.strands + strand_, without, &o, o.heap[strand_], .n = 0};
    seek_strands(seekers);
    for (int strand_ = 0; strand_ < 2; strand_++) {
        int64_t *out = kept + strand_ * most;
        counts[strand_] = find_diagonals(seekers + strand_, s->loci[b], out);
        memcpy(o.diagonals + (strand_ ? counts[0] : 0), out, counts[strand_] * 8);
    }
    int64_t D = fill_up(counts[0]) + fill_up(counts[1]);
    if (!D || find) return;
    read_sources(s, &o, without, counts, D);
    list_links(s, &o, counts);
    write_likely(s, x, evidence, o.likely);
    recall_copies(s, &o, s->loci[b], D, w0, copy);
}

/* With `find`, the diagonals and the evidence are all that is asked for. */
int genodiff_recall(const recall_args *s, int find, int threads) {
    recall_space nowhere;
    recall_job job = {s, 0};
    size_t bytes = recall_lay(s, &nowhere, 0);
    if (s->scored < 0) { /* every diagonal */
        if (!(job.filled = malloc((s->plane_bytes / 64 + 1) * sizeof *job.filled))) return 1;
        list_filled(s, job.filled);
    }
    int failed = tasks_run(recall_task, &job, s->batch, bytes, find, threads);
    free(job.filled);
    return failed;
}

/* The table of k-mers: words counted into start[word + 1] or, with `fill`, their places filled into
   `at`. A task has the words from one number to another, so no two tasks write the same place. */
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

int genodiff_kmers(const kmers_args *s, int fill, int threads) {
    size_t words = ((size_t)1 << (2 * s->k)) / s->pieces + 1;
    return tasks_run(kmers_task, s, s->pieces, fill ? words * 4 : 0, fill, threads);
}
