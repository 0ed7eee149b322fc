"""GTF, GFF3 and SAF: annotation whose positions count from 1 and include their end.

    GTF, GFF3   CONTIG SOURCE TYPE START END SCORE STRAND PHASE ATTRIBUTES
    SAF         GENE CONTIG START END STRAND, often below a line of these names

A file is one of these if most of its rows have the columns; its name is not asked. Rows become
0-based and half-open, as BED is. Each row stands by itself: parts of a CDS are not joined.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.input_file import name_input
from genodiff.io.regions import suggest_contig
from genodiff.io.text_lines import read_text_lines

_NAMES = ("Name", "gene_name", "ID", "gene_id", "locus_tag", "transcript_id")
"""Attributes that name a row; the first that it has is its name."""
_GTF_PAIR = re.compile(r'(\w+) +"([^"]*)"')
_GFF_PAIR = re.compile(r"([^;=\s]+)=([^;]*)")
_DIGITS = re.compile("[0-9]{1,13}")
_SAF_HEADER = ("geneid", "chr", "start", "end", "strand")
_SEQUENCES = ("##FASTA", ">")  # of GFF3, below its rows
_SHOWN = 4  # types in a message


class AnnotationRow(NamedTuple):
    """contig[start:end] (0-based, half-open); `type` is "" in SAF, `strand` +, - or `.`."""

    contig: str
    start: int
    end: int
    name: str
    strand: str
    type: str
    line: int


class Annotation(NamedTuple):
    """Which format a file has, how many rows of each type, and whether it has a line of names."""

    kind: str
    types: Mapping[str, int]
    has_header: bool = False

    def describe_types(self) -> str:
        """The types with their numbers, the most frequent first."""
        some = sorted(self.types.items(), key=lambda one: -one[1])
        shown = ", ".join(f"{n:,} {name}" for name, n in some[:_SHOWN])
        return shown + (", …" if len(some) > _SHOWN else "")

    def explain(self, path: str | Path) -> str:
        """The command that makes BED of a file, and what reads the file as it is."""
        if self.kind == "SAF":
            rows = "NR > 1 " if self.has_header else ""
            make, out, more = f"{rows}{{print $2, $3 - 1, $4, $1, 0, $5}}", "rows", ""
        else:
            out = max(self.types, key=lambda one: (one == "gene", self.types[one]))
            make = f'$3 == "{out}" {{print $1, $4 - 1, $5, ".", 0, $7}}'
            more = f" (genodiff embed reads the file as it is with --features {out})"
        file = "FILE" if str(path) == "-" else shlex.quote(str(path))
        zipped = file.lower().rstrip("'").endswith((".gz", ".bgz"))
        awk = f"awk -F'\\t' -v OFS='\\t' '{make}'"
        command = f"zcat {file} | {awk}" if zipped else f"{awk} {file}"
        said = f"make BED of the rows that you mean: {command} > {shlex.quote(out + '.bed')}"
        return said + more

    def refuse(self, path: str | Path, line: int) -> DataError:
        """That this is no BED, and what to do."""
        types = f": {self.describe_types()}" if self.types else ""
        what = f"is {self.kind} (annotation that counts from 1{types}), not BED"
        return DataError(what, file=name_input(path), line=line, fix=self.explain(path))


def find_annotation(lines: Iterable[tuple[int, str]]) -> Annotation | None:
    """What numbered lines are, by all of them; None where most rows are of no annotation."""
    rows = gff3 = saf = 0
    has_header = False
    types: Counter[str] = Counter()
    for _, text in lines:
        fields = _split(text)
        if text.startswith(_SEQUENCES):
            break
        if fields is None:
            continue
        if not rows and not has_header and _is_saf_header(fields):
            has_header = True
            continue
        rows += 1
        if _is_gff(fields):
            types[fields[2]] += 1
            gff3 += len(fields) == 9 and "=" in fields[8].partition('"')[0]
        else:
            saf += _is_saf(fields)
    n = types.total()
    if 2 * n > rows:
        return Annotation("GFF3" if 2 * gff3 > n else "GTF", types)
    return Annotation("SAF", {}, has_header) if 2 * saf > rows else None


def read_annotation(
    path: str | Path, contigs: Mapping[str, int] | None = None, features: Sequence[str] = ()
) -> Iterator[AnnotationRow]:
    """The rows of a file in their order; with `features`, those of a `TYPE`, or `TYPE=NAME`.

    With `contigs` (name → length), every row must lie within its contig. Raises `DataError` naming
    the line, `UsageError` for features that no row has.
    """
    pending = {text: text.partition("=")[::2] for text in features}
    found: set[str] = set()
    seen: dict[str, set[str]] = {}  # type → names
    rows = 0
    is_saf = False
    for number, text in read_text_lines(path, "GTF, GFF3 or SAF"):
        if text.startswith(_SEQUENCES):
            break
        fields = _split(text)
        if fields is None:
            continue
        if not rows and (_is_saf_header(fields) or _is_saf(fields)):
            is_saf = True
        if not (is_saf and _is_saf_header(fields)):
            row, names = _read_row(path, number, fields, is_saf, contigs)
            if features:
                known = seen.setdefault(row.type, set())
                if pending.keys() - found or len(known) < _SHOWN:
                    known.update(names)
            hits = {
                one
                for one, (kind, name) in pending.items()
                if kind == row.type and (not name or name in names)
            }
            found |= hits
            if hits or not features:
                yield row
        rows += 1
    if not rows:
        raise DataError("is empty: no row", file=name_input(path), fix="give GTF, GFF3 or SAF")
    for text in pending.keys() - found:
        kind, name = pending[text]
        what = f"no {kind} is called '{name}'" if kind in seen else f"no row has the type '{kind}'"
        fix = did_you_mean(name if kind in seen else kind, seen.get(kind, seen))
        raise UsageError(f"{name_input(path)}: {what}", fix=fix)


def _split(text: str) -> list[str] | None:
    """The columns of a row; None of a comment and of a blank line."""
    line = text.rstrip(" \t")
    return None if not line or line[0] == "#" else line.split("\t")


def _is_gff(fields: list[str]) -> bool:
    return (
        len(fields) in (8, 9)
        and all(map(_DIGITS.fullmatch, fields[3:5]))
        and not all(map(_DIGITS.fullmatch, fields[1:3]))  # BED of nine columns
        and fields[6] in ("+", "-", ".", "?")
    )


def _is_saf(fields: list[str]) -> bool:
    return (
        len(fields) == 5
        and all(map(_DIGITS.fullmatch, fields[2:4]))
        and int(fields[2]) <= int(fields[3])
        and fields[4] in ("+", "-", ".")
    )


def _is_saf_header(fields: list[str]) -> bool:
    return tuple(field.strip().lower() for field in fields) == _SAF_HEADER


def _read_row(
    path: str | Path, number: int, fields: list[str], is_saf: bool,
    contigs: Mapping[str, int] | None,
) -> tuple[AnnotationRow, list[str]]:  # fmt: skip
    """A row, and all names that it has."""

    def fault(what: str, fix: str) -> DataError:
        return DataError(what, file=name_input(path), line=number, fix=fix)

    wanted = (5,) if is_saf else (8, 9)
    if len(fields) not in wanted:
        what = f"has {len(fields)} column{'s' * (len(fields) != 1)}, not {wanted[-1]}"
        raise fault(what, "correct the row; columns are separated by tabs")
    if is_saf:
        name, contig, first, last, strand = fields
        kind, names = "", [name]
    else:
        contig, _, kind, first, last, _, strand = fields[:7]
        names = _read_names(fields[8] if len(fields) > 8 else "")
        contig = unquote(contig)
    if not contig or contig != "".join(contig.split()):
        raise fault(f"'{contig}' is not the name of a contig", "remove blanks")
    for text, which in ((first, "start"), (last, "end")):
        if not _DIGITS.fullmatch(text) or not int(text):
            raise fault(f"the {which} '{text}' is no whole number from 1", "correct the row")
    start, end = int(first) - 1, int(last)
    if end <= start:
        raise fault(f"the end {last} is before the start {first}", "exchange or correct them")
    if strand not in ("+", "-", ".", "?"):
        raise fault(f"'{strand}' is no strand", "write +, - or .")
    if contigs is not None and contig not in contigs:
        what = f"unknown contig '{contig}': not in the FASTA"
        raise fault(what, suggest_contig(contig, dict(contigs)))
    if contigs is not None and end > contigs[contig]:
        what = f"the end {end} is past the end of {contig} (length {contigs[contig]})"
        raise fault(what, "correct the row, or give the right FASTA")
    turned = "." if strand == "?" else strand
    return AnnotationRow(contig, start, end, names[0] if names else "", turned, kind, number), names


def _read_names(attributes: str) -> list[str]:
    pairs = dict(_GTF_PAIR.findall(attributes)) or {
        key: unquote(value) for key, value in _GFF_PAIR.findall(attributes)
    }
    return [pairs[key] for key in _NAMES if pairs.get(key)]
