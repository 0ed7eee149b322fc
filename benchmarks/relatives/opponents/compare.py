"""The comparison of PROTOCOL.md, of one half.

    python compare.py WORK choosing|judging OUT.json [GENOME ...]

WORK holds what the other scripts wrote: ours/, star_*/, phast_*/, ecoli_snvs.tsv.gz. Scores of a
genome are kept in WORK/scores-HALF/.
"""

import gzip
import sys
from collections.abc import Iterator
from math import erfc, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from columns_of import CODE, OURS, fit, open_contig, score_counts, score_ours, score_phast
from ecoli_snvs import CODONS
from paired import interval, write_lines
from yeast_setting import SHARED, read_table

CHOOSING = ("chrV", "chrXIV", "chrXVI")
JUDGING = ("chrIII", "chrIX", "chrX", "chrXIII")
BED = SHARED / "genomes/annotation/sacCer3_nondubious_ORFs_and_blocked_reading_frames.bed.gz"
TRUTH = SHARED / "relatives" / "truth"
GENE_SITES, GENES, PER_GENE, SEED = 20, 300, 12, 1


class Rows(NamedTuple):
    """SNVs of one contig: position, alternative base, label, block, and the sets each is in."""

    at: np.ndarray
    alt: np.ndarray
    truth: np.ndarray
    block: np.ndarray
    sets: dict[str, np.ndarray]


def list_yeast(half: str) -> Iterator[tuple[str, Rows]]:
    every = read_table(TRUTH / "yeast_natural_snvs.tsv.gz")
    for contig in CHOOSING if half == "choosing" else JUDGING:
        rows = [r for r in every if r["chrom"] == contig]
        natural = collect(rows, "yeast SNVs", ("missense", "synonymous", "intergenic"))
        yield contig, join(natural, draw_coding(contig))


