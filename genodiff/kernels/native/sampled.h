/* The table of the words that begin at every fourth place of a text, without a byte for each base:
   `memory/tables.py` says what its parts are.

   Words are dealt to pieces by their first bits, and their places written to the part of `at` that
   is the piece's. A task then sorts a piece by its words, within a cache, and writes their ends and
   jumps. Two tasks share at most the 64 bits in which the one's words end and the other's begin. */

#define WORD_GROUP 32 /* words of a jump */
#define SAMPLE_STEP 4
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
static inline void find_row(const uint64_t *ends, const uint64_t *jumps, uint32_t word,
                            int64_t *first, int64_t *last) {
    int64_t bit = (int64_t)jumps[word / WORD_GROUP], rest = word % WORD_GROUP;
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

/* The piece of a word; there are 2^piece_bits. */
static inline int64_t find_piece(const sampled_args *s, uint32_t word) {
    return word >> (2 * s->k - s->piece_bits);
}

/* The words of each piece are counted into totals[piece + 1] or, where `next` says where each piece
   goes on, dealt to it. */
static void sampled_deal(const sampled_args *s, int64_t *next) {
    for (int64_t place = 0; place < s->size; place += SAMPLE_STEP) {
        uint32_t word = read_word(s, place);
        if (word == OUTSIDE) continue;
        if (next) s->at[next[find_piece(s, word)]++] = (uint32_t)(place / SAMPLE_STEP);
        else s->totals[find_piece(s, word) + 1]++;
    }
}

static void sampled_task(const void *args, int64_t piece, void *own, int backward) {
    const sampled_args *s = args;
    int64_t begin = s->totals[piece], n = s->totals[piece + 1] - begin;
    uint32_t size = (uint32_t)1 << (2 * s->k - s->piece_bits), from = (uint32_t)piece * size,
             all = 0, *next = own, *words = next + size, *places = words + n;
    memset(next, 0, size * sizeof *next);
    memcpy(places, s->at + begin, n * sizeof *places);
    for (int64_t i = 0; i < n; i++) next[words[i] = read_word(s, (int64_t)SAMPLE_STEP * places[i]) - from]++;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t word = from + i, count = next[i];
        if (word % WORD_GROUP == 0) s->jumps[word / WORD_GROUP] = begin + all + word;
        next[i] = all;
        all += count;
        uint64_t end = (uint64_t)begin + all + word;
        __atomic_fetch_or(s->ends + (end >> 6), (uint64_t)1 << (end & 63), __ATOMIC_RELAXED);
    }
    for (int64_t i = 0; i < n; i++) s->at[begin + next[words[i]]++] = places[i];
}

/* With `fill` the table is filled; before, the words of each piece are counted. */
int genodiff_sampled(const sampled_args *s, int fill, int threads) {
    int64_t pieces = (int64_t)1 << s->piece_bits, most = 0;
    int64_t *next = fill ? malloc(pieces * sizeof *next) : 0;
    if (fill && !next) return 1;
    if (fill) memcpy(next, s->totals, pieces * sizeof *next);
    sampled_deal(s, next);
    free(next);
    if (!fill) return 0;
    for (int64_t i = 0; i < pieces; i++)
        if (s->totals[i + 1] - s->totals[i] > most) most = s->totals[i + 1] - s->totals[i];
    size_t bytes = (((size_t)1 << (2 * s->k - s->piece_bits)) + 2 * most) * sizeof(uint32_t);
    return tasks_run(sampled_task, s, pieces, bytes, 0, threads);
}
