/* How windows lie over the genome of a relative: `genodiff/memory/alignment.py` has the equations.

   A task is one window. The diagonals that a search found are weighed, the best are kept, and
   forward-backward goes over background and (diagonal, class). Forward rows are held as in
   recall_copy.h: a stretch of places at a time, and the last row of each. */

#define ALIGN_MOST 24
#define ALIGN_CENTRES 4
#define ALIGN_NEAR (ALIGN_CENTRES * (2 * REACH + 1))
#define ALIGN_LEAST (-5.0)
#define ALIGN_NEAR_ODDS 3.0
#define ALIGN_ALL 2 /* `given`: all diagonals are kept */
#define ALIGN_IN_REGIONS 0.9

typedef struct {
    double odds;
    int64_t at;
} weighed;

#define ALIGN_ARRAYS(X)                                                                            \
    X(ve, likely, L * 5) /* of strand 0 */                                                         \
    X(weighed, list, listed) X(ve, rows, held) X(ve, marks, (L / PLACES_HELD + 2) * D)             \
    X(ve, now, D) X(ve, passed, D) X(double, background, L) X(double, total, L)

typedef struct {
    recall_args text; /* planes, their bytes, L and shift: what recall_rows.h reads */
    recall_space o;   /* sources, linked diagonals */
    ALIGN_ARRAYS(DECLARE_ARRAY)
    ve inverse[5][4];   /* by base of the window and of the source, 1 over the emission */
    int64_t of[2][2];   /* the states of each strand: the first, and the last + 1 */
    ve shown[5][KINDS]; /* by base of the window (4: hidden) and class, the chance of it over each
                           base of the source (4: none) */
    ve rate, turned; /* start and turn, times share */
    double start, end, stay, choice;
} align_space;

static inline int64_t align_states(const align_args *s) {
    int64_t most = ALIGN_MOST + ALIGN_NEAR;
    return 2 * fill_up(s->given == ALIGN_ALL && s->most > most ? s->most : most);
}

static uintptr_t align_lay(const align_args *s, align_space *o, uintptr_t space) {
    int64_t L = s->L, D = align_states(s), held = PLACES_HELD * D,
            listed = s->most > ALIGN_NEAR ? s->most : ALIGN_NEAR;
    held = held > STATES_HELD ? held : STATES_HELD;
    held = held < L * D ? held : L * D;
    ALIGN_ARRAYS(CUT_ARRAY)
    o->o.diagonals = recall_cut(&space, D * 8);
    o->o.sources = recall_cut(&space, L * D);
    o->o.linked = recall_cut(&space, D * (int64_t)sizeof(reach));
    o->o.pair_g = recall_cut(&space, D * (2 * REACH + 1) * 8);
    return space;
}

/* The likelihood of each place by what its source shows on strand 0. */
static void align_likely(const align_args *s, int64_t b, align_space *a) {
    const uint8_t *codes = s->codes + b * s->L;
    const double *evidence = s->evidence + b * s->L;
    ve *likely = a->likely, by[4][4]; /* by the base of the window and of the source */
    for (int x = 0; x < 4; x++)
        for (int c = 0; c < 4; c++)
            for (int e = 0; e < KINDS; e++) by[x][c][e] = s->emission[(e * 4 + c) * 4 + x];
    for (int x = 0; x < 5; x++)
        for (int c = 0; c < 4; c++) a->inverse[x][c] = x > 3 ? (ve){0} + 1 : 1 / by[x][c];
    for (int64_t i = 0; i < s->L; i++, likely += 5) {
        for (int c = 0; c < 4; c++)
            likely[c] = codes[i] > 3 ? (ve){0} + 1 : by[codes[i]][c] / evidence[i];
        likely[4] = (ve){0};
    }
    for (int x = 0; x < 5; x++)
        for (int e = 0; e < KINDS; e++) {
            a->shown[x][e] = (ve){0};
            for (int c = 0; c < 4; c++)
                a->shown[x][e][c] = x > 3 ? 1 : s->emission[(e * 4 + c) * 4 + x];
        }
}

