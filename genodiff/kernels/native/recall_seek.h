/* The search of a memory for the diagonals that a window may copy; `memory/search.py` has the
   definition. Scores are in eighths of a nat. */

/* The best run of lanes of `size` bases. */
static int64_t best_run(const strand *w, int shift, const uint64_t *counts, int64_t size, int hit,
                        int miss) {
    const int16_t *seen = w->lanes[shift];
    const lane_u *missed = (const lane_u *)counts;
    int64_t best = 0, run = 0, each = size / 16, lanes = w->words * 4;
    for (int64_t lane = 0; lane < lanes; lane += each) {
        int64_t value = 0;
        for (int64_t i = lane; i < lane + each; i++) value += hit * seen[i] - miss * missed[i];
        run = run + value > 0 ? run + value : 0;
        best = run > best ? run : best;
    }
    return best;
}

/* The score of diagonal d, or 0 where it is below `least`, which is positive. */
static int64_t diagonal_score(const recall_args *s, const strand *w, const int64_t *without,
                              int64_t d, int64_t least, uint64_t *counts) {
    int64_t at = d + PAD_BASES, shift = at & 7, words = w->words;
    const uint8_t *high = s->planes + (at >> 3), *low = high + s->plane_bytes,
                  *base = low + s->plane_bytes;
    const uint64_t *x_high = w->high[shift], *x_low = w->low[shift], *seen = w->seen[shift];
    for (int64_t i = 0; i < words; i++)
        counts[i] = ((((const word_u *)high)[i] ^ x_high[i]) |
                     (((const word_u *)low)[i] ^ x_low[i]) | ~((const word_u *)base)[i]) & seen[i];
    if (without[0] < without[1] && d + s->L > without[0] && d < without[1])
        for (int64_t i = 0; i < words; i++) {
            uint64_t absent = 0;
            for (int bit = 0; bit < 64; bit++) {
                int64_t place = d - shift + 64 * i + bit;
                absent |= (uint64_t)(place >= without[0] && place < without[1]) << bit;
            }
            counts[i] |= absent & seen[i];
        }
    for (int64_t i = 0; i < words; i++) { /* the bits of each 16 */
        uint64_t v = counts[i];
        v -= (v >> 1) & 0x5555555555555555u;
        v = (v & 0x3333333333333333u) + ((v >> 2) & 0x3333333333333333u);
        v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
        counts[i] = (v + (v >> 8)) & 0x00ff00ff00ff00ffu;
    }
    /* The sum of what is positive is at least the best run. Lanes of 16 bound the longer ones. */
    const int16_t *lanes = w->lanes[shift];
    const lane_u *missed = (const lane_u *)counts;
    int32_t near = 0, far = 0;
    for (int64_t i = 0; i < words * 4; i++) {
        int16_t a = (int16_t)(11 * lanes[i] - 32 * missed[i]);
        near += a > 0 ? a : 0;
    }
    for (int64_t i = 0; i < words; i++) {
        int32_t b = 0;
        for (int j = 0; j < 4; j++) b += 9 * lanes[4 * i + j] - 18 * missed[4 * i + j];
        far += b > 0 ? b : 0;
    }
    int64_t score = 0, other;
    if (near >= least) score = best_run(w, shift, counts, w->lane, 11, 32);
    if (far - PENALTY >= least && (other = best_run(w, shift, counts, 64, 9, 18) - PENALTY) > score)
        score = other;
    return score >= least ? score : 0;
}

/* Whether a is kept rather than b: the higher score, then the lower diagonal. */
static inline int diagonal_before(scored_diagonal a, scored_diagonal b) {
    return a.score > b.score || (a.score == b.score && a.at < b.at);
}
/* A heap of the best `most`, the worst of them first. */
static void heap_add(scored_diagonal *heap, int64_t *n, int64_t most, scored_diagonal new) {
    if (*n < most) {
        int64_t i = (*n)++;
        for (; i && diagonal_before(heap[(i - 1) / 2], new); i = (i - 1) / 2)
            heap[i] = heap[(i - 1) / 2];
        heap[i] = new;
    } else if (most && diagonal_before(new, heap[0])) {
        int64_t i = 0;
        for (int64_t child; (child = 2 * i + 1) < most; i = child) {
            if (child + 1 < most && diagonal_before(heap[child], heap[child + 1])) child++;
            if (!diagonal_before(new, heap[child])) break;
            heap[i] = heap[child];
        }
        heap[i] = new;
    }
}

