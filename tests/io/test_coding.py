"""CDS features against their codon tables: `genodiff data check` counts what does not agree."""

import io
import json
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

from genodiff.io.coding import CodingReport, judge_coding
from genodiff.io.genbank import FlatRecord
from tests.commands import command

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


def flat_file(form: str) -> str:
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
    path.write_text(flat_file(form))
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
    code, out, _ = command(capsys, "data", "check", str(path))
    assert code == 0
    assert out.endswith("in.gb: 1 CDS; all agree with their codon tables\n")
