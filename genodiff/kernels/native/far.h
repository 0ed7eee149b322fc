/* Regions of the text of a far relative that a window may lie in, and the diagonals in them:
   `memory/far.py` has the definition. Scores are in eighths of a nat. A task is one window. */

#define FAR_STRETCH 1024
#define FAR_BIN 128
#define FAR_WIDTH 768
#define FAR_REGIONS 8
#define FAR_LOOKED (2 * FAR_REGIONS)
#define FAR_ACCEPTED 4
#define FAR_KEPT 96
#define FAR_PAD 64 /* lanes on either side of a row that no chain reaches */
#define FAR_ROW (FAR_WIDTH + 2 * FAR_PAD)
#define FAR_TEXT (FAR_STRETCH + FAR_WIDTH + 64)
#define FAR_NEVER (-20000)
#define FAR_LANES (SCAN / 2)

typedef int16_t vh __attribute__((vector_size(SCAN)));
typedef int16_t vh_u __attribute__((vector_size(SCAN), aligned(2), may_alias));

enum { FAR_MATCH, FAR_TRANSITION, FAR_TRANSVERSION, FAR_ABSENT, FAR_BREAK, FAR_NEAR, FAR_FAR,
       FAR_JUMP, FAR_ACCEPT, FAR_NOISE, FAR_WITHIN };

static inline int64_t far_bins(int64_t size) { return (size + FAR_STRETCH) / FAR_BIN + 2; }

#define FAR_ARRAYS(X)                                                                              \
    X(uint8_t, rows_of_bases, sift_bytes(FAR_STRETCH))                                             \
    X(uint8_t, codes, 2 * L) X(uint8_t, tells, 2 * L) X(int16_t, told, 2 * L)                      \
    X(int16_t, before, FAR_STRETCH * FAR_WIDTH)                                                    \
    X(int16_t, through, row) X(int16_t, last, row) X(int16_t, broken, row)                         \
    X(int16_t, on, row) X(int16_t, four, row) X(int16_t, eight, row)

typedef struct {
    uint64_t *votes[2];
    int32_t *sifted[2];
    int16_t *pays[5];
    FAR_ARRAYS(DECLARE_ARRAY)
} far_space;

static uintptr_t far_lay(const far_args *s, far_space *o, uintptr_t space) {
    int64_t L = s->L, row = FAR_ROW + FAR_LANES;
    for (int strand_ = 0; strand_ < 2; strand_++) {
        o->votes[strand_] = recall_cut(&space, far_bins(s->size) * 8);
        o->sifted[strand_] = recall_cut(&space, sift_places(FAR_STRETCH) * 4);
    }
    for (int k = 0; k < 5; k++) o->pays[k] = recall_cut(&space, FAR_TEXT * 2 + SCAN);
    FAR_ARRAYS(CUT_ARRAY)
    return space;
}

INLINE vh vh_larger(vh a, vh b) {
#if defined(__AVX512BW__)
    return (vh)_mm512_max_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (vh)_mm256_max_epi16((__m256i)a, (__m256i)b);
#else
    vh first = a > b;
    return (a & first) | (b & ~first);
#endif
}
INLINE vh vh_load(const int16_t *p) { return (vh) * (const vh_u *)p; }

static inline int16_t vh_largest(vh v) {
    int16_t best = v[0];
    for (int i = 1; i < FAR_LANES; i++) best = v[i] > best ? v[i] : best;
    return best;
}

