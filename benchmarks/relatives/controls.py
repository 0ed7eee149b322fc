"""Controls of retrieval, in one command: what related genomes are worth, and what they must not be.

    opponents/last.sh sacCer3.fa WORK/last_yeast NAME=FILE ...
    python benchmarks/relatives/controls.py WORK controls.json
    python benchmarks/relatives/controls.py draw controls.json OUT.svg

Yeast, `WINDOWS` windows of 1,024 bases on each of three chromosomes; every fit is on windows of the
others. Bits are leave-one-out, without a network: what each base given the rest of its window and
the genomes saves beside the base composition. Controls: genomes of another kingdom; each genome
reversed (not complemented); its pieces of 1 kb in random order, on random strands; the bases within
its pieces in random order. Beside them each genome alone, the curve over 1 to 8 genomes, the recall
of LAST's one-to-one orthologs, the time of a window and the size of the index. Intervals: blocks of
10 windows drawn with replacement. Files in WORK are used again. About ten minutes of one core.
"""

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

sys.path.append(str(Path(__file__).resolve().parent / "opponents"))

from paired import interval
from star import read_blocks
from yeast_setting import FOUR, LENGTH, SHARED, cut_codes, read_genome

from genodiff.memory.columns import combine
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.relatives_fit import fit_columns, fit_genome
from genodiff.memory.text import NONE
from genodiff.memory.tree import share_bases
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import open_relatives

TESTED, WINDOWS, FIT_WINDOWS, BLOCK, SEED = ("chrI", "chrXI", "chrXIV"), 100, 64, 10, 1
EIGHT = (*FOUR, "Spar_N44", "Spar_YPS138", "Smik_IFO1815_chrI", "Skud_IFO1802_chrI")
WRONG = ("Salmonella_LT2", "Klebsiella_ATCC13883")
PIECE, NEAR, LEAST, HIDDEN, SIMPLE = 1000, 100, 200, 64, 4.0
Genome = dict[str, np.ndarray]


def reverse(genome: Genome, rng: np.random.Generator) -> Genome:
    return {name: codes[::-1] for name, codes in genome.items()}


def list_pieces(genome: Genome) -> list[np.ndarray]:
    return [c[i : i + PIECE] for c in genome.values() for i in range(0, len(c), PIECE)]


def reorder(genome: Genome, rng: np.random.Generator) -> Genome:
    pieces = [np.where(p < NONE, 3 - p, NONE)[::-1] if rng.random() < 0.5 else p
              for p in list_pieces(genome)]  # fmt: skip
    return {"shuffled": np.concatenate([pieces[i] for i in rng.permutation(len(pieces))])}


def scramble(genome: Genome, rng: np.random.Generator) -> Genome:
    return {"scrambled": np.concatenate([rng.permutation(p) for p in list_pieces(genome)])}


MADE: dict[str, Callable[[Genome, np.random.Generator], Genome]] = {
    "reversed": reverse, "order of 1 kb pieces shuffled": reorder,
    "bases within 1 kb pieces shuffled": scramble,
}  # fmt: skip


def find_file(name: str) -> Path:
    folder = "ecoli" if name in WRONG else "yeast"
    return SHARED / "relatives" / folder / f"{name}.fa.gz"


def make_file(work: Path, kind: str, name: str) -> Path:
    path = work / "controls" / kind.replace(" ", "_") / f"{name}.fa.gz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = MADE[kind](read_genome(find_file(name)), np.random.default_rng(SEED))
        with gzip.open(path, "wt", compresslevel=1) as out:
            for contig, codes in made.items():
                out.write(
                    f">{contig}\n{np.frombuffer(b'ACGTN', np.uint8)[codes].tobytes().decode()}\n"
                )
    return path


