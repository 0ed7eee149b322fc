/* The table of the words that begin at every fourth place of a text, without a byte for each base:
   `memory/sampled_table.py` says what its parts are.

   A task has the words from one number to another. It counts them, writes their ends and jumps, and
   fills their places in. Two tasks share at most the 64 bits in which the one's words end and the
   other's begin. */

#define GROUP 32 /* words of a jump */
#define OUTSIDE UINT32_MAX

static inline int64_t first_end(const uint64_t *ends, int64_t bit) {
    int64_t i = bit >> 6;
    uint64_t x = ends[i] & ~(uint64_t)0 << (bit & 63);
    while (!x) x = ends[++i];
    return 64 * i + __builtin_ctzll(x);
}
/* The end after `n` others, from a bit on. */
static inline int64_t nth_end(const uint64_t *ends, int64_t bit, int n) {
    int64_t i = bit >> 6;
    uint64_t x = ends[i] & ~(uint64_t)0 << (bit & 63);
    for (int some; (some = __builtin_popcountll(x)) <= n; x = ends[++i]) n -= some;
#if defined(__BMI2__)
    return 64 * i + __builtin_ctzll(_pdep_u64((uint64_t)1 << n, x));
#else
    while (n--) x &= x - 1;
    return 64 * i + __builtin_ctzll(x);
#endif
}
/* Where the places of a word stand in `at`: the first and one beyond the last. */
static inline void find_row(const uint64_t *ends, const uint32_t *jumps, uint32_t word,
                            int64_t *first, int64_t *last) {
    int64_t bit = jumps[word / GROUP], rest = word % GROUP;
    if (rest) bit = nth_end(ends, bit, (int)rest - 1) + 1;
    *first = bit - word, *last = first_end(ends, bit) - word;
}

/* The bits of x at even places. */
static inline uint32_t spread_bits(uint32_t x) {
    x = (x | x << 8) & 0x00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0fu;
    x = (x | x << 2) & 0x33333333u;
    return (x | x << 1) & 0x55555555u;
}

/* The word of k bases from `place` on, the first base the first digit; OUTSIDE where one is none. */
static inline uint32_t read_word(const sampled_args *s, int64_t place) {
    int64_t at = place + PAD_BASES, shift = at & 7;
    const uint8_t *text = s->planes + (at >> 3);
    uint32_t planes[3], all = (1u << s->k) - 1;
    for (int i = 0; i < 3; i++) memcpy(planes + i, text + i * s->plane_bytes, 4);
    if ((planes[2] >> shift & all) != all) return OUTSIDE;
    uint32_t w = spread_bits(planes[0] >> shift & all) << 1 | spread_bits(planes[1] >> shift & all);
    w = __builtin_bswap32(w); /* now the digits are turned round */
    w = (w & 0x0f0f0f0fu) << 4 | (w >> 4 & 0x0f0f0f0fu);
    w = (w & 0x33333333u) << 2 | (w >> 2 & 0x33333333u);
    return w >> (32 - 2 * s->k);
}

/* The first word of a piece. */
static inline uint64_t piece_start(const sampled_args *s, int64_t piece) {
    return ((uint64_t)1 << (2 * s->k)) / GROUP * piece / s->pieces * GROUP;
}

/* Words of each piece, into totals[piece + 1]. */
static void sampled_count(const sampled_args *s) {
    for (int64_t place = 0; place < s->size; place += s->step) {
        uint32_t word = read_word(s, place);
        if (word == OUTSIDE) continue;
        uint64_t group = word / GROUP, groups = ((uint64_t)1 << (2 * s->k)) / GROUP;
        int64_t piece = (int64_t)(group * s->pieces / groups); /* or the next, of unequal ones */
        while (piece + 1 < s->pieces && piece_start(s, piece + 1) <= word) piece++;
        s->totals[piece + 1]++;
    }
}

static void sampled_task(const void *args, int64_t piece, void *own, int fill) {
    const sampled_args *s = args;
    if (!fill) {
        sampled_count(s);
        return;
    }
    uint64_t from = piece_start(s, piece), to = piece_start(s, piece + 1);
    uint32_t *next = own, all = (uint32_t)s->totals[piece];
    memset(next, 0, (to - from) * 4);
    for (int64_t place = 0; place < s->size; place += s->step) {
        uint32_t word = read_word(s, place);
        if (word >= from && word < to) next[word - from]++;
    }
    for (uint64_t word = from; word < to; word++) {
        if (word % GROUP == 0) s->jumps[word / GROUP] = (uint32_t)(all + word);
        uint32_t count = next[word - from];
        next[word - from] = all;
        all += count;
        uint64_t end = all + word;
        __atomic_fetch_or(s->ends + (end >> 6), (uint64_t)1 << (end & 63), __ATOMIC_RELAXED);
    }
    for (int64_t place = 0; place < s->size; place += s->step) {
        uint32_t word = read_word(s, place);
        if (word >= from && word < to) s->at[next[word - from]++] = (uint32_t)place;
    }
}

static int sampled_run(const sampled_args *s, int fill, int threads) {
    size_t most = (((size_t)1 << (2 * s->k)) / GROUP / s->pieces + 1) * GROUP;
    return tasks_run(sampled_task, s, fill ? s->pieces : 1, fill ? most * 4 : 0, fill, threads);
}
