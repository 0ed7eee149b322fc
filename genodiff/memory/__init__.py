"""Where a window occurs: in the training genome, or in genomes of related species.

    text           `text.py`: a genome in three bits a base
    table          `tables.py`: the positions of each k-mer
    diagonal       `search.py`: an offset at which a window may be a copy
    evidence       `copying.py`, `alignment.py`: probabilities of each base from its copies
    factor         `columns.py`, `tree.py`: the prediction of all related genomes together

Read `copying.py`, `search.py`, `alignment.py`, `columns.py`. Equations are in each file; `fast.py`
has C.
"""
