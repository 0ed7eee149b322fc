"""What counting could know of two sets that are not won: which letters the relatives show there.

    python benchmarks/relatives/letters_seen.py RUN OUT.json

ubiquitin: at each of 76 codons of six copies, which codons and amino acids the four relatives have
(a relative lies there with more than `LIES`). A score of counts is a function of what is seen, so
no such score is above the best function of it, which is fitted to the truth itself and told as
`best of ...`: each group of changes that look alike has the mean rank of its growth. Residues are
drawn whole, and the function fitted anew in each draw: an upper figure, and no score.
promoter and tRNA: which bases they have at its places, and how many edits make one of them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from Bio.Align import substitution_matrices
from paired import Draws, Figure, make_spearman, write_lines
from related import FOUR, Related, align_places, open_related
from truth_sets import CONTEXT, SCANS, UBIQUITIN, mask_codons
from variant_sets import find_wild, read_scan  # truth_sets.py put its folder on the path
from yeast_laws import CODE
from yeast_setting import SHARED, read_genome, read_table

from genodiff.io.faidx import Genome
from genodiff.runs.folder import find_git_revision

LIES = 0.5
Seen = list[list[str]]
"""Of each residue the codons that relatives have there, over all copies."""


def rank(values: np.ndarray) -> np.ndarray:
    """Mean ranks."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - counts / 2)[at]


def make_best(groups: np.ndarray, truth: np.ndarray) -> Figure:
    """Spearman's correlation of the best score that is a function of the group."""
    _, group = np.unique(groups, return_inverse=True)

    def measure(weights: np.ndarray) -> float:
        times = weights.astype(int)
        ranks = rank(np.repeat(truth, times))
        at = np.repeat(group, times)
        mean = np.bincount(at, ranks) / np.maximum(np.bincount(at), 1)
        return float(make_spearman(mean[at], ranks)(np.ones(len(at))))

    return measure


def read_seen(related: Related, codes: dict[str, np.ndarray]) -> tuple[list[list[str]], Seen]:
    """The wild codons of each copy, and the codons that relatives have."""
    wilds: list[list[str]] = []
    seen: Seen = [[] for _ in range(76)]
    for contig, start, end, strand, first in UBIQUITIN:
        wild, masked, where = mask_codons(codes[contig], start, end, strand, first)
        row = np.arange(len(masked))[:, None]
        for over in related.relatives.align(masked)[:, row, where]:  # (76, 3, 4)
            lies = (over.sum(-1) > LIES).all(-1)
            letters = over.argmax(-1) if strand > 0 else 3 - over.argmax(-1)
            for r in np.flatnonzero(lies):
                seen[r].append("".join("ACGT"[i] for i in letters[r]))
        wilds.append(wild)
    return wilds, seen