class Bench:
    """The windows, and each genome with its fitted numbers and what it has over them."""

    def __init__(self, work: Path) -> None:
        self.work = work
        genome = read_genome(SHARED / "genomes" / "sacCer3.fa.gz")
        self.starts = {}
        rows = []
        for contig in TESTED:
            starts = np.arange(0, len(genome[contig]) - LENGTH, LENGTH)
            starts = [a for a in starts.tolist() if (genome[contig][a : a + LENGTH] < NONE).all()]
            self.starts[contig] = [
                starts[i] for i in np.linspace(0, len(starts) - 1, WINDOWS).astype(int)
            ]
            rows += [genome[contig][a : a + LENGTH] for a in self.starts[contig]]
        self.windows = np.stack(rows)
        rest = [c for name, c in genome.items() if name not in (*TESTED, "chrM")]
        self.fit = cut_codes(np.concatenate(rest), FIT_WINDOWS)
        self.genomes: dict[str, RelativeGenome] = {}
        self.over: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.bytes: dict[str, float] = {}

    def add(self, name: str, path: Path) -> None:
        (one,) = open_relatives(list_genomes([path]))
        memory = one.memory
        kept = self.work / "controls" / f"{name.replace(' ', '_')}.json"
        kept.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            kept.write_text(fit_genome(memory, self.fit).numbers.model_dump_json())
        numbers = RelativeNumbers.model_validate_json(kept.read_text())
        alone = Relatives((RelativeGenome.join(memory, numbers),), None)
        self.genomes[name] = alone.genomes[0]
        self.over[name] = alone.align(self.fit)[0], alone.align(self.windows)[0]
        planes = memory.text.planes.nbytes
        assert memory.table is not None
        index = sum(x.nbytes for x in memory.table[1:])
        self.bytes[name] = (planes + index) / memory.text.n_bases
        print(name, round(time.process_time()), "s of CPU", flush=True)

    def relate(self, names: list[str]) -> Relatives:
        fit = np.ascontiguousarray([self.over[name][0] for name in names])
        return Relatives(tuple(self.genomes[n] for n in names), fit_columns(fit, self.fit))

    def measure(self, names: list[str], hidden: int = 0) -> np.ndarray:
        """(windows,): bits a base that are saved, beside those of the composition: of all bases,
        each left out of the alignment, or of `hidden` ones that the search has not seen either.
        """
        relatives, over = self.relate(names), np.ascontiguousarray([self.over[n][1] for n in names])
        share, seen = share_bases(relatives.columns.gc), self.windows
        told = np.ones(seen.shape, bool)
        if hidden:
            told = np.random.default_rng(SEED).random(seen.shape).argsort(1) < hidden
            seen = np.where(told, np.uint8(NONE), seen)
            over = relatives.align(seen)
        prior = np.broadcast_to(share, (*seen.shape, 4))
        p = prior * relatives.combine(over, seen, prior)
        p = p / p.sum(-1, keepdims=True)
        own = np.take_along_axis(p, self.windows[..., None].astype(int), -1)[..., 0]
        return (np.log2(own) - np.log2(share[self.windows])).mean(1, where=told)

    def find_homologs(self, paths: list[Path]) -> np.ndarray:
        """(windows,): those that LAST aligns to a genome by its bases (E < 1e-3 in all of them)."""
        folder = self.work / "controls"
        with (folder / "wrong.fa").open("wb") as out:
            out.writelines(gzip.decompress(path.read_bytes()) for path in paths)
        letters = np.frombuffer(b"ACGTN", np.uint8)[self.windows]
        rows = [f">{i}\n{row.tobytes().decode()}\n" for i, row in enumerate(letters)]
        (folder / "windows.fa").write_text("".join(rows))
        subprocess.run(["lastdb", "-P1", folder / "wrong", folder / "wrong.fa"], check=True)
        words = ["lastal", "-P1", "-D1e9", "-fBlastTab", folder / "wrong", folder / "windows.fa"]
        told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        table = [row.split("\t") for row in told.splitlines() if not row.startswith("#")]
        hits = {int(row[0]) for row in table if float(row[10]) < 1e-3}
        return np.isin(np.arange(len(self.windows)), sorted(hits))

    def find_simple(self) -> np.ndarray:
        """(windows,): those with 64 bases side by side that have at most `SIMPLE` bits of 3-mers.

        The entropy of 62 words of three bases; of 64 random bases it is 5.2 to 5.8 bits.
        """
        words = self.windows[:, :-2] * 16 + self.windows[:, 1:-1] * 4 + self.windows[:, 2:]
        simple = np.zeros(len(words), bool)
        for at in range(0, words.shape[1] - 61, 8):
            counts = np.apply_along_axis(np.bincount, 1, words[:, at : at + 62], minlength=64) / 62
            bits = -(counts * np.log2(np.where(counts > 0, counts, 1))).sum(1)
            simple |= bits < SIMPLE
        return simple

    def recall(self, name: str) -> dict[str, float]:
        """What LAST aligns one-to-one, and how much of it is found (see `main`)."""
        memory, over = self.genomes[name].memory, self.over[name][1]
        first_row = {c: i * WINDOWS for i, c in enumerate(TESTED)}
        pairs = zip(memory.text.sources, memory.text.starts.tolist(), strict=False)
        text = {source.contig: at for source, at in pairs}
        place = np.full(self.windows.shape, -1, np.int64)
        base = np.full(self.windows.shape, NONE, np.uint8)
        turned = np.zeros(self.windows.shape, bool)
        code = np.full(256, NONE, np.uint8)
        code[np.frombuffer(b"ACGT", np.uint8)] = range(4)
        for _, top, low in read_blocks(self.work / "last_yeast" / f"{name}.maf"):
            if top[1] not in first_row:
                continue
            x, y = (np.frombuffer(row[6].upper().encode(), np.uint8) for row in (top, low))
            both = (x != ord("-")) & (y != ord("-"))
            t = int(top[2]) + np.cumsum(x != ord("-"))[both] - 1
            q = int(low[2]) + np.cumsum(y != ord("-"))[both] - 1
            back = low[4] == "-"
            at = text[low[1]] + (int(low[5]) - 1 - q if back else q)
            for i, a in enumerate(self.starts[top[1]], first_row[top[1]]):
                mine = (t >= a) & (t < a + LENGTH)
                place[i, t[mine] - a], turned[i, t[mine] - a] = at[mine], back
                base[i, t[mine] - a] = code[y[both][mine]]
        there = base < NONE
        has, same = over.sum(-1) > 0.5, over.argmax(-1) == base
        found = memory.search(self.windows)[1]
        loci = hits = 0
        for i, diagonals in enumerate(found):
            for strand in (0, 1):
                mine = there[i] & (turned[i] == strand)
                if mine.sum() >= LEAST:
                    at = np.flatnonzero(mine)
                    wanted = place[i][mine] - (LENGTH - 1 - at if strand else at)
                    own = np.asarray(diagonals[strand])
                    loci += 1
                    hits += len(own) > 0 and bool((abs(own[:, None] - wanted) <= NEAR).any())
        return {"loci": loci, "loci found": hits / loci, "bases": int(there.sum()),
                "bases with a value": float(has[there].mean()),
                "bases with LAST's base": float((has & same)[there].mean())}  # fmt: skip

    def time(self, names: list[str]) -> list[float]:
        """Seconds of CPU of each window: search, alignment, tree and classes."""
        relatives, out = self.relate(names), []
        for row in self.windows[:, None]:
            begun = time.process_time()
            over = relatives.align(row)
            prior = np.broadcast_to(share_bases(relatives.columns.gc), (*row.shape, 4))
            combine(over, row, prior, relatives.columns)
            out.append(time.process_time() - begun)
        return out


