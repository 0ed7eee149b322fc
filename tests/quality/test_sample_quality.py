"""Samples beside real and Markov sequence, in worlds where the answer is known; the Frechet
distance against scipy's matrix root; open frames, genes and codons against a loop over codons.
"""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from genodiff.alphabet import DNA
from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import make_user_recipe
from genodiff.errors import DataError
from genodiff.quality.discriminator import FOLDS, measure_area, measure_auroc
from genodiff.quality.real_sequence import (
    RealSequence,
    cut_windows,
    draw_some,
    find_stretches,
    open_real,
    read_train,
)
from genodiff.quality.sample_quality import (
    STOPS,
    count_codons,
    find_frechet,
    measure_distance,
    measure_frechet,
    measure_genes,
    measure_open_frames,
    measure_sets,
)
from tests.quality.test_scorecard import ids, random_text

LENGTH = 60
WEIGHTS = (0.35, 0.15, 0.15, 0.35)


def beside(windows: list[np.ndarray], train: np.ndarray, n: int) -> RealSequence:
    return open_real(windows, n, read_train(lambda: [train]))


def world(seed: int, n: int) -> np.ndarray:
    return ids(random_text(seed, n, WEIGHTS))


def measure(sequences: list[np.ndarray], real: RealSequence) -> dict[str, Any]:
    return measure_sets({"samples": sequences}, real)["samples"]


@pytest.fixture(scope="module")
def parts():
    return list(cut_windows([world(1, 12_000)], LENGTH)), world(2, 20_000)


def test_windows_hold_no_n_and_no_soft_mask():
    record = ids("acgtACGTNACGTACGTACG")
    found = cut_windows([record], 4)
    assert [DNA.decode(part) for part in found] == ["ACGT", "ACGT", "TACG", "TACG"]


def test_equally_many_windows_serve_target_floor_and_markov(parts):
    windows, train = parts
    real = beside(windows, train, 50)
    assert {len(real.target), len(real.floor), *map(len, real.markov.values())} == {50}
    target = {part.tobytes() for part in real.target}
    assert not target & {part.tobytes() for part in real.floor}
    assert list(real.markov) == ["Markov 1", "Markov 5", "Markov 8"]
    few = beside(windows[:9], train, 50)
    assert (len(few.target), len(few.floor)) == (4, 4)
    with pytest.raises(DataError, match="3 windows without N"):
        beside(windows[:3], train, 50)


def test_samples_of_the_real_law_stand_at_the_floor_and_others_above(parts):
    windows, train = parts
    real = beside(windows, train, 100)
    floor = measure_sets({"real": real.floor}, real)["real"]
    good = measure(list(cut_windows([world(3, 6_000)], LENGTH)), real)
    bad = measure(list(cut_windows([ids(random_text(4, 6_000))], LENGTH)), real)
    for k in ("3", "4"):
        near = 4 * floor["js"][k]["se"]
        assert good["js"][k]["value"] == pytest.approx(floor["js"][k]["value"], abs=near)
        assert bad["js"][k]["value"] > good["js"][k]["value"] + near
    assert good["auroc"]["kmers"]["value"] < 0.65 < 0.9 < bad["auroc"]["kmers"]["value"]
    assert good["gc"] == pytest.approx(0.3, abs=0.02)
    assert bad["gc"] == pytest.approx(0.5, abs=0.02)
    assert bad["open_frame"]["mean"] > good["open_frame"]["mean"]  # stops are rich in A and T


def test_copies_of_train_and_of_one_another_are_seen(parts):
    windows, train = parts
    real = beside(windows, train, 20)
    fresh = list(cut_windows([world(5, 1_200)], LENGTH))
    copied = [train[i * LENGTH : (i + 1) * LENGTH] for i in range(10)]
    found = measure([*copied, *fresh[:9], fresh[0]], real)
    assert found["match"]["max"] == LENGTH
    assert found["match"]["long"] == pytest.approx(0.5, abs=0.01)
    assert found["duplicates"] == 1
    assert measure(fresh, real)["match"]["max"] < 25


def test_stretches_of_a_genome_in_pieces_are_its_pieces(tmp_path):
    pieces = [random_text(i, 40 + 30 * i) for i in range(4)] + ["ACGT"]
    fasta = tmp_path / "sparse.fa"
    fasta.write_text(">c1\n" + "N" * 500 + ("N" * 90).join(pieces).lower() + "N" * 7 + "\n")
    (tmp_path / "all.bed").write_text("c1\t0\t700\ttrain\nc1\t700\t1150\ttrain\n")
    store = build_dna_store(make_user_recipe(fasta, tmp_path / "all.bed"), fasta)
    found = [DNA.decode(part & 0x7F) for part in find_stretches(store, "train")]
    whole = fasta.read_text().split("\n")[1].upper()
    wanted = [p for cut in (whole[:700], whole[700:1150]) for p in cut.split("N") if len(p) >= 32]
    assert found == wanted
    assert len(found) >= 4


def test_without_a_train_split_there_is_neither_markov_nor_match(parts):
    real = open_real(parts[0], 20)
    assert real.markov == {}
    assert measure(parts[0][:20], real)["match"] is None


def test_the_error_of_a_distance_is_what_repetition_shows():
    """60 pairs of sets of one law: the spread of their distances is the mean standard error."""
    found = []
    for i in range(60):
        one, other = (list(cut_windows([world(1000 + 2 * i + j, 3_600)], LENGTH)) for j in (0, 1))
        found.append(measure_distance(one, other, 3))
    spread = np.std([distance["value"] for distance in found])
    assert np.mean([distance["se"] for distance in found]) == pytest.approx(spread, rel=0.35)


