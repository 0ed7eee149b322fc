"""Whether sampled sequences resemble real ones, and copy none.

    samples        `requests.py`: sequences to compare
    reference      `real_sequence.py`: held-out sequences of the genome
    match          `match_index.py`: exact and near matches to the training genome
    finding        `sample_quality.py`: composition, motifs, reading frames
    scorecard      `measured_scorecard.py`, `scorecard_figures.py`: all findings with intervals

Read `scorecard_figures.py`, `sample_quality.py`, `match_index.py`.
"""
