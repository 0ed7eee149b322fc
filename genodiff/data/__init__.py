"""Which windows step k sees, with which random numbers.

    recipe         `recipe.py`: source, splits and checksums of a data set
    store          `dna_store.py`: the genome on disk, one byte a base
    windows        `windows.py`, `dna_windows.py`: a split cut into windows
    batch          `loader.py`: micro-batch k, a function of (seed, k)
    uniforms       `loader.py`: the numbers that decide masks and times

Read `windows.py`, `loader.py`, then `splits.py`.
"""