/* The groups of both strands of a stretch that vote for each bin. */
static void far_count(const far_args *s, far_space *o, int64_t n, const uint8_t *const *codes,
                      const uint8_t *const *tells) {
    recall_args text = {.planes = s->planes, .plane_bytes = s->plane_bytes, .size = s->size, .L = n};
    int64_t informative = 0;
    for (int of = 0; of < 2; of++)
        informative = sift_plan(&text, codes[of], tells[of], o->rows_of_bases, o->sifted[of]);
    int64_t groups = informative / SIFT_GROUP > 1 ? informative / SIFT_GROUP : 1;
    for (int64_t d = -((n + 6) / 8 * 8); d < s->size; d += SIFTED) {
        sift_prepare(&text, o->rows_of_bases, d);
        for (int64_t g = 0; g < groups; g++) {
            int64_t some = g < groups - 1 ? SIFT_GROUP : informative - SIFT_GROUP * g;
            if (s->least_hits[some] > some) continue;
            for (int of = 0; of < 2; of++)
                for (int64_t byte = 0; byte < SIFTED / 8 && d + 8 * byte < s->size; byte += SCAN) {
                    union {
                        vq all;
                        uint64_t words[SCAN / 8];
                    } pass = {sift_group(o->rows_of_bases + byte, o->sifted[of] + SIFT_GROUP * g,
                                         (some + 7) / 8 * 8, s->least_hits[some])};
                    for (int i = 0; i < SCAN / 8; i++)
                        for (uint64_t left = pass.words[i]; left; left &= left - 1) {
                            int64_t found = d + 8 * byte + 64 * i + __builtin_ctzll(left);
                            if (found > -n && found < s->size)
                                o->votes[of][(found + FAR_STRETCH) / FAR_BIN] |= (uint64_t)1 << g;
                        }
                }
        }
    }
}

/* The first diagonals of the regions with most votes. */
static int64_t far_choose(const far_args *s, const uint64_t *votes, int64_t *regions) {
    int64_t n = 0, chosen[FAR_REGIONS];
    while (n < FAR_REGIONS) {
        int most = 0;
        for (int64_t b = 0; b < far_bins(s->size) - 1; b++) {
            int count = __builtin_popcountll(votes[b] | votes[b + 1]), is_near = 0;
            if (count <= most) continue;
            for (int64_t j = 0; j < n; j++)
                is_near |= llabs(b - chosen[j]) * FAR_BIN < FAR_WIDTH / 2;
            if (!is_near) most = count, chosen[n] = b;
        }
        if (!most) break;
        regions[n] = (chosen[n] + 1) * FAR_BIN - FAR_STRETCH - FAR_WIDTH / 2;
        n++;
    }
    return n;
}

/* By the base of the window (4: hidden), what each place of the text from `low` on pays. */
static void far_pay(const far_args *s, far_space *o, const int64_t *without, int64_t low) {
    recall_args text = {.planes = s->planes, .plane_bytes = s->plane_bytes};
    const int64_t *pay = s->pays;
    for (int64_t i = 0; i < FAR_TEXT; i += 8) {
        uint64_t eight = read_eight(&text, without, low + i, 0);
        for (int j = 0; j < 8; j++, eight >>= 8) {
            int c = eight & 7;
            for (int x = 0; x < 5; x++) {
                int64_t at = c > 3 ? FAR_ABSENT : c == x ? FAR_MATCH
                             : (c ^ x) == 2 ? FAR_TRANSITION : FAR_TRANSVERSION;
                o->pays[x][i + j] = (int16_t)(c < 4 && x > 3 ? 0 : pay[at]);
            }
        }
    }
}

