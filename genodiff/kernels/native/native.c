/* The selective scan and the causal convolution of Mamba-1 on a CPU, with the layers around them.
   It is plain C behind a plain C interface (ctypes), and includes neither Python's headers nor
   torch's.

   It is compiled three times: with AVX-512 (x86-64-v4), with AVX2 (x86-64-v3), and with what the
   compiler takes for granted. The widest copy that the processor can run is chosen at run time.

   Tensors are float32. In the structures, x_b and x_l are the steps of a tensor x between rows of
   the batch and between times (or rows), in numbers; its last axis is contiguous. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* W lanes to a vector. NB_MOST and NB_BACK: states of a pass, forward and backward. Forward, a
   state takes two registers (h and A); backward three (g, A and dA) and those of the folds. */
#if defined(__AVX512F__)
#include <immintrin.h>
#define W 16
#define NB_MOST 16
#define NB_BACK 8
#elif defined(__AVX2__)
#include <immintrin.h>
#define W 8
#define NB_MOST 8
#define NB_BACK 4
#else
#define W 4
#define NB_MOST 4
#define NB_BACK 4
#endif
/* Steps between saved states. More would save memory, but what backward recomputes for W channels
   and NB_BACK states of a chunk (about 100 KB with AVX-512) has to stay in the second-level cache.
   */
#define CHUNK 64
#define CONV_CHUNK 32    /* steps that stay in the first-level cache */
#define LINEAR_CHUNK 64  /* rows that go through a linear layer at a time */
#define LINEAR_DEPTH 128 /* terms of a sum at a time */
#define GATE_CHUNK 32    /* rows that stay in the cache */
#define AHEAD 3          /* rows before they are needed, fetched into the cache */
#define NORM_PIECE 256   /* rows of a task */

/* A function whose constant arguments (numbers of states, flags) have to be constants in its body,
   so that loops unroll into registers: a call must be replaced by that body. */
#define INLINE static inline __attribute__((always_inline))

/* A loop of at most 16 rounds without a jump, so that what it indexes can stay in registers. */
#define UNROLLED(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < n; i++)

/* The arguments of genodiff_NAME(&arguments, backward, threads), which returns 1 where there is no
   memory for its scratch space, else 0. Python makes its structures of the text of these. */
#define ARGUMENTS(name, ...)                                                                       \
    typedef struct {                                                                               \
        __VA_ARGS__                                                                                \
    } name##_args;                                                                                 \
    static const char name##_text[] = #name " " #__VA_ARGS__;

ARGUMENTS(scan,
    /* Of low rank, r and w stand in place of delta, and dr and dw in place of ddelta. */
    const float *u, *delta, *r, *w, *A, *B, *C, *D, *bias, *h0, *gy, *ghlast;
    float *y, *states, *hlast, *du, *ddelta, *dr, *dw, *dA, *dB, *dC, *dD, *dbias, *dh0;
    int64_t batch, L, E, N, R, group, chunk;
    int64_t u_b, u_l, delta_b, delta_l, r_b, r_l, B_b, B_l, C_b, C_l;
    int64_t y_b, y_l, gy_b, gy_l, du_b, du_l, ddelta_b, ddelta_l;
    int64_t softplus, reverse, accumulate; /* accumulate: y is added to */
    int64_t block, streams; /* see scan.h; 0 and 1 where there are no blocks */
)

ARGUMENTS(conv,
    const float *x, *w, *bias, *v, *gy, *gp;
    float *y, *p, *dx, *part;
    int64_t batch, L, E, K, P, piece; /* piece: steps of a task */
    int64_t x_b, x_l, y_b, y_l, p_b, p_l, gy_b, gy_l, gp_b, gp_l, dx_b, dx_l;
    int64_t silu, reverse, accumulate; /* accumulate: dx is added to */
    int64_t block; /* steps that know nothing of other blocks; L where all know each other */
)

ARGUMENTS(gate,
    const float *y, *z, *g, *w;
    float *out, *gy, *dz, *part;
    int64_t rows, E, D, piece; /* piece: rows of a task */
    int64_t y_l, z_l, g_l, out_l, gy_l, dz_l;
)

ARGUMENTS(norm,
    const float *x, *w, *gy, *eps;
    float *scale, *y, *dx, *part;
    int64_t rows, D;
)

ARGUMENTS(linear,
    const float *x, *w, *bias, *g;
    float *y, *dx, *part;
    int64_t rows, K, N, piece; /* piece: rows of a task */
    int64_t x_l, y_l, g_l, dx_l;
)

ARGUMENTS(mixing,
    const uint8_t *train, *fit, *text; /* codes of bases, see mixing.h */
    double *nats;
    int64_t n_train, n_fit, n, seed, grow;
)

ARGUMENTS(recall,
    const uint8_t *planes; /* three, of plane_bytes each */
    const uint32_t *start, *at;
    const uint64_t *ends, *jumps; /* of a sampled table, which has no start: see sampled.h */
    const int64_t *least_hits; /* (64) */
    const uint8_t *codes;          /* (batch, L) */
    const int64_t *without, *loci; /* (batch, 2) and (batch) */
    const double *next, *first, *divergence, *share;
    const double *chances; /* start, end, shift, least odds, copies */
    double *evidence, *background, *copy;
    int64_t *diagonals, *counts; /* (batch, 2, most + 192) and (batch, 2) */
    int64_t batch, L, size, plane_bytes, k, order;
    int64_t scored, most, wild; /* scored: -1 for every diagonal */
    int64_t sparse; /* the most informative places at which diagonals are sifted */
)

