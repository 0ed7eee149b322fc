"""The seven laws of yeast, and what every SNV of some genes does, by relatives (no strain).

    python benchmarks/relatives/laws.py RUN OUT.json
    python benchmarks/relatives/laws.py RUN OUT.json starts     (why starts are no law of these)

RUN was trained without chrXIV, chrVIII and chrXI. The laws are those of benchmarks/variants, drawn
in the same way (limit 1,500, seed 1), on chrXIV as there and on the other two. Then every SNV of
`GENES` drawn genes without an intron on the three; consequences by `genodiff score --features`.
Scores are log p(ALT) − log p(REF) of the network times the relatives, and votes. Intervals: genes
drawn whole, 1,000 times.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from paired import Draws, interval, make_auroc, make_gap, write_lines
from related import (
    FOUR,
    SHARED,
    SIX,
    Related,
    align_places,
    compare,
    join,
    open_related,
    read_places,
    vote,
    weigh_places,
)
from yeast_setting import KEPT, read_genome

sys.path.append(str(Path(__file__).resolve().parent.parent / "variants"))

from yeast_laws import LAWS, Gene, draw_variants, is_of, read_genes

import genodiff
from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.variants.consequences import Consequences

FASTA = SHARED / "genomes" / "sacCer3.fa.gz"
BED = SHARED / "genomes/annotation/sacCer3_nondubious_ORFs_and_blocked_reading_frames.bed.gz"
GENES, SEED = 120, 1
NEW = {"chrVIII", "chrXI"}
SETS = {
    "CBS432": FOUR[:1], "S. arboricola, S. eubayanus": FOUR[2:], "the four": FOUR, "all six": SIX,
}  # fmt: skip
KINDS = ("synonymous_variant", "missense_variant", "stop_gained")


class Scores:
    """Score of each base (P, 4) by each way, of places of one contig."""

    def __init__(self, related: Related, codes: np.ndarray, places: np.ndarray) -> None:
        self.ref = codes[places]
        over, kept = align_places(related.relatives, codes, places)
        logs = read_places(related.network, codes, places)
        self.by = {"network alone": compare(logs, self.ref)}
        self.bits = {"network alone": self._own(logs)}
        for name, some in SETS.items():
            rows = related.rows(some)
            both = join(logs, weigh_places(related.choose(some), rows, codes, places, kept))
            self.by[f"likelihood, {name}"] = compare(both, self.ref)
            self.bits[name] = self._own(both)
            for way, values in vote(related, rows, over, (codes, places, kept)).items():
                self.by[f"{way}, {name}"] = values

    def _own(self, logs: np.ndarray) -> np.ndarray:
        own = np.take_along_axis(logs, self.ref[:, None].astype(int), 1)[:, 0]
        return np.asarray(-own / np.log(2))


def score_rows(related: Related, codes: dict, rows: list[tuple[str, int, str, str]]) -> dict:
    """Scores (rows,) by each way of rows (contig, pos from 1, ref, alt)."""
    contig = np.array([row[0] for row in rows])
    at = np.array([row[1] - 1 for row in rows])
    alt = np.array(["ACGT".index(row[3]) for row in rows])
    out: dict[str, np.ndarray] = {}
    for name in np.unique(contig):
        mine = np.flatnonzero(contig == name)
        places, where = np.unique(at[mine], return_inverse=True)
        for way, by_base in Scores(related, codes[name], places).by.items():
            out.setdefault(way, np.zeros(len(rows)))[mine] = by_base[where, alt[mine]]
    return out


def measure_laws(related: Related, codes: dict, genes: list[Gene], contigs: set[str]) -> dict:
    drawn = draw_variants(genes, contigs, 1500, SEED)
    rows = [(v.contig, v.pos, v.ref, v.alt) for v in drawn]
    scores = score_rows(related, codes, rows)
    with Genome(FASTA) as genome:
        assert all(genome.fetch(c, p - 1, p).decode().upper() == r for c, p, r, _ in rows)
    own = genodiff.load(related.network.run, device="cpu", memory="on")
    frame = own.score_variants(rows, fasta=FASTA, method="llr")
    scores["own genome's memory"] = frame["score"].cast(float).to_numpy()
    draws = Draws([v.gene for v in drawn])
    out: dict[str, dict] = {}
    for law, high, low in LAWS:
        up, down = (np.array([is_of(v, kind) for v in drawn]) for kind in (high, low))
        out[law] = {"n": [int(up.sum()), int(down.sum())]}
        for way, score in scores.items():
            out[law][way] = interval(*draws.measure(make_gap(score, up, down)))
        print(law, json.dumps(out[law]), flush=True)
    for way in scores:
        met = sum(out[law][way][1] > 0 for law, *_ in LAWS)
        print(f"{way}: {met} of {len(LAWS)} above 0", flush=True)
    return out


def explain_starts(related: Related, codes: dict, genes: list[Gene], contigs: set[str]) -> dict:
    """Of the bases of start codons and of ATG inside: how much of the four genomes lies over them,
    how much of that has the own base, and the law by three genomes on genes where these lie over
    both.
    """
    drawn = draw_variants(genes, contigs, 1500, SEED)
    drawn = [v for v in drawn if v.kind in ("start codon", "ATG inside")]
    contig, kind = np.array([v.contig for v in drawn]), np.array([v.kind for v in drawn])
    at, gene = np.array([v.pos - 1 for v in drawn]), np.array([v.gene for v in drawn])
    alt = np.array(["ACGT".index(v.alt) for v in drawn])
    rows, three = related.rows(FOUR), related.choose(FOUR[:3])
    whole = [related.names[i] in FOUR[:3] for i in rows]  # S. eubayanus is coding sequences alone
    lies, same, score, own = (np.zeros((len(rows), len(drawn))) for _ in range(4))
    four, alike = related.choose(FOUR), np.zeros((2, len(drawn)))
    for name in np.unique(contig):
        mine = np.flatnonzero(contig == name)
        places, where = np.unique(at[mine], return_inverse=True)
        ref = codes[name][places]
        over, kept = align_places(related.relatives, codes[name], places)
        lies[:, mine] = over[rows].sum(-1)[:, where]
        same[:, mine] = over[rows][:, np.arange(len(places)), ref][:, where]
        logs = weigh_places(three, related.rows(FOUR[:3]), codes[name], places, kept)
        score[0, mine] = compare(logs, ref)[where, alt[mine]]
        for i, chain in enumerate((True, False)):
            logs = weigh_places(four, rows, codes[name], places, kept, chain=chain)
            alike[i, mine] = compare(logs, ref)[where, alt[mine]]
        voted = vote(related, related.rows(FOUR[:3]), over, (codes[name], places, kept))
        own[0, mine] = voted["votes"][where, alt[mine]]
    out: dict = {"genomes": [related.names[i] for i in rows]}
    for one in ("start codon", "ATG inside"):
        of = kind == one
        out[one] = {
            "lies over": lies[:, of].mean(1).round(3).tolist(),
            "has the base where it lies": (same[:, of].sum(1) / lies[:, of].sum(1))
            .round(3)
            .tolist(),
        }
    least = {g: float(lies[whole][:, gene == g].min()) for g in np.unique(gene)}
    covered = np.array([least[g] > 0.8 for g in gene])
    out["genes"], out["covered genes"] = len(least), sum(x > 0.8 for x in least.values())
    up, down, draws = kind == "ATG inside", kind == "start codon", Draws(gene)
    for title, values in zip(("the four", "the four, no chain"), alike, strict=True):
        out[title] = interval(*draws.measure(make_gap(values, up, down)))
    draws = Draws(gene[covered])
    up, down = (kind[covered] == one for one in ("ATG inside", "start codon"))
    for way, values in (("relatives' likelihood", score[0]), ("votes", own[0])):
        out[f"{way}, covered"] = interval(*draws.measure(make_gap(values[covered], up, down)))
    return out


def write_bed(genes: list[Gene], path: Path) -> None:
    """BED12 of genes without introns, for `Consequences`."""
    lines = [
        "\t".join(map(str, (
            g.contig, g.start, g.end, g.name, 0, "-" if g.strand < 0 else "+", g.start, g.end, 0, 1,
            g.end - g.start, 0,
        )))
        for g in genes
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")


def measure_genes(related: Related, codes: dict, genes: list[Gene], contigs: set[str]) -> dict:
    """AUROC of synonymous over missense and so on, of every SNV of drawn genes."""
    whole = [g for g in genes if g.intron is None and g.contig in contigs]
    rng = np.random.default_rng(SEED)
    chosen = [whole[i] for i in sorted(rng.choice(len(whole), GENES, replace=False).tolist())]
    bed = KEPT / "genes.bed"
    write_bed(whole, bed)
    kind, name, place, codon = [], [], [], []
    columns: dict[str, list[np.ndarray]] = {}
    bits: dict[str, list[np.ndarray]] = {}
    with Genome(FASTA) as genome:
        consequences = Consequences(bed, genome)
        for contig in sorted(contigs):
            mine = [g for g in chosen if g.contig == contig]
            places = np.unique(np.concatenate([np.arange(g.start, g.end) for g in mine]))
            scores = Scores(related, codes[contig], places)
            at = np.repeat(np.arange(len(places)), 4)
            base = np.tile(np.arange(4), len(places))
            other = base != scores.ref[at]
            at, base = at[other], base[other]
            for i, b in zip(at.tolist(), base.tolist(), strict=True):
                p = int(places[i])
                ref = "ACGT"[scores.ref[i]]
                found = consequences.find(Allele(contig, p, ref, "ACGT"[b]))
                kind.append(found[0].terms[0] if len(found) == 1 else "")
                name.append(found[0].gene)
            for way, by_base in scores.by.items():
                columns.setdefault(way, []).append(by_base[at, base])
            for way, values in scores.bits.items():
                bits.setdefault(way, []).append(values)
            third = np.zeros(len(places), int)
            for g in mine:
                here = (places >= g.start) & (places < g.end)
                from_start = places[here] - g.start if g.strand > 0 else g.end - 1 - places[here]
                third[here] = from_start % 3 + 1
            codon.append(third)
            place.append(places)
            print(contig, len(mine), "genes", len(places), "places", flush=True)
    kinds, names, third = np.array(kind), np.array(name), np.concatenate(codon)
    scores = {way: np.concatenate(parts) for way, parts in columns.items()}
    out: dict = {
        "genes": len(chosen), "contigs": sorted(contigs),
        "n": {k: int((kinds == k).sum()) for k in KINDS},
        "bits by place of codon": {
            way: [round(float(np.concatenate(parts)[third == c].mean()), 3) for c in (1, 2, 3)]
            for way, parts in bits.items()
        },
        "mean score": {
            way: [round(float(s[kinds == k].mean()), 3) for k in KINDS] for way, s in scores.items()
        },
    }  # fmt: skip
    for high, low in ((0, 1), (1, 2), (0, 2)):
        of = (kinds == KINDS[high]) | (kinds == KINDS[low])
        draws = Draws(names[of], draws=300)
        title = f"AUROC of {KINDS[high]} over {KINDS[low]}"
        out[title] = {
            way: interval(*draws.measure(make_auroc(s[of], kinds[of] == KINDS[high])))
            for way, s in scores.items()
        }
        print(title, json.dumps(out[title]), flush=True)
    return out


def main() -> None:
    begun = time.time()
    related = open_related(sys.argv[1])
    codes = read_genome(FASTA)
    with Genome(FASTA) as genome:
        genes = read_genes(BED, genome)
    target, out = Path(sys.argv[2]), {}
    if sys.argv[3:] == ["starts"]:
        out = json.loads(target.read_text())
        out["starts"] = explain_starts(related, codes, genes, NEW | {"chrXIV"})
        print(json.dumps(out["starts"]), flush=True)
        write_lines(target, out)
        return
    for title, contigs in (("chrXIV", {"chrXIV"}), ("chrVIII, chrXI", NEW)):
        out[title] = measure_laws(related, codes, genes, contigs)
        write_lines(target, out)
    out["every SNV of genes"] = measure_genes(related, codes, genes, NEW | {"chrXIV"})
    out["seconds"] = round(time.time() - begun)
    write_lines(target, out)


if __name__ == "__main__":
    main()
