/* Vectors of W floats: loads and stores of some lanes, 2^x, softplus, sums over lanes. Included by
   native.c.

   The flags allow a product and a sum to be contracted into one multiply-add, but no other freedom
   (there is no -ffast-math). Sums are taken in the order in which they are written. */

typedef float vf __attribute__((vector_size(W * 4)));
/* Rows of a tensor begin at any float, so vectors in memory may not be aligned; and what is read as
   a vector was written as floats, so they may alias. */
typedef float vfu __attribute__((vector_size(W * 4), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(W * 4)));

/* Prefetch into the second-level cache. It never faults: the address may lie outside the tensor. */
#define WANT(p, written) __builtin_prefetch((const void *)(p), written, 2)

/* `lanes` < W at the right end of a row. What lies beyond is not touched: it may be the row of
   another thread's task, or no memory at all. Lanes that are not loaded are 0. */
#if W == 8
/* From v_lanes + 8 - lanes on: a mask of the first `lanes` lanes. */
static const int32_t v_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
#endif
static inline vf v_load(const float *p, int lanes) {
    if (lanes == W) return (vf) * (const vfu *)p;
#if W == 16
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << lanes) - 1), p);
#elif W == 8
    const int32_t *in = v_lanes + 8 - lanes;
    return (vf)_mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)in));
#else
    vf v = {0};
    for (int i = 0; i < W; i++)
        if (i < lanes) v[i] = p[i];
    return v;
#endif
}
static inline void v_store(float *p, vf v, int lanes) {
    if (lanes == W) {
        *(vfu *)p = (vfu)v;
        return;
    }
#if W == 16
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << lanes) - 1), (__m512)v);
#elif W == 8
    const int32_t *in = v_lanes + 8 - lanes;
    _mm256_maskstore_ps(p, _mm256_loadu_si256((const __m256i *)in), (__m256)v);
#else
    for (int i = 0; i < W; i++)
        if (i < lanes) p[i] = v[i];
#endif
}
/* x - 0 is x for every x, so the subtraction is compiled away; -0 + 0 would be 0. */
static inline vf v_splat(float x) { return x - (vf){0}; }
/* a where the mask is -1, b where it is 0. */
static inline vf v_pick(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); }

/* The larger of |x| and m in each lane; m where x is NaN. */
static inline vf v_larger(vf x, vf m) {
    x = (vf)((vi)x & 0x7fffffff);
#if W == 16
    return (vf)_mm512_max_ps((__m512)x, (__m512)m);
#else
    return v_pick(x > m, x, m);
#endif
}
/* Whether a comparison holds in all lanes. */
static inline int v_all(vi mask) {
    int32_t all = -1;
    for (int i = 0; i < W; i++) all &= mask[i];
    return all;
}

/* The sum over lanes, always by the same tree of pairs. */
static inline float v_sum(vf v) {
    float s[W];
    for (int i = 0; i < W; i++) s[i] = v[i];
    for (int k = W / 2; k; k /= 2)
        for (int i = 0; i < k; i++) s[i] += s[i + k];
    return s[0];
}

/* 2^x for |x| <= 126, with a relative error of 8e-8, and exactly 1 at 0.

   x = r + f with r the nearest multiple of 1 (or of 1/16), and 2^x = 2^r 2^f with 2^f by a
   polynomial. Rounding to nearest makes the error unbiased. With rounding down, decays near 1 would
   drift over a long memory: the error of y at 16,384 steps was measured as 6e-5, against 5e-7.

   Adding `magic` = 1.5 * 2^k rounds x: at that size neighbouring floats lie 1 (or 1/16) apart, and
   the last bits of the sum are the rounded number. The factor 1.5 keeps negative x in the same
   binade. */