ARGUMENTS(align,
    const uint8_t *planes, *codes; /* of the text; (batch, L) */
    const double *evidence;        /* (batch, L) */
    const int64_t *without, *loci; /* (batch, 2) and (batch) */
    const int64_t *near; /* (batch): loci of the regions of a far relative; else 0 */
    const int64_t *diagonals, *counts; /* what a search found: (batch, 2, most) and (batch, 2) */
    const double *emission, *share;    /* (8, 4, 4): class, source, base; (8) */
    const double *chances; /* start, end, shift, turn, copies */
    const double *alike; /* (classes): 1 for those whose sum is a sum of its own */
    double *over, *sums, *likelihood; /* (batch, L, classes, 4); of all classes and of those that
                                         are alike, (2, batch, L, 4); (batch). Null: not wanted */
    int64_t *places; /* (batch, L): 2 times the place that is likeliest and alike, and its strand;
                        -1 where nothing is. Null: not wanted */
    int64_t batch, L, size, plane_bytes, most, classes;
    int64_t given; /* 1: shifts are those of an alignment, and no others are tried; 2: all are kept */
)

ARGUMENTS(far,
    const uint8_t *planes, *codes, *tells; /* of the text; (batch, L), and which are informative */
    const int16_t *told;                   /* (batch, L): what the evidence adds to a place's pay */
    const int64_t *without, *loci;         /* (batch, 2) and (batch) */
    const int64_t *found, *found_counts;   /* of the ordinary search, where nothing is sifted */
    const int64_t *least_hits, *pays;      /* (64) and (10) */
    int64_t *diagonals, *counts, *regions; /* (batch, 2, most), (batch, 2) and (batch) */
    int64_t batch, L, size, plane_bytes, most, found_most, sifts;
)

ARGUMENTS(columns,
    const double *over, *prior; /* (G, batch, L, 4), (batch, L, 4) */
    const uint8_t *codes;       /* (batch, L) */
    const int64_t *parent, *order;
    const double *chances, *weights; /* (nodes, 4, 4, 16), (3, K, 16) */
    const double *share, *leave, *toward, *bases; /* (K), (K), (K), (4) */
    double *factors; /* (batch, L, 4) */
    double *rates, *posterior; /* (batch, L, 16), (batch, L, K); null where not requested */
    int64_t batch, L, G, nodes, K;
)

ARGUMENTS(classes,
    const int64_t *of;    /* (3, K): the likelihood of each state at each codon position */
    const int32_t *ids;   /* (n): which column; below 0, nothing, and the chain begins anew */
    const double *likely; /* (columns, M) */
    const double *share, *leave, *toward, *slow; /* (K) */
    double *lods; /* (n) */
    int64_t n, K, M, block, around;
)

ARGUMENTS(segments,
    const double *scores, *drop; /* (n), (1) */
    int64_t *ends, *count; /* (n, 2), (1) */
    double *sums; /* (n) */
    int64_t n;
)

ARGUMENTS(kmers,
    const uint8_t *codes;
    uint32_t *start, *at;
    int64_t n, k, pieces;
)

ARGUMENTS(sampled,
    const uint8_t *planes;
    int64_t *totals; /* (pieces + 1): first the words of each piece, then of all before it */
    uint64_t *ends, *jumps;
    uint32_t *at;
    int64_t plane_bytes, size, k, piece_bits;
)

ARGUMENTS(chain,
    const int32_t *tables; /* (n, 4) */
    const int64_t *begin, *first; /* (F), of a layer in the tables; (F + 2), of its states */
    double *p;            /* (F, 4); a drawn base is written there as certain */
    const uint8_t *due;   /* (F) */
    const double *u, *error;
    int8_t *symbols;
    int64_t *told; /* whether it was drawn, whether it is close */
    const double *gains; /* (n, 4), the weight of each move; null where all are 1 */
    int64_t F, most;
)

#include "vector.h"
#include "tasks.h"
#include "scan.h"
#include "scan_back.h"
#include "thin.h"
#include "conv.h"
#include "gate.h"
#include "norm.h"
#include "linear.h"
#include "mixing.h"
#include "recall.h"
#include "recall_rows.h"
#include "sampled.h"
#include "recall_seek.h"
#include "recall_scan.h"
#include "recall_sift.h"
#include "recall_copy.h"
#include "align.h"
#include "far.h"
#include "columns.h"
#include "classes.h"
#include "chain.h"
#include "segments.h"

/* Line i of the interface, null after the last. The first is raised where a field comes to mean
   something else. Python refuses a library whose lines differ from those that it was written for. */
const char *genodiff_interface(int i) {
    static const char *const lines[] = {
        "20", scan_text, conv_text, gate_text, norm_text, linear_text, mixing_text, recall_text,
        align_text, far_text, columns_text, kmers_text, sampled_text, classes_text, segments_text,
        chain_text, 0};
    return lines[i];
}

/* Run tasks on the threads of this OpenMP from now on; null: on POSIX threads. */
void genodiff_use_openmp(parallel *given) { openmp = given; }

/* n rounds of CHAINS independent multiply-adds of W numbers: what one core can do, for benchmarks.
   Twelve chains hide the latency (4 cycles, two units); a sum depends on the one a round before. */
#define CHAINS 12
float genodiff_multiply_add(int64_t n) {
    vf a[CHAINS], x = v_splat(0.999f), y = v_splat(0.001f);
    for (int i = 0; i < CHAINS; i++) a[i] = v_splat((float)i);
    for (; n > 0; n--)
        UNROLLED(i, CHAINS) a[i] = a[i] * x + y;
    for (int i = 1; i < CHAINS; i++) a[0] += a[i];
    return a[0][0];
}
int genodiff_lanes(void) { return W; }

/* The widest instruction set of this machine that a copy was written for: 512, 256 or 0. */
int genodiff_vector_bits(void) {
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return 512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return 256;
#endif
    return 0;
}
