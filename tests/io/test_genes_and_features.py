"""Genes for pictures, and features as Biopython extracts them, with where they stand."""

import io
from pathlib import Path
from typing import Any

import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import BeforePosition, CompoundLocation, SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord
from hypothesis import given
from hypothesis import strategies as st

from genodiff.errors import DataError, UsageError
from genodiff.io.features import Feature, read_features
from genodiff.io.genes import Gene, pick_genes, read_genes

CONTIGS = {"chr1": 1000, "chr2": 200}
# A gene of two exons on the - strand, at bases 101 to 130 and 151 to 190 (from 1), of which 111 to
# 130 and 151 to 180 are coding; and a shorter transcript of it.
WANTED = Gene("chr1", 100, 190, -1, "ABC1", ((100, 130), (150, 190)), ((110, 130), (150, 180)))
GFF3 = """##gff-version 3
##sequence-region chr1 1 1000
chr1\tx\tregion\t1\t1000\t.\t+\t.\tID=chr1
chr1\tx\tgene\t101\t190\t.\t-\t.\tID=g1;Name=ABC1;Note=a%3Bb
chr1\tx\tmRNA\t101\t130\t.\t-\t.\tID=t0;Parent=g1
chr1\tx\texon\t101\t130\t.\t-\t.\tParent=t0
chr1\tx\tmRNA\t101\t190\t.\t-\t.\tID=t1;Parent=g1;Name=ABC1-201
chr1\tx\texon\t151\t190\t.\t-\t.\tParent=t1
chr1\tx\texon\t101\t130\t.\t-\t.\tParent=t1
chr1\tx\tCDS\t151\t180\t.\t-\t0\tID=c1;Parent=t1
chr1\tx\tCDS\t111\t130\t.\t-\t0\tID=c1;Parent=t1
chr1\tx\tpromoter\t191\t200\t.\t.\t.\tNote=alone
chrUn\tx\tgene\t1\t9\t.\t+\t.\tID=far
##FASTA
>chr1
ACGT
"""
_IDS = 'gene_id "g1"; transcript_id "{}"; gene_name "ABC1";'
GTF = "#!genome-build x\n" + "".join(
    f"chr1\tx\t{kind}\t{start}\t{end}\t.\t-\t.\t{ids}\n"
    for kind, start, end, ids in (
        ("gene", 101, 190, 'gene_id "g1"; gene_name "ABC1";'),
        ("transcript", 101, 130, _IDS.format("t0")),
        ("exon", 101, 130, _IDS.format("t0")),
        ("transcript", 101, 190, _IDS.format("t1")),
        ("exon", 101, 130, _IDS.format("t1")),
        ("exon", 151, 190, _IDS.format("t1")),
        ("CDS", 111, 130, _IDS.format("t1")),
        ("CDS", 151, 180, _IDS.format("t1")),
    )
)
BED = "track name=x\nchr1\t100\t190\tABC1\t0\t-\t110\t180\t0\t2\t30,40,\t0,50,\n"


def write(tmp_path: Path, text: str) -> Path:
    (tmp_path / "genes").write_text(text)
    return tmp_path / "genes"


@pytest.mark.parametrize("text", [GFF3, GTF, BED], ids=["gff3", "gtf", "bed12"])
def test_a_gene_stands_where_the_file_says_with_its_longest_transcript(tmp_path, text):
    found = read_genes(write(tmp_path, text), CONTIGS)
    assert found[0] == WANTED
    assert [one.name for one in found[1:]] == (["promoter"] if text is GFF3 else [])
    assert pick_genes(found, "chr1", 130, 150) == [WANTED]  # its intron
    assert pick_genes(found, "chr1", 189, 190) == [WANTED]
    assert pick_genes(found, "chr1", 0, 100) == pick_genes(found, "chr2", 100, 190) == []