#if W == 16
/* The bits of 2^(j/16), less j << 19. */
static const int32_t v_sixteenths[16] __attribute__((aligned(64))) = {
    0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532, 0x3f75fed7, 0x3f75583f,
    0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c, 0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d,
};
static inline vf v_sixteenth_exp2(vf x, const int tame) {
    const float magic = 786432.0f; /* 1.5 * 2^19 */
    /* Hides from the compiler that x is a product. It would contract that product with both sums
       below, and so compute it twice. */
    __asm__("" : "+v"(x));
    vf shifted = x + magic, r = shifted - magic, f = x - r;
    /* `shifted` ends in the bits of 16 r. The permutation looks at the last four of them, j. */
    vi power = (vi)_mm512_permutexvar_epi32((__m512i)shifted, *(const __m512i *)v_sixteenths);
    /* Shifted by 19, j stands where the table lacks it, and the whole part of r in the exponent. If
       the exponent may overflow, the whole part is left to scalef, which goes to 0 or infinity. */
    power += (tame ? (vi)shifted : (vi)shifted & 15) << 19;
    /* p = 2^f - 1 for |f| <= 1/32: no constant term, so that 2^0 is exactly 1. */
    vf p = f * 0x1.c6af32p-5f + 0x1.ebff8cp-3f;
    p = (p * f + 0x1.62e430p-1f) * f;
    p = (vf)power * p + (vf)power;
    return tame ? p : (vf)_mm512_scalef_ps((__m512)p, (__m512)r); /* 2^floor(r) */
}
static inline vf v_tame_exp2(vf x) { return v_sixteenth_exp2(x, 1); }
#else
static inline vf v_tame_exp2(vf x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23 */
    vf shifted = x + magic, f = x - (shifted - magic);
    /* 2^f for |f| <= 1/2. The constant term is 1, so that 2^0 is exactly 1. */
    vf p = f * 0x1.41fbbcp-13f + 0x1.5f3e54p-10f;
    p = p * f + 0x1.3b2d4cp-7f;
    p = p * f + 0x1.c6aee8p-5f;
    p = p * f + 0x1.ebfbdcp-3f;
    p = p * f + 0x1.62e430p-1f;
    p = p * f + 1.0f;
    /* The last bits of `shifted` are r; in the exponent of p they multiply it by 2^r. */
    return (vf)((vi)p + ((vi)shifted << 23));
}
#endif
/* x within -most .. most. What becomes of NaN is left open: callers multiply by x once more, which
   makes it NaN again. */
static inline vf v_clamp(vf x, float most) {
#if W == 16
    /* 2: the smaller magnitude, with the sign of x. */
    return (vf)_mm512_range_ps((__m512)x, (__m512)v_splat(most), 2);
#else
    x = v_pick(x < -most, v_splat(-most), x);
    return v_pick(x > most, v_splat(most), x);
#endif
}
/* 2^x for any x. The narrower copies end at 2^126 and 2^-126. */
static inline vf v_exp2(vf x) {
#if W == 16
    return v_sixteenth_exp2(v_clamp(x, 1000.0f), 0);
#else
    return v_tame_exp2(v_clamp(x, 126.0f));
#endif
}

/* 1 / x for x from 1 to 1e37, where the machine's approximation is neither 0 nor infinite. */
static inline vf v_inverse(vf x) {
#if W == 16
    /* 14 bits, and one step of Newton's method doubles them: cheaper than a division. */
    vf r = (vf)_mm512_rcp14_ps((__m512)x);
    return r + r * (1.0f - x * r);
#else
    return 1.0f / x;
#endif
}
/* 1 / (1 + exp(-x)). At the bound of 120 it is 2^-120, within what v_inverse takes. */
static inline vf v_sigmoid(vf x) {
    return v_inverse(1.0f + v_tame_exp2(v_clamp(x * -1.44269504088896f, 120.0f)));
}

/* Folding sums the lanes of many vectors at less than a sum over lanes for each. Two vectors become
   one: the lanes of each are added in pairs, and the half that is left of each takes half of the
   lanes. Folding NB_BACK vectors level by level leaves the sum of vector n spread over W / NB_BACK
   lanes, from v_folded(n) on. */
