/* An adaptive mixture of contexts and copies: the chance of each base of a text given all before
   it. `evaluation/adaptive.py` has the equations, and the same in plain Python.

   Codes are 0..3 for A, C, G, T and 4 for an end or an N, so 3 - x is the complement of x. The
   memory (`text`) is the train sequence, and after it what has been scored, if it may grow. */

#define ORDERS 10
static const int order_of[ORDERS] = {1, 2, 3, 4, 6, 8, 9, 10, 11, 12};
#define COPIES 64       /* places of the memory that are followed at a time */
#define TRIED 128       /* occurrences of a seed that are looked at */
#define BEST 3          /* copies that are predictors of their own */
#define RECENT 32       /* bases whose hits and misses a copy remembers */
#define ADMITTED 14     /* misses among them with which a place becomes a copy */
#define DROPPED 11      /* misses in the last 16 with more of which it is given up */
#define CERTAIN 0.9999  /* no copy is believed more */
#define FLOOR 1e-5      /* share of the uniform distribution in every chance */
#define RATE 0.003      /* of learning the weights */
#define LENGTHS 10      /* classes of how far a copy has been followed */
#define MEMORY 1000.0   /* trials after which old ones are forgotten, in the chance of a hit */
#define CLASSES 240     /* sets of weights: 20 of trust, 3 of agreement, 4 of how many copies */
#define PREDICTORS (2 * ORDERS + BEST + 1)

typedef struct {
    uint16_t *of[ORDERS]; /* counts of the four bases after each context */
} counts;

typedef struct {
    int64_t at;     /* the place in the memory whose base it says is next */
    int64_t length; /* bases that it has been followed for */
    uint32_t missed; /* a bit for each recent base, the latest lowest */
    int step;       /* 1 forwards, -1 backwards along the other strand */
} copy;

typedef struct {
    counts train, own;
    uint8_t *text;
    uint32_t *head, *next; /* the latest place after each seed, and the one before each place */
    int64_t n, most;
    int seed;
    double hit[17][6][LENGTHS], trials[17][6][LENGTHS];
    double weight[CLASSES][PREDICTORS];
    copy copies[COPIES];
    int n_copies;
} mixing;

static int counts_make(counts *c) {
    for (int m = 0; m < ORDERS; m++)
        if (!(c->of[m] = calloc((size_t)4 << (2 * order_of[m]), sizeof(uint16_t)))) return 1;
    return 0;
}

static void counts_free(counts *c) {
    for (int m = 0; m < ORDERS; m++) free(c->of[m]);
}

static inline uint16_t *counts_at(const counts *c, int m, uint64_t context) {
    return c->of[m] + 4 * (context & (((uint64_t)1 << (2 * order_of[m])) - 1));
}

static inline void counts_add(const counts *c, int m, uint64_t context, int x) {
    uint16_t *n = counts_at(c, m, context);
    if (++n[x] == UINT16_MAX)
        for (int a = 0; a < 4; a++) n[a] >>= 1;
}

/* Count `x` after the bases of `before`, of which `known` are there, and the same on the other
   strand: there the complement of the k bases that end in x, backwards, is the context of the
   complement of the base before them. */
static void counts_learn(const counts *c, uint64_t before, int64_t known, int x) {
    uint64_t with = before << 2 | x, other = 0;
    int done = 0;
    for (int m = 0; m < ORDERS; m++) {
        int k = order_of[m];
        if (known < k) return;
        counts_add(c, m, before, x);
        for (; done < k; done++, with >>= 2) other = other << 2 | (3 - (with & 3));
        counts_add(c, m, other, 3 - (int)(with & 3));
    }
}

/* The number of the seed at the memory's end, or of its reverse complement; -1 where it has none.
 */