/* ln of the odds of each of 2 KINDS diagonals of a strand alone: `copying.weigh_diagonals`. A lane is
   a diagonal here, and the classes follow one another: `classes` of them, those behind have a share
   of 0. Of two groups of lanes, one computes while the other waits. */
#define LANES (2 * KINDS)
INLINE void align_weigh(const align_args *s, const align_space *a, const int64_t *without, int64_t b,
                        int strand_, const int64_t *d, double *odds, int classes) {
    const uint8_t *codes = s->codes + b * s->L;
    const double *evidence = s->evidence + b * s->L;
    ve states[2][KINDS], total[2] = {{0}}, sum[2] = {{0}}, entry[2];
    double scale[LANES] = {0};
    for (int g = 0; g < 2; g++) {
        entry[g] = (ve){0} + 1;
        for (int e = 0; e < classes; e++) states[g][e] = (ve){0};
    }
    for (int64_t i = 0; i < s->L; i += LOOK) {
        uint64_t w[2][KINDS];
        for (int m = 0; m < LANES; m++) w[m / KINDS][m % KINDS] = read_eight(&a->text, without, d[m] + i, 0);
        turn_eights(w[0]), turn_eights(w[1]);
        int64_t end = i + LOOK < s->L ? LOOK : s->L - i;
        for (int64_t j = 0; j < end; j++) {
            int64_t at = strand_ ? s->L - 1 - i - j : i + j;
            int x = codes[at] > 3 ? 4 : strand_ ? 3 - codes[at] : codes[at];
            double per = x > 3 ? 1 : 1 / evidence[at], stay = a->stay * per;
            for (int g = 0; g < 2; g++) {
                ve begun = entry[g] * per, turned = sum[g] * per, next = {0};
                ve_bytes bytes;
                memcpy(&bytes, w[g] + j, sizeof bytes);
                ve_places from = __builtin_convertvector(bytes, ve_places);
                for (int e = 0; e < classes; e++) {
                    states[g][e] =
                        (states[g][e] * stay + (begun * a->rate[e] + turned * a->turned[e])) *
                        ve_pick(a->shown[x][e], from);
                    next += states[g][e];
                }
                sum[g] = next, total[g] += next;
            }
        }
        for (int m = 0; m < LANES; m++) {
            int g = m / KINDS, k = m % KINDS;
            if (!(total[g][k] > HUGE_ODDS)) continue;
            for (int e = 0; e < classes; e++) states[g][e][k] /= HUGE_ODDS;
            total[g][k] /= HUGE_ODDS, sum[g][k] /= HUGE_ODDS, entry[g][k] /= HUGE_ODDS;
            scale[m] += log(HUGE_ODDS);
        }
    }
    for (int m = 0; m < LANES; m++)
        odds[m] = log(a->end * total[m / KINDS][m % KINDS]) + scale[m];
}

/* As `align_weigh`, of n diagonals. */
static void align_weigh_all(const align_args *s, const align_space *a, const int64_t *without,
                            int64_t b, int strand_, const int64_t *d, int64_t n, weighed *out) {
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t some[LANES];
        double odds[LANES];
        for (int m = 0; m < LANES; m++) some[m] = d[i + m < n ? i + m : i];
        if (s->classes < KINDS) align_weigh(s, a, without, b, strand_, some, odds, KINDS - 1);
        else align_weigh(s, a, without, b, strand_, some, odds, KINDS);
        for (int m = 0; m < LANES && i + m < n; m++) out[i + m] = (weighed){odds[m], some[m]};
    }
}