def test_exons_without_a_row_of_their_gene_are_joined(tmp_path):
    rows = [line for line in GTF.splitlines() if "\texon\t" in line or "\tCDS\t" in line]
    assert read_genes(write(tmp_path, "\n".join(rows)), CONTIGS) == [WANTED]


def test_short_rows_of_bed_have_no_name_and_no_strand(tmp_path):
    assert read_genes(write(tmp_path, "chr2\t5\t9\n"), CONTIGS) == [
        Gene("chr2", 5, 9, 0, "", ((5, 9),))
    ]
    assert read_genes(write(tmp_path, "chr1\t0\t2\tx\t0\t+\n"), CONTIGS) == [
        Gene("chr1", 0, 2, 1, "x", ((0, 2),))
    ]


def test_a_genbank_record_gives_the_coding_part_of_each_gene(tmp_path):
    place = CompoundLocation([SimpleLocation(150, 180, -1), SimpleLocation(110, 130, -1)])
    record = SeqRecord(Seq("ACGT" * 250), id="chr1", annotations={"molecule_type": "DNA"})
    record.features = [
        SeqFeature(SimpleLocation(0, 1000, 1), type="source"),
        SeqFeature(SimpleLocation(100, 190, -1), type="gene", qualifiers={"gene": ["ABC1"]}),
        SeqFeature(place, type="CDS", qualifiers={"gene": ["ABC1"]}),
        SeqFeature(SimpleLocation(300, 370, 1), type="tRNA"),
    ]
    out = io.StringIO()
    SeqIO.write([record], out, "genbank")
    coding = ((110, 130), (150, 180))
    assert read_genes(write(tmp_path, out.getvalue()), CONTIGS) == [
        Gene("chr1", 110, 180, -1, "ABC1", coding, coding),
        Gene("chr1", 300, 370, 1, "tRNA", ((300, 370),)),
    ]


def test_what_lies_beyond_a_contig_is_told(tmp_path, caplog):
    found = read_genes(write(tmp_path, "chr2\t190\t300\tx\nchr2\t250\t300\ty\n"), CONTIGS)
    assert [one.name for one in found] == ["x"]
    assert "2 genes end beyond their contig" in caplog.text


def test_only_contigs_that_are_drawn_are_kept(tmp_path):
    path = write(tmp_path, "chr2\t5\t9\tx\nchr1\t0\t2\ty\n")
    assert [one.name for one in read_genes(path, CONTIGS, {"chr1"})] == ["y"]
    path = write(tmp_path, "chr2\t5\t9\tx\n")
    assert read_genes(path, CONTIGS, {"chr1"}) == []


SEQUENCE = "ACGTTGCANRGATTACACCAGT" * 5
PLACES = {
    "plain": SimpleLocation(3, 20, 1),
    "minus": SimpleLocation(30, 47, -1),
    "spliced": CompoundLocation([SimpleLocation(5, 9, 1), SimpleLocation(12, 20, 1)]),
    "back": CompoundLocation([SimpleLocation(40, 50, -1), SimpleLocation(10, 15, -1)]),
    "round": CompoundLocation([SimpleLocation(100, 110, 1), SimpleLocation(0, 7, 1)]),
    "partial": SimpleLocation(BeforePosition(8), 20, -1),
}


def record() -> SeqRecord:
    made = SeqRecord(Seq(SEQUENCE), id="c.1", name="c", annotations={"molecule_type": "DNA"})
    made.features = [
        SeqFeature(place, type="CDS", qualifiers={"gene": [name], "locus_tag": [f"t_{name}"]})
        for name, place in PLACES.items()
    ]
    made.features.append(SeqFeature(SimpleLocation(0, 5, 1), type="promoter"))
    return made


def written(tmp_path: Path, form: str, made: SeqRecord | None = None) -> Path:
    out = io.StringIO()
    SeqIO.write(made or record(), out, form)
    (tmp_path / "in.flat").write_text(out.getvalue())
    return tmp_path / "in.flat"


