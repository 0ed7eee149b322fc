"""Every feature of INSDC and GFF3 × every format × both verbs is what translating says."""

import random
from pathlib import Path

import numpy as np
import pytest

from genodiff.annotation.base_labels import read_gene_labels
from genodiff.annotation.gene_grammar import UNKNOWN
from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.variants.consequences import Consequence, Consequences
from tests.annotation.made_files import FORMATS
from tests.annotation.made_genomes import (
    TERMS_OF_CODONS,
    MadeGene,
    MadeGenome,
    judge_indel,
    judge_snv,
    list_bases,
    make_genome,
)

SEEDS = [0, pytest.param(1, marks=pytest.mark.slow)]


@pytest.fixture(params=[pytest.param("line", marks=pytest.mark.slow), "circle"])
def made(request, seed):
    return make_genome(seed, circular=request.param == "circle")


FRAME = {"frameshift_variant", "start_lost", "stop_lost", "splice_donor_variant",
         "splice_acceptor_variant", "incomplete_terminal_codon_variant"}  # fmt: skip


def write(folder: Path, made: MadeGenome, kind: str) -> tuple[Path, Path, list[MadeGene]]:
    """The FASTA, the annotation, and the genes that the format can say."""
    suffix, writer = FORMATS[kind]
    text, genes = writer(made)
    fasta, path = folder / "g.fa", folder / f"g{suffix}"
    fasta.write_text(f">{made.name}\n{made.letters}\n")
    path.write_text(text)
    return fasta, path, genes


def ask(opened: Consequences, made: MadeGenome, gene: MadeGene, change: tuple[int, int, str]
        ) -> list[Consequence]:  # fmt: skip
    start, end, alt = change
    found = opened.find(Allele(made.name, start, made.letters[start:end], alt))
    assert found
    mine = [one for one in found if one.transcript == gene.name]
    return mine or [one for one in found if one.gene == gene.name]


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", FORMATS)
def test_consequences_are_those_of_the_translated_genome(tmp_path, made, kind, seed):
    """Of every base, and in the quick suite of those around the ends and of a third of the rest."""
    rng = random.Random(kind)
    fasta, path, genes = write(tmp_path, made, kind)
    letters, length = made.letters, len(made.letters)
    with Genome(fasta) as genome:
        opened = Consequences(path, genome)
        for gene in genes:
            bases = list_bases(gene, length)
            for at in bases if seed else [*bases[:7], *bases[7:-7:3], *bases[7:][-7:]]:
                base = rng.choice([one for one in "ACGT" if one != letters[at]])
                found = ask(opened, made, gene, (at, at + 1, base))
                about = (gene, at, base, found)
                assert found, about  # never between genes
                terms = set(found[0].terms)
                if not gene.known:
                    assert found[0].unknown, about
                    assert not found[0].protein, about
                    assert not terms & {*TERMS_OF_CODONS, "synonymous_variant"}, about
                    continue
                term, amino = judge_snv(letters, gene, at, base)
                assert term in terms, (term, amino, *about)
                if amino:
                    assert found[0].protein == amino, (term, amino, *about)
            whole = gene.known and not (gene.slips or gene.trans or gene.skip or gene.recoded)
            if not whole or not bases or max(b for _, b, _ in gene.coding) > length:
                continue
            for at in [
                *bases[:: 1 if seed else 2],
                *(bases[0] + i for i in (-2, -1, 1)),
                bases[-1] - 1,
                bases[-1] + 1,
            ]:
                size = rng.randrange(4)
                put = "".join(rng.choices("ACGT", k=rng.randrange(1, 4) if not size else 0))
                if rng.random() < 0.3 and not size:
                    put = letters[at] * len(put)
                change = (at, at + size, put)
                truth = judge_indel(letters, gene, *change)
                if truth is None:
                    continue
                found = ask(opened, made, gene, change)
                terms = {term for one in found for term in one.terms}
                harm = terms & TERMS_OF_CODONS
                about = (gene, change, letters[at - 9 : at + 9], found)
                stays, in_frame = truth
                assert bool(harm) == (not stays), (truth, *about)
                if not stays and not in_frame:
                    assert harm & FRAME, about
                if in_frame:
                    assert "frameshift_variant" not in harm, about


def draw_labels(made: MadeGenome, genes: list[MadeGene]) -> list[set[str]]:
    """The names of the labels that each base may have."""
    length = len(made.letters)
    found: list[set[str]] = [{"between"} for _ in range(length)]
    for gene in genes:
        if not gene.coding:
            continue
        if not gene.has_path:
            low, high = min(a for a, *_ in gene.spread), max(b for _, b, _ in gene.spread)
            for at in range(low, high):
                found[at % length] = {"between", "unknown"}
            for at in list_bases(gene, length):
                found[at] = {"unknown"}
            continue
        bases = list_bases(gene, length)
        way = gene.coding[0][2]
        for number, at in enumerate(bases):
            found[at] = {f"exon{number % 3}{'+' if way > 0 else '-'}"}
        read = 0
        for (a, b, _), (c, d, _) in zip(gene.coding, gene.coding[1:], strict=False):
            read += b - a
            for at in range(min(b, d), max(a, c)):
                found[at % length] = {f"intron{(read - 1) % 3}{'+' if way > 0 else '-'}"}
    return found


@pytest.mark.few(7)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("with_letters", [True, False])
def test_labels_are_the_frames_of_known_genes(tmp_path, made, kind, with_letters):
    fasta, path, genes = write(tmp_path, made, kind)
    with Genome(fasta) as genome:
        labels = read_gene_labels(path, genome.contigs, genome if with_letters else None)
    names = np.array([*labels.names, "unknown"])
    told = names[labels.contigs[made.name]]  # UNKNOWN is -1, the last
    assert UNKNOWN == -1
    for at, allowed in enumerate(draw_labels(made, genes)):
        near = [one for one in genes if any(a <= at < b for a, b, _ in one.spread)]
        assert told[at] in allowed, (at, told[at], allowed, near)
