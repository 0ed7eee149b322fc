"""E. coli K-12 by Salmonella and Klebsiella: bits of a base, leave-one-out and as a bound.

    python benchmarks/relatives/ecoli.py 200 4

Everything is fitted on 60 windows of the first half of MG1655; windows of the second half are
tested. There is no network: the prior is the genome's composition.
"""

import sys

import numpy as np
from bound import leave_one_out, say
from yeast_setting import SHARED, cut_codes, mask, open_relative, read_genome

from genodiff.memory.fitting import measure_bits
from genodiff.memory.relatives_fit import fit_relatives
from genodiff.memory.tree import share_bases

NAMES = ("Salmonella_LT2", "Klebsiella_ATCC13883")


def main() -> None:
    (codes,) = read_genome(SHARED / "genomes" / "ecoli_K12_MG1655.fa.gz").values()
    half = len(codes) // 2
    fit, clean = cut_codes(codes[:half], 60), cut_codes(codes[half:], int(sys.argv[1]))
    rows, window = mask(clean, int(sys.argv[2]), 2)
    memories = [open_relative(name) for name in NAMES]
    for names in (NAMES[:1], NAMES[1:], NAMES):
        relatives = fit_relatives([memories[NAMES.index(name)] for name in names], fit)
        assert relatives.columns is not None
        say(
            f"{names}: leave-one-out",
            leave_one_out(relatives, relatives.align(clean), clean),
            np.arange(len(clean)),
        )
        prior = np.broadcast_to(share_bases(relatives.columns.gc), (*rows.shape, 4))
        p = prior * relatives.weigh(rows, prior)
        p /= p.sum(-1, keepdims=True)
        say(f"{names}: bound", measure_bits(p, rows, clean[window]), window)


if __name__ == "__main__":
    main()
