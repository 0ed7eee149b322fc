"""Sequences in memory are named and judged like those of a file."""

from pathlib import Path
from typing import Any

import pytest
from Bio.Seq import MutableSeq, Seq
from Bio.SeqRecord import SeqRecord

from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.io.fasta import Record
from genodiff.io.input_file import is_file
from genodiff.io.sequences import read_sequences

RECORD = SeqRecord(Seq("ACgtN"), id="r.1", description="of a test")


def read(given: Any) -> list[tuple[str, bytes]]:
    return [(record.name, record.sequence) for record in read_sequences(given)]


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


def test_a_string_of_dna_letters_is_a_sequence_and_any_other_names_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("CAT").write_text(">a\nACGT\n")
    assert read("CAT") == [("seq1", b"CAT")]
    assert read(Path("CAT")) == [("a", b"ACGT")]
    assert [is_file(x) for x in ("CAT", "CAT.fa", "-", "", Path("CAT"), b"CAT")] == [
        False, True, True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["ACGT", "AC-T"], r"record seq2.*base 3: gap"),
        (b"ACGU", r"record seq1.*base 4.*RNA"),
        ({"protein": "MEV"}, r"record protein.*base 2.*protein"),
        (["ACGÜ"], r"base 4: non-ASCII"),
        ([RECORD, RECORD], "record r.1.*duplicate name"),
        ([Seq("")], "record seq1.*no base"),
        ([b"ACGT", b""], "record seq2.*no base"),
        ([], "no sequence"),
        ([SeqRecord(Seq(None, 10), id="far")], "record far.*no sequence"),
        ([7], "an? int is no sequence"),
        (7, "an? int is no sequence"),
        ("no.fa", "no such file"),
    ],
)
def test_what_is_no_dna_is_one_line_with_its_name_and_a_remedy(given, words):
    with pytest.raises(GenodiffError, match=words) as caught:
        read(given)
    assert isinstance(caught.value, DataError | UsageError)
    assert caught.value.fix
    assert "\n" not in str(caught.value)
