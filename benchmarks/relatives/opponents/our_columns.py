"""Which bases related genomes have over every position, by genodiff's search and chain of copies.

    python our_columns.py yeast|ecoli|chrM|sars2 OUT_FOLDER [CONTIG ...]

Writes OUT_FOLDER/CONTIG.npz with `over` (G, L, 4; float16) and `names`; resumable. The numbers of
each genome are fitted on 128 windows of chrXVI (yeast) or of the genome (E. coli, SARS-CoV-2), or
as benchmarks/relatives/mitochondrion.py does (chrM, every record a relative). No label is read.
Without the files of a genome one line says which they are, and nothing is written.
"""

import sys
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from mitochondrion import LENGTH, SEARCH, STEP, read_mitogenomes
from yeast_setting import FOUR, SHARED, cut_codes, open_relative, read_genome

from genodiff.memory.alignment import fit_relative
from genodiff.memory.fast import align_in_c
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import RELATIVE_SEARCH, RelativeNumbers
from genodiff.memory.relatives import RelativeGenome
from genodiff.memory.relatives_fit import fit_genome
from genodiff.memory.search import Effort

BATCH = 64
GENOMES = {
    "yeast": ("sacCer3.fa.gz", FOUR),
    "ecoli": ("ecoli_K12_MG1655.fa.gz", ("Salmonella_LT2", "Klebsiella_ATCC13883")),
    "sars2": ("NC_045512.2.fa.gz", tuple(
        sorted(one.name[:-6] for one in (SHARED / "relatives" / "sars2").glob("*.fa.gz"))
    )),
}  # fmt: skip
FIT_CONTIG = "chrXVI"


def align_contig(
    memory: Memory, codes: np.ndarray, numbers: RelativeNumbers, circle: bool
) -> np.ndarray:
    """over (L, 4) from windows with half an overlap; the middle half of each is taken."""
    n, out = len(codes), np.zeros((len(codes), 4), np.float32)
    longer = np.concatenate([codes, codes[:LENGTH]]) if circle else codes
    last = n if circle else max(n - LENGTH, 0)
    starts = np.arange(0, last, STEP) if circle else np.append(np.arange(0, last, STEP), last)
    for first in range(0, len(starts), BATCH):
        some = starts[first : first + BATCH]
        windows = np.stack([longer[a : a + LENGTH] for a in some])
        over = align_in_c(memory.text, *memory.search(windows), numbers)[0].sum(2)
        for a, one in zip(some.tolist(), over, strict=True):
            lo = 0 if not circle and a == 0 else STEP // 2
            hi = LENGTH if not circle and a == last else STEP // 2 + STEP
            out[(a + np.arange(lo, hi)) % n] = one[lo:hi]
    return out


def has_files(what: str) -> bool:
    """Whether a genome and its relatives are in shared."""
    file, names = GENOMES.get(what, ("hg38_regions.fa.gz", ("mitogenomes",)))
    return bool(names) and (SHARED / "genomes" / file).exists()


def main() -> None:
    if not has_files(what := sys.argv[1]):
        genome, relatives = SHARED / "genomes" / GENOMES[what][0], SHARED / "relatives" / what
        return print(f"{what} is left out: give {genome} and related genomes {relatives}/*.fa.gz")
    what, folder, begun = sys.argv[1], Path(sys.argv[2]), time.process_time()
    folder.mkdir(parents=True, exist_ok=True)
    if what == "chrM":
        target = read_genome(SHARED / "genomes" / "hg38_regions.fa.gz")["chrM:1-16569"]
        numbers, over, genomes = None, [], read_mitogenomes()
        for name, codes in genomes.items():
            circle = np.concatenate([codes, codes[:LENGTH]])
            memory = Memory.build([(name, 0, circle)], numbers=SEARCH).with_effort(Effort(most=64))
            if numbers is None:
                windows = cut_codes(target, 16)
                given = memory.text, *memory.search(windows), RelativeNumbers()
                numbers = RelativeNumbers(turns=fit_relative(*given, rounds=3).turns)
            over.append(align_contig(memory, target, numbers, True))
        np.savez(
            folder / "chrM.npz", over=np.array(over, np.float16), names=np.array(list(genomes))
        )
        print(what, len(over), "genomes", round(time.process_time() - begun), "s of CPU")
        return
    file, names = GENOMES[what]
    genome = {n: c for n, c in read_genome(SHARED / "genomes" / file).items() if n != "chrM"}
    genome = {n: c for n, c in genome.items() if n in (sys.argv[3:] or genome)}
    of: dict[str, list[np.ndarray]] = {contig: [] for contig in genome}
    fit = cut_codes(genome[FIT_CONTIG] if what == "yeast" else next(iter(genome.values())), 128)
    for name in names:
        memory = open_relative(name).with_numbers(RELATIVE_SEARCH)
        path = folder / f"{name}.numbers.json"
        if not path.exists():
            path.write_text(fit_genome(memory, fit).numbers.model_dump_json())
        numbers = RelativeNumbers.model_validate_json(path.read_text())
        memory = RelativeGenome.join(memory, numbers).memory
        print(name, "fitted", round(time.process_time() - begun), "s of CPU", flush=True)
        for contig, codes in genome.items():
            part = folder / f"{contig}.{name}.npy"
            if not part.exists():
                np.save(part, align_contig(memory, codes, numbers, False).astype(np.float16))
            of[contig].append(np.load(part))
        print(name, "aligned", round(time.process_time() - begun), "s of CPU", flush=True)
    for contig, parts in of.items():
        np.savez(folder / f"{contig}.npz", over=np.array(parts), names=np.array(names))
        for name in names:
            (folder / f"{contig}.{name}.npy").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
