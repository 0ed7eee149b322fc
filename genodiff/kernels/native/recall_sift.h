/* Diagonals that agree with a group of the window's informative places more often than by chance;
   `memory/search.py` has the definition.

   For each of the four bases and each shift of 0 to 7 places there is a row of bits: whether the
   text has that base there. What place i says of the diagonals d, d + 1, ... are then the bits of
   one row, from a whole byte on. They are added in columns: bit j of all counts is a vector. A
   count begins at 64 less the agreements that are asked for, so it passes where it overflows. */

#define SIFT_GROUP 32

typedef uint64_t vq __attribute__((vector_size(SCAN)));
typedef uint64_t vq_u __attribute__((vector_size(SCAN), aligned(1), may_alias));

/* a + b + c: the sum into `sum`, the carry is returned. */
INLINE vq add_bits(vq *sum, vq a, vq b, vq c) {
#if defined(__AVX512F__) /* gcc does not see that each of the two is one instruction */
    *sum = (vq)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
    return (vq)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0xe8);
#else
    vq carry = (a & b) | (c & (a ^ b));
    *sum = a ^ b ^ c;
    return carry;
#endif
}

/* The rows of a block whose first diagonal is d, a multiple of 8. */
static void sift_prepare(const recall_args *s, uint8_t *rows, int64_t d) {
    int64_t row = sift_row(s->L), from = (d + PAD_BASES) >> 3, some = s->plane_bytes - from;
    some = some < row ? some : row;
    for (int plane = 0; plane < 3; plane++) {
        memcpy(rows + plane * row, s->planes + plane * s->plane_bytes + from, some);
        memset(rows + plane * row + some, 0, row - some);
    }
    for (int shift = 0; shift < 8; shift++) {
        uint8_t *equal = rows + (3 + shift) * row; /* base b: 8 b rows further on */
        for (int64_t byte = 0; byte < row; byte += SCAN) {
            vq of[3];
            for (int plane = 0; plane < 3; plane++) {
                const uint8_t *at = rows + plane * row + byte;
                /* The second shift in two steps: one of 64 is undefined. */
                of[plane] = *(const vq_u *)at >> shift | *(const vq_u *)(at + 8) << (63 - shift) << 1;
            }
            /* Where there is no base, neither of the first two bits is set. */
            *(vq_u *)(equal + byte) = of[2] & ~of[0] & ~of[1];
            *(vq_u *)(equal + 8 * row + byte) = of[1] & ~of[0];
            *(vq_u *)(equal + 16 * row + byte) = of[0] & ~of[1];
            *(vq_u *)(equal + 24 * row + byte) = of[0] & of[1];
        }
    }
}

/* Which of a vector of diagonals pass with a group of n places (a multiple of 8). */
INLINE vq sift_group(const uint8_t *rows, const int32_t *at, int64_t n, int64_t least) {
    vq bits[6], pass = {0};
    for (int j = 0; j < 6; j++) bits[j] = (vq){0} - (uint64_t)((64 - least) >> j & 1);
    for (int64_t i = 0; i < n; i += 8) {
        vq x[8], twos[2], fours[2], more;
        for (int j = 0; j < 8; j++) x[j] = *(const vq_u *)(rows + at[i + j]);
        for (int j = 0; j < 2; j++) {
            twos[0] = add_bits(bits, bits[0], x[4 * j], x[4 * j + 1]);
            twos[1] = add_bits(bits, bits[0], x[4 * j + 2], x[4 * j + 3]);
            fours[j] = add_bits(bits + 1, bits[1], twos[0], twos[1]);
        }
        more = add_bits(bits + 2, bits[2], fours[0], fours[1]);
        for (int j = 3; j < 6; j++) {
            vq carry = bits[j] & more;
            bits[j] ^= more;
            more = carry;
        }
        pass |= more;
    }
    return pass;
}

/* Where the bits of the informative places stand in the rows, the last group filled up to whole
   eights with a row of zeros. Returns how many are informative. */
static int64_t sift_plan(const recall_args *s, const uint8_t *codes, const uint8_t *tells,
                         uint8_t *rows, int32_t *at) {
    int64_t row = sift_row(s->L), zeros = (3 + 4 * 8) * row, n = 0;
    memset(rows + zeros, 0, row);
    for (int64_t i = 0; i < s->L; i++)
        if (tells[i]) at[n++] = (int32_t)((3 + 8 * codes[i] + (i & 7)) * row + (i >> 3));
    for (int64_t end = n; end & 7; end++) at[end] = (int32_t)zeros;
    return n;
}

/* Both strands of a window, `k` and the next, on each block of the text. */
static void sift_all(seeker *k) {
    const recall_args *s = k->s;
    uint8_t *rows = k->o->rows_of_bases;
    int32_t *at[2] = {k->o->sifted, k->o->sifted + sift_places(s->L)};
    int64_t n = k->w->informative, groups = n / SIFT_GROUP > 1 ? n / SIFT_GROUP : 1;
    for (int of = 0; of < 2; of++) sift_plan(s, k[of].w->codes, k[of].w->tells, rows, at[of]);
    for (int64_t d = -((s->L + 6) / 8 * 8); d < s->size; d += SIFTED) {
        sift_prepare(s, rows, d);
        for (int of = 0; of < 2; of++)
            for (int64_t byte = 0; byte < SIFTED / 8 && d + 8 * byte < s->size; byte += SCAN) {
                union {
                    vq all;
                    uint64_t words[SCAN / 8];
                } pass = {{0}};
                for (int64_t g = 0; g < groups; g++) {
                    int64_t some = g < groups - 1 ? SIFT_GROUP : n - SIFT_GROUP * g;
                    if (s->least_hits[some] <= some)
                        pass.all |= sift_group(rows + byte, at[of] + SIFT_GROUP * g,
                                               (some + 7) / 8 * 8, s->least_hits[some]);
                }
                for (int i = 0; i < SCAN / 8; i++)
                    for (uint64_t left = pass.words[i]; left; left &= left - 1) {
                        int64_t found = d + 8 * byte + 64 * i + __builtin_ctzll(left);
                        if (found > -s->L && found < s->size) seeker_try(k + of, found);
                    }
            }
    }
}
