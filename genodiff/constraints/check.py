"""Whether a finished sequence satisfies constraints, by reading its letters.

This is the slow and obvious form: regular expressions, slices and Biopython. It shares no code with
the automata, and every design is read by it before it is written.

The smallest set of constraints that cannot be met together, by deletion.

Each constraint in turn is left out: where the rest still cannot be met, it is not needed for the
proof. What is left is minimal: without any one of its members, the others can be met.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from Bio import BiopythonWarning, Restriction
from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Data.IUPACData import ambiguous_dna_values
from Bio.Seq import Seq

from genodiff.constraints.bases import FitPattern, KeepBases, MaxEdits
from genodiff.constraints.coding import KeepProtein, NoStop
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import Constraint, DesignSpace
from genodiff.constraints.layers import MOST_STATES, Judged, Rules, can_be_met, judge_in
from genodiff.constraints.repeats import NoGenomeRepeats
from genodiff.constraints.words import Avoid, AvoidSites, MaxRun, NoRepeats, Require


def find_violations(
    rules: Constraint, text: str, before: str, start: int, end: int, offset: int = 0
) -> list[str]:
    """What `text` violates, a line each; empty where nothing.

    `before` is the sequence that it was made from, of the same length. Positions start … end of
    both are judged; `offset` is the position of their first letter in the contig.
    """
    text, before = text.upper(), before.upper()
    if len(text) != len(before):
        return [f"length {len(text)} in place of {len(before)}"]
    found = []
    for rule in rules.parts():
        span = getattr(rule, "span", None)
        lo, hi = (start, end) if span is None else (span[0] - offset, span[1] - offset)
        lo, hi = max(0, lo), min(len(text), hi)
        for what in _JUDGES[type(rule)](rule, text, before, max(0, lo), max(lo, hi), offset):
            found.append(f"{rule}: {what}")
    return found


def _find_words(words: list[str], both: bool, text: str) -> Iterator[tuple[int, int, str]]:
    for word in words:
        for strand in (word, str(Seq(word).reverse_complement())) if both else (word,):
            sets = "".join(f"[{ambiguous_dna_values[code]}]" for code in strand)
            for hit in re.finditer(f"(?=({sets}))", text):
                yield hit.start(), hit.start() + len(word), hit[1]


def _avoid(rule: Avoid, text: str, before: str, lo: int, hi: int, offset: int) -> Iterator[str]:
    words = [word.strip().upper() for word in rule.words]
    for start, end, letters in _find_words(words, rule.both, text):
        if start < hi and end > lo:
            yield f"{letters} at {start + offset + 1}"


def _require(rule: Require, text: str, before: str, lo: int, hi: int, offset: int) -> Iterator[str]:
    words = [word.strip().upper() for word in rule.words]
    if not any(_find_words(words, rule.both, text[lo:hi])):
        yield "is not there"


def _sites(
    rule: AvoidSites, text: str, before: str, lo: int, hi: int, offset: int
) -> Iterator[str]:
    for name in rule.enzymes:
        site = str(getattr(Restriction, name).site)
        for start, end, letters in _find_words([site], True, text):
            if start < hi and end > lo:
                yield f"{name} {letters} at {start + offset + 1}"


def _run(rule: MaxRun, text: str, before: str, lo: int, hi: int, offset: int) -> Iterator[str]:
    for hit in re.finditer("A+|C+|G+|T+", text):
        if hit.end() - hit.start() > rule.longest and hit.start() < hi and hit.end() > lo:
            yield f"{hit[0]} at {hit.start() + offset + 1}"


def _repeats(
    rule: NoRepeats, text: str, before: str, lo: int, hi: int, offset: int
) -> Iterator[str]:
    size, words = rule.longest + 1, set(rule.words)
    for at in range(max(0, lo - size + 1), min(len(text) - size + 1, hi)):
        if text[at : at + size] in words:
            yield f"{text[at : at + size]} at {at + offset + 1}"


def _genome(
    rule: NoGenomeRepeats, text: str, before: str, lo: int, hi: int, offset: int
) -> Iterator[str]:
    for at in rule.find_repeats(text, lo, hi):
        yield f"{text[at : at + rule.longest + 1]} at {at + offset + 1}"


def _gc(rule: GcContent, text: str, before: str, lo: int, hi: int, offset: int) -> Iterator[str]:
    window = min(rule.window or hi - lo, hi - lo)
    for at in range(lo, hi - window + 1, rule.step if window < hi - lo else 1):
        piece = text[at : at + window]
        n = piece.count("G") + piece.count("C")
        if not math.ceil(rule.low * window - 1e-9) <= n <= math.floor(rule.high * window + 1e-9):
            yield f"{n} of {window} at {at + offset + 1}"


def _protein(
    rule: KeepProtein, text: str, before: str, lo: int, hi: int, offset: int
) -> Iterator[str]:
    starts = unambiguous_dna_by_id[rule.table].start_codons
    new, old = (_codons(rule, one, lo, hi, offset) for one in (text, before))
    for number, (codon, was) in enumerate(zip(new, old, strict=True)):
        now = _translate(codon, rule.table)
        if rule.protein is not None:
            if "N" not in codon and rule.protein[number].upper() not in (
                "X",
                "*" if now[1] else "",
                now[0],
            ):
                yield f"codon {number + 1} is {codon}"
        elif codon != was and (
            now != _translate(was, rule.table) or (rule.keep_start and not number and was in starts)
        ):
            yield f"codon {number + 1} is {codon}, was {was}"


def _stop(rule: NoStop, text: str, before: str, lo: int, hi: int, offset: int) -> Iterator[str]:
    new, old = (_codons(rule, one, lo, hi, offset) for one in (text, before))
    for number, (codon, was) in enumerate(zip(new, old, strict=True)):
        if codon != was and _translate(codon, rule.table)[1]:
            yield f"codon {number + 1} is {codon}"


@lru_cache(maxsize=4096)
def _translate(codon: str, table: int) -> tuple[str, bool]:
    """The amino acid, and whether the codon is a stop: some codes have codons that are both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiopythonWarning)
        amino = str(Seq(codon).translate(table=table))
    return amino, codon in unambiguous_dna_by_id[table].stop_codons


