"""Scores of variants of a genome: windows, streams, sharing, and what has no score."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tiny_run import SEQ_LEN, make_allele

from genodiff.alphabet import DNA, reverse_complement
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear
from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.runs.model import load_model
from genodiff.scoring import shared_sites
from genodiff.scoring.allele_score import AlleleScore
from genodiff.scoring.masked_reader import MaskedReader, open_reader
from genodiff.scoring.methods import ScoreOptions
from genodiff.scoring.shared_sites import Spacing, keep_spacing, measure_spacing, share_window
from genodiff.scoring.variant_scores import Scorer, compare_contexts, score_alleles
from genodiff.scoring.variant_windows import HeldContigs, UnscorableError, cut_window, place_window


@pytest.fixture(scope="module")
def model(run):
    return load_model(run)


@pytest.fixture(scope="module")
def genome(run):
    return Genome(run.parent / "genome.fa")


def make_alleles(genome: Genome, n: int = 24) -> list[Allele]:
    rng, alleles = random.Random(1), []
    for number in range(n):
        start, width = rng.randrange(100, 2900), rng.randrange(4)
        alt = None if number % 2 else "" if width > 1 else "GAT"
        alleles.append(make_allele(genome, start, 1 if number % 2 else width, alt))
    return alleles


def test_a_variant_stands_in_the_middle_and_at_an_edge_as_near_as_it_can():
    assert place_window(500, 501, 1, 101, 1000) == (450, 551)
    assert place_window(500, 501, 1, 100, 1000) == (451, 550)  # the same on either side
    assert place_window(3, 4, 1, 101, 1000) == (0, 101)
    assert place_window(998, 999, 1, 101, 1000) == (899, 1000)
    assert place_window(20, 21, 1, 101, 50) == (0, 50)
    assert place_window(500, 500, 10, 100, 1000) == (455, 545)  # an insertion of ten
    assert place_window(500, 590, 90, 100, 1000) == (475, 615)  # half a context of flanks


def test_spellings_share_their_flanks():
    held = HeldContigs({"c": b"ACGTacgtNNACGTACGT"})
    cut = cut_window(held, DNA, [Allele("c", 4, "AC", "T")], 100)
    assert DNA.decode(cut.pair.ref) == "ACGTACGTNNACGTACGT"
    assert DNA.decode(cut.pair.alt) == "ACGTTGTNNACGTACGT"
    both = [Allele("c", 14, "A", ""), Allele("c", 1, "C", "CC")]
    pair = cut_window(held, DNA, both, 100).pair
    assert DNA.decode(pair.alt) == "ACCGTACGTNNACGTCGT"
    assert np.flatnonzero(pair.ref_span).tolist() == [1, 14]
    assert np.flatnonzero(pair.alt_span).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("alleles", "reason"),
    [
        ([Allele("x", 0, "A", "C")], "unknown_contig"),
        ([Allele("c", 17, "TT", "C")], "outside_contig"),
        ([Allele("c", 0, "C", "T")], "ref_mismatch"),
        ([Allele("c", 8, "N", "T")], "ambiguous_base"),
        ([Allele("c", 0, "", "A" * 1025)], "too_long"),
        ([Allele("c", 0, "AC", "T"), Allele("c", 1, "C", "G")], "overlap"),
    ],
)
def test_what_cannot_be_scored_has_a_reason(alleles, reason):
    held = HeldContigs({"c": b"ACGTacgtNNACGTACGT"})
    with pytest.raises(UnscorableError) as fault:
        cut_window(held, DNA, alleles, 100)
    assert fault.value.reason == reason


def test_every_variant_has_a_score_or_a_reason_in_its_place(model, genome):
    good, bad = make_allele(genome, 900), Allele("c9", 5, "A", "C")
    found = list(score_alleles(model, genome, [bad, good, bad, [good, make_allele(genome, 950)]]))
    assert [one.flags for one in found] == [
        ("not_scored", "unknown_contig"), (), ("not_scored", "unknown_contig"), (),
    ]  # fmt: skip
    assert [one.value is None for one in found] == [True, False, True, False]
    assert found[1].method == "llr"
    assert found[3].method == "chain"
    assert found[3].value != found[1].value


def test_kinds_and_lengths_choose_the_method(model, genome):
    alleles = [
        make_allele(genome, 900),
        *(make_allele(genome, 900, n, alt) for n, alt in ((0, "ACGT"), (8, ""), (9, ""))),
    ]
    found = list(score_alleles(model, genome, alleles, ScoreOptions(se=5.0)))
    assert [one.method for one in found] == ["llr", "chain", "chain", "nelbo"]
    assert [one.se == 0 for one in found] == [True, True, False, False]
    assert all(one.end - one.start >= SEQ_LEN // 2 for one in found)


def test_order_batches_and_parts_of_a_file_change_no_bit(model, genome):
    alleles = make_alleles(genome)
    whole = list(score_alleles(model, genome, alleles))
    back = list(score_alleles(model, genome, alleles[::-1], ScoreOptions(batch_size=3)))
    assert back[::-1] == whole
    parts = [one for i in (0, 1) for one in score_alleles(model, genome, alleles[i::2])]
    assert sorted(parts, key=str) == sorted(whole, key=str)


def test_the_other_strand_of_a_genome_scores_the_same(model):
    rng = np.random.default_rng(3)
    letters = bytes(rng.choice(list(b"ACGT"), 300).astype(np.uint8))
    held = HeldContigs({"c": letters})
    turned = HeldContigs({"c": bytes(reverse_complement(letters))})
    for start, n, alt in ((150, 1, "A"), (150, 3, "TTG"), (20, 2, "GATCA")):
        ref = letters[start : start + n].decode()
        one = Allele("c", start, ref, "C" if ref == alt else alt)
        other = Allele(
            "c", 300 - start - n, str(reverse_complement(one.ref)), str(reverse_complement(one.alt))
        )
        options = ScoreOptions(exact=True)
        (first,) = score_alleles(model, held, [one], options)
        (second,) = score_alleles(model, turned, [other], options)
        assert first.value == second.value


def share(reader: MaskedReader, genome: Any, sites: Sequence[int], spacing: int) -> list[Any]:
    return [share_window(genome, DNA, reader, "c1", site, SEQ_LEN, spacing) for site in sites]


def test_sites_of_a_remainder_share_a_window(model, genome):
    reader = open_reader(model)
    one, other, apart = share(reader, genome, [1032, 1040, 1041], 8)
    assert one.window.tobytes() == other.window.tobytes() != apart.window.tobytes()
    assert one.find_row(1032) + 1 == other.find_row(1040)
    assert (one.start, one.end) == (1024 - 16, 1024 + 48)
    assert (one.window == DNA.mask_id).sum() == 4
    for site in (0, 5999 - 60):  # contigs' edges
        (edge,) = share(reader, genome, [site], 8)
        assert edge.end - edge.start == SEQ_LEN
        assert edge.window[site - edge.start] == DNA.mask_id


def test_shared_scores_save_evaluations_and_stay_near(model, genome):
    alleles = [
        Allele("c1", start, ref, alt)
        for start in range(1024, 1088)
        for ref in (genome.fetch("c1", start, start + 1).decode().upper(),)
        for alt in "ACGT"
        if alt != ref
    ]
    found, evaluations = {}, {}
    for spacing in (None, Spacing(8, 0.0, 0.0, 0)):
        reader = open_reader(model)
        scorer = Scorer(reader, DNA, genome, ScoreOptions(), SEQ_LEN, spacing)
        found[spacing] = [one.value for one in scorer.score(alleles)]
        evaluations[spacing] = reader.evaluations
    assert list(evaluations.values()) == [64, 16]
    alone, shared = (np.array(one, float) for one in found.values())
    assert np.corrcoef(alone, shared)[0, 1] > 0.9
    assert not np.array_equal(alone, shared)


@pytest.mark.parametrize("where", [0, 1, 900, 5999 - 1])
def test_sites_that_are_read_together_score_as_the_definition(model, genome, where):
    """Also at the edges of a contig, alone and in company: one window on each strand."""
    ref = genome.fetch("c1", where, where + 1).decode().upper()
    alleles = [Allele("c1", where, ref, alt) for alt in "ACGT" if alt != ref]
    scorer = Scorer(open_reader(model), DNA, genome, ScoreOptions(), SEQ_LEN)
    together = [one.value for one in scorer.score([*alleles, *make_alleles(genome, 3)])]
    assert scorer.reader.evaluations <= 1 + 3 * 15
    for allele, value in zip(alleles, together, strict=False):
        (alone,) = Scorer(open_reader(model), DNA, genome, ScoreOptions(), SEQ_LEN).score([allele])
        assert alone.value == value
        pair = cut_window(genome, DNA, [allele], SEQ_LEN).pair
        xt = torch.from_numpy(np.where(pair.ref_span, DNA.mask_id, pair.ref).astype(np.int64))
        complement = torch.tensor(DNA.complement)
        ids = [int(one[pair.ref_span][0]) for one in (pair.ref, pair.alt)]
        at = int(np.flatnonzero(pair.ref_span)[0])
        with torch.inference_mode():
            given = model.backbone(xt[None])[0, at]
            other = model.backbone(complement[xt.flip(0)][None])[0, len(xt) - 1 - at]
        naive = given[ids[1]] - given[ids[0]]
        if not model.backbone.paired:
            turned = other[complement[ids]]
            naive = (naive + turned[1] - turned[0]) / 2
        assert value == pytest.approx(float(naive), abs=1e-6)


def test_a_spacing_is_taken_where_company_says_nothing(genome):
    def make_denoiser(reach: int) -> Any:
        """Logits that hear what is masked within `reach` bases."""

        def denoise(xt: Any, sigma: Any) -> Any:
            window = np.ones(2 * reach + 1)
            heard = [np.convolve(row, window, "same") for row in (xt == DNA.mask_id).numpy()]
            logits = np.zeros((*xt.shape, 16))
            logits[..., 7] = np.stack(heard)
            return torch.from_numpy(logits)

        return denoise

    process = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
    readers = [MaskedReader(make_denoiser(reach), process) for reach in (3, 15, 40, 70)]
    found = [measure_spacing(reader, DNA, genome, 256) for reader in readers]
    assert [one and one.bases for one in found] == [4, 16, 42, None]
    assert all(one is None or one.worst <= shared_sites.TOLERANCE for one in found)
    assert all(one is None or one.sites == shared_sites.SITES for one in found)
    # Every site of this network moves, so the first few end it, each read alone and shared
    assert readers[-1].evaluations == 2 * 4


def test_batches_are_sized_by_bases_unless_a_size_is_given():
    sizes: list[int] = []

    def denoise(xt: Any, sigma: Any) -> Any:
        sizes.append(len(xt))
        return torch.zeros(*xt.shape, 16)

    process = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
    ids = np.random.default_rng(1).integers(7, 11, (40, 1024)).astype(np.uint8)
    ids[:, 500] = DNA.mask_id
    MaskedReader(denoise, process).read(list(ids))
    assert sizes == [32, 8]
    sizes.clear()
    MaskedReader(denoise, process, batch_size=16).read(list(ids))
    assert sizes == [16, 16, 8]
    sizes.clear()
    MaskedReader(denoise, process).read([np.repeat(ids[0], 40), np.repeat(ids[1], 40)])
    assert sizes == [1, 1]


def test_a_score_that_moves_with_its_context_is_noted():
    def score(value: float | None, se: float = 0.0) -> AlleleScore:
        return AlleleScore(value, se, "llr", 0, 9, 1)

    assert compare_contexts(score(5.0), score(5.4)).flags == ()
    assert compare_contexts(score(5.0), score(5.6)).flags == ("moves_with_context",)
    assert compare_contexts(score(0.01), score(0.09)).flags == ()
    assert compare_contexts(score(5.0, 1.0), score(6.0, 1.0)).flags == ()
    assert compare_contexts(score(5.0), score(5.6)).doubled == 5.6
    assert compare_contexts(score(None), score(None)) == score(None)


def test_double_context_scores_twice(model, genome):
    alleles = make_alleles(genome, 4)
    options = ScoreOptions(exact=True)
    once = list(score_alleles(model, genome, alleles, options))
    twice = list(score_alleles(model, genome, alleles, ScoreOptions(exact=True, context="2x")))
    wide = score_alleles(model, genome, alleles, ScoreOptions(exact=True, context=2 * SEQ_LEN))
    assert [one.value for one in twice] == [one.value for one in once]
    assert [one.doubled for one in twice] == [one.value for one in wide]


def test_memory_does_not_grow_with_the_number(model, genome):
    """Scores come out before all variants have been read."""
    allele, read = make_allele(genome, 900), 0

    def endless() -> Any:
        nonlocal read
        while True:
            read += 1
            yield allele

    scores = score_alleles(model, genome, endless(), ScoreOptions(exact=True))
    assert next(scores).value is not None
    assert read <= 4096


def test_a_spacing_is_measured_once_and_each_time_where_it_cannot_be_kept(tmp_path, monkeypatch):
    asked: list[str] = []

    def keep(name: str, found: Spacing | None) -> Spacing | None:
        return keep_spacing({"model": name}, lambda: asked.append(name) or found)

    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    spacing = Spacing(32, 1e-5, 4e-4, 32)
    assert [keep("a", spacing), keep("b", None), keep("a", None), keep("b", spacing)] == [
        spacing, None, spacing, None,
    ]  # fmt: skip
    assert asked == ["a", "b"]
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "file"))
    assert [keep("a", spacing), keep("a", None)] == [spacing, None]
    assert asked == ["a", "b", "a", "a"]
