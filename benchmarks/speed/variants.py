"""What scoring variants costs on one core, beside the obvious loop with the same network.

    python benchmarks/speed/variants.py --model RUN --fasta genome.fa --json

`dense` is every substitution of a stretch, `sparse` SNVs a kilobase apart, `mixed` the same with
every eighth an indel of one to four bases. The loop takes one variant at a time: it cuts the
window, and runs the whole network for each mask by itself, on the strands that the scores use. An
indel takes eight orders there, base by base. Loop and genodiff take turns. An SNV of a shared
window may differ from the loop's, and the largest difference is printed.
"""

import argparse
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.io.faidx import Genome
from genodiff.io.process import keep_freed_memory
from genodiff.io.variants import Allele
from genodiff.runs.model import TrainedModel, load_model
from genodiff.scoring.masked_reader import open_reader
from genodiff.scoring.methods import ScoreOptions
from genodiff.scoring.shared_sites import Spacing, measure_spacing
from genodiff.scoring.spelling_pair import Flags, Ids
from genodiff.scoring.variant_scores import Scorer
from genodiff.scoring.variant_windows import cut_window

sys.path.insert(0, str(Path(__file__).resolve().parent))
from timing import provenance, show

ORDERS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--fasta", required=True)
    parser.add_argument("--sites", type=int, default=64, help="sites of each set of variants")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # of both: a process has one allocator
    model, genome = load_model(a.model), Genome(a.fasta)
    context = model.config.data.seq_len
    began = time.process_time()
    spacing = measure_spacing(open_reader(model), model.alphabet, genome, context)
    preset = Path(a.model).name
    found: dict[str, object] = {
        "benchmark": "variants",
        "shape": {"preset": preset, "L": context, "sites": a.sites},
        "parameters": sum(p.numel() for p in model.backbone.parameters()),
        "model": model.digest,
        "spacing": spacing and spacing._asdict(),
        "spacing_seconds": round(time.process_time() - began, 2),
    }
    for name, alleles in make_sets(genome, a.sites, context).items():
        found[name] = compare(model, genome, alleles, context, spacing, a.rounds)
    told = provenance()
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    told["command"] = " ".join(["python", "benchmarks/speed/variants.py", *words])
    show({**found, "rounds": a.rounds, "seed": 1, **told}, a.json)


def compare(
    model: TrainedModel,
    genome: Genome,
    alleles: list[Allele],
    context: int,
    spacing: Spacing | None,
    rounds: int,
) -> dict[str, object]:
    """The same variants by genodiff and by the loop, a part of each in turns."""

    def fast(some: list[Allele]) -> list[float]:
        scorer = Scorer(
            open_reader(model), model.alphabet, genome, ScoreOptions(), context, spacing
        )
        return [float(one.value or 0) for one in scorer.score(some)]

    def slow(some: list[Allele]) -> list[float]:
        return [score_alone(model, genome, allele, context) for allele in some]

    fast(alleles[:3]), slow(alleles[:1])
    size = -(-len(alleles) // rounds)
    times: list[tuple[float, float]] = []
    values: list[float] = []
    naive: list[float] = []
    for first in range(0, len(alleles), size):
        some = alleles[first : first + size]
        began = time.process_time()
        values += fast(some)
        between = time.process_time()
        naive += slow(some)
        times.append((between - began, time.process_time() - between))
    each = [two / one for one, two in times]
    snvs = [i for i, one in enumerate(alleles) if one.kind == "snv"]
    return {
        "variants": len(alleles),
        "seconds": round(sum(one for one, _ in times), 2),
        "loop_seconds": round(sum(two for _, two in times), 2),
        "ratio": round(sum(two for _, two in times) / sum(one for one, _ in times), 2),
        "ratio_of_rounds": [round(min(each), 2), round(max(each), 2)],
        "largest_difference": max(abs(values[i] - naive[i]) for i in snvs),
    }


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
    pair = cut_window(genome, model.alphabet, [allele], context).pair
    spellings = ((pair.ref, pair.ref_span, -1), (pair.alt, pair.alt_span, 1))
    if allele.kind == "snv":
        logp = read_whole(model, pair.ref, pair.ref_span)[pair.ref_span]
        return sum(float(sign * logp[0, int(ids[span][0])]) for ids, span, sign in spellings)
    rng, total = np.random.default_rng(1), 0.0
    for ids, span, sign in spellings:
        for _ in range(ORDERS):
            masked = span.copy()
            for base in rng.permutation(np.flatnonzero(span)):
                total += sign * float(read_whole(model, ids, masked)[base, int(ids[base])])
                masked[base] = False
    return total / ORDERS


@torch.inference_mode()
def read_whole(model: TrainedModel, ids: Ids, masked: Flags) -> NDArray[np.float64]:
    """(L, V) log-probabilities over A, C, G, T of a window: the whole network, strand by strand."""
    targets = list(model.alphabet.targets)
    complement = np.array(model.alphabet.complement)
    found = np.full((len(ids), len(complement)), -np.inf)
    window = np.where(masked, model.alphabet.mask_id, ids).astype(np.int64)
    logits = model.backbone(torch.from_numpy(window)[None])[0][:, targets]
    found[:, targets] = logits.double().log_softmax(-1).numpy()
    if model.backbone.paired:
        return found
    other = torch.from_numpy(np.ascontiguousarray(complement[window[::-1]]))
    logits = model.backbone(other[None])[0][:, complement[targets]]
    found[:, targets] = (found[:, targets] + logits.double().log_softmax(-1).numpy()[::-1]) / 2
    return found


if __name__ == "__main__":
    main()