def _codons(rule: KeepProtein | NoStop, text: str, lo: int, hi: int, offset: int) -> list[str]:
    """In the protein's order; NNN where the letters are not all here."""
    exons = [(a - offset, b - offset) for a, b in rule.exons] or [(lo, hi)]
    places = [at for a, b in exons for at in range(a, b)]
    letters = "".join(text[at] if 0 <= at < len(text) else "N" for at in places)
    whole = [letters[i : i + 3] for i in range(0, len(letters) - 2, 3)]
    if rule.strand == 1:
        return whole
    return [str(Seq(codon).reverse_complement()) for codon in reversed(whole)]


def _keep(rule: KeepBases, text: str, before: str, lo: int, hi: int, offset: int) -> Iterator[str]:
    for at in range(lo, hi):
        if text[at] != before[at]:
            yield f"{text[at]} at {at + offset + 1}, was {before[at]}"


def _pattern(
    rule: FitPattern, text: str, before: str, lo: int, hi: int, offset: int
) -> Iterator[str]:
    at = lo if rule.at is None else rule.at - offset
    for i, code in enumerate(rule.pattern.strip().upper()):
        if text[at + i] not in ambiguous_dna_values[code] and not text[at + i] == code == "N":
            yield f"{text[at + i]} at {at + i + offset + 1}, wanted {code}"


def _edits(rule: MaxEdits, text: str, before: str, lo: int, hi: int, offset: int) -> Iterator[str]:
    n = sum(a != b for a, b in zip(text[lo:hi], before[lo:hi], strict=True) if b in "ACGT")
    if n > rule.most:
        yield f"{n} edits"


_JUDGES: dict[type, Callable[..., Iterator[str]]] = {
    Avoid: _avoid, Require: _require, AvoidSites: _sites, MaxRun: _run, NoRepeats: _repeats,
    NoGenomeRepeats: _genome,
    GcContent: _gc, KeepProtein: _protein, NoStop: _stop, KeepBases: _keep,
    FitPattern: _pattern, MaxEdits: _edits,
}  # fmt: skip


def find_conflict(rules: Rules, space: DesignSpace) -> list[Constraint]:
    """A minimal conflicting subset, in order; empty where all can be met.

    Raises `UsageError` where a product is too large.
    """
    found = find_judged_conflict(judge_in(rules, space), space, most_states=MOST_STATES)
    return [rule for rule, _ in found]


def find_judged_conflict(
    judged: Sequence[Judged], space: DesignSpace, *, most_states: int
) -> list[Judged]:
    """As `find_conflict`, of constraints that judge intervals of their own."""
    parts = list(judged)
    for part in parts:  # most conflicts are with the kept bases alone
        if not can_be_met([part], space, most_states=most_states):
            return [part]
    if can_be_met(parts, space, most_states=most_states):
        return []
    at = 0
    while at < len(parts):
        rest = parts[:at] + parts[at + 1 :]
        if can_be_met(rest, space, most_states=most_states):
            at += 1
        else:
            parts = rest
    return parts
