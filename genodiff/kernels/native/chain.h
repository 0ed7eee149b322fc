/* Draws under constraints: `genodiff/constraints/chain.py` has the same in NumPy, and the words.

   A layer has states, and `moves` has four for each: the states of the next layer after A, C, G and
   T, -1 where no completion satisfies everything. beta has a 0 before each layer, for that state.
   `gains` has the weight of each move, where moves have any. What may underflow is given up.

   Where a run of known bases leads all states to one, the two sides do not depend on each other:
   only stretches between such cuts that have a base to draw are summed over. */
#define CHAIN_SMALL 1e-150
#define CHAIN_NEAR 1e-3 /* messages are scaled where their largest entry is further from 1 */
#define CHAIN_LOST 1e-200
#define CHAIN_MET 1e-3
#define CHAIN_RUN 3 /* known bases in a row from which on a cut is looked for */

typedef struct {
    double *alpha, *beta;     /* of all layers */
    double *now[2], *next[2]; /* of one layer, on either side of a boundary */
    double *sums;             /* four of one layer */
    uint8_t *open;            /* positions whose base is not known */
    int32_t *cut;             /* the one state of each boundary that has one, else -1 */
    int32_t *set[2], *stamp;  /* states of one layer */
} chain_space;

static inline int64_t chain_size(const chain_args *s, int64_t f) {
    return s->first[f + 1] - s->first[f];
}
static inline const int32_t *chain_moves(const chain_args *s, int64_t f) {
    return s->tables + 4 * s->begin[f];
}
static inline const double *chain_gains(const chain_args *s, int64_t f) {
    return s->gains ? s->gains + 4 * s->begin[f] : 0;
}
/* The weight of a move; the compiler makes a loop of its own for those without any. */
static inline double chain_gain(const double *gains, int64_t i) { return gains ? gains[i] : 1; }
static inline double *chain_alpha(const chain_args *s, const chain_space *c, int64_t f) {
    return c->alpha + s->first[f];
}
static inline double *chain_beta(const chain_args *s, const chain_space *c, int64_t f) {
    return c->beta + s->first[f] + f + 1;
}

typedef double vec4 __attribute__((vector_size(32)));
typedef int64_t mask4 __attribute__((vector_size(32)));
static inline vec4 chain_select(mask4 which, vec4 a, vec4 b) {
    return (vec4)((which & (mask4)a) | (~which & (mask4)b));
}

/* The largest of n numbers from 0 on, and the smallest above 0. */
static inline double chain_range(const double *x, int64_t n, double *small) {
    double top = 0, low = HUGE_VAL;
    vec4 tops = {0, 0, 0, 0}, lows = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL}, now;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        memcpy(&now, x + i, sizeof(now));
        tops = chain_select(now > tops, now, tops);
        lows = chain_select((now > 0) & (now < lows), now, lows);
    }
    for (int k = 0; k < 4; k++) {
        top = tops[k] > top ? tops[k] : top;
        low = lows[k] < low ? lows[k] : low;
    }
    for (; i < n; i++) {
        top = x[i] > top ? x[i] : top;
        low = x[i] > 0 && x[i] < low ? x[i] : low;
    }
    *small = low;
    return top;
}

/* Keep the largest number near 1; whether there is one, and none above 0 is too small. */
static inline int chain_scale(double *x, int64_t n) {
    double small, top = chain_range(x, n, &small);
    if (top < CHAIN_NEAR || top > 1 / CHAIN_NEAR) {
        double by = 1 / top;
        for (int64_t i = 0; i < n; i++) x[i] *= by;
        small *= by;
    }
    return top > 0 && small >= CHAIN_SMALL;
}

/* The base that is certain, or -1. */
static inline int chain_known(const double *p) {
    int some = 0, base = 0;
    for (int a = 0; a < 4; a++)
        if (p[a] > 0) some++, base = a;
    return some == 1 ? base : -1;
}

/* The message before a position from the one after it. */
static inline void chain_back(const int32_t *moves, const double *gains, int64_t n, const double *p,
                              const double *after, double *before) {
    int known = chain_known(p);
    if (known >= 0)
        for (int64_t i = 0; i < n; i++) {
            int64_t at = 4 * i + known;
            before[i] = p[known] * chain_gain(gains, at) * after[moves[at]];
        }
    else
        for (int64_t i = 0; i < n; i++) {
            double x[4];
            for (int a = 0; a < 4; a++)
                x[a] = p[a] * chain_gain(gains, 4 * i + a) * after[moves[4 * i + a]];
            before[i] = (x[0] + x[1]) + (x[2] + x[3]);
        }
}

