"""GenBank and EMBL files are read wherever a FASTA is; their CDS are held against codon tables."""

import gzip
import io
import json
import logging
import re
from typing import Any

import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import (
    AfterPosition,
    BeforePosition,
    CompoundLocation,
    SeqFeature,
    SimpleLocation,
)
from Bio.SeqRecord import SeqRecord

from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import make_user_recipe
from genodiff.errors import DataError
from genodiff.io.coding import CodingReport, judge_coding
from genodiff.io.faidx import Genome
from genodiff.io.fasta import Record, read_contig_lengths, read_digests, read_fasta
from genodiff.io.genbank import FlatRecord
from tests.commands import command, succeed

FORMATS = ["genbank", "embl"]
SEQUENCES = {"U00001.1": "ACGTTGCANR" * 16, "U00002.1": "TTGACA" * 21}


def flat_file(form: str) -> bytes:
    """Two records, the first with features, as Biopython writes them."""
    records = [
        SeqRecord(
            Seq(s), id=n, name=n[:-2], description="a test", annotations={"molecule_type": "DNA"}
        )
        for n, s in SEQUENCES.items()
    ]
    joined = CompoundLocation([SimpleLocation(10, 20, 1), SimpleLocation(30, 35, 1)])
    records[0].features = [SeqFeature(joined, type="CDS", qualifiers={"gene": ["x"]})]
    out = io.StringIO()
    SeqIO.write(records, out, form)
    return out.getvalue().encode()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("change", ["none", "gzip", "crlf", "bom", "blank"])
def test_the_records_are_those_of_the_same_fasta(tmp_path, form, change):
    data = flat_file(form)
    changed = {"none": data, "gzip": gzip.compress(data), "crlf": data.replace(b"\n", b"\r\n"),
               "bom": b"\xef\xbb\xbf" + data, "blank": b"\n" + data + b"\n\n"}  # fmt: skip
    path, plain = tmp_path / "in.flat", tmp_path / "in.fa"
    path.write_bytes(changed[change])
    plain.write_text("".join(f">{n} a test\n{s}\n" for n, s in SEQUENCES.items()))
    records = list(read_fasta(path))
    first, second = (n for n, line in enumerate(data.split(b"\n"), 1) if line[:2] in (b"LO", b"ID"))
    shift = change == "blank"
    assert records == [
        Record("U00001.1", "a test", SEQUENCES["U00001.1"].encode(), first + shift),
        Record("U00002.1", "a test", SEQUENCES["U00002.1"].encode(), second + shift),
    ]
    assert list(read_digests(path)) == list(read_digests(plain))
    assert read_contig_lengths(path) == {"U00001.1": 160, "U00002.1": 126}


