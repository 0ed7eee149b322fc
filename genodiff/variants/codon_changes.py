"""What an allele does to a coding sequence: the protein before and after, and its codons.

A reading is a transcript's letters from before its start to behind its stop. An allele is put into
it, and the changed letters are read again: from the start if that stands, to the first stop.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from Bio.Data.CodonTable import unambiguous_dna_by_id

from genodiff.constraints.coding import read_codon
from genodiff.io.transcript_model import GenePart, Transcript, turn
from genodiff.io.variants import Allele


class Edit(NamedTuple):
    """reading[start:end] becomes `letters`."""

    start: int
    end: int
    letters: str


class CodingLetters(NamedTuple):
    """`letters` along pieces of the contig; the CDS from its first whole codon is [begin:close].

    With `starts` its first codon is a start codon. `amino` is codon number → the amino acid that it
    is read as in spite of its letters. `skipped` bases of the CDS stand before it.
    """

    letters: str
    pieces: tuple[GenePart, ...]
    begin: int
    close: int
    starts: bool
    amino: Mapping[int, str]
    skipped: int = 0


class CodingChange(NamedTuple):
    """A CDS before and after: old[first:last] was changed. `tail` follows the new one."""

    old: str
    new: str
    tail: str
    first: int
    last: int


def edit_reading(reading: CodingLetters, allele: Allele) -> list[Edit] | None:
    """The edits that put an allele into a reading; None where it crosses the end of an exon."""
    ref, alt = allele.ref, allele.alt
    same, at, found = len(ref) == len(alt), 0, list[Edit]()
    for a, b, strand in reading.pieces:
        left, right = max(a, allele.start), min(b, allele.end)
        if left < right if ref else a < allele.start < b:
            if not same and not a <= allele.start <= allele.end <= b:
                return None
            put = alt[left - allele.start : right - allele.start] if same else alt
            x, y = (left - a, right - a) if strand > 0 else (b - right, b - left)
            found.append(Edit(at + x, at + y, put if strand > 0 else turn(put)))
        at += b - a
    return found if same or len(found) < 2 else None


def judge_edits(reading: CodingLetters, edits: Sequence[Edit], table: int) -> tuple[set[str], str]:
    """The terms of edits of a reading, and the change of amino acids; none outside of its CDS."""
    letters, begin, close = reading.letters, reading.begin, reading.close
    low = begin - reading.skipped
    old = letters[begin:close]
    shift = sum(len(one.letters) - (one.end - one.start) for one in edits)
    edits = [one for one in edits if one.end > low and one.start < close]
    if not edits:
        return set(), ""
    changed = letters
    for one in sorted(edits, reverse=True):
        changed = changed[: one.start] + one.letters + changed[one.end :]
    first, last = min(one.start for one in edits), max(one.end for one in edits)
    if not shift:
        new, tail = changed[begin:close], changed[close:]
    elif first < begin and last > close:
        return {"start_lost", "stop_lost"} if reading.starts else {"stop_lost"}, ""
    elif first < begin:
        if not reading.starts:
            return {"coding_sequence_variant"}, ""
        if begin + shift < 0:
            return {"start_lost"}, ""
        new, tail = changed[begin + shift : close + shift], changed[close + shift :]
        if new == old:
            return {"start_retained_variant"}, ""
        if not _is_start(new[:3], table):
            return {"start_lost"}, ""
    elif last > close:
        return _judge_stop(reading, old, changed[begin:], first - begin, table)
    else:
        new, tail = changed[begin : close + shift], changed[close + shift :]
    change = CodingChange(old, new, tail, first - begin, min(last, close) - begin)
    return compare_codons(change, table, reading.amino, starts=reading.starts)


def _judge_stop(
    reading: CodingLetters, old: str, changed: str, first: int, table: int
) -> tuple[set[str], str]:
    """An allele that crosses the end of the CDS: what is read on to the next stop."""
    before, after = (_read(text, table, reading.amino) for text in (old, changed))
    if not before.endswith("*"):
        return {"coding_sequence_variant"}, ""
    if len(after) >= len(before) and after.startswith(before):
        return {"stop_retained_variant"}, ""
    stop = after.find("*", first // 3)
    if stop < 0 or stop >= len(before):
        return {"stop_lost"}, ""
    kept = "stop_retained_variant" if stop == len(before) - 1 else "stop_gained"
    return {kept, "coding_sequence_variant"}, ""


def compare_codons(
    change: CodingChange, table: int, amino: Mapping[int, str], *, starts: bool
) -> tuple[set[str], str]:
    """The terms and the change of amino acids between two coding sequences, from a whole codon on.

    With `starts` the first codon may be a start.
    """
    old, new, tail, first, last = change
    if last <= 0 and not (starts and first == 0):
        return {"coding_sequence_variant"}, ""  # before the first whole codon
    shift = len(new) - len(old)
    if shift and first < 0:
        return {"coding_sequence_variant"}, ""
    first = max(first, 0)
    begin, whole = first // 3 * 3, len(old) // 3 * 3
    if begin >= whole:
        return {"incomplete_terminal_codon_variant"}, ""
    end = min(max(-(-last // 3) * 3, begin + 3), whole)
    number = begin // 3
    all_before = _read(old[:whole], table, amino)
    before = all_before[number : end // 3]
    is_start = starts and begin == 0 and (
        _lists_start(old[:3], table) or amino.get(0) == "M"
    )  # fmt: skip
    ends = end == whole and before.endswith("*")
    inside = before[:-1] if ends else before
    odd = starts and begin == 0 and not is_start  # a first codon that the code has for no start
    if odd or "X" in before or "*" in inside:  # N, or a stop that is read as an amino acid
        return {"frameshift_variant" if shift % 3 else "coding_sequence_variant"}, ""
    terms: set[str] = set()
    if is_start:
        before = "M" + before[1:]
    read_on = _read(new[begin:] + tail, table, {})
    if is_start:
        if not _is_start(new[:3], table):
            return {"start_lost", *({"frameshift_variant"} if shift % 3 else ())}, ""
        read_on = "M" + read_on[1:]
        if new[:3] != old[:3]:
            terms.add("start_retained_variant")
    whole_before = before + all_before[end // 3 :]
    if (
        shift
        and whole_before.endswith("*")
        and "*" not in whole_before[:-1]
        and (read_on.startswith(whole_before))
    ):  # the letters behind it stand in for those of the stop codon
        return terms | {"stop_retained_variant"}, ""
    number += 1
    if shift % 3:
        terms.add("frameshift_variant")
        same = _count_common(whole_before, read_on)
        both = same < min(len(read_on), len(whole_before))
        if both and read_on[same] == "*" and whole_before[same] != "*":
            terms.add("stop_gained")
            return terms, f"{whole_before[same]}{number + same}*"
        if ends:
            lost = "*" not in read_on[: len(before)]
            terms.add("stop_lost" if lost else "stop_retained_variant")
        known = whole_before[same : same + 1]
        return terms, f"{known}{number + same}fs" if known else ""
    after = read_on[: (end + shift - begin) // 3]
    for at, letter in amino.items():  # a codon that is read in another way, and stays
        stays = not shift and new[at * 3 : at * 3 + 3] == old[at * 3 : at * 3 + 3]
        if stays and begin <= at * 3 < end:
            spot = at - begin // 3
            after = after[:spot] + letter + after[spot + 1 :]
    if "X" in after and "X" not in before:
        return {"coding_sequence_variant"}, ""
    if "*" in after and (not ends or after.index("*") < len(after) - 1):
        terms.add("stop_gained")
        after = after[: after.index("*") + 1]
        if ends:
            terms.add("stop_retained_variant")
            terms.discard("stop_gained" if len(after) >= len(before) else "stop_retained_variant")
    elif ends:
        terms.add("stop_retained_variant" if after.endswith("*") else "stop_lost")
    if shift:
        terms.add("inframe_insertion" if shift > 0 else "inframe_deletion")
    elif before != after and not terms & {"stop_gained", "stop_lost"}:
        terms.add("missense_variant")
        terms.discard("stop_retained_variant")
    elif not terms:
        terms.add("synonymous_variant")
    return terms, name_change(before, after, number)


def name_change(before: str, after: str, number: int) -> str:
    """A change of amino acids from the `number`-th on: A12V, A12A, AG12VL, A12del, 12_13insQ."""
    if before == after:
        return f"{before}{number}{after}"
    ahead = _count_common(before, after)
    before, after, number = before[ahead:], after[ahead:], number + ahead
    behind = _count_common(before[::-1], after[::-1])
    before, after = before[: len(before) - behind], after[: len(after) - behind]
    if not before:
        return f"{number - 1}_{number}ins{after}"
    return f"{before}{number}{after or 'del'}"


def list_recoded(one: Transcript) -> dict[int, str]:
    """Codon number → amino acid of the codons that an annotation reads in spite of the code."""
    found: dict[int, str] = {}
    for parts, amino in one.recoded:
        at, spots = 0, list[int]()
        for a, b, strand in one.coding:
            for start, end in parts:
                left, right = max(a, start), min(b, end)
                if left < right:
                    spots.append(at + (left - a if strand > 0 else b - right))
            at += b - a
        if spots:
            found[(min(spots) - one.skip) // 3] = amino
    return found | ({0: "M"} if one.any_start else {})


def _read(letters: str, table: int, amino: Mapping[int, str]) -> str:
    """Amino acids of whole codons: * for a stop, X for a codon with another letter."""
    code = _letters_of(table)
    found = [code.get(letters[at : at + 3], "X") for at in range(0, len(letters) - 2, 3)]
    for number, letter in amino.items():
        if 0 <= number < len(found):
            found[number] = letter
    return "".join(found)


@lru_cache(64)
def _letters_of(table: int) -> dict[str, str]:
    codons = (a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT")
    return {one: "*" if (read := read_codon(one, table))[1] else read[0] for one in codons}


def _lists_start(codon: str, table: int) -> bool:
    return codon in unambiguous_dna_by_id[table].start_codons


def _is_start(codon: str, table: int) -> bool:
    """Whether a changed codon starts a protein: in code 1 ATG alone does."""
    return codon == "ATG" or (table != 1 and _lists_start(codon, table))


def _count_common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
