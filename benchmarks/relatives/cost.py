"""What relatives cost on one core: seconds to build their indexes, ms a window to search them all.

    python benchmarks/relatives/cost.py TARGET.fa CONTIG LIST.tsv OUT.json

The indexes are built in a folder of their own, which is removed. Windows of the target's contig are
at even distances, and the share that is masked is even over (0, 1), as in the bound. Searched is
with no diagonal kept (the search alone), and with 64 and 2,048 a strand (with their recall).
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from index_loss import NUMBERS, draw

from genodiff.data.genomes.listing import read_genome_list
from genodiff.io.faidx import Genome
from genodiff.kernels.library import instruction_set
from genodiff.memory.search import Effort
from genodiff.memory.text import NONE
from genodiff.runs.folder import find_git_revision
from genodiff.runs.relatives import build_relatives, open_relatives

WINDOWS, LENGTH = 96, 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("contig")
    parser.add_argument("list")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    listed = read_genome_list(given.list)
    clean = draw(Genome(given.target), given.contig, WINDOWS, LENGTH)
    rng = np.random.default_rng(3)
    rates = (rng.permutation(WINDOWS) + 0.5) / WINDOWS
    windows = np.where(rng.random(clean.shape) < rates[:, None], NONE, clean).astype(np.uint8)
    row = {"commit": find_git_revision(), "isa": instruction_set(), "ms": {}}
    with tempfile.TemporaryDirectory() as home:
        begun = time.process_time()
        build_relatives(listed, home=home, jobs=1)
        row["build_cpu_s"] = round(time.process_time() - begun, 2)
        relatives = open_relatives(listed, home=home)
        row["index_bytes_a_base"] = {
            one.name: round(sum(x.nbytes for x in one.memory.table[1:]) / one.told["bases"], 3)
            for one in relatives
        }
        for most in (0, 64, 2048):
            spent = 0.0
            for one in relatives:
                memory = one.memory.with_effort(Effort(most=most)).with_numbers(NUMBERS)
                memory.find_all(windows[:2])  # maps what is read
                begun = time.process_time()
                memory.find_all(windows)
                spent += time.process_time() - begun
            row["ms"][most] = round(1e3 * spent / WINDOWS, 1)
    print(json.dumps(row))
    given.out.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
