"""Which variants are one haplotype: phase sets, distance, ploidy, and what is not known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.phasing import PhasedHaplotype, PhasedRecord, RecordPhaser, place_allele
from genodiff.io.variants import VariantRecord
from tests.consensus import Change, apply_changes

LETTERS = "ACGTTGCAAC" * 30
SPAN = 50


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    path = tmp_path_factory.mktemp("genome") / "ref.fa"
    path.write_text(f">chr1\n{LETTERS}\n>chr2\n{LETTERS}\n")
    return Genome(path)


def snv(pos: int, *genotypes: str, chrom: str = "chr1", keys: str = "GT:PS") -> VariantRecord:
    ref = LETTERS[pos - 1]
    return change(pos, ref, "T" if ref == "A" else "A", *genotypes, chrom=chrom, keys=keys)


def change(
    pos: int, ref: str, alt: str, *genotypes: str, chrom: str = "chr1", keys: str = "GT:PS"
) -> VariantRecord:
    rest = (".", ".", ".", keys, *genotypes)
    return VariantRecord(pos, chrom, pos, ".", ref, tuple(alt.split(",")), rest)


def phase(genome: Genome, *records: VariantRecord) -> list[PhasedRecord]:
    found = list(RecordPhaser(genome, SPAN, "in.vcf").phase(records))
    assert [one.record for one in found] == list(records)
    return found


def tell(genome: Genome, *records: VariantRecord, sample: int = 0) -> list[str]:
    """Each copy's haplotype as the positions of its members, or why there is none."""
    return [
        " ".join(
            "-" if not call.alt
            else call.reason if call.haplotype is None
            else tell_one(call.haplotype)
            for call in one.calls[sample]
        )
        for one in phase(genome, *records)
    ]  # fmt: skip


def tell_one(haplotype: PhasedHaplotype) -> str:
    assert haplotype.closed
    if haplotype.overlaps:
        return "overlap"
    places = ",".join(str(one.start + 1) for one in haplotype.alleles)
    return places + "?" * haplotype.incomplete


def test_a_copy_of_a_phase_set_is_one_haplotype(genome):
    assert tell(genome, snv(10, "0|1:10"), snv(20, "1|0:10"), snv(30, "1|1:10")) == [
        "- 10,30", "20,30 -", "20,30 10,30",
    ]  # fmt: skip
    # Without PS the contig is one set
    assert tell(genome, snv(10, "0|1", keys="GT"), snv(20, "0|1", keys="GT")) == [
        "- 10,20", "- 10,20",
    ]  # fmt: skip
    assert tell(genome, snv(10, "0|1"), snv(20, "0|1", chrom="chr2")) == ["- 10", "- 20"]


def test_a_telomere_on_a_copy_has_its_reason_and_the_copies_are_kept(genome):
    ends = [change(pos, "N", "<DUP>", "0|1") for pos in (0, len(LETTERS) + 1)]
    rows = [ends[0], snv(10, "0|1"), snv(20, "0|1"), ends[1]]
    assert tell(genome, *rows) == ["- symbolic", "- 10,20", "- 10,20", "- symbolic"]


def test_a_haplotype_ends_where_its_stretch_would_be_too_long(genome):
    rows = [snv(pos, "0|1:1") for pos in (10, 40, 59, 60, 109, 110)]
    assert tell(genome, *rows) == ["- 10,40,59"] * 3 + ["- 60,109"] * 2 + ["- 110"]
    # Inserted bases count
    grown = [snv(10, "1|0"), change(20, LETTERS[19], LETTERS[19] + "G" * 40, "1|0")]
    assert tell(genome, *grown) == ["10 -", "21 -"]


def test_another_phase_set_is_another_haplotype_and_leaves_a_doubt(genome):
    apart = [snv(10, "0|1:10"), snv(20, "0|1:10"), snv(30, "0|1:30")]
    assert tell(genome, *apart) == ["- 10,20", "- 10,20", "- 30"]
    mixed = [snv(10, "0|1:10"), snv(20, "0|1:20"), snv(30, "0|1:10"), snv(35, "0|1:20")]
    assert tell(genome, *mixed) == ["- 10,30?", "- 20,35?", "- 10,30?", "- 20,35?"]


def test_calls_with_one_allele_need_no_phase(genome):
    assert tell(genome, snv(10, "1/1:."), snv(20, "0|1:20"), snv(30, "1/1:.")) == [
        "10,30 10,20,30", "- 10,20,30", "10,30 10,20,30",
    ]  # fmt: skip
    assert [one.calls[0][0].haplotype.phase_set for one in phase(  # type: ignore[union-attr]
        genome, snv(10, "1/1:."), snv(20, "1|0:20"))] == ["20", "20"]  # fmt: skip
    assert tell(genome, snv(10, "1"), snv(20, "1"), snv(30, "0")) == ["10,20", "10,20", ""]


def test_what_is_on_no_known_copy_is_said(genome):
    for unknown, told in (
        ("0/1", "- unphased"), ("./1", "- unphased"), ("1/2", "unphased unphased"), ("./.", ""),
        (".", ""),
    ):  # fmt: skip
        middle = change(20, LETTERS[19], "A,T" if LETTERS[19] in "CG" else "C,G", unknown)
        rows = [snv(10, "0|1"), middle, snv(30, "0|1"), snv(31, "1|0")]
        assert tell(genome, *rows) == ["- 10,30?", told, "- 10,30?", "31 -"]
    # A missing call of one copy leaves the other sure
    half = [snv(10, "1|1"), snv(20, ".|1"), snv(30, "1|1")]
    assert tell(genome, *half) == ["10,30? 10,20,30", "- 10,20,30", "10,30? 10,20,30"]


