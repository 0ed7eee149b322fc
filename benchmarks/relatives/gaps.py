"""Gaps of yeast filled: the share of bases that are right, in genes and between them.

    python benchmarks/relatives/gaps.py OUT.json RUN 50

RUN was trained without chrVIII, chrXI and chrXIV. A gap of 30, 100 or 300 bases is in the middle of
a window of 1,024, wholly inside a gene or wholly between two. All of it is hidden at once; the
likeliest base of each place is taken; gaps of 100 are also filled by `infill` in 16 steps, at the
temperatures 1 and 0. "Copied" is what the nearest relative has there by its alignment, A where it
has nothing. Intervals: gaps drawn with replacement.
"""

import sys
import time
from pathlib import Path

import numpy as np
from laws import BED, FASTA, NEW
from paired import interval, write_lines
from related import FOUR, SIX, Related, open_related
from yeast_laws import read_genes  # laws.py put its folder on the path
from yeast_setting import LENGTH, NONE, read_genome

import genodiff
from genodiff.io.faidx import Genome
from genodiff.memory.relatives import Relatives
from genodiff.memory.tree import VoteNumbers
from genodiff.runs.memory_fit import read_network
from genodiff.runs.related_backbone import RelatedBackbone

SIZES, DRAWN, SEED, STEPS = (30, 100, 300), 100, 1, 16
SETS = {"CBS432": FOUR[:1], "S. arboricola, S. eubayanus": FOUR[2:], "the four": FOUR, "six": SIX}
Rows = tuple[np.ndarray, np.ndarray]


def draw_gaps(codes: dict, inside: dict, size: int, coding: bool, n: int) -> Rows:
    """Windows (n, L), clean, and whether each base is in the gap."""
    rng = np.random.default_rng(SEED)
    gap = np.zeros(LENGTH, bool)
    gap[(LENGTH - size) // 2 : (LENGTH + size) // 2] = True
    out: list[np.ndarray] = []
    contigs = sorted(NEW | {"chrXIV"})
    sizes = np.array([len(codes[c]) for c in contigs], float)
    while len(out) < n:
        contig = contigs[rng.choice(len(contigs), p=sizes / sizes.sum())]
        a = int(rng.integers(0, len(codes[contig]) - LENGTH))
        there = inside[contig][a : a + LENGTH][gap]
        if there.all() if coding else not there.any():
            out.append(codes[contig][a : a + LENGTH])
    return np.stack(out), np.broadcast_to(gap, (n, LENGTH))


def look_once(related: Related, relatives: Relatives | None, clean: np.ndarray, gap: np.ndarray):
    masked = np.where(gap, NONE, clean).astype(np.uint8)
    p = read_network(related.network, masked)
    if relatives is not None:
        p = p * relatives.weigh(masked, p)
    return p.argmax(-1)


def copy_nearest(relatives: Relatives, clean: np.ndarray, gap: np.ndarray) -> np.ndarray:
    return relatives.align(np.where(gap, NONE, clean).astype(np.uint8))[0].argmax(-1)


def fill(model: genodiff.Model, clean: np.ndarray, gap: np.ndarray, heat: float) -> np.ndarray:
    letters = np.frombuffer(b"ACGTN", np.uint8)
    texts = [letters[row].tobytes().decode() for row in np.where(gap, NONE, clean)]
    filled = model.infill(texts, seed=SEED, steps=STEPS, temperature=heat)
    return np.array([["ACGT".index(b) for b in text] for text in filled])


def main() -> None:
    target, run, n = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    begun = time.time()
    related = open_related(run)
    codes = read_genome(FASTA)
    with Genome(FASTA) as genome:
        genes = read_genes(BED, genome)
    inside = {c: np.zeros(len(codes[c]), bool) for c in codes}
    for g in genes:
        inside[g.contig][g.start : g.end] = True
    chosen = {name: related.choose(some) for name, some in SETS.items()}
    alone, four = genodiff.load(run, device="cpu"), chosen["the four"]
    votes = VoteNumbers(weights=(1.0,) * len(FOUR), kappa=1.0)  # not asked here
    backbone = RelatedBackbone(related.network.backbone, four, votes).eval()
    models = {
        "network alone": alone,
        "the four": genodiff.Model(related.network._replace(network=backbone), None, None),
    }
    out: dict = {"gaps": n}
    for size in SIZES:
        for coding in (True, False):
            clean, gap = draw_gaps(codes, inside, size, coding, n)
            made = {"copied from CBS432": copy_nearest(chosen["CBS432"], clean, gap)}
            made["network alone"] = look_once(related, None, clean, gap)
            made |= {name: look_once(related, one, clean, gap) for name, one in chosen.items()}
            for name, model in models.items():
                for heat in (0.0, 1.0) if size == DRAWN else ():
                    title = f"{name}, filled at temperature {heat:g}"
                    made[title] = fill(model, clean, gap, heat)
            right = {
                name: ((bases == clean) & gap).sum(1) / gap.sum(1) for name, bases in made.items()
            }
            rng = np.random.default_rng(SEED)
            rows = rng.integers(0, n, (2000, n))
            place = f"{size} bases, {'in genes' if coding else 'between genes'}"
            out[place] = {name: interval(x.mean(), x[rows].mean(1)) for name, x in right.items()}
            for other in ("copied from CBS432", "network alone", "CBS432"):
                d = right["the four"] - right[other]
                out[place][f"the four less {other}"] = interval(d.mean(), d[rows].mean(1))
            for name, value in out[place].items():
                print(f"{time.time() - begun:.0f} s", place, name, value, flush=True)
            write_lines(target, out)


if __name__ == "__main__":
    main()
