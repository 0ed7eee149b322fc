"""Made genomes with a gene of every kind that INSDC and GFF3 can say, and what each one means.

A gene is drawn as the letters of its parts in the order of reading; nothing of genodiff reads them.
"""

import random
from dataclasses import dataclass, field, replace

from Bio.Data.CodonTable import unambiguous_dna_by_id

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