def test_windows_are_drawn_in_one_pass_each_as_likely_and_in_order():
    counts = np.zeros(10)
    for seed in range(400):
        drawn, total = draw_some(iter(range(10)), 4, seed)
        assert (len(drawn), total, drawn == sorted(drawn)) == (4, 10, True)
        counts[drawn] += 1
    assert abs(counts - 160).max() < 4 * np.sqrt(400 * 0.4 * 0.6)
    assert draw_some(range(3), 4, 1) == ([0, 1, 2], 3)


def test_the_distance_is_that_of_the_definition():
    rng = np.random.default_rng(1)
    one = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    other = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 5)) + 0.5
    laws = [np.cov(rows, rowvar=False) for rows in (one, other)]
    wanted = np.square(one.mean(0) - other.mean(0)).sum()
    wanted += np.trace(laws[0] + laws[1] - 2 * np.real(sqrtm(laws[0] @ laws[1])))
    assert find_frechet(one, other) == pytest.approx(wanted)
    assert find_frechet(other, one) == pytest.approx(wanted)
    assert find_frechet(one, one) == pytest.approx(0, abs=1e-9)
    turned, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    assert find_frechet(one @ turned, other @ turned) == pytest.approx(wanted)


def test_the_standard_error_is_what_repetition_shows():
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found.append(measure_frechet(rng.normal(size=(300, 2)), 1 + rng.normal(size=(300, 2))))
    spread = np.std([one["value"] for one in found])
    assert np.mean([one["se"] for one in found]) == pytest.approx(spread, rel=0.3)


def test_one_row_has_no_spread_and_so_no_distance():
    one, two = np.zeros((1, 3)), np.ones((2, 3))
    assert measure_frechet(one, two) is None
    assert measure_frechet(two, one) is None
    assert measure_frechet(two, two + 1) == {"value": pytest.approx(3), "se": None}


def test_fewer_rows_than_columns_are_no_error():
    rng = np.random.default_rng(2)
    found = measure_frechet(rng.normal(size=(4, 9)), rng.normal(size=(4, 9)))
    assert np.isfinite([found["value"], found["se"]]).all()


CODONS = ["".join(word) for word in product("ACGT", repeat=3)]
texts = st.text("ACGTN", max_size=40) | st.lists(
    st.sampled_from(["ATG", "TAA", "CAT", "TTA", "GCC", "A", "N"]), max_size=14
).map("".join)


def read_frames(text: str) -> list[list[str]]:
    turned = "".join("TGCAN"["ACGTN".index(c)] for c in reversed(text))
    return [
        [strand[i : i + 3] for i in range(frame, len(strand) - 2, 3)]
        for strand in (text, turned)
        for frame in range(3)
    ]


@given(texts)
def test_frames_genes_and_codons_are_those_of_a_slow_reader(text):
    best: list[str] = []
    gene = 0
    for codons in read_frames(text):
        run: list[str] = []
        for codon in [*codons, "TAA"]:
            if codon in ("TAA", "TAG", "TGA") or "N" in codon:
                best = run if len(run) > len(best) else best
                run = []
            else:
                run.append(codon)
        start = None
        for i, codon in enumerate(codons):
            if "N" in codon:
                start = None
            elif codon in ("TAA", "TAG", "TGA"):
                gene = max(gene, 0 if start is None else i - start)
                start = None
            elif codon == "ATG" and start is None:
                start = i
    assert measure_open_frames([ids(text)]).tolist() == [len(best)]
    assert measure_genes([ids(text)]).tolist() == [gene]
    counted = Counter(best)
    assert count_codons([ids(text)])[0].tolist() == [counted[codon] for codon in CODONS]


def test_the_stops_are_those_of_the_standard_code():
    assert [CODONS[i] for i in STOPS] == ["TAA", "TAG", "TGA"]


scores = st.lists(st.integers(0, 6), min_size=2, max_size=12)


def draw(seed: int, n: int, weights: tuple[float, ...]) -> list[bytes]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("ACGT"), 60, p=weights)).encode() for _ in range(n)]


@given(scores, scores)
@settings(max_examples=25)
def test_the_area_is_the_share_of_pairs_in_the_right_order(a, b):
    pairs = [1.0 if x > y else 0.5 if x == y else 0.0 for x, y in product(a, b)]
    area, _ = measure_area(np.array(a, float), np.array(b, float))
    assert area == pytest.approx(np.mean(pairs))


def test_the_error_of_an_area_is_what_repetition_shows():
    rng = np.random.default_rng(1)
    areas = [measure_area(rng.normal(0.5, 1, 60), rng.normal(0, 1, 80)) for _ in range(400)]
    values, errors = zip(*areas, strict=True)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)


@pytest.mark.parametrize("by", ["kmers", "cnn"])
def test_other_composition_is_told_apart(by):
    n = 60 if by == "kmers" else 40
    found = measure_auroc(draw(1, n, (0.4, 0.1, 0.1, 0.4)), draw(2, n, (0.1, 0.4, 0.4, 0.1)), by=by)
    assert found["value"] > 0.97


def test_the_same_law_is_not_told_apart():
    weights = (0.3, 0.2, 0.2, 0.3)
    found = [measure_auroc(draw(i, 80, weights), draw(i + 50, 80, weights)) for i in range(6)]
    assert np.mean([area["value"] for area in found]) == pytest.approx(0.5, abs=0.06)
    assert all(area["ci95"][0] < 0.62 for area in found)


def test_too_few_sequences_have_no_figure():
    assert measure_auroc([b"ACGT"] * (2 * FOLDS - 1), [b"ACGT"] * 50) is None
