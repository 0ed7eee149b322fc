"""Which contigs train, validate and test: the rules of a list of genomes.

Sequence is dealt in units that stay whole: a genome, the contigs of one name, or what shares
k-mers. About one base in 20 goes to each held-out split. Units are dealt by their sizes and names,
so neither the order of a list nor of a build decides.
"""

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

from genodiff.data.genomes.listing import RULES
from genodiff.data.kmers import SAMPLED, Sketch, Words
from genodiff.data.recipe import SPLITS, Recipe
from genodiff.data.splits import HELD_OUT, Rows, resolve
from genodiff.errors import DataError

LEAST_SHARED, LEAST_SHARE = 3, 0.01
"""Contigs are alike when they share so many sampled k-mers, and this share of the smaller one's."""
MOST_HASHES = 1 << 24
_MANY = 32  # units with a k-mer: of more, only neighbours in their order are compared

_TOO_FEW = {
    "cluster": "all their contigs share sequence with one another",
    "assembly": "whole genomes cannot be held out of so few",
    "chromosome": "their contigs have fewer than three names",
}

Ints = NDArray[np.int64]


class Contig(NamedTuple):
    """A contig of one of the genomes."""

    genome: int
    name: str
    length: int


def deal_units(sizes: Ints, names: list[str]) -> list[str]:
    """Splits of units, 1/20 of the bases to valid and test each; empty for fewer than three."""
    if len(sizes) < 3:
        return []
    order = sorted(range(len(sizes)), key=lambda i: (-int(sizes[i]), names[i]))
    wanted = sizes.sum() / HELD_OUT
    held = {"valid": 0, "test": 0}
    splits = ["train"] * len(sizes)
    for i in order[1:]:
        split = min(held, key=lambda s: (held[s], s != "test"))
        if held[split] + int(sizes[i]) <= 1.25 * wanted:
            splits[i] = split
            held[split] += int(sizes[i])
    for split, other in (("test", "valid"), ("valid", "test")):
        if not held[split]:  # every unit is large: the smallest that is free
            free = [[i for i in order[1:] if splits[i] == s] for s in ("train", other)]
            i = (free[0] or free[1])[-1]
            splits[i] = split
            held = {s: sum(int(sizes[j]) for j in order if splits[j] == s) for s in held}
    return splits


def deal_contigs(
    contigs: list[Contig], genomes: list[str], rules: list[str], sketches: list[Sketch], origin: str
) -> list[Rows]:
    """The intervals (contig number, start, end) of train, valid and test, by each genome's rule.

    `rules` are those of `RULES`, or a BED file. Raises `DataError` where too few units are left to
    hold any out.
    """
    rows: list[Rows] = [[], [], []]
    of_rule: dict[str, list[int]] = defaultdict(list)
    for number, contig in enumerate(contigs):
        of_rule[rules[contig.genome]].append(number)
    for rule, members in of_rule.items():
        if rule in SPLITS:
            keys = [rule] * len(members)
            splits = dict.fromkeys(keys, rule)
        elif rule not in RULES:
            _place_bed(rule, members, contigs, genomes, rows)
            continue
        else:
            keys = _find_units(rule, members, contigs, genomes, sketches)
            size: dict[str, int] = defaultdict(int)
            for number, key in zip(members, keys, strict=True):
                size[key] += contigs[number].length
            units = sorted(size)
            dealt = deal_units(np.array([size[u] for u in units], np.int64), units)
            if not dealt:
                some = ", ".join(sorted({genomes[contigs[m].genome] for m in members})[:3])
                what = f"the split {rule} cannot hold anything out of {some}, ...: "
                fix = (
                    "give more genomes, the split chromosome, a BED file, or train, valid and test"
                )
                raise DataError(what + _TOO_FEW[rule], file=origin, fix=fix)
            splits = dict(zip(units, dealt, strict=True))
        for number, key in zip(members, keys, strict=True):
            rows[SPLITS.index(splits[key])].append((number, 0, contigs[number].length))
    return [sorted(r) for r in rows]


def _find_units(
    rule: str, members: list[int], contigs: list[Contig], genomes: list[str], sketches: list[Sketch]
) -> list[str]:
    if rule == "assembly":
        return [genomes[contigs[m].genome] for m in members]
    if rule == "chromosome":
        return [contigs[m].name for m in members]
    label = cluster_owners(*gather_hashes(members, contigs, sketches), len(members))
    full = [f"{genomes[contigs[m].genome]}/{contigs[m].name}" for m in members]
    first: dict[int, str] = {}
    for name, one in sorted(zip(full, label.tolist(), strict=True)):
        first.setdefault(one, name)
    return [first[one] for one in label.tolist()]


