"""Scores of haplotypes: against a law that can be summed, and beside those of their variants."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from worlds import World, uneven_chain

from genodiff.alphabet import DNA
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear
from genodiff.io.phasing import CopyCall, PhasedHaplotype, PhasedRecord
from genodiff.io.variants import Allele, VariantRecord
from genodiff.scoring.allele_score import AlleleScore
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.methods import ScoreOptions
from genodiff.scoring.variant_scores import Scorer
from genodiff.scoring.variant_windows import HeldContigs, cut_window
from genodiff.variants.haplotype_scores import HaplotypeWalk, count_haplotypes, find_span
from genodiff.variants.scored_variants import CopyScore, ScoredRecord

CONTEXT = 24
LETTERS = "".join(np.random.default_rng(5).choice(list("ACGT"), 60))
CHAIN = uneven_chain(60)


def make_scorer(letters: str, method: Any = "chain") -> Scorer:
    """An exact denoiser of a Markov chain, on one contig."""
    reader = MaskedReader(CHAIN.denoiser, MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets))
    genome = HeldContigs({"chr1": letters.encode()})
    return Scorer(reader, DNA, genome, ScoreOptions(method=method, se=9.0, exact=True), CONTEXT)


def allele(start: int, ref: int, alt: str) -> Allele:
    return Allele("chr1", start, LETTERS[start : start + ref], alt)


def other(start: int) -> str:
    return "ACGT"[("ACGT".index(LETTERS[start]) + 2) % 4]


def swap(alleles: Sequence[Allele]) -> tuple[str, list[Allele]]:
    """The genome with the haplotype in it, and the haplotype that leads back."""
    letters, back, grown = LETTERS, [], 0
    for one in alleles:
        start = one.start + grown
        letters = letters[:start] + one.alt + letters[start + len(one.ref) :]
        back.append(Allele("chr1", start, one.alt, one.ref))
        grown += len(one.alt) - len(one.ref)
    return letters, back


HAPLOTYPES = {
    "two SNVs": [allele(30, 1, other(30)), allele(32, 1, other(32))],
    "neighbours": [allele(30, 1, other(30)), allele(31, 1, other(31))],
    "three": [allele(i, 1, other(i)) for i in (25, 30, 33)],
    "an SNV and a deletion": [allele(28, 1, other(28)), allele(31, 2, "")],
    "an insertion and an SNV": [allele(28, 0, "GT"), allele(30, 1, other(30))],
    "at the edge": [allele(0, 1, other(0)), allele(3, 1, other(3))],
}


@pytest.mark.parametrize("name", HAPLOTYPES)
def test_chain_is_the_log_ratio_of_the_enumeration(name):
    alleles = HAPLOTYPES[name]
    scorer = make_scorer(LETTERS)
    (found,) = scorer.score([alleles])
    pair = cut_window(scorer.genome, DNA, alleles, CONTEXT).pair
    wanted = CHAIN.log_p_span(pair.alt, pair.alt_span) - CHAIN.log_p_span(pair.ref, pair.ref_span)
    assert found.value == pytest.approx(wanted, abs=1e-6)
    assert (found.se, found.flags) == (0, ())
    # In this world a base between two spans parts them, and then their scores add up
    parts = sum(one.value or 0 for one in scorer.score(alleles))
    assert (abs(parts - wanted) < 1e-6) == (name != "neighbours")


def test_distant_variants_of_one_haplotype_are_heard_together():
    """A law of 6 bases in which all depend on all: the parts do not add up to the haplotype."""
    sequences = torch.tensor(list(itertools.product(DNA.targets, repeat=6)))
    weights = np.random.default_rng(2).dirichlet(np.full(len(sequences), 0.5))
    world = World(sequences, torch.from_numpy(weights), DNA.targets, DNA.mask_id, 16)
    process = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
    reader = MaskedReader(world.denoiser, process)
    genome = HeldContigs({"chr1": b"ACGTCA"})
    scorer = Scorer(reader, DNA, genome, ScoreOptions(method="chain", exact=True), 6)

    def log_p_of(letters: str) -> float:
        ids = torch.from_numpy(DNA.encode(letters.encode()).astype(np.int64))
        return math.log(float(world.p[(sequences == ids).all(1)]))

    for alts in ({0: "G", 5: "T"}, {1: "A", 2: "T", 4: "G"}):
        alleles = [Allele("chr1", i, "ACGTCA"[i], letter) for i, letter in alts.items()]
        (found,) = scorer.score([alleles])
        wanted = log_p_of("".join(alts.get(i, c) for i, c in enumerate("ACGTCA")))
        wanted -= log_p_of("ACGTCA")
        assert found.value == pytest.approx(wanted, abs=1e-6)
        alone = ["ACGTCA"[:i] + letter + "ACGTCA"[i + 1 :] for i, letter in alts.items()]
        parts = sum(log_p_of(one) - log_p_of("ACGTCA") for one in alone)
        assert abs(parts - wanted) > 0.1


@pytest.mark.few(5)
@pytest.mark.parametrize("name", HAPLOTYPES)
@pytest.mark.parametrize("method", ["chain", "nelbo"])
def test_the_way_back_has_the_opposite_score(name, method):
    there, back = HAPLOTYPES[name], swap(HAPLOTYPES[name])
    (one,) = make_scorer(LETTERS, method).score([there])
    (two,) = make_scorer(back[0], method).score([back[1]])
    assert one.value is not None
    assert (two.value, two.se) == (-one.value, one.se)


def snv_record(pos: int, *samples: str) -> VariantRecord:
    rest = (".", ".", ".", "GT", *samples)
    return VariantRecord(pos, "chr1", pos, ".", LETTERS[pos - 1], (other(pos - 1),), rest)


def phased(*rows: tuple[int, dict[tuple[int, int], PhasedHaplotype]]) -> list[PhasedRecord]:
    """Records at these positions, each with haplotypes by sample and copy, of two samples."""
    return [
        PhasedRecord(
            snv_record(pos),
            tuple(
                tuple(
                    CopyCall(int((sample, copy) in some), some.get((sample, copy)))
                    for copy in (0, 1)
                )
                for sample in (0, 1)
            ),
        )
        for pos, some in rows
    ]


def haplotype(*positions: int, **more: bool) -> PhasedHaplotype:
    some = tuple(allele(pos - 1, 1, other(pos - 1)) for pos in positions)
    return PhasedHaplotype(alleles=some, closed=True, **more)


def own(value: float) -> AlleleScore:
    return AlleleScore(value, 0.5, "llr", 0, 9, 1, ("noted",))


def joint(value: float) -> AlleleScore:
    return AlleleScore(value, 0.0, "chain", 0, 9, 6)


def attach(
    walk: HaplotypeWalk, rows: Sequence[PhasedRecord], values: Sequence[float], *found: AlleleScore
) -> list[list[CopyScore]]:
    """The copies of each record's one ALT, whose own scores are `values`."""
    scored = [
        ScoredRecord(row.record, (), (own(value),)) for row, value in zip(rows, values, strict=True)
    ]
    attached = list(walk.attach(scored, iter(found)))
    assert [one.record for one in attached] == [one.record for one in rows]
    return [list(one.copies[0]) for one in attached]


