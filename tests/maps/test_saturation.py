"""Saturation mutagenesis: against its definition, against `score --exact`, and of an oracle."""

import json
import re

import numpy as np
import pytest
from numpy.typing import NDArray

import genodiff
from genodiff.errors import UsageError
from genodiff.io.variants import Allele
from genodiff.jobs.journal import Journal
from genodiff.maps.ism import count_saturation, list_substitutions, score_oracle
from genodiff.maps.map_regions import (
    MapRegion,
    SaturationMap,
    list_map_regions,
    make_pair_frame,
    make_saturation_frame,
    stack_saturation,
)
from genodiff.maps.naive_maps import naive_saturation
from genodiff.reports.logo import list_ticks
from genodiff.reports.map_page import ISM
from genodiff.scoring.variant_windows import HeldContigs


def region(letters: str, start: int = 0) -> MapRegion:
    return MapRegion("c", start, start + len(letters), "r", letters)


def test_scores_are_those_of_score_exact_bit_for_bit(run, tmp_path):
    letters = "ACGTTGCANNGATTACAGGCCTATC" * 4
    fasta = tmp_path / "ref.fa"
    fasta.write_text(f">chr1\n{letters.lower()}\n")
    model = genodiff.load(run, device="cpu")
    for first, last in ((0, 12), (44, 55), (94, 100)):  # both edges, and N
        (found,) = model.ism(fasta, region=[f"chr1:{first + 1}-{last}"])
        rows = [
            ("chr1", at + 1, letters[at], alt)
            for at in range(first, last)
            for alt in "ACGT"
            if letters[at] != "N" and alt != letters[at]
        ]
        wanted = model.score_variants(rows, fasta=fasta, exact=True)["score"].to_list()
        scores = [found["ACGT".index(alt), pos - first - 1] for _, pos, _, alt in rows]
        assert [float(score) for score in scores] == wanted
        assert np.isnan(found).all(0).tolist() == [x == "N" for x in letters[first:last]]


def test_a_window_by_itself_has_the_scores_of_the_definition(run):
    model = genodiff.load(run, device="cpu")
    for letters in ("A", "ACGTN", "GATTACA"):
        ids = model.alphabet.encode(letters)
        wanted = naive_saturation(model.network.backbone, model.trained.diffusion, ids)
        found = model.ism(letters)
        assert np.array_equal(np.isnan(found.T), np.isnan(wanted))
        assert np.nan_to_num(found.T) == pytest.approx(np.nan_to_num(wanted), abs=1e-5)
        bits = model.ism([letters], unit="bits")[0]
        assert np.nan_to_num(bits) == pytest.approx(np.nan_to_num(found) / np.log(2), abs=1e-12)


def count_gc(sequences: list[bytes]) -> NDArray[np.float64]:
    return np.array([float(one.count(b"G") + 2 * one.count(b"C")) for one in sequences])


def test_an_oracle_says_what_each_base_changes():
    regions = [region("ACNT"), region("G")]
    found = np.stack(list(score_oracle(count_gc, regions)))
    weights = {"A": 0, "C": 2, "G": 1, "T": 0}
    wanted = [[weights[b] - weights.get(x, np.nan) for b in "ACGT"] for x in "ACNTG"]
    assert np.array_equal(found, wanted, equal_nan=True)
    for skip in range(6):
        rest = list(score_oracle(count_gc, regions, skip=skip))
        assert np.array_equal(np.array(rest).reshape(-1, 4), found[skip:], equal_nan=True)
    assert count_saturation(regions) == 4
    assert count_saturation(regions, oracle=True) == 3 * 3 + 1 + 3 + 1


