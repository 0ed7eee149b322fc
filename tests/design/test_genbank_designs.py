"""Designs as GenBank, read back by Biopython, and designs that leave conserved elements alone."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import CompoundLocation, SeqFeature, SimpleLocation

from genodiff.errors import DataError
from genodiff.io.fasta import read_fasta
from genodiff.io.genbank_writer import format_genbank, mark_changes
from tests.commands import exit_code

LETTERS = "CATTAGCCATGACCTAAGGGGTCTTACGATACGATTACAGATTACAGGCATTAGGACCCATAGGATACC"


def write_plasmid(path: Path) -> list[SeqFeature]:
    """A circular record with the qualifiers that SnapGene and Benchling write."""
    record = SeqIO.SeqRecord(Seq(LETTERS), "pX.1", "pX", "a plasmid")
    record.annotations = {"molecule_type": "DNA", "topology": "circular", "comment": "kept"}
    colours = {"label": ["gene X"], "ApEinfo_fwdcolor": ["#ff0000"], "note": ["color: #993366"]}
    across = CompoundLocation([SimpleLocation(60, 69, 1), SimpleLocation(0, 9, 1)])
    record.features = [
        SeqFeature(SimpleLocation(9, 30, -1), type="CDS", qualifiers=colours),
        SeqFeature(across, type="rep_origin", qualifiers={"label": ["ori"]}),
    ]
    SeqIO.write([record], path, "genbank")
    return list(record.features)


def read_genbank(path: str) -> list[SeqIO.SeqRecord]:
    with open(path, encoding="ascii") as file:
        return list(SeqIO.parse(file, "genbank"))


def test_a_construct_keeps_its_annotation_and_marks_every_edit(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features = write_plasmid(tmp_path / "p.gb")
    words = ["--fasta", "p.gb", "--region", "pX.1:66-4", "--region", "pX.1:20-30"]
    words += ["--steps", "4", "-n", "2", "--threads", "1", "-q"]
    assert exit_code("redesign", run, *words, "-o", "o.fa") == 0
    assert exit_code("redesign", run, *words, "-o", "o.gb") == 0
    designs = {one.name: one.sequence.decode() for one in read_fasta("o.fa")}
    records = read_genbank("o.gb")
    assert [one.id for one in records] == ["pX.1.1", "pX.1.2"]
    for copy, record in enumerate(records, 1):
        text = str(record.seq)
        assert text[65:] + text[:4] == designs[f"pX.1:66-4.{copy}"]
        assert text[19:30] == designs[f"pX.1:20-30.{copy}"]
        assert record.annotations["topology"] == "circular"
        assert record.annotations["comment"] == "kept"
        kept = [(f.type, str(f.location), f.qualifiers) for f in record.features[:2]]
        assert kept == [(f.type, str(f.location), f.qualifiers) for f in features]
        regions = [str(f.location) for f in record.features if f.type == "misc_feature"]
        assert sorted(regions) == ["[0:4](+)", "[19:30](+)", "[65:69](+)"]
        old = list(text.lower())
        for one in record.features:
            if one.type == "variation":
                was = one.qualifiers["label"][0].partition(">")[0]
                old[int(one.location.start) : int(one.location.end)] = was
        assert "".join(old) == LETTERS.lower()
    assert (tmp_path / "o.gb.vcf").read_text().splitlines()[4:] == (
        tmp_path / "o.fa.vcf"
    ).read_text().splitlines()[4:]


def test_sequences_and_filled_gaps_are_records(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.fa").write_text(">t one\nACGTNNNNACGT\n")
    words = ["--seed", "1", "--steps", "4", "--threads", "1", "-q"]
    assert exit_code("sample", run, "--template", "t.fa", *words, "-o", "t.gb") == 0
    (record,) = read_genbank("t.gb")
    assert str(record.seq)[:4] + str(record.seq)[8:] == "ACGTACGT"
    ((at, (change,)),) = [(str(f.location), f.qualifiers["label"]) for f in record.features]
    assert (at, change) == ("[4:8](+)", f"nnnn>{record.seq[4:8].lower()}")
    assert record.annotations["date"].endswith(str(datetime.now(UTC).year))
    assert exit_code("sample", run, "-n", "2", "--length", "30", *words, "-o", "new.gb") == 0
    assert [len(one) for one in read_genbank("new.gb")] == [30, 30]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--template", "t.fa", "--region", "t:5-8", "-o", "o.gb"], "written as FASTA"),
        (["-o", "o.embl"], "FASTA (.fa) or GenBank (.gb)"),
        (["-o", "o.gb", "--screen", "true"], "--screen reads FASTA"),
    ],
)
def test_what_genbank_cannot_hold_is_refused(words, says, tmp_path, run, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.fa").write_text(">t one\nACGTNNNNACGT\n")
    assert exit_code("sample", run, *words) == 2
    assert says in capsys.readouterr().err


def test_a_record_of_another_length_is_refused():
    source = SeqIO.SeqRecord(Seq("ACGT"), "a")
    with pytest.raises(DataError, match="has 4 bases, its design 5"):
        format_genbank("a", "", b"ACGTA", source=source)


def test_runs_of_edits_are_one_feature():
    marks = mark_changes(b"ACGTNA", b"TGGTAA", 10)
    assert [(m.start, m.end, m.qualifiers["note"]) for m in marks] == [
        (10, 12, "edited: ac>tg"),
        (14, 15, "filled: n>a"),
    ]


def test_conserved_elements_stay(tmp_path, run, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("g.fa").write_text(f">c\n{LETTERS}\n>d\n{LETTERS}\n")
    Path("e.bed").write_text("c\t0\t25\nc\t40\t45\nd\t20\t60\nc\t66\t69\n")
    words = ["--fasta", "g.fa", "--region", "c:21-50", "--steps", "4", "-n", "8", "--threads", "1"]
    assert exit_code("redesign", run, *words, "--keep", "e.bed", "-o", "o.fa") == 0
    assert "2 intervals in the regions, kept" in capsys.readouterr().err
    changed = {
        at
        for row in Path("o.fa.bed").read_text().splitlines()[1:]
        for at in range(int(row.split("\t")[1]), int(row.split("\t")[2]))
    }
    assert changed
    assert changed <= {*range(25, 40), *range(45, 50)}
    Path("e.bed").write_text("c\t0\t250\n")
    assert exit_code("redesign", run, *words, "--keep", "e.bed", "-o", "p.fa") == 3
    assert "e.bed, line 1" in capsys.readouterr().err
