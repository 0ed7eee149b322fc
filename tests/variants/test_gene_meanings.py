"""Words and shapes of annotations that change what a gene means, case by case."""

import random
from pathlib import Path

import numpy as np
import pytest
from Bio.Seq import Seq
from Bio.SeqFeature import SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

from genodiff.annotation.base_labels import read_class_labels, read_gene_labels
from genodiff.errors import DataError
from genodiff.io.annotation_rows import read_annotation
from genodiff.io.faidx import Genome
from genodiff.io.genes import read_genes
from genodiff.io.transcript_model import read_pieces
from genodiff.io.transcripts import read_transcripts
from genodiff.io.variants import Allele
from genodiff.variants.consequences import Consequences

GENE = "ATGGCTAAACGTGGGTGCTTATCTGAATAA"  # M A K R G C L S E *


def write(folder: Path, letters: str, text: str, name: str = "g.gff3") -> Path:
    (folder / "g.fa").write_text(f">c\n{letters}\n")
    (folder / name).write_text(text)
    return folder / name


def row(kind: str, start: int, end: int, about: str, way: str = "+", phase: object = ".") -> str:
    return f"c\tx\t{kind}\t{start}\t{end}\t.\t{way}\t{phase}\t{about}\n"


def ask(folder: Path, path: Path, start: int, ref: str, alt: str) -> list[str]:
    with Genome(folder / "g.fa") as genome:
        return [str(one) for one in Consequences(path, genome).find(Allele("c", start, ref, alt))]


def label(folder: Path, path: Path, *, letters: bool = True) -> str:
    """The labels as e, i, -, ? of exons, introns, between, unknown."""
    with Genome(folder / "g.fa") as genome:
        found = read_gene_labels(path, genome.contigs, genome if letters else None)
    names = np.array([*("-" if one == "between" else one[0] for one in found.names), "?"])
    return "".join(names[found.contigs["c"]])


@pytest.mark.parametrize("turned", [False, True])
def test_a_base_of_a_run_over_a_start_or_stop_leaves_what_stands_there(tmp_path, turned):
    letters = "CGTCGTAAA" + GENE + "AAAACGCGTT"  # AAAATG and TAAAAAA
    size = len(letters)
    shown = str(Seq(letters).reverse_complement()) if turned else letters
    a, b = (size - 39 + 1, size - 9) if turned else (10, 39)
    path = write(tmp_path, shown, row("CDS", a, b, "ID=g", "-" if turned else "+", 0))

    def told(start: int, ref: str, alt: str) -> str:
        if turned:
            ref, alt = (str(Seq(x).reverse_complement()) for x in (ref, alt))
            start = size - start - len(ref)
        (one,) = ask(tmp_path, path, start, ref, alt)
        return one.split("|")[2] if "|" in one else one

    for at in range(37, 43):  # the run of A at the stop
        assert told(at, "A", "") == told(at, "", "A") == "stop_retained_variant"
    assert told(38, "AAA", "") == "stop_retained_variant"
    for at in range(6, 10):
        assert told(at, "A", "") == told(at, "", "A") == "start_retained_variant"
    assert told(36, "T", "") == "frameshift_variant+stop_lost"
    assert told(10, "T", "") == "frameshift_variant+start_lost"
    assert told(37, "AAAAAA", "") == "stop_lost"
    assert told(12, "G", "") == "frameshift_variant"


SPLIT = "CCCC" + GENE[:10] + "GT" + "C" * 24 + "AG" + GENE[10:] + "CCCCCCCC"
PARTS = ((5, 14), (43, 62))


