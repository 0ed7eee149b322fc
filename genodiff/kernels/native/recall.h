/* What a memory says of masked windows: `genodiff/memory/` has the equations, and the same in NumPy.

   A task is one window. Its evidence is measured, diagonals of the text are found on both strands,
   and the model of copies sums over paths through them. Sums are in double, always in the same
   order, so the bits depend neither on the other windows nor on the threads. */

#define PAD_BASES 8192 /* places without a base before and after the text */
#define KINDS_OF_COPY 4      /* of divergence; those that are not used have a share of 0 */
#define REACH 32       /* the longest insertion or deletion */
#define CENTRES 12     /* diagonals of a strand that get neighbours */
#define INDELS 8
#define FORETOLD 0.55
#define THRESHOLD 104
#define PENALTY 8
#define LEAST_SEEN 3
#define HIT_CAP 4000
#define VERIFY 4

typedef double vd __attribute__((vector_size(KINDS_OF_COPY * 8)));
typedef uint64_t word_u __attribute__((aligned(1), may_alias));
typedef int16_t lane_u __attribute__((may_alias));

/* A strand of a window: codes, its evidence, and planes shifted by 0 to 7 bits, so that words of
   the text can be loaded from any byte. */
typedef struct {
    uint8_t *codes, *tells;
    double *evidence;
    uint64_t *high[8], *low[8], *seen[8];
    int16_t *lanes[8]; /* places that tell something in each lane of 16 */
    int64_t words, informative, lane;
} strand;

typedef struct {
    int64_t score, at;
} scored_diagonal;

/* A lane of 16 places: where its two bytes are, what the window has there, each byte four times;
   how often a lane of the window's size, and one of 64, tells something, where it ends here. */
typedef struct {
    int64_t at;
    uint32_t high[2], low[2], seen[2], near, far;
    int64_t ends;
} scan_lane;

/* A diagonal with others within reach: where it stands in a row; the first of those within reach in
   a row and in the list of linked ones; how many they are, itself among them; their weights. */
typedef struct {
    int64_t at, first, listed, n, g;
} reach;

/* Arrays of a thread's scratch space: of what, their name, how many. */
#define RECALL_ARRAYS(X)                                                                           \
    X(double, states, S) X(double, next_states, S) X(double, filtered, 2 * L) /* of the chain */   \
    X(uint64_t, counts, words) /* mismatches, four lanes to a word */                              \
    X(uint64_t, table, table_slots(find_budget(s, 64))) /* met diagonals, a hash table */          \
    X(scan_lane, plan, words * 4) /* of one shift */                                               \
    /* Of a block, and where each place is in them: recall_sift.h. */                              \
    X(uint8_t, rows_of_bases, s->sparse >= 0 ? sift_bytes(L) : 0)                                  \
    X(int32_t, sifted, s->sparse >= 0 ? 2 * sift_places(L) : 0)                                    \
    X(int64_t, seeds, L) X(double, odds, s->most + 8)                                              \
    X(int64_t, diagonals, D) /* of strand 0, then of strand 1 */                                   \
    X(vd, likely, L * 5) /* of a strand */                                                         \
    X(uint8_t, sources, L * D)                                                                     \
    X(vd, rows, held) X(vd, marks, (L / PLACES_HELD + 1) * D) /* of the forward pass */            \
    X(double, background, L) X(double, total, L) X(vd, now, D) X(vd, passed, D)                    \
    X(reach, linked, D) /* (n_linked) */                                                           \
    X(double, pair_g, D * (2 * REACH + 1))
#define DECLARE_ARRAY(type, name, count) type *name;
/* Cut off the scratch space, in whole lines of the cache. */
#define CUT_ARRAY(type, name, count) o->name = recall_cut(&space, (count) * (int64_t)sizeof(type));

typedef struct {
    strand strands[2];
    scored_diagonal *heap[2]; /* of each strand */
    RECALL_ARRAYS(DECLARE_ARRAY)
    int64_t n_linked;
    const uint32_t *filled; /* of the text, shared: see recall_scan.h */
} recall_space;

static inline int64_t most_found(const recall_args *s) {
    return s->most + CENTRES * 2 * INDELS;
}
/* Diagonals to score on a strand: the fewer places tell something, the more. */
static inline int64_t find_budget(const recall_args *s, int64_t lane) {
    return s->scored * (lane / 16);
}
static inline int64_t table_slots(int64_t budget) {
    int64_t slots = 1024;
    while (slots < 2 * (budget + HIT_CAP + 2)) slots *= 2; /* a word may go HIT_CAP beyond */
    return slots;
}

/* Places whose forward rows, of D states each, are held together. */
#define STATES_HELD 32768
#define PLACES_HELD 16
static inline int64_t stretch_places(int64_t L, int64_t D) {
    int64_t places = STATES_HELD / D > PLACES_HELD ? STATES_HELD / D : PLACES_HELD;
    return places < L ? places : L;
}

static inline void *recall_cut(uintptr_t *space, int64_t bytes) {
    void *cut = (void *)*space;
    *space += (uintptr_t)(bytes + 63) / 64 * 64;
    return cut;
}

