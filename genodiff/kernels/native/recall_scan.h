/* Every diagonal of a strand. Those that cannot reach the score that is asked for are left out by a
   bound, SCAN diagonals at a time; the others are scored one by one. So the result is that of scoring
   them all.

   Diagonals d, d + 8, d + 16, ... meet the window at the same shift, and the text one byte further on.
   So the bytes of a load are the same 8 places of the window on SCAN diagonals, and each byte of the
   sums belongs to one diagonal.

   The bound is the sum of what is positive, over lanes of the window's own size and over lanes of 64.
   Bytes are too small for the former where lanes are long: values are divided by 1, 2 or 4, and
   rounded up.

   Where the text has no base at all under a window, no diagonal has a score. A genome with long runs
   of N has many such places, so each line of the text knows which is the next one with a base. */

#if defined(__AVX512BW__)
#define SCAN 64
#elif defined(__AVX2__)
#define SCAN 32
#else
#define SCAN 16
#endif

typedef uint8_t vb __attribute__((vector_size(SCAN)));
typedef uint8_t vb_u __attribute__((vector_size(SCAN), aligned(1), may_alias));
typedef uint16_t vb_pairs __attribute__((vector_size(SCAN)));
typedef uint32_t vb_fours __attribute__((vector_size(SCAN)));

/* a - b, or 0 where b is larger; a + b, or 255; the smaller of both. */
#if defined(__AVX512BW__)
#define B_OP(name, a, b) ((vb)_mm512_##name##_epu8((__m512i)(a), (__m512i)(b)))
#elif defined(__AVX2__)
#define B_OP(name, a, b) ((vb)_mm256_##name##_epu8((__m256i)(a), (__m256i)(b)))
#endif
#ifdef B_OP
static inline vb b_less(vb a, vb b) { return B_OP(subs, a, b); }
static inline vb b_more(vb a, vb b) { return B_OP(adds, a, b); }
static inline vb b_min(vb a, vb b) { return B_OP(min, a, b); }
#else
static inline vb b_min(vb a, vb b) {
    vb less = (vb)(a < b);
    return (a & less) | (b & ~less);
}
static inline vb b_less(vb a, vb b) { return a - b_min(a, b); }
static inline vb b_more(vb a, vb b) { return b_min(a, ~b) + b; }
#endif

static inline vb b_splat(uint32_t four_times) { return (vb)(four_times - (vb_fours){0}); }

/* How many bits of both bytes are set. */
static inline vb b_count(vb a, vb b) {
#if defined(__AVX512BW__) || defined(__AVX2__)
    static const uint8_t bits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
    vb a_high = (vb)((vb_pairs)a >> 4) & 15, b_high = (vb)((vb_pairs)b >> 4) & 15;
#if defined(__AVX512BW__)
    __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)bits));
#define B_LOOK(v) ((vb)_mm512_shuffle_epi8(t, (__m512i)(v)))
#else
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bits));
#define B_LOOK(v) ((vb)_mm256_shuffle_epi8(t, (__m256i)(v)))
#endif
    return (B_LOOK(a & 15) + B_LOOK(a_high)) + (B_LOOK(b & 15) + B_LOOK(b_high));
#else
    a -= (a >> 1) & 0x55, b -= (b >> 1) & 0x55;
    a = (a & 0x33) + ((a >> 2) & 0x33), b = (b & 0x33) + ((b >> 2) & 0x33);
    a += b;
    return (a & 15) + (a >> 4);
#endif
}

/* The lanes at a shift that tell something, into `out`; returns how many. */
static int64_t scan_plan(const strand *w, int shift, scan_lane *out) {
    const int16_t *lanes = w->lanes[shift];
    const uint8_t *high = (const uint8_t *)w->high[shift], *low = (const uint8_t *)w->low[shift],
                  *seen = (const uint8_t *)w->seen[shift];
    int64_t n = 0, size = w->lane / 16, near = 0, far = 0, begun = 0;
    for (int64_t k = 0; k < w->words * 4; k++) {
        if (k % size == 0) near = 0;
        if (k % 4 == 0) far = 0, begun = n;
        near += lanes[k], far += lanes[k];
        if (lanes[k]) {
            scan_lane *new = out + n++;
            *new = (scan_lane){.at = 2 * k};
            for (int j = 0; j < 2; j++) {
                new->high[j] = high[2 * k + j] * 0x01010101u;
                new->low[j] = low[2 * k + j] * 0x01010101u;
                new->seen[j] = seen[2 * k + j] * 0x01010101u;
            }
        }
        if (n == begun) continue;
        scan_lane *last = out + n - 1;
        if (k % size == size - 1 && near && !(last->ends & 1))
            last->ends |= 1, last->near = (uint32_t)(11 * near + size - 1) / size * 0x01010101u;
        if (k % 4 == 3) last->ends |= 2, last->far = (uint32_t)far * 0x01010101u;
    }
    return n;
}

