"""Motif files: MEME (minimal, text output and XML), JASPAR and TRANSFAC, plain or gzip.

A motif is a matrix of probabilities, one row per position, with columns A, C, G and T. Biopython
parses the XML of MEME. The others are read here: Biopython drops a record that is cut short, and
rounds MEME's probability times nsites, which leaves rows of zeros where nsites is small.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from Bio import motifs as bio_motifs

from genodiff.errors import DataError
from genodiff.io.file_kinds import find_motif_format
from genodiff.io.input_file import open_input
from genodiff.io.text_lines import Line, RowReader, split_lines

_AGAIN = "copy or download the file again"
_NO_MATRIX = "has no letter-probability matrix: is the file cut short?"
_DNA = "give motifs of DNA, with the letters A, C, G and T"
_KEY = re.compile(r"(?:[A-Z][A-Z0-9]|[0-9]{1,3}|//)(?:\s|$)")
_TOLERANCE = 0.011  # of a row's sum: three times 0.33 is 0.99


@dataclass(frozen=True, eq=False)
class Motif:
    """A motif of DNA; `id` is unique in its file, `name` a second name where there is one."""

    id: str
    name: str
    matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    """Probabilities (width, 4) of A, C, G and T; every row sums to 1."""
    sites: float | None
    """The number of sites that the matrix was counted from, where the file says it."""

    @property
    def width(self) -> int:
        return len(self.matrix)

    def consensus(self) -> str:
        """The consensus in IUPAC letters, by the rules of Cavener (1987)."""
        return str(_as_biopython(self.matrix).degenerate_consensus)

    def information_bits(self) -> float:
        """The sum over positions of 2 bits minus the entropy (no correction for few sites)."""
        return float(_as_biopython(self.matrix).relative_entropy.sum())


def _as_biopython(matrix: np.ndarray) -> Any:
    counts = {letter: matrix[:, i].tolist() for i, letter in enumerate("ACGT")}
    return bio_motifs.Motif(alphabet="ACGT", counts=counts)


def read_motifs(path: str | Path) -> list[Motif]:
    """The motifs of a file, in its order. Raises `DataError` at the first fault."""
    with open_input(path) as source:
        data = b"".join(source.blocks())
        shown = source.shown
    kind = find_motif_format(path, data[: 1 << 16])
    if not data.strip():
        raise DataError("is empty: no motif", file=shown, fix="give a file with motifs")
    if kind is None:
        what = "is not a motif file: neither MEME nor JASPAR nor TRANSFAC"
        raise DataError(what, file=shown, line=1, fix="give one of these formats")
    lines = list(split_lines([data], f"{kind} motifs", shown))
    if kind == "MEME":
        xml = next(text for _, text in lines if text.strip()).lstrip().startswith("<")
        found = _read_meme_xml(lines, shown) if xml else _read_meme_text(lines, shown)
    else:
        found = (_read_jaspar if kind == "JASPAR" else _read_transfac)(lines, shown)
    seen: dict[str, int | None] = {}
    motifs = []
    for line, motif in found:
        reader = RowReader(shown, line, motif.id)
        if motif.id in seen:
            first = f" (first at line {seen[motif.id]})" if seen[motif.id] else ""
            what = f"duplicate name: it stands more than once{first}"
            raise reader.fault(what, "rename or remove one of the motifs")
        seen[motif.id] = line
        for name in (motif.id, motif.name):
            reader.check_name(name, "motif's name")
        motifs.append(motif)
    if not motifs:
        what = f"holds no motif: this {kind} file ends before the first one"
        raise DataError(what, file=shown, fix=_AGAIN)
    return motifs


def _read_meme_text(lines: list[Line], shown: str) -> Iterator[tuple[int, Motif]]:
    """The motifs of MEME's minimal format, or of its text output."""
    known = False
    header: tuple[int, str, str] | None = None  # line, id, name
    for at, (number, text) in enumerate(lines):
        words, fault = _split_plainly(text), RowReader(shown, number).fault
        if text.startswith("MEME version"):
            known = True
        elif text.startswith("ALPHABET"):
            _check_alphabet(lines, at, shown)
        elif words[:1] == ["MOTIF"] and text.startswith("MOTIF"):
            if not known:
                raise fault("a MOTIF before any line 'MEME version'", "add 'MEME version 4' above")
            if header is not None:
                raise RowReader(shown, *header[:2]).fault(_NO_MATRIX, _AGAIN)
            if len(words) < 2:
                raise fault("a MOTIF line without a name", "name the motif: MOTIF NAME")
            second = len(words) > 2 and words[2] != "NA" and not words[2].startswith("width")
            header = number, words[1], words[2] if second else words[1]
        elif text.lstrip().startswith("letter-probability matrix"):
            if header is None:
                what = "a letter-probability matrix without a MOTIF line above"
                raise fault(what, "add a line: MOTIF NAME")
            start, name, alias = header
            matrix, sites = _read_rows(lines, at, shown, name)
            yield start, Motif(name, alias, matrix, sites)
            header = None
    if header is not None:
        raise RowReader(shown, *header[:2]).fault(_NO_MATRIX, _AGAIN)
    if not known:
        raise DataError("has no line 'MEME version'", file=shown, line=1, fix=_AGAIN)


