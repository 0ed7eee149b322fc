"""What an allele does to a coding sequence: its codons before and after, and the amino acids."""

from functools import lru_cache

from Bio.Data.CodonTable import unambiguous_dna_by_id

from genodiff.constraints.coding import read_codon
from genodiff.io.transcripts import Transcript
from genodiff.io.variants import Allele

_COMPLEMENT = str.maketrans("ACGT", "TGCA")


def edit_coding(one: Transcript, old: str, allele: Allele) -> tuple[str | None, int, int]:
    """A coding sequence `old` with an allele in it, and the first and last + 1 base that differ.

    The sequence is None where an allele that changes the length lies over a border of a part.
    """
    ref, alt = allele.ref, allele.alt
    same = len(ref) == len(alt)
    pieces: list[str] = []
    first, last, at = len(old), 0, 0
    for a, b in one.coding:
        piece = old[at : at + b - a]
        left, right = max(a, allele.start), min(b, allele.end)
        hit = left < right if ref else a < allele.start < b
        if hit:
            if not same and not a <= allele.start <= allele.end <= b:
                return None, 0, 0
            put = alt[left - allele.start : right - allele.start] if same else alt
            x, y = (left - a, right - a) if one.strand > 0 else (b - right, b - left)
            piece = piece[:x] + (put if one.strand > 0 else turn(put)) + piece[y:]
            first, last = min(first, at + x), max(last, at + y)
        pieces.append(piece)
        at += b - a
    return "".join(pieces), first, last


def compare_codons(
    old: str, new: str, first: int, last: int, table: int, *, starts: bool
) -> tuple[set[str], str]:
    """The terms and the change of amino acids between two coding sequences, from a whole codon on.

    They differ in old[first:last]. With `starts` the first codon may be a start.
    """
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
    before = _translate(old[begin:end], table)
    is_start = starts and begin == 0 and old[:3] in unambiguous_dna_by_id[table].start_codons
    ends = end == whole and before.endswith("*")
    inside = before[:-1] if ends else before
    if "X" in before or "*" in inside:  # N, or a stop that is read as an amino acid
        return {"frameshift_variant" if shift % 3 else "coding_sequence_variant"}, ""
    terms: set[str] = set()
    if is_start:
        before = "M" + before[1:]
    if shift % 3:
        after = _translate(new[begin : len(new) // 3 * 3], table)
    else:
        after = _translate(new[begin : end + shift], table)
    if is_start:
        kept = new[:3] == "ATG" or (table != 1 and _starts(new[:3], table))
        if not kept:
            return {"start_lost", *({"frameshift_variant"} if shift % 3 else ())}, ""
        after = "M" + after[1:]
        if new[:3] != old[:3]:
            terms.add("start_retained_variant")
    number = begin // 3 + 1
    if shift % 3:
        terms.add("frameshift_variant")
        whole_before = before + _translate(old[end:whole], table)
        same = _count_common(whole_before, after)
        if same < len(after) and after[same] == "*" and whole_before[same : same + 1] != "*":
            terms.add("stop_gained")
            return terms, f"{whole_before[same]}{number + same}*"
        if ends:
            terms.add("stop_lost" if "*" not in after[: len(before)] else "stop_retained_variant")
        known = whole_before[same : same + 1]
        return terms, f"{known}{number + same}fs" if known else ""
    if "X" in after:
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


def _translate(letters: str, table: int) -> str:
    """Amino acids of whole codons: * for a stop, X for a codon with another letter."""
    code = _letters_of(table)
    return "".join(code.get(letters[at : at + 3], "X") for at in range(0, len(letters) - 2, 3))


@lru_cache(64)
def _letters_of(table: int) -> dict[str, str]:
    codons = (a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT")
    return {one: "*" if (read := read_codon(one, table))[1] else read[0] for one in codons}


def _starts(codon: str, table: int) -> bool:
    return codon in unambiguous_dna_by_id[table].start_codons


def _count_common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def turn(text: str) -> str:
    """The other strand of a text."""
    return text.translate(_COMPLEMENT)[::-1]
