/* What the text has on diagonals, eight places at a time, and which diagonals are within reach of
   each other.

   The diagonals of a window stand side by side, those of strand 0 first. Each strand is filled up to
   whole EIGHTS with diagonals that hold no base, so they add nothing to any sum. */

/* The eight bits of `bits`, one to a byte. */
static inline uint64_t bits_to_bytes(uint64_t bits) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t each = (bits & 0xff) * ones & 0x8040201008040201u;
    return (each + 0x7f * ones) >> 7 & ones;
}

/* Eight codes of the text from `place` on, a byte each; 4 is no base. Turned, they are complements
   (in the same order). */
static inline uint64_t read_eight(const recall_args *s, const int64_t *without, int64_t place,
                                  int turned) {
    int64_t at = place + PAD_BASES, plane = s->plane_bytes;
    const uint8_t *text = s->planes + (at >> 3);
    uint16_t planes[3];
    for (int i = 0; i < 3; i++) memcpy(planes + i, text + i * plane, 2);
    int shift = at & 7;
    uint64_t high = planes[0] >> shift, low = planes[1] >> shift, base = planes[2] >> shift;
    if (place + 8 > without[0] && place < without[1])
        for (int i = 0; i < 8; i++)
            if (place + i >= without[0] && place + i < without[1]) base &= ~((uint64_t)1 << i);
    if (turned) high = ~high, low = ~low;
    return bits_to_bytes(high & base) << 1 | bits_to_bytes(low & base) | bits_to_bytes(~base) << 2;
}

/* Byte i of word j becomes byte j of word i. */
static inline void turn_eights(uint64_t *w) {
    static const uint64_t mask[3] = {0x00000000ffffffffu, 0x0000ffff0000ffffu,
                                     0x00ff00ff00ff00ffu};
    for (int step = 0, far = 4; step < 3; step++, far /= 2)
        for (int i = 0; i < 8; i++)
            if (!(i & far)) {
                uint64_t a = w[i], b = w[i + far];
                w[i] = (a & mask[step]) | (b & mask[step]) << 8 * far;
                w[i + far] = (a >> 8 * far & mask[step]) | (b & ~mask[step]);
            }
}

/* Diagonals of a strand, filled up to whole eights. */
static inline int64_t fill_up(int64_t n) { return (n + 7) / 8 * 8; }

/* (L, D): what each place would copy on each diagonal; 4 is no base. */
static void read_sources(const recall_args *s, recall_space *o, const int64_t *without,
                         const int64_t *counts, int64_t D) {
    for (int64_t m = 0; m < D; m += 8) {
        int turned = m >= fill_up(counts[0]);
        const int64_t *of = o->diagonals + (turned ? counts[0] + m - fill_up(counts[0]) : m);
        int64_t some = turned ? counts[0] + counts[1] - (of - o->diagonals) : counts[0] - m;
        for (int64_t i = 0; i < s->L; i += 8) {
            uint64_t w[8];
            for (int j = 0; j < 8; j++)
                w[j] = j < some ? read_eight(s, without, of[j] + i, turned) : 0x0404040404040404u;
            turn_eights(w);
            for (int j = 0; j < 8 && i + j < s->L; j++) {
                int64_t row = turned ? s->L - 1 - i - j : i + j;
                memcpy(o->sources + row * D + m, w + j, 8);
            }
        }
    }
}

/* Those that have others of their strand within reach, into `linked`, and for each of these the
   first within reach (its place in `linked` and in a row), how many, and shift times g of their
   distances: 0 for itself. */