def _check_alphabet(lines: list[Line], at: int, shown: str) -> None:
    """Raise `DataError` unless the alphabet, on one line or in a block, is A, C, G and T."""
    number, text = lines[at]
    letters = text.removeprefix("ALPHABET").lstrip(" =").strip()
    if not text.startswith("ALPHABET="):
        core = set[str]()
        for i in range(at + 1, len(lines)):
            if lines[i][1].startswith(("END ALPHABET", "MOTIF")):
                break
            if "=" not in lines[i][1]:  # a line with = defines an ambiguity code
                core.update(re.findall(r"(?:^|~\s*)(\S)(?=\s|$)", lines[i][1]))
        letters = "".join(sorted(core))
    if letters != "ACGT":
        what = f"the alphabet is '{letters[:40]}', not ACGT"
        raise DataError(what, file=shown, line=number, fix=_DNA)


def _read_rows(
    lines: list[Line], at: int, shown: str, name: str
) -> tuple[np.ndarray, float | None]:
    """The matrix below line `at`, which says `letter-probability matrix:`, and its nsites."""

    number, text = lines[at]
    head = RowReader(shown, number, name)
    given: dict[str, float | None] = dict.fromkeys(("alength", "w", "nsites"))
    for key, value in re.findall(r"(\w+)=\s*(\S+)", text):
        if key in given:
            given[key] = _read_number(value)
            if given[key] is None:
                raise head.fault(f"{key}= {value} is not a number", "correct the line")
    alength, width, sites = given.values()
    if alength not in (None, 4):
        raise head.fault(f"the alphabet has {alength:g} letters, not 4", _DNA)
    rows: list[list[float]] = []
    for i in range(at + 1, len(lines)):
        line, row = lines[i]
        words, reader = row.split(), RowReader(shown, line, name)
        if not words and rows and width is not None and len(rows) < width:
            continue  # blank lines between rows
        if not words or _read_number(words[0]) is None:
            if words and width is not None and len(rows) < width:
                what = f"row {len(rows) + 1} of {width:g} expected, found '{row.strip()[:40]}'"
                raise reader.fault(what, _AGAIN)
            break
        if width is not None and len(rows) >= width:
            raise reader.fault(f"more rows than w= {width:g}", "correct w=, or remove rows")
        rows.append(_read_probabilities(words, reader))
    if not rows or width not in (None, len(rows)):
        declared = "" if width is None else f", w= {width:g} declares more"
        what = f"the matrix ends after {len(rows)} rows{declared}: is the file cut short?"
        raise head.fault(what, _AGAIN)
    matrix = np.array(rows)
    return matrix / matrix.sum(axis=1, keepdims=True), sites


def _read_number(word: str) -> float | None:
    """A number in plain digits, inf and nan among them."""
    try:
        return float(word) if word.isascii() and "_" not in word else None
    except ValueError:
        return None


