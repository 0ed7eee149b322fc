"""What the reference reader of a format takes, ours takes: the shown cases, and the whole sweep."""

import gzip
import importlib.util
import logging
import sys
from pathlib import Path
from types import ModuleType

import pytest

from genodiff.errors import DataError
from genodiff.io.annotation_rows import read_annotation
from genodiff.io.bed import read_bed
from genodiff.io.delimited import read_delimited
from genodiff.io.faidx import Genome
from genodiff.io.fasta import read_fasta
from genodiff.io.genes import read_genes
from genodiff.io.motifs import read_motifs
from genodiff.io.value_tracks import read_values
from genodiff.io.variant_source import open_variants
from genodiff.io.variants import anchor_record
from genodiff.tasks.labelled_file import read_examples

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robustness"
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("chrom,start,ref,alt\nchr1,3,G,A\n", "starts without ends that say how they count"),
        ("chrom,start,end,ref,alt\nchr1,3,9,G,A\n", "line 2: start, end and the length of REF"),
        ("chrom,start,end,ref,alt\nchr1,3,3,G,A\nchr1,2,3,G,A\n", "line 3: start, end"),
    ],
)
def test_starts_that_may_count_from_0_are_refused(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        list_variants(write(tmp_path / "a.csv", text))


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
    text = Path(FOLDER / "reader_shapes.py").read_text(encoding="utf-8")
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fixedStep chrom=b start=1\n1\n", "line 1: unknown contig 'b'"),
        ("fixedStep chrom=a\n1\n", "line 1: .* is no start of a block"),
        ("fixedStep chrom=a start=10 span=2\n1\n", "line 2: base 11 is past the end"),
        ("variableStep chrom=a\n3 1\n3 2\n", r"line 3: base 2 of a \(0-based\) has two values"),
        ("variableStep chrom=a\n1\n", "line 2: '1' is no row of variableStep"),
    ],
)
def test_faults_of_wiggle_are_named(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        read_values(write(tmp_path / "a.wig", text), {"a": 10})


def import_bench(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_what_a_reference_reader_takes_and_ours_does_not_is_listed(tmp_path):
    pytest.importorskip("pysam")
    reasons, bench = import_bench("reader_refusals"), import_bench("compare_readers")
    logging.disable(logging.CRITICAL)
    try:
        for n, (kind, name, data) in enumerate(bench.list_shapes()):
            (tmp_path / str(n)).mkdir()
            path = write(tmp_path / str(n) / f"a{bench.ENDINGS[kind]}", data)
            got = bench.compare(kind, path)
            refused = bool(got["takes"]) and not got["ours"]
            assert not refused or reasons.find_reason(kind, name), (kind, name, got)
    finally:
        logging.disable(logging.NOTSET)
