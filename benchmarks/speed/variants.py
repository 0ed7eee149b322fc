"""What scoring variants costs on one core, beside the obvious loop with the same network.

    python benchmarks/speed/variants.py --model RUN --fasta genome.fa --json

`dense` is every substitution of a stretch, `sparse` SNVs a kilobase apart, `mixed` the same with
every eighth an indel of one to four bases. The loop takes one variant at a time: it cuts the
window, and asks the network for each mask by itself, on the strands that the scores use. An indel
takes eight orders there, base by base. Values are compared: an SNV of a shared window may differ
from the loop's, and the largest difference is printed.
"""

import argparse
import json
import random
import time

import numpy as np
import torch

from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.runs.model import TrainedModel, load_model
from genodiff.scoring.masked_reader import open_reader
from genodiff.scoring.shared_sites import measure_spacing
from genodiff.scoring.span_scores import mask_where, take_logs
from genodiff.scoring.variant_scores import ScoreOptions, Scorer
from genodiff.scoring.variant_windows import cut_window

ORDERS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--fasta", required=True)
    parser.add_argument("--sites", type=int, default=64, help="sites of each set of variants")
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    torch.set_num_threads(1)
    model, genome = load_model(a.model), Genome(a.fasta)
    context = model.config.data.seq_len
    began = time.process_time()
    spacing = measure_spacing(open_reader(model), model.alphabet, genome, context)
    found: dict[str, object] = {
        "model": model.digest,
        "spacing": spacing and spacing._asdict(),
        "spacing_seconds": time.process_time() - began,
    }
    for name, alleles in make_sets(genome, a.sites, context).items():
        scorer = Scorer(
            open_reader(model), model.alphabet, genome, ScoreOptions(), context, spacing
        )
        began = time.process_time()
        values = [one.value for one in scorer.score(alleles)]
        fast = time.process_time() - began
        began = time.process_time()
        naive = [score_alone(model, genome, allele, context) for allele in alleles]
        slow = time.process_time() - began
        snvs = [i for i, one in enumerate(alleles) if one.kind == "snv"]
        moved = max(abs(values[i] - naive[i]) for i in snvs)
        found[name] = {
            "variants": len(alleles), "seconds": fast, "loop_seconds": slow,
            "ratio": slow / fast, "largest_difference": moved,
        }  # fmt: skip
    print(json.dumps(found) if a.json else json.dumps(found, indent=2))


def make_sets(genome: Genome, sites: int, context: int) -> dict[str, list[Allele]]:
    """Variants of the longest contig, from its middle on."""
    contig = max(genome.contigs, key=genome.contigs.__getitem__)
    rng, middle = random.Random(1), genome.contigs[contig] // 2
    first = middle - middle % (context // 2)
    stretch = max(sites, context // 2)  # a tile at least, or nothing could be shared

    def substitute(start: int) -> list[Allele]:
        ref = genome.fetch(contig, start, start + 1).decode().upper()
        return [Allele(contig, start, ref, alt) for alt in "ACGT" if alt != ref and ref != "N"]

    def change_length(start: int) -> Allele:
        n = rng.choice((1, 1, 1, 2, 2, 3, 4))
        ref = genome.fetch(contig, start, start + n).decode().upper()
        if rng.random() < 0.5:
            return Allele(contig, start, ref, "")
        return Allele(contig, start, "", "".join(rng.choices("ACGT", k=n)))

    starts = [first + 1000 * i + rng.randrange(900) for i in range(sites)]
    sparse = [rng.choice(substitute(start)) for start in starts]
    return {
        "dense": [one for i in range(first, first + stretch) for one in substitute(i)],
        "sparse": sparse,
        "mixed": [change_length(one.start) if i % 8 == 0 else one for i, one in enumerate(sparse)],
    }


def score_alone(model: TrainedModel, genome: Genome, allele: Allele, context: int) -> float:
    """One variant by itself, one masked window at a time."""
    reader = open_reader(model, batch_size=1)
    pair = cut_window(genome, model.alphabet, [allele], context).pair
    if allele.kind == "snv":
        (logs,) = reader.read([mask_where(reader, pair.ref, pair.ref_span)])
        ref, alt = reader.columns(np.array([*pair.ref[pair.ref_span], *pair.alt[pair.alt_span]]))
        return float(logs[0, alt] - logs[0, ref])
    rng, total = np.random.default_rng(1), 0.0
    for ids, span, sign in ((pair.ref, pair.ref_span, -1), (pair.alt, pair.alt_span, 1)):
        for _ in range(ORDERS):
            masked = span.copy()
            for base in rng.permutation(np.flatnonzero(span)):
                (logs,) = reader.read([mask_where(reader, ids, masked)])
                at = int(masked[:base].sum())
                total += sign * take_logs(reader, logs[at : at + 1], ids[base : base + 1])[0]
                masked[base] = False
    return total / ORDERS


if __name__ == "__main__":
    main()