def _split_plainly(text: str) -> list[str]:
    """The words between blanks and tabs; a no-break space is none of these."""
    return [word for word in re.split(r"[ \t]+", text) if word]


def _read_probabilities(words: list[str], reader: RowReader) -> list[float]:
    numbers = [value for word in words if (value := _read_number(word)) is not None]
    if len(numbers) != 4 or len(words) != 4:
        what = f"a row needs four numbers (A, C, G, T), found '{' '.join(words)[:40]}'"
    elif not np.isfinite(numbers).all() or min(numbers) < 0:
        what = f"a probability is negative or not finite: '{' '.join(words)[:40]}'"
    elif abs(sum(numbers) - 1) > _TOLERANCE:
        what = f"the row sums to {sum(numbers):.6g}, not to 1"
    else:
        return numbers
    raise reader.fault(what, "give probabilities, each row with the sum 1")


def _normalise(counts: np.ndarray, reader: RowReader) -> tuple[np.ndarray, float | None]:
    """The probabilities of a matrix of counts (width, 4), and the number of sites."""
    what = ""
    if not len(counts):
        what = "the matrix has no position"
    elif not np.isfinite(counts).all() or (counts < 0).any():
        what = "a count is negative or not finite"
    elif not counts.sum(axis=1).all():
        empty = int(counts.sum(axis=1).argmin()) + 1
        what = f"position {empty} of the matrix has no counts: all four are 0"
    if what:
        raise reader.fault(what, "correct the matrix")
    sums = counts.sum(axis=1)
    counted = sums.min() > 1 + _TOLERANCE and np.ptp(sums) <= 0.01 * sums.max()
    return counts / sums[:, None], float(sums.max()) if counted else None


def _read_meme_xml(lines: list[Line], shown: str) -> Iterator[tuple[int, Motif]]:
    """The motifs of MEME's XML output; the line is 1, since the parser keeps none."""
    try:
        record = bio_motifs.parse(StringIO("\n".join(text for _, text in lines)), "MEME")
    except Exception as error:  # the parser raises whatever a malformed line leads it to
        reason = " ".join(str(error).split()) or type(error).__name__
        what, fix = f"this MEME record cannot be parsed: {reason[:160]}", f"repair it, or {_AGAIN}"
        raise DataError(what, file=shown, line=1, fix=fix) from None
    if sorted(record.alphabet) != list("ACGT"):
        raise DataError(f"the alphabet is '{record.alphabet[:40]}', not ACGT", file=shown, fix=_DNA)
    for parsed in record:
        counts = np.array([parsed.counts[letter] for letter in "ACGT"]).T
        matrix, sites = _normalise(counts, RowReader(shown, 1, parsed.name))
        for thing, declared, found in (
            ("positions", parsed.length, len(matrix)),
            ("sites", parsed.num_occurrences, sites if sites is not None else 1),
        ):
            if declared != found:
                what = f"declares {declared} {thing} and has {found:g}"
                raise DataError(what, file=shown, record=parsed.name, fix=_AGAIN)
        yield 1, Motif(parsed.name, parsed.alt_id or parsed.name, matrix, sites)


def _read_jaspar(lines: list[Line], shown: str) -> Iterator[tuple[int, Motif]]:
    """The motifs of a JASPAR file: a header `>ID NAME` and a row of counts for each letter."""
    records: list[list[Line]] = []
    for number, text in lines:
        if text.startswith(">"):
            records.append([(number, text)])
        elif text.strip() and records:
            records[-1].append((number, text.strip()))
        elif text.strip():
            what = f"expected a header '>ID NAME', found '{text.strip()[:40]}'"
            raise DataError(what, file=shown, line=number, fix="put a header above the rows")
    for (line, header), *rows in records:
        words = _split_plainly(header[1:])
        if not words:
            raise DataError("a header without a name", file=shown, line=line, fix="name the motif")
        yield line, _read_counts(words[0], (words[1:2] or words)[0], line, rows, shown)


