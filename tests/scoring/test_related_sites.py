"""Scores of sites with relatives: one pass for a window's sites, beside each masked by itself."""

from dataclasses import replace

import numpy as np
import pytest

import genodiff
from genodiff.alphabet import DNA
from genodiff.io.variants import Allele
from genodiff.memory.profiles import ProfileScores
from genodiff.memory.spellings import BOUND, compare_spellings
from genodiff.memory.tree import measure_change
from genodiff.models.opening import open_language
from genodiff.runs.related_backbone import RelatedBackbone
from genodiff.scoring.allele_score import AlleleScore
from genodiff.scoring.masked_reader import open_reader
from genodiff.scoring.methods import ScoreOptions
from genodiff.scoring.methods.profiles import SECONDS
from genodiff.scoring.naive_variants import naive_headcount, naive_llr
from genodiff.scoring.span_scores import run_steps
from genodiff.scoring.variant_scores import score_alleles, start_score
from genodiff.scoring.variant_windows import HeldContigs, cut_window
from tests.tiny_run import SEQ_LEN, differ, genome_text, split_contigs

TURNED = str.maketrans("ACGT", "TGCA")


TEXT = {name: x.upper() for name, x in split_contigs(genome_text()).items()}
GENOME = HeldContigs({name: text.encode() for name, text in TEXT.items()})


def exchange(contig: str, start: int) -> Allele:
    """A transition of one base."""
    ref = TEXT[contig][start]
    return Allele(contig, start, ref, "GTAC"["ACGT".index(ref)])


SITES = [exchange("c1", at) for at in range(2000, 2200, 3)] + [exchange("c2", 0)]
SITES += [exchange("c4", len(TEXT["c4"]) - 1)]


