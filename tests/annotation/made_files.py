"""Made genomes written as GenBank, EMBL, GFF3 of four dialects and GTF.

Each writer gives the text and the genes that it can say; the others it leaves out.
"""

from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any
from urllib.parse import quote

from Bio import SeqFeature as insdc
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

from tests.annotation.made_genomes import MadeGene, MadeGenome, Parts

Written = tuple[str, list[MadeGene]]


def list_genes(genome: MadeGenome) -> Iterator[MadeGene]:
    """All genes, a second CDS of an mRNA too."""
    for gene in genome.genes:
        yield gene
        if gene.partner:
            yield gene.partner


# -- GenBank and EMBL ------------------------------------------------------------------------------


def write_flat(genome: MadeGenome, kind: str) -> Written:
    """A record by Biopython, with the locations as INSDC spells them."""
    length = len(genome.letters)
    record = SeqRecord(Seq(genome.letters), genome.name, genome.name, "made")
    record.annotations["molecule_type"] = "DNA"
    record.annotations["topology"] = "circular" if genome.circular else "linear"

    for gene in list_genes(genome):
        said: dict[str, Any] = {"gene": gene.name}
        said |= {key: value or None for key, value in gene.words.items()}
        if gene.table != 1:
            said["transl_table"] = gene.table
        if gene.skip:
            said["codon_start"] = gene.skip + 1
        if excepted := _except(gene, length):
            said["transl_except"] = excepted
        if gene.exons and gene.coding:
            whole = _locate(gene, gene.exons, length, ends=False)
            record.features.append(insdc.SeqFeature(whole, "mRNA", qualifiers={"gene": gene.name}))
        place = _locate(gene, gene.coding or gene.exons, length)
        if gene.location:
            place = insdc.Location.fromstring(gene.location, length)
        kind_of = "CDS" if gene.coding else "tRNA"
        record.features.append(insdc.SeqFeature(place, kind_of, qualifiers=said))
    out = StringIO()
    SeqIO.write([record], out, kind)
    return out.getvalue(), list(list_genes(genome))


def _locate(
    gene: MadeGene, parts: Parts, length: int, *, ends: bool = True
) -> insdc.SimpleLocation | insdc.CompoundLocation:
    """The parts in the order of reading, open where the gene is."""
    found = []
    for number, (a, b, way) in enumerate(parts):
        low, high = _open(gene, parts, number) if ends else (False, False)
        spans = [(a % length, (b - 1) % length + 1, low, high)]
        if b > length > a:  # over the origin
            spans = [(a, length, low, False), (0, b - length, False, high)][::way]
        for start, end, below, beyond in spans:
            low_end = insdc.BeforePosition(start) if below else start
            high_end = insdc.AfterPosition(end) if beyond else end
            found.append(insdc.SimpleLocation(low_end, high_end, way))
    return found[0] if len(found) == 1 else insdc.CompoundLocation(found)


def _open(gene: MadeGene, parts: Parts, number: int) -> tuple[bool, bool]:
    """Whether the low and the high end of a part are not the gene's."""
    first, last = number == 0 and not gene.starts, number == len(parts) - 1 and not gene.ends
    return (first, last) if parts[number][2] > 0 else (last, first)


def _except(gene: MadeGene, length: int) -> str:
    """/transl_except of the first codon that is read in another way."""
    amino = {"U": "Sec", "*": "TERM"}
    for number, letter in gene.recoded.items():
        if letter not in amino:
            continue
        (a, b, way) = gene.coding[0]
        first = a + 3 * number if way > 0 else b - 3 * number - 3
        last = min(first + 3, b)
        first = max(first, a)
        span = f"{first + 1}..{last}" if last - first > 1 else f"{last}"
        return f"(pos:{span if way > 0 else f'complement({span})'},aa:{amino[letter]})"
    return ""


# -- GFF3 and GTF ----------------------------------------------------------------------------------


class _Rows:
    """Rows of one contig."""

    def __init__(
        self, genome: MadeGenome, style: Callable[[dict[str, str]], str], *, turns: bool = False
    ) -> None:
        self.genome, self.style, self.turns = genome, style, turns
        self.lines: list[str] = []

    def add(self, kind: str, part: tuple[int, int, int], about: dict[str, str],
            phase: object = ".") -> None:  # fmt: skip
        a, b, way = part
        if self.turns and a >= len(self.genome.letters):  # wholly behind the origin
            a, b = a - len(self.genome.letters), b - len(self.genome.letters)
        fields = (self.genome.name, "made", kind, a + 1, b, ".", "+" if way > 0 else "-", phase,
                  self.style(about))  # fmt: skip
        self.lines.append("\t".join(map(str, fields)))


