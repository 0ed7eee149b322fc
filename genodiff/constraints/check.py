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
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from Bio import BiopythonWarning, Restriction
from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Data.IUPACData import ambiguous_dna_values
from Bio.Seq import Seq

from genodiff.constraints.coding import KeepProtein, NoStop
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import Constraint, DesignSpace, KeepBases, MaxEdits
from genodiff.constraints.layers import MOST_STATES, Judged, Rules, is_feasible, judge_in
from genodiff.constraints.repeats import NoGenomeRepeats, NoRepeats
from genodiff.constraints.words import Avoid, AvoidSites, FitPattern, MaxRun, Require


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
        here = _Letters(text, before, lo, max(lo, hi), offset)
        found += [f"{rule}: {what}" for what in _JUDGES[type(rule)](rule, here)]
    return found


class _Letters(NamedTuple):
    """Letters now and before, of which lo … hi are judged; `offset` as in `find_violations`."""

    text: str
    before: str
    lo: int
    hi: int
    offset: int

    def touches(self, start: int, end: int) -> bool:
        """Whether start … end shares a letter with the judged interval."""
        return start < self.hi and end > self.lo


def _find_words(words: list[str], both: bool, text: str) -> Iterator[tuple[int, int, str]]:
    for word in words:
        for strand in (word, str(Seq(word).reverse_complement())) if both else (word,):
            sets = "".join(f"[{ambiguous_dna_values[code]}]" for code in strand)
            for hit in re.finditer(f"(?=({sets}))", text):
                yield hit.start(), hit.start() + len(word), hit[1]


def _avoid(rule: Avoid, at: _Letters) -> Iterator[str]:
    words = [word.strip().upper() for word in rule.words]
    for start, end, letters in _find_words(words, rule.both, at.text):
        if at.touches(start, end):
            yield f"{letters} at {start + at.offset + 1}"


def _require(rule: Require, at: _Letters) -> Iterator[str]:
    words = [word.strip().upper() for word in rule.words]
    if not any(_find_words(words, rule.both, at.text[at.lo : at.hi])):
        yield "is not there"


def _sites(rule: AvoidSites, at: _Letters) -> Iterator[str]:
    for name in rule.enzymes:
        site = Avoid((str(getattr(Restriction, name).site),))
        yield from (f"{name} {what}" for what in _avoid(site, at))


def _run(rule: MaxRun, at: _Letters) -> Iterator[str]:
    for hit in re.finditer("A+|C+|G+|T+", at.text):
        if hit.end() - hit.start() > rule.longest and at.touches(*hit.span()):
            yield f"{hit[0]} at {hit.start() + at.offset + 1}"


def _repeats(rule: NoRepeats, at: _Letters) -> Iterator[str]:
    size, words = rule.longest + 1, set(rule.words)
    for start in range(max(0, at.lo - size + 1), min(len(at.text) - size + 1, at.hi)):
        if at.text[start : start + size] in words:
            yield f"{at.text[start : start + size]} at {start + at.offset + 1}"


def _genome(rule: NoGenomeRepeats, at: _Letters) -> Iterator[str]:
    for start in rule.find_repeats(at.text, at.lo, at.hi):
        yield f"{at.text[start : start + rule.longest + 1]} at {start + at.offset + 1}"


def _gc(rule: GcContent, at: _Letters) -> Iterator[str]:
    size = at.hi - at.lo
    window = min(rule.window or size, size)
    for start in range(at.lo, at.hi - window + 1, rule.step if window < size else 1):
        piece = at.text[start : start + window]
        n = piece.count("G") + piece.count("C")
        if not math.ceil(rule.low * window - 1e-9) <= n <= math.floor(rule.high * window + 1e-9):
            yield f"{n} of {window} at {start + at.offset + 1}"


def _protein(rule: KeepProtein, at: _Letters) -> Iterator[str]:
    starts = unambiguous_dna_by_id[rule.table].start_codons
    for number, codon, was in _codons(rule, at):
        now = _translate(codon, rule.table)
        if rule.protein is not None:
            good = ("X", "*" if now[1] else "", now[0])
            if "N" not in codon and rule.protein[number].upper() not in good:
                yield f"codon {number + 1} is {codon}"
        elif codon != was and (
            now != _translate(was, rule.table) or (rule.keep_start and not number and was in starts)
        ):
            yield f"codon {number + 1} is {codon}, was {was}"


def _stop(rule: NoStop, at: _Letters) -> Iterator[str]:
    for number, codon, was in _codons(rule, at):
        if codon != was and _translate(codon, rule.table)[1]:
            yield f"codon {number + 1} is {codon}"


@lru_cache(maxsize=4096)
def _translate(codon: str, table: int) -> tuple[str, bool]:
    """The amino acid, and whether the codon is a stop: some codes have codons that are both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiopythonWarning)
        amino = str(Seq(codon).translate(table=table))
    return amino, codon in unambiguous_dna_by_id[table].stop_codons


def _codons(rule: KeepProtein | NoStop, at: _Letters) -> Iterator[tuple[int, str, str]]:
    """(number, codon, codon before) in the protein's order; NNN where letters are not all here."""
    exons = [(a - at.offset, b - at.offset) for a, b in rule.exons] or [(at.lo, at.hi)]
    places = [i for a, b in exons for i in range(a, b)]

    def read(text: str) -> list[str]:
        letters = "".join(text[i] if 0 <= i < len(text) else "N" for i in places)
        whole = [letters[i : i + 3] for i in range(0, len(letters) - 2, 3)]
        if rule.strand == 1:
            return whole
        return [str(Seq(codon).reverse_complement()) for codon in reversed(whole)]

    new, old = read(at.text), read(at.before)
    yield from ((i, *pair) for i, pair in enumerate(zip(new, old, strict=True)))


def _keep(rule: KeepBases, at: _Letters) -> Iterator[str]:
    for i in range(at.lo, at.hi):
        if at.text[i] != at.before[i]:
            yield f"{at.text[i]} at {i + at.offset + 1}, was {at.before[i]}"


def _pattern(rule: FitPattern, at: _Letters) -> Iterator[str]:
    first = at.lo if rule.at is None else rule.at - at.offset
    for i, code in enumerate(rule.pattern.strip().upper(), first):
        letter = at.text[i]
        if letter not in ambiguous_dna_values[code] and not letter == code == "N":
            yield f"{letter} at {i + at.offset + 1}, wanted {code}"


def _edits(rule: MaxEdits, at: _Letters) -> Iterator[str]:
    pairs = zip(at.text[at.lo : at.hi], at.before[at.lo : at.hi], strict=True)
    n = sum(a != b for a, b in pairs if b in "ACGT")
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
    return [rule for rule, _ in find_judged_conflict(rules, space)]


def find_judged_conflict(
    rules: Rules, space: DesignSpace, *, most_states: int = MOST_STATES
) -> list[Judged]:
    """`find_conflict`, each constraint with where it holds."""
    parts = judge_in(rules, space)
    for part in parts:  # most conflicts are with the kept bases alone
        if not is_feasible([part], space, most_states=most_states):
            return [part]
    if is_feasible(parts, space, most_states=most_states):
        return []
    at = 0
    while at < len(parts):
        rest = parts[:at] + parts[at + 1 :]
        if is_feasible(rest, space, most_states=most_states):
            at += 1
        else:
            parts = rest
    return parts
