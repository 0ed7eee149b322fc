"""What the reference reader of a format takes, ours takes; the layouts of tables are known."""

import gzip
import importlib
import logging
from pathlib import Path

import pytest

from genodiff.errors import DataError
from genodiff.io.annotation_rows import read_annotation
from genodiff.io.bed import read_bed
from genodiff.io.delimited import read_delimited
from genodiff.io.faidx import Genome
from genodiff.io.fasta import read_fasta
from genodiff.io.genes import read_genes
from genodiff.io.motifs import read_motifs
from genodiff.io.text_lines import read_whole
from genodiff.io.value_tracks import read_values
from genodiff.io.variant_source import open_variants
from genodiff.io.variants import anchor_record
from genodiff.tasks.labelled_file import read_examples
from tests.folders import ROOT

HEAD = "##fileformat=VCFv4.2\n"
NAMES = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"
ROW = "chr1\t3\t.\tG\tA\t.\t.\tX=1"


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def list_variants(path: Path) -> list[tuple[int, str, tuple[str, ...]]]:
    genome = write(path.parent / "g.fa", ">chr1\nACGTTGCATGCCGATAGGC\n")
    with open_variants(path) as source, Genome(genome) as opened:
        anchored = (anchor_record(one, opened) for one in source.records())
        return [(one.pos, one.ref, one.alts) for one in anchored]


@pytest.mark.parametrize("tail", ["\t", "\t\t", " ", "\t \t"])
def test_tabs_at_the_end_of_lines_of_a_vcf_are_no_columns(tmp_path, tail):
    text = f"{HEAD}{NAMES}{tail}\n{ROW}\n{ROW}\t\n"
    with open_variants(write(tmp_path / "a.vcf", text)) as source:
        assert [one.rest for one in source.records()] == [(".", ".", "X=1")] * 2
        assert source.header.columns == NAMES


def test_notes_of_a_vcf_may_be_latin_1_and_names_may_not(tmp_path, caplog):
    text = f"{HEAD}##by=Ren\xe9\n{NAMES}\n{ROW};B=\xe9\n".encode("latin-1")
    with open_variants(write(tmp_path / "a.vcf", text)) as source:
        assert next(source.records()).rest[2] == "X=1;B=é"
    assert "it is read as Latin-1" in caplog.text
    bad = text.replace(b"\t.\tG", b"\t\xe9\tG")
    with (
        pytest.raises(DataError, match="0xE9 is not UTF-8"),
        open_variants(write(tmp_path / "b.vcf", bad)) as source,
    ):
        list(source.records())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("chrom,pos,ref,alt\nchr1,5,TG,-\n", (4, "TTG", ("T",))),
        ("chrom,pos,ref,alt\nchr1,5,-,CC\n", (5, "T", ("TCC",))),
        ("chrom,pos,ref,alt\nchr1,1,A,-\n", (1, "AC", ("C",))),
        ("chrom,pos,ref,alt\nchr1,19,-,A\n", (19, "C", ("CA",))),
        ("Chr\tStart\tEnd\tRef\tAlt\nchr1\t5\t6\tTG\t-\n", (4, "TTG", ("T",))),  # ANNOVAR
        ("Chr\tStart\tEnd\tRef\tAlt\nchr1\t5\t5\t-\tCC\n", (5, "T", ("TCC",))),
        ("Chr\tStart\tEnd\tRef\tAlt\nchr1\t5\t6\t-\tCC\n", (5, "T", ("TCC",))),  # MAF
        ("Chr\tStart\tEnd\tRef\tAlt\nchr1\t6\t5\t-\tCC\n", (5, "T", ("TCC",))),  # VEP
        ("chrom,start,end,ref,alt\nchr1,2,3,G,A\n", (3, "G", ("A",))),  # BED counts from 0
        ("#chr\tpos(1-based)\tref\talt\nchr1\t3\tG\tA\n", (3, "G", ("A",))),
    ],
)
def test_a_dash_is_no_base_as_annovar_maf_and_vep_mean_it(tmp_path, text, wanted):
    assert list_variants(write(tmp_path / "a.tsv", text)) == [wanted]