def test_a_haplotype_of_one_variant_has_its_score_and_others_one_for_all_copies():
    ab, same, single = haplotype(5, 9), haplotype(5, 9), haplotype(20, incomplete=True)
    rows = phased(
        (5, {(0, 0): ab, (1, 1): same}), (9, {(0, 0): ab, (1, 1): same}), (20, {(0, 1): single})
    )
    assert list(HaplotypeWalk(rows).alleles()) == [ab.alleles]
    walk = HaplotypeWalk(rows)
    found = attach(walk, rows, [1.0, 2.0, 3.0], joint(-4.0))
    told = [
        [(c.sample, c.copy, c.first, c.last, c.variants, c.score) for c in some] for some in found
    ]
    assert told[0] == told[1] == [(0, 0, 5, 9, 2, joint(-4.0)), (1, 1, 5, 9, 2, joint(-4.0))]
    alone = own(3.0)._replace(flags=("noted", "incomplete"))
    assert told[2] == [(0, 1, 20, 20, 1, alone)]
    assert walk.tally.describe() == {
        "alleles": 5, "scored": 5, "unscored": {}, "joint": 1, "evaluations": 6,
    }  # fmt: skip


def test_what_has_no_haplotype_score_has_its_reason():
    clash = haplotype(5, 9, overlaps=True)
    rows = phased((5, {(0, 0): clash}), (9, {(0, 0): clash}))
    rows[1] = rows[1]._replace(calls=((CopyCall(1, clash), CopyCall(1, None, "unphased")), ()))
    walk = HaplotypeWalk(rows)
    found = attach(walk, rows, [1.0, 2.0])
    assert [[c.score.flags for c in some] for some in found] == [
        [("overlap",)], [("overlap",), ("unphased",)],
    ]  # fmt: skip
    assert walk.tally.describe()["unscored"] == {"overlap": 2, "unphased": 1}


def test_parts_of_a_file_have_the_haplotypes_that_reach_into_them():
    ab, bc = haplotype(5, 9, 20), haplotype(9, 20)
    rows = phased((5, {(0, 0): ab}), (9, {(0, 0): ab, (0, 1): bc}), (20, {(0, 0): ab, (0, 1): bc}))
    scores = {ab.alleles: joint(-1.0), bc.alleles: joint(-2.0)}

    def run(first: int, last: int) -> tuple[list[Any], dict[str, Any]]:
        found = [scores[one] for one in HaplotypeWalk(rows, first, last).alleles()]
        walk = HaplotypeWalk(rows, first, last)
        told = attach(walk, rows[first:last], [1.0, 2.0, 3.0][first:last], *found)
        return told, walk.tally.describe()

    whole, counts = run(0, 3)
    for cuts in ((0, 1, 2, 3), (0, 2, 3), (0, 0, 3)):
        parts = [run(*cut) for cut in itertools.pairwise(cuts)]
        assert [some for told, _ in parts for some in told] == whole
        for key in ("alleles", "scored", "joint", "evaluations"):
            assert sum(told[key] for _, told in parts) == counts[key]
    assert counts["joint"] == 2


def test_haplotypes_are_counted_by_method():
    long = PhasedHaplotype(alleles=(allele(3, 1, other(3)), allele(9, 0, "ACGTACGTA")), closed=True)
    rows = phased((4, {(0, 0): long, (0, 1): haplotype(4, 9)}))
    assert count_haplotypes(HaplotypeWalk(rows), "auto") == ({"chain": 1, "nelbo": 1}, 109)
    assert count_haplotypes(HaplotypeWalk(rows), "llr") == ({"llr": 2}, 3)
    assert (find_span(1024), find_span(10**6)) == (512, 1024)