def _gff(about: dict[str, str]) -> str:
    return ";".join(f"{key}={quote(value, safe=' :.()-')}" for key, value in about.items())


def _gtf(about: dict[str, str]) -> str:
    return " ".join(f'{key} "{value}";' for key, value in about.items() if key[0] != "_")


def _hull(parts: Parts) -> tuple[int, int, int]:
    return min(a for a, *_ in parts), max(b for _, b, _ in parts), parts[0][2]


def _phases(gene: MadeGene) -> list[int]:
    found, read = [], 0
    for a, b, _ in gene.coding:
        found.append((gene.skip - read) % 3)
        read += b - a
    return found


def _head(genome: MadeGenome) -> str:
    n, name = len(genome.letters), genome.name
    text = f"##gff-version 3\n##sequence-region {name} 1 {n}\n"
    going = "Is_circular=true;" if genome.circular else ""
    return text + f"{name}\tmade\tregion\t1\t{n}\t.\t+\t.\tID={name}:1..{n};{going}\n"


def write_ncbi(genome: MadeGenome) -> Written:
    """NCBI's: words of INSDC as attributes; a part over the origin ends beyond the contig."""
    rows, said = _Rows(genome, _gff, turns=True), []
    for gene in list_genes(genome):
        if gene.location:
            continue
        said.append(gene)
        more = dict(gene.words)
        if gene.slips:
            more = {"exception": "ribosomal slippage"}
        more.pop("trans_splicing", None)
        more = {key: value or "true" for key, value in more.items()}
        own = f"gene-{gene.name}"
        shown = gene.spread if gene.trans else (_hull(gene.spread),)
        pseudo = {"pseudo": "true"} if not gene.known and "pseudo" in gene.kind else {}
        for number, part in enumerate(shown):
            about = {"ID": own, "Name": gene.name, **pseudo}
            if gene.trans:
                about |= {"exception": "trans-splicing", "part": str(number + 1)}
            rows.add("gene", part, about)
        if not gene.coding:
            rows.add("tRNA", gene.exons[0], {"ID": f"rna-{gene.name}", "Parent": own})
            continue
        parent = own
        if gene.exons:
            parent = f"rna-{gene.name}"
            rows.add("mRNA", _hull(gene.exons), {"ID": parent, "Parent": own})
            for part in gene.exons:
                rows.add("exon", part, {"ID": f"exon-{part[0]}", "Parent": parent})
        if gene.table != 1:
            more["transl_table"] = str(gene.table)
        if excepted := _except(gene, len(genome.letters)):
            more["transl_except"] = excepted
        for number, (part, phase) in enumerate(zip(gene.coding, _phases(gene), strict=True)):
            about = {"ID": f"cds-{gene.name}", "Parent": parent, **more}
            low, high = _open(gene, gene.coding, number)
            about |= {"partial": "true"} if not (gene.starts and gene.ends) else {}
            about |= {"start_range": f".,{part[0] + 1}"} if low else {}
            about |= {"end_range": f"{part[1]},."} if high else {}
            rows.add("CDS", part, about, phase)
    return _head(genome) + "\n".join(rows.lines) + "\n", said


def write_ensembl(genome: MadeGenome) -> Written:
    """Ensembl's: biotypes and tags; exons of every transcript; an operon is one transcript."""
    rows, said = _Rows(genome, _gff), []
    for gene in genome.genes:
        words = gene.words.keys() - {"pseudo", "pseudogene"}
        if gene.location or words or gene.table != 1 or gene.recoded:
            continue
        said += [gene, *([gene.partner] if gene.partner else [])]
        exons = gene.spread
        biotype = "protein_coding" if gene.coding else "tRNA"
        biotype = "processed_pseudogene" if "pseudo" in gene.kind else biotype
        top = "pseudogene" if "pseudo" in gene.kind else "gene"
        kind = "mRNA" if gene.coding and top == "gene" else (
            "tRNA" if not gene.coding else "pseudogenic_transcript")  # fmt: skip
        own, script = f"gene:{gene.name}", f"transcript:{gene.name}.1"
        rows.add(top, _hull(exons), {"ID": own, "Name": gene.name, "biotype": biotype})
        tags = [f"cds_{end}_NF" for end, there in (("start", gene.starts), ("end", gene.ends))
                if not there]  # fmt: skip
        about = {"ID": script, "Parent": own, "biotype": biotype}
        rows.add(kind, _hull(exons), about | ({"tag": ",".join(tags)} if tags else {}))
        for part in sorted(exons):
            rows.add("exon", part, {"Parent": script})
        for one in (gene, gene.partner):
            for part, phase in zip(one.coding, _phases(one), strict=True) if one else ():
                rows.add("CDS", part, {"ID": f"CDS:{one.name}", "Parent": script,
                                       "protein_id": one.name}, phase)  # fmt: skip
    return _head(genome) + "\n".join(rows.lines) + "\n", said


