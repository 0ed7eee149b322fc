"""How much likelier is one sequence than another, in nats.

    pair           `spelling_pair.py`: a window with both alleles
    read           `masked_reader.py`: log-probabilities at masked positions
    method         `methods/`: what is masked together, and summed
    estimate       `span_scores.py`: a value and its standard error
    score          `variant_scores.py`: a stream of scores for a stream of alleles

Read `naive_variants.py` (the definition), `span_scores.py`, `methods/llr.py`, `variant_scores.py`.
"""
