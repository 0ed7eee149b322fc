"""Ancestral bases of variants, and the table of genetic load."""

import json

import numpy as np
import polars as pl
import pytest

import genodiff
from genodiff.io.variants import Allele, VariantRecord
from genodiff.memory.column_rates import Ancestry, guess_neutral
from genodiff.memory.columns import (
    ColumnNumbers,
    exchange_branches,
    read_columns,
    start_numbers,
)
from genodiff.memory.tree import Tree, share_bases
from genodiff.scoring.allele_score import AlleleScore
from genodiff.variants.load import LoadTally
from genodiff.variants.scored_variants import ScoredRecord, find_ancestral
from tests.commands import command, succeed

NUMBERS: ColumnNumbers = start_numbers(Tree((-1, 3, 3, 0), (0.0, 0.1, 0.2, 0.05)), 0.4)
A, C, G, T = range(4)


def score(odds: float | None, rs: float | None, value: float = -2.0) -> AlleleScore:
    return AlleleScore(value, 0.0, "llr", 0, 9, 1, ancestral=odds, rs=rs)


def record(calls: list[str], *scores: AlleleScore, alts: str = "G") -> ScoredRecord:
    rest = (".", ".", ".", "GT", *calls)
    one = VariantRecord(0, "c", 5, ".", "A", tuple(alts.split(",")), rest)
    return ScoredRecord(one, [Allele("c", 4, "A", alt) for alt in one.alts], scores)


def test_the_ancestral_base_is_the_likeliest_of_all_and_chances_sum_to_one():
    odds = np.log([1.0, 6.0, 3.0])
    found = find_ancestral(record(["0/1"], score(odds[1], 0.2), score(odds[2], 0.2), alts="G,T"))
    assert found == ("G", pytest.approx(0.6))
    assert find_ancestral(record(["0/1"], score(-3.0, 0.1))) == (
        "A",
        pytest.approx(0.9526, abs=1e-4),
    )
    assert find_ancestral(record(["0/1"], score(None, None))) == (None, None)
    found = find_ancestral(record(["0/1"], score(1.0, 0.1), score(None, None), alts="G,T"))
    assert found == (None, None)


def test_a_site_is_judged_by_the_likelier_base_and_not_where_nobody_is():
    ancestry = Ancestry(NUMBERS)
    over = np.zeros((2, 4))
    over[:, G] = 0.97
    even, for_g = np.ones(4), np.array([0.01, 0.01, 1.0, 0.01])
    derived_ref = ancestry.judge(for_g, over, A, G)
    derived_alt = ancestry.judge(for_g, over, G, A)
    assert derived_ref.odds == pytest.approx(np.log(100))
    assert derived_alt.odds == pytest.approx(-np.log(100))
    assert derived_ref.rs == derived_alt.rs > 0
    assert derived_ref.rs == pytest.approx(guess_neutral(NUMBERS).rate * 0.35)
    assert ancestry.judge(even, over * 0.4, A, G) is None


@pytest.mark.slow
def test_probabilities_of_ancestral_bases_are_calibrated():
    """Of columns that are drawn from the tree and its rates."""
    ancestry, rng, n = Ancestry(NUMBERS), np.random.default_rng(9), 6000
    told = np.linspace(2, 1, len(NUMBERS.rate))
    told /= told.sum()
    rate, chances = rng.choice(len(told), n, p=told), exchange_branches(NUMBERS)
    bases = np.zeros((4, n), np.int64)
    bases[0] = rng.choice(4, n, p=share_bases(NUMBERS.gc))
    for node, above in ((3, 0), (1, 3), (2, 3)):
        p = chances[rate, node, bases[above]].cumsum(1)
        bases[node] = np.minimum((rng.random((n, 1)) > p).sum(1), 3)
    pairs = np.stack([bases[0], (bases[0] + rng.integers(1, 4, n)) % 4])
    derived = rng.random(n) < 0.4
    ref, alt = np.where(derived, pairs[::-1], pairs)
    said, right = np.zeros((2, n))
    for i, over in enumerate(np.eye(4)[bases[1:3]].swapaxes(0, 1)):
        factors = told @ read_columns(over[:, None], NUMBERS)[0]
        odds = ancestry.judge(factors, over, int(ref[i]), int(alt[i])).odds
        # The other base is drawn evenly here, so the first is as likely as its share.
        odds += np.log(share_bases(NUMBERS.gc)[alt[i]] / share_bases(NUMBERS.gc)[ref[i]])
        said[i], right[i] = 1 / (1 + np.exp(-abs(odds))), (odds > 0) == derived[i]
    bins = np.minimum((said * 10).astype(int), 9)
    errors = [abs((said - right)[bins == one].sum()) for one in range(5, 10)]
    assert sum(errors) / n < 0.02
    assert right.mean() > 0.7