@pytest.mark.parametrize("form", ["genbank", "embl", "memory"])
def test_letters_are_what_biopython_extracts(tmp_path, form):
    source: Any = [record()] if form == "memory" else written(tmp_path, form)
    found = list(read_features(source, ["CDS"]))
    assert [f.name for f in found] == list(PLACES)
    for feature in found:
        assert feature.contig == "c.1"
        assert feature.letters == bytes(PLACES[feature.name].extract(Seq(SEQUENCE)))
    spans = {f.name: f.span(0, len(f.letters)) for f in found}
    assert spans == {
        "plain": (3, 20), "minus": (30, 47), "spliced": (5, 20), "back": (10, 50),
        "round": (0, 110), "partial": (8, 20),
    }  # fmt: skip
    back = next(f for f in found if f.name == "back")
    assert [back.span(0, 4), back.span(8, 12), back.span(10, 15)] == [(46, 50), (13, 42), (10, 15)]


def test_features_are_chosen_by_type_and_by_any_of_their_names(tmp_path):
    path = written(tmp_path, "genbank")
    chosen = ["promoter", "CDS=t_back", "CDS=plain"]
    assert [f.name for f in read_features(path, chosen)] == ["plain", "back", "promoter"]
    assert [f.name for f in read_features(record(), ["CDS=minus"])] == ["minus"]


@given(st.data())
def test_a_piece_spans_exactly_the_bases_that_it_holds(data):
    cuts = sorted(data.draw(st.sets(st.integers(0, 60), min_size=2, max_size=8)))
    parts = [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    strand = data.draw(st.sampled_from([1, -1]))
    order = parts if strand > 0 else parts[::-1]
    bases = [x for a, b in order for x in (range(a, b) if strand > 0 else range(b - 1, a - 1, -1))]
    feature = Feature("c", "f", b"A" * len(bases), tuple((a, b, strand) for a, b in order))
    start = data.draw(st.integers(0, len(bases) - 1))
    end = data.draw(st.integers(start + 1, len(bases)))
    held = bases[start:end]
    assert feature.span(start, end) == (min(held), max(held) + 1)


def changed(place: Any) -> SeqRecord:
    made = record()
    made.features = [SeqFeature(place, type="CDS")]
    return made


@pytest.mark.parametrize(
    ("made", "wanted", "words", "kind"),
    [
        (record(), "cds", "no feature of type 'cds'; known: CDS", UsageError),
        (record(), "tRNA", "no feature of type 'tRNA'", UsageError),
        (record(), "CDS=plan", "no CDS is called 'plan'; did you mean 'plain'", UsageError),
        (changed(SimpleLocation(100, 120)), "CDS", "not within the record's 110 bases", DataError),
        (changed(SimpleLocation(1, 5, 1, ref="J01.1")), "CDS", "another record, J01.1", DataError),
        (SeqRecord(Seq("AC-T"), id="x"), "CDS", r"record x.*base 3: gap", DataError),
        ("ACGT", "CDS", "no such file", DataError),
        (["ACGT"], "CDS", "a str has no features", UsageError),
    ],
)
def test_what_is_not_there_or_elsewhere_is_one_line(made, wanted, words, kind):
    with pytest.raises(kind, match=words) as caught:
        list(read_features(made, [wanted]))
    assert caught.value.fix


def test_a_fasta_and_an_empty_feature(tmp_path, caplog):
    (tmp_path / "in.fa").write_text(">a\nACGT\n")
    (tmp_path / "empty").write_text("")
    for name in ("in.fa", "empty"):
        with pytest.raises(DataError, match=r"neither GenBank nor EMBL.*--bed"):
            list(read_features(tmp_path / name, ["CDS"]))
    assert list(read_features(changed(SimpleLocation(5, 5)), ["CDS"])) == []
    assert "has no base and is left out" in caplog.text