/* The best chains that end at a place, in the place of those before it; returns the best. */
INLINE int16_t far_step(const far_args *s, far_space *o, const int16_t *pay, int16_t told,
                        int16_t best) {
    const vh zero = {0};
    vh broke = zero + (int16_t)s->pays[FAR_BREAK], near = zero + (int16_t)s->pays[FAR_NEAR],
       far = zero + (int16_t)s->pays[FAR_FAR];
    int64_t begun = best - s->pays[FAR_JUMP];
    vh begin = zero + (int16_t)(begun > 0 ? begun : 0), top = zero + best;
    int16_t *on = o->on, *four = o->four, *eight = o->eight;
    for (int64_t j = FAR_PAD; j < FAR_PAD + FAR_WIDTH; j += FAR_LANES) {
        vh last = vh_load(o->last + j), broken = vh_load(o->broken + j);
        *(vh_u *)(on + j) = (vh_u)vh_larger(last, broken - broke);
        *(vh_u *)(o->broken + j) = (vh_u)vh_larger(last, broken);
    }
    /* The largest of so many side by side, from each on. */
    for (int64_t j = 0; j < FAR_ROW - FAR_LANES; j += FAR_LANES)
        *(vh_u *)(four + j) = (vh_u)vh_larger(vh_larger(vh_load(on + j), vh_load(on + j + 1)),
                                              vh_larger(vh_load(on + j + 2), vh_load(on + j + 3)));
    for (int64_t j = 0; j < FAR_ROW - FAR_LANES; j += FAR_LANES)
        *(vh_u *)(eight + j) = (vh_u)vh_larger(vh_load(four + j), vh_load(four + j + 4));
    for (int64_t j = FAR_PAD; j < FAR_PAD + FAR_WIDTH; j += FAR_LANES) {
        vh here = vh_load(on + j);
        vh some = vh_larger(vh_load(eight + j - 4), vh_load(on + j + 4)), all = vh_load(on + j + 32);
        for (int k = -32; k < 32; k += 8) all = vh_larger(all, vh_load(eight + j + k));
        here = vh_larger(vh_larger(here, some - near), vh_larger(all - far, begin));
        here += vh_load(pay + j - FAR_PAD) + told;
        *(vh_u *)(o->last + j) = (vh_u)here;
        top = vh_larger(top, here);
    }
    return vh_largest(top);
}

static void far_begin(far_space *o) {
    for (int64_t j = 0; j < FAR_ROW; j++)
        o->last[j] = o->broken[j] = o->on[j] = FAR_NEVER;
}

/* The best chain of n places through a region. */
static int16_t far_forward(const far_args *s, far_space *o, const int64_t *without, int64_t low,
                           const uint8_t *codes, const int16_t *told, int64_t n) {
    int16_t best = 0;
    far_pay(s, o, without, low);
    far_begin(o);
    for (int64_t i = 0; i < n; i++) {
        best = far_step(s, o, o->pays[codes[i]] + i, told[i], best);
        memcpy(o->before + i * FAR_WIDTH, o->last + FAR_PAD, FAR_WIDTH * 2);
    }
    return best;
}

/* The diagonals of a region that are kept, after `far_forward`; returns how many. */
static int64_t far_keep(const far_args *s, far_space *o, int16_t best, int64_t low,
                        const uint8_t *codes, const int16_t *told, int64_t n, int64_t *kept) {
    int16_t other = 0;
    far_begin(o);
    for (int64_t j = 0; j < FAR_WIDTH; j++) o->through[j] = FAR_NEVER;
    for (int64_t i = n - 1; i >= 0; i--) {
        const int16_t *pay = o->pays[codes[i]] + i, *before = o->before + i * FAR_WIDTH;
        other = far_step(s, o, pay, told[i], other);
        for (int64_t j = 0; j < FAR_WIDTH; j += FAR_LANES) {
            vh here = vh_load(o->last + FAR_PAD + j) - (vh_load(pay + j) + told[i]);
            here = vh_larger(vh_load(o->through + j), here + vh_load(before + j));
            *(vh_u *)(o->through + j) = (vh_u)here;
        }
    }
    int64_t some = 0;
    for (int64_t within = s->pays[FAR_WITHIN]; within >= 0; within -= 8) {
        some = 0;
        for (int64_t j = 0; j < FAR_WIDTH; j++)
            if (o->through[j] >= best - within) {
                if (some < FAR_KEPT) kept[some] = low + j;
                some++;
            }
        if (some <= FAR_KEPT) break;
    }
    return some < FAR_KEPT ? some : FAR_KEPT;
}

typedef struct {
    int64_t best, low, strand, order;
} far_region;

