"""Two things that were not built: one model of copies over all genomes, and a prior for synteny.

    python benchmarks/relatives/one_text.py OUT.json

Leave-one-out bits of 60 windows of chrXIV, without a network, everything fitted on 24 windows of
chrXVI. One text: the four relatives as one genome, whose places compete (form (a) of issue 44),
beside a tree of four. Synteny: of CBS432 only the chromosome that corresponds, beside the whole
genome. Whatever a prior for staying near the last place could win by keeping out other chromosomes
is in that difference. Intervals: windows drawn anew.
"""

import json
import sys
from pathlib import Path

import numpy as np
from paired import interval, write_lines
from related import FOUR, list_files, weigh_whole
from yeast_setting import SHARED, cut, read_genome

from genodiff.memory.memory import Memory
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.relatives_fit import fit_columns, fit_relatives
from genodiff.memory.text import TextWriter
from genodiff.memory.tree import share_bases
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import open_relatives

FIT, TEST, DRAWS = 24, 60, 2000


def join_genomes(genomes: list[dict[str, np.ndarray]]) -> Memory:
    """All contigs in one text, with the index that relatives have."""
    writer = TextWriter()
    for genome in genomes:
        for name, codes in genome.items():
            writer.begin(name)
            writer.add(codes)
    return Memory.build_sampled(writer.finish())


def measure_bits(relatives: Relatives, windows: np.ndarray) -> np.ndarray:
    """(B,): bits a base, each told by all others."""
    assert relatives.columns is not None
    p = weigh_whole(relatives, relatives.align(windows), windows)
    p = p * share_bases(relatives.columns.gc)
    p /= p.sum(-1, keepdims=True)
    own = np.take_along_axis(p, windows[..., None].astype(int), -1)[..., 0]
    return np.asarray(-np.log2(own).mean(1))


def main() -> None:
    fit, test = cut("chrXVI", FIT), cut("chrXIV", TEST)
    opened = {one.name: one.memory for one in open_relatives(list_genomes(list_files(FOUR)))}
    tree = fit_relatives([opened[name] for name in sorted(opened)], fit, tell=print)
    genomes = [
        read_genome(SHARED / "relatives" / "yeast" / f"{name}.fa.gz") for name in sorted(FOUR)
    ]
    one = fit_relatives([join_genomes(genomes)], fit, tell=print)
    near = sorted(opened).index(FOUR[0])
    whole = Relatives((tree.genomes[near],), None)
    columns = fit_columns(whole.align(fit), fit)
    whole = Relatives(whole.genomes, columns)
    chromosome = {n: c for n, c in genomes[near].items() if n.endswith("_chrXIV")}
    memory = join_genomes([chromosome]).with_numbers(whole.genomes[0].memory.numbers)
    alone = Relatives((RelativeGenome(memory, whole.genomes[0].numbers),), columns)
    bits = {
        "four by a tree": measure_bits(tree, test), "four as one text": measure_bits(one, test),
        "CBS432": measure_bits(whole, test), "CBS432, chrXIV alone": measure_bits(alone, test),
    }  # fmt: skip
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, TEST, (DRAWS, TEST))
    out: dict[str, object] = {
        name: interval(b.mean(), b[drawn].mean(1)) for name, b in bits.items()
    }
    for a, b in (("four as one text", "four by a tree"), ("CBS432, chrXIV alone", "CBS432")):
        apart = bits[a] - bits[b]
        out[f"{a} less {b}"] = interval(apart.mean(), apart[drawn].mean(1))
    print(json.dumps(out))
    write_lines(Path(sys.argv[1]), out)


if __name__ == "__main__":
    main()
