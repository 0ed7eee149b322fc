"""Pairwise alignments of a genome with others, from PAF, UCSC chain or MAF, streamed.

Each format is read into `AlignedPair`s: two loci and the ungapped blocks between them. Coordinates
are 0-based and half-open. Those of a locus on strand `-` count from the other end of its sequence,
as in MAF and chain files. The order of the file decides nothing: a reader sorts the blocks.

A file claims bases (rows of MAF, mismatches of `cs`) or that two bases are equal (`cs`, and `=` and
`X` of `cg`). Claims are kept with their line: who has the sequences can name the first wrong one.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import LETTER_CODES
from genodiff.errors import DataError, printable
from genodiff.io.input_file import name_input
from genodiff.io.text_lines import read_text_lines

UNKNOWN = 4
"""The code of a base of which a file claims nothing."""
_CIGAR = re.compile(r"(\d+)([MIDNSHP=X])")
_CS = re.compile(r"(:\d+)|(=[A-Za-z]+)|(\*[A-Za-z]{2})|(\+[A-Za-z]+)|(-[A-Za-z]+)|(~\w\w\d+\w\w)")
_GAP = ord("-")

Blocks = NDArray[np.int64]
Lines = Iterator[tuple[int, str]]
Steps = list[tuple[str, int]]


class AlignedLocus(NamedTuple):
    """An interval of a sequence of `size` bases, on the sequence's `strand` (0 forward, 1 `-`)."""

    name: str
    size: int
    start: int
    end: int
    strand: int


class AlignedPair(NamedTuple):
    """Two loci, `blocks` (N, 3): start in each and length; and what the file claims of the bases.

    `bases` (2, columns): the codes of both in the blocks, 4 where nothing is claimed; `equal`
    (columns,): 1 where a column is claimed to hold equal bases, 0 different ones, 2 nothing.
    `rows`: how many sequences the block has in the file. `whole`: the codes of the second locus
    without its gaps, where the file has them.
    """

    line: int
    top: AlignedLocus
    low: AlignedLocus
    blocks: Blocks
    bases: NDArray[np.uint8] | None = None
    equal: NDArray[np.uint8] | None = None
    rows: int = 2
    whole: NDArray[np.uint8] | None = None

    def exchange(self) -> "AlignedPair":
        """The same pair with the other sequence first."""
        bases = None if self.bases is None else self.bases[::-1]
        blocks = self.blocks[:, [1, 0, 2]]
        return self._replace(top=self.low, low=self.top, blocks=blocks, bases=bases)


def find_alignment_format(path: str | Path) -> str | None:
    """The name of the format of an alignment; None for any other file."""
    try:
        return _open(path)[0]
    except DataError:
        return None


def read_alignments(path: str | Path) -> Iterator[AlignedPair]:
    """The pairs of an alignment file. Raises `DataError` naming the line that is wrong."""
    shown = name_input(path)
    name, lines = _open(path)
    if name is None:
        what = f"is no alignment that can be read ({', '.join(ALIGNMENT_FORMATS)})"
        fix = "give PAF with cg or cs (minimap2 -c), a UCSC chain, or MAF (of TAF: taffy view -m)"
        raise DataError(what, file=shown, fix=fix)
    found = False
    for pair in ALIGNMENT_FORMATS[name][1](lines, shown):
        found = True
        yield pair
    if not found:
        raise DataError("holds no alignment", file=shown, fix="give a file with aligned sequences")


def _open(path: str | Path) -> tuple[str | None, Lines]:
    lines, head = read_text_lines(path, "an alignment"), []
    for number, text in lines:
        head.append((number, text))
        if text.strip() and (text[0] != "#" or text.startswith("##maf")):
            for name, (begins, _) in ALIGNMENT_FORMATS.items():
                if re.match(begins, text):
                    return name, chain(head, lines)
            break
    return None, lines


def refuse_alignment(what: str, shown: str, line: int) -> DataError:
    """The error for a line of an alignment."""
    return DataError(what, file=shown, line=line, fix="make the alignment again")