static int compare_regions(const void *a, const void *b) {
    const far_region *x = a, *y = b;
    if (x->best != y->best) return x->best < y->best ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static void far_task(const void *args, int64_t b, void *own, int backward) {
    const far_args *s = args;
    far_space o;
    far_lay(s, &o, (uintptr_t)own);
    int64_t L = s->L, n_kept[2] = {0}, regions = 0;
    double choice = log(fmax((double)s->loci[b] / FAR_WIDTH, 1));
    for (int64_t i = 0; i < L; i++) {
        int code = s->codes[b * L + i];
        int64_t j = 2 * L - 1 - i;
        o.codes[i] = code, o.codes[j] = code > 3 ? 4 : 3 - code;
        o.tells[i] = o.tells[j] = s->tells[b * L + i];
        o.told[i] = o.told[j] = s->told[b * L + i];
    }
    for (int strand_ = 0; strand_ < 2; strand_++) s->counts[2 * b + strand_] = 0;
    for (int64_t begin = 0; begin < L; begin += FAR_STRETCH) {
        int64_t n = L - begin < FAR_STRETCH ? L - begin : FAR_STRETCH;
        const uint8_t *codes[2] = {o.codes + begin, o.codes + L + begin};
        const uint8_t *tells[2] = {o.tells + begin, o.tells + L + begin};
        for (int strand_ = 0; strand_ < 2; strand_++)
            memset(o.votes[strand_], 0, far_bins(s->size) * 8);
        if (s->sifts) far_count(s, &o, n, codes, tells);
        far_region tried[FAR_LOOKED] = {{0}};
        int64_t n_tried = 0;
        for (int strand_ = 0; strand_ < 2; strand_++) {
            int64_t low[FAR_REGIONS];
            const int64_t *found = s->found + (2 * b + strand_) * s->found_most;
            for (int64_t j = 0; !s->sifts && j < s->found_counts[2 * b + strand_]; j++) {
                int64_t d = found[j] + begin;
                if (d > -FAR_STRETCH && d < s->size)
                    o.votes[strand_][(d + FAR_STRETCH) / FAR_BIN] |= (uint64_t)1 << (j & 63);
            }
            int64_t some = far_choose(s, o.votes[strand_], low);
            for (int64_t r = 0; r < some; r++, n_tried++) {
                int16_t best = far_forward(s, &o, s->without + 2 * b, low[r], codes[strand_],
                                           o.told + strand_ * L + begin, n);
                tried[n_tried] = (far_region){best, low[r], strand_, n_tried};
            }
        }
        qsort(tried, FAR_LOOKED, sizeof(far_region), compare_regions);
        double least = s->pays[FAR_ACCEPT] + 8 * choice;
        least = fmax(least, (double)s->pays[FAR_NOISE] * tried[FAR_REGIONS].best);
        for (int64_t r = 0; r < FAR_ACCEPTED && tried[r].best >= least; r++) {
            int64_t strand_ = tried[r].strand, low = tried[r].low;
            const int16_t *told = o.told + strand_ * L + begin;
            int64_t *out = s->diagonals + (2 * b + strand_) * s->most + n_kept[strand_];
            int16_t best = far_forward(s, &o, s->without + 2 * b, low, codes[strand_], told, n);
            int64_t some = far_keep(s, &o, best, low, codes[strand_], told, n, out);
            for (int64_t j = 0; j < some; j++) out[j] -= begin;
            n_kept[strand_] += some, regions++;
        }
    }
    for (int strand_ = 0; strand_ < 2; strand_++) {
        int64_t *out = s->diagonals + (2 * b + strand_) * s->most, some = 0;
        qsort(out, n_kept[strand_], sizeof(int64_t), compare_places);
        for (int64_t j = 0; j < n_kept[strand_]; j++)
            if (!j || out[j] != out[some - 1]) out[some++] = out[j];
        s->counts[2 * b + strand_] = some;
    }
    s->regions[b] = regions;
}

int genodiff_far(const far_args *s, int backward, int threads) {
    far_space nowhere;
    return tasks_run(far_task, s, s->batch, far_lay(s, &nowhere, 0), 0, threads);
}