static int64_t seed_number(const mixing *s, int64_t end, int backwards) {
    uint64_t number = 0;
    if (end < s->seed) return -1;
    for (int i = 0; i < s->seed; i++) {
        int x = s->text[backwards ? end - 1 - i : end - s->seed + i];
        if (x > 3) return -1;
        number = number << 2 | (backwards ? 3 - x : x);
    }
    return (int64_t)number;
}

/* Enter the place `end` under the seed before it. */
static void seed_add(mixing *s, int64_t end) {
    int64_t number = seed_number(s, end, 0);
    s->next[end] = 0;
    if (number < 0) return;
    s->next[end] = s->head[number];
    s->head[number] = (uint32_t)end;
}

/* Which of the last `known` bases before `end` the place would have missed. */
static uint32_t misses_of(const mixing *s, const uint8_t *before, int64_t known, int64_t at,
                          int step) {
    uint32_t missed = 0;
    for (int i = 0; i < RECENT; i++) {
        int64_t place = at - step * (int64_t)(i + 1);
        int x = place < 0 || place >= s->n ? 4 : s->text[place];
        if (x > 3 || i >= known) return missed | ~(uint32_t)0 << i;
        if ((step > 0 ? x : 3 - x) != before[-1 - i]) missed |= (uint32_t)1 << i;
    }
    return missed;
}

static void copies_admit(mixing *s, const uint8_t *before, int64_t known, int64_t at, int step) {
    if (at < 0 || at >= s->n || s->text[at] > 3) return;
    for (int j = 0; j < s->n_copies; j++)
        if (s->copies[j].at == at && s->copies[j].step == step) return;
    uint32_t missed = misses_of(s, before, known, at, step);
    if (__builtin_popcount(missed) <= ADMITTED)
        s->copies[s->n_copies++] = (copy){at, s->seed, missed, step};
}

/* New copies: the latest places of the memory where the last bases stand, on either strand. */
static void copies_find(mixing *s, const uint8_t *before, int64_t known) {
    uint64_t number = 0, other = 0;
    if (known < s->seed) return;
    for (int i = 0; i < s->seed; i++) {
        number = number << 2 | before[i - s->seed];
        other = other << 2 | (3 - before[-1 - i]);
    }
    uint32_t at = s->head[number];
    for (int i = 0; at && i < TRIED && s->n_copies < COPIES; i++, at = s->next[at])
        copies_admit(s, before, known, at, 1);
    at = s->head[other];
    for (int i = 0; at && i < TRIED && s->n_copies < COPIES; i++, at = s->next[at])
        copies_admit(s, before, known, (int64_t)at - s->seed - 1, -1);
}

/* The class of a copy: misses in the last 16 bases, in the 16 before, and its length. */
static void copy_class(const copy *c, int class[3]) {
    static const int upto[LENGTHS - 1] = {16, 20, 24, 32, 48, 64, 128, 256, 512};
    int old = __builtin_popcount(c->missed >> 16), length = 0;
    while (length < LENGTHS - 1 && c->length >= upto[length]) length++;
    class[0] = __builtin_popcount(c->missed & 0xffff);
    class[1] = old == 0 ? 0 : old == 1 ? 1 : old == 2 ? 2 : old <= 4 ? 3 : old <= 8 ? 4 : 5;
    class[2] = length;
}

static inline int copy_says(const mixing *s, const copy *c) {
    return c->step > 0 ? s->text[c->at] : 3 - s->text[c->at];
}

/* A predictor is the logarithms of its four chances, less their mean. */
static inline void centre(double *v) {
    double mean = 0.25 * (v[0] + v[1] + v[2] + v[3]);
    for (int a = 0; a < 4; a++) v[a] -= mean;
}

static void from_counts(const counts *c, int m, uint64_t before, int64_t known, double *v) {
    v[0] = v[1] = v[2] = v[3] = 0.0;
    if (known < order_of[m]) return;
    const uint16_t *n = counts_at(c, m, before);
    double pseudo = order_of[m] <= 8 ? 1.0 : 0.5;
    for (int a = 0; a < 4; a++) v[a] = log(n[a] + pseudo); /* the sum is a constant */
    centre(v);
}