def judge(bits: np.ndarray) -> list[float]:
    """Mean and 95 % interval."""
    blocks = bits.reshape(-1, BLOCK).mean(1)
    rng = np.random.default_rng(SEED)
    drawn = blocks[rng.integers(0, len(blocks), (1000, len(blocks)))].mean(1)
    return interval(float(bits.mean()), drawn)


def draw(found: dict, target: Path) -> None:
    """The bits of each control, and of 1 to 8 genomes."""
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "genodiff", "font.size": 11})
    rows = [("four genomes", found["four"]), *((name, found[name]) for name in MADE)]
    rows += [("two bacteria", found["wrong species"])]
    rows += [(f"{name.split('_')[0]}. {name.split('_')[1]} alone", value)
             for name, value in found["alone"].items()]  # fmt: skip
    height = 0.3 * len(rows)
    figure, (top, low) = plt.subplots(
        2, figsize=(5.2, height + 3.6), layout="constrained", height_ratios=(height, 2.6)
    )
    for y, (_, (value, first, last)) in enumerate(rows):
        control = 1 <= y <= len(MADE) + 1
        colour = "#c05a2c" if control else "#17607a"
        top.barh(y, value, color=colour, height=0.6)
        top.plot([first, last], [y, y], color="#20292e", lw=1.5)
        top.text(max(last, 0) + 0.02, y, f"{value:.3f}", va="center")
    top.set_yticks(range(len(rows)), [name for name, _ in rows])
    top.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, 1.6))
    top.set_xlabel("bits a base saved")
    values = np.array([one["bits"] for one in found["curve"]]).T
    n = np.arange(1, values.shape[1] + 1)
    low.fill_between(n, values[1], values[2], color="#17607a", alpha=0.2, lw=0)
    low.plot(n, values[0], "o-", color="#17607a")
    low.set(xticks=n, xlabel="related genomes", ylabel="bits a base saved")
    for axes in (top, low):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})