def _read_counts(name: str, alias: str, line: int, rows: list[Line], shown: str) -> Motif:
    counts: list[list[float]] = []
    named = [row[:1].upper() for _, row in rows]
    if sorted(named) == sorted("ACGT"):  # rows that are named may stand in any order
        rows = [rows[named.index(letter)] for letter in "ACGT"]
    for letter, (at, row) in zip("ACGT", rows, strict=False):
        reader = RowReader(shown, at, name)
        found = re.fullmatch(r"(?:([A-Za-z])\s*)?(\[?)\s*([^][]*?)\s*(\]?)", row)
        if found is None or bool(found[2]) != bool(found[4]):
            raise reader.fault(f"'{row[:40]}' is not a row 'A [ 1 2 3 ]': is it cut short?", _AGAIN)
        if (found[1] or letter) != letter:
            raise reader.fault(f"row {found[1]} where {letter} is expected", _DNA)
        counts.append([reader.read_number(word, f"count of {letter}") for word in found[3].split()])
        if len(counts[-1]) != len(counts[0]) or not counts[0]:
            what = f"row {letter} has {len(counts[-1])} positions and row A {len(counts[0])}"
            raise reader.fault(what, f"complete the row, or {_AGAIN}")
    reader = RowReader(shown, line, name)
    if len(rows) != 4:
        what = f"has {len(rows)} rows, not one for each of A, C, G and T: is the file cut short?"
        raise reader.fault(what, _AGAIN)
    return Motif(name, alias, *_normalise(np.array(counts).T, reader))


def _read_transfac(lines: list[Line], shown: str) -> Iterator[tuple[int, Motif]]:
    """The motifs of a TRANSFAC file: entries with a matrix P0, each ended by a line `//`."""
    held: list[Line] = []
    for number, text in lines:
        if text.strip():
            held.append((number, text.strip()))
        if text.strip() != "//":
            continue
        keys = [row.split()[0] for _, row in held]
        if {"P0", "PO"} & set(keys):
            yield held[0][0], _read_entry(held, keys, shown)
        elif {"AC", "ID"} & set(keys):  # the entry of the version, VV, has no matrix either
            what = "this TRANSFAC entry has no matrix (a line P0)"
            raise DataError(what, file=shown, line=held[0][0], fix="complete or remove the entry")
        held = []
    if held:
        what = "the TRANSFAC entry that begins here is cut short: it has no line '//' at its end"
        raise DataError(what, file=shown, line=held[0][0], fix=_AGAIN)


def _read_entry(entry: list[Line], keys: list[str], shown: str) -> Motif:
    values = {row[:2]: row[2:].strip() for _, row in entry}
    name = (values.get("AC") or values.get("ID") or "").split(";")[0]
    whole = RowReader(shown, entry[0][0], name or None)
    if not name:
        raise whole.fault("has no AC and no ID", "name the entry")
    counts: list[list[float]] = []
    inside = False  # the matrix
    for at, row in entry:
        reader, (key, *words) = RowReader(shown, at, name), row.split()
        if not _KEY.match(row):
            what = f"cannot be parsed: '{row[:40]}' does not begin with a key of two letters"
            raise reader.fault(what, "correct the line")
        if key in ("P0", "PO") and words[:4] != list("ACGT"):
            what = f"cannot be parsed: the columns '{' '.join(words[:4])}' are not A C G T"
            raise reader.fault(what, _DNA)
        inside = key in ("P0", "PO") or (inside and key.isdigit())
        if inside and key.isdigit():
            counts.append([reader.read_number(word, f"count in row {key}") for word in words[:4]])
            if len(words) < 4:
                raise reader.fault(f"row {key} has no value for each nucleotide", "complete it")
    rows = sum(key.isdigit() for key in keys)
    if rows != len(counts):
        what = f"has {rows} numbered rows, of which {len(counts)} are a matrix"
        raise whole.fault(what, "correct the rows")
    title = values.get("NA") or values.get("ID") or name
    return Motif(name, title, *_normalise(np.array(counts).reshape(-1, 4), whole))