/* The copies' predictors, and which set of weights goes with them. */
static int from_copies(mixing *s, double (*v)[4]) {
    double trust[COPIES], vote[4] = {1.0, 1.0, 1.0, 1.0};
    int rank[COPIES], n = 0;
    for (int j = 0; j < s->n_copies; j++) {
        int class[3], says = copy_says(s, &s->copies[j]), q;
        copy_class(&s->copies[j], class);
        double p = s->hit[class[0]][class[1]][class[2]];
        trust[j] = p < CERTAIN ? p : CERTAIN;
        if (p <= 0.25) continue; /* it says less than nothing */
        vote[says] += 3.0 * trust[j] / (1.0 - trust[j]) - 1.0; /* the odds of a hit, above 1 */
        for (q = n++; q > 0 && trust[rank[q - 1]] < trust[j]; q--) rank[q] = rank[q - 1];
        rank[q] = j;
    }
    for (int i = 0; i < BEST; i++) {
        v[i][0] = v[i][1] = v[i][2] = v[i][3] = 0.0;
        if (i >= n) continue;
        double p = trust[rank[i]];
        v[i][copy_says(s, &s->copies[rank[i]])] = log(3.0 * p / (1.0 - p));
        centre(v[i]);
    }
    for (int a = 0; a < 4; a++) v[BEST][a] = log(vote[a]);
    centre(v[BEST]);
    if (!n) return 0;
    double p = trust[rank[0]];
    int sure = (int)(10 * p) + (p > 0.97) + (p > 0.99) + (p > 0.995);
    int agree = n == 1 ? 0 : 1 + (copy_says(s, &s->copies[rank[0]]) ==
                                  copy_says(s, &s->copies[rank[1]]));
    int many = n > 8 ? 3 : n > 4 ? 2 : n > 2 ? 1 : 0;
    return sure * 12 + agree * 4 + many;
}

/* What happened: every copy hit or missed, and those that miss too often are given up. */
static void copies_learn(mixing *s, int x) {
    int left = 0;
    for (int j = 0; j < s->n_copies; j++) {
        copy c = s->copies[j];
        int class[3], hit = copy_says(s, &c) == x;
        copy_class(&c, class);
        double *p = &s->hit[class[0]][class[1]][class[2]];
        double *n = &s->trials[class[0]][class[1]][class[2]];
        *p += (hit - *p) / (*n + 1.5);
        if (*n < MEMORY) *n += 1.0;
        c.missed = c.missed << 1 | !hit;
        c.length++;
        c.at += c.step;
        if (c.at < 0 || c.at >= s->n || s->text[c.at] > 3) continue;
        if (__builtin_popcount(c.missed & 0xffff) <= DROPPED) s->copies[left++] = c;
    }
    s->n_copies = left;
}

/* The nats of `x`, after the weights have learned from it. */
static double mix(double (*v)[4], double *weight, int x) {
    double p[4] = {0.0, 0.0, 0.0, 0.0}, most = -INFINITY, sum = 0.0;
    for (int i = 0; i < PREDICTORS; i++)
        for (int a = 0; a < 4; a++) p[a] += weight[i] * v[i][a];
    for (int a = 0; a < 4; a++) most = p[a] > most ? p[a] : most;
    for (int a = 0; a < 4; a++) sum += p[a] = exp(p[a] - most);
    for (int a = 0; a < 4; a++) p[a] /= sum;
    double nats = -log((1.0 - FLOOR) * p[x] + 0.25 * FLOOR);
    for (int i = 0; i < PREDICTORS; i++) {
        double along = v[i][x]; /* the gradient of log p[x] with respect to the weight */
        for (int a = 0; a < 4; a++) along -= p[a] * v[i][a];
        weight[i] += RATE * along;
    }
    return nats;
}

