"""What a change of the genome does to it.

    record         `io/variants.py`: a row of a file
    allele         `records.py`: judged against the genome, once
    score          `score_job.py`: by `scoring/variant_scores.py`
    rank           `background.py`: among random variants of its kind
    row            `scored_variants.py`, `output.py`: VCF or table

Read `request.py`, `score_job.py`, `records.py`, `scored_variants.py`.
"""