/* The message after a position, of m states, from the one before it. Many states move to the same
   few, and a sum in memory waits for the one before: so there are four, one after the other. */
static inline void chain_on(const int32_t *moves, const double *gains, int64_t n, int64_t m,
                            const double *p, const double *before, double *after, double *sums) {
    int known = chain_known(p);
    memset(sums, 0, (size_t)(4 * (m + 1)) * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        const int32_t *to = moves + 4 * i;
        double *sum = sums + (i & 3) * (m + 1) + 1; /* what dies is summed too, before it */
        double x = before[i];
        if (!(x > 0)) continue;
        if (known >= 0)
            sum[to[known]] += x * p[known] * chain_gain(gains, 4 * i + known);
        else
            for (int a = 0; a < 4; a++) sum[to[a]] += x * p[a] * chain_gain(gains, 4 * i + a);
    }
    for (int64_t i = 0; i < m; i++) {
        const double *sum = sums + 1 + i;
        after[i] = (sum[0] + sum[m + 1]) + (sum[2 * (m + 1)] + sum[3 * (m + 1)]);
    }
}

/* The weight of each base: of the paths through it. */
static inline void chain_weigh(const int32_t *moves, const double *gains, int64_t n,
                               const double *p, const double *alpha, const double *beta,
                               double *w) {
    w[0] = w[1] = w[2] = w[3] = 0;
    for (int64_t i = 0; i < n; i++)
        if (alpha[i] > 0)
            for (int a = 0; a < 4; a++)
                w[a] += alpha[i] * chain_gain(gains, 4 * i + a) * beta[moves[4 * i + a]];
    for (int a = 0; a < 4; a++) w[a] *= p[a];
}

/* Half the sum of what two laws differ by, given by weights. */
static inline double chain_differ(const double *one, const double *other) {
    double a = 0, b = 0, sum = 0;
    for (int i = 0; i < 4; i++) a += one[i], b += other[i];
    for (int i = 0; i < 4; i++) sum += fabs(one[i] / a - other[i] / b);
    return sum / 2;
}

/* Scale both messages so that they and `with` make 1; half of what they differ by under it. */
static inline double chain_apart(double *const *x, const double *with, int64_t n) {
    double sum[2] = {0, 0}, apart = 0;
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < n; i++) sum[k] += x[k][i] * with[i];
        for (int64_t i = 0; i < n; i++) x[k][i] /= sum[k];
    }
    for (int64_t i = 0; i < n; i++) apart += fabs(x[0][i] - x[1][i]) * with[i];
    return apart / 2;
}

static inline void chain_swap(chain_space *c) {
    for (int k = 0; k < 2; k++) {
        double *x = c->now[k];
        c->now[k] = c->next[k], c->next[k] = x;
    }
}