def main() -> None:
    if sys.argv[1] == "draw":
        return draw(json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3]))
    work, target, begun = Path(sys.argv[1]), Path(sys.argv[2]), time.process_time()
    bench = Bench(work)
    for name in (*EIGHT, *WRONG):
        bench.add(name, find_file(name))
    for kind in MADE:
        for name in FOUR:
            bench.add(f"{name}, {kind}", make_file(work, kind, name))
    out: dict = {"windows": len(bench.windows), "contigs": TESTED}
    whole = bench.measure(list(FOUR))
    out["four"] = judge(whole)
    wrong = bench.measure(list(WRONG))
    out["wrong species"] = judge(wrong)
    homologs = bench.find_homologs([find_file(name) for name in WRONG])
    simple = bench.find_simple()
    hidden = bench.measure(list(WRONG), HIDDEN)
    out["wrong species, hidden from the search"] = judge(hidden)
    out["four, hidden from the search"] = judge(bench.measure(list(FOUR), HIDDEN))
    out["windows that LAST aligns to the wrong species"] = int(homologs.sum())
    for name, bits in (("", wrong), (", hidden from the search", hidden)):
        out[f"wrong species{name}, without those"] = judge(np.where(homologs, 0, bits))
    out["windows of simple sequence"] = int(simple.sum())
    for kind in MADE:
        made = bench.measure([f"{name}, {kind}" for name in FOUR])
        out[kind] = judge(made)
        out[f"{kind}, less four"] = judge(made - whole)
        out[f"{kind}, without simple sequence"] = judge(np.where(simple, 0, made))
    out["four and the wrong species, less four"] = judge(bench.measure([*FOUR, *WRONG]) - whole)
    out["alone"] = {name: judge(bench.measure([name])) for name in EIGHT}
    last, out["curve"] = np.zeros(len(whole)), []
    for n in range(1, len(EIGHT) + 1):
        bits = bench.measure(list(EIGHT[:n]))
        out["curve"].append(
            {"added": EIGHT[n - 1], "bits": judge(bits), "more": judge(bits - last)}
        )
        last = bits
    out["recall"] = {name: bench.recall(name) for name in FOUR}
    ms = 1000 * np.array(bench.time(list(FOUR)))
    out["ms a window"] = {f"p{q}": round(float(np.percentile(ms, q)), 1) for q in (50, 95)}
    out["bytes a base"] = {name: round(bench.bytes[name], 3) for name in EIGHT}
    out["CPU seconds"] = round(time.process_time() - begun)
    target.write_text(json.dumps(out, indent=1) + "\n")
    print(target.read_text())


if __name__ == "__main__":
    main()
