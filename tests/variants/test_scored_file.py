"""Scored variants read again: the same rows of every form, and counts that keep all of them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele, judge_record
from genodiff.io.vcf import read_vcf
from genodiff.scoring.allele_score import AlleleScore
from genodiff.variants.background_ranks import Rank
from genodiff.variants.consequences import TERMS, Consequences
from genodiff.variants.output import write_scores
from genodiff.variants.scored_file import ScoredFile, measure_change
from genodiff.variants.scored_tally import (
    CONTIGS,
    MOST,
    PERCENT_BINS,
    STEP,
    ScoredPlaces,
    ScoredTally,
    measure_ks,
)
from genodiff.variants.scored_variants import Judged, ScoredRecord, ScoreForm

HEAD = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
LINES = [
    "c\t5\trs1\tT\tA,C\t.\tPASS\tX=1",
    "c\t8\t.\tA\tAA\t.\tPASS\t.",
    "c\t9\t.\tACA\tA\t.\t.\t.",
    "c\t12\t.\tC\t<DEL>,T\t.\t.\t.",
    "c\t17\t.\tC\t.\t.\t.\t.",
    "c\t18\t.\tA\tT\t.\t.\t.",
]
SIZES = [("snv", 1, 1), ("snv", 1, 1), ("ins", 0, 1), ("del", 2, 0), ("", 0, 0), ("snv", 1, 1),
         ("", 0, 0), ("snv", 1, 1)]  # fmt: skip


GENES = """##gff-version 3
c\tx\tgene\t1\t12\t.\t+\t.\tID=g;Name=g
c\tx\tmRNA\t1\t12\t.\t+\t.\tID=t;Parent=g
c\tx\tCDS\t1\t12\t.\t+\t0\tID=d;Parent=t
"""


def make_files(folder: Path, *, features: bool = False) -> dict[str, Path]:
    """The same scores in every form; with `features` the consequences beside them."""
    (folder / "g.gff3").write_text(GENES)
    (folder / "g.fa").write_text(">c\n" + "ACGTTGCAAC" * 3 + "\n")
    (folder / "in.vcf").write_text(HEAD + "".join(f"{line}\n" for line in LINES))
    header, records = read_vcf(folder / "in.vcf")
    values = iter([-1.25, 0.5, -3.0, -4.125, 2.0, 0.0])

    def score(judged: Judged) -> AlleleScore:
        if not isinstance(judged, Allele):
            return AlleleScore.without(judged.value)
        return AlleleScore(next(values), 0.25, "llr", 0, 9, 2, ("se_above_wanted",))

    def rank(allele: object, value: float) -> Rank | None:
        return None if value == 2.0 else Rank(50 + value * 10, value, 3.0, "snv", 30)

    found = {}
    with Genome(folder / "g.fa") as genome:
        genes = Consequences(folder / "g.gff3", genome) if features else None
        form = ScoreForm(genome, "nats", {"unit": "nats", "seed": 1}, rank, None, genes)
        judged = [(one, judge_record(one, genome)) for one in records]
        scored = [ScoredRecord(one, alts, tuple(map(score, alts))) for one, alts in judged]
        for ending in (".vcf", ".tsv", ".jsonl", ".parquet"):
            found[ending] = folder / f"out{ending}"
            write_scores(found[ending], scored, ending, header, form)
    return found


def test_every_form_gives_the_same_rows(tmp_path):
    files = make_files(tmp_path)
    rows = {ending: list(ScoredFile(path).rows()) for ending, path in files.items()}
    assert rows[".vcf"] == rows[".tsv"] == rows[".jsonl"] == rows[".parquet"]
    assert [(x.kind, x.ref_bases, x.alt_bases) for x in rows[".vcf"]] == SIZES
    first, second, *_ = rows[".vcf"]
    assert (first.chrom, first.pos, first.id, first.ref, first.alt) == ("c", 5, "rs1", "T", "A")
    assert (first.score, first.se, first.percentile, first.z) == (-1.25, 0.25, 37.5, -1.25)
    assert (second.score, second.background, second.n_background) == (0.5, "snv", 30)
    assert [x.flags[0] for x in rows[".vcf"] if x.score is None] == ["symbolic", "no_alt"]
    assert rows[".vcf"][5].flags == ("se_above_wanted", "too_rare")
    opened = ScoredFile(files[".vcf"])
    assert len(list(opened.rows())) == 8
    assert (opened.records, opened.about["unit"]) == (6, "nats")


def test_a_column_of_haplotypes_behind_ours_is_left_alone(tmp_path):
    path = make_files(tmp_path)[".tsv"]
    whole = list(ScoredFile(path).rows())
    about, names, *rows = path.read_text().splitlines()
    path.write_text("\n".join([about, f"{names}\tHaplotypes", *(f"{row}\t." for row in rows), ""]))
    assert list(ScoredFile(path).rows()) == whole


def test_parts_of_a_parquet_file_are_all_of_it(tmp_path, monkeypatch):
    path = make_files(tmp_path)[".parquet"]
    whole = list(ScoredFile(path).rows())
    monkeypatch.setattr("genodiff.variants.scored_file._ROWS", 3)
    assert list(ScoredFile(path).rows()) == whole


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.vcf", HEAD + LINES[0] + "\n", "without GD_SCORE"),
        ("a.tsv", "chrom\tpos\nc\t1\n", "line 1: no table of genodiff score"),
        ("a.tsv", "", "no line of column names"),
        ("a.jsonl", '{"x": 1}\n', "line 1: no JSON line"),
        ("a.jsonl", '{"chrom": "c", "pos": "x", "score": 1, "ref": "A", "alt": "C"}\n', "no row"),
        ("a.parquet", "PAR1", "cannot be read as parquet"),
        ("a.bed", "c\t1\t2\n", "none of the endings"),
    ],
)
def test_what_holds_no_scores_is_refused(tmp_path, name, text, what):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=what):
        list(ScoredFile(tmp_path / name).rows())
    pl.DataFrame({"chrom": ["c"]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match="without the columns"):
        list(ScoredFile(tmp_path / "b.parquet").rows())


def test_a_change_has_its_kind_without_the_genome():
    found = [measure_change(*x) for x in (("A", "C"), ("ACG", "ATG"), ("A", "AC"), ("GAC", "G"),
                                          ("ACC", "GT"), ("aag", "ACT"))]  # fmt: skip
    assert found == [
        ("snv", 1, 1), ("snv", 1, 1), ("ins", 0, 1), ("del", 2, 0), ("delins", 3, 2), ("mnv", 2, 2),
    ]  # fmt: skip


def count(path: Path, **options: int) -> ScoredTally:
    tally = ScoredTally(**options)
    for row in ScoredFile(path).rows():
        tally.add(row)
    return tally


def test_a_tally_keeps_every_row(tmp_path):
    tally = count(make_files(tmp_path)[".vcf"], top=3)
    assert (tally.rows, tally.n_scored, sum(tally.unscored.values())) == (8, 6, 2)
    assert tally.scored == {"snv": 4, "ins": 1, "del": 1}
    assert tally.unscored == {"symbolic": 1, "no_alt": 1}
    assert tally.notes == {"se_above_wanted": 6, "too_rare": 1}
    assert {size.name: one.n for size, one in tally.classes.items()} == {
        "snv": 4, "ins1": 1, "del2": 1,
    }  # fmt: skip
    assert sum(float(x.sum()) for x in tally.percentiles.values()) == pytest.approx(5)
    assert tally.ranked == 5
    snvs = next(one for size, one in tally.classes.items() if size.kind == "snv")
    middles, counts = snvs.list_scores()
    assert counts.sum() == 4
    assert np.abs(np.repeat(middles, counts.astype(int)) - [-1.25, 0, 0.5, 2]).max() <= STEP
    assert [row.score for row in tally.list_least()] == [-4.125, -3.0, -1.25]


def test_the_least_likely_do_not_depend_on_the_order_and_ranked_ones_come_first(tmp_path):
    path = make_files(tmp_path)[".jsonl"]
    whole = count(path, top=6)
    assert [row.score for row in whole.list_least()] == [-4.125, -3.0, -1.25, 0.0, 0.5, 2.0]
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in reversed(lines)))
    turned = count(path, top=6)
    assert turned.list_least() == whole.list_least()
    assert count(path, top=0).list_least() == []


def test_what_an_annotation_says_is_read_of_every_form(tmp_path):
    files = make_files(tmp_path, features=True)
    rows = {ending: list(ScoredFile(path).rows()) for ending, path in files.items()}
    assert rows[".vcf"] == rows[".tsv"] == rows[".jsonl"] == rows[".parquet"]
    first = rows[".vcf"][0]
    assert (first.gene, first.consequence) == ("g", "stop_gained")
    assert first.protein
    tally = count(files[".tsv"])
    assert sum(sum(grid.values()) for grid in tally.consequences.values()) == 4
    assert set(tally.consequences) <= set(TERMS)


def test_scores_along_a_genome_are_kept_in_a_bounded_number_of_bins():
    places, rng = ScoredPlaces(width=1), np.random.default_rng(2)
    scores = {("a", int(at)): float(rng.normal()) for at in rng.integers(0, 10**6, 3000)}
    scores |= {("b", int(at)): float(rng.normal()) for at in rng.integers(0, 10**5, 300)}
    for (contig, at), score in scores.items():
        places.add(contig, at, score)
    bins = places.list_bins()
    assert len(bins) <= MOST
    assert [one.contig for one in bins] == sorted(one.contig for one in bins)
    assert sum(one.n for one in bins) == len(scores)
    for one in bins:
        inside = [
            s for (c, at), s in scores.items() if c == one.contig and one.start <= at < one.end
        ]
        assert (len(inside), min(inside)) == (one.n, one.least)
        assert one.mean == pytest.approx(np.mean(inside))
    for i in range(2 * CONTIGS):
        places.add(f"c{i}", 5, -1.0)
    assert (len(places.ends), places.left_out) == (CONTIGS, CONTIGS + 2)


def test_memory_does_not_grow_with_rows(tmp_path):
    row = json.loads(make_files(tmp_path)[".jsonl"].read_text().splitlines()[0])
    tally = ScoredTally(top=5)
    (tmp_path / "many.jsonl").write_text(
        "".join(json.dumps({**row, "pos": 1 + i, "score": i % 7}) + "\n" for i in range(3000))
    )
    for one in ScoredFile(tmp_path / "many.jsonl").rows():
        tally.add(one)
    assert len(tally._least) == 5
    assert len(next(iter(tally.classes.values())).grid) == 7


def test_a_rank_among_few_counts_over_the_stretch_that_it_stands_for(tmp_path):
    row = next(ScoredFile(make_files(tmp_path)[".tsv"]).rows())
    tally = ScoredTally()
    for rank in range(21):  # all ranks among 20: nothing is left of their steps
        tally.add(row._replace(percentile=100 * (rank + 0.5) / 21, n_background=20))
    (counts,) = tally.percentiles.values()
    assert np.allclose(counts, 21 / PERCENT_BINS)
    tally.add(row._replace(percentile=100 * 9999.5 / 10_000, n_background=9999))
    assert counts[-1] == pytest.approx(1 + 21 / PERCENT_BINS)


def test_the_distance_from_uniform_is_that_of_kolmogorov():
    even = np.full(PERCENT_BINS, 5)
    assert measure_ks(even) == (pytest.approx(0, abs=1e-12), 1.358 / np.sqrt(1000))
    low = np.zeros(PERCENT_BINS, np.int64)
    low[: PERCENT_BINS // 4] = 20
    assert measure_ks(low)[0] == pytest.approx(0.75)
    rng = np.random.default_rng(1)
    beyond = 0
    for _ in range(300):
        bins = np.histogram(rng.random(400), PERCENT_BINS, (0, 1))[0]
        distance, band = measure_ks(bins)
        beyond += distance > band
    assert 3 <= beyond <= 25  # 1 in 20 by chance