/* `_hangs_on` of chain.py, from one cut to the next. */
static int chain_hangs(const chain_args *s, chain_space *c, int64_t from, int64_t f, int64_t to,
                       int edge, double limit) {
    int64_t left = 0, right = 0, n = chain_size(s, f), g;
    for (g = from; g < to; g++) *(g < f ? &left : &right) += c->open[g] && g != f;
    double found = 1, apart = 0, row[2][4], w[2][4];
    if (limit <= found || limit > found + (double)(left + right)) return limit <= found;
    for (int a = 0; a < 4; a++) {
        row[0][a] = a <= edge ? s->p[4 * f + a] : 0;
        row[1][a] = a <= edge ? 0 : s->p[4 * f + a];
    }
    for (int k = 0; k < 2; k++)
        chain_on(chain_moves(s, f), chain_gains(s, f), n, chain_size(s, f + 1), row[k],
                 chain_alpha(s, c, f), c->now[k], c->sums);
    for (g = f + 1; g < to; g++) {
        const double *p = s->p + 4 * g, *ahead = chain_beta(s, c, g + 1);
        const double *gains = chain_gains(s, g);
        n = chain_size(s, g);
        apart = chain_apart(c->now, chain_beta(s, c, g), n);
        if (found >= limit || found + (double)left + apart * (double)right < limit ||
            apart * (double)right < CHAIN_MET)
            break;
        for (int k = 0; k < 2; k++) {
            if (c->open[g]) chain_weigh(chain_moves(s, g), gains, n, p, c->now[k], ahead, w[k]);
            chain_on(chain_moves(s, g), gains, n, chain_size(s, g + 1), p, c->now[k], c->next[k],
                     c->sums);
        }
        if (c->open[g]) found += chain_differ(w[0], w[1]), right--;
        chain_swap(c);
    }
    if (g < to) found += apart * (double)right;
    for (int k = 0; k < 2; k++)
        chain_back(chain_moves(s, f), chain_gains(s, f), chain_size(s, f), row[k],
                   chain_beta(s, c, f + 1), c->now[k]);
    for (g = f - 1; g >= from; g--) {
        const double *p = s->p + 4 * g, *gains = chain_gains(s, g);
        apart = chain_apart(c->now, chain_alpha(s, c, g + 1), chain_size(s, g + 1));
        if (found >= limit || found + apart * (double)left < limit) break;
        n = chain_size(s, g);
        for (int k = 0; k < 2; k++) {
            if (c->open[g])
                chain_weigh(chain_moves(s, g), gains, n, p, chain_alpha(s, c, g), c->now[k], w[k]);
            chain_back(chain_moves(s, g), gains, n, p, c->now[k], c->next[k]);
        }
        if (c->open[g]) found += chain_differ(w[0], w[1]), left--;
        chain_swap(c);
    }
    return !(found < limit);
}

/* `choose_base` of chain.py. */
static int chain_choose(const double *w, double u, double *gaps) {
    double cdf[4], here = log(u > 1e-300 ? u : 1e-300) - log1p(-u);
    int symbol = 0;
    for (int a = 0; a < 4; a++) cdf[a] = w[a] + (a ? cdf[a - 1] : 0);
    for (int a = 0; a < 3; a++) {
        int inner = cdf[a] > 0 && cdf[a] < cdf[3];
        symbol += cdf[a] <= u * cdf[3];
        gaps[a] = inner ? fabs(log(cdf[a]) - log(cdf[3] - cdf[a]) - here) : HUGE_VAL;
    }
    while (!(w[symbol] > 0) && symbol) symbol--; /* rounding, at the end of the line */
    return symbol;
}

/* Find the cuts: follow all states of a layer through a run of known bases. 0 where none is left. */
static int chain_cuts(const chain_args *s, chain_space *c) {
    int64_t F = s->F, end;
    for (int64_t f = 0; f <= F; f++) c->cut[f] = chain_size(s, f) == 1 ? 0 : -1;
    memset(c->stamp, 0, (size_t)s->most * sizeof(int32_t));
    for (int64_t f = 0; f < F; f = end + 1) {
        for (end = f; end < F && !c->open[end];) end++;
        if (end - f < CHAIN_RUN) continue;
        int64_t n = chain_size(s, f);
        for (int64_t i = 0; i < n; i++) c->set[0][i] = (int32_t)i;
        for (int64_t g = f; g < end; g++) {
            const int32_t *moves = chain_moves(s, g) + chain_known(s->p + 4 * g);
            int32_t *now = c->set[(g - f) & 1], *next = c->set[(g - f + 1) & 1];
            int64_t m = 0;
            for (int64_t i = 0; i < n; i++) {
                int32_t to = moves[4 * now[i]];
                if (to < 0 || c->stamp[to] == (int32_t)(g + 1)) continue;
                c->stamp[to] = (int32_t)(g + 1);
                next[m++] = to;
            }
            if (!m) return 0;
            if (m == 1) c->cut[g + 1] = next[0];
            n = m;
        }
    }
    return 1;
}

