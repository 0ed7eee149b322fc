"""Random variants, their strata, and where a score stands among them."""

import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, norm

from genodiff.counter import Purpose, generator
from genodiff.errors import UsageError
from genodiff.io.target import cache_dir
from genodiff.io.variants import Allele
from genodiff.scoring.allele_score import AlleleScore
from genodiff.scoring.variant_windows import HeldContigs
from genodiff.variants import background
from genodiff.variants.background import (
    Background,
    BackgroundRequest,
    count_background,
    count_windows,
    draw_background,
    find_kinds,
    find_rare,
)
from genodiff.variants.background_draws import VariantDraws, find_class, find_unit, list_strata
from genodiff.variants.background_ranks import (
    LEAST,
    LEAST_OF_GROUP,
    RandomScore,
    ScoreRanks,
    describe_calibration,
    rank_held_out,
)
from genodiff.variants.request import count_places

SNV, DEL1, INS3, LONG = (find_class(*size) for size in ((1, 1), (1, 0), (0, 3), (12, 0)))


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path))
    monkeypatch.setattr("genodiff.variants.background.MOST_DRAWS", 4000)


def make_genome(seed: int = 1, length: int = 40_000) -> HeldContigs:
    """Two contigs with N, lower case, and homopolymers."""
    rng = np.random.default_rng(seed)
    letters = np.frombuffer(b"ACGT", np.uint8)[rng.choice(4, length, p=[0.35, 0.15, 0.15, 0.35])]
    text = bytearray(letters.tobytes())
    for start in range(0, length - 50, 97):
        text[start : start + start % 13] = b"A" * (start % 13)
    text[500:600] = b"N" * 100
    text[1000:2000] = bytes(text[1000:2000]).lower()
    return HeldContigs({"a": bytes(text[: length // 4]), "b": bytes(text[length // 4 :])})


def find_law(allele: Allele, genome: HeldContigs) -> tuple[float, float]:
    """Mean and deviation of the made-up score of a variant: of its stratum alone."""
    size = find_class(len(allele.ref), len(allele.alt))
    strata = list_strata(allele, size, genome)
    name = strata[-1] if strata else ""
    code = sum(map(ord, name)) % 7
    longest = max(len(allele.ref), len(allele.alt)) if size.per_base else 1
    return longest * (code - 3.0), longest * (0.3 + code / 4)


def make_score(genome: HeldContigs, told: list[Allele] | None = None, law: Any = find_law) -> Any:
    """Scores by a known law, each a function of its allele alone."""

    def score(alleles: Iterable[Allele]) -> Iterator[AlleleScore]:
        for one in alleles:
            if told is not None:
                told.append(one)
            mean, sd = law(one, genome)
            key = zlib.crc32(f"{one.chrom} {one.start} {one.ref} {one.alt}".encode())
            z = float(generator(1, Purpose.BASELINE, key).standard_normal())
            yield AlleleScore(mean + sd * z, 0.0, "llr", 0, 1, 1)

    return score


REQUEST = BackgroundRequest(2000, 1, "auto", {"model": "m"})


def list_kinds(genome: HeldContigs, *sizes: Any) -> dict[Any, Any]:
    """The classes, with the kinds of 60 variants of each."""
    draws = (VariantDraws(genome, size, 9).draw(number) for size in sizes for number in range(60))
    return find_kinds((one for some in draws for one in some), genome)


def draw(genome: HeldContigs, *sizes: Any, seed: int = 1, score: Any = None) -> Background:
    request = REQUEST._replace(
        seed=seed, n=40_000 // (1 if LONG in sizes else 4 if INS3 in sizes else 20)
    )
    kinds = list_kinds(genome, *sizes)
    return draw_background(genome, "g", kinds, request, score or make_score(genome))


@pytest.mark.slow
def test_percentiles_of_fresh_random_variants_are_uniform():
    genome = make_genome()
    for size in (SNV, DEL1, INS3, LONG):
        known = draw(genome, size)
        score = make_score(genome)
        found = []
        for number in range(600):
            for allele in VariantDraws(genome, size, 2).draw(number)[:1]:
                value = next(score([allele])).value
                rank = known.rank(allele, value)
                if rank is None:  # beside N or a contig's end, or too rare
                    continue
                found.append(rank.percentile / 100)
                mean, sd = find_law(allele, genome)
                if rank.n > 500:
                    assert abs(norm.cdf((value - mean) / sd) - found[-1]) < 0.08
                    assert rank.z == pytest.approx((value - mean) / sd, abs=0.3)
        assert len(found) > 500
        assert kstest(found, "uniform").pvalue > 0.005
        assert 100 * min(found) < 2 < 98 < 100 * max(found)
        held_out = rank_held_out(known.classes[size]) / 100
        # Two halves of one sample: by chance 1 in 160 has more
        assert kstest(held_out, "uniform").statistic < 1.73 * math.sqrt(2 / len(held_out))


@pytest.mark.slow
def test_matching_takes_out_what_the_kind_of_mutation_does():
    """Within one mutation all are uniform, which they are not among all SNVs."""
    genome = make_genome()
    known = draw(genome, SNV)
    plain = ScoreRanks(one._replace(strata=["snv"]) for one in known.classes[SNV])
    score, found, raw = make_score(genome), [], []
    for number in range(900):
        for allele in VariantDraws(genome, SNV, 3).draw(number):
            if {allele.ref, allele.alt} == {"C", "T"} or {allele.ref, allele.alt} == {"G", "A"}:
                value = next(score([allele])).value
                rank, other = known.rank(allele, value), plain.rank(["snv"], value)
                if rank is None:
                    continue
                found.append(rank.percentile / 100)
                raw.append(other.percentile / 100)
    assert kstest(found, "uniform").pvalue > 0.01
    assert kstest(raw, "uniform").pvalue < 1e-6


@pytest.mark.parametrize(
    ("allele", "strata"),
    [
        (Allele("c", 4, "C", "T"), ["AA[C>T]GT", "A[C>T]G"]),
        (Allele("c", 5, "G", "A"), ["AA[C>T]GT", "A[C>T]G"]),  # the other strand
        (Allele("c", 0, "C", "A"), []),  # where the contig begins
        (Allele("c", 1, "A", "C"), ["T[T>G]G"]),
        (Allele("c", 9, "A", ""), ["del1:1x4-7"]),
        (Allele("c", 4, "C", ""), ["del1:1x1"]),
        (Allele("c", 9, "", "AA"), ["ins2:1x4-7"]),
        (Allele("c", 9, "", "AC"), ["ins2:2x0"]),
        (Allele("c", 17, "GTGT", ""), ["del4:2x2-3"]),
        (Allele("c", 17, "GTGTGT", ""), ["del6:2x2-3"]),
        (Allele("c", 17, "", "GT" * 6), ["ins9-16:2x2-3"]),
        (Allele("c", 2, "AAC", "GGG"), ["mnv3"]),
        (Allele("c", 2, "AAC", "G"), ["delins3/1"]),
    ],
)
def test_strata_go_from_the_finest_to_the_coarsest(allele, strata):
    genome = HeldContigs({"c": b"CAAACGTTCAAAAACTCGTGTGTCC"})
    size = find_class(len(allele.ref), len(allele.alt))
    assert list_strata(allele, size, genome) == strata


def test_units_and_classes():
    assert [find_unit(x) for x in ("A", "AAA", "ACAC", "ACA", "ACGACG")] == [
        "A", "A", "AC", "ACA", "ACG",
    ]  # fmt: skip
    names = [find_class(*s).name for s in ((0, 9), (17, 0), (1024, 0), (1, 1), (8, 3), (20, 20))]  # type: ignore[union-attr]
    assert names == ["ins9-16", "del17-32", "del513-1024", "snv", "delins8/3", "mnv17-32"]
    assert find_class(1025, 0) is None


@pytest.mark.parametrize("sizes", [(1, 1), (1, 0), (0, 3), (2, 2), (3, 1), (0, 20), (30, 30)])
def test_draws_have_their_class_and_fit_the_genome(sizes):
    genome, size = make_genome(), find_class(*sizes)
    draws = [VariantDraws(genome, size, 1).draw(number) for number in range(200)]
    assert draws == [VariantDraws(genome, size, 1).draw(number) for number in range(200)]
    assert draws != [VariantDraws(genome, size, 2).draw(number) for number in range(200)]
    assert {len(some) for some in draws} == ({3} if sizes == (1, 1) else {1})
    for one in (one for some in draws for one in some):
        assert find_class(len(one.ref), len(one.alt)) == size
        assert genome.fetch(one.chrom, one.start, one.end).decode().upper() == one.ref
    places = [some[0].start / genome.contigs[some[0].chrom] for some in draws]
    assert kstest(places, "uniform").pvalue > 1e-3
    share = sum(some[0].chrom == "b" for some in draws) / len(draws)
    assert abs(share - 0.75) < 0.12


def test_a_genome_without_such_variants_gives_none():
    genome = HeldContigs({"c": b"NNNNNNNN"})
    assert VariantDraws(genome, SNV, 1).draw(0) == []
    few = REQUEST._replace(n=LEAST)
    known = draw_background(genome, "g", {SNV: set()}, few, make_score(genome))
    assert known.rank(Allele("c", 1, "A", "C"), 1.0) is None
    assert known.describe()["snv"]["held_out"]["ks"] is None


def test_strata_with_too_few_are_compared_with_one_another_alone():
    scores = [RandomScore(i, ["fine", "coarse"], float(i)) for i in range(LEAST - 1)]
    scores += [RandomScore(i, ["other", "coarse"], float(i)) for i in range(LEAST, 3 * LEAST)]
    scores += [RandomScore(-i, ["coarse"], -float(i)) for i in range(30)]
    ranks = ScoreRanks(scores)
    found = [ranks.rank([name, "coarse"], 5.0) for name in ("fine", "other", "none")]
    assert [one and one.stratum for one in found] == ["coarse", "other", "coarse"]
    assert [one and one.n for one in found] == [LEAST + 29, 2 * LEAST, LEAST + 29]
    assert ranks.rank(["none"], 5.0) is None
    assert ranks.rank([], 5.0) is None
    few = ScoreRanks(scores[: LEAST_OF_GROUP - 1], more={"rare": [1.0] * LEAST_OF_GROUP})
    assert few.rank(["fine", "coarse"], 5.0) is None
    assert (few.count("coarse"), few.count("rare")) == (LEAST_OF_GROUP - 1, LEAST_OF_GROUP)
    assert few.rank(["rare"], 2.0) is not None


def find_run_law(allele: Allele, genome: HeldContigs) -> tuple[float, float]:
    """A score that falls with the copies of the unit at hand, and with C before G.

    So rare kinds have scores that common ones do not have.
    """
    size = find_class(len(allele.ref), len(allele.alt))
    (*_, name) = list_strata(allele, size, genome) or [""]
    copies = 0.0 if "x" not in name else float(name.split("x")[1].split("-")[0].rstrip("+"))
    return -copies - 5 * ("[C>" in name and name.endswith("G")) + 3 * ("[T>" in name), 1.0


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (1, 1)])
def test_percentiles_are_uniform_within_every_kind_the_rare_ones_too(sizes):
    """Fresh random variants of each kind by itself, whatever the kind's own scores are."""
    genome, size = make_genome(), find_class(*sizes)
    fresh = VariantDraws(genome, size, 2)
    alleles = [one for number in range(2000) for one in fresh.draw(number)[:1]]
    kinds = find_kinds(alleles, genome)
    request = REQUEST._replace(n=1000)
    known = draw_background(genome, "g", kinds, request, make_score(genome, law=find_run_law))
    told = known.describe()[size.name]["rare"]
    if sizes == (1, 1):  # CpG is rare here
        assert told
    else:
        assert all(n <= request.least(size) == LEAST for n in told.values())
        assert min(told[f"{size.name}:1x{copies}"] for copies in ("8-11", "12-15")) > 50
    found: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    by_class: dict[str, list[float]] = {}
    plain = ScoreRanks(one._replace(strata=["all"]) for one in known.classes[size])
    scores = make_score(genome, law=find_run_law)(alleles)
    for allele, score in zip(alleles, scores, strict=True):
        rank, other = known.rank(allele, score.value), plain.rank(["all"], score.value)
        if rank is not None:
            found.setdefault(rank.stratum, []).append(rank.percentile / 100)
            counts[rank.stratum] = rank.n
            by_class.setdefault(rank.stratum, []).append(other.percentile / 100)
    tested = {name: some for name, some in found.items() if len(some) >= 30}
    assert len(tested) >= 4
    for name, some in tested.items():  # two samples: by chance 1 in 1,000 has more
        spread = math.sqrt(1 / len(some) + 1 / counts[name])
        assert kstest(some, "uniform").statistic < 1.95 * spread, name
    assert any(name in told for name in tested) or sizes == (1, 1)
    # Among all of the class they are not
    plainly = [kstest(by_class[name], "uniform").pvalue for name in tested]
    assert sorted(plainly)[1] < 1e-6


def test_a_kind_that_the_genome_hardly_has_gets_no_percentile(monkeypatch):
    monkeypatch.setattr("genodiff.variants.background.MOST_DRAWS", 300)
    rng = np.random.default_rng(3)
    letters = bytes(rng.choice(np.frombuffer(b"ACGT", np.uint8), 20_000))
    genome = HeldContigs({"c": letters[:9000] + b"G" + b"A" * 20 + b"C" + letters[9000:]})
    rare, common = (
        Allele("c", 9001, "", "A"),
        Allele("c", 500, "", "A" if letters[499] != 65 else "C"),
    )
    kinds = find_kinds([rare, common], genome)
    known = draw_background(genome, "g", kinds, REQUEST, make_score(genome, law=find_run_law))
    assert known.rank(rare, -20.0) is None
    assert known.rank(common, 0.0) is not None
    (told,) = known.describe().values()
    assert told["rare"] == {"ins1:1x16+": told["rare"]["ins1:1x16+"]}
    assert told["rare"]["ins1:1x16+"] < LEAST_OF_GROUP


def test_members_of_a_rare_kind_do_not_depend_on_what_else_is_looked_for():
    genome = make_genome()
    size = find_class(0, 1)
    draws, asked = VariantDraws(genome, size, 1), {"ins1:1x8-11": 12, "ins1:1x4-7": 7}
    both = find_rare(draws, lambda strata: strata[-1], asked, 100)
    for name, n in asked.items():
        alone = find_rare(draws, lambda strata: strata[-1], {name: n}, 100)[name]
        assert alone == both[name]
        assert len(alone) == n
        assert {list_strata(one, size, genome)[-1] for one in alone} == {name}


def test_ranks_are_as_they_are_defined():
    ranks = ScoreRanks(RandomScore(i, ["s"], float(i // 2)) for i in range(199))
    low, tied = ranks.rank(["s"], -1.0), ranks.rank(["s"], 10.0)
    assert low.percentile == pytest.approx(100 * 0.5 / 200)
    assert low.phred == pytest.approx(10 * math.log10(200))
    assert tied.percentile == pytest.approx(100 * (20 + 1.5) / 200)
    assert tied.phred == pytest.approx(-10 * math.log10(23 / 200))
    flat = ScoreRanks(RandomScore(i, ["s"], 1.0) for i in range(199)).rank(["s"], 1.0)
    assert (flat.z, flat.percentile) == (None, 50.0)
    # an n-th of random variants has the PHRED of an n-th
    share = np.mean([ranks.rank(["s"], i / 2).phred >= 10 for i in range(199)])  # type: ignore[union-attr]
    assert 0.08 <= share <= 0.1


@pytest.mark.slow
def test_what_is_cached_is_not_scored_again_and_damage_is_noticed(monkeypatch):
    monkeypatch.setattr(background, "PART", 700)
    genome, told = make_genome(), list[Allele]()
    kinds = {SNV: set[Any](), DEL1: {("del1:1x4-7",), ("del1:1x12-15",)}}

    def draw_both(seed: int = 1, n: int = 2000) -> Background:
        request = REQUEST._replace(seed=seed, n=n)
        return draw_background(genome, "g", kinds, request, make_score(genome, told))

    first = draw_both()
    assert list(first.more[DEL1]) == ["del1:1x12-15"]
    n = len(told)
    again = draw_both()
    assert (again.classes, len(told)) == (first.classes, n)
    parts = sorted(Path(cache_dir() / "backgrounds").glob("*.json"))
    assert len(parts) == 8
    parts[0].write_text(parts[0].read_text().replace('"a"', '"b"', 1))
    parts[1].write_bytes(parts[1].read_bytes()[:-20])
    repaired = draw_both()
    assert (repaired.classes, repaired.more) == (first.classes, first.more)
    assert len(told) < 2 * n
    n = len(told)
    draw_both(seed=2)
    assert len(told) > n
    n = len(told)
    kinds = {SNV: set()}
    draw_both(n=2100)  # its first parts are there: 1,400 places of 2,100
    assert len(told) - n == 3 * 700


@pytest.mark.slow
def test_the_cost_is_what_drawing_scores_and_nothing_once_it_is_cached():
    genome, told = make_genome(), list[Allele]()
    kinds = {SNV: set[Any](), DEL1: {("del1:1x4-7",), ("del1:1x8-11",)}}
    request = REQUEST._replace(n=1000)
    cost = count_background(genome, "g", kinds, request)
    found = draw_background(genome, "g", kinds, request, make_score(genome, told))
    assert cost.rare == {"del1": len(found.more[DEL1]["del1:1x8-11"])}
    # An SNV's place has three ALTs and takes one window, as a deletion of one base does
    assert cost.windows == {
        "snv": sum(one.kind == "snv" for one in told) // 3,
        "del1": sum(one.kind == "del" for one in told),
    }
    assert cost.windows["del1"] == 1000 + cost.rare["del1"]
    assert count_background(genome, "g", kinds, request) == ({}, {"snv": 0, "del1": 0})


def test_parts_do_not_change_what_is_drawn(monkeypatch):
    genome = make_genome()
    whole = draw(genome, DEL1)
    monkeypatch.setattr(background, "PART", 333)
    assert draw(genome, DEL1).classes == whole.classes


def test_costs_grow_with_the_windows_of_a_score():
    windows = {
        size: count_windows(find_class(*size), "auto")  # type: ignore[arg-type]
        for size in ((1, 1), (1, 0), (2, 0), (3, 3), (2, 3), (8, 0), (50, 0))
    }
    assert windows == {
        (1, 1): 1, (1, 0): 1, (2, 0): 3, (3, 3): 13, (2, 3): 10, (8, 0): 64, (50, 0): 104,
    }  # fmt: skip
    assert REQUEST.count(find_class(2, 0)) == 666  # type: ignore[arg-type]
    assert REQUEST.count(find_class(50, 0)) == LEAST  # type: ignore[arg-type]


def test_calibration_counts_every_held_out_variant():
    rng = np.random.default_rng(1)
    scores = [RandomScore(i, ["s"], x) for i, x in enumerate(rng.standard_normal(2000))]
    told = describe_calibration(scores)
    assert sum(told["held_out"]["bins"]) == told["held_out"]["n"] == 1000
    assert told["held_out"]["ks"] < 0.08
    assert told["quantiles"][50] == pytest.approx(0, abs=0.1)
    shifted = [one._replace(value=one.value + 3 * (one.number % 2)) for one in scores]
    assert describe_calibration(shifted)["held_out"]["ks"] > 0.5


def test_off_on_and_numbers():
    assert [count_places(x) for x in ("off", "on", "500", 500)] == [None, 10_000, 500, 500]
    for text in ("none", "-5", "99", "1.5", "", "1e4"):
        with pytest.raises(UsageError, match="--background"):
            count_places(text)