static int compare_weighed(const void *a, const void *b) {
    const weighed *x = a, *y = b;
    if (x->odds != y->odds) return x->odds < y->odds ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Weigh what a search found on a strand, the best first; returns how many are worth it. */
static int64_t align_rank(const align_args *s, align_space *a, const int64_t *without, int64_t b,
                          int strand_, weighed *kept) {
    const int64_t *found = s->diagonals + (2 * b + strand_) * s->most;
    int64_t n = s->counts[2 * b + strand_], some = 0;
    align_weigh_all(s, a, without, b, strand_, found, n, a->list);
    qsort(a->list, n, sizeof(weighed), compare_weighed);
    for (; some < n && some < ALIGN_MOST && a->list[some].odds >= ALIGN_LEAST; some++)
        kept[some] = a->list[some];
    return some;
}

/* The diagonals of a strand, ascending, into `out`: the best, and those within reach of the very
   best that are worth it where the place costs nothing. */
static int64_t align_choose(const align_args *s, align_space *a, const int64_t *without, int64_t b,
                            int strand_, const weighed *kept, int64_t n, double best,
                            int64_t *out) {
    int64_t all = 0, new = 0;
    double loci = log((double)s->loci[b]);
    for (int64_t i = 0; i < n; i++) out[all++] = kept[i].at;
    int64_t near[ALIGN_NEAR], some = 0, listed = s->counts[2 * b + strand_];
    const int64_t *found = s->diagonals + (2 * b + strand_) * s->most;
    if (s->given == ALIGN_ALL) return memcpy(out, found, listed * 8), listed;
    for (int64_t i = 0; i < n && i < ALIGN_CENTRES; i++)
        if (kept[i].odds >= 0 && kept[i].odds >= best / 4)
            for (int64_t j = 0; j < (s->given ? listed : 2 * REACH + 1); j++) {
                int64_t d = s->given ? found[j] : kept[i].at - REACH + j;
                if (d > -s->L && d < s->size && llabs(d - kept[i].at) <= REACH) near[some++] = d;
            }
    qsort(near, some, sizeof(int64_t), compare_places);
    int64_t last = 0;
    for (int64_t i = 0; i < some; i++) {
        if (i && near[i] == last) continue;
        last = near[i];
        int known = 0;
        for (int64_t j = 0; j < n; j++) known |= kept[j].at == near[i];
        if (!known) near[new++] = near[i];
    }
    align_weigh_all(s, a, without, b, strand_, near, new, a->list);
    for (int64_t i = 0; i < new; i++)
        if (a->list[i].odds + loci >= ALIGN_NEAR_ODDS) out[all++] = a->list[i].at;
    qsort(out, all, sizeof(int64_t), compare_places);
    return all;
}

/* Those of both strands; what fills each up to whole eights is never read. */
#define EACH_STATE(m) \
    for (int strand_ = 0; strand_ < 2; strand_++) \
        for (int64_t m = a->of[strand_][0]; m < a->of[strand_][1]; m++)

/* Σ_j g_j from_j. */
INLINE ve align_links(const double *g, const ve *from, int64_t n) {
    ve a = {0};
    for (int64_t j = 0; j < n; j++) a += from[j] * g[j];
    return a;
}

/* The forward row of place i after `before`. Returns its sum. */
static double align_row(const align_space *a, int64_t D, int64_t i, const ve *before, ve *f) {
    double per = i ? 1 / a->total[i - 1] : 0, stay = a->stay * per;
    ve enter = i ? a->rate * (a->background[i - 1] * per) : a->rate / (a->start + a->end),
       turned = a->turned * per, sum = {0};
    const ve *likely = a->likely + 5 * i;
    const uint8_t *from = a->o.sources + i * D;
    EACH_STATE(m) {
        f[m] = (before[m] * stay + (enter + turned * ve_spread(before[m]))) * likely[from[m]];
        sum += f[m];
    }
    for (int64_t p = 0; p < a->o.n_linked; p++) {
        const reach *to = a->o.linked + p;
        ve v = align_links(a->o.pair_g + to->g, before + to->first, to->n) * per *
               likely[from[to->at]];
        f[to->at] += v;
        sum += v;
    }
    return ve_sum(sum);
}

/* What the backward row says together with the forward row, by the base of the source, into `by`;
   the row of the place before takes its place. Returns Σ of what is passed on, by class. */
static ve align_back(const align_space *a, int64_t D, int64_t i, const ve *f, double per,
                     double back, ve *by) {
    const uint8_t *from = a->o.sources + i * D;
    ve likely[5], sum = {0};
    for (int k = 0; k < 5; k++) likely[k] = a->likely[5 * i + k] * per, by[k] = (ve){0};
    ve share = a->turned; /* turn times share */
    EACH_STATE(m) {
        ve passed = a->now[m] * likely[from[m]];
        by[from[m]] += f[m] * a->now[m];
        sum += passed;
        a->passed[m] = passed;
        a->now[m] = passed * a->stay + (back + ve_spread(share * passed));
    }
    for (int64_t p = 0; p < a->o.n_linked; p++) {
        const reach *to = a->o.linked + p;
        a->now[to->at] += align_links(a->o.pair_g + to->g, a->passed + to->first, to->n);
    }
    return sum;
}

/* 2 times the likeliest place of the text over place i, and its strand; `alike`, into which the sum
   over the classes that are alike goes, is not yet divided by that of all. */
static int64_t align_place(const align_args *s, const align_space *a, const int64_t *counts,
                           int64_t D, int64_t i, const ve *f, double *alike) {
    ve counted = {0}, sum = {0};
    double most = 0;
    int64_t best = 0, first = fill_up(counts[0]);
    for (int e = 0; e < s->classes; e++) counted[e] = s->alike[e];
    EACH_STATE(m) {
        ve both = f[m] * a->now[m] * counted;
        double one = ve_sum(both);
        sum += both;
        if (one > most) most = one, best = m;
    }
    *alike = ve_sum(sum);
    if (best < first) return 2 * (a->o.diagonals[best] + i);
    return 2 * (a->o.diagonals[counts[0] + best - first] + s->L - 1 - i) + 1;
}

static void align_sum(const align_args *s, align_space *a, int64_t b, const int64_t *counts,
                      int64_t D, double *over, double *all_, double *alike, int64_t *places, double *told) {
    int64_t C = stretch_places(s->L, D);
    double copying = 0, product = 1, likelihood = a->choice, after = 1, per = 1;
    const uint8_t *codes = s->codes + b * s->L;
    const double *evidence = s->evidence + b * s->L;
    const ve *before = a->marks; /* mark g: the last row before stretch g; mark 0: zeros */
    memset(a->marks, 0, D * sizeof(ve));
    for (int64_t i = 0; i < s->L; i++) {
        double scale = i ? 1 / a->total[i - 1] : 0;
        a->background[i] = i ? (1 - a->start) * (a->background[i - 1] * scale) +
                                   a->end * (copying * scale)
                             : a->end / (a->start + a->end);
        ve *f = a->rows + i % C * D;
        copying = align_row(a, D, i, before, f);
        a->total[i] = a->background[i] + copying;
        product *= a->total[i];
        if (product > HUGE_ODDS || product < 1 / HUGE_ODDS) likelihood += log(product), product = 1;
        before = f;
        if (i % C == C - 1 && i + 1 < s->L) memcpy(a->marks + (i / C + 1) * D, f, D * sizeof(ve));
    }
    *told = likelihood += log(product);
    if (!over && !all_ && !places) return;
    /* Times what a place's own base adds, they are those without it. */
    double none = odds_of_none(s->chances[4], likelihood);
    ve counted = {0};
    for (int e = 0; s->alike && e < s->classes; e++) counted[e] = s->alike[e] != 0;
    for (int64_t m = 0; m < D; m++) a->now[m] = (ve){0} + 1;
    for (int64_t i = s->L - 1; i >= 0; i--) {
        if (i % C == C - 1 && i + 1 < s->L) { /* a stretch whose rows were written over */
            before = a->marks + i / C * D;
            for (int64_t j = i / C * C; j <= i; j++) {
                ve *f = a->rows + j % C * D;
                align_row(a, D, j, before, f);
                before = f;
            }
        }
        double old = after * per, silent = a->background[i] * after;
        ve by[5], all = {0}, others[4], rest = {0};
        double laid = 0;
        if (places) places[i] = align_place(s, a, counts, D, i, a->rows + i % C * D, &laid);
        ve sum = align_back(a, D, i, a->rows + i % C * D, per, a->end * old, by);
        int x = codes[i] > 3 ? 4 : codes[i];
        double known = x > 3 ? 1 : evidence[i];
        for (int k = 0; k < 4; k++) { /* without the place's own base */
            all += by[k];
            others[k] = by[k] * (a->inverse[x][k] * known);
            rest += others[k];
        }
        double whole = silent + ve_sum(all), told_by_all = silent + ve_sum(rest),
               any = 1 / (told_by_all + none * whole); /* by what all other places tell */
        if (places && !(laid > .5 * whole * (1 + none))) places[i] = -1;
        for (int k = 0; k < 4; k++) {
            ve said = others[k] * any;
            for (int e = 0; over && e < s->classes; e++)
                over[(i * s->classes + e) * 4 + k] = said[e];
            if (!all_) continue;
            all_[i * 4 + k] = ve_sum(said);
            alike[i * 4 + k] = ve_sum(said * counted);
        }
        after = (1 - a->start) * old + ve_sum(a->rate * sum);
        per = 1 / (old + ve_sum(sum)); /* no state is more than that */
    }
}

static void align_task(const void *args, int64_t b, void *own, int backward) {
    const align_args *s = args;
    align_space a;
    align_lay(s, &a, (uintptr_t)own);
    double *over = s->over ? s->over + b * s->L * s->classes * 4 : 0,
           *all_ = s->sums ? s->sums + b * s->L * 4 : 0,
           *alike = s->sums ? s->sums + (s->batch + b) * s->L * 4 : 0;
    int64_t *places = s->places ? s->places + b * s->L : 0;
    for (int64_t i = 0; places && i < s->L; i++) places[i] = -1;
    if (over) memset(over, 0, s->L * s->classes * 4 * sizeof(double));
    if (all_) memset(all_, 0, s->L * 4 * sizeof(double)), memset(alike, 0, s->L * 4 * sizeof(double));
    s->likelihood[b] = -INFINITY;
    int64_t loci = s->loci[b], counts[2];
    if (!loci) return;
    const int64_t *without = s->without + 2 * b;
    a.text = (recall_args){.planes = s->planes, .plane_bytes = s->plane_bytes, .L = s->L,
                           .size = s->size, .chances = s->chances};
    a.start = s->chances[0], a.end = s->chances[1];
    a.stay = 1 - s->chances[1] - s->chances[2] - s->chances[3];
    double near = s->near[b], more = near ? ALIGN_IN_REGIONS * loci / near + 1 - ALIGN_IN_REGIONS : 1;
    a.choice = near ? log(near / loci) : 0;
    for (int e = 0; e < KINDS; e++)
        a.rate[e] = a.start * s->share[e] / loci * more, a.turned[e] = s->chances[3] * s->share[e];
    weighed kept[2][ALIGN_MOST];
    int64_t ranked[2] = {0};
    double best = -INFINITY;
    align_likely(s, b, &a);
    for (int strand_ = 0; s->given != ALIGN_ALL && strand_ < 2; strand_++) {
        ranked[strand_] = align_rank(s, &a, without, b, strand_, kept[strand_]);
        if (s->counts[2 * b + strand_] && a.list[0].odds > best) best = a.list[0].odds;
    }
    for (int strand_ = 0; strand_ < 2; strand_++)
        counts[strand_] = align_choose(s, &a, without, b, strand_, kept[strand_],
                                       ranked[strand_], best,
                                       a.o.diagonals + (strand_ ? counts[0] : 0));
    int64_t first = fill_up(counts[0]), D = first + fill_up(counts[1]);
    if (!D) return;
    a.of[0][0] = 0, a.of[0][1] = counts[0], a.of[1][0] = first, a.of[1][1] = first + counts[1];
    read_sources(&a.text, &a.o, without, counts, D);
    list_links(&a.text, &a.o, counts);
    align_sum(s, &a, b, counts, D, over, all_, alike, places, s->likelihood + b);
}

int genodiff_align(const align_args *s, int backward, int threads) {
    align_space nowhere;
    return tasks_run(align_task, s, s->batch, align_lay(s, &nowhere, 0), 0, threads);
}
