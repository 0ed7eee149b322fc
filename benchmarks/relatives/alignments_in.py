"""What an alignment costs and gives beside our own search: bits and windows a second.

    python benchmarks/relatives/alignments_in.py TARGET.fa OUT.json chrV,chrVIII A.fa.gz:A.paf ...

The numbers of each genome, the tree and its classes are fitted with each source by itself, as
`--relatives` does. Windows of 1,024 of the contigs are read whole (leave-one-out) and masked once,
the share masked even over (0, 1); of `chrV,chrVIII:4` each fourth. Both sources read the same
batches in turn, in one process; seconds are of the processor.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from yeast_setting import LENGTH

from genodiff.alphabet import DNA, encode_bases
from genodiff.io.faidx import Genome
from genodiff.kernels.library import instruction_set
from genodiff.memory.fitting import measure_bits
from genodiff.memory.relatives import Relatives
from genodiff.memory.text import NONE
from genodiff.memory.tree import share_bases
from genodiff.runs.folder import find_git_revision
from genodiff.runs.related_genome import relate_genome

BATCH = 64


def main() -> None:
    target, out, contigs, *pairs = sys.argv[1:]
    torch.set_num_threads(1)
    genome = Genome(target)
    both = [[one.rpartition(":")[0] for one in pairs], pairs]
    sources = [relate_genome(genome, given).relatives for given in both]
    found = {"commit": find_git_revision(), "isa": instruction_set(), "given": both[1]}
    contigs, _, every = contigs.partition(":")
    for contig in contigs.split(","):
        codes = encode_bases(DNA.encode(genome.fetch(contig, 0, genome.contigs[contig])))
        clean = codes[: len(codes) // LENGTH * LENGTH].reshape(-1, LENGTH)
        clean = clean[(clean < NONE).all(1)][:: int(every or 1)]
        rng = np.random.default_rng(1)
        rates = (rng.permutation(len(clean)) + 0.5) / len(clean)
        masked = np.where(rng.random(clean.shape) < rates[:, None], NONE, clean).astype(np.uint8)
        found[contig] = {"windows": len(clean)}
        for name, rows in (("whole", clean), ("masked", masked)):
            bits, seconds = [[], []], [0.0, 0.0]
            for first in range(0, len(rows), BATCH):
                some, true = rows[first : first + BATCH], clean[first : first + BATCH]
                for i in (0, 1) if first // BATCH % 2 else (1, 0):
                    begun = time.process_time()
                    over = sources[i].align(some)
                    seconds[i] += time.process_time() - begun
                    bits[i].append(measure(sources[i], over, some, true))
            search, align = (float(np.nanmean(np.concatenate(one))) for one in bits)
            change = np.concatenate(bits[1]) - np.concatenate(bits[0])
            change = change[np.isfinite(change)]
            found[contig][name] = {
                "bits": [round(search, 4), round(align, 4)],
                "lost": round(float(change.mean()), 4),
                "se": round(float(change.std() / len(change) ** 0.5), 4),
                "windows_a_second": [round(len(rows) / one, 1) for one in seconds],
                "times": round(seconds[0] / seconds[1], 2),
            }
            print(contig, name, found[contig][name], flush=True)
    Path(out).write_text(json.dumps(found, indent=1) + "\n")


def measure(relatives: Relatives, over: np.ndarray, rows: np.ndarray, clean: np.ndarray):
    """Bits of each window: of all bases by the others, or of those that are masked."""
    assert relatives.columns is not None
    prior = np.broadcast_to(share_bases(relatives.columns.gc), (*rows.shape, 4))
    p = relatives.combine(over, rows, prior) * prior
    p /= p.sum(-1, keepdims=True)
    if (rows == clean).all():
        own = np.take_along_axis(p, clean[..., None].astype(int), -1)[..., 0]
        return -np.log2(own).mean(1)
    return measure_bits(p, rows, clean)


if __name__ == "__main__":
    main()