/* Which of SCAN diagonals may have a score of `least`: a byte that is not 0 for each. */
static inline vb scan_block(const recall_args *s, const scan_lane *plan, int64_t n, int64_t size,
                            int64_t byte, int64_t least) {
    const uint8_t *text = s->planes + byte;
    int64_t plane = s->plane_bytes, least_near = (least + size - 1) / size,
            least_far = (least + PENALTY + 8) / 9;
    /* A miss costs 32 / size; more misses than fit into a byte leave nothing of a lane. */
    int down = size == 1 ? 5 : size == 2 ? 4 : 3;
    vb near = {0}, far = {0}, missed = {0}, missed_far = {0};
    vb most = b_splat((255u >> down) * 0x01010101u);
    for (int64_t i = 0; i < n; i++) {
        const scan_lane *lane = plan + i;
        vb miss[2];
        for (int j = 0; j < 2; j++) {
            const uint8_t *at = text + lane->at + j;
            vb high = *(const vb_u *)at, low = *(const vb_u *)(at + plane),
               base = *(const vb_u *)(at + 2 * plane);
            miss[j] = ((high ^ b_splat(lane->high[j])) | (low ^ b_splat(lane->low[j])) | ~base) &
                      b_splat(lane->seen[j]);
        }
        missed += b_count(miss[0], miss[1]);
        if (lane->ends & 1) {
            vb cost = (vb)((vb_pairs)b_min(missed, most) << down);
            near = b_more(near, b_less(b_splat(lane->near), cost));
            missed_far += missed;
            missed ^= missed;
        }
        if (lane->ends & 2) {
            far = b_more(far, b_less(b_splat(lane->far), missed_far + missed_far));
            missed_far ^= missed_far;
        }
    }
    least_near = least_near < 255 ? least_near : 255, least_far = least_far < 255 ? least_far : 255;
    return (vb)(near >= b_splat((uint32_t)least_near * 0x01010101u)) |
           (vb)(far >= b_splat((uint32_t)least_far * 0x01010101u));
}

/* For each line of 64 bytes of the text (and one beyond): it or the next one that has a base. */
static void list_filled(const recall_args *s, uint32_t *filled) {
    const uint8_t *base = s->planes + 2 * s->plane_bytes;
    int64_t line = s->plane_bytes / 64;
    for (filled[line] = (uint32_t)line; line--;) {
        uint64_t some = 0, eight;
        for (int i = 0; i < 64; i += 8) memcpy(&eight, base + 64 * line + i, 8), some |= eight;
        filled[line] = some ? (uint32_t)line : filled[line + 1];
    }
}

static void scan_all(seeker *k) {
    const recall_args *s = k->s;
    const strand *w = k->w;
    scan_lane *plan = k->o->plan;
    int64_t size = w->lane / 16, read = SCAN + 8 * w->words;
    for (int shift = 0; shift < 8; shift++) {
        int64_t lanes = scan_plan(w, shift, plan), d = 1 - s->L;
        if (!lanes) continue;
        while (((d + PAD_BASES) & 7) != shift) d++;
        for (int64_t byte; d < s->size; d += 8 * SCAN) {
            byte = (d + PAD_BASES) >> 3;
            if (d + 8 * SCAN > s->size || byte + read > s->plane_bytes) break;
            int64_t filled = 64 * (int64_t)k->o->filled[byte / 64];
            if (filled >= byte + read) { /* on to the last block that ends before it */
                d += (filled - byte - read) / SCAN * 8 * SCAN;
                continue;
            }
            union {
                vb bytes;
                uint64_t eight[SCAN / 8];
            } found = {scan_block(s, plan, lanes, size, byte, seeker_least(k))};
            for (int i = 0; i < SCAN / 8; i++)
                for (int j = 0; found.eight[i] && j < 8; j++)
                    if (found.eight[i] >> (8 * j) & 0xff) seeker_try(k, d + 8 * (8 * i + j));
        }
        for (; d < s->size; d += 8) seeker_try(k, d);
    }
}