@pytest.mark.parametrize(
    ("about", "unknown"),
    [
        ("", ""), ("pseudo=true", "pseudogene"), ("pseudogene=unitary", "pseudogene"),
        ("pseudo=false", ""), ("gene_biotype=transcribed_pseudogene", "pseudogene"),
        ("exception=RNA editing", "rna editing"), ("exception=nonconsensus splice site", ""),
        ("artificial_location=low-quality sequence region", "artificial location"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["CDS", "gene"])
def test_words_of_a_gene_and_of_its_cds_count_alike(tmp_path, about, unknown, place):
    own, above = (f";{about}", "") if place == "CDS" else ("", f";{about}")
    text = row("gene", 5, 63, f"ID=g{above}") + "".join(
        row("CDS", a, b, f"ID=c;Parent=g{own}", phase=p)
        for (a, b), p in zip(((5, 14), (43, 62)), (0, 2), strict=True))  # fmt: skip
    path = write(tmp_path, SPLIT, text)
    (told,) = ask(tmp_path, path, 47, "T", "A")
    assert told.split("|")[4:] == ([unknown] if unknown else [])
    assert ("missense" in told) == (not unknown)
    assert "intergenic" not in told
    if unknown:
        other = write(tmp_path, SPLIT, text + row("CDS", 64, 69, "ID=far"))
        assert set(label(tmp_path, other)[4:14]) == {"?"}
    else:
        assert label(tmp_path, path)[4:62] == "e" * 10 + "i" * 28 + "e" * 20


@pytest.mark.parametrize(
    ("phases", "way", "said"),
    [
        ((0, 2), "+", ""), ((0, 0), "+", ""), ((".", "."), "+", ""),
        ((0, 1), "+", "its phases contradict its parts"),
        ((0, 2), ".", "no strand is annotated"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_not_judged(tmp_path, phases, way, said):
    rows = [row("CDS", a, b, "ID=c;Parent=t", way, p)
            for (a, b), p in zip(PARTS, phases, strict=True)]  # fmt: skip
    path = write(tmp_path, SPLIT, row("mRNA", 5, 62, "ID=t", way) + "".join(rows))
    (told,) = ask(tmp_path, path, 47, "T", "A")
    assert told.split("|")[4:] == ([said] if said else [])
    assert ("missense" in told) == (not said)


def test_parts_on_two_strands_need_the_word_and_the_letters(tmp_path):
    turned = str(Seq(GENE[:12]).reverse_complement())
    letters = "CCCCC" + turned + "CCCCC" + GENE[12:] + "CCCCC"
    rows = [("-", 6, 17), ("+", 23, 40)]
    for order, word, known in ((1, ";exception=trans-splicing", True), (1, "", False),
                               (-1, ";exception=trans-splicing", False)):  # fmt: skip
        text = "".join(row("CDS", a, b, f"ID=c{word}", way, 0) for way, a, b in rows[::order])
        path = write(tmp_path, letters, text)
        (told,) = ask(tmp_path, path, 22, "G", "C")  # GGG, then CGG
        assert told.endswith("missense_variant|G5R") == known, told
        assert "intergenic" not in told
        assert ask(tmp_path, path, 19, "C", "A") == ["||intergenic_variant|"]
        both = write(tmp_path, letters, text + row("CDS", 41, 43, "ID=far", "+", 0))
        assert set(label(tmp_path, both)[22:39]) == {"?"}


def test_rows_of_several_names_are_one_cds_only_where_exons_or_letters_say_so(tmp_path):
    above = row("gene", 5, 63, "ID=g") + row("mRNA", 5, 63, "ID=t;Parent=g")
    cds = "".join(row("CDS", a, b, f"ID=t.CDS.{n};Parent=t", phase=p)
                  for n, ((a, b), p) in enumerate(zip(PARTS, (0, 2), strict=True)))  # fmt: skip
    exons = "".join(row("exon", a, b, f"ID=e{a};Parent=t") for a, b in PARTS)
    for text in (above + cds, above + exons + cds):
        path = write(tmp_path, SPLIT, text)
        assert ask(tmp_path, path, 47, "T", "A") == ["t|g|missense_variant|C6S"]
        assert label(tmp_path, path)[4:62] == "e" * 10 + "i" * 28 + "e" * 20
    # Without letters it stays a guess; and two frames of one exon are two.
    path = write(tmp_path, SPLIT, above + cds + row("CDS", 64, 69, "ID=far"))
    assert set(label(tmp_path, path, letters=False)[4:62]) == {"?"}
    two = "CC" + GENE + "CCCCCCCCCCC" + GENE + "CC"
    text = row("mRNA", 1, 75, "ID=t") + row("exon", 1, 75, "Parent=t") + "".join(
        row("CDS", a, a + 29, f"ID=c{a};Parent=t", phase=0) for a in (3, 44))  # fmt: skip
    bare = write(tmp_path, two, text.replace("\texon\t", "\tregion\t"))
    assert label(tmp_path, bare) == "--" + "e" * 30 + "-" * 11 + "e" * 30 + "--"
    path = write(tmp_path, two, text)
    assert label(tmp_path, path) == "--" + "e" * 30 + "-" * 11 + "e" * 30 + "--"
    told = ask(tmp_path, path, 43 + 4, "C", "A")
    assert sorted(told) == ["c3|t|3_prime_UTR_variant|", "c44|t|missense_variant|A2D"]


def test_a_gene_beyond_its_contig_is_there_and_unknown(tmp_path):
    letters = "CC" + GENE + "CCCCCC"
    text = row("CDS", 3, 32, "ID=c", phase=0) + row("CDS", 35, 60, "ID=d", phase=0)
    path = write(tmp_path, letters, text)
    assert ask(tmp_path, path, 35, "C", "A") == ["d|d|gene_variant||beyond its contig"]
    assert label(tmp_path, path) == "--" + "e" * 30 + "--" + "????"


def test_a_gene_without_a_cds_is_not_between(tmp_path):
    letters = "CC" + GENE + "C" * 60
    text = row("CDS", 3, 32, "ID=c") + row("gene", 40, 49, "ID=g") + row("tRNA", 60, 69, "ID=r")
    path = write(tmp_path, letters, text + row("gene", 75, 80, "ID=q;gene_biotype=lncRNA"))
    assert label(tmp_path, path) == "--" + "e" * 30 + "-" * 7 + "?" * 10 + "-" * 43


def test_utrs_without_exons_are_exons(tmp_path):
    rows = row("mRNA", 1, 66, "ID=t") + "".join(
        row(kind, a, b, f"ID={kind}{a};Parent=t")
        for kind, a, b in (("five_prime_UTR", 1, 4), ("CDS", 5, 14), ("CDS", 43, 62),
                           ("three_prime_UTR", 63, 66)))  # fmt: skip
    path = write(tmp_path, SPLIT, rows.replace("CDS43", "CDS5"))
    assert ask(tmp_path, path, 2, "C", "A") == ["t|t|5_prime_UTR_variant|"]
    assert ask(tmp_path, path, 64, "C", "A") == ["t|t|3_prime_UTR_variant|"]


def test_pictures_draw_both_ends_of_a_gene_over_the_origin(tmp_path):
    text = row("region", 1, 100, "ID=c;Is_circular=true")
    text += row("gene", 91, 130, "ID=g;Name=ori") + row("CDS", 91, 130, "ID=d;Parent=g", phase=0)
    text += row("gene", 40, 45, "ID=p;pseudo=true;Name=ps") + row("CDS", 40, 45, "ID=q;Parent=p")
    text += row("promoter", 98, 104, "Name=far")
    random.seed(1)
    path = write(tmp_path, "".join(random.choices("ACGT", k=100)), text)
    found = {(one.name, one.start, one.end, one.coding) for one in read_genes(path, {"c": 100})}
    assert found == {
        ("ori", 0, 30, ((0, 30),)), ("ori", 90, 100, ((90, 100),)), ("ps", 39, 45, ()),
        ("far", 97, 100, ()), ("far", 0, 4, ()),
    }  # fmt: skip


def test_rows_over_the_origin_are_two_intervals_of_a_class_and_sound(tmp_path):
    text = row("region", 1, 50, "ID=c;Is_circular=true") + row("CDS", 41, 60, "ID=a")
    path = write(tmp_path, "A" * 50, text)
    found = read_class_labels(path, {"c": 50}, types=("CDS",)).contigs["c"]
    assert np.flatnonzero(found).tolist() == [*range(10), *range(40, 50)]
    assert len(list(read_annotation(path, {"c": 50}, over_origin=True))) == 2
    with pytest.raises(DataError, match="crosses the origin of c"):
        list(read_annotation(path, {"c": 50}, ["CDS"]))
    linear = write(tmp_path, "A" * 50, row("CDS", 41, 60, "ID=a"))
    with pytest.raises(DataError, match="past the end"):
        read_class_labels(linear, {"c": 50}, types=("CDS",))


@pytest.mark.parametrize("header", ["", " [topology=circular]"])
def test_exon_numbers_of_gtf_say_the_order_over_an_origin(tmp_path, header):
    letters = GENE[12:] + "CCCCCCCCCC" + GENE[:12]  # the gene is 29..40, 1..18
    about = 'gene_id "g"; transcript_id "t"; exon_number "{}";'
    text = "".join(row("CDS", a, b, about.format(n), phase=0)
                   for n, a, b in ((2, 1, 15), (1, 29, 40)))  # fmt: skip
    path = write(tmp_path, letters, text + row("stop_codon", 16, 18, about.format(2)) +
                 row("start_codon", 29, 31, about.format(1)), "g.gtf")  # fmt: skip
    (tmp_path / "g.fa").write_text(f">c{header}\n{letters}\n")
    assert ask(tmp_path, path, 0, "G", "C") == ["t|g|missense_variant|G5R"]
    found = ask(tmp_path, path, 22, "C", "A")
    assert found == ["||intergenic_variant|"]
    if header:
        assert label(tmp_path, path) == "e" * 18 + "-" * 10 + "e" * 12


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1)])
def test_exons_on_minus_may_be_numbered_either_way(tmp_path, numbers):
    size, about = len(SPLIT), 'gene_id "g"; transcript_id "t"; exon_number "{}";'
    text = "".join(row("CDS", a + 1, b, about.format(n), "-") for n, a, b in (
        (numbers[0], size - 59, size - 42), (numbers[1], size - 14, size - 4)))  # fmt: skip
    text += row("stop_codon", size - 61, size - 59, about.format(numbers[0]), "-")
    path = write(tmp_path, str(Seq(SPLIT).reverse_complement()), text, "g.gtf")
    assert ask(tmp_path, path, size - 48, "A", "T") == ["t|g|missense_variant|C6S"]


ODD = "ACG" + GENE[3:]
WGA = GENE[:9] + "TGA" + GENE[12:]  # M A K W G ... in code 4
STOP = "coding_sequence_variant|"


@pytest.mark.parametrize("place", ["gene", "mRNA", "CDS"])
def test_a_genetic_code_of_the_gene_is_that_of_its_cds(tmp_path, place):
    said = dict.fromkeys(("gene", "mRNA", "CDS"), "") | {place: ";transl_table=4"}
    path = write(tmp_path, WGA, row("gene", 1, 30, "ID=g" + said["gene"]) + row(
        "mRNA", 1, 30, "ID=m;Parent=g" + said["mRNA"]) + row(
        "CDS", 1, 30, "ID=c;Parent=m" + said["CDS"], phase=0))  # fmt: skip
    assert ask(tmp_path, path, 9, "T", "C") == ["m|g|missense_variant|W4R"]


def test_a_first_codon_that_is_no_start_is_not_judged_but_for_a_translation_with_m(tmp_path):
    path = write(tmp_path, ODD, row("CDS", 1, 30, "ID=c", phase=0))
    assert ask(tmp_path, path, 0, "A", "T") == ["c|c|coding_sequence_variant|"]
    assert ask(tmp_path, path, 3, "G", "A") == ["c|c|missense_variant|A2T"]
    coding = SeqFeature(SimpleLocation(0, 30, 1), "CDS",
                        qualifiers={"gene": "c", "translation": "MAKRGCLSE"})  # fmt: skip
    about = {"molecule_type": "DNA"}
    record = SeqRecord(Seq(ODD), "c", "c", annotations=about, features=[coding])
    (tmp_path / "g.gb").write_text(record.format("genbank"))
    assert ask(tmp_path, tmp_path / "g.gb", 0, "A", "T") == ["c|c|start_lost|"]


def test_one_name_of_two_genes_is_two_coding_sequences(tmp_path):
    text = "".join(row("CDS", at, at + 29, f'gene_id "{g}"; transcript_id "t";', phase=0)
                   for g, at in (("a", 1), ("b", 41)))  # fmt: skip
    path = write(tmp_path, GENE + "C" * 10 + GENE, text, "g.gtf")
    assert [one[1:] for one in ask(tmp_path, path, 27, "T", "C")] == ["|a|stop_lost|*10Q"]
    assert ask(tmp_path, path, 34, "C", "A") == ["||intergenic_variant|"]


@pytest.mark.parametrize(("said", "kind", "right"), [
    ("transl_table=4", "region", "missense_variant|W4R"),
    ("genome=mitochondrion", "region", "coding_sequence_variant|"),
    ("", "mitochondrial_chromosome", "coding_sequence_variant|"),
    ("genome=chloroplast", "region", STOP), ("genome=chromosome", "region", STOP),
    ("genome=mitochondrion", "short", STOP),
])  # fmt: skip
def test_a_row_of_the_whole_sequence_says_the_code_of_its_cds(tmp_path, said, kind, right):
    size = len(WGA) - (kind == "short")
    about = row("region" if kind == "short" else kind, 1, size, f"ID=whole;{said}")
    path = write(tmp_path, WGA, about + row("CDS", 1, 30, "ID=c", phase=0))
    assert ask(tmp_path, path, 9, "T", "C") == [f"c|c|{right}"]
    own = row("CDS", 1, 30, "ID=c;transl_table=4", phase=0)
    assert ask(tmp_path, write(tmp_path, WGA, about + own), 9, "T", "C") == [
        "c|c|missense_variant|W4R"]  # fmt: skip


@pytest.mark.parametrize(("organelle", "right"), [
    ("mitochondrion", "coding_sequence_variant|"), ("plastid:chloroplast", STOP), ("", STOP),
])  # fmt: skip
def test_the_source_of_a_record_says_whose_code_it_is(tmp_path, organelle, right):
    write(tmp_path, WGA, "")
    said = {"organelle": organelle} if organelle else {}
    features = [SeqFeature(SimpleLocation(0, 30, 1), "source", qualifiers=said),
                SeqFeature(SimpleLocation(0, 30, 1), "CDS", qualifiers={"gene": "c"})]  # fmt: skip
    record = SeqRecord(Seq(WGA), "c", "c", annotations={"molecule_type": "DNA"}, features=features)
    (tmp_path / "g.gb").write_text(record.format("genbank"))
    assert ask(tmp_path, tmp_path / "g.gb", 9, "T", "C") == [f"c|c|{right}"]


@pytest.mark.parametrize("place", [
    "join(1..12,13..30)", "join(1..3,join(4..12,13..30))",
    "complement(join(complement(13..30),complement(1..12)))", "complement(complement(1..30))",
    "complement(complement(join(1..12,\n                     13..30)))",
])  # fmt: skip
def test_parts_within_parts_of_a_location_are_read(tmp_path, place):
    write(tmp_path, GENE, "")
    coding = SeqFeature(SimpleLocation(0, 30, 1), "CDS", qualifiers={"gene": "c"})
    about = {"molecule_type": "DNA"}
    record = SeqRecord(Seq(GENE), "c", "c", annotations=about, features=[coding, coding])
    (tmp_path / "g.gb").write_text(record.format("genbank").replace("1..30", place, 1))
    with Genome(tmp_path / "g.fa") as genome:
        one, other = (some.coding for some in read_transcripts(tmp_path / "g.gb", {"c": 30})[0])
        assert read_pieces(lambda a, b: genome.fetch("c", a, b), 30, one) == GENE
        assert [piece.strand for piece in one + other] == [1] * (len(one) + 1)
