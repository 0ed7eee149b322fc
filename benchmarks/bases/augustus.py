"""A rival from outside: genes that AUGUSTUS predicts (Stanke et al. 2008), from the sequence alone.

`augustus` is Debian's package. Its parameters `saccharomyces_cerevisiae_S288C` were trained by its
authors on this very genome, so the test part is no blind one for it.
"""

import subprocess
from pathlib import Path

from yeast_genes import GENOME, Span

from genodiff.annotation.gene_grammar import CodingGene
from genodiff.io.faidx import Genome
from genodiff.io.genes import read_genes

SPECIES = "saccharomyces_cerevisiae_S288C"


def find_predicted(span: Span, work: Path) -> list[CodingGene]:
    """The genes that lie wholly inside `span`, from its start; all of its contig is read."""
    contig, first, last = span
    fasta, found = work / f"{contig}.fa", work / f"augustus-{contig}.gff3"
    with Genome(GENOME) as genome:
        lengths = dict(genome.contigs)
        letters = genome.fetch(contig, 0, lengths[contig]).upper()
    fasta.write_bytes(b">%b\n%b\n" % (contig.encode(), letters))
    if not found.exists():
        words = [
            "augustus",
            f"--species={SPECIES}",
            "--gff3=on",
            "--stopCodonExcludedFromCDS=false",
        ]
        done = subprocess.run([*words, str(fasta)], capture_output=True, text=True, check=True)
        found.write_text(done.stdout)
    return [
        CodingGene(gene.strand, tuple((a - first, b - first) for a, b in gene.coding))
        for gene in read_genes(found, lengths)
        if gene.contig == contig and gene.coding[0][0] >= first and gene.coding[-1][1] <= last
    ]