@pytest.mark.parametrize("form", FORMATS)
def test_a_flat_file_is_used_like_a_fasta(tmp_path, form, capsys, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "plasmid.gb"
    path.write_bytes(flat_file(form))
    code, out, err = command(capsys, "data", "check", str(path), "--json")
    assert (code, err) == (0, "")
    assert [json.loads(line)["length"] for line in out.splitlines()] == [160, 126]
    with Genome(path) as genome:
        assert genome.fetch("U00001.1", 7, 13) == b"ANRACG"
        assert genome.fetch("U00002.1", 0, 126) == SEQUENCES["U00002.1"].encode()
    store = build_dna_store(make_user_recipe(str(path), None), path)
    assert store.contigs == {"U00001.1": 160, "U00002.1": 126}
    assert not (store.flat & 0x80).any(), "lower case in a flat file is no mask of repeats"


def edit(old: bytes, new: bytes) -> dict[str, bytes]:
    """Both formats with one thing changed, once."""
    return {form: flat_file(form).replace(old, new, 1) for form in FORMATS}


BROKEN = [
    ("no end", {f: flat_file(f).rstrip()[:-2] for f in FORMATS}, "cut short: .* no line '//'", 2),
    ("middle", {f: flat_file(f)[:-90] for f in FORMATS}, "cut short", 2),
    ("joined", edit(b"\n//\n", b"\n"), "cut short", 1),
    ("letter", edit(b"ttgacattga", b"ttga-attga"), r"record U00002.1.*base 5: gap", 2),
    ("protein", edit(b"ttgacattga", b"ttgaeattga"), r"base 5: 'E'.*protein", 2),
    ("length", edit(b" 160 ", b" 161 "), "declares 161 bases and has 160", 1),
    ("twice", edit(b"U00002", b"U00001"), "cannot happen", 0),
    ("place", edit(b"join(11..20", b"join((11..20"), "record cannot be parsed|cannot be read", 1),
    ("other", edit(b"\n//\n", b"\n//\n>a\nACGT\n"), "expected a .* record.*found '>a'", 0),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("name", "files", "words", "record"), BROKEN, ids=[b[0] for b in BROKEN])
def test_a_broken_flat_file_is_named(tmp_path, form, name, files, words, record):
    data, path = files[form], tmp_path / "in.gb"
    if name == "twice":
        data, words, record = flat_file(form) * 2, "duplicate name.*first at line 1", 3
    path.write_bytes(data)
    with pytest.raises(DataError, match=words) as caught:
        list(read_fasta(path))
    starts = [n for n, x in enumerate(data.split(b"\n"), 1) if x[:5] in (b"LOCUS", b"ID   ")]
    if record:
        assert caught.value.line == starts[record - 1]
    assert str(caught.value).startswith(str(path))
    assert caught.value.fix
    with pytest.raises(DataError, match=words):
        list(read_digests(path))


def test_a_record_without_sequence_or_name_and_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "in.gb"
    text = flat_file("genbank").decode()
    sequence = re.compile(r"ORIGIN\n(.*?)//", re.DOTALL)
    for data, words in (
        (sequence.sub("CONTIG      join(U1.1:1..160)\n//", text, count=1).encode(), "no sequence"),
        (b"LOCUS       X\n", "GenBank record that begins here is cut short"),
        (b"LOCUS       X\n//\n", "cannot be parsed|no sequence"),
        (b"LOCUS       \x00\n//\n", "NUL byte"),
        (b"LOCUS       \xff\n//\n", "not UTF-8"),
        (gzip.compress(text.encode())[:-20], "truncated gzip|corrupt"),
    ):
        path.write_bytes(data)
        with pytest.raises(DataError, match=words):
            list(read_fasta(path))


def test_what_biopython_only_warns_of_is_told(tmp_path, caplog):
    data = re.sub(rb"LOCUS.*", b"LOCUS       U00001 160 bp", flat_file("genbank"), count=1)
    (tmp_path / "in.gb").write_bytes(data)
    with caplog.at_level(logging.WARNING, "genodiff"):
        assert len(list(read_fasta(tmp_path / "in.gb"))) == 2
    assert "line 1 (record U00001.1): Malformed LOCUS line found" in caplog.text


@pytest.mark.parametrize("word", ["circular", "linear"])
def test_the_topology_of_a_record_is_a_word_of_its_header(tmp_path, word):
    (tmp_path / "p.gb").write_text(
        f"LOCUS       pX                         8 bp    DNA     {word:<8} UNK 01-JAN-1980\n"
        "DEFINITION  A plasmid.\nACCESSION   pX\nVERSION     pX.1\nORIGIN\n"
        "        1 acgtacgt\n//\n"
    )
    (tmp_path / "p.embl").write_text(
        f"ID   pX; SV 1; {word}; genomic DNA; STD; PRO; 8 BP.\nDE   A plasmid\n"
        "SQ   Sequence 8 BP;\n     acgtacgt                                    8\n//\n"
    )
    for name in ("p.gb", "p.embl"):
        (record,) = read_fasta(tmp_path / name)
        assert record.is_circular == (word == "circular")
        assert record.description.startswith("A plasmid")
        assert record.description.endswith(" [topology=circular]") == (word == "circular")


GENE = "ATGAAATGGTTTGCTTAA"  # M K W F A stop
PROTEIN = "MKWFA"


def cds(location: Any, **qualifiers: str) -> SeqFeature:
    given = {key: [value] for key, value in {"gene": "x", **qualifiers}.items()}
    return SeqFeature(location, type="CDS", qualifiers=given)


def judge(letters: str, *features: SeqFeature) -> CodingReport:
    parsed = SeqRecord(Seq(letters), id="r", features=list(features))
    return judge_coding(FlatRecord("r", letters.encode(), 1, parsed))


def findings(letters: str, location: Any = None, **qualifiers: str) -> set[str]:
    """The findings about one CDS, which is all of `letters` where no location is given."""
    location = SimpleLocation(0, len(letters), 1) if location is None else location
    report = judge(letters, cds(location, **qualifiers))
    assert report.n == 1
    counts = report.counts()
    return {key for key, count in counts.items() if key != "n" and count}


def test_a_sound_cds_has_no_finding():
    assert findings(GENE, translation=PROTEIN) == set()
    assert findings(GENE, translation=PROTEIN + "*") == set()
    assert findings(GENE) == set()
    assert findings("CC" + GENE, SimpleLocation(0, 20, 1), codon_start="3") == set()
    assert findings("ATGRAYTAA", translation="MB") == set(), "RAY is D or N"
    assert findings("ATGRAYTAA", translation="MN") == set()


def test_strand_and_joins_are_regarded():
    genome = f"CC{GENE[:7]}GGGG{GENE[7:]}CC"
    parts = [SimpleLocation(2, 9, 1), SimpleLocation(13, 24, 1)]
    assert findings(genome, CompoundLocation(parts), translation=PROTEIN) == set()
    back = str(Seq(genome).reverse_complement())
    n = len(genome)
    turned = [SimpleLocation(n - p.end, n - p.start, -1) for p in parts]
    assert findings(back, CompoundLocation(turned), translation=PROTEIN) == set()
    wrong_order = CompoundLocation(turned[::-1])
    assert "translation_differs" in findings(back, wrong_order, translation=PROTEIN)
    unspliced = SimpleLocation(2, 24, 1)
    assert findings(genome, unspliced, translation=PROTEIN) >= {"odd_length", "translation_differs"}


def test_the_codon_table_and_the_start_codon_are_regarded():
    letters = "ATGTGATTTTAA"  # TGA is W in table 4
    assert findings(letters) == {"stops_inside"}
    assert findings(letters, transl_table="4", translation="MWF") == set()
    assert findings(letters, transl_table="11", translation="MWF") == {
        "stops_inside",
        "translation_differs",
    }
    begins = "GTGAAATAA"
    assert findings(begins, transl_table="11", translation="MK") == set()
    assert findings(begins, transl_table="11", translation="VK") == {"translation_differs"}
    assert findings(begins, translation="MK") == {"translation_differs"}, "GTG starts none in 1"
    partial = SimpleLocation(BeforePosition(0), 9, 1)
    assert findings(begins, partial, transl_table="11", translation="VK") == set()
    dual = "ATGTGATTTTGA"  # in table 27 TGA is W, and the stop at the end
    assert findings(dual, transl_table="27", translation="MWF") == set()


def test_a_length_is_odd_unless_the_cds_is_partial():
    assert findings("ATGAAATT") == {"odd_length"}
    after = SimpleLocation(0, AfterPosition(8), 1)
    before = SimpleLocation(BeforePosition(0), 8, 1)
    assert findings("ATGAAATT", after) == findings("ATGAAATT", before) == set()
    assert findings("ATGAAAAC", after, translation="MKT") == set(), "AC and any base is T"
    assert findings("ATGAAAAC", after, translation="MK") == set()
    assert findings("ATGAAAAC", after, translation="MKS") == {"translation_differs"}
    minus = SimpleLocation(BeforePosition(0), 8, -1)
    assert findings("GTTTTCAT", minus, translation="MK") == set()


def test_a_wrong_translation_differs():
    for given in ("MKWFG", "MKWF", "MKWFAA", "AKWFA", "XXXX"):
        assert findings(GENE, translation=given) == {"translation_differs"}, given
    assert findings(GENE, translation="MKXFA") == set(), "X says nothing"


@pytest.mark.parametrize(
    "given",
    [
        {"transl_except": "(pos:4..6,aa:Sec)"},
        {"exception": "RNA editing"},
        {"pseudo": ""},
        {"transl_table": "99"},
        {"codon_start": "4"},
    ],
)
def test_what_a_codon_table_cannot_say_is_not_judged(given):
    assert findings("ATGTGATTTTA", translation="K", **given) == {"not_judged"}
    assert findings("ATGTGATTTTA", SimpleLocation(0, 12, 1)) == {"not_judged"}
    elsewhere = SimpleLocation(0, 9, 1, ref="other")
    assert findings("ATGTGATTTTA", elsewhere) == {"not_judged"}


def coding_file(form: str) -> str:
    """A joined CDS on the minus strand by table 4, three with a finding each, and a bare record."""
    gene = "ATGTGATTTGCTTAA"  # M W F A by table 4
    back = str(Seq(f"{gene[:7]}GGGGG{gene[7:]}").reverse_complement())
    joined = CompoundLocation([SimpleLocation(13, 20, -1), SimpleLocation(0, 8, -1)])
    letters = back + gene + GENE + "ATGAA" + "CC"
    first = SeqRecord(Seq(letters), id="U00001.1", name="U00001")
    first.features = [
        cds(joined, gene="turned", transl_table="4", translation="MWFA"),
        cds(SimpleLocation(20, 35, 1), gene="stopped", transl_table="11"),
        cds(SimpleLocation(35, 53, 1), gene="wrong", transl_table="11", translation="MKWFC"),
        cds(SimpleLocation(53, 58, 1), gene="odd"),
        cds(SimpleLocation(20, 35, 1), gene="sec", transl_except="(pos:24..26,aa:Sec)"),
    ]
    second = SeqRecord(Seq("ACGTACGTAC"), id="U00002.1", name="U00002")
    for record in (first, second):
        record.annotations["molecule_type"] = "DNA"
    out = io.StringIO()
    SeqIO.write([first, second], out, form)
    return out.getvalue()


@pytest.mark.parametrize("form", ["genbank", "embl"])
def test_check_counts_the_findings_and_exits_with_0(tmp_path, capsys, form):
    path = tmp_path / "in.flat"
    path.write_text(coding_file(form))
    code, out, err = command(capsys, "data", "check", str(path), "--json")
    assert (code, err) == (0, "")
    first, second = [json.loads(line) for line in out.splitlines()]
    assert (first["name"], first["length"]) == ("U00001.1", 60)
    assert first["cds"] == {
        "n": 5,
        "stops_inside": 1,
        "odd_length": 1,
        "translation_differs": 1,
        "not_judged": 1,
    }
    assert second["cds"] == dict.fromkeys(first["cds"], 0)
    code, out, err = command(capsys, "data", "check", str(path))
    assert (code, err) == (0, "")
    first, composition, coding = out.splitlines(keepends=True)
    assert composition.startswith(f"{path}: GC ")
    assert first + coding == (
        f"{path}: sound; 2 records, 70 bases\n"
        f"{path}: 5 CDS; 1 with a stop codon inside (stopped); "
        "1 of a length that is no multiple of three (odd); 1 whose /translation differs (wrong); "
        "1 not judged, with /transl_except or the like (sec)\n"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["in.flat"]


def test_a_file_whose_cds_agree_says_so(tmp_path, capsys):
    path = tmp_path / "in.gb"
    record = SeqRecord(Seq(GENE), id="U00001.1", annotations={"molecule_type": "DNA"})
    record.features = [cds(SimpleLocation(0, 18, 1), translation=PROTEIN)]
    SeqIO.write([record], path, "genbank")
    out = succeed(capsys, "data", "check", str(path))
    assert out.endswith("in.gb: 1 CDS; all agree with their codon tables\n")
