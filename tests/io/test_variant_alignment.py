"""Alleles in their normal form: the same haplotype, and one form for all spellings of a change."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genodiff.io.faidx import Genome
from genodiff.io.variants import (
    Allele,
    Unscorable,
    VariantRecord,
    align_left,
    anchor_allele,
    judge_record,
)

SEQUENCE = "ACACACGTTTTTGACNACAGGGRA"


def fetch_from(sequence: str) -> Callable[[int, int], str]:
    return lambda start, end: sequence[start:end]


def apply(sequence: str, start: int, ref: str, alt: str) -> str:
    assert sequence[start : start + len(ref)] == ref
    return sequence[:start] + alt + sequence[start + len(ref) :]


@pytest.fixture
def genome(tmp_path):
    (tmp_path / "ref.fa").write_text(f">chr1\n{SEQUENCE[:10]}\n{SEQUENCE[10:].lower()}\n>chrM\nA\n")
    return Genome(tmp_path / "ref.fa")


dna = st.text("AC", max_size=8)


@given(st.text("AC", min_size=1, max_size=16), st.data())
def test_all_spellings_of_one_haplotype_are_one_allele(sequence, data):
    start = data.draw(st.integers(0, len(sequence)))
    end = data.draw(st.integers(start, len(sequence)))
    ref, alt = sequence[start:end], data.draw(dna)
    if ref == alt:
        return
    found = align_left(start, ref, alt, fetch_from(sequence))
    assert apply(sequence, *found) == apply(sequence, start, ref, alt)
    # A wider spelling of the same change: context added on both sides
    left, right = data.draw(st.integers(0, start)), data.draw(st.integers(end, len(sequence)))
    wide = (sequence[left:start] + ref + sequence[end:right],
            sequence[left:start] + alt + sequence[end:right])  # fmt: skip
    assert align_left(left, *wide, fetch_from(sequence)) == found
    # An insertion or deletion is as far left as any spelling that gives this haplotype
    at, ref, alt = found
    if not (ref and alt):
        size = len(ref) or len(alt)
        goal = apply(sequence, *found)
        others = [
            p
            for p in range(len(sequence) - (size if ref else 0) + 1)
            if (sequence[:p] + sequence[p + size :] if ref else sequence[:p] + goal[p : p + size]
                + sequence[p:]) == goal
        ]  # fmt: skip
        assert at == min(others)


@pytest.mark.parametrize(
    ("ref", "alt", "kind"),
    [("A", "C", "snv"), ("AC", "GT", "mnv"), ("", "A", "ins"), ("A", "", "del"),
     ("AC", "T", "delins"), ("A", "TG", "delins")],
)  # fmt: skip
def test_an_allele_is_of_a_kind_by_its_lengths(ref, alt, kind):
    assert Allele("chr1", 4, ref, alt).kind == kind


def test_an_anchored_allele_is_judged_to_be_itself(genome):
    for allele in (
        Allele("chr1", 0, "AC", ""),
        Allele("chr1", 0, "", "G"),
        Allele("chr1", 6, "G", "T"),
        Allele("chr1", 7, "TT", ""),
        Allele("chr1", 6, "GT", "CCC"),
        Allele("chr1", 24, "", "C"),
    ):
        pos, ref, alt = anchor_allele(allele, genome)
        assert ref
        assert alt
        assert judge_record(VariantRecord(1, "chr1", pos, ".", ref, (alt,)), genome) == [allele]


@pytest.mark.parametrize(
    ("chrom", "pos", "ref", "alt", "reason"),
    [
        ("chr1", 1, "C", "A", Unscorable.REF),
        ("chr1", 1, "C", "<DEL>", Unscorable.REF),
        ("chr1", 1, "R", "A", Unscorable.AMBIGUOUS),
        ("chr1", 1, "A", "N", Unscorable.AMBIGUOUS),
        ("chr1", 16, "N", "A", Unscorable.AMBIGUOUS),
        ("chr1", 16, "A", "C", Unscorable.AMBIGUOUS),
        ("chr1", 15, "CN", "<DEL>", Unscorable.SYMBOLIC),
        ("chr1", 23, "R", "A", Unscorable.AMBIGUOUS),
        ("chr1", 1, "A", "<DEL>", Unscorable.SYMBOLIC),
        ("chr1", 1, "A", "A]chrM:1]", Unscorable.BREAKEND),
        ("chr1", 1, "A", "A.", Unscorable.BREAKEND),
        ("chr1", 1, "A", "*", Unscorable.STAR),
        ("chr1", 1, "A", "a", Unscorable.SAME),
        ("chr1", 25, "A", "C", Unscorable.OUTSIDE),
        ("chr1", 24, "AC", "A", Unscorable.OUTSIDE),
        ("chr1", 0, "A", "C", Unscorable.OUTSIDE),
        ("chr1", 0, "N", "<DEL>", Unscorable.SYMBOLIC),
        ("chr1", 25, "N", "<DUP>", Unscorable.SYMBOLIC),
        ("chr1", 25, "N", "]chrM:1]N", Unscorable.BREAKEND),
        ("chr1", 25, "N", ".", Unscorable.NO_ALT),
        ("chr1", 26, "N", "<DUP>", Unscorable.OUTSIDE),
        ("chr2", 1, "A", "C", Unscorable.CONTIG),
    ],
)
def test_what_cannot_be_scored_has_its_reason(genome, chrom, pos, ref, alt, reason):
    assert judge_record(VariantRecord(1, chrom, pos, ".", ref, (alt,)), genome) == [reason]


def test_each_alt_has_its_own_verdict_and_case_does_not_matter(genome):
    record = VariantRecord(1, "chr1", 7, ".", "g", ("t", "*", "<X>", "GT"))
    assert judge_record(record, genome) == [
        Allele("chr1", 6, "G", "T"),
        Unscorable.STAR,
        Unscorable.SYMBOLIC,
        Allele("chr1", 7, "", "T"),
    ]
    assert judge_record(VariantRecord(1, "chr1", 7, ".", "G", ()), genome) == [Unscorable.NO_ALT]
    assert judge_record(VariantRecord(1, "chrM", 1, ".", "A", ("C",)), genome) == [
        Allele("chrM", 0, "A", "C")
    ]
