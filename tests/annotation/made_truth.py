"""What a change of a made genome does, by translating it before and after; genodiff reads nothing.

A change is genome[start:end] → letters. Parts are moved along with the letters, each spelling of
the same changed genome is tried, and what leaves one protein whole leaves the gene whole.
"""

from collections.abc import Iterator
from itertools import pairwise

from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Seq import Seq

from tests.annotation.made_genomes import MadeGene, Parts

TERMS_OF_CODONS = {
    "stop_gained", "frameshift_variant", "stop_lost", "start_lost", "inframe_insertion",
    "inframe_deletion", "missense_variant", "incomplete_terminal_codon_variant",
    "splice_donor_variant", "splice_acceptor_variant",
}  # fmt: skip
BEYOND = 60


def read_parts(genome: str, parts: Parts) -> str:
    """The letters of parts of a circle, one behind the other."""
    twice = genome + genome
    return "".join(
        twice[a:b] if way > 0 else str(Seq(twice[a:b]).reverse_complement()) for a, b, way in parts
    )


def translate(gene: MadeGene, letters: str, old: str | None = None) -> str:
    """The protein of a coding sequence, codons that are read in another way included."""
    text = letters[gene.skip :]
    stops = {number for number, one in gene.recoded.items() if one == "*"}
    if stops and len(text) % 3:
        text += "A" * (-len(text) % 3)
    text = text[: len(text) // 3 * 3]
    found = list(str(Seq(text).translate(table=gene.table)))
    before = (old or letters)[gene.skip :]
    for number, amino in gene.recoded.items():
        spot = slice(3 * number, 3 * number + 3)
        if number not in stops and number < len(found) and before[spot] == text[spot]:
            found[number] = amino
    return "".join(found)


def list_bases(gene: MadeGene, length: int) -> list[int]:
    """The positions of the contig that are coding, in the order of reading."""
    return [at % length for a, b, way in gene.coding
            for at in (range(a, b) if way > 0 else range(b - 1, a - 1, -1))]  # fmt: skip


def judge_snv(genome: str, gene: MadeGene, at: int, base: str) -> tuple[str, str]:
    """The term of a base changed within the coding sequence, and the change of one amino acid."""
    changed = genome[:at] + base + genome[at + 1 :]
    old, new = (read_parts(text, gene.coding) for text in (genome, changed))
    spots = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    if max(spots) < gene.skip:
        return "coding_sequence_variant", ""
    before, after = translate(gene, old), translate(gene, new, old)
    first = (min(one for one in spots if one >= gene.skip) - gene.skip) // 3
    if first >= len(before):
        return "incomplete_terminal_codon_variant", ""
    table = unambiguous_dna_by_id[gene.table]
    starts = gene.starts and not gene.skip and (old[:3] in table.start_codons or 0 in gene.recoded)
    if starts and first == 0 and spots[0] < 3:
        kept = new[:3] == "ATG" or (gene.table != 1 and new[:3] in table.start_codons)
        return ("start_retained_variant" if kept else "start_lost"), ""
    change = [(n, a, b) for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    several = len({(one - gene.skip) // 3 for one in spots}) > 1  # a base that is read twice
    aminos = "" if several else f"{before[first]}{first + 1}{after[first]}"
    if not change:
        return ("stop_retained_variant" if before[first] == "*" else "synonymous_variant"), aminos
    one = len(change) == 1
    one = one and not several
    aminos = f"{change[0][1]}{change[0][0] + 1}{change[0][2]}" if one else ""
    if any(a == "*" for _, a, _ in change):
        return "stop_lost", aminos
    return ("stop_gained" if any(b == "*" for *_, b in change) else "missense_variant"), aminos


def spell(genome: str, start: int, end: int, letters: str) -> Iterator[tuple[int, int, str]]:
    """Every spelling of an insertion or deletion, found by trying."""
    changed = genome[:start] + letters + genome[end:]
    size = end - start
    for step in (1, -1):
        at = start if step > 0 else start - 1
        while 0 <= at <= len(genome) - size:
            put = changed[at : at + len(letters)]
            if genome[:at] + put + genome[at + size :] != changed:
                break
            yield at, at + size, put
            at += step


def move_parts(gene: MadeGene, start: int, end: int, letters: str) -> Parts | None:
    """Parts after a change; None where it lies across the end of one, but for the gene's start.

    There the letters before it take the place of those that are gone.
    """
    shift, found = len(letters) - (end - start), []
    for number, (a, b, way) in enumerate(gene.coding):
        crosses = gene.starts and number == 0
        if crosses and (start < a < end < b if way > 0 else a < start < b < end):
            found.append((a + shift, b + shift, way) if way > 0 else (a, b, way))
            continue
        if start < a < end or start < b < end:
            return None
        if end <= a:
            a, b = a + shift, b + shift
        elif end <= b and start >= a and not (start == end == b):
            b += shift
        found.append((a, b, way))
    return tuple(found)


def read_on(genome: str, gene: MadeGene, parts: Parts) -> str:
    """The protein of parts, read on behind them to a stop."""
    if not gene.ends:
        return translate(gene, read_parts(genome, parts))
    a, b, way = parts[-1]
    after = (b, b + BEYOND, way) if way > 0 else (max(a - BEYOND, 0), a, way)
    letters = read_parts(genome, (*parts, after))
    return translate(gene, letters).partition("*")[0]


def read_sites(genome: str, parts: Parts) -> list[str]:
    """The first and the last two letters of each intron."""
    some = sorted(parts)
    return [text for (_, a, _), (b, _, _) in pairwise(some)
            for text in (genome[a : a + 2], genome[b - 2 : b])]  # fmt: skip


def judge_indel(
    genome: str, gene: MadeGene, start: int, end: int, letters: str
) -> tuple[bool, bool] | None:
    """(Whether protein and splice sites stay as they are, whether its frame does), by spellings.

    None where each spelling lies across the end of a part.
    """
    before = read_on(genome, gene, gene.coding)
    changed = genome[:start] + letters + genome[end:]
    tried = []
    for a, b, put in spell(genome, start, end, letters):
        parts = move_parts(gene, a, b, put)
        if parts is not None:
            first = read_parts(changed, parts)[:3]
            starts = unambiguous_dna_by_id[gene.table].start_codons if gene.table != 1 else ["ATG"]
            begins = first in starts or not gene.starts
            spliced = read_sites(changed, parts) == read_sites(genome, gene.coding)
            same = read_on(changed, gene, parts)[gene.starts :] == before[gene.starts :]
            if not gene.ends:  # what follows is not known: every base counts
                same = read_parts(changed, parts) == read_parts(genome, gene.coding)
            tried.append(begins and spliced and same)
    if not tried:
        return None
    return any(tried), (len(letters) - (end - start)) % 3 == 0