/* Diagonals that wait to be scored, while what they read comes from memory. */
#define WAITING 8

typedef struct {
    const recall_args *s;
    const strand *w;
    const int64_t *without;
    recall_space *o;
    scored_diagonal *heap;
    int64_t n; /* in the heap */
    int64_t waiting[WAITING], met, scored; /* how many were met, and how many of them scored */
    uint64_t slots;
} seeker;

/* The least score that is still kept. */
static inline int64_t seeker_least(const seeker *k) {
    return k->n == k->s->most && k->n ? k->heap[0].score : THRESHOLD;
}

static void seeker_try(seeker *k, int64_t d) {
    int64_t score = diagonal_score(k->s, k->w, k->without, d, seeker_least(k), k->o->counts);
    if (score) heap_add(k->heap, &k->n, k->s->most, (scored_diagonal){score, d});
}

static void scan_all(seeker *k);
static void sift_all(seeker *k);

/* Score what waits until at most `left` do, in the order in which they were met. */
static inline void seeker_score(seeker *k, int64_t left) {
    while (k->met - k->scored > left) seeker_try(k, k->waiting[k->scored++ % WAITING]);
}
static inline void seeker_add(seeker *k, int64_t d) {
    seeker_score(k, WAITING - 1);
    const uint8_t *text = k->s->planes + ((d + PAD_BASES) >> 3);
    for (int plane = 0; plane < 3; plane++)
        for (int64_t byte = 0; byte < k->w->words * 8 + 63; byte += 64)
            WANT(text + plane * k->s->plane_bytes + byte, 0);
    k->waiting[k->met++ % WAITING] = d;
}

/* The place of a diagonal in the table, from which on it is looked for. */
static inline uint64_t *seeker_slot(const seeker *k, int64_t d, uint64_t *at) {
    *at = ((uint64_t)(d + k->s->L) * 0x9E3779B97F4A7C15u) >> 20 & (k->slots - 1);
    return k->o->table + *at;
}
/* Whether the diagonal is met for the first time. */
static int seeker_meets(seeker *k, int64_t d) {
    uint64_t key = (uint64_t)(d + k->s->L), *table = k->o->table; /* above 0 */
    uint64_t at;
    for (seeker_slot(k, d, &at); table[at]; at = (at + 1) & (k->slots - 1))
        if (table[at] == key) return 0;
    table[at] = key;
    return 1;
}