def collect(rows: list[dict[str, str]], title: str, kinds: tuple[str, ...]) -> Rows:
    at = np.array([int(r["pos"]) - 1 for r in rows])
    kind = np.array([r["kind"] for r in rows])
    sets = {f"{title}, all": np.ones(len(rows), bool)}
    sets |= {f"{title}, {k}": kind == k for k in kinds}
    alt = np.array(["ACGT".index(r["alt"]) for r in rows])
    return Rows(at, alt, np.array([r["natural"] == "1" for r in rows]), at // 10_000, sets)


def join(one: Rows, two: Rows) -> Rows:
    first, second = np.zeros(len(one.at), bool), np.zeros(len(two.at), bool)
    sets = {k: np.concatenate([v, second]) for k, v in one.sets.items()}
    sets |= {k: np.concatenate([first, v]) for k, v in two.sets.items()}
    return Rows(*(np.concatenate(pair) for pair in zip(one[:4], two[:4], strict=True)), sets)


def draw_coding(contig: str) -> Rows:
    """SNVs of drawn genes: synonymous or missense, start codons, and ATG inside."""
    codes = read_target("yeast", contig)
    rng = np.random.default_rng(SEED)
    genes = []
    with gzip.open(BED, "rt") as lines:
        for line in lines:
            row = line.split()
            a, b = int(row[1]), int(row[2])
            if row[0] == contig and (b - a) % 3 == 0 and (len(row) < 10 or row[9] == "1"):
                span = codes[a:b] if row[5] == "+" else 3 - codes[a:b][::-1]
                text = "".join("ACGT"[c] for c in span)
                if text[:3] == "ATG" and CODONS[text[-3:]] == "*":
                    genes.append((a, b, row[5], text))
    found: list[tuple[int, int, bool, str]] = []
    chosen = rng.permutation(len(genes))[:GENES].tolist()
    for a, b, strand, text in (genes[i] for i in chosen):

        def put(i: int, base: str, label: bool, title: str, a=a, b=b, strand=strand) -> None:
            code = "ACGT".index(base)
            place = a + i if strand == "+" else b - 1 - i
            found.append((place, code if strand == "+" else 3 - code, label, title))

        for i in rng.integers(3, len(text) - 3, PER_GENE).tolist():
            base = "ACGT"[("ACGT".index(text[i]) + int(rng.integers(1, 4))) % 4]
            first = i - i % 3
            new = text[first:i] + base + text[i + 1 : first + 3]
            old, now = CODONS[text[first : first + 3]], CODONS[new]
            if now != "*":
                put(i, base, old == now, "yeast consequences")
        inside = [i for i in range(3, len(text) - 3, 3) if text[i : i + 3] == "ATG"]
        if inside:
            for start, label in ((0, False), (inside[int(rng.integers(len(inside)))], True)):
                for i in range(start, start + 3):
                    for base in "ACGT".replace(text[i], ""):
                        put(i, base, label, "yeast start codons")
    at = np.array([one[0] for one in found])
    title = np.array([one[3] for one in found])
    sets = {name: title == name for name in ("yeast consequences", "yeast start codons")}
    alt, label = (np.array([one[k] for one in found]) for k in (1, 2))
    return Rows(at, alt, label, at // 10_000, sets)


def read_target(genome: str, contig: str) -> np.ndarray:
    path = WORK / f"star_{genome}" / f"{contig}.fa"
    with path.open() as lines:
        next(lines)
        return CODE[np.frombuffer(next(lines).strip().encode(), np.uint8)]


def list_ecoli(half: str) -> Iterator[tuple[str, Rows]]:
    odd = half == "judging"
    rows = [r for r in read_table(WORK / "ecoli_snvs.tsv.gz")
            if (int(r["pos"]) - 1) // 100_000 % 2 == odd]  # fmt: skip
    natural = collect(rows, "E. coli SNVs", ("missense", "synonymous", "intergenic"))
    at, alt, label, gene = [], [], [], []
    codes = read_target("ecoli", "NC_000913.3")
    for g, row in enumerate(read_table(TRUTH / "ecoli_essential_genes.tsv.gz")):
        a, b = int(row["start"]) - 1, int(row["end"])
        if a // 100_000 % 2 != odd:
            continue
        for i in np.linspace(a, b - 1, GENE_SITES).astype(int).tolist():
            for base in range(4):
                if base != codes[i]:
                    at.append(i)
                    alt.append(base)
                    label.append(row["essential"] == "1")
                    gene.append(g)
    title = "E. coli essential genes"
    genes = Rows(np.array(at), np.array(alt), np.array(label), -1 - np.array(gene),
                 {title: np.ones(len(at), bool)})  # fmt: skip
    yield "NC_000913.3", join(natural, genes)


def list_chrm(half: str) -> Iterator[tuple[str, Rows]]:
    rows = [r for r in read_table(TRUTH / "chrM_population.tsv.gz")
            if r["ref"] in "ACGT" and r["alt"] in "ACGT"]  # fmt: skip
    rows = [r for r in rows if (int(r["pos"]) - 1) // 1000 % 2 == (half == "judging")]
    at = np.array([int(r["pos"]) - 1 for r in rows])
    ref, alt = (np.array(["ACGT".index(r[k]) for r in rows]) for k in ("ref", "alt"))
    kind = np.array([r["effect"].split(":")[0] for r in rows])
    missense, turned = np.char.startswith(kind, "missense"), (ref ^ alt) == 2
    sets = {
        "all": np.ones(len(rows), bool), "missense": missense,
        "missense transitions": missense & turned, "transitions": turned,
        "tRNA": kind == "tRNA", "rRNA": kind == "rRNA", "control region": kind == "control",
    }  # fmt: skip
    seen = np.array([int(r["gnomad_AC_hom"]) + int(r["helix_hom"]) > 0 for r in rows])
    yield "chrM", Rows(at, alt, seen, at // 200, {f"chrM, {k}": v for k, v in sets.items()})


LISTS = {"yeast": list_yeast, "ecoli": list_ecoli, "chrM": list_chrm}
FIT_CONTIG = {"yeast": "chrXVI", "ecoli": "NC_000913.3", "chrM": "chrM"}


def score_genome(genome: str, half: str) -> dict:
    """Scores, labels, blocks and sets of all SNVs of a genome's half."""
    fits = {}
    first = open_contig(WORK, genome, FIT_CONTIG[genome])
    for kind in ("ours", "last"):
        fits[kind] = fit(first.codes, getattr(first, kind), WORK / f"fits-{genome}-{kind}.json")
    parts: list[dict] = []
    for number, (contig, rows) in enumerate(LISTS[genome](half)):
        one = open_contig(WORK, genome, contig)
        places, where = np.unique(rows.at, return_inverse=True)
        covered = one.last[:, places].any((0, 2))
        by = score_ours(one.codes, one.ours, places, fits["ours"])
        nothing = np.where(one.ours[:, places].sum((0, 2)) > 0.5, 0, np.nan)[:, None]
        by = {k: v + nothing for k, v in by.items()}
        by |= score_counts(one.codes, one.last, places, fits["last"])
        by |= score_phast(WORK, genome, contig, one.codes, places, covered)
        ref = np.minimum(one.codes, 3)[rows.at].astype(int)
        part = {f"score:{k}": v[where, rows.alt] for k, v in by.items()}
        part |= {f"set:{k}": v for k, v in rows.sets.items()}
        part |= {"truth": rows.truth, "block": number * 10**7 + rows.block,
                 "turned": (ref ^ rows.alt) == 2}  # fmt: skip
        parts.append(part)
        print(genome, contig, len(rows.at), flush=True)
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}


def open_scores(genome: str, half: str) -> dict:
    path = WORK / f"scores-{half}" / f"{genome}.npz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        np.savez(path, **score_genome(genome, half))
    with np.load(path) as kept:
        return dict(kept)


def describe(score: np.ndarray, turned: np.ndarray) -> np.ndarray:
    rank = np.argsort(np.argsort(score, kind="stable"), kind="stable") / len(score) * 2 - 1
    return np.stack([np.ones(len(rank)), rank, rank**2, turned * 1.0, rank * turned], 1)


def add_prior(score: np.ndarray, turned: np.ndarray, known: tuple) -> np.ndarray:
    """The score with a transition prior fitted to the other half, `known`: score, turned, truth."""
    x, y = describe(known[0], known[1]), known[2].astype(float)
    b = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ b))
        slope = (x * (p * (1 - p))[:, None]).T @ x + 1e-3 * np.eye(len(b))
        b += np.linalg.solve(slope, x.T @ (y - p) - 1e-3 * b)
    return describe(score, turned) @ b


def by_gene(data: dict, mine: np.ndarray) -> dict:
    """One row a gene: minus the mean score."""
    genes, where = np.unique(data["block"][mine], return_inverse=True)
    n = np.bincount(where)
    out = {k: -np.bincount(where, np.nan_to_num(v[mine])) / n
           for k, v in data.items() if k.startswith("score:")}  # fmt: skip
    truth = np.bincount(where, data["truth"][mine]) > 0
    return out | {"truth": truth, "block": genes // 10, "turned": np.zeros(len(genes), bool)}


def pick(data: dict, name: str) -> dict:
    mine = data[f"set:{name}"]
    if name.endswith("genes"):
        return by_gene(data, mine)
    return {k: v[mine] for k, v in data.items() if not k.startswith("set:")}


class BlockDraws:
    """AUROC of all rows and of whole blocks drawn with replacement, from the pairs of blocks."""

    def __init__(self, block: np.ndarray, draws: int, seed: int = SEED) -> None:
        _, self._member = np.unique(block, return_inverse=True)
        self._n = int(self._member.max()) + 1
        rng = np.random.default_rng(seed)
        drawn = [np.bincount(rng.integers(0, self._n, self._n), minlength=self._n)
                 for _ in range(draws)]  # fmt: skip
        self._counts = np.array([np.ones(self._n), *drawn], np.float64)

    def measure(self, score: np.ndarray, truth: np.ndarray) -> tuple[float, np.ndarray]:
        _, level = np.unique(score, return_inverse=True)
        low = np.zeros((int(level.max()) + 1, self._n), np.float32)
        np.add.at(low, (level[~truth], self._member[~truth]), 1)
        below = low.cumsum(0) - low / 2
        order = np.argsort(self._member[truth], kind="stable")
        blocks, first = np.unique(self._member[truth][order], return_index=True)
        pairs = np.zeros((self._n, self._n))
        pairs[blocks] = np.add.reduceat(below[level[truth][order]], first, dtype=np.float64)
        wins = ((self._counts @ pairs) * self._counts).sum(1)
        both = [self._counts @ np.bincount(self._member[t], minlength=self._n)
                for t in (truth, ~truth)]  # fmt: skip
        found = wins / np.where(both[0] * both[1] > 0, both[0] * both[1], np.nan)
        return float(found[0]), found[1:]


def judge(data: dict, other: dict | None, name: str, common: bool) -> dict:
    one = pick(data, name)
    scores = {k[6:]: v for k, v in one.items() if k.startswith("score:")}
    if common:
        ok = np.isfinite(list(scores.values())).all(0)
        one, scores = {k: v[ok] for k, v in one.items()}, {k: v[ok] for k, v in scores.items()}
    share = {k: float(np.isfinite(v).mean()) for k, v in scores.items()}
    scores = {k: np.nan_to_num(v) for k, v in scores.items()}
    scores["transition"] = one["turned"].astype(float)
    if other is not None and not common and 0 < one["turned"].mean() < 1:
        past = pick(other, name)
        for k in [k for k in scores if k != "transition"]:
            known = np.nan_to_num(past[f"score:{k}"]), past["turned"], past["truth"]
            scores[f"{k} + transition prior"] = add_prior(scores[k], one["turned"], known)
    draws = BlockDraws(one["block"], 1000)
    known = {k: draws.measure(v, one["truth"]) for k, v in scores.items()}
    mine, drawn = known[OURS[0]]
    primed, drawn_primed = known.get(f"{OURS[0]} + transition prior", (mine, drawn))
    out: dict = {"n": len(one["truth"]), "positive": int(one["truth"].sum())}
    for k, (value, some) in known.items():
        out[k] = {"value": interval(value, some), "covered": round(share.get(k, 1.0), 4)}
        with_prior = k.endswith(" + transition prior")
        own, own_drawn = (primed, drawn_primed) if with_prior else (mine, drawn)
        if k != OURS[0]:
            gap = own_drawn - some
            out[k]["one score ahead by"] = interval(own - value, gap)
            spread = float(np.nanstd(gap))
            out[k]["p"] = erfc(abs(own - value) / spread / sqrt(2)) if spread else 1.0
    return out


def correct(found: dict) -> None:
    """Holm's correction over the sets, for each baseline."""
    names = {k for one in found.values() for k in one if isinstance(one[k], dict)}
    for name in names:
        p = sorted(
            (one[name]["p"], title) for title, one in found.items() if "p" in one.get(name, {})
        )
        last = 0.0
        for i, (value, title) in enumerate(p):
            last = max(last, min(1.0, value * (len(p) - i)))
            found[title][name]["p, Holm"] = float(f"{last:.3g}")


def main() -> None:
    half, target, genomes = sys.argv[2], Path(sys.argv[3]), sys.argv[4:] or list(LISTS)
    found: dict[str, dict] = {}
    for common in (False, True) if half == "judging" else (False,):
        part: dict[str, dict] = {}
        for genome in genomes:
            data = open_scores(genome, half)
            past = half == "judging" and (WORK / f"scores-choosing/{genome}.npz").exists()
            other = open_scores(genome, "choosing") if past else None
            for key in data:
                if key.startswith("set:") and data[key].any():
                    part[key[4:]] = judge(data, other, key[4:], common)
        correct(part)
        found |= {f"{k}, common sites" if common else k: v for k, v in part.items()}
    write_lines(target, found)
    for title, one in found.items():
        print("##", title, one["n"], one["positive"])
        rows = [(k, v) for k, v in one.items() if isinstance(v, dict)]
        for k, v in sorted(rows, key=lambda row: -row[1]["value"][0]):
            ahead = v.get("one score ahead by", "")
            print(f"{k:44} {v['covered']:.3f} {v['value']} {ahead} {v.get('p, Holm', '')}")


if __name__ == "__main__":
    WORK = Path(sys.argv[1])
    main()
