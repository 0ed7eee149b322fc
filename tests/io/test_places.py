"""Places on a genome of sixteen bases, and contigs that other files call `1`, `chrI` or `MT`."""

import gzip
import subprocess
from pathlib import Path

import pytest

from genodiff.annotation.base_labels import read_class_labels, read_gene_labels
from genodiff.errors import DataError, UsageError
from genodiff.io.bed import read_bed
from genodiff.io.genes import read_genes
from genodiff.io.places import list_places
from genodiff.io.regions import find_contig, parse_region
from genodiff.io.value_tracks import read_values
from tests.commands import command

LETTERS = b"CCCCCGATTACACCCC"  # GATTACA stands at 6 to 12, its complement is TGTAATC
CONTIGS = {"1": 16, "chr2": 9}
GTF = (
    '1\tx\tgene\t6\t12\t.\t-\t.\tgene_id "g1"; gene_name "word";\n'
    '1\tx\texon\t6\t8\t.\t-\t0\tgene_id "g1";\n'
    '1\tx\texon\t10\t12\t.\t-\t0\tgene_id "g1";\n'
)
GFF3 = (
    "##gff-version 3\n#!x\n1\tx\tgene\t6\t12\t.\t-\t.\tID=g1;Name=a%20word\n"
    "1\tx\tCDS\t6\t8\t.\t-\t0\tParent=g1\n>1\nACGT\nACGT\nACGT\n"
)
SAF = "GeneID\tChr\tStart\tEnd\tStrand\nword\t1\t6\t12\t-\n"


def fetch(contig: str, start: int, end: int) -> bytes:
    assert contig == "1"
    return LETTERS[start:end]


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_row_on_minus_is_its_reverse_complement_and_all_others_stand(tmp_path):
    rows = "1\t5\t12\ta\t0\t-\n1\t5\t12\t.\t0\t-\n1\t5\t12\tb\t0\t+\n1\t5\t12\t.\t0\t.\n"
    found = list_places(CONTIGS, (), write(tmp_path / "r.bed", rows))
    found += list_places(CONTIGS, ["1:6-12"])
    assert [(one.name, one.read(fetch)) for one in found] == [
        ("a", b"TGTAATC"), ("1:6-12(-)", b"TGTAATC"), ("b", b"GATTACA"), ("1:6-12", b"GATTACA"),
        ("1:6-12", b"GATTACA"),
    ]  # fmt: skip
    assert [one.line for one in found] == [1, 2, 3, 4, 0]


def test_a_part_of_a_row_on_minus_is_counted_from_its_right_end(tmp_path):
    (one,) = list_places(CONTIGS, (), write(tmp_path / "r.bed", "1\t5\t12\ta\t0\t-\n"))
    assert (one.read(fetch, 0, 3), one.cut(0, 3)) == (b"TGT", (9, 12))
    assert (one.read(fetch, 3, 7), one.cut(3, 7)) == (b"AATC", (5, 9))


def test_a_verb_that_uses_no_strand_says_how_many_rows_have_one(tmp_path, caplog):
    bed = write(tmp_path / "r.bed", "1\t5\t12\t.\t0\t-\n1\t0\t2\t.\t0\t+\n")
    found = list_places(CONTIGS, (), bed, along="tracks run along the genome")
    assert [(one.name, one.strand) for one in found] == [("1:6-12", "+"), ("1:1-2", "+")]
    said = "1 row on -; the strand column is not used: tracks run along the genome"
    assert said in caplog.text
    caplog.clear()
    list_places(CONTIGS, (), write(bed, "1\t5\t12\t.\t0\t+\n"), along="tracks run along")
    assert not caplog.text


def test_places_of_both_kinds_are_refused(tmp_path):
    bed = write(tmp_path / "r.bed", "1\t5\t12\n")
    with pytest.raises(UsageError, match="--bed and --region exclude each other"):
        list_places(CONTIGS, ["1:1-2"], bed)


@pytest.mark.parametrize(
    ("name", "text", "kind", "line", "row"),
    [
        ("x.gtf", GTF, "GTF (annotation that counts from 1: 2 exon, 1 gene)", 1, ".\t0"),
        ("x y.bed", GTF, "GTF", 1, ".\t0"),
        ("x.gff3", GFF3, "GFF3 (annotation that counts from 1: 1 gene, 1 CDS)", 3, ".\t0"),
        ("x.gtf.gz", GTF, "GTF", 1, ".\t0"),
        ("x.saf", SAF, "SAF (annotation that counts from 1)", 1, "word\t0"),
        ("x.bed", SAF.partition("\n")[2], "SAF", 1, "word\t0"),
        ("x.bed", SAF.partition("\n")[2].replace("word", "7"), "SAF", 1, "7\t0"),
    ],
)
def test_annotation_is_named_with_a_command_for_bed(tmp_path, name, text, kind, line, row):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    with pytest.raises(DataError) as caught:
        read_bed(path, CONTIGS)
    assert f"is {kind}" in caught.value.what
    assert caught.value.line == line
    command = str(caught.value.fix).partition(": ")[2].partition(" (genodiff")[0]
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    made = tmp_path / ("rows.bed" if "SAF" in kind else "gene.bed")
    assert made.read_text() == f"1\t5\t12\t{row}\t-\n"
    (one,) = list_places(CONTIGS, (), made)
    assert one.read(fetch) == b"TGTAATC"