static int compare_places(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The words to look up, in their order: as sortable numbers with the place in the lowest bits. */
static int64_t list_seeds(const recall_args *s, const strand *w, int64_t *seeds) {
    int64_t n = 0, seen = 0;
    for (int64_t i = 0; i < s->L; i++) {
        seen += w->tells[i] - (i >= s->k ? w->tells[i - s->k] : 0);
        int64_t place = i - s->k + 1;
        if (place < 0 || seen < LEAST_SEEN || s->k - seen > s->wild) continue;
        int64_t spread = ((uint32_t)place * 2654435761u >> 8) & 0xffff;
        seeds[n++] = (s->k - seen) << 40 | spread << 20 | place;
    }
    qsort(seeds, n, sizeof(int64_t), compare_places);
    return n;
}

/* Words of the window whose places are fetched together. */
#define TOGETHER 32
typedef struct {
    int64_t place, first, last;
    uint32_t word;
} seed_word;

/* Look words up, in their order. Returns what is left of the effort. */
static int64_t seek_words(seeker *k, seed_word *words, int n, int64_t left) {
    const recall_args *s = k->s;
    for (seed_word *w = words; s->ends && w < words + n; w++)
        WANT(s->ends + (s->jumps[w->word / WORD_GROUP] >> 6), 0);
    for (seed_word *w = words; w < words + n; w++) {
        if (s->ends) find_row(s->ends, s->jumps, w->word, &w->first, &w->last);
        else w->first = s->start[w->word], w->last = s->start[w->word + 1];
        if (w->first < w->last) WANT(s->at + w->first, 0);
    }
    uint64_t slot;
    int64_t unit = s->ends ? SAMPLE_STEP : 1; /* of what a table counts places in */
    for (seed_word *w = words; w < words + n; w++)
        if (w->first < w->last) WANT(seeker_slot(k, unit * s->at[w->first] - w->place, &slot), 1);
    for (seed_word *w = words; w < words + n && left > 0; w++) {
        int64_t step = (w->last - w->first + HIT_CAP - 1) / HIT_CAP;
        for (int64_t hit = w->first; hit < w->last; hit += step) {
            int64_t d = unit * s->at[hit] - w->place;
            left--;
            if (!seeker_meets(k, d)) continue;
            left -= VERIFY;
            seeker_add(k, d);
        }
        left--;
    }
    return left;
}

static void seek_seeds(seeker *k) {
    const recall_args *s = k->s;
    const strand *w = k->w;
    int64_t n = list_seeds(s, w, k->o->seeds), budget = find_budget(s, w->lane),
            left = VERIFY * budget;
    seed_word words[TOGETHER];
    int waiting = 0;
    k->slots = table_slots(budget);
    memset(k->o->table, 0, k->slots * sizeof *k->o->table);
    for (int64_t i = 0; i < n && left > 0; i++) {
        int64_t place = k->o->seeds[i] & 0xfffff;
        int bits[32], wild = 0;
        uint32_t base = 0;
        for (int j = 0; j < s->k; j++) {
            base <<= 2;
            if (w->tells[place + j]) base |= w->codes[place + j];
            else bits[wild++] = 2 * (int)(s->k - 1 - j);
        }
        for (uint32_t choice = 0; choice < (uint32_t)1 << (2 * wild) && left > 0; choice++) {
            uint32_t word = base;
            for (int j = 0; j < wild; j++) word |= (choice >> (2 * j) & 3) << bits[j];
            if (s->ends) WANT(s->jumps + word / WORD_GROUP, 0);
            else WANT(s->start + word, 0);
            words[waiting++] = (seed_word){.place = place, .word = word};
            if (waiting == TOGETHER) left = seek_words(k, words, waiting, left), waiting = 0;
        }
    }
    seek_words(k, words, waiting, left);
    seeker_score(k, 0);
}

/* The best diagonals of both strands, into their heaps. */
static void seek_strands(seeker *k) {
    const recall_args *s = k->s;
    if (s->scored >= 0 && k->w->informative <= s->sparse) {
        sift_all(k); /* both strands have as many informative places */
        return;
    }
    for (int strand_ = 0; strand_ < 2; strand_++)
        if (s->scored >= 0) seek_seeds(k + strand_);
        else scan_all(k + strand_);
}

/* The diagonals of one strand, ascending, into `out`; returns how many. */
static int64_t find_diagonals(const seeker *k, int64_t loci, int64_t *out) {
    static const int step[INDELS] = {1, 2, 3, 4, 5, 6, 9, 12};
    const recall_args *s = k->s;
    recall_space *o = k->o;
    vd rate;
    for (int e = 0; e < KINDS_OF_COPY; e++) rate[e] = s->chances[0] * s->share[e] / loci;
    if (k->n) write_likely(s, k->w->codes, k->w->evidence, o->likely);
    int64_t n = 0, all;
    for (int64_t i = 0; i < k->n; i += WEIGHED) {
        double odds[WEIGHED];
        int64_t at[WEIGHED];
        for (int j = 0; j < WEIGHED; j++) at[j] = k->heap[i + j < k->n ? i + j : i].at;
        weigh_diagonals(s, o, k->without, rate, at, odds);
        for (int j = 0; j < WEIGHED && i + j < k->n; j++)
            if (odds[j] >= s->chances[3]) o->odds[n] = odds[j], out[n++] = at[j];
    }
    all = n;
    /* Around the best (ties: the lower diagonal), an insertion or deletion away. */
    for (int centre = 0; centre < CENTRES && s->chances[2] > 0; centre++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (o->odds[i] >= 0 && (best < 0 || o->odds[i] > o->odds[best] ||
                                    (o->odds[i] == o->odds[best] && out[i] < out[best])))
                best = i;
        if (best < 0) break;
        o->odds[best] = -1;
        for (int j = 0; j < 2 * INDELS; j++) {
            int64_t d = out[best] + (j < INDELS ? step[j] : -step[j - INDELS]);
            if (d > -s->L && d < s->size) out[all++] = d;
        }
    }
    qsort(out, all, sizeof(int64_t), compare_places);
    n = 0;
    for (int64_t i = 0; i < all; i++)
        if (!n || out[i] != out[n - 1]) out[n++] = out[i];
    return n;
}