def measure_ubiquitin(related: Related, codes: dict[str, np.ndarray]) -> dict:
    wilds, seen = read_seen(related, codes)
    path = SHARED / "relatives" / "truth" / "ubiquitin_dms.tsv.gz"
    rows = [r for r in read_table(path) if r["mut"] not in ("*", r["wt"]) and r["DMSO"]]
    truth = np.array([float(r["DMSO"]) for r in rows])
    residue = np.array([int(r["aa_pos"]) - 1 for r in rows])
    acid = [CODE[codon] for codon in wilds[0]]
    own = [{wild[r] for wild in wilds} for r in range(76)]
    other = [[CODE[c] for c in seen[r] if CODE[c] != acid[r]] for r in range(76)]
    silent = np.array([np.mean([c not in own[r] for c in seen[r]]) for r in range(76)])
    count = np.array([other[r].count(row["mut"]) for r, row in zip(residue, rows, strict=True)])
    least = np.array([
        min(sum(x != y for x, y in zip(a, b, strict=True))
            for a in own[r] | set(seen[r]) for b in CODE if CODE[b] == row["mut"])
        for r, row in zip(residue, rows, strict=True)
    ])  # fmt: skip
    blosum = substitution_matrices.load("BLOSUM62")
    alike = np.array([float(blosum[r["wt"]][r["mut"]]) for r in rows])
    varied = np.array([len(set(seen[r]) | own[r]) > 1 for r in range(76)])
    figures: dict[str, Figure] = {
        "changes from the nearest codon seen": make_spearman(-least.astype(float), truth),
        "share of silent changes at the codon": make_spearman(silent[residue], truth),
        "BLOSUM62": make_spearman(alike, truth),
        "best of changes from the nearest codon seen": make_best(least, truth),
        "best of both and codons seen at the residue (1, 2, 3 or more)": make_best(
            100 * np.array([min(len(set(s)), 3) for s in seen])[residue]
            + 10 * least + np.minimum(count, 1), truth
        ),
        "best of the residue": make_best(residue, truth),
    }  # fmt: skip
    if count.any():
        figures["amino acid seen, times"] = make_spearman(count.astype(float), truth)
    told = Draws(residue).judge(figures, [])
    n = sum(map(len, seen))
    return {
        "changes": len(rows), "residues": len(set(residue)),
        "relatives at a codon of a copy": round(n / 76 / len(UBIQUITIN), 3),
        "codons with another letter": round(
            sum(c not in own[r] for r in range(76) for c in seen[r]) / n, 4
        ),
        "residues with two codons or more": int(varied.sum()),
        "residues with two among yeast's own copies": sum(len(o) > 1 for o in own),
        "residues with another amino acid": sum(bool(o) for o in other),
        "of them": {f"{acid[r]}{r + 1}": "".join(o) for r, o in enumerate(other) if o},
        "changes seen": int((count > 0).sum()),
        "one change away": int((least == 1).sum()),
        "spearman": {name: one["value"] for name, one in told.items()},
    }  # fmt: skip


def measure_promoter(related: Related, codes: dict[str, np.ndarray], name: str) -> dict:
    read, file, contig, near = SCANS[name]
    found = read(SHARED, Path("."), 1500, 1)
    _, _, wild = read_scan(SHARED / "dms" / f"{file}.csv.gz")
    with Genome(SHARED / "genomes/sacCer3.fa.gz") as genome:
        contig, start, strand = find_wild(genome, wild, contig, near)
    wild = found.before[0][CONTEXT:-CONTEXT]  # as the genome has it
    places = np.arange(start, start + len(wild))
    over = align_places(related.relatives, codes[contig], places)[0]
    if strand < 0:
        over = over[:, ::-1, ::-1]
    lies = over.sum(-1) > LIES
    own = np.array(["ACGT".index(b) for b in wild])
    seen = ((over.argmax(-1)[..., None] == np.arange(4)) & lies[..., None]).sum(0)
    altered = seen[np.arange(len(own)), own] < lies.sum(0)
    edits = [
        [(j, "ACGT".index(b)) for j, (a, b) in enumerate(zip(wild, new[CONTEXT:], strict=False))
         if a != b]
        for new in found.after
    ]  # fmt: skip
    known = np.array([sum(seen[j, b] > 0 for j, b in one) for one in edits])
    odd = np.array([sum(not altered[j] and lies[:, j].any() for j, _ in one) for one in edits])
    number = np.array([len(one) for one in edits])
    draws = Draws(np.arange(len(found)))
    figures: dict[str, Figure] = {
        "fewer changes": make_spearman(-number.astype(float), found.truth),
        "fewer changes of places where relatives agree": make_spearman(
            -odd.astype(float), found.truth
        ),
        "fewer changes to what no relative has": make_spearman(
            -(number - known).astype(float), found.truth
        ),
    }
    out = draws.judge(figures, [])
    return {
        "places": len(own), "relatives at a place": round(float(lies.sum(0).mean()), 2),
        "places where one differs": int(altered.sum()), "copies": len(found),
        "copies that differ at half of the places": int((2 * number >= len(own)).sum()),
        "edits a copy": round(float(number.mean()), 2),
        "share of edits seen": round(float(known.sum() / number.sum()), 4),
        "spearman": {way: one["value"] for way, one in out.items()},
    }  # fmt: skip


def main(words: Sequence[str]) -> None:
    related = open_related(words[0], FOUR)
    codes = read_genome(SHARED / "genomes" / "sacCer3.fa.gz")
    write_lines(Path(words[1]), {
        "commit": find_git_revision(),
        "ubiquitin": measure_ubiquitin(related, codes),
        **{name: measure_promoter(related, codes, name) for name in SCANS},
    })  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