static void list_links(const recall_args *s, recall_space *o, const int64_t *counts) {
    double scale = 0;
    for (int j = 1; j <= REACH; j++) scale += 2.0 / j;
    int64_t g_end = 0;
    o->n_linked = 0;
    for (int strand_ = 0; strand_ < 2; strand_++) {
        const int64_t *diagonals = o->diagonals + (strand_ ? counts[0] : 0);
        int64_t first = 0, last = 0, begun = o->n_linked, n = counts[strand_],
                row = strand_ ? fill_up(counts[0]) : 0;
        for (int64_t m = 0; m < n; m++) {
            while (diagonals[m] - diagonals[first] > REACH) first++;
            while (last < n && diagonals[last] - diagonals[m] <= REACH) last++;
            if (last - first == 1) continue;
            /* Whatever is within reach of one that is linked is linked itself, so it is listed, too. */
            reach *link = o->linked + o->n_linked++;
            *link = (reach){.at = row + m, .first = row + first, .n = last - first, .g = g_end};
            for (int64_t j = first; j < last; j++) {
                int64_t far = llabs(diagonals[j] - diagonals[m]);
                o->pair_g[g_end++] = far ? s->chances[2] / (scale * far) : 0;
            }
        }
        int64_t listed = begun; /* where `first` stands in the list */
        for (int64_t p = begun; p < o->n_linked; p++) {
            while (o->linked[listed].at < o->linked[p].first) listed++;
            o->linked[p].listed = listed;
        }
    }
}

/* Σ_j g_j from_j. */
INLINE vd weigh_links(const double *g, const vd *from, int64_t n) {
    vd a = {0}, b = {0};
    int64_t j = 0;
    for (; j + 1 < n; j += 2) a += from[j] * g[j], b += from[j + 1] * g[j + 1];
    return j < n ? a + b + from[j] * g[j] : a + b;
}

/* (L, 5): the likelihood of each place by what its source shows: hit, miss, or 0 for no base. */
static void write_likely(const recall_args *s, const uint8_t *codes, const double *evidence,
                         vd *likely) {
    vd hit, miss;
    for (int e = 0; e < KINDS_OF_COPY; e++)
        hit[e] = 1 - s->divergence[e], miss[e] = s->divergence[e] / 3;
    for (int64_t i = 0; i < s->L; i++, likely += 5) {
        vd is = hit / evidence[i], is_not = miss / evidence[i];
        for (int c = 0; c < 4; c++) likely[c] = codes[i] == c ? is : is_not;
        if (codes[i] > 3)
            for (int c = 0; c < 4; c++) likely[c] = (vd){0} + 1;
        likely[4] = (vd){0};
    }
}

INLINE double over_classes(vd v) {
    double sum = 0;
    for (int e = 0; e < KINDS_OF_COPY; e++) sum += v[e];
    return sum;
}

/* ln of the odds of each of WEIGHED diagonals alone: `copying.weigh_diagonals`. The number of
   places between two looks at the scale is small enough that no sum overflows. */
#define WEIGHED 8
#define LOOK 8
#define HUGE_ODDS 1e150
static void weigh_diagonals(const recall_args *s, const recall_space *o, const int64_t *without,
                            vd rate, const int64_t *diagonals, double *odds) {
    double stay = 1 - s->chances[1] - s->chances[2], scale[WEIGHED] = {0};
    vd states[WEIGHED], total[WEIGHED], entry[WEIGHED];
    const vd *likely = o->likely;
    for (int k = 0; k < WEIGHED; k++) states[k] = total[k] = (vd){0}, entry[k] = rate;
    for (int64_t i = 0; i < s->L; i += LOOK) {
        uint64_t codes[WEIGHED];
        for (int k = 0; k < WEIGHED; k++) codes[k] = read_eight(s, without, diagonals[k] + i, 0);
        int64_t end = i + LOOK < s->L ? LOOK : s->L - i;
        for (int64_t j = 0; j < end; j++, likely += 5)
            for (int k = 0; k < WEIGHED; k++) {
                states[k] = (states[k] * stay + entry[k]) * likely[codes[k] & 7];
                total[k] += states[k];
                codes[k] >>= 8;
            }
        for (int k = 0; k < WEIGHED; k++)
            if (over_classes(total[k]) > HUGE_ODDS) {
                states[k] /= HUGE_ODDS, total[k] /= HUGE_ODDS, entry[k] /= HUGE_ODDS;
                scale[k] += log(HUGE_ODDS);
            }
    }
    for (int k = 0; k < WEIGHED; k++)
        odds[k] = log(s->chances[1] * over_classes(total[k])) + scale[k];
}
