/* Maximal scoring segments of a row of scores: `genodiff/conservation/elements.py` has the definition. */

int genodiff_segments(const segments_args *s, int backward, int threads) {
    int64_t found = 0, first = -1, last = 0;
    double sum = 0, best = 0;
    for (int64_t i = 0; i <= s->n; i++) {
        double x = i < s->n ? s->scores[i] : NAN;
        if (first < 0) {
            if (x > 0) first = i, last = i + 1, sum = best = x;
            continue;
        }
        sum += x;
        if (sum > best) best = sum, last = i + 1;
        if (sum > 0 && sum > best - s->drop[0]) continue; /* false for NaN */
        s->ends[2 * found] = first, s->ends[2 * found + 1] = last;
        s->sums[found++] = best;
        i = last - 1, first = -1;
    }
    s->count[0] = found;
    return 0;
}