def test_contigs_that_the_genome_lacks_are_counted(tmp_path, caplog):
    rows = "".join(f"{name}\tx\tgene\t1\t9\t.\t+\t.\tID=g\n" for name in ("a", "b", "c", "b"))
    assert len(read_genes(write(tmp_path / "a.gff3", rows), {"a": 99, "d": 9})) == 1
    assert "what is on 2 contigs is left out: the FASTA has none of them (b, c)" in caplog.text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_value_in_quotes_may_have_line_breaks(tmp_path, end):
    text = f'name,sequence,label{end}a,"ACG{end}T AC{end}",x{end}b,"GG""{end}",y{end}'
    table = read_delimited(write(tmp_path / "a.csv", text), ",")
    assert list(table.rows) == [(2, ["a", "ACG\nT AC", "x"]), (5, ["b", 'GG"', "y"])]
    good = 'sequence,label\n"ACG\nTAC",x\nGGTT,y\n'
    assert read_examples(write(tmp_path / "b.csv", good))[0].sequences == [b"ACGTAC", b"GGTT"]


def test_quotes_that_never_close_are_named_with_their_line(tmp_path):
    text = "a,b\n" + "1,2\n" * 5 + '"3,4\n' + "5,6\n" * 1000
    with pytest.raises(DataError, match=r"line 7: not CSV.*correct the quotes"):
        list(read_delimited(write(tmp_path / "a.csv", text), ",").rows)


def test_empty_rows_and_comments_below_the_names_are_left_out_and_counted(tmp_path, caplog):
    table = read_delimited(write(tmp_path / "a.csv", "a,b\n1,2\n,\n# x\n#3,4\n , \n"), ",")
    assert [fields for _, fields in table.rows] == [["1", "2"], ["#3", "4"]]
    assert "2 empty rows left out" in caplog.text
    assert "1 comment line below the names left out" in caplog.text


def test_line_ends_of_the_classic_mac_are_read(tmp_path):
    bed = write(tmp_path / "a.bed", "chr1\t0\t9\rchr1\t10\t12\r")
    assert read_bed(bed, {"chr1": 99})["end"].to_list() == [9, 12]


def test_bed_may_have_blanks_in_place_of_tabs(tmp_path):
    bed = write(tmp_path / "a.bed", "chr1 0 9 a\nchr1   10 12  b\n")
    assert read_bed(bed, {"chr1": 99})["name"].to_list() == ["a", "b"]


def test_rows_of_annotation_may_lack_attributes_and_say_strands_as_numbers(tmp_path):
    rows = "a\tx\tmy gene\t1\t9\t.\t-1\t.\t\na\tx\tCDS\t2\t9\t.\t1\t0\tID=c\n"
    found = list(read_annotation(write(tmp_path / "a.gff3", rows), {"a": 99}))
    assert [(one.type, one.strand) for one in found] == [("my gene", "-"), ("CDS", "+")]


def test_rows_of_motifs_may_be_named_in_any_order_or_lie_apart(tmp_path):
    text = ">M a\nC [ 1 7 ]\nA [ 7 1 ]\nT [ 1 1 ]\nG [ 1 1 ]\n"
    (one,) = read_motifs(write(tmp_path / "a.jaspar", text))
    assert one.consensus() == "AC"
    head = "MEME version 4\n\nMOTIF M\nletter-probability matrix: alength= 4 w= 2\n"
    text = head + " 0.7 0.1 0.1 0.1\n\n 0.1 0.7 0.1 0.1\n"
    assert read_motifs(write(tmp_path / "a.meme", text))[0].width == 2


def test_bcf_in_plain_gzip_is_read(tmp_path):
    pysam = pytest.importorskip("pysam")
    text = write(
        tmp_path / "a.vcf", f"{HEAD}##contig=<ID=chr1>\n{NAMES}\n{ROW}\n".replace("X=1", ".")
    )
    with (
        pysam.VariantFile(str(text)) as source,
        pysam.VariantFile(str(tmp_path / "b.bcf"), "wb", header=source.header) as out,
    ):
        for record in source:
            out.write(record)
    data = gzip.compress(gzip.decompress((tmp_path / "b.bcf").read_bytes()))
    assert list_variants(write(tmp_path / "c.bcf", data)) == [(3, "G", ("A",))]


def test_a_file_of_a_release_of_genbank_is_read(tmp_path):
    path = write(tmp_path / "a.seq", "")
    text = (ROOT / "benchmarks/robustness/reader_shapes.py").read_text(encoding="utf-8")
    record = text.partition('GENBANK = """')[2].partition('"""')[0]
    path.write_text("GBBCT1.SEQ   Genetic Sequence Data Bank\n   1 loci\n\n" + record)
    assert [len(one.sequence) for one in read_fasta(path)] == [60]