def write_prokka(genome: MadeGenome) -> Written:
    """Prokka's: a CDS in one part, by locus tag, with the letters below the rows."""
    rows, said = _Rows(genome, _gff), []
    for gene in list_genes(genome):
        parts = gene.coding or gene.exons
        said_by_words = gene.words or gene.recoded or gene.location or gene.table != 1
        whole = gene.starts and gene.ends and parts[0][1] <= len(genome.letters)
        if said_by_words or not whole or len(parts) > 1 or (gene.coding and gene.exons):
            continue
        said.append(gene)
        kind, phase = ("CDS", 0) if gene.coding else ("tRNA", ".")
        rows.add(kind, parts[0], {"ID": gene.name, "inference": "ab initio", "Name": gene.name,
                                  "locus_tag": gene.name}, phase)  # fmt: skip
    text = f"##gff-version 3\n##sequence-region {genome.name} 1 {len(genome.letters)}\n"
    return text + "\n".join(rows.lines) + f"\n##FASTA\n>{genome.name}\n{genome.letters}\n", said


def write_codons(genome: MadeGenome, *, gtf: bool) -> Written:
    """AUGUSTUS's GFF3 and GTF: start and stop codons where there are some; only GTF has exons.

    The stop codon of GTF is not in the CDS; an end that is missing has no row.
    """
    rows, said = _Rows(genome, _gtf if gtf else _gff), []
    for gene in genome.genes:
        words = gene.words.keys() - {"pseudogene", "pseudo"}
        over = max(b for _, b, _ in gene.spread) > len(genome.letters)
        spliced = len(gene.coding) > 1 and min(
            b - a for a, b, _ in (gene.coding[0], gene.coding[-1])) < 3  # fmt: skip
        codons = gene.recoded.keys() - {4}
        if gene.location or words or gene.partner or codons or over or spliced or (
            not gtf and ("pseudo" in gene.kind or gene.recoded or not gene.coding)
        ) or gene.table != 1:  # fmt: skip
            continue
        said.append(gene)
        biotype = "processed_pseudogene" if "pseudo" in gene.kind else "protein_coding"
        about = {"gene_id": gene.name, "transcript_id": f"{gene.name}.t1",
                 "gene_biotype": biotype if gene.coding else "tRNA"}  # fmt: skip
        script = about
        if not gtf:
            script = {"Parent": f"{gene.name}.t1"}
            rows.add("gene", _hull(gene.spread), {"ID": gene.name})
            rows.add("transcript", _hull(gene.spread),
                     {"ID": f"{gene.name}.t1", "Parent": gene.name})  # fmt: skip
        else:
            rows.add("transcript", _hull(gene.spread), about)
            for number, part in enumerate(gene.spread):
                rows.add("exon", part, about | {"exon_number": str(number + 1)})
        if not gene.coding:
            continue
        coding = list(gene.coding)
        first, last = coding[0], coding[-1]
        if gene.starts:
            a, b, way = first
            rows.add("start_codon", (a, a + 3, way) if way > 0 else (b - 3, b, way), script, 0)
        if gene.ends:
            a, b, way = last
            rows.add("stop_codon", (b - 3, b, way) if way > 0 else (a, a + 3, way), script, 0)
            if gtf:
                coding[-1] = (a, b - 3, way) if way > 0 else (a + 3, b, way)
        for part, phase in zip(coding, _phases(gene), strict=True):
            if part[0] < part[1]:
                rows.add(
                    "CDS", part, script if gtf else {"ID": f"{gene.name}.cds", **script}, phase
                )
        if 4 in gene.recoded:
            a, b, way = first
            spot = (a + 12, a + 15, way) if way > 0 else (b - 15, b - 12, way)
            rows.add("Selenocysteine", spot, script)
    head = "#!genome-build made\n" if gtf else "##gff-version 3\n"
    return head + "\n".join(rows.lines) + "\n", said


FORMATS: dict[str, tuple[str, Callable[[MadeGenome], Written]]] = {
    "genbank": (".gb", lambda genome: write_flat(genome, "genbank")),
    "embl": (".embl", lambda genome: write_flat(genome, "embl")),
    "ncbi": (".gff3", write_ncbi), "ensembl": (".gff3", write_ensembl),
    "prokka": (".gff", write_prokka),
    "augustus": (".gff", lambda genome: write_codons(genome, gtf=False)),
    "gtf": (".gtf", lambda genome: write_codons(genome, gtf=True)),
}  # fmt: skip
