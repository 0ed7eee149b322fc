"""What a program holds gives the sequences and variants that stand in it, judged like a file."""

import dataclasses
import sqlite3
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pysam
import pytest
from Bio.Seq import MutableSeq, Seq
from Bio.SeqRecord import SeqRecord

from genodiff.errors import DataError, UsageError
from genodiff.io.containers import read_columns
from genodiff.io.fasta import Record
from genodiff.io.input_file import is_file
from genodiff.io.sequences import is_single, read_sequences, read_texts
from genodiff.io.variant_source import open_held_variants

S = ["ACGTTG", "GGGCCC"]
RECORD = SeqRecord(Seq("ACgtN"), id="r.1", description="of a test")
NAMED = [("a", b"ACGTTG"), ("b", b"GGGCCC")]
UNNAMED = [("seq1", b"ACGTTG"), ("seq2", b"GGGCCC")]


class Row(NamedTuple):
    name: str
    dna: str


@dataclasses.dataclass
class Clone:
    id: str
    seq: str
    batch: int = 1


class ArrowTable:
    """What hands out Arrow columns and is of no library known here."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pl.DataFrame({"id": ["a", "b"], "dna": S}).__arrow_c_stream__(requested_schema)


class Scalar:
    """As the values of an array of Arrow."""

    def as_py(self) -> str:
        return S[0]


def read(given: Any) -> list[tuple[str, bytes]]:
    return [(record.name, record.sequence) for record in read_sequences(given)]


def database() -> list[Any]:
    with sqlite3.connect(":memory:") as base:
        base.row_factory = sqlite3.Row
        base.execute("create table t (id, dna)")
        base.executemany("insert into t values (?, ?)", [("a", S[0]), ("b", S[1])])
        return base.execute("select * from t").fetchall()


HOLDERS: dict[str, tuple[Any, list[tuple[str, bytes]]]] = {
    "frame": (pl.DataFrame({"dna": S}), UNNAMED),
    "frame with names and more": (
        pl.DataFrame({"ID": ["a", "b"], "gene": ["BRCA1", "TP53"], " Seq": S, "label": [0, 1]}),
        NAMED,
    ),
    "the only column of words": (pl.DataFrame({"promoter": S, "label": [0, 1]}), UNNAMED),
    "lazy frame": (pl.DataFrame({"name": ["a", "b"], "dna": S}).lazy(), NAMED),
    "series": (pl.Series("dna", S), UNNAMED),
    "Arrow": (ArrowTable(), NAMED),
    "columns": ({"id": np.array(["a", "b"]), "dna": S}, NAMED),
    "one column": ({"x": tuple(S)}, UNNAMED),
    "mappings": ([{"id": "a", "dna": S[0]}, {"dna": S[1], "id": "b", "label": 1}], NAMED),
    "named tuples": ([Row("a", S[0]), Row("b", S[1])], NAMED),
    "unnamed rows": ([namedtuple("R", "dna n")(one, 1) for one in S], UNNAMED),
    "dataclasses": ([Clone("a", S[0]), Clone("b", S[1])], NAMED),
    "rows of a database": (database(), NAMED),
    "objects": (np.array(S, dtype=object), UNNAMED),
    "words of numpy": (np.array(S), UNNAMED),
    "bytes of numpy": (np.array(S, dtype="S"), UNNAMED),
    "structured array": (
        np.array([("a", S[0]), ("b", S[1])], dtype=[("name", "U9"), ("dna", "U9")]), NAMED,
    ),
    "keys": (dict.fromkeys(S).keys(), UNNAMED),
    "sequences by name": ({"a": Seq(S[0]), "b": MutableSeq(S[1])}, NAMED),
    "rows by name": ({"a": {"dna": S[0], "n": 1}, "b": Clone("other", S[1])}, NAMED),
}  # fmt: skip
SINGLE: dict[str, tuple[Any, str]] = {
    "mapping": ({"name": "a", "sequence": S[0]}, "a"),
    "mapping with a number": ({"dna": S[0], "label": 1}, "seq1"),
    "named tuple": (Row("a", S[0]), "a"),
    "dataclass": (Clone("a", S[0]), "a"),
    "scalar of numpy": (np.array(S[0]), "seq1"),
    "scalar of Arrow": (Scalar(), "seq1"),
    "bytearray": (bytearray(S[0].encode()), "seq1"),
    "record": (SeqRecord(Seq(S[0]), id="a"), "a"),
}


def test_strings_records_pairs_and_files_give_named_sequences(tmp_path):
    (tmp_path / "in.fa").write_text(">a\nACGT\n>b\nTT\n")
    in_file = [("a", b"ACGT"), ("b", b"TT")]
    assert read(tmp_path / "in.fa") == read(str(tmp_path / "in.fa")) == in_file
    assert read("ACgtRYN") == read(b"ACgtRYN") == [("seq1", b"ACgtRYN")]
    assert read(Seq("ACGT")) == read(MutableSeq("ACGT")) == [("seq1", b"ACGT")]
    assert read(RECORD) == [("r.1", b"ACgtN")]
    assert next(read_sequences(RECORD)).description == "of a test"
    assert read(Record("x", "", b"AC", 1)) == [("x", b"AC")]
    mixed = ["ACGT", RECORD, Seq("TT"), Record("x", "", b"AC", 1), SeqRecord(Seq("GG"))]
    wanted = [("seq1", b"ACGT"), ("r.1", b"ACgtN"), ("seq3", b"TT"), ("x", b"AC"), ("seq5", b"GG")]
    assert read(mixed) == read(iter(mixed)) == wanted
    assert read({"one": "ACGT", "two": Seq("TT")}) == [("one", b"ACGT"), ("two", b"TT")]


def test_a_string_of_dna_letters_is_a_sequence_and_any_other_names_a_file(here):
    Path("CAT").write_text(">a\nACGT\n")
    assert read("CAT") == [("seq1", b"CAT")]
    assert read(Path("CAT")) == [("a", b"ACGT")]
    assert [is_file(x) for x in ("CAT", "CAT.fa", "-", "", Path("CAT"), b"CAT")] == [
        False, True, True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("name", HOLDERS)
def test_each_container_gives_its_sequences_and_their_names(name):
    held, wanted = HOLDERS[name]
    assert read(held) == wanted
    assert not is_single(held)


@pytest.mark.parametrize("name", SINGLE)
def test_one_row_or_scalar_is_one_sequence(name):
    held, wanted = SINGLE[name]
    assert read(held) == [(wanted, S[0].encode())]
    assert is_single(held)


def test_rows_that_come_one_by_one_are_read_once():
    def rows() -> Iterator[dict[str, str]]:
        yield from ({"id": name, "dna": one} for name, one in zip("ab", S, strict=True))

    assert read(rows()) == NAMED
    assert read(one for one in S) == UNNAMED


def test_the_frames_of_pandas_give_their_sequences_and_the_words_of_their_index():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"seq": S, "label": [0, 1]})
    assert read(frame) == read(frame.itertuples()) == read(frame["seq"]) == UNNAMED
    labelled = frame.set_axis(["a", "b"])
    assert read(labelled) == read(labelled["seq"]) == NAMED
    assert read(pd.DataFrame({"dna": pd.Categorical(S)})) == UNNAMED
    row = pd.DataFrame({"id": ["a", "b"], "seq": S}).iloc[0]
    assert is_single(row)
    assert read(row) == NAMED[:1]
    for gap in (None, pd.NA, float("nan")):
        with pytest.raises(DataError, match=r"record seq2.*missing"):
            read(pd.DataFrame({"dna": [S[0], gap]}))


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (pl.DataFrame({"a": S, "b": S}), r"which column holds the sequences: a, b\?"),
        ({"seq": S, "dna": S, "x": S}, r"which column holds the sequences: seq, dna\?"),
        (pl.DataFrame({"x": [1, 2]}), r"no column holds sequences \(columns: x\)"),
        ([{"id": "a"}], r"no column holds sequences \(columns: id\)"),
        ({"a": S, "b": S[:1]}, r"several lengths \(a: 2, b: 1\)"),
        ({"seq": S, "label": 1}, r"several lengths \(seq: 2, label: 1\)"),
        ([Row("a", "ACGT"), "ACGT"], "row 2 is a str"),
        ([Row("a", "ACGT"), Row("a", "TT")], "record a.*duplicate name"),
        (pl.DataFrame({"id": ["a", None], "dna": S}), "row 2 has no name in column 'id'"),
        (pl.DataFrame({"dna": ["gene", "ACGT"]}), "record seq1.*base 2"),
        (pl.DataFrame({"dna": ["ACGT", None]}), "record seq2.*missing"),
        (["ACGT", float("nan")], "record seq2.*missing"),
        ({"far": None}, "record far.*missing"),
        (set(S), "a set has no order"),
        (np.array([S, S]), r"with the shape \(2, 2\)"),
        (np.zeros((2, 4, 9)), r"float64 with the shape \(2, 4, 9\)"),
        ([("a", "ACGT")], r"a tuple is no sequence; give a mapping.*dict"),
        (pl.DataFrame({"dna": []}), "no sequence"),
        (["ACGT", "AC-T"], r"record seq2.*base 3: gap"),
        (b"ACGU", r"record seq1.*base 4.*RNA"),
        ({"protein": "MEV"}, r"record protein.*base 2.*protein"),
        (["ACGÜ"], r"base 4: non-ASCII"),
        ([Seq("")], "record seq1.*no base"),
        ([b"ACGT", b""], "record seq2.*no base"),
        ([SeqRecord(Seq(None, 10), id="far")], "record far.*no sequence"),
        ([7], "an? int is no sequence"),
        (7, "an? int is no sequence"),
        ("no.fa", "no such file"),
    ],
)
def test_what_is_no_sequence_or_leaves_a_doubt_is_one_line(held, words):
    with pytest.raises((DataError, UsageError), match=words) as caught:
        read(held)
    assert caught.value.fix


def test_what_has_keys_that_are_no_method_is_no_row():
    groups = pytest.importorskip("pandas").DataFrame({"g": [1, 1], "dna": S}).groupby("g")
    with pytest.raises(UsageError, match="a tuple is no sequence"):
        list(read_sequences(groups))


def test_an_open_file_is_not_read_line_by_line(tmp_path):
    (tmp_path / "in.fa").write_text(">a\nACGT\n")
    with (tmp_path / "in.fa").open() as file, pytest.raises(UsageError, match="an open file"):
        read(file)


def test_texts_come_from_the_column_of_texts():
    words = ["to be", "or not"]
    for held in (words, pl.DataFrame({"text": words, "by": words}), {"x": words}, iter(words)):
        assert read_texts(held) == words
    assert read_texts("to be") == ["to be"]
    with pytest.raises(UsageError, match=r"which column holds the texts: a, b\?"):
        read_texts({"a": words, "b": words})
    with pytest.raises(UsageError, match=r"a int is no text"):
        read_texts(["to be", 7])


def test_what_holds_no_columns_has_none():
    for held in (S, "ACGT", {"a": "ACGT"}, 7, [], {}, iter(S), pl.Series(S)):
        assert read_columns(held) is None


# chr1, from 1: the third base is G, the fifth A.
ROWS = [("chr1", 3, "G", "A"), ("chr1", 5, "A", "C")]
FIELDS = ("chrom", "pos", "ref", "alt")
DICTS = [dict(zip(FIELDS, row, strict=True)) for row in ROWS]
Variant = namedtuple("Variant", FIELDS)


class Upper:
    """A record as cyvcf2 has it."""

    CHROM, POS, ID, REF, ALT = "chr1", 3, None, "G", ["A", "T"]


def variants(held: Any) -> list[tuple[Any, ...]]:
    with open_held_variants(held) as source:
        return [(one.chrom, one.pos, one.ref, ",".join(one.alts)) for one in source.records()]


@pytest.mark.parametrize(
    "held",
    [
        ROWS, [list(row) for row in ROWS], DICTS, [Variant(*row) for row in ROWS],
        np.array(ROWS, dtype=object), pl.DataFrame(DICTS), pl.DataFrame(DICTS).lazy(),
        {"#CHROM": ["chr1"] * 2, "POS": np.array([3, 5]), "REF": ["G", "A"], "ALT": ["A", "C"]},
    ],
)  # fmt: skip
def test_variants_are_rows_of_four_by_place_or_by_name(held):
    assert variants(held) == ROWS
    if isinstance(held, list):
        assert variants(iter(held)) == ROWS


def test_one_variant_may_stand_alone_and_alts_may_be_several():
    for held in (ROWS[0], DICTS[0], Variant(*ROWS[0])):
        assert variants(held) == ROWS[:1]
    assert variants({**DICTS[0], "alt": ["A", "T"]}) == [("chr1", 3, "G", "A,T")]
    assert variants(Upper()) == variants([Upper()]) == [("chr1", 3, "G", "A,T")]


def test_records_of_pysam_are_variants_with_their_names(tmp_path):
    lines = "##fileformat=VCFv4.2\n##contig=<ID=chr1,length=20>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\t"
    (tmp_path / "in.vcf").write_text(f"{lines}FILTER\tINFO\nchr1\t3\trs1\tG\tA,T\t.\t.\t.\n")
    with pysam.VariantFile(str(tmp_path / "in.vcf")) as file:
        records = list(file)
    with open_held_variants(records) as source:
        (one,) = source.records()
    assert (one.chrom, one.pos, one.id, one.ref, one.alts) == ("chr1", 3, "rs1", "G", ("A", "T"))


def test_a_frame_of_pandas_holds_variants():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(DICTS)
    assert variants(frame) == variants(frame.itertuples()) == ROWS
    assert variants(frame.iloc[0]) == ROWS[:1]


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (["chr1:3:G>A"], "but a str"),
        (["ACGT"], "but a str"),
        (7, "but a int"),
        ([("chr1", 3)], "but a tuple"),
        ([], "no variant"),
        (pl.DataFrame({"pos": [1]}), "no column 'chrom'"),
        ([{**DICTS[0], "pos": None}], "'' says that a value is missing"),
    ],
)
def test_what_is_no_variant_is_one_line(held, words):
    with pytest.raises(DataError, match=words):
        variants(held)