@pytest.mark.parametrize(("text", "name"), [(GTF, "word"), (GFF3, "a word")])
def test_rows_of_annotation_are_read_by_their_type(tmp_path, text, name):
    path = write(tmp_path / "x", text)
    for features in (["gene"], [f"gene={name}"], ["gene=g1"]):
        (one,) = list_places(CONTIGS, (), path, features=features)
        assert (one.name, one.read(fetch)) == (name, b"TGTAATC")
    with pytest.raises(UsageError, match="no row has the type 'genes'; did you mean 'gene'"):
        list_places(CONTIGS, (), path, features=["genes"])
    with pytest.raises(UsageError, match="no gene is called 'g2'"):
        list_places(CONTIGS, (), path, features=["gene=g2"])


def test_exons_are_read_each_by_itself(tmp_path):
    found = list_places(CONTIGS, (), write(tmp_path / "x", GTF), features=["exon"])
    assert [(one.start, one.end, one.read(fetch)) for one in found] == [
        (5, 8, b"ATC"),
        (9, 12, b"TGT"),
    ]


@pytest.mark.parametrize(
    ("name", "contigs", "found"),
    [
        ("1", "chr1 chr2", "chr1"),
        ("chr1", "1 2", "1"),
        ("chr4", "chrIV chrV", "chrIV"),
        ("4", "chrIV", "chrIV"),
        ("IV", "4", "4"),
        ("MT", "chrM chr1", "chrM"),
        ("chrM", "MT", "MT"),
        ("M", "chrMT", "chrMT"),
        ("X", "chrX chr10", "chrX"),
        ("10", "chrX chr10", "chr10"),
        ("10", "chrX chr1", None),
        ("10", "chrIX chrX", "chrX"),
        ("X", "chr10 chr1", None),
        ("1", "chr1 Chr1", None),
        ("a", "chr1", None),
        ("", "chr", None),
        ("chra", "a", None),
        ("2L", "chr2L", "chr2L"),
        ("NC_1", "NC_1", "NC_1"),
    ],
)
def test_a_contig_is_found_by_what_other_files_call_it(name, contigs, found):
    assert find_contig(name, dict.fromkeys(contigs.split(), 9)) == found
    sizes = dict.fromkeys(contigs.split(), 9)
    if found:
        assert parse_region(f"{name}:2-3", sizes) == (found, 1, 3)
        assert parse_region(name, sizes) == (found, 0, 9)


def test_every_reader_takes_them_and_says_so(tmp_path, run, caplog, capsys):
    sizes = {"chrII": 90, "chrM": 60}
    rows = "2\t3\t9\ta\t0\t+\nMT\t3\t9\ta\t0\t+\n"
    gff = "".join(f"{c}\tx\tCDS\t4\t9\t.\t+\t0\tID={c}\n" for c in ("2", "MT"))
    for name, text in (("a.bed", rows), ("a.gff3", gff), ("a.bedgraph", "II\t1\t4\t2\n")):
        (tmp_path / name).write_text(text)
    assert read_bed(tmp_path / "a.bed", sizes)["contig"].to_list() == ["chrII", "chrM"]
    assert caplog.messages.count(f"{tmp_path}/a.bed: contig '2' is taken for 'chrII' of the FASTA")
    for file in ("a.bed", "a.gff3"):
        genes = read_genes(tmp_path / file, sizes)
        assert [one.contig for one in genes] == ["chrII", "chrM"]
    assert {*read_gene_labels(tmp_path / "a.gff3", sizes).contigs} == {*sizes}
    assert {*read_class_labels(tmp_path / "a.bed", sizes).contigs} == {*sizes}
    assert {*read_values(tmp_path / "a.bedgraph", sizes)} == {"chrII"}

    (tmp_path / "g.fa").write_text(">chrII\n" + "ACGTTTGACA" * 9 + "\n>chr1\nACGT\n")
    head = "##fileformat=VCFv4.2\n##contig=<ID=2,length=90>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL"
    (tmp_path / "v.vcf").write_text(head + "\tFILTER\tINFO\n2\t11\t.\tA\tG\t.\t.\t.\n")
    words = ["score", run, tmp_path / "v.vcf", "--fasta", tmp_path / "g.fa"]
    code, _, err = command(capsys, *words, "--region", "II:1-20", "-o", tmp_path / "o.vcf")
    assert code == 0, err
    lines = (tmp_path / "o.vcf").read_text().splitlines()
    assert "##contig=<ID=chrII,length=90>" in lines
    assert lines[-1].startswith("chrII\t11\t.\tA\tG\t")
    assert "contig '2' is taken for 'chrII'" in err
