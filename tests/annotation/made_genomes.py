"""Made genomes with a gene of every kind that INSDC and GFF3 can say, what each one means, and what
a change does, by translating before and after; nothing of genodiff reads them.

A gene is drawn as the letters of its parts in the order of reading. A change is genome[start:end] →
letters. Parts are moved along with the letters, each spelling of the same changed genome is tried,
and what leaves one protein whole leaves the gene whole.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Seq import Seq

Parts = tuple[tuple[int, int, int], ...]
"""(start, end, strand) in the order of reading, from 0; behind the origin beyond the length."""
TURN = str.maketrans("ACGT", "TGCA")


@dataclass(frozen=True)
class MadeGene:
    """A gene: its parts, and the words that an annotation has for it."""

    kind: str
    name: str
    coding: Parts
    exons: Parts = ()
    table: int = 1
    skip: int = 0
    starts: bool = True
    ends: bool = True
    known: bool = True
    """Whether its protein follows from its letters."""
    words: dict[str, str] = field(default_factory=dict)
    """Qualifiers of INSDC; "" for those without a value."""
    recoded: dict[int, str] = field(default_factory=dict)
    trans: bool = False
    slips: bool = False
    location: str = ""
    """What GenBank has in place of the parts, where only it can say this."""
    partner: "MadeGene | None" = None
    """A second CDS of the same mRNA."""

    @property
    def has_path(self) -> bool:
        """Whether exons and introns of one strand write it."""
        whole = self.starts and self.ends and not sum(b - a for a, b, _ in self.coding) % 3
        return whole and self.known and not (self.trans or self.slips) and bool(self.coding)

    @property
    def spread(self) -> Parts:
        """All of its parts."""
        return self.exons or self.coding


@dataclass
class MadeGenome:
    """A contig and its genes."""

    name: str
    letters: str
    circular: bool
    genes: list[MadeGene]


class _Painter:
    """Letters of a contig that genes are written onto."""

    def __init__(self, rng: random.Random, length: int) -> None:
        self.rng, self.length = rng, length
        self.letters = rng.choices("ACGT", k=length)
        self.fixed: set[int] = set()

    def write(self, gene: MadeGene) -> None:
        """Codons without a stop, between a start and a stop where the gene has them."""
        rng, table = self.rng, unambiguous_dna_by_id[gene.table]
        spots = [(at, way) for a, b, way in gene.coding
                 for at in (range(a, b) if way > 0 else range(b - 1, a - 1, -1))]  # fmt: skip
        spots = spots[gene.skip :]
        n = len(spots) // 3
        stops, starts = list(table.stop_codons), list(table.start_codons)
        for number in range(n):
            three = spots[3 * number : 3 * number + 3]
            pool = [codon for codon in table.forward_table if codon not in stops]
            if number == 0 and gene.starts and not gene.skip:
                pool = ["ACG"] if "alternative" in gene.words.get("exception", "") else (
                    ["ATG"] if gene.table == 1 else starts)  # fmt: skip
            elif number in gene.recoded:
                pool = ["TGA"] if gene.recoded[number] == "U" else pool
            elif number == n - 1 and gene.ends and "*" not in gene.recoded.values():
                pool = stops
            rng.shuffle(pool)
            for codon in pool:
                bases = [base if way > 0 else base.translate(TURN)
                         for base, (_, way) in zip(codon, three, strict=True)]  # fmt: skip
                if all(at % self.length not in self.fixed or self.letters[at % self.length] == base
                       for base, (at, _) in zip(bases, three, strict=True)):  # fmt: skip
                    break
            else:
                raise LookupError(gene.kind)
            for base, (at, _) in zip(bases, three, strict=True):
                self.letters[at % self.length] = base
                self.fixed.add(at % self.length)
        if "*" in gene.recoded.values():
            for base, (at, way) in zip("TA", spots[3 * n :], strict=False):
                self.letters[at % self.length] = base if way > 0 else base.translate(TURN)


def chop(at: int, sizes: list[int], gaps: list[int], way: int) -> Parts:
    """Parts from `at` on, in the order of reading on a strand."""
    found = []
    for size, gap in zip(sizes, [*gaps, 0], strict=True):
        found.append((at, at + size, way))
        at += size + gap
    return tuple(found[::way])


def _widen(parts: Parts, utr: int) -> Parts:
    """Exons: the parts with UTRs at both ends."""
    low, high = min(a for a, *_ in parts), max(b for _, b, _ in parts)
    return tuple((a - utr * (a == low), b + utr * (b == high), way) for a, b, way in parts)


def draw_genes(rng: random.Random, at: int, *, circular: bool) -> tuple[list[MadeGene], int]:
    """A gene of each kind one behind the other from `at` on, and where the last one ends."""
    genes: list[MadeGene] = []

    def place(kind: str, sizes: list[int], gaps: list[int] = [], **more: object) -> MadeGene:  # noqa: B006
        nonlocal at
        way = rng.choice((1, -1))
        utr = int(str(more.pop("utr", 0)))
        at += utr
        parts = chop(at, sizes, gaps, way)
        exons = _widen(parts, utr) if utr else ()
        at = max(b for _, b, _ in parts) + utr + rng.randrange(30, 60)
        gene = MadeGene(kind, f"{kind}{len(genes)}", parts, exons, **more)  # type: ignore[arg-type]
        genes.append(gene)
        return gene

    def codons() -> int:
        return 3 * rng.randrange(8, 16)

    def split() -> list[int]:
        a, b = rng.randrange(10, 30), rng.randrange(10, 30)
        return [a, b, 3 + (-a - b) % 3 + 3 * rng.randrange(3, 8)]

    introns = [rng.randrange(40, 60), rng.randrange(40, 60)]
    for _ in range(2):  # most often both strands
        place("plain", [codons()])
        place("spliced", split(), introns)
        place("utr", split(), introns, utr=12)
    place("code4", [codons()], table=4)
    place("code11", [codons()], table=11)
    place("code2", [codons()], table=2)
    place("pseudo", [codons()], known=False, words={"pseudo": ""})
    place("pseudogene", split(), introns, known=False, words={"pseudogene": "processed"})
    place("open5", [codons()], starts=False)
    place("open5skip", [codons() + 1], starts=False, skip=1)
    place("open5skip2", [codons() + 2], starts=False, skip=2)
    place("open3", [codons() + rng.randrange(3)], ends=False)
    place("open", [codons()], starts=False, ends=False)
    place("openspliced", split(), introns, starts=False)
    edited = {"exception": "RNA editing"}
    place("edited", [codons()], known=False, words=edited)
    moved = {"exception": "rearrangement required for product"}
    place("rearranged", [codons()], known=False, words=moved)
    place("proteomic", [codons()], known=False,
          words={"exception": "annotated by transcript or proteomic data"})  # fmt: skip
    place("artificial", split(), [45, 45], known=False,
          words={"artificial_location": "low-quality sequence region"})  # fmt: skip
    place("anystart", [codons()], words={"exception": "alternative start codon"},
          recoded={0: "M"})  # fmt: skip
    place("seleno", [codons() + 30], recoded={4: "U"})
    place("term", [codons() + rng.choice((1, 2))], recoded={-1: "*"}, table=2)
    genes[-1] = replace(genes[-1], recoded={sum(b - a for a, b, _ in genes[-1].coding) // 3: "*"})
    # Programmed frameshifts: a base is read twice, or left out, or 30 are.
    place("slip", [28, 33], [-1], slips=True, words={"ribosomal_slippage": ""})
    place("slipon", [28, 32], [1], slips=True, words={"ribosomal_slippage": ""})
    place("hop", [27, 33], [30], slips=True, words={"ribosomal_slippage": ""})
    # Two coding sequences of one mRNA.
    size = codons()
    first = place("operon", [size])
    (a, b, way), gap = first.coding[0], rng.randrange(12, 19)
    later = ((b + gap, b + gap + 30, 1) if way > 0 else (a, a + 30, -1),)
    if way < 0:
        first = replace(first, coding=((a + 30 + gap, b + 30 + gap, way),))
    low, high = min(x[0] for x in (*first.coding, *later)), max(
        x[1] for x in (*first.coding, *later))  # fmt: skip
    other = MadeGene("operon2", f"{first.name}x", later, ((low - 5, high + 5, way),))
    genes[-1] = replace(first, exons=((low - 5, high + 5, way),), partner=other)
    at = high + 50
    # Parts spliced from several RNAs: in another order, and of both strands.
    for kind, ways in (("trans", (1, 1, 1)), ("transturned", (-1, 1, 1))):
        spots = [at, at + 70, at + 140]
        order = [2, 0, 1] if kind == "trans" else [0, 1, 2]
        parts = tuple((spots[i], spots[i] + 30, ways[n]) for n, i in enumerate(order))
        words = {"trans_splicing": "", "exception": "trans-splicing"}
        genes.append(MadeGene(kind, f"{kind}{len(genes)}", parts, trans=True, words=words))
        at += 220
    # What GenBank alone can say.
    for kind, text in (
        ("order", "order({0}..{1},{2}..{3})"),
        ("remote", "join(OTHER.1:1..9,{0}..{3})"),
        ("within", "({0}.{1})..{3}"),
    ):
        sizes = [30, 30]
        parts = chop(at, sizes, [40], 1)
        numbers = [x for a, b, _ in parts for x in (a + 1, b)]
        genes.append(MadeGene(kind, f"{kind}{len(genes)}", parts, known=False,
                              location=text.format(*numbers)))  # fmt: skip
        at = parts[-1][1] + 40
    genes.append(MadeGene("rna", "rna0", (), ((at, at + 72, 1),)))
    at += 110
    return genes, at


def make_genome(seed: int, *, circular: bool) -> MadeGenome:
    """A contig with a gene of every kind; on a circle three more cross the origin, one at a time.

    Which of them does is drawn by the seed: plain on either strand, or with an intron over it.
    """
    rng = random.Random(seed)
    genes, end = draw_genes(rng, 150, circular=circular)
    length = end + 200
    if circular:
        way, kind = (1, -1)[seed % 2], ("origin", "originspliced")[seed // 2 % 2]
        low = length - rng.randrange(20, 40)
        sizes = [60 + 3 * rng.randrange(4)] if kind == "origin" else [16, 20, 24]
        gaps = [] if kind == "origin" else [rng.randrange(41, 50), 20]
        parts = chop(low, sizes, gaps, way)
        genes.append(MadeGene(kind, kind, parts))
    painter = _Painter(rng, length)
    for gene in [one for pair in genes for one in (pair, pair.partner) if one]:
        if gene.coding:
            painter.write(gene)
    name = "circle" if circular else "line"
    return MadeGenome(name, "".join(painter.letters), circular, genes)


TERMS_OF_CODONS = {
    "stop_gained", "frameshift_variant", "stop_lost", "start_lost", "inframe_insertion",
    "inframe_deletion", "missense_variant", "incomplete_terminal_codon_variant",
    "splice_donor_variant", "splice_acceptor_variant",
}  # fmt: skip
BEYOND = 60


def read_parts(genome: str, parts: Parts) -> str:
    """The letters of parts of a circle, one behind the other."""
    twice = genome + genome
    return "".join(
        twice[a:b] if way > 0 else str(Seq(twice[a:b]).reverse_complement()) for a, b, way in parts
    )


def translate(gene: MadeGene, letters: str, old: str | None = None) -> str:
    """The protein of a coding sequence, codons that are read in another way included."""
    text = letters[gene.skip :]
    stops = {number for number, one in gene.recoded.items() if one == "*"}
    if stops and len(text) % 3:
        text += "A" * (-len(text) % 3)
    text = text[: len(text) // 3 * 3]
    found = list(str(Seq(text).translate(table=gene.table)))
    before = (old or letters)[gene.skip :]
    for number, amino in gene.recoded.items():
        spot = slice(3 * number, 3 * number + 3)
        if number not in stops and number < len(found) and before[spot] == text[spot]:
            found[number] = amino
    return "".join(found)


def list_bases(gene: MadeGene, length: int) -> list[int]:
    """The positions of the contig that are coding, in the order of reading."""
    return [at % length for a, b, way in gene.coding
            for at in (range(a, b) if way > 0 else range(b - 1, a - 1, -1))]  # fmt: skip


def judge_snv(genome: str, gene: MadeGene, at: int, base: str) -> tuple[str, str]:
    """The term of a base changed within the coding sequence, and the change of one amino acid."""
    changed = genome[:at] + base + genome[at + 1 :]
    old, new = (read_parts(text, gene.coding) for text in (genome, changed))
    spots = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    if max(spots) < gene.skip:
        return "coding_sequence_variant", ""
    before, after = translate(gene, old), translate(gene, new, old)
    first = (min(one for one in spots if one >= gene.skip) - gene.skip) // 3
    if first >= len(before):
        return "incomplete_terminal_codon_variant", ""
    table = unambiguous_dna_by_id[gene.table]
    starts = gene.starts and not gene.skip and (old[:3] in table.start_codons or 0 in gene.recoded)
    if starts and first == 0 and spots[0] < 3:
        kept = new[:3] == "ATG" or (gene.table != 1 and new[:3] in table.start_codons)
        return ("start_retained_variant" if kept else "start_lost"), ""
    change = [(n, a, b) for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    several = len({(one - gene.skip) // 3 for one in spots}) > 1  # a base that is read twice
    aminos = "" if several else f"{before[first]}{first + 1}{after[first]}"
    if not change:
        return ("stop_retained_variant" if before[first] == "*" else "synonymous_variant"), aminos
    one = len(change) == 1
    one = one and not several
    aminos = f"{change[0][1]}{change[0][0] + 1}{change[0][2]}" if one else ""
    if any(a == "*" for _, a, _ in change):
        return "stop_lost", aminos
    return ("stop_gained" if any(b == "*" for *_, b in change) else "missense_variant"), aminos


def spell(genome: str, start: int, end: int, letters: str) -> Iterator[tuple[int, int, str]]:
    """Every spelling of an insertion or deletion, found by trying."""
    changed = genome[:start] + letters + genome[end:]
    size = end - start
    for step in (1, -1):
        at = start if step > 0 else start - 1
        while 0 <= at <= len(genome) - size:
            put = changed[at : at + len(letters)]
            if genome[:at] + put + genome[at + size :] != changed:
                break
            yield at, at + size, put
            at += step


def move_parts(gene: MadeGene, start: int, end: int, letters: str) -> Parts | None:
    """Parts after a change; None where it lies across the end of one, but for the gene's start.

    There the letters before it take the place of those that are gone.
    """
    shift, found = len(letters) - (end - start), []
    for number, (a, b, way) in enumerate(gene.coding):
        crosses = gene.starts and number == 0
        if crosses and (start < a < end < b if way > 0 else a < start < b < end):
            found.append((a + shift, b + shift, way) if way > 0 else (a, b, way))
            continue
        if start < a < end or start < b < end:
            return None
        if end <= a:
            a, b = a + shift, b + shift
        elif end <= b and start >= a and not (start == end == b):
            b += shift
        found.append((a, b, way))
    return tuple(found)


def read_on(genome: str, gene: MadeGene, parts: Parts) -> str:
    """The protein of parts, read on behind them to a stop."""
    if not gene.ends:
        return translate(gene, read_parts(genome, parts))
    a, b, way = parts[-1]
    after = (b, b + BEYOND, way) if way > 0 else (max(a - BEYOND, 0), a, way)
    letters = read_parts(genome, (*parts, after))
    return translate(gene, letters).partition("*")[0]


def read_sites(genome: str, parts: Parts) -> list[str]:
    """The first and the last two letters of each intron."""
    some = sorted(parts)
    return [text for (_, a, _), (b, _, _) in pairwise(some)
            for text in (genome[a : a + 2], genome[b - 2 : b])]  # fmt: skip


def judge_indel(
    genome: str, gene: MadeGene, start: int, end: int, letters: str
) -> tuple[bool, bool] | None:
    """(Whether protein and splice sites stay as they are, whether its frame does), by spellings.

    None where each spelling lies across the end of a part.
    """
    before = read_on(genome, gene, gene.coding)
    changed = genome[:start] + letters + genome[end:]
    tried = []
    for a, b, put in spell(genome, start, end, letters):
        parts = move_parts(gene, a, b, put)
        if parts is not None:
            first = read_parts(changed, parts)[:3]
            starts = unambiguous_dna_by_id[gene.table].start_codons if gene.table != 1 else ["ATG"]
            begins = first in starts or not gene.starts
            spliced = read_sites(changed, parts) == read_sites(genome, gene.coding)
            same = read_on(changed, gene, parts)[gene.starts :] == before[gene.starts :]
            if not gene.ends:  # what follows is not known: every base counts
                same = read_parts(changed, parts) == read_parts(genome, gene.coding)
            tried.append(begins and spliced and same)
    if not tried:
        return None
    return any(tried), (len(letters) - (end - start)) % 3 == 0
