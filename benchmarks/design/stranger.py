"""Reads finished designs as a stranger: regular expressions, Biopython and plain loops.

It imports nothing of genodiff. Rules are the words that a user gives to `genodiff redesign`; the
contig is called c. Regions are 0-based and half-open, and each is judged by itself.
"""

import re
from itertools import groupby

from Bio import Restriction
from Bio.Data import CodonTable, IUPACData
from Bio.Seq import Seq

Region = tuple[int, int]
PAD = "N" * 40


def find_faults(before: str, after: str, regions: list[Region], rules: dict) -> list[str]:
    """What is wrong with a design, in words."""
    faults = []
    if len(before) != len(after):
        return ["another length"]
    free = {at for a, b in regions for at in range(a, b)}
    for word in rules.get("keep", ()):
        start, end = map(int, word.removeprefix("c:").split("-"))
        free -= set(range(start - 1, end))
    if any(x != y for at, (x, y) in enumerate(zip(before, after, strict=True)) if at not in free):
        faults.append("kept base")
    if any(after[at].upper() not in "ACGT" for at in free):
        faults.append("no base")
    old, new = before.upper(), after.upper()
    for a, b in regions:
        faults += _judge_region(old, new, a, b, rules)
    code = rules.get("genetic_code", 1)
    for name in ("protein", "no_stop"):
        for word in rules.get(name, ()):
            for places, strand in _frames(word, regions):
                pair = [_codons(text, places, strand) for text in (old, new)]
                judge = _protein if name == "protein" else _no_stop
                faults += judge(*pair, code)
    return faults


def _judge_region(old: str, new: str, a: int, b: int, rules: dict) -> list[str]:
    faults = []
    for word in rules.get("avoid", ()):
        if any(x < b and y > a for x, y in _hits(word, new)):
            faults.append(f"avoid {word}")
    for word in rules.get("require", ()):
        if not any(a <= x and y <= b for x, y in _hits(word, new)):
            faults.append(f"require {word}")
    for name in rules.get("enzymes", ()):
        enzyme = getattr(Restriction, name)
        reach = len(enzyme.site) - 1  # every site in this piece has a base in the region
        if enzyme.search(Seq(PAD + new[max(0, a - reach) : b + reach] + PAD)):
            faults.append(f"enzyme {name}")
    longest = rules.get("max_run")
    at = 0
    for base, run in groupby(new):
        size = len(list(run))
        if longest and base in "ACGT" and size > longest and at < b and at + size > a:
            faults.append(f"run of {size}")
        at += size
    for word in rules.get("gc", ()):
        shares, _, windows = word.partition("/")
        low, high = (float(x.rstrip("%")) for x in shares.split("-"))
        size, _, step = windows.partition(":")
        width = min(int(size or b - a), b - a)
        for x in range(a, b - width + 1, int(step or 1) if width < b - a else 1):
            share = 100 * sum(letter in "GC" for letter in new[x : x + width]) / width
            if not low - 1e-6 <= share <= high + 1e-6:
                faults.append(f"GC {share:.1f}")
    edits = sum(x != y for x, y in zip(old[a:b], new[a:b], strict=True))
    if edits > rules.get("max_edits", len(new)):
        faults.append(f"{edits} edits")
    for word in rules.get("no_repeats", ()):
        longest, _, path = word.partition(":")
        size = int(longest) + 1
        with open(path) as file:
            text = "".join(line.strip().upper() for line in file if line[0] != ">")
        known = text + "-" + str(Seq(text).reverse_complement())
        for x in range(max(0, a - size + 1), min(b, len(new) - size + 1)):
            if new[x : x + size] in known:
                faults.append(f"repeat {new[x : x + size]}")
    return faults


def _hits(word: str, text: str) -> list[Region]:
    found = []
    for strand in {word, str(Seq(word).reverse_complement())}:
        sets = "".join(f"[{IUPACData.ambiguous_dna_values[code]}]" for code in strand)
        found += [
            (hit.start(), hit.start() + len(word)) for hit in re.finditer(f"(?={sets})", text)
        ]
    return found


def _frames(word: str | dict, regions: list[Region]) -> list[tuple[list[int], int]]:
    """(positions from left to right, strand) of each frame that a word means."""
    if word in ("forward", "reverse"):
        return [(list(range(a, b)), 1 if word == "forward" else -1) for a, b in regions]
    if isinstance(word, dict):
        exons, strand = word["exons"], -1 if word.get("strand") == "-" else 1
    else:
        found = re.fullmatch(r"(c:\d+-\d+)(?::([+-]))?", word)
        exons, strand = [found[1]], -1 if found[2] == "-" else 1
    ends = [tuple(map(int, exon.removeprefix("c:").split("-"))) for exon in exons]
    return [([at for a, b in ends for at in range(a - 1, b)], strand)]


def _codons(text: str, places: list[int], strand: int) -> list[str]:
    letters = "".join(text[at] for at in places)
    letters = letters if strand == 1 else str(Seq(letters).reverse_complement())
    return [letters[i : i + 3] for i in range(0, len(letters), 3)]


def _protein(old: list[str], new: list[str], code: int) -> list[str]:
    table = CodonTable.unambiguous_dna_by_id[code]
    same = Seq("".join(old)).translate(table=code) == Seq("".join(new)).translate(table=code)
    start = old[0] not in table.start_codons or old[0] == new[0]
    return [] if same and start else ["protein"]


def _no_stop(old: list[str], new: list[str], code: int) -> list[str]:
    stops = CodonTable.unambiguous_dna_by_id[code].stop_codons
    return [f"stop {y}" for x, y in zip(old, new, strict=True) if y in stops and x != y]
