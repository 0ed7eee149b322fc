"""Where a window stood before: in the training genome, or in genomes of related species.

    text           `text.py`: a genome in three bits a base
    table          `tables.py`: where each k-mer stands
    diagonal       `search.py`: an offset at which a window may be a copy
    evidence       `copying.py`, `alignment.py`: what copies say of each base
    factor         `columns.py`, `votes.py`: what all relatives together say

Read `copying.py`, `search.py`, `alignment.py`, `columns.py`. Equations stand in each file;
`fast.py` has C.
"""