#if defined(__clang__)
#define V_MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define V_MIX(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif
static inline vf v_fold(vf a, vf b, const int level) {
#if W == 16
    if (level == 1)
        return (vf)_mm512_mask_blend_ps(0xff00, (__m512)a, (__m512)b) +
               (vf)_mm512_shuffle_f32x4((__m512)a, (__m512)b, 0x4e);
    if (level == 2)
        return V_MIX(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
               V_MIX(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    return V_MIX(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
           V_MIX(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
#elif W == 8
    if (level == 1)
        return V_MIX(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + V_MIX(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    return V_MIX(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + V_MIX(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
#else
    if (level == 1) return V_MIX(a, b, 0, 1, 4, 5) + V_MIX(a, b, 2, 3, 6, 7);
    return V_MIX(a, b, 0, 2, 4, 6) + V_MIX(a, b, 1, 3, 5, 7);
#endif
}
/* The first lane of vector n: each level sends the second of two vectors to other lanes. */
static inline int v_folded(int n) {
#if W == 16
    return (n & 1) * 4 + (n >> 1 & 1) * 8 + (n >> 2 & 1) * 2;
#elif W == 8
    return (n & 1) * 4 + (n >> 1 & 1) * 2;
#else
    return n;
#endif
}

/* softplus(x) = max(x, 0) + log1p(y) with y = exp(-|x|) <= 1, and its derivative, the sigmoid of x.
   Both are accurate to a few last places for every x: nothing cancels. */
static inline vf v_softplus(vf x, vf *sigmoid) {
    vf y = (vf)((vi)x & 0x7fffffff) * -1.44269504088896f;
    y = v_tame_exp2(v_pick(y < -126.0f, v_splat(-126.0f), y)); /* NaN < -126 is false: it stays */
    if (sigmoid) {
        vf r = v_inverse(y + 1.0f);
        /* 1 / (1 + y) for x > 0, else y / (1 + y). */
        *sigmoid = v_pick(x > 0.0f, r, y * r);
    }
    /* p = log1p(y) / y for 0 <= y <= 1: as a multiple of y it keeps its precision when y is tiny.
       */
    vf p = y * 0x1.5f96cap-8f + -0x1.ec990cp-6f;
    p = p * y + 0x1.446bf6p-4f;
    p = p * y + -0x1.19ad88p-3f;
    p = p * y + 0x1.884450p-3f;
    p = p * y + -0x1.fd1320p-3f;
    p = p * y + 0x1.5535dap-2f;
    p = p * y + -0x1.ffff14p-2f;
    p = p * y + 1.0f;
    return y * p + v_pick(x > 0.0f, x, v_splat(0.0f));
}

/* Classes of divergence in double precision; those that are not used have a share of 0. */
#define KINDS 8
typedef double ve __attribute__((vector_size(KINDS * 8)));
typedef int64_t ve_places __attribute__((vector_size(KINDS * 8)));
typedef uint8_t ve_bytes __attribute__((vector_size(KINDS)));

/* The sum of the lanes, in each lane. */
INLINE ve ve_spread(ve v) {
#if defined(__AVX512F__)
    v += (ve)_mm512_permute_pd((__m512d)v, 0x55);
    v += (ve)_mm512_permutex_pd((__m512d)v, 0x4e);
    return v + (ve)_mm512_shuffle_f64x2((__m512d)v, (__m512d)v, 0x4e);
#else
    return (ve){0} + (((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
#endif
}
INLINE double ve_sum(ve v) { return ve_spread(v)[0]; }

/* The lanes of `of` that `at` names. */
INLINE ve ve_pick(ve of, ve_places at) {
#if defined(__AVX512F__)
    return (ve)_mm512_permutexvar_pd((__m512i)at, (__m512d)of);
#else
    ve out;
    for (int i = 0; i < KINDS; i++) out[i] = of[at[i]];
    return out;
#endif
}