/* The nats of each base of `x`. With `grow`, what has been scored is remembered too. */
static void mixing_score(mixing *s, const uint8_t *x, int64_t n, int grow, double *nats) {
    uint64_t before = 0;
    int64_t known = 0;
    s->n_copies = 0;
    for (int64_t i = 0; i < n; i++) {
        double v[PREDICTORS][4];
        if (x[i] > 3) {
            known = s->n_copies = 0;
            if (nats) nats[i] = 0.0;
            if (grow) s->text[s->n++] = 4, s->next[s->n] = 0;
            continue;
        }
        if (s->n_copies < COPIES) copies_find(s, x + i, known);
        for (int m = 0; m < ORDERS; m++) {
            from_counts(&s->train, m, before, known, v[m]);
            from_counts(&s->own, m, before, known, v[ORDERS + m]);
        }
        int class = from_copies(s, v + 2 * ORDERS);
        double found = mix(v, s->weight[class], x[i]);
        if (nats) nats[i] = found;
        /* The memory grows first, so that a copy can follow into what was just read. */
        if (grow) s->text[s->n++] = x[i];
        copies_learn(s, x[i]);
        if (grow) {
            seed_add(s, s->n);
            counts_learn(&s->own, before, known, x[i]);
        }
        before = before << 2 | x[i];
        known++;
    }
}

static void mixing_start(mixing *s) {
    for (int a = 0; a < 17; a++)
        for (int b = 0; b < 6; b++)
            for (int c = 0; c < LENGTHS; c++) {
                double p = 1.0 - (a + 0.3) / 18.0;
                s->hit[a][b][c] = p > 0.3 ? p : 0.3;
                s->trials[a][b][c] = 4.0;
            }
    for (int i = 0; i < CLASSES; i++)
        for (int j = 0; j < PREDICTORS; j++) s->weight[i][j] = 0.15;
}

static void mixing_learn(mixing *s, const uint8_t *train, int64_t n) {
    uint64_t before = 0;
    int64_t known = 0;
    for (s->n = 0; s->n < n;) {
        int x = s->text[s->n] = train[s->n];
        s->n++;
        seed_add(s, s->n);
        if (x > 3) {
            known = 0;
            continue;
        }
        counts_learn(&s->train, before, known, x);
        before = before << 2 | x;
        known++;
    }
}

/* Forget what was remembered after the train sequence. */
static void mixing_forget(mixing *s, int64_t n) {
    for (int m = 0; s->n > n && m < ORDERS; m++)
        memset(s->own.of[m], 0, ((size_t)4 << (2 * order_of[m])) * sizeof(uint16_t));
    for (int64_t number; s->n > n; s->n--)
        if ((number = seed_number(s, s->n, 0)) >= 0) s->head[number] = s->next[s->n];
}

/* It has neither a backward pass nor threads: what each base costs depends on all before it. */
int genodiff_mixing(const mixing_args *a, int backward, int threads) {
    mixing *s = calloc(1, sizeof(mixing));
    int64_t more = a->n_fit > a->n ? a->n_fit : a->n;
    int bad = !s;
    if (!bad) {
        s->seed = (int)a->seed;
        s->text = malloc(a->n_train + more + 1);
        s->next = malloc((a->n_train + more + 1) * sizeof(uint32_t));
        s->head = calloc((size_t)1 << (2 * s->seed), sizeof(uint32_t));
        bad = counts_make(&s->train) || counts_make(&s->own) || !s->text || !s->next || !s->head;
    }
    if (!bad) {
        mixing_start(s);
        mixing_learn(s, a->train, a->n_train);
        mixing_score(s, a->fit, a->n_fit, (int)a->grow, 0);
        mixing_forget(s, a->n_train);
        mixing_score(s, a->text, a->n, (int)a->grow, a->nats);
    }
    if (s) {
        counts_free(&s->train), counts_free(&s->own);
        free(s->text), free(s->next), free(s->head), free(s);
    }
    return bad;
}
