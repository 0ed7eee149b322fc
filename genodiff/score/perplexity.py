"""How well a model knows DNA: an upper bound on −log p(x) in bits per base, with an interval, for one split.

Notation: a window x0 has n bases that count (A, C, G or T; an N is seen but neither masked nor counted). For a mask of exactly k of
them, S_k is the summed cross-entropy of the masked bases and C_k = E[S_k] over all masks of that size. Then

    −log p(x0) ≤ NELBO(x0) = Σ_{k=1..n} C_k / k = E_{k ~ U{1..n}} [ (n / k) S_k ]

(field note §5.1; Ou et al. 2024). The estimate draws k on the closed range 1..n, so nothing is truncated and no base is free.

`RUN/eval.json` holds one object per split, `{"test": {...}, "valid": {...}}`, each with:

    split, seed, repeats        as asked; repeats = masks per window
    checkpoint, step            12 hex digits of the weights, and their training step
    recipe, fasta, seq_len      the data: recipe name, file name or null, window length in bases
    windows, windows_total      windows scored and in the split; fewer are scored under --max-windows or --max-minutes
    tokens                      bases scored (with `soft_masked` 0 only those in upper case)
    soft_masked                 1: soft-masked bases count like others; 0: they are masked and seen, but not counted
    nelbo_nats                  the bound, nats per base; nelbo_nats_total over all scored bases
    bits_per_base, perplexity   nelbo_nats / ln 2 and exp(nelbo_nats)
    ci95_bits [lo, hi]          95 % interval of bits_per_base: mask draws and the sampling of windows (see interval.py);
                                null where fewer than two windows were scored
    se_bits, mask_se_bits       its standard error, and the part that is due to the mask draws alone (null when repeats = 1)
    uniform_bits 2.0
    markov_bits, markov_perplexity   {"0": ..., ..., "8": ...}: interpolated Markov models of the train split on the same bases
    markov_minus_model_bits     {"8": {"bits", "ci95": [lo, hi]}, ...}: paired difference, positive where the model is better
    source_bits                 −log2 of the true source's probability of the same windows, per base (toy only), else null
    source_ci95_bits            its interval over windows, else null
    model_minus_source_bits     {"bits", "ci95"} paired difference (toy only), else null
    contigs                     {name: part}, regions {name: part}: `part` has tokens, windows, nelbo_nats, bits_per_base, perplexity,
                                ci95_bits, markov_bits, markov_perplexity; regions are "unique" and "repeat" (windows without and
                                with a 24-mer of the train split, on either strand), "upper_case" and "soft_masked" (bases)
    repeat_kmer 24, repeat_share     share of the scored windows that are "repeat" (null when the train split is absent)
    curve                       [{"rate_lo", "rate_hi", "nats", "se", "n"}, ...]: C_k / k, the mean cross-entropy of a masked base in
                                nats, where the masked share k / n is in (rate_lo, rate_hi]; n window draws; nats and se may be null
    seconds, device, created    wall time, where, and when (ISO 8601, UTC)

Keys may be added; none of these will change its meaning.
"""
