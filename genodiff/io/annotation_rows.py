"""GTF, GFF3 and SAF: annotation whose positions count from 1 and include their end.

    GTF, GFF3   CONTIG SOURCE TYPE START END SCORE STRAND PHASE ATTRIBUTES
    SAF         GENE CONTIG START END STRAND, often below a line of these names

A file is one of these if most of its rows have the columns; its name is not asked. Rows become
0-based and half-open, as BED is. Each row stands by itself: parts of a CDS are not joined.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.gene_words import ROW_WORDS, is_pseudo_row
from genodiff.io.input_file import name_input
from genodiff.io.text_lines import RowReader, is_comment, read_text_lines, read_whole

TITLES = ("gene_name", "Name", "gene", "locus_tag", "gene_id", "ID", "transcript_id")
"""Attributes that name a row; the first that it has is its name."""
_KEPT = {*TITLES, "Parent"}
_PAIR = re.compile(r' *([^ =;]+)( +|=)(?:"([^"]*)"|([^;]*)) *(?:;|$)')
_SAF_HEADER = ("geneid", "chr", "start", "end", "strand")
_STRANDS = {"1": "+", "+1": "+", "-1": "-"}
_SEQUENCES = ("##FASTA", ">")  # of GFF3, below its rows
_SHOWN = 4  # types in a message


class AnnotationRow(NamedTuple):
    """contig[start:end] (0-based, half-open); `type` is "" in SAF, `strand` +, - or `.`.

    `names` are the attributes that name it, and Parent; `words` those that change what it means.
    `phase` is the number of bases of a CDS before its first whole codon, None where it is not said.
    """

    contig: str
    start: int
    end: int
    name: str
    strand: str
    type: str
    line: int
    names: Mapping[str, str]
    phase: int | None = None
    words: Mapping[str, str] = {}


class Annotation(NamedTuple):
    """Which format a file has, how many rows of each type, and whether it has a line of names."""

    kind: str
    types: Mapping[str, int]
    has_header: bool = False

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
        some = [f"{n:,} {name}" for name, n in Counter(self.types).most_common()]
        shown = some[:_SHOWN] + (["…"] if len(some) > _SHOWN else [])
        types = f": {', '.join(shown)}" if shown else ""
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
    path: str | Path,
    contigs: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
    *,
    over_origin: bool = False,
) -> Iterator[AnnotationRow]:
    """The rows of a file in their order; with `features`, those of a `TYPE`, or `TYPE=NAME`.

    With `contigs` (name → length), every row must lie within its contig; with `over_origin` it may
    end beyond a circular one. Raises `DataError`, `UsageError` for features that no row has.
    """
    choice = FeatureChoice(features)
    circular: set[str] = set()
    for row in parse_annotation_lines(path, read_text_lines(path, "GTF, GFF3 or SAF")):
        if contigs is not None:
            reader = RowReader(name_input(path), row.line)
            row = row._replace(contig=reader.find_contig(row.contig, contigs))
            length = contigs[row.contig]
        if row.words.get("Is_circular", "").lower() == "true":
            circular.add(row.contig)
        if contigs is not None and row.end > length:
            around = row.contig in circular and row.start < length and row.end <= row.start + length
            what = f"the end {row.end} is past the end of {row.contig} (length {length})"
            fix = "correct the row, or give the right FASTA"
            if around:
                what = f"crosses the origin of {row.contig}, a circle; it is not read across"
                fix = "leave the row out, or give GenBank"
            if not (around and over_origin):
                raise reader.fault(what, fix)
        if not features or choice.takes(row.type, row.names.values()):
            yield row
    choice.check_found(name_input(path), "no row has the type")


class FeatureChoice:
    """The features that a user wants, each `TYPE` or `TYPE=NAME`."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._pending = {text: text.partition("=")[::2] for text in wanted}
        self._found: set[str] = set()
        self._seen: dict[str, set[str]] = {}  # type → names

    def takes(self, kind: str, names: Collection[str]) -> bool:
        """Whether a feature of this type with these names is wanted."""
        known = self._seen.setdefault(kind, set())
        if self._pending.keys() - self._found:  # later there is nothing to suggest
            known.update(names)
        wishes = self._pending.items()
        hits = {text for text, (of, name) in wishes if of == kind and (not name or name in names)}
        self._found |= hits
        return bool(hits)

    def check_found(self, shown: str, lacks: str) -> None:
        """Raise `UsageError` where a wish was never met; `lacks` is how no feature has its type."""
        for kind, name in (wish for text, wish in self._pending.items() if text not in self._found):
            what, sought = f"{lacks} '{kind}'", kind
            if kind in self._seen:
                what, sought = f"no {kind} is called '{name}'", name
            fix = did_you_mean(sought, self._seen.get(kind, self._seen))
            raise UsageError(f"{shown}: {what}", fix=fix)


def list_pseudo_lines(path: str | Path) -> set[int]:
    """The lines of rows of pseudogenes, as they or the rows that they are part of say."""
    rows = list(parse_annotation_lines(path, read_text_lines(path, "GTF, GFF3 or SAF")))
    keys = ("ID", "transcript_id", "gene_id")
    pseudo: set[str] = set()
    lines: set[int] = set()
    while True:
        before = len(lines)
        for row in rows:
            above = [*row.names.get("Parent", "").split(","), *map(row.names.get, keys[1:])]
            if row.line not in lines and (is_pseudo_row(row.type, row.words) or pseudo & {*above}):
                lines.add(row.line)
                # a gene of GTF is named by all its rows, and only its own row speaks for it
                own = keys if "ID" in row.names or row.type == "gene" else keys[:2]
                pseudo.update(row.names[key] for key in own if row.names.get(key))
        if len(lines) == before:
            return lines


