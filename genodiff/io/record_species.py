"""Whose genome a record of a FASTA file is, as its header says, and whether a file holds several.

Databases of mitochondria, plastids, viruses and pangenomes give the genomes of many species in one
file. A header names the species by `[organism=Homo sapiens]`, by a binomial behind the record's
name, as NCBI writes it, or by a sample, as pangenomes do (SAMPLE#HAPLOTYPE#CONTIG).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

WHOLE = "*"
"""In the place of a group of records: all of them, whatever their headers say."""
_ALIKE = 3
"""The fewest records of one length that are spoken of."""
_ORGANISM = re.compile(r"\[(?:organism|species)=([^\]]+)\]|\bOS=([A-Z][\w.-]+ [\w.-]+)")
_BINOMIAL = re.compile(r"(?:(?:UNVERIFIED|PREDICTED|TPA[\w:]*):? )?([A-Z][a-z]{2,}) ([a-z][\w.-]+)")
_SAMPLE = re.compile(r"([^#\s]+)#(\d+)#[^#\s]+")
_NO_GENUS = {
    "Alternate", "Alternative", "Assembly", "Chromosome", "Circular", "Complete", "Contig",
    "Coverage", "Depth", "Draft", "Genome", "Genomic", "Isolate", "Length", "Linear", "Linkage",
    "Locus", "Mitochondrial", "Mitochondrion", "Name", "Partial", "Plasmid", "Plastid",
    "Primary", "Scaffold", "Segment", "Sequence", "Size", "Strain", "Unitig", "Unlocalized",
    "Unplaced", "Whole",
}  # fmt: skip


def name_species(name: str, description: str) -> str:
    """The species or the sample that a header names; "" where it names none.

    >>> name_species("NC_012920.1", "Homo sapiens mitochondrion, complete genome")
    'Homo_sapiens'
    >>> name_species("HG002#1#chr1", ""), name_species("chr1", "Chromosome one")
    ('HG002#1', '')
    """
    if sample := _SAMPLE.fullmatch(name):
        return f"{sample[1]}#{sample[2]}"
    if said := _ORGANISM.search(description):
        return "_".join((said[1] or said[2]).split()[:2])
    words = _BINOMIAL.match(description)
    if words is None or words[1] in _NO_GENUS:
        return ""
    return f"{words[1]}_{words[2].rstrip('.,')}"


def group_records(headers: Mapping[str, str]) -> dict[str, str]:
    """The genome of each record: its species where headers name one, else the record alone."""
    return {name: name_species(name, about) or name for name, about in headers.items()}


def find_several(headers: Mapping[str, str]) -> list[str]:
    """The species of a file that holds several, the most frequent first; else empty.

    Of a genome whose records are not all named, those that are have to be most of them.
    """
    found = Counter(filter(None, (name_species(*one) for one in headers.items())))
    several = len(found) > 1 and 2 * found.total() > len(headers)
    return [name for name, _ in found.most_common()] if several else []


def are_alike(lengths: Sequence[int]) -> bool:
    """Whether records have so nearly one length that each may be a genome: of organelles, say."""
    mean = sum(lengths) / max(len(lengths), 1)
    return len(lengths) >= _ALIKE and all(abs(one - mean) < 0.1 * mean for one in lengths)