def _read_paf(lines: Lines, shown: str) -> Iterator[AlignedPair]:
    """Query first, target second; the query's blocks count along the strand that is aligned."""
    for line, text in lines:
        if not text.strip() or text[0] == "#":
            continue
        fields = text.split("\t")
        if len(fields) < 12:
            raise refuse_alignment(f"has {len(fields)} columns, not 12 or more", shown, line)
        low = _read_locus([*fields[:2], fields[4], *fields[2:4]], shown, line)
        top = _read_locus([*fields[5:7], "+", *fields[7:9]], shown, line)
        if low.strand:
            low = low._replace(start=low.size - low.end, end=low.size - low.start)
        tags = {one[:5]: one[5:] for one in fields[12:]}
        bases, equal = None, None
        if "cs:Z:" in tags:
            steps, bases, equal = _read_cs(tags["cs:Z:"], shown, line)
        elif "cg:Z:" in tags:
            steps, equal = _read_cigar(tags["cg:Z:"], shown, line)
        else:
            what = "has neither cg nor cs, so where the gaps are is not known (minimap2 -c or --cs)"
            raise refuse_alignment(what, shown, line)
        yield AlignedPair(line, top, low, _walk(steps, top, low, shown, line), bases, equal)


def _read_cigar(text: str, shown: str, line: int) -> tuple[Steps, "np.ndarray | None"]:
    found = _CIGAR.findall(text)
    if sum(len(n) + 1 for n, _ in found) != len(text):
        raise refuse_alignment("its CIGAR cannot be read", shown, line)
    steps = [(op, int(n)) for n, op in found]
    columns = [(op, n) for op, n in steps if op in "M=X"]
    equal = np.repeat(["X=M".index(op) for op, _ in columns], [n for _, n in columns])
    return steps, equal.astype(np.uint8)


def _read_cs(text: str, shown: str, line: int) -> tuple[Steps, np.ndarray, np.ndarray]:
    """Steps, the bases that are named, and which columns are equal."""
    steps, at = Steps(), 0
    named: list[tuple[str, str]] = []
    equal: list[tuple[int, int]] = []
    for found in _CS.finditer(text):
        if found.start() != at:
            break
        at, part = found.end(), found[0]
        kind, rest = part[0], part[1:]
        if kind in ":=":
            n = int(rest) if kind == ":" else len(rest)
            named.append((rest, rest) if kind == "=" else ("N" * n, "N" * n))
            equal.append((1, n))
            steps.append(("M", n))
        elif kind == "*":
            named.append((rest[0], rest[1]))
            equal.append((0, 1))
            steps.append(("M", 1))
        elif kind == "~":
            steps.append(("D", int(rest[2:-2])))
        else:
            steps.append(("I" if kind == "+" else "D", len(rest)))
    if at != len(text):
        raise refuse_alignment("its cs tag cannot be read", shown, line)
    bases = np.stack([_encode("".join(pair[i] for pair in named)) for i in (0, 1)])
    flags = np.repeat([one for one, _ in equal], [n for _, n in equal]).astype(np.uint8)
    return steps, bases, flags


def _walk(steps: Steps, top: AlignedLocus, low: AlignedLocus, shown: str, line: int) -> Blocks:
    """The blocks of steps M (= and X), I (in the query alone) and D (in the target alone)."""
    t, q = top.start, low.start
    blocks: list[list[int]] = []
    for op, n in steps:
        if op in "M=X":
            if blocks and blocks[-1][0] + blocks[-1][2] == t and blocks[-1][1] + blocks[-1][2] == q:
                blocks[-1][2] += n
            else:
                blocks.append([t, q, n])
            t, q = t + n, q + n
        elif op in "DN":
            t += n
        elif op == "I":
            q += n
    if (t, q) != (top.end, low.end):
        what = f"its gaps end at {t:,} and {q:,}, not at {top.end:,} and {low.end:,}"
        raise refuse_alignment(what, shown, line)
    return np.array(blocks, np.int64).reshape(-1, 3)


def _read_chain(lines: Lines, shown: str) -> Iterator[AlignedPair]:
    """A header, then lines of size, gap in the reference, gap in the query; a last size alone."""
    head: tuple[int, AlignedLocus, AlignedLocus] | None = None
    t = q = 0
    blocks: list[tuple[int, int, int]] = []
    for line, text in lines:
        fields = text.split()
        if not fields or text[0] == "#":
            continue
        if fields[0] == "chain":
            if head is not None or len(fields) < 12:
                few = f"a chain's header has {len(fields)} fields, not 12"
                what = "a chain begins before the one above it has ended" if head else few
                raise refuse_alignment(what, shown, line)
            top, low = (_read_locus(some, shown, line) for some in (fields[2:7], fields[7:12]))
            head, t, q, blocks = (line, top, low), top.start, low.start, []
            continue
        if head is None or len(fields) not in (1, 3):
            raise refuse_alignment("is no line of a chain", shown, line)
        numbers = _read_numbers(fields, shown, line)
        blocks.append((t, q, numbers[0]))
        t, q = t + numbers[0], q + numbers[0]
        if len(numbers) == 3:
            t, q = t + numbers[1], q + numbers[2]
            continue
        first, top, low = head
        if (t, q) != (top.end, low.end):
            what = f"its blocks end at {t:,} and {q:,}, not at {top.end:,} and {low.end:,}"
            raise refuse_alignment(what, shown, first)
        yield AlignedPair(first, top, low, np.array(blocks, np.int64))
        head = None
    if head is not None:
        raise refuse_alignment("a chain has no last line: the file is cut short", shown, head[0])