def parse_annotation_lines(
    path: str | Path,
    lines: Iterable[tuple[int, str]],
    keeps: Callable[[str], bool] = lambda contig: True,
) -> Iterator[AnnotationRow]:
    """The rows of numbered lines on the contigs that `keeps` says; raises as `read_annotation`."""
    columns = 0
    for number, text in lines:
        if text.startswith(_SEQUENCES):
            break
        fields = _split(text)
        if fields is None:
            continue
        is_header = _is_saf_header(fields)
        if not columns:
            columns = 5 if is_header or _is_saf(fields) else 8 if len(fields) == 8 else 9
        elif columns == 8 and len(fields) == 9:  # after it, a row without attributes was cut short
            columns = 9
        if not is_header or columns != 5:
            row = _read_row(path, number, fields, columns, keeps)
            if row is not None:
                yield row
    if not columns:
        raise DataError("is empty: no row", file=name_input(path), fix="give GTF, GFF3 or SAF")


def is_annotation_row(line: str) -> bool:
    """Whether a line could be a row of GTF or GFF3, with faults, and not of BED."""
    fields = line.split("\t")
    return len(fields) in (8, 9) and not _are_whole(fields[1:3])


def _split(text: str) -> list[str] | None:
    """The columns of a row; None of a comment and of a blank line."""
    line = text.rstrip(" \t")
    return None if not line or is_comment(line) else [one.strip() for one in line.split("\t")]


def _are_whole(texts: Sequence[str]) -> bool:
    return all(read_whole(text) is not None for text in texts)


def _is_gff(fields: list[str]) -> bool:
    return (
        len(fields) in (8, 9)
        and _are_whole(fields[3:5])
        and not _are_whole(fields[1:3])  # BED of nine columns
        and fields[6] in ("+", "-", ".", "?", *_STRANDS)
    )


def _is_saf(fields: list[str]) -> bool:
    if len(fields) != 5 or fields[4] not in ("+", "-", "."):
        return False
    first, last = map(read_whole, fields[2:4])
    return first is not None and last is not None and first <= last


def _is_saf_header(fields: list[str]) -> bool:
    return tuple(field.strip().lower() for field in fields) == _SAF_HEADER


def _read_row(
    path: str | Path, number: int, fields: list[str], columns: int, keeps: Callable[[str], bool]
) -> AnnotationRow | None:
    """A row; None where `keeps` does not want its contig."""
    reader = RowReader(name_input(path), number)
    if len(fields) != columns:
        what = f"has {len(fields)} column{'s' * (len(fields) != 1)}, not {columns}"
        raise reader.fault(what, "correct the row; columns are separated by tabs")
    if columns == 5:
        name, contig, *span, strand = fields
        kind, names = "", {"ID": name}
    else:
        contig, _, kind, *span, _, strand = fields[:7]
    contig = unquote(contig)
    reader.check_contig(contig)
    first, last = (reader.read_whole(text, "position (from 1)") for text in span)
    if not first or last < first:
        fix = "exchange or correct them; over the origin of a circle add its length to the end"
        what = f"the end {last} is before the start {first}" if first else "the first position is 1"
        raise reader.fault(what, fix)
    strand = _STRANDS.get(strand, strand)
    if strand not in ("+", "-", ".", "?"):
        raise reader.fault(f"'{strand}' is no strand", "write +, - or .")
    if not keeps(contig):
        return None
    phase: int | None = None
    words: dict[str, str] = {}
    if columns == 5:
        reader.check_name(name, "name", cut=True)
    else:
        plain = unquote(kind.replace(" ", "_"))
        if not plain or plain != "".join(plain.split()) or "=" in kind or ";" in kind:
            what = f"column 3 is the type, and '{kind}' is none"
            raise reader.fault(what, "write gene, CDS, ...")
        reader.check_name(plain, "type of a row")
        names, words = _read_names(fields[8] if columns == 9 else "", reader)
        phase = int(fields[7]) if fields[7] in ("0", "1", "2") else None
    title = next((names[key] for key in TITLES if names.get(key)), "")
    turned = "." if strand == "?" else strand
    return AnnotationRow(contig, first - 1, last, title, turned, kind, number, names, phase, words)


def _read_names(attributes: str, reader: RowReader) -> tuple[dict[str, str], dict[str, str]]:
    """The attributes that name a row and those that change its meaning."""
    pairs = _PAIR.findall(attributes)
    names: dict[str, str] = {}
    words: dict[str, str] = {}
    for key, sign, quoted, plain in pairs:
        if key in _KEPT or key in ROW_WORDS:
            text = unquote(plain or quoted) if sign == "=" else plain or quoted
            if key in _KEPT:
                names[key] = text
            else:  # GTF says `tag` several times
                words[key] = f"{words[key]},{text}" if key in words else text
    read = dict(names)
    if not attributes.isprintable() or (pairs and pairs[0][0][0] in "\"'"):
        read |= {"keys": " ".join(key for key, *_ in pairs), "text": _PAIR.sub("", attributes)}
    for key, text in read.items():
        reader.check_name(text, key, cut=True)
    return names, words