#define SIFTED 8192 /* diagonals of a block of recall_sift.h */
/* Bytes of a row: a block, the window, and what a shift reads beyond. */
static inline int64_t sift_row(int64_t L) { return (SIFTED / 8 + L / 8 + 16 + 63) / 64 * 64; }
static inline int64_t sift_bytes(int64_t L) { return (3 + 4 * 8 + 1) * sift_row(L); }
static inline int64_t sift_places(int64_t L) { return L + 8; }

/* Lay the scratch space out from `space` on; returns its end. */
static uintptr_t recall_lay(const recall_args *s, recall_space *o, uintptr_t space) {
    int64_t L = s->L, words = (L + 7 + 63) / 64, D = 2 * ((most_found(s) + 7) / 8 * 8),
            S = (int64_t)1 << (2 * s->order), held = PLACES_HELD * D;
    held = held > STATES_HELD ? held : STATES_HELD;
    for (int strand_ = 0; strand_ < 2; strand_++) {
        strand *w = o->strands + strand_;
        o->heap[strand_] = recall_cut(&space, s->most * (int64_t)sizeof(scored_diagonal));
        w->words = words;
        w->codes = recall_cut(&space, L), w->tells = recall_cut(&space, L);
        w->evidence = recall_cut(&space, L * 8);
        for (int shift = 0; shift < 8; shift++) {
            w->high[shift] = recall_cut(&space, words * 8);
            w->low[shift] = recall_cut(&space, words * 8);
            w->seen[shift] = recall_cut(&space, words * 8);
            w->lanes[shift] = recall_cut(&space, words * 8);
        }
    }
    RECALL_ARRAYS(CUT_ARRAY)
    return space;
}

/* p(x_i | visible bases before i), hidden bases summed over; 1 at hidden places. */
static void chain_filter(const recall_args *s, recall_space *o, const uint8_t *x, double *out) {
    int64_t S = (int64_t)1 << (2 * s->order), Q = S / 4, known = 0, context = 0;
    double *f = o->states, *g = o->next_states;
    memcpy(f, s->first, S * 8);
    for (int64_t i = 0; i < s->L; i++) {
        if (known >= s->order && x[i] < 4) { /* one state has all the chance */
            out[i] = s->next[context * 4 + x[i]];
            context = (context % Q) * 4 + x[i];
            continue;
        }
        if (known >= s->order) {
            memset(f, 0, S * 8);
            f[context] = 1;
        }
        double total = 0;
        memset(g, 0, S * 8);
        for (int64_t r = 0; r < Q; r++)
            for (int a = 0; a < 4; a++) {
                if (x[i] < 4 && x[i] != a) continue;
                double sum = 0;
                for (int h = 0; h < 4; h++) sum += f[h * Q + r] * s->next[(h * Q + r) * 4 + a];
                g[r * 4 + a] = sum;
                total += sum;
            }
        out[i] = x[i] < 4 ? total : 1;
        for (int64_t c = 0; c < S; c++) g[c] /= total;
        double *swap = f;
        f = g, g = swap;
        known = x[i] < 4 ? known + 1 : 0;
        context = (context % Q) * 4 + (x[i] & 3);
    }
}

/* The planes of one strand's informative places. */
static void strand_prepare(const recall_args *s, strand *w) {
    w->informative = 0;
    for (int64_t i = 0; i < s->L; i++)
        w->informative += w->tells[i] = w->codes[i] < 4 && w->evidence[i] < FORETOLD;
    w->lane = w->informative > 0.45 * s->L ? 16 : w->informative > 0.17 * s->L ? 32 : 64;
    for (int shift = 0; shift < 8; shift++) {
        memset(w->high[shift], 0, w->words * 8), memset(w->low[shift], 0, w->words * 8);
        memset(w->seen[shift], 0, w->words * 8), memset(w->lanes[shift], 0, w->words * 8);
        for (int64_t i = 0; i < s->L; i++) {
            if (!w->tells[i]) continue;
            int64_t at = i + shift;
            w->high[shift][at >> 6] |= (uint64_t)(w->codes[i] >> 1) << (at & 63);
            w->low[shift][at >> 6] |= (uint64_t)(w->codes[i] & 1) << (at & 63);
            w->seen[shift][at >> 6] |= (uint64_t)1 << (at & 63);
            w->lanes[shift][at >> 4]++;
        }
    }
}

static void window_prepare(const recall_args *s, recall_space *o, const uint8_t *x,
                           double *evidence) {
    strand *there = o->strands, *back = o->strands + 1;
    for (int64_t i = 0; i < s->L; i++) {
        there->codes[i] = x[i];
        back->codes[s->L - 1 - i] = x[i] < 4 ? 3 - x[i] : x[i];
    }
    chain_filter(s, o, there->codes, o->filtered);
    chain_filter(s, o, back->codes, o->filtered + s->L);
    for (int64_t i = 0; i < s->L; i++) {
        int64_t j = s->L - 1 - i;
        evidence[i] = there->evidence[i] = back->evidence[j] =
            sqrt(o->filtered[i] * o->filtered[s->L + j]);
    }
    strand_prepare(s, there), strand_prepare(s, back);
}