def test_load_counts_alleles_of_each_sample(tmp_path):
    tally = LoadTally(["one", "two"])
    rows = [
        record(["0/1", "1|1"], score(-5.0, 1.5)),  # A is ancestral
        record(["0/0", "0/1"], score(5.0, 0.5, value=3.0)),  # G is ancestral
        record(["1/.", "1"], score(0.5, 2.0)),  # not known well enough
        record(["./.", "0/1"], score(None, None)),
        record(["0/1", "2/2"], score(-6.0, -0.4), score(-7.0, 1.0, value=-4.0), alts="G,T"),
    ]
    assert list(tally.watch(rows)) == rows
    tally.write(tmp_path / "load.tsv")
    table = pl.read_csv(tmp_path / "load.tsv", separator="\t")
    one, two = table.to_dicts()
    assert (one["sample"], one["class"]) == ("one", "all")
    assert (one["derived"], one["homozygous"], one["heterozygous"]) == (4, 1, 2)
    assert one["load"] == pytest.approx(1.5 + 2 * 0.5 + 0)
    assert one["load_homozygous"] == pytest.approx(1.0)
    assert one["score"] == pytest.approx(-2 - 2 * 3 - 2)
    assert (one["ancestral"], one["unjudged"], one["missing"]) == (2, 1, 3)
    assert (two["derived"], two["homozygous"], two["heterozygous"]) == (5, 2, 1)
    assert two["load"] == pytest.approx(2 * 1.5 + 0.5 + 2 * 1.0)
    assert two["score"] == pytest.approx(-4 - 3 - 8)
    assert (two["ancestral"], two["unjudged"], two["missing"]) == (1, 3, 0)


@pytest.mark.slow
def test_ancestral_bases_of_the_example_are_calibrated_and_load_is_by_consequence(tmp_path, capsys):
    example = tmp_path / "example"
    genodiff.fetch_data("example", out=example)
    words = ["score", "none", "--fasta", example / "genome.fa", "-q"]
    words += ["--relatives", example / "near.fa", example / "far.fa"]
    more = ["--features", example / "genes.gff3", "--load", tmp_path / "load.tsv"]
    given = ["--variants", example / "variants.vcf"]
    succeed(capsys, *words, *given, *more, "-o", tmp_path / "o.vcf")
    right, chance = [], []
    for line in (tmp_path / "o.vcf").read_text().splitlines():
        if not line.startswith("#"):
            info = dict(x.partition("=")[::2] for x in line.split("\t")[7].split(";"))
            right.append(info["AA"] == info["TRUE_AA"])
            chance.append(float(info["GD_AAP"]))
    assert len(right) == 900
    assert np.mean(right) > 0.91
    assert abs(np.mean(right) - np.mean(chance)) < 0.02
    sure = np.array(chance) > 0.95
    assert np.array(right)[sure].mean() > 0.95
    table = pl.read_csv(tmp_path / "load.tsv", separator="\t")
    assert table["sample"].n_unique() == 6
    by = {row["class"]: row for row in table.to_dicts() if row["sample"] == "sample1"}
    parts = [row for name, row in by.items() if name != "all"]
    for name in ("derived", "homozygous", "heterozygous", "ancestral", "unjudged", "missing"):
        assert sum(row[name] for row in parts) == by["all"][name]
    per_site = {name: row["score"] / max(row["derived"], 1) for name, row in by.items()}
    assert per_site["missense_variant"] < per_site["synonymous_variant"]
    # A second call replaces what it wrote, and an AA of the input is left as it is.
    again = (tmp_path / "o.vcf").read_text()
    (tmp_path / "mine.vcf").write_text(
        again.replace("TRUE_AA", "X").replace("genodiff: anc", "anc")
    )
    table_before = (tmp_path / "load.tsv").read_bytes()
    given = ["--variants", tmp_path / "mine.vcf", "--load", tmp_path / "load.tsv"]
    assert command(capsys, *words, *given, *more[:2], "-o", tmp_path / "p.vcf")[0] == 0
    assert (tmp_path / "load.tsv").read_bytes() == table_before
    line = (tmp_path / "p.vcf").read_text().splitlines()[-1]
    info = dict(x.partition("=")[::2] for x in line.split("\t")[7].split(";"))
    assert info["GD_ANC"] == info["AA"]
    assert json.loads((tmp_path / "p.vcf.json").read_text())["records"] == 900
