"""Features are read as Biopython extracts them, and say where they stand."""

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