def test_an_alt_without_letters_leaves_a_doubt_but_a_star_does_not(genome):
    for alt, told, doubt in (("<DEL>", "symbolic", "?"), ("*", "spanning_deletion", "")):
        rows = [snv(10, "1|0"), change(20, LETTERS[19], alt, "1|0"), snv(30, "1|0")]
        assert tell(genome, *rows) == [f"10,30{doubt} -", f"{told} -", f"10,30{doubt} -"]
    wrong = "A" if LETTERS[19] != "A" else "C"
    other = change(20, wrong, "G", "1|0")
    assert tell(genome, snv(10, "1|0"), other, snv(30, "1|0"))[1] == "ref_mismatch -"


def test_a_change_of_ploidy_begins_anew(genome):
    rows = [snv(10, "1|0"), snv(20, "1"), snv(30, "1"), snv(40, "1|1"), snv(45, "0|1|1|0")]
    assert tell(genome, *rows) == ["10 -", "20,30", "20,30", "40 40", "- 45 45 -"]


def test_members_that_overlap_are_no_haplotype(genome):
    deletion = change(20, LETTERS[19:24], LETTERS[19], "1|0")
    assert (
        tell(genome, snv(10, "1|0"), deletion, snv(22, "1|0"), snv(40, "1|0")) == ["overlap -"] * 4
    )
    assert tell(genome, snv(22, "0|1"), snv(23, "1|0")) == ["- 22", "23 -"]
    # The anchor base of a deletion is no part of it
    assert tell(genome, snv(20, "1|0"), deletion) == ["20,21 -"] * 2
    insertion = change(20, LETTERS[19], LETTERS[19] + "GG", "1|0")
    assert tell(genome, insertion, insertion) == ["overlap -"] * 2
    # Two ALTs of one site on two copies are two haplotypes
    both = change(10, LETTERS[9], "A,T,G".replace(LETTERS[9], "C"), "1|2")
    assert tell(genome, both) == ["10 10"]
    # A long deletion overlaps what is beyond the span, too
    long = change(100, LETTERS[99:200], LETTERS[99], "1|0")
    assert tell(genome, long, snv(180, "1|0")) == ["overlap -"] * 2


def test_samples_are_apart(genome):
    rows = [snv(10, "1|0:1", "0|0"), snv(20, "0/0", "1|0:2"), snv(30, "1|0:1", "1|0:2")]
    assert tell(genome, *rows) == ["10,30 -", "", "10,30 -"]
    assert tell(genome, *rows, sample=1) == ["", "20,30 -", "20,30 -"]


def test_records_that_are_not_sorted_are_refused(genome):
    for rows, said in (
        ([snv(20, "0|1"), snv(10, "0|1")], "behind chr1:20"),
        ([snv(9, "0|1"), snv(9, "0|1", chrom="chr2"), snv(10, "0|1")], "apart from the others"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            phase(genome, *rows)
        assert (caught.value.line, "bcftools sort" in str(caught.value.fix)) == (
            rows[-1].line,
            True,
        )
    with pytest.raises(DataError, match="GT 0\\|3 names an allele") as caught:
        phase(genome, snv(20, "0|3"))
    assert str(caught.value.file) == "in.vcf"


def test_memory_holds_no_more_than_a_stretch(genome):
    read = 0

    def records():  # type: ignore[no-untyped-def]
        nonlocal read
        for pos in range(1, 300):
            read += 1
            yield snv(pos, "0|1")

    for number, _ in enumerate(RecordPhaser(genome, SPAN, "in.vcf").phase(records()), 1):
        assert read - number <= SPAN + 1


@settings(max_examples=60)
@given(st.data())
def test_the_sequence_is_the_one_that_the_records_spell(genome, data):
    """Indels of repeats move as far to the left as members let them, and the letters stay."""
    letters, records, at = LETTERS[:60], [], 1
    while at < 40 and len(records) < 5:
        at += data.draw(st.integers(0, 6))
        n = data.draw(st.integers(1, 4))
        ref = letters[at - 1 : at - 1 + n]
        alt = data.draw(st.text("ACGT", min_size=1, max_size=4).filter(lambda s: s != ref))  # noqa: B023
        records.append(change(at, ref, alt, "1"))
        at += n
    rows = phase(genome, *records)
    (haplotype,) = {id(one): one for row in rows for one in row.haplotypes()}.values()
    assert not haplotype.overlaps
    told = [Change(one.start, one.ref, one.alt) for one in haplotype.alleles]
    spelled = [Change(one.pos - 1, one.ref, one.alts[0]) for one in records]
    assert apply_changes(letters, 0, told) == apply_changes(letters, 0, spelled)
    placed = [place_allele(one, one.alts[0]) for one in records]
    assert all(a.start <= b.start for a, b in zip(haplotype.alleles, placed, strict=True))


def test_two_spellings_of_one_haplotype_are_one(genome):
    # TT at 4 and 5: the deletion of either is the same
    first, second = change(4, "TT", "T", "1"), change(4, "TTG", "TG", "1")
    later = snv(12, "1")
    for rows in ([snv(2, "1"), first, later], [snv(2, "1"), second, later]):
        (haplotype,) = {id(x): x for row in phase(genome, *rows) for x in row.haplotypes()}.values()
        assert [one.start for one in haplotype.alleles] == [1, 3, 11]
