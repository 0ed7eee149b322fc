"""Evolutionary constraint of each base of a genome, from unaligned genomes of related species.

    request      `request.py`: which genome, which relatives, which output
    tile         `reader.py`: a window of the genome, and what every relative has over its middle
    column       `memory/column_rates.py`: the bases of one position, and their rate
    element      `elements.py`: a conserved stretch, with a false discovery rate
    output       `job.py`: tracks (`maps/track_formats`), elements.bed, alignment.maf

Read `memory/column_rates.py` first, then `reader.py` and `job.py`. No file here imports torch.
"""