@pytest.fixture(scope="module")
def model(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("related_sites")
    for name, share, seed in (("near", 0.12, 2), ("far", 0.2, 3)):
        (folder / f"{name}.fa").write_text(differ(genome_text(), share, seed))
    return open_language(run, "cpu", [folder / "near.fa", folder / "far.fa"])


@pytest.fixture(scope="module")
def ask(model):
    def score(
        alleles: list[Allele], genome: HeldContigs = GENOME, **how: object
    ) -> list[AlleleScore]:
        options = ScoreOptions(**{"method": "llr", **how})  # type: ignore[arg-type]
        return list(score_alleles(model, genome, alleles, options))

    return score


def take(found: list[AlleleScore]) -> tuple[np.ndarray, np.ndarray]:
    """The values and the votes."""
    return np.array([x.value for x in found], float), np.array([x.votes for x in found], float)


@pytest.mark.slow
def test_exact_is_the_network_with_relatives_at_a_masked_site(model, ask):
    reader = open_reader(model)
    for allele, found in zip(SITES, ask(SITES, exact=True), strict=True):
        pair = cut_window(GENOME, DNA, [allele], SEQ_LEN).pair
        expected = naive_llr(model.backbone, model.diffusion, pair)
        assert found.value == pytest.approx(expected, abs=1e-4)
        votes = run_steps(start_score(reader, pair, ScoreOptions(method="votes")), reader)
        assert found.votes == pytest.approx(votes.value, abs=1e-6)


def test_a_network_of_paired_strands_is_read_once(run):
    """Of both strands it says the same, so the second reading would be the same numbers."""
    model = open_language(run, "cpu")
    reader = open_reader(model)
    assert model.backbone.paired
    assert not reader.both_strands
    ids = cut_window(GENOME, DNA, SITES[:1], SEQ_LEN).pair.ref.copy()
    ids[[5, 20, 41]] = DNA.mask_id
    turned = np.ascontiguousarray(reader.complement[ids[::-1]])
    given, other = reader.read([ids, turned])
    np.testing.assert_allclose(given, other[::-1, ::-1], atol=1e-5)


def test_one_pass_for_all_sites_is_near_to_it(ask):
    """In windows of 64 bases; in those of 1,024 it is much nearer (benchmarks/relatives)."""
    fast, exact = take(ask(SITES)), take(ask(SITES, exact=True))
    for one, other in zip(fast, exact, strict=True):
        assert np.corrcoef(one, other)[0, 1] > 0.9
        assert np.median(np.abs(one - other)) < 0.2 * other.std()


def test_company_and_order_change_no_bit(ask):
    together = take(ask(SITES))
    turned = take(ask(SITES[::-1]))
    some = take(ask(SITES[4:9]))
    for one, other, few in zip(together, turned, some, strict=True):
        np.testing.assert_array_equal(one, other[::-1])
        np.testing.assert_array_equal(one[4:9], few)


def test_the_other_strand_has_the_same_exact_score(ask):
    other = HeldContigs({n: x.translate(TURNED)[::-1].encode() for n, x in TEXT.items()})
    some = SITES[:8]
    turned = [
        Allele(
            x.chrom,
            len(TEXT[x.chrom]) - 1 - x.start,
            x.ref.translate(TURNED),
            x.alt.translate(TURNED),
        )
        for x in some
    ]
    there, back = ask(some, exact=True), ask(turned, other, exact=True)
    assert [(x.value, x.votes) for x in there] == [(x.value, x.votes) for x in back]


def test_both_read_outs_are_told_of_one_base_alone(ask):
    deletion = Allele("c1", 2010, TEXT["c1"][2010:2013], "")
    one, none = ask([SITES[0], deletion])
    assert one.votes is not None
    assert (none.value is None, none.votes) == (False, None)
    (voted,) = ask([SITES[0]], method="votes")
    assert voted.value == voted.votes == one.votes


def test_a_headcount_is_that_of_relatives_one_by_one(ask, model):
    relatives = model.backbone.relatives
    assert relatives is not None
    exact = ask(SITES[:20], method="headcount", exact=True)
    for allele, found in zip(SITES, exact, strict=False):
        pair = cut_window(GENOME, DNA, [allele], SEQ_LEN).pair
        codes = open_reader(model).columns(pair.ref).tolist()
        site, alt = int(pair.ref_span.argmax()), "ACGT".index(allele.alt)
        assert codes[site] == "ACGT".index(allele.ref)
        expected = naive_headcount(relatives, codes, site, alt)
        assert found.value == pytest.approx(expected, abs=1e-6)
        assert found.method == "headcount"
    fast, votes = take(ask(SITES, method="headcount")), take(ask(SITES))[1]
    np.testing.assert_array_equal(fast[1], votes)  # votes stand beside it all the same
    assert np.corrcoef(fast[0][:20], take(exact)[0])[0, 1] > 0.9
    assert (fast[0] != votes).all()


def test_profiles_are_those_of_the_columns_around_a_masked_site(ask, model):
    relatives = model.backbone.relatives
    numbers = model.backbone.fit_profiles()
    scores = ProfileScores(relatives.columns.tree, relatives.columns.gc, numbers)
    exact = ask(SITES[:20], method="profiles", exact=True)
    for allele, found in zip(SITES, exact, strict=False):
        pair = cut_window(GENOME, DNA, [allele], SEQ_LEN).pair
        codes = open_reader(model).columns(pair.ref)
        site, alt = int(pair.ref_span.argmax()), "ACGT".index(allele.alt)
        hidden = np.where(pair.ref_span | (codes < 0), 4, codes).astype(np.uint8)[None]
        over = relatives.align(hidden)
        change, logs = (
            measure_change(over, hidden)[0, [site]],
            scores.weigh(over, hidden)[0, [site]],
        )
        given = over[:, 0, [site]], np.array([codes[site]]), change
        expected = scores.compare(logs, *given)[0, alt]
        assert found.value == pytest.approx(expected, abs=1e-6)
    fast = take(ask(SITES, method="profiles"))[0]
    assert np.corrcoef(fast[:20], take(exact)[0])[0, 1] > 0.9


def test_profiles_score_indels_by_all_alignments(ask, model):
    """Frames aside, it is the mean over genomes of the difference of both spellings."""
    at = 2050
    some = [
        Allele("c1", at, TEXT["c1"][at : at + 4], TEXT["c1"][at]),
        Allele("c1", at, TEXT["c1"][at], TEXT["c1"][at] + "ACG"),
        Allele("c1", at, TEXT["c1"][at : at + 2], TEXT["c1"][at]),
    ]
    found = ask(some, method="profiles")
    assert [one.method for one in found] == ["profiles"] * 3
    for allele, one in zip(some, found, strict=True):
        cut = cut_window(GENOME, DNA, [allele], SEQ_LEN)
        ids = cut.pair.orient(open_reader(model).complement)
        codes = [open_reader(model).columns(x).astype(np.uint8) for x in (ids.ref, ids.alt)]
        compared = compare_spellings(model.backbone.relatives, *codes)
        weights = np.array(model.backbone.votes.weights)
        mean = compared.log_ratio.clip(-BOUND, BOUND) @ weights / weights.sum()
        assert one.value <= mean
        assert one.value > mean - 25
    turned = [x.value for x in ask(some[:1], GENOME, method="profiles")]
    assert turned == [found[0].value]


def test_with_relatives_auto_is_profiles_for_every_variant(ask, run):
    insertion = Allele("c1", 2050, "", "ACGTACGTAC")
    some = [SITES[0], insertion, [SITES[0], SITES[3]]]
    found = ask(some, method="auto")
    assert found == ask(some, method="profiles")
    assert [one.method for one in found] == ["profiles"] * 3
    alone = score_alleles(open_language(run, "cpu"), GENOME, some, ScoreOptions(se=9.0))
    assert [one.method for one in alone] == ["llr", "nelbo", "chain"]


@pytest.mark.slow
def test_a_plan_counts_the_fit_of_profiles_and_makes_none(tmp_path, run, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    (tmp_path / "genome.fa").write_text(genome_text())
    (tmp_path / "near.fa").write_text(differ(genome_text(), 0.12, 2))
    one = SITES[0]
    (tmp_path / "in.tsv").write_text(
        f"chrom\tpos\tref\talt\n{one.chrom}\t{one.start + 1}\t{one.ref}\t{one.alt}\n"
    )

    def score(**how: object) -> dict[str, object]:
        given = {"fasta": tmp_path / "genome.fa", "relatives": [tmp_path / "near.fa"]}
        return genodiff.score(run, tmp_path / "in.tsv", device="cpu", force=True,
                              out=tmp_path / "out.tsv", **given, **how)  # type: ignore[arg-type]  # fmt: skip

    first = score(plan=True)
    assert first["seconds_of_relatives"] > SECONDS
    score(method="votes")
    fits = set((tmp_path / "cache" / "relatives").iterdir())
    second = score(plan=True)
    assert second["seconds_of_relatives"] == SECONDS
    assert "classes of positions to fit" in str(second["relatives"])
    assert set((tmp_path / "cache" / "relatives").iterdir()) == fits
    assert score(plan=True, method="votes").get("relatives") is None
    score()
    assert "seconds_of_relatives" not in score(plan=True)
    assert "profiles" in (tmp_path / "out.tsv").read_text()


def test_profiles_are_fitted_when_they_are_requested_and_then_cached(model, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("fitted")

    related = model.backbone
    known = related.fit_profiles()
    monkeypatch.setattr("genodiff.runs.related_genome.fit_profiles", refuse)
    assert related.fit_profiles() == known
    monkeypatch.setattr(type(related), "_profiles", property(refuse))
    for method in ("llr", "votes", "headcount"):
        list(score_alleles(model, GENOME, SITES[:2], ScoreOptions(method=method)))
    with pytest.raises(AssertionError, match="fitted"):
        list(score_alleles(model, GENOME, SITES[:2], ScoreOptions(method="profiles")))


@pytest.mark.parametrize("exact", [False, True])
def test_a_headcount_alone_measures_how_quickly_places_change(ask, monkeypatch, exact):
    def refuse(*_: object) -> None:
        raise AssertionError("measured")

    monkeypatch.setattr(RelatedBackbone, "measure_change", refuse)
    for method in ("llr", "votes"):
        assert ask(SITES[:2], method=method, exact=exact)[0].votes is not None
    with pytest.raises(AssertionError, match="measured"):
        ask(SITES[:2], method="headcount", exact=exact)


def test_votes_of_a_base_that_a_relative_has_are_more(ask, model):
    near = differ(genome_text(), 0.12, 2).upper().splitlines()[1]
    sites = [i for i in range(2000, 2600) if near[i] != TEXT["c1"][i] != "N"][:20]
    seen = [Allele("c1", i, TEXT["c1"][i], near[i]) for i in sites]
    others = [replace(x, alt=next(b for b in "ACGT" if b not in (x.ref, x.alt))) for x in seen]
    values, votes = (a - b for a, b in zip(take(ask(seen)), take(ask(others)), strict=True))
    assert (votes > 0).mean() > 0.9
    assert values.mean() > 1