def test_a_row_on_minus_is_mapped_in_its_own_direction(tmp_path):
    genome = HeldContigs({"c": b"CCGATNCC"})
    (tmp_path / "r.bed").write_text("c\t2\t6\tword\t0\t-\n")
    (one,) = list_map_regions(genome, bed=tmp_path / "r.bed", longest=6)
    assert (one.letters, one.positions.tolist()) == ("NATC", [5, 4, 3, 2])
    assert (one.label, one.first) == ("c:3-6 (-)", -6)
    # The last letter, C, stands on the genome as G at 2; A in its place is T there.
    wanted = [(0, "T"), (2, "C"), (3, "A")]
    assert list_substitutions(one, 3) == [(n, Allele("c", 2, "G", alt)) for n, alt in wanted]
    assert list_substitutions(one, 0) == []
    score = np.stack(list(score_oracle(count_gc, [one])))
    assert score[3].tolist() == [-2, 0, -1, -2]  # of C: 2 for C, 1 for G
    assert score[1].tolist() == [0, 2, 1, 0]  # of A
    table = make_saturation_frame([SaturationMap(one, score.T)])
    assert table["pos"].to_list() == [5] * 3 + [4] * 3 + [3] * 3
    assert "".join(table["ref"]) == "AAATTTCCC"
    assert "".join(table["alt"][6:]) == "AGT"
    assert table["score"].to_list()[6:] == [-2, -1, -2]
    assert set(table["strand"]) == {"-"}
    arrays = stack_saturation([SaturationMap(one, score.T)])
    assert arrays["strand"].tolist() == ["-"]
    assert arrays["one_hot"][0].T.tolist() == [[0] * 4, [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]


def test_a_row_on_minus_has_the_maps_of_the_other_strands_file(run, tmp_path):
    genome = "ACGTTGCANNGATTACAGGCCTATCTTAGCAAC"
    other = "GTTGCTAAGATAGGCCTGTAATCNNTGCAACGT"  # written from right to left, by hand
    (tmp_path / "g.fa").write_text(f">c\n{genome}\n")
    (tmp_path / "o.fa").write_text(f">c\n{other}\n")
    (tmp_path / "r.bed").write_text("c\t5\t16\t.\t0\t-\n")
    model = genodiff.load(run, device="cpu")
    there = ["c:18-28"]  # 33 - 16 + 1 to 33 - 5
    given = {"context": 20}
    (found,) = model.ism(tmp_path / "g.fa", bed=tmp_path / "r.bed", **given)
    (wanted,) = model.ism(tmp_path / "o.fa", region=there, **given)
    assert found == pytest.approx(wanted, abs=1e-5, nan_ok=True)
    assert not np.allclose(found, found[::-1, ::-1], atol=1e-3, equal_nan=True)
    given["every"] = 4
    (found,) = model.dependencies(tmp_path / "g.fa", bed=tmp_path / "r.bed", **given)
    (wanted,) = model.dependencies(tmp_path / "o.fa", region=there, **given)
    assert found.change == pytest.approx(wanted.change, abs=1e-5, nan_ok=True)
    assert found.p == pytest.approx(wanted.p, abs=1e-5, nan_ok=True)
    table = make_pair_frame([found])
    first = table.row(0, named=True)
    # The row reads GTAATCNNTGC from 16 downwards.
    assert (first["source"], first["source_ref"]) == (16, "G")
    assert (first["target"], first["target_ref"]) == (15, "T")
    assert table["source"].to_list()[-1] == 6
    vectors = model.embed(tmp_path / "g.fa", bed=tmp_path / "r.bed", strand="forward")
    assert vectors == pytest.approx(model.embed("GTAATCNNTGC", strand="forward"), abs=1e-5)
    other = model.embed(tmp_path / "o.fa", region=there, strand="forward")
    assert vectors == pytest.approx(other, abs=1e-5)


def test_numbers_below_a_row_on_minus_fall():
    one = MapRegion("c", 90, 130, "r", "ACGT" * 10, "-")
    assert list_ticks(one.first, 40, 12.0) == [(130 - 5 * i, 6.0 + 60 * i) for i in range(8)]
    told = {"unit": "nats", "context": 20, "score": "s", "checkpoint": "x", "evaluations": 1}
    told["model"] = "run"
    page = ISM.render_page([SaturationMap(one, np.zeros((4, 40)))], told, [[]])
    assert "c:91-130 (-)" in page
    assert "read on the - strand" in page
    ticks = re.findall(r'<text x="([0-9.]+)" [^>]*>([0-9]+)</text>', page.split("</svg>")[0])
    assert ("6", "130") in ticks  # the middle of the first column
    assert ("306", "105") in ticks
    numbers = json.loads(page.split('id="numbers">')[1].split("</script>")[0])
    assert numbers["maps"]["region-1"]["first"] == -130


def test_regions_are_those_of_the_file_or_those_asked_for(tmp_path):
    genome = HeldContigs({"a": b"acgRtN", "b": b"GG"})
    assert [one.letters for one in list_map_regions(genome, longest=6)] == ["ACGNTN", "GG"]
    (one,) = list_map_regions(genome, ["a:2-4"], longest=6)
    assert (one.start, one.end, one.letters, one.name) == (1, 4, "CGN", "a:2-4")
    (tmp_path / "r.bed").write_text("b\t1\t2\tmine\n")
    (one,) = list_map_regions(genome, bed=tmp_path / "r.bed", longest=6)
    assert (one.name, one.letters) == ("mine", "G")
    with pytest.raises(UsageError, match="more than 5"):
        list_map_regions(genome, longest=5)
    with pytest.raises(UsageError, match="exclude"):
        list_map_regions(genome, ["a"], tmp_path / "r.bed", longest=6)


def test_a_journal_keeps_whole_rows_alone(tmp_path):
    path = tmp_path / "o.partial"
    journal = Journal(path, "one")
    for row in (b"first", b"", b"third"):
        journal.append(row)
    journal.close()
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        again = Journal(path, "one")
        assert list(again.rows()) == [b"first", b"", b"third"][: again.kept]
    path.write_bytes(whole[:-1])
    again = Journal(path, "one")
    assert again.kept == 2
    again.append(b"third")
    again.close()
    assert path.read_bytes() == whole
