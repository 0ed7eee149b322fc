"""How many SNVs a second `score --relatives` has, by how near they lie to one another.

    python benchmarks/relatives/density.py RUN sacCer3.fa.gz OUT.json [NATS]

10,000 SNVs are drawn with random places and letters: from all chromosomes, from chrIV, from the
frames of 20 genes. Of each, `TIMED` that follow one another are scored as the command does, on one
core, in turns. Seconds are of the process, so other work on the machine does not count. NATS is by
how much sites that share a window of the network may move one another (0.001 otherwise).
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from laws import BED
from related import FOUR, open_related
from yeast_laws import read_genes  # laws.py put its folder on the path

from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.memory.relatives_fit import measure_distances
from genodiff.memory.tree import VoteNumbers, measure_kappa, weigh_relatives
from genodiff.runs.folder import find_git_revision
from genodiff.runs.related_backbone import RelatedBackbone
from genodiff.runs.trained_model import TrainedModel
from genodiff.scoring import shared_sites, variant_scores
from genodiff.scoring.methods import ScoreOptions
from genodiff.scoring.variant_scores import score_alleles

DRAWN, TIMED, TURNS, GENES, SEED = 10_000, 400, 2, 20, 1


def list_spans(genome: Genome) -> dict[str, list[tuple[str, int, int]]]:
    whole = [(c, 0, n) for c, n in genome.contigs.items() if c != "chrM"]
    genes = [g for g in read_genes(BED, genome) if g.intron is None]
    chosen = np.random.default_rng(SEED).choice(len(genes), GENES, replace=False)
    return {
        "the whole genome": whole,
        "one chromosome (chrIV)": [span for span in whole if span[0] == "chrIV"],
        "20 genes": [(genes[i].contig, genes[i].start, genes[i].end) for i in sorted(chosen)],
    }


def draw(genome: Genome, spans: list[tuple[str, int, int]]) -> list[Allele]:
    """`DRAWN` SNVs, none twice, in the order of the genome."""
    rng = np.random.default_rng(SEED)
    sizes = np.array([end - start for _, start, end in spans])
    letters = [genome.fetch(*span).decode().upper() for span in spans]
    which = rng.choice(3 * sizes.sum(), DRAWN, replace=False)
    starts, out = np.concatenate([[0], np.cumsum(sizes)]), []
    for number in np.sort(which):
        at, other = divmod(int(number), 3)
        i = int(np.searchsorted(starts, at, "right")) - 1
        ref = letters[i][at - starts[i]]
        if ref in "ACGT":
            alt = "ACGT".replace(ref, "")[other]
            out.append(Allele(spans[i][0], int(spans[i][1] + at - starts[i]), ref, alt))
    return out


def open_with_four(run: str) -> TrainedModel:
    """The run with the four relatives, as `--relatives` makes it."""
    related = open_related(run, FOUR)
    weights = weigh_relatives(measure_distances(related.over_fit, related.fit))
    kappa = measure_kappa(related.over_fit, related.fit)
    votes = VoteNumbers(weights=tuple(weights.tolist()), kappa=kappa)
    backbone = RelatedBackbone(related.network.backbone, related.choose(FOUR), votes)
    return related.network._replace(network=backbone.eval())


def main() -> None:
    torch.set_num_threads(1)
    run, fasta, out = sys.argv[1:4]
    if len(sys.argv) > 4:
        shared_sites.TOLERANCE = float(sys.argv[4])
    model = open_with_four(run)
    told: dict = {"commit": find_git_revision(), "SNVs in 1,000 bases": {}, "a second": {}}
    with Genome(fasta) as genome:
        spans = list_spans(genome)
        sets = {name: draw(genome, some) for name, some in spans.items()}
        for name, alleles in sets.items():
            size = sum(end - start for _, start, end in spans[name])
            told["SNVs in 1,000 bases"][name] = round(1e3 * len(alleles) / size, 2)
        first = sets["20 genes"][:1]
        list(score_alleles(model, genome, first, ScoreOptions(method="llr")))  # for the spacing
        told["spacing"] = next(iter(variant_scores._SPACINGS.values()))
        for turn in range(TURNS):
            for name, alleles in sets.items():
                for method in ("llr", "votes"):
                    some = alleles[(turn + 1) * DRAWN // (TURNS + 1) :][:TIMED]
                    began = time.process_time()
                    found = list(score_alleles(model, genome, some, ScoreOptions(method=method)))
                    rate = len(found) / (time.process_time() - began)
                    told["a second"].setdefault(f"{method}, {name}", []).append(round(rate, 1))
                    print(json.dumps(told), flush=True)
    Path(out).write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
