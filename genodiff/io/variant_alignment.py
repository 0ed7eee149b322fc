"""Alleles in their one normal form: trimmed, and as far to the left as they go.

The rules are those of Tan, Abecasis & Kang (Bioinformatics 2015), as `bcftools norm` applies them.
Letters that all alleles end with are cut off; where that leaves one of them empty, all are extended
to the left by the genome, and so on. Then letters that all begin with are cut off, but one. An
`Allele` is the form behind that, without the one anchor base.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from genodiff.io.faidx import Genome
from genodiff.io.variants import BASES, Allele, Unscorable, VariantRecord

_STEP = 64  # letters read at a time while an indel moves to the left

Fetch = Callable[[int, int], str]
"""Upper-case letters of start..end (0-based, half-open) of one contig."""


def trim_ends(ref: str, alt: str) -> tuple[int, int]:
    """How many letters both begin with and both end with; what could be either is an end."""
    shorter, tail, lead = min(len(ref), len(alt)), 0, 0
    while tail < shorter and ref[-1 - tail] == alt[-1 - tail]:
        tail += 1
    while lead < shorter - tail and ref[lead] == alt[lead]:
        lead += 1
    return lead, tail


def align_left(start: int, ref: str, alt: str, fetch: Fetch) -> tuple[int, str, str]:
    """(start, ref, alt) without common ends, an insertion or deletion moved to the left."""
    lead, tail = trim_ends(ref, alt)
    start, ref, alt = start + lead, ref[lead : len(ref) - tail], alt[lead : len(alt) - tail]
    if ref and alt:
        return start, ref, alt
    moving = ref or alt
    behind, at = "", start  # letters before `start` that are at hand
    turned = 0
    while moving and start > 0:
        if not behind:
            at = max(0, start - _STEP)
            behind = fetch(at, start)
        if behind[-1] != moving[-1 - turned % len(moving)]:
            break
        turned, start, behind = turned + 1, start - 1, behind[:-1]
    turned %= len(moving) or 1
    moving = moving[len(moving) - turned :] + moving[: len(moving) - turned]
    return (start, moving, "") if ref else (start, "", moving)


def normalize_alleles(
    start: int, alleles: Sequence[str], fetch: Fetch
) -> tuple[int, tuple[str, ...]]:
    """REF and all ALTs of one record, aligned to the left together as `bcftools norm` does.

    With REF alone, its first letter. Returns the 0-based start and the alleles, none of them empty.
    """
    if len(alleles) == 1:
        return start, (alleles[0][:1],)
    rows = list(alleles)
    if len(set(rows)) == 1:
        return start, tuple(row[:1] for row in rows)
    while len({row[-1] for row in rows}) == 1:
        if min(map(len, rows)) > 1:
            rows = [row[:-1] for row in rows]
        elif start == 0:
            break
        else:
            start -= 1
            before = fetch(start, start + 1)
            rows = [before + row[:-1] for row in rows]
    lead = 0
    while min(map(len, rows)) - lead > 1 and len({row[lead] for row in rows}) == 1:
        lead += 1
    return start + lead, tuple(row[lead:] for row in rows)


def anchor_allele(allele: Allele, genome: Genome) -> tuple[int, str, str]:
    """POS (from 1), REF and ALT of an allele as a VCF writes it, with an anchor base if needed."""
    if allele.ref and allele.alt:
        return allele.start + 1, allele.ref, allele.alt
    fetch = fetcher(genome, allele.chrom)
    if allele.start:
        anchor = fetch(allele.start - 1, allele.start)
        return allele.start, anchor + allele.ref, anchor + allele.alt
    anchor = fetch(allele.end, allele.end + 1)
    return 1, allele.ref + anchor, allele.alt + anchor


def anchor_record(record: VariantRecord, genome: Genome) -> VariantRecord:
    """Replace - for no base, as tables have it, by alleles that share the genome's base beside it.

    Other records, and those that lie beyond their contig, are given back as they are.
    """
    alleles = [record.ref, *record.alts]
    if "-" not in alleles:
        return record
    bare = ["" if one == "-" else one for one in alleles]
    at = record.pos if record.ref == "-" else record.pos - 1  # of the base before, from 1
    end = at + len(bare[0])
    if not 0 <= at <= end <= genome.contigs.get(record.chrom, -1):
        return record
    fetch = fetcher(genome, record.chrom)
    if at:
        spelt = [fetch(at - 1, at) + one for one in bare]
    elif end < genome.contigs[record.chrom]:
        at, spelt = 1, [one + fetch(end, end + 1) for one in bare]
    else:
        return record
    return replace(record, pos=at, ref=spelt[0], alts=tuple(spelt[1:]))


def judge_record(record: VariantRecord, genome: Genome) -> list[Allele | Unscorable]:
    """Each ALT as an `Allele`, or why it cannot be one; a record without ALT gives one reason."""
    fault = _judge_reference(record, genome)
    alts = record.alts or (".",)
    if fault is not None:
        return [fault if fault.contradicts else judge_alt(alt) or fault for alt in alts]
    ref = record.ref.upper()
    found: list[Allele | Unscorable] = []
    for alt in alts:
        letters = alt.upper()
        reason = judge_alt(alt) or (Unscorable.SAME if letters == ref else None)
        if reason is not None:
            found.append(reason)
        elif len(ref) == len(letters) == 1:
            found.append(Allele(record.chrom, record.pos - 1, ref, letters))
        else:
            fetch = fetcher(genome, record.chrom)
            aligned = align_left(record.pos - 1, ref, letters, fetch)
            found.append(Allele(record.chrom, *aligned))
    return found


def fetcher(genome: Genome, chrom: str) -> Fetch:
    """The upper-case letters of one contig by start and end."""
    return lambda start, end: genome.fetch(chrom, start, end).decode("latin-1").upper()


def _judge_reference(record: VariantRecord, genome: Genome) -> Unscorable | None:
    length = genome.contigs.get(record.chrom)
    if length is None:
        return Unscorable.CONTIG
    start, end = record.pos - 1, record.pos - 1 + len(record.ref)
    no_letters = all(judge_alt(alt) is not None for alt in record.alts or (".",))
    if record.is_at_telomere(length) and no_letters:
        return Unscorable.SYMBOLIC
    if start < 0 or end > length:
        return Unscorable.OUTSIDE
    there = fetcher(genome, record.chrom)(start, end)
    ref = record.ref.upper()
    if BASES.issuperset(ref):
        if there == ref:
            return None
        agrees = all(a == b or b not in BASES for a, b in zip(ref, there, strict=True))
        return Unscorable.AMBIGUOUS if agrees else Unscorable.REF
    agrees = all(a == b or a not in BASES or b not in BASES
                 for a, b in zip(ref, there, strict=True))  # fmt: skip
    return Unscorable.AMBIGUOUS if agrees else Unscorable.REF


def judge_alt(alt: str) -> Unscorable | None:
    """Why the letters of an ALT are no sequence of A, C, G and T; None where they are."""
    if BASES.issuperset(alt.upper()) and alt:
        return None
    if alt in (".", ""):
        return Unscorable.NO_ALT
    if alt == "*":
        return Unscorable.STAR
    if "[" in alt or "]" in alt or alt.startswith(".") or alt.endswith("."):
        return Unscorable.BREAKEND
    return Unscorable.SYMBOLIC if alt.startswith("<") else Unscorable.AMBIGUOUS
