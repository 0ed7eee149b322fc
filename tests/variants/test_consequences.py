"""What variants do to planted genes, by hand and beside a naive translation."""

import pytest
from Bio.Seq import Seq
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.errors import DataError, UsageError
from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.variants.consequences import TERMS, Consequences, parse_codes

# 10 between genes, UTR CCCC, exon ATG GCT AAA C (14:24), intron GT...AG (24:54),
# exon AA GGG TGG TAA (54:65), UTR CCCC (65:69), 11 between genes
PLUS = "T" * 10 + "CCCC" + "ATGGCTAAAC" + "GT" + "T" * 26 + "AG" + "AAGGGTGGTAA" + "CCCC" + "T" * 11
SIZE = len(PLUS)
MINUS = str(Seq(PLUS).reverse_complement())


def rows(contig: str, turned: bool, more: str = "") -> list[str]:
    def row(kind: str, start: int, end: int, phase: str, told: str) -> str:
        first, last = (SIZE - end, SIZE - start) if turned else (start, end)
        way = "-" if turned else "+"
        return f"{contig}\tx\t{kind}\t{first + 1}\t{last}\t.\t{way}\t{phase}\t{told}"

    own = contig
    return [
        row("gene", 10, 69, ".", f"ID=g{own};Name=ADE{own}"),
        row("mRNA", 10, 69, ".", f"ID=t{own};Parent=g{own}"),
        row("exon", 10, 24, ".", f"Parent=t{own}"), row("exon", 54, 69, ".", f"Parent=t{own}"),
        row("CDS", 14, 24, "0", f"ID=c{own};Parent=t{own}{more}"),
        row("CDS", 54, 65, "2", f"ID=c{own};Parent=t{own}{more}"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genes")
    (folder / "g.fa").write_text(f">p\n{PLUS}\n>m\n{MINUS}\n>chrM\n{PLUS}\n>bare\nACGT\n")
    text = "\n".join([*rows("p", False), *rows("m", True), *rows("chrM", False)])
    (folder / "g.gff3").write_text(text + "\n")
    return Consequences(folder / "g.gff3", Genome(folder / "g.fa"))


def alleles(start: int, ref: str, alt: str) -> list[Allele]:
    """A change of the gene, on the contig where it is on + and where it is on -."""
    assert PLUS[start : start + len(ref)] == ref
    turn = lambda text: str(Seq(text).reverse_complement())  # noqa: E731
    return [
        Allele("p", start, ref, alt),
        Allele("m", SIZE - start - len(ref), turn(ref), turn(alt)),
    ]


@pytest.mark.parametrize(
    ("start", "ref", "alt", "terms", "protein"),
    [
        (2, "T", "A", "intergenic_variant", ""),
        (11, "C", "A", "5_prime_UTR_variant", ""),
        (66, "C", "A", "3_prime_UTR_variant", ""),
        (14, "A", "G", "start_lost", ""),
        (19, "T", "C", "synonymous_variant", "A2A"),
        (18, "C", "T", "missense_variant", "A2V"),
        (20, "A", "T", "stop_gained", "K3*"),
        (63, "A", "C", "stop_lost", "*7S"),
        (63, "A", "G", "stop_retained_variant", "*7*"),
        (24, "G", "A", "splice_donor_variant&intron_variant", ""),
        (53, "G", "A", "splice_acceptor_variant&intron_variant", ""),
        (28, "T", "A", "splice_region_variant&intron_variant", ""),
        (38, "T", "A", "intron_variant", ""),
        (55, "A", "C", "missense_variant&splice_region_variant", "Q4H"),
        (18, "C", "", "frameshift_variant", "A2fs"),
        (17, "", "CCC", "inframe_insertion", "1_2insP"),
        (17, "GCT", "", "inframe_deletion", "A2del"),
        (18, "CTA", "TTG", "missense_variant", "AK2VE"),
        (22, "ACGT", "", "splice_donor_variant&splice_region_variant", ""),
        (23, "CG", "AA", "splice_donor_variant&missense_variant&intron_variant", "Q4K"),
        (12, "CCAT", "", "start_lost&5_prime_UTR_variant", ""),
        (10, PLUS[10:69], "", "transcript_ablation", ""),
    ],
)
def test_each_term_is_met_on_both_strands(opened, start, ref, alt, terms, protein):
    for allele in alleles(start, ref, alt):
        told = opened.describe(allele)
        if start == 22:
            found = "splice_donor_variant&coding_sequence_variant&intron_variant"
            assert told["consequence"] == found
            continue
        assert (told["consequence"], told["protein"]) == (terms, protein), allele
        assert told["gene"] == ("" if terms == "intergenic_variant" else f"ADE{allele.chrom}")


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_coding_terms_agree_with_whole_transcripts_translated_naively(opened, data):
    start = data.draw(st.sampled_from([*range(17, 22), *range(57, 62)]))
    width = data.draw(st.integers(1, 65 - start if start > 50 else 24 - start))
    ref = PLUS[start : start + width]
    alt = data.draw(st.text("ACGT", min_size=width, max_size=width).filter(lambda x: x != ref))
    edited = PLUS[:start] + alt + PLUS[start + width :]
    old, new = (str(Seq(x[14:24] + x[54:65]).translate()) for x in (PLUS, edited))
    for allele in alleles(start, ref, alt):
        terms = set(opened.find(allele)[0].terms)
        stop = new.find("*")
        assert ("stop_gained" in terms) == (0 <= stop < 6)
        assert ("stop_lost" in terms) == (stop < 0)
        assert ("missense_variant" in terms) == (stop == 6 and new != old)
        assert bool(terms & {"synonymous_variant", "stop_retained_variant"}) == (new == old)
        assert terms <= set(TERMS)


def test_a_mitochondrion_has_no_code_until_it_is_told(opened, caplog):
    change = Allele("chrM", 61, "G", "A")  # TGG, then TGA: W in code 2
    assert opened.describe(change)["consequence"] == "coding_sequence_variant"
    genome = Genome(opened._genome.path)
    told = Consequences(opened.path, genome, parse_codes(["chrM=2"], genome.contigs))
    assert told.describe(change)["protein"] == "W6W"
    assert told.describe(Allele("p", 61, "G", "A"))["protein"] == "W6*"
    assert told.digest != opened.digest
    assert "nothing on 1 of the genome's contigs (bare)" in caplog.text
    with pytest.raises(UsageError, match="no contig"):
        parse_codes(["chrX=2"], genome.contigs)


def test_what_has_no_letters_or_no_annotation_has_no_consequence(opened):
    assert opened.find(Allele("bare", 1, "C", "A")) == []
    assert opened.find(Allele("p", 18, "C", "N")) == []
    assert opened.describe(None)["consequence"] == ""


def test_bed12_says_the_same(opened, tmp_path):
    (tmp_path / "g.bed").write_text("p\t10\t69\tt\t0\t+\t14\t65\t0\t2\t14,15\t0,44\n")
    other = Consequences(tmp_path / "g.bed", Genome(opened._genome.path))
    for at in range(10, 69):
        one = Allele("p", at, PLUS[at], "A" if PLUS[at] != "A" else "C")
        for mine, theirs in zip(opened.find(one), other.find(one), strict=True):
            assert (mine.terms, mine.protein) == (theirs.terms, theirs.protein)


def test_an_annotation_of_other_contigs_is_an_error(opened, tmp_path):
    (tmp_path / "o.gff3").write_text("\n".join(rows("other", False)) + "\n")
    with pytest.raises(DataError, match="none of its contigs"):
        Consequences(tmp_path / "o.gff3", Genome(opened._genome.path))


def test_a_slipping_frame_and_its_stop_are_read_on_both_sides_of_the_slip(tmp_path):
    genes = "AT" + "ATGGCTTG" + "T" + "TGGAAATAA" + "CCCC"  # the T at 10 is left out
    (tmp_path / "s.fa").write_text(f">s\n{genes}\n")
    told = "ID=c;Parent=g;transl_table=11"
    lines = [f"s\tx\tCDS\t{a}\t{b}\t.\t+\t0\t{told}" for a, b in ((3, 10), (12, 20))]
    (tmp_path / "s.gff3").write_text("\n".join(["s\tx\tgene\t3\t20\t.\t+\t.\tID=g", *lines]) + "\n")
    found = Consequences(tmp_path / "s.gff3", Genome(tmp_path / "s.fa"))
    # ATG GCT TGT GGA AAT AA: the codon over the slip is TG + T
    assert found.describe(Allele("s", 11, "T", "A"))["protein"] == "C3*"
    assert found.describe(Allele("s", 10, "T", "A"))["consequence"] == "coding_sequence_variant"
    last = found.describe(Allele("s", 18, "A", "G"))
    assert last["consequence"] == "incomplete_terminal_codon_variant"
