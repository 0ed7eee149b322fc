/* Products of thin matrices that fit in the cache: out = init + a w. `a` (M, K) may have any
   strides; `w` (K, N) and `out` (M, N) are row-major.

   A tile of TILE rows and up to THREE vectors of columns stays in registers over K. With AVX-512,
   it uses 24 sums, 3 vectors of w and one element of a, out of 32 registers. With AVX2, it uses 12,
   3 and 1, out of 16. Each element of `out` is one sum in the order of k, whatever the tile. So its
   bits do not depend on where a task begins. `out` may be `init`, because a tile is read before it
   is written. */
#if W == 16
#define TILE 8
#else
#define TILE 4
#endif
#define THREE 3

typedef struct {
    const float *a, *w, *init; /* init NULL: zeros */
    float *out;
    int64_t M, N, K, a_m, a_k, w_k, init_m, out_m; /* a_m to out_m: strides along M or K */
} thin_args;

INLINE void thin_tile(const thin_args *s, int64_t m, int64_t n, int lanes, const int rows,
                      const int wide) {
    vf sum[TILE][THREE];
    const float *a = s->a + m * s->a_m, *w = s->w + n;
    UNROLLED(i, rows)
        UNROLLED(v, wide)
            sum[i][v] = s->init ? v_load(s->init + (m + i) * s->init_m + n + v * W,
                                         v < wide - 1 ? W : lanes)
                                : v_splat(0.0f);
    /* Each row of w is read once for all rows of the tile; an element of a goes to all lanes. */
    for (int64_t k = 0; k < s->K; k++) {
        vf row[THREE];
        UNROLLED(v, wide) row[v] = v_load(w + v * W, v < wide - 1 ? W : lanes);
        UNROLLED(i, rows)
            UNROLLED(v, wide) sum[i][v] += row[v] * a[i * s->a_m];
        a += s->a_k;
        w += s->w_k;
    }
    UNROLLED(i, rows)
        UNROLLED(v, wide)
            v_store(s->out + (m + i) * s->out_m + n + v * W, sum[i][v], v < wide - 1 ? W : lanes);
}

INLINE void thin_columns(const thin_args *s, int64_t n, int lanes, const int wide) {
    int64_t m = 0;
    /* A constant W compiles to plain loads; the last columns need masked ones. */
    if (lanes == W)
        for (; m + TILE <= s->M; m += TILE) thin_tile(s, m, n, W, TILE, wide);
    else
        for (; m + TILE <= s->M; m += TILE) thin_tile(s, m, n, lanes, TILE, wide);
    for (; m < s->M; m++) thin_tile(s, m, n, lanes, 1, wide);
}

static void thin(const thin_args *s) {
    int64_t n = 0, left = (s->N + W - 1) / W; /* vectors of columns */
    /* Three vectors if the number left is odd, then two at a time. A single vector is slow: it has
       few independent sums, and uses each element of a for only one multiply-add. */
    while (left > 0) {
        int wide = left % 2 == 0 ? 2 : left == 1 ? 1 : 3;
        int lanes = left == wide ? (int)(s->N - n - (wide - 1) * W) : W;
        if (wide == 3) thin_columns(s, n, lanes, 3);
        else if (wide == 2) thin_columns(s, n, lanes, 2);
        else thin_columns(s, n, lanes, 1);
        n += wide * W, left -= wide;
    }
}