/* Draw the due bases from one cut to the next; whether it was done. */
static int chain_draw_between(const chain_args *s, chain_space *c, int64_t from, int64_t to,
                              double error, int *close) {
    int64_t last = -1;
    for (int64_t f = from; f < to; f++)
        if (s->due[f]) last = f;
    if (last < 0) return 1;
    memset(chain_beta(s, c, to), 0, (size_t)chain_size(s, to) * sizeof(double));
    memset(chain_alpha(s, c, from), 0, (size_t)chain_size(s, from) * sizeof(double));
    chain_beta(s, c, to)[c->cut[to]] = chain_alpha(s, c, from)[c->cut[from]] = 1;
    for (int64_t f = to - 1; f >= from; f--) {
        double *beta = chain_beta(s, c, f);
        int64_t n = chain_size(s, f);
        chain_back(chain_moves(s, f), chain_gains(s, f), n, s->p + 4 * f, chain_beta(s, c, f + 1),
                   beta);
        if (!chain_scale(beta, n)) return 0;
    }
    for (int64_t f = from; f <= last; f++) {
        const int32_t *moves = chain_moves(s, f);
        const double *gains = chain_gains(s, f);
        double *alpha = chain_alpha(s, c, f), *next = chain_alpha(s, c, f + 1);
        double *p = s->p + 4 * f, w[4], gaps[3];
        int64_t n = chain_size(s, f), m = chain_size(s, f + 1);
        if (s->due[f]) {
            chain_weigh(moves, gains, n, p, alpha, chain_beta(s, c, f + 1), w);
            if (w[0] + w[1] + w[2] + w[3] < CHAIN_LOST) return 0;
            int symbol = chain_choose(w, s->u[f], gaps);
            for (int edge = 0; edge < 3 && error > 0 && !*close; edge++)
                if (gaps[edge] < HUGE_VAL)
                    *close = chain_hangs(s, c, from, f, to, edge, gaps[edge] / (2 * error));
            for (int a = 0; a < 4; a++) p[a] = a == symbol;
            c->open[f] = 0;
            s->symbols[f] = (int8_t)symbol;
        }
        chain_on(moves, gains, n, m, p, alpha, next, c->sums);
        if (!chain_scale(next, m)) return 0;
    }
    return 1;
}

/* Whether the draws were made; `*close` is set where an error could change one. */
static int chain_draw(const chain_args *s, chain_space *c, double error, int *close) {
    int64_t F = s->F, to;
    for (int64_t f = 0; f < F; f++) {
        int some = 0;
        for (int a = 0; a < 4; a++) {
            double p = s->p[4 * f + a];
            if (p > 0 && p < CHAIN_SMALL) return 0;
            some += p > 0;
        }
        c->open[f] = some > 1;
    }
    for (int64_t f = 0; f <= F; f++) chain_beta(s, c, f)[-1] = 0;
    if (!chain_cuts(s, c)) return 0;
    for (int64_t from = 0; from < F; from = to) {
        for (to = from + 1; c->cut[to] < 0;) to++;
        if (!chain_draw_between(s, c, from, to, error, close)) return 0;
    }
    return 1;
}

/* Scratch space of this thread's that stays for the next draw: fresh memory of the system's would
   cost a third of a draw. */
#define CHAIN_KEPT ((size_t)4 << 20)
static double *chain_kept(void) {
    static __thread double *kept;
    return kept ? kept : (kept = malloc(CHAIN_KEPT));
}

int genodiff_chain(const chain_args *s, int backward, int threads) {
    int64_t states = s->first[s->F + 1], n = 2 * states + s->F + 1 + 8 * (s->most + 1);
    int64_t small = s->F + 1 + 3 * s->most;
    size_t bytes = (size_t)n * sizeof(double) + (size_t)small * sizeof(int32_t) + (size_t)s->F + 1;
    double *space = bytes <= CHAIN_KEPT ? chain_kept() : malloc(bytes), *cut = space;
    if (!space) return 1;
    chain_space c = {cut, cut + states};
    cut += 2 * states + s->F + 1;
    /* A 0 before each, for the dead state; a swap keeps it there. */
    for (int k = 0; k < 4; k++, cut += s->most + 1) {
        cut[0] = 0;
        *(k < 2 ? &c.now[k] : &c.next[k - 2]) = cut + 1;
    }
    c.sums = cut;
    c.cut = (int32_t *)(cut + 4 * (s->most + 1));
    c.set[0] = c.cut + s->F + 1, c.set[1] = c.set[0] + s->most, c.stamp = c.set[1] + s->most;
    c.open = (uint8_t *)(c.stamp + s->most);
    int close = 0;
    s->told[0] = chain_draw(s, &c, *s->error, &close);
    s->told[1] = close;
    if (bytes > CHAIN_KEPT) free(space);
    return 0;
}