def cluster_owners(hashes: Words, owner: Ints, n: int) -> Ints:
    """The number of each owner's cluster: what pairs that share k-mers connect.

    Each (hash, owner) stands once.

    Counts of a k-mer that more than `_MANY` owners have are of neighbours only, so they are lower
    bounds: what is missed is left out of the held-out splits later (homologs.py).
    """
    order = np.lexsort((owner, hashes))
    hashes, owner = hashes[order], owner[order]
    size = np.bincount(owner, minlength=n)
    edges = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1], [True])))
    group = np.repeat(np.diff(edges), np.diff(edges))
    counted = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    for step in range(1, min(_MANY, len(hashes))):
        same = hashes[step:] == hashes[:-step]
        if step > 1:
            same &= group[step:] <= _MANY
        if not same.any():
            break
        counted = _count_more(*counted, owner[:-step][same] * n + owner[step:][same])
    codes, shared = counted
    first, second = codes // n, codes % n
    least = np.maximum(LEAST_SHARED, LEAST_SHARE * np.minimum(size[first], size[second]))
    alike = shared >= least
    graph = coo_array((np.ones(int(alike.sum()), bool), (first[alike], second[alike])), (n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _count_more(codes: Ints, counts: Ints, new: Ints) -> tuple[Ints, Ints]:
    found, seen = np.unique(new, return_counts=True)
    joined, where = np.unique(np.concatenate((codes, found)), return_inverse=True)
    total = np.bincount(where, np.concatenate((counts, seen)), len(joined))
    return joined, total.astype(np.int64)


def gather_hashes(
    members: list[int], contigs: list[Contig], sketches: list[Sketch]
) -> tuple[Words, Ints]:
    """The distinct sampled k-mers of these contigs, and which of them (0 ..) each is of.

    Of more than `MOST_HASHES` the smallest are kept: the same ones of every contig.
    """
    place = {number: i for i, number in enumerate(members)}
    of_genome: dict[int, list[int]] = defaultdict(list)
    for number, contig in enumerate(contigs):
        of_genome[contig.genome].append(number)
    chosen = sorted({contigs[m].genome for m in members})
    total = sum(len(sketches[g].kmers) for g in chosen)
    limit = np.uint64(int(int(SAMPLED) * min(1.0, MOST_HASHES / max(total, 1))))
    found: list[Words] = [np.zeros(0, np.uint64)]
    whose: list[Ints] = [np.zeros(0, np.int64)]
    for genome in chosen:
        numbers = of_genome[genome]
        ends = np.cumsum([contigs[n].length for n in numbers])
        owners = np.array([place.get(n, -1) for n in numbers], np.int64)
        kmers, places = (np.asarray(part) for part in sketches[genome])
        owner = owners[np.searchsorted(ends, places, "right")]
        kept = (kmers < limit) & (owner >= 0)
        kmers, owner = kmers[kept], owner[kept]
        order = np.lexsort((kmers, owner))
        kmers, owner = kmers[order], owner[order]
        new = np.ones(len(kmers), bool)
        new[1:] = (kmers[1:] != kmers[:-1]) | (owner[1:] != owner[:-1])
        found.append(kmers[new].astype(np.uint64))
        whose.append(owner[new])
    return np.concatenate(found), np.concatenate(whose)


def _place_bed(
    bed: str, members: list[int], contigs: list[Contig], genomes: list[str], rows: list[Rows]
) -> None:
    by_genome: dict[int, list[int]] = defaultdict(list)
    for number in members:
        by_genome[contigs[number].genome].append(number)
    for genome, numbers in by_genome.items():
        recipe = Recipe(name="genome").with_bed(bed)
        lengths = {contigs[n].name: contigs[n].length for n in numbers}
        splits = resolve(recipe, lengths, Path(genomes[genome]))
        for split, out in zip(SPLITS, rows, strict=True):
            found = splits.intervals[split]
            table = np.stack([found.contig, found.start, found.end], 1)
            out += [(numbers[contig], start, end) for contig, start, end in table.tolist()]
