"""Sequences without labels from every kind of file: the same ones, and each fault in one line."""

import polars as pl
import pytest
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.tasks.unlabelled import QuerySource, read_queries
from tests.labelled_files import write

ROWS = [("a", "ACGTNN"), ("b", "ggCCr"), ("c", "T")]
WANTED = [("a", b"ACGTNN"), ("b", b"GGCCR"), ("c", b"T")]


def found(given: object, **source: object) -> list[tuple[str, bytes]]:
    return [(q.name, q.sequence) for q in read_queries(given, QuerySource(**source))]  # type: ignore[arg-type]


def test_every_kind_of_file_gives_the_same_sequences(tmp_path):
    fasta = "".join(f">{name} about\n{sequence}\n" for name, sequence in ROWS)
    commas = "id,other,seq\n" + "".join(f"{n},x,{s}\n" for n, s in ROWS)
    texts = {"a.tsv": commas.replace(",", "\t")}
    texts |= dict.fromkeys(("a.csv", "a.csv.gz", "fd63"), commas)
    texts |= dict.fromkeys(("a.fa", "a.fa.gz", "fd64"), fasta)
    files = [write(tmp_path / name, text) for name, text in texts.items()]
    frame = pl.DataFrame(ROWS, ["name", "sequence"], orient="row")
    frame.write_parquet(tmp_path / "a.parquet")
    for path in (*files, tmp_path / "a.parquet"):
        assert found(path) == WANTED, path
    assert found(dict(ROWS)) == WANTED
    assert found([SeqRecord(Seq(s), id=n) for n, s in ROWS]) == WANTED
    assert found(["AC", "GT"]) == [("seq1", b"AC"), ("seq2", b"GT")]


def test_a_column_may_be_named_and_rows_without_a_name_are_counted(tmp_path):
    path = write(tmp_path / "t.csv", "promoter,y\nACGT,1\nGG,2\n \n")  # a blank line is no row
    assert found(path, columns=("promoter",)) == [("row1", b"ACGT"), ("row2", b"GG")]


def test_a_long_table_is_read_in_parts(tmp_path):
    n = 9000  # more than two parts
    frame = pl.DataFrame({"seq": ["ACGT"] * n, "name": [f"s{i}" for i in range(n)]})
    frame.write_parquet(tmp_path / "t.parquet")
    queries = list(read_queries(tmp_path / "t.parquet"))
    assert [q.line for q in queries] == list(range(1, n + 1))
    assert queries[-1].name == f"s{n - 1}"


def test_intervals_are_read_on_their_strand(tmp_path):
    genome = write(tmp_path / "g.fa", ">chr1\nAACCGGTTAC\n")
    rows = "chr1\t0\t4\tfirst\t0\t+\nchr1\t0\t4\t.\t0\t-\nchr1\t8\t10\t.\t0\t.\n"
    bed = write(tmp_path / "r.bed", rows)
    wanted = [("first", b"AACC"), ("chr1:1-4(-)", b"GGTT"), ("chr1:9-10", b"AC")]
    assert found(bed, fasta=genome) == wanted
    queries = read_queries(bed, QuerySource(fasta=genome))
    assert [query.strand for query in queries] == ["+", "-", "+"]


def test_with_a_genome_rows_of_any_name_and_regions_are_read(tmp_path):
    genome = write(tmp_path / "g.fa", ">chr1\nAACCGGTTAC\n")
    rows = write(tmp_path / "r.narrowPeak", "chr1\t0\t5\tx\t0\t-\n")
    assert found(rows, fasta=genome) == [("x", b"CGGTT")]
    places = ("chr1:1-5", "chr1:9-10")
    wanted = [("chr1:1-5", b"AACCG"), ("chr1:9-10", b"AC")]
    assert found(None, fasta=genome, regions=places) == wanted


def test_sentences_come_from_lines_and_from_columns(tmp_path):
    lines = write(tmp_path / "s.txt", "A film.\nNot a film.\n")
    one = [("line1", b"A film."), ("line2", b"Not a film.")]
    assert found(lines, domain="text") == one
    pairs = write(tmp_path / "p.tsv", 'index\tsentence1\tsentence2\n0\tShe said "so\tIt is\n')
    assert found(pairs, domain="text", n_texts=2) == [("row1", b'She said "so\tIt is')]
    assert found("A film.", domain="text") == [("text1", b"A film.")]
    assert found([("A", "B")], domain="text", n_texts=2) == [("text1", b"A\tB")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.fa", "", "is empty"),
        ("x.csv", "", "is empty"),
        ("x.csv", "seq\n", "holds no sequence"),
        ("x.fa", ">a\nACGT\n>b\nMKVLAW\n", "line 4 .record b."),
        ("x.csv", "seq\nACGT\nACXT\n", r"x.csv, line 3 .record row2.*position 3"),
        ("x.csv", "name,seq\na,ACGT\na,CC\n", r"x.csv, line 3 .record a.*duplicate name"),
        ("x.fa", ">a\nAC\n>a\nAC\n", "line 3 .record a.*duplicate name"),
        ("x.csv", "name,seq\na,\n", r"line 2 .record a.*empty sequence"),
        ("x.csv", "name,seq\n,AC\n", r"line 2.*no name"),
        ("x.csv", "name,letters\na,AC\n", r"line 1.*no column of sequences.*--column"),
        ("x.csv", "name,seq\na\n", r"line 2.*1 field, but the header has 2"),
    ],
)
def test_a_fault_is_one_line_with_its_place(tmp_path, name, text, said):
    path = write(tmp_path / name, text)
    with pytest.raises(DataError, match=said) as fault:
        found(path)
    assert str(path) in str(fault.value)


def test_what_does_not_go_together_is_said(tmp_path):
    fasta, bed = write(tmp_path / "a.fa", ">a\nAC\n"), write(tmp_path / "a.bed", "a\t0\t1\n")
    table, two = write(tmp_path / "a.csv", "seq,x\nAC,1\n"), write(tmp_path / "t.txt", "a\tb\n")
    genes = write(tmp_path / "r.gtf", 'a\tx\tgene\t1\t2\t.\t-\t.\tgene_id "x";\n')
    wrong: list[tuple[object, dict[str, object], type[GenodiffError], str]] = [
        (fasta, {"columns": ("seq",)}, UsageError, "--column is for tables"),
        (fasta, {"fasta": fasta}, UsageError, "--fasta is the genome of a BED"),
        (bed, {}, UsageError, "of which genome"),
        (None, {"regions": ("a:1-2",)}, UsageError, "of which genome"),
        (bed, {"fasta": fasta, "regions": ("a:1-2",)}, UsageError, "sequences beside them"),
        (genes, {"fasta": fasta}, DataError, "is GTF"),
        (two, {"domain": "text"}, DataError, "2 sentences, and the model reads one"),
        (table, {"columns": ("sek",)}, DataError, "did you mean 'seq'"),
        (table, {"columns": ("seq", "x")}, UsageError, "2 columns, and the model reads 1"),
        (["AC", "AX"], {}, DataError, "seq2"),
        (tmp_path / "no.fa", {}, DataError, "no such file"),
    ]
    for given, source, kind, said in wrong:
        with pytest.raises(kind, match=said):
            found(given, **source)
