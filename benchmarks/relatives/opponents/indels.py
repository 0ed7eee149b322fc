"""Natural indels of yeast beside their controls: AUROC in genes and between, and indels a second.

    yeast_indels.py WORK WORK/indels.tsv.gz          our_columns.py yeast WORK/ours/yeast
    star.py sacCer3.fa WORK/star_gaps *.maf --gaps
    phast_indels.sh WORK/phast_yeast/fit.mod WORK/phast_indels WORK/star_gaps/*.fa
    python indels.py WORK OUT.json CONTIG ...

The score is `score_spellings`, with the classes in WORK/fits-yeast-ours.json. Baselines: minus the
length, how far the bases behind repeat the indel's, and on LAST's star alignment the share of gaps
and unaligned bases within 10 columns, and of genomes that have no base at the position; and minus
the log-likelihood of these columns by PHAST's indelFit, which says where indels have happened and
knows neither the bases nor the length of the one in question. Natural indels without a control are
counted: were each of them below every control, a figure would be multiplied by `matched`.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from columns_of import read_star
from compare import BlockDraws
from paired import interval
from yeast_indels import ALONE
from yeast_setting import FOUR, SHARED, open_relative, read_genome, read_table

from genodiff.memory.columns import ColumnNumbers
from genodiff.memory.numbers import RELATIVE_SEARCH, RelativeNumbers
from genodiff.memory.profiles import ProfileScores
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.spellings import CONTEXT, score_spellings
from genodiff.memory.tree import ProfileNumbers

WEIGHTS = np.array([1.0, 0.95, 0.42, 0.52])
NEAR = 10
SCORES = ("score", "length", "repeat", "gaps", "absent", "indelFit")


def open_scores(work: Path) -> tuple[Relatives, ProfileScores]:
    genomes = []
    for name in FOUR:
        numbers = (work / "ours/yeast" / f"{name}.numbers.json").read_text()
        memory = open_relative(name).with_numbers(RELATIVE_SEARCH)
        fitted = RelativeNumbers.model_validate_json(numbers)
        genomes.append(RelativeGenome.join(memory, fitted))
    kept = json.loads((work / "fits-yeast-ours.json").read_text())
    columns = ColumnNumbers(**kept["columns"])
    profiles = ProfileScores(columns.tree, columns.gc, ProfileNumbers(**kept["profiles"]))
    return Relatives(tuple(genomes), columns), profiles


def main() -> None:
    work, target, contigs = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    relatives, profiles = open_scores(work)
    genome = read_genome(SHARED / "genomes" / "sacCer3.fa.gz")
    rows = [r for r in read_table(work / "indels.tsv.gz") if r["chrom"] in contigs]
    alone = [r["region"] for r in rows if r["natural"] == ALONE]
    rows = [r for r in rows if r["natural"] != ALONE]
    phast = {c: np.loadtxt(work / "phast_indels" / f"{c}.indels")[:, 1] for c in contigs}
    last = {c: read_star(work / "star_yeast" / f"{c}.fa")[1].sum(-1) for c in contigs}
    scores = {k: np.zeros(len(rows)) for k in SCORES}
    spent = 0.0
    for i, row in enumerate(rows):
        codes, at = genome[row["chrom"]], int(row["pos"])
        gone, new = row["ref"][1:], np.array(["ACGT".index(c) for c in row["alt"][1:]], np.uint8)
        start, end = max(at - CONTEXT, 0), min(at + len(gone) + CONTEXT, len(codes))
        ref = codes[start:end]
        alt = np.concatenate([codes[start:at], new, codes[at + len(gone) : end]])
        span = at - start, at - start + len(gone)
        begun = time.process_time()
        scores["score"][i] = score_spellings(relatives, profiles, WEIGHTS, ref, alt, span)
        spent += time.process_time() - begun
        scores["length"][i] = -max(len(gone), len(new))
        scores["repeat"][i] = int(row["repeat"])
        around = slice(max(at - NEAR, 0), at + len(gone) + NEAR)
        near = last[row["chrom"]][:, around]
        scores["indelFit"][i] = -phast[row["chrom"]][around].sum()
        scores["gaps"][i] = 1 - near.mean()
        scores["absent"][i] = 1 - near[:, NEAR].mean() if near.shape[1] > NEAR else 0.0
    natural = np.array([r["natural"] == "1" for r in rows])
    block = np.array([contigs.index(r["chrom"]) * 10**7 + int(r["pos"]) // 10_000 for r in rows])
    shifts = np.array([(len(r["alt"]) - len(r["ref"])) % 3 != 0 for r in rows])
    out: dict = {"indels a second of one core": round(len(rows) / spent, 1), "contigs": contigs}
    for region in ("gene", "between"):
        mine = np.array([r["region"] == region for r in rows])
        draws = BlockDraws(block[mine], 1000)
        known = {k: draws.measure(v[mine], natural[mine]) for k, v in scores.items()}
        own, drawn = known["score"]
        pairs = int(natural[mine].sum())
        of = {"n": int(mine.sum()), "matched": round(pairs / (pairs + alone.count(region)), 3)}
        of |= {"score": interval(own, drawn)}
        for k, (value, some) in known.items():
            if k != "score":
                ahead = interval(own - value, drawn - some)
                of[k] = {"value": interval(value, some), "ahead": ahead}
        for k, some in (("frame kept", ~shifts), ("frame shifted", shifts)):
            of[f"mean of controls, {k}"] = float(scores["score"][mine & some & ~natural].mean())
        out[region] = of
    target.write_text(json.dumps(out, indent=1) + "\n")
    print(target.read_text())


if __name__ == "__main__":
    main()
