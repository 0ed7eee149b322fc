"""E. coli K-12 by Salmonella and Klebsiella: bits of a base, leave-one-out and as a bound.

    python benchmarks/relatives/ecoli.py OUT.json 1

All windows of MG1655. Everything is fitted on 60 windows of one half of the chromosome; the other
half is tested, and the other way round. There is no network: the prior is the genome's composition.
The number is of draws of masks a window, 0 for none. Intervals: blocks of 10 windows.
"""

import json
import sys
from pathlib import Path

import numpy as np
from bound import leave_one_out
from chromosomes import spell
from paired import write_lines
from yeast_setting import SHARED, cut_codes, mask, open_relative, read_genome

from genodiff.memory.fitting import measure_bits
from genodiff.memory.relatives import Relatives
from genodiff.memory.relatives_fit import fit_columns, fit_relatives
from genodiff.memory.tree import share_bases

NAMES = ("Salmonella_LT2", "Klebsiella_ATCC13883")
SETS = (NAMES[:1], NAMES[1:], NAMES)


def main() -> None:
    target, draws = Path(sys.argv[1]), int(sys.argv[2])
    (codes,) = read_genome(SHARED / "genomes" / "ecoli_K12_MG1655.fa.gz").values()
    half = len(codes) // 2
    memories = [open_relative(name) for name in NAMES]
    whole: dict[str, list[np.ndarray]] = {}
    bound: dict[str, list[np.ndarray]] = {}
    for mine, other in ((codes[:half], codes[half:]), (codes[half:], codes[:half])):
        fit, clean = cut_codes(mine, 60), cut_codes(other, 10**9)
        rows, window = mask(clean, draws, 2) if draws else (clean[:0], np.zeros(0, int))
        both = fit_relatives(memories, fit)
        over_fit, over = both.align(fit), both.align(clean)
        for names in SETS:
            key, at = " + ".join(names), [NAMES.index(name) for name in names]
            columns = fit_columns(np.ascontiguousarray(over_fit[at]), fit)
            relatives = Relatives(tuple(both.genomes[i] for i in at), columns)
            bits = leave_one_out(relatives, np.ascontiguousarray(over[at]), clean)
            whole.setdefault(key, []).append(bits)
            if draws:
                prior = np.broadcast_to(share_bases(columns.gc), (*rows.shape, 4))
                p = prior * relatives.weigh(rows, prior)
                p /= p.sum(-1, keepdims=True)
                each = measure_bits(p, rows, clean[window]).reshape(len(clean), draws).mean(1)
                bound.setdefault(key, []).append(each)
            print(key, bits.mean(), flush=True)
    out: dict = {"windows": sum(len(x) for x in whole[" + ".join(NAMES)])}
    for key, parts in whole.items():
        out[key] = {"leave-one-out": spell(np.concatenate(parts)[None])}
        out[key]["by half"] = [spell(x[None]) for x in parts]
        if draws:
            out[key]["bound"] = spell(np.concatenate(bound[key])[None])
        print(key, json.dumps(out[key]), flush=True)
    write_lines(target, out)


if __name__ == "__main__":
    main()
