"""Splits: never a base in two of them, and nothing left out or made up without a word."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genodiff.data.recipe import SPLITS, Recipe, SplitRule, load_recipe
from genodiff.data.splits import (
    Intervals,
    Splits,
    merge,
    refuse_overlap,
    resolve,
    stretch_intervals,
)
from genodiff.errors import DataError


def occupied(splits: Splits, contigs: dict[str, int]) -> np.ndarray:
    """How many splits each base of all contigs is in."""
    offset = np.concatenate(([0], np.cumsum([*contigs.values()])))
    count = np.zeros(offset[-1], int)
    for intervals in splits.intervals.values():
        here = np.zeros(offset[-1], bool)
        for c, s, e in zip(intervals.contig, intervals.start, intervals.end, strict=True):
            assert 0 <= s < e <= [*contigs.values()][c]
            here[offset[c] + s : offset[c] + e] = True
        count += here
    return count


def bed_splits(folder: Path, text: str, contigs: dict[str, int]) -> Splits:
    path = folder / "in.bed"
    path.write_text(text)
    return resolve(Recipe(name="x").with_bed(path), contigs, "in.fa")


def rows(splits: Splits, split: str) -> list[tuple[int, int, int]]:
    i = splits.intervals[split]
    return [tuple(map(int, r)) for r in zip(i.contig, i.start, i.end, strict=True)]


@pytest.mark.parametrize("name", ["ecoli_k12", "hg38", "mm39", "sacCer3", "toy"])
def test_the_splits_of_every_recipe_are_disjoint_and_not_empty(name):
    recipe = load_recipe(name)
    splits = resolve(recipe, recipe.contigs, "x.fa", exact=True)
    parts = [set(rows(splits, s)) for s in SPLITS]
    assert all(parts)
    assert not splits.notes
    spans = sorted(r for p in parts for r in p)
    for (c, _, end), (c2, start, _) in pairwise(spans):
        assert c != c2 or end <= start


def test_the_parts_of_ecoli_lie_ten_thousand_bases_apart_around_the_circle():
    recipe = load_recipe("ecoli_k12")
    spans = sorted(rows(resolve(recipe, recipe.contigs, "x"), s)[0] for s in SPLITS)
    gaps = [b[1] - a[2] for a, b in pairwise(spans)]
    around = spans[0][1] + recipe.contigs["NC_000913.3"] - spans[-1][2]
    assert [*gaps, around] == [10_000] * 3


@given(
    st.dictionaries(
        st.text("abc", min_size=1), st.integers(0, 3000), min_size=1, max_size=60
    ).filter(lambda d: sum(d.values()))
)
def test_a_file_without_a_rule_is_split_without_overlap_and_nothing_is_lost(contigs):
    splits = resolve(Recipe(name="x"), contigs, "in.fa")
    assert (occupied(splits, contigs) == 1).all()
    assert any("split without a rule" in note for note in splits.notes)


def test_a_file_that_a_recipe_knows_is_told_which_and_how_it_was_split():
    """Yeast has 17 contigs with the mitochondrion, so each is cut at its end."""
    contigs = load_recipe("sacCer3").contigs | {"chrM": 85_779}
    cut, known = resolve(Recipe(name="own"), contigs, "genome.fa.gz").notes
    assert "(the end of each contig is held out)" in cut
    assert known == (
        "its contigs are those of the recipe sacCer3, whose test is chrXIV: `genodiff train "
        "sacCer3 --fasta genome.fa.gz` splits it so"
    )
    (only,) = resolve(Recipe(name="own"), contigs | {"chrXIV": 784_332}, "genome.fa.gz").notes
    assert only == cut
    (dealt,) = resolve(Recipe(name="own"), {f"c{i}": 100 for i in range(20)}, "x.fa").notes
    assert "(whole contigs are held out, one in 20 neighbours in length for each)" in dealt


@given(st.integers(20, 400), st.integers(100, 1000))
def test_many_contigs_are_dealt_whole_with_about_a_twentieth_held_out_each(n, length):
    contigs = {f"c{i}": length + i for i in range(n)}
    splits = resolve(Recipe(name="x"), contigs, "in.fa")
    total = sum(contigs.values())
    for split in ("valid", "test"):
        assert 0.02 < splits.intervals[split].n_bases / total < 0.08
        assert all(e - s == contigs[f"c{c}"] for c, s, e in rows(splits, split))


@pytest.mark.parametrize(
    ("contigs", "wanted", "notes"),
    [
        (  # a part of it
            {"chr1": 1_000_000, "chr13": 200_000, "chr21": 46_709_983},
            [[(0, 0, 1_000_000)], [(1, 0, 200_000)], [(2, 0, 46_709_983)]],
            ["lacks 21 of hg38's 24 contigs", "chr1 1,000,000 of 248,956,422"],
        ),
        (  # without a contig of valid, which is cut from the end of train
            {"chr1": 10_000, "chr21": 500},
            [[(0, 0, 9_500)], [(0, 9_500, 10_000)], [(1, 0, 500)]],
            ["chr13, chr20"],
        ),
        (  # a genome of its own, which is split by itself
            {"scaffold_1": 10_000},
            [[(0, 0, 9_000)], [(0, 9_000, 9_500)], [(0, 9_500, 10_000)]],
            ["none of its contigs (scaffold_1)"],
        ),
        (  # contigs beside those of the recipe are left out
            {"chr1": 1000, "phage": 500, "chr13": 1000, "chr8": 1000},
            [[(0, 0, 1000)], [(2, 0, 1000)], [(3, 0, 1000)]],
            ["phage"],
        ),
    ],
)
def test_another_genome_is_split_and_what_differs_is_noted(contigs, wanted, notes):
    splits = resolve(load_recipe("hg38"), contigs, "in.fa")
    assert [rows(splits, split) for split in SPLITS] == wanted
    for note in notes:
        assert any(note in one for one in splits.notes)


@pytest.mark.parametrize(
    ("contigs", "said"),
    [
        ({"chr1": 249_250_621}, r"record chr1\): has 249,250,621 bases, but 248,956,422 in hg38"),
        ({"1": 248_956_422}, r"record 1\): this contig is 'chr1' in the recipe hg38; rename"),
        ({"chr13": 1000, "chr8": 1000}, "none of its contigs is in the train split"),
    ],
)
def test_a_genome_that_cannot_stand_for_the_recipes_is_refused(contigs, said):
    with pytest.raises(DataError, match=said):
        resolve(load_recipe("hg38"), contigs, "in.fa")


@pytest.mark.parametrize("contigs", [{"chrI": 230_218}, {"chrI": 230_217}, {}])
def test_a_fetched_genome_must_be_the_whole_recipe_exactly(contigs):
    with pytest.raises(DataError):
        resolve(load_recipe("sacCer3"), contigs, "in.fa", exact=True)


def test_a_fetched_genome_is_compared_with_the_recipe_under_a_bed_too(tmp_path):
    (tmp_path / "in.bed").write_text("chrI\t0\t100\ttrain\n")
    recipe = load_recipe("sacCer3").with_bed(tmp_path / "in.bed")
    resolve(recipe, recipe.contigs, "in.fa", exact=True)
    with pytest.raises(DataError, match="another assembly"):
        resolve(recipe, {**recipe.contigs, "chrI": 230_217}, "in.fa", exact=True)


def test_bed_intervals_are_honoured_exactly(tmp_path):
    text = "b\t100\t300\ttest\na\t0\t1000\ttrain\na\t1000\t1500\tvalid\nb\t0\t90\ttrain\n"
    splits = bed_splits(tmp_path, text, {"a": 5000, "b": 400})
    assert rows(splits, "train") == [(0, 0, 1000), (1, 0, 90)]
    assert rows(splits, "valid") == [(0, 1000, 1500)]
    assert rows(splits, "test") == [(1, 100, 300)]


def test_rows_that_overlap_within_a_split_are_merged_and_counted(tmp_path):
    text = (
        "a\t0\t100\ttrain\na\t0\t100\ttrain\na\t50\t200\ttrain\n"
        "a\t200\t300\ttrain\na\t400\t500\tvalid\n"
    )
    splits = bed_splits(tmp_path, text, {"a": 5000})
    assert rows(splits, "train") == [(0, 0, 200), (0, 200, 300)]
    assert "2 rows of train" in splits.notes[0]


@pytest.mark.parametrize("held_out", ["valid", "test"])
def test_a_train_row_that_overlaps_a_held_out_row_is_refused_naming_both(tmp_path, held_out):
    text = f"a\t0\t100\ttrain\nb\t10\t20\ttrain\nb\t50\t90\t{held_out}\nb\t85\t99\ttrain\n"
    with pytest.raises(DataError) as fault:
        bed_splits(tmp_path, text, {"a": 100, "b": 100})
    for part in ("in.bed", "line 4", "b:86-99", "b:51-90", "line 3", held_out):
        assert part in str(fault.value)


SPANS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(1, 9)), max_size=5)


@given(SPANS, SPANS, SPANS)
def test_splits_are_refused_exactly_when_two_of_them_share_a_base(train, valid, test):
    spans = [[(c, s, s + n) for c, s, n in split] for split in (train, valid, test)]
    bases = [{(c, x) for c, s, e in split for x in range(s, e)} for split in spans]
    shared = bool(bases[0] & bases[1] or bases[0] & bases[2] or bases[1] & bases[2])
    given = dict(zip(SPLITS, map(Intervals.of, spans), strict=True))
    try:
        refuse_overlap(given, ["a", "b"], "in.bed")
    except DataError:
        assert shared
    else:
        assert not shared


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\t0\t10\ttrian\n", "line 1.*did you mean 'train'"),
        ("a\t0\t10\n", "line 1.*4th column"),
        ("a\t0\t10\ttrain\na\t0\t31\ttrain\n", "line 2"),
        ("z\t0\t10\ttrain\n", "z"),
        ("", r"in\.bed"),
    ],
)
def test_a_bed_that_gives_no_split_is_refused_with_its_line(tmp_path, text, told):
    with pytest.raises(DataError, match=told) as fault:
        bed_splits(tmp_path, text, {"a": 30})
    assert "in.bed" in str(fault.value)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(1, 20)), max_size=12))
def test_merging_keeps_the_bases_and_leaves_no_overlap(spans):
    merged = merge(Intervals.of([(c, s, s + n) for c, s, n in spans]))
    wanted = {(c, x) for c, s, n in spans for x in range(s, s + n)}
    found = [
        (int(c), x)
        for c, s, e in zip(merged.contig, merged.start, merged.end, strict=True)
        for x in range(s, e)
    ]
    assert len(found) == len(set(found))
    assert set(found) == wanted


@pytest.mark.parametrize(
    "values",
    [
        {"train": (("a", 0, 51),), "valid": (("a", 50, 70),), "test": ()},
        {"train": ("a",), "valid": (), "test": (("a", 99, 100),)},
        {"train": ("b",), "valid": ("a",), "test": ("a",)},
    ],
)
def test_a_recipe_whose_own_splits_overlap_is_refused(values):
    recipe = Recipe(name="x", contigs={"a": 100, "b": 100}, splits=SplitRule(**values))
    said = r"recipe x: the .* interval a:.* overlaps the .* interval a:"
    with pytest.raises(DataError, match=said):
        resolve(recipe, recipe.contigs, "in.fa")


def test_legacy_tiling_stretches_to_a_mebibase_and_stops_at_the_contigs_end():
    before = Intervals.of([(0, 100, 131_172), (0, 2_000_000, 2_131_072)])
    after = stretch_intervals(before, np.array([2_500_000]))
    assert list(after.start) == [100, 2_000_000]
    assert list(after.end) == [100 + 2**20, 2_500_000]


def test_a_rule_of_intervals_is_cut_where_a_partial_contig_ends():
    rule = SplitRule(train=(("a", 0, 50),), valid=(("a", 50, 70),), test=(("a", 80, 100),))
    recipe = Recipe(name="x", contigs={"a": 100}, splits=rule)
    splits = resolve(recipe, {"a": 60}, "in.fa")
    assert rows(splits, "valid") == [(0, 50, 60)]
    assert (occupied(splits, {"a": 60}) <= 1).all()
    assert len(splits.intervals["test"])