def _read_maf(lines: Lines, shown: str) -> Iterator[AlignedPair]:
    """The first row of each block with each of the others."""
    rows: list[tuple[int, AlignedLocus, np.ndarray, np.ndarray]] = []
    for line, text in lines:
        if not text.strip() or text[0] in "a#":
            yield from _pair_rows(rows)
            rows = []
        elif text[0] == "s":
            fields = text.split()
            if len(fields) != 7:
                raise refuse_alignment(f"has {len(fields)} fields, not 7", shown, line)
            start, n = _read_numbers(fields[2:4], shown, line)
            place = (fields[1], fields[5], fields[4], fields[2], str(start + n))
            locus = _read_locus(place, shown, line)
            letters = np.frombuffer(fields[6].encode("ascii", "replace"), np.uint8)
            if (there := int((letters != _GAP).sum())) != n:
                what = f"says that it has {n:,} bases and has {there:,}"
                raise refuse_alignment(what, shown, line)
            if rows and len(letters) != len(rows[0][2]):
                what = f"has {len(letters):,} columns, and the row above {len(rows[0][2]):,}"
                raise refuse_alignment(what, shown, line)
            rows.append((line, locus, letters, _encode(fields[6])))
        elif text[0] not in "ieqt":
            raise refuse_alignment("is no line of MAF", shown, line)
    yield from _pair_rows(rows)


def _pair_rows(
    rows: list[tuple[int, AlignedLocus, np.ndarray, np.ndarray]],
) -> Iterator[AlignedPair]:
    if len(rows) < 2:
        return
    _, top, x, x_codes = rows[0]
    here = x != _GAP
    x_place = top.start + np.cumsum(here) - here
    for line, low, y, y_codes in rows[1:]:
        there = y != _GAP
        columns = np.flatnonzero(here & there)
        if not len(columns):
            continue
        t, q = x_place[columns], (low.start + np.cumsum(there) - there)[columns]
        breaks = np.flatnonzero((np.diff(t) != 1) | (np.diff(q) != 1)) + 1
        begins = np.append(0, breaks)
        lengths = np.diff(np.append(begins, len(columns)))
        blocks = np.stack([t[begins], q[begins], lengths], 1).astype(np.int64)
        bases = np.minimum(np.stack([x_codes[columns], y_codes[columns]]), UNKNOWN)
        yield AlignedPair(line, top, low, blocks, bases, None, len(rows), y_codes[there])


def _read_locus(fields: Sequence[str], shown: str, line: int) -> AlignedLocus:
    """The locus of name, size, strand, start and end."""
    name, size, strand, start, end = fields
    if strand not in ("+", "-"):
        raise refuse_alignment(f"'{printable(strand, 20)}' is no strand", shown, line)
    n, a, b = _read_numbers([size, start, end], shown, line)
    if not a <= b <= n:
        raise refuse_alignment(f"{a:,}-{b:,} is not within {name} ({n:,} bases)", shown, line)
    return AlignedLocus(name, n, a, b, "+-".index(strand))


def _read_numbers(fields: Sequence[str], shown: str, line: int) -> list[int]:
    for one in fields:
        if not (one.isascii() and one.isdecimal() and len(one) < 16):
            raise refuse_alignment(f"'{printable(one, 20)}' is no position or length", shown, line)
    return [int(one) for one in fields]


def _encode(text: str) -> NDArray[np.uint8]:
    """The codes of letters, 4 for any that is not A, C, G or T in either case."""
    return LETTER_CODES[np.frombuffer(text.encode("ascii", "replace"), np.uint8)]


ALIGNMENT_FORMATS = {
    "maf": (r"##maf|a( |$)", _read_maf),
    "chain": (r"chain \d+ ", _read_chain),
    "paf": (r"[^\t]+(\t\d+){3}\t[+-]\t[^\t]+\t\d+\t", _read_paf),
}
"""How the first line of content of each looks, and the reader of its numbered lines."""