def test_wiggle_is_read(tmp_path):
    text = (
        "track type=wiggle_0\nfixedStep chrom=a start=2 step=3 span=2\n1\n2\n"
        "variableStep chrom=a\n9 -1.5\n"
    )
    values = read_values(write(tmp_path / "a.wig", text), {"a": 10})["a"]
    assert values.nonzero()[0].tolist() == list(range(10))
    nan = float("nan")
    assert str(values.tolist()) == str([nan, 1.0, 1.0, nan, 2.0, 2.0, nan, nan, -1.5, nan])


TABLE = [["chr1", "100", "A"], ["chr2", "200", "C"]]


def read_table(path: Path, data: str | bytes) -> tuple[list[str], list[list[str]]]:
    table = read_delimited(write(path, data), ",")
    return table.names, [fields for _, fields in table.rows]


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", ", "])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separator_and_encoding_are_told_by_the_file(tmp_path, separator, encoding):
    text = "".join(separator.join(row) + "\r\n" for row in [["chrom", "pos", "ref"], *TABLE])
    assert read_table(tmp_path / "a.csv", text.encode(encoding)) == (["chrom", "pos", "ref"], TABLE)


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ('"a" "b"\n"1" 5 "x y"\n"2" 6 "z"\n', ["", "a", "b"], [["1", "5", "x y"], ["2", "6", "z"]]),
        (",a,b\n0,5,x\n1,6,y\n", ["", "a", "b"], [["0", "5", "x"], ["1", "6", "y"]]),
        ("a,b,\n5,x,\n", ["a", "b", ""], [["5", "x", ""]]),
        ("a,b\n5,x,\n6,y,\n", ["a", "b"], [["5", "x"], ["6", "y"]]),
        ("sep=;\na;b\n5;x\n", ["a", "b"], [["5", "x"]]),
        ("## by CADD\n#a\tb\n5\tx\n", ["a", "b"], [["5", "x"]]),
        ("# made in May\na,b\n5,x\n", ["a", "b"], [["5", "x"]]),
        ("a;b,c\n1;2\n3;4\n", ["a", "b,c"], [["1", "2"], ["3", "4"]]),
        (" a ,b\n 5,\xa0x\xa0\n", ["a", "b"], [["5", "x"]]),
    ],
)  # fmt: skip
def test_the_layouts_of_programs_are_known(tmp_path, text, names, rows):
    assert read_table(tmp_path / "a.csv", text) == (names, rows)


def test_two_layouts_that_both_fit_are_told(tmp_path, caplog):
    text = "a;x,b;y\n1;2,3;4\n"  # three fields by semicolons, two by commas
    assert read_table(tmp_path / "a.csv", text) == (["a;x", "b;y"], [["1;2", "3;4"]])
    assert "read as separated by commas; semicolons would fit every row too" in caplog.text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("1000", 1000), ("1000.0", 1000), ("12.00", 12), ("1e+05", 100_000),
        ("1.2e+07", 12_000_000), ("123e+05", None), ("5e+02", None), ("1.23457e+06", None),
        ("1.000", None), ("1,000", None), ("1.00E+05", None), ("1000.5", None), ("-1", None),
        ("1_000", None), ("١", None), ("NA", None), ("", None), ("1.20e+07", None),
    ],
)  # fmt: skip
def test_a_whole_number_is_read_only_where_no_digit_can_be_lost(text, value):
    assert read_whole(text) == value


@pytest.mark.slow
def test_what_a_reference_reader_takes_and_ours_does_not_is_listed(tmp_path):
    pytest.importorskip("pysam")
    bench = importlib.import_module("benchmarks.robustness.compare_readers")
    logging.disable(logging.CRITICAL)
    try:
        for n, (kind, name, data) in enumerate(bench.list_shapes()):
            (tmp_path / str(n)).mkdir()
            path = write(tmp_path / str(n) / f"a{bench.ENDINGS[kind]}", data)
            got = bench.compare(kind, path)
            refused = bool(got["takes"]) and not got["ours"]
            assert not refused or bench.find_reason(kind, name), (kind, name, got)
    finally:
        logging.disable(logging.NOTSET)
