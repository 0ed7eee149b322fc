"""A list of genomes: a table with a line for each, separated by tabs, whose first line names the
columns.

    path      a FASTA, GenBank, EMBL or parquet file (from the list's folder), or an https:// URL
    name      what the genome is called; its contigs are NAME/CONTIG (default: the file's stem)
    weight    how often it is drawn, beside its size (default 1)
    species   its label for conditional training (default: none)
    split     what of it trains, validates and tests (default cluster): see below
    sha256    of the file; one that is fetched should have it
    letters   sha256 of what it spells, however it is written (`runs/relatives.py`)
    bases     about how many, to plan with a file that is not here
    tried     no: nobody has fetched it from this URL yet
    records   of a file with many genomes, the species or the record that is this one; * is all
    alignment PAF, chain or MAF of a related genome and its target (from the list's folder)

`path` (or `url`) is needed; a field that is empty or `.` has its default. Lines that begin with #
are comments. A split is

    train, valid, test   the whole genome is of this split
    assembly             whole genomes are held out, 1 in 20 of the bases each to valid and test
    chromosome           the contigs of one name, of whatever genome, are held out together
    cluster              contigs that share sequence are held out together, and what of them train
                         still shares is left out
    FILE.bed             the intervals of a BED file

Whose genome a record of a FASTA file is, as its header says, and whether a file holds several.

Databases of mitochondria, plastids, viruses and pangenomes give the genomes of many species in one
file. A header names the species by `[organism=Homo sapiens]`, by a binomial behind the record's
name, as NCBI writes it, or by a sample, as pangenomes do (SAMPLE#HAPLOTYPE#CONTIG).
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from genodiff.errors import DataError, did_you_mean, printable
from genodiff.io.delimited import SEPARATORS
from genodiff.io.identity import sha256_file
from genodiff.io.text_lines import (
    find_alike,
    find_spoilt_name,
    is_comment,
    is_missing,
    read_number,
    read_text_lines,
)

log = logging.getLogger("genodiff")

RULES = ("cluster", "assembly", "chromosome", "train", "valid", "test")
MOST_GENOMES = 100_000
COLUMNS = (
    "path", "name", "weight", "species", "split", "sha256", "letters", "bases", "tried", "records",
    "alignment",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ENDINGS = re.compile(
    r"(\.(fa|fasta|fna|ffn|gb|gbk|gbff|genbank|embl|parquet|gz|bgz))+$", re.IGNORECASE
)
_HEADER_FIX = "begin with a line of column names: path, name, weight, species, split, sha256"
_NAME_FIX = "give letters, digits, dots, dashes and underscores, at most 80"


@dataclass(frozen=True)
class GenomeRow:
    """A line of a list, judged good. `path` is absolute, or an https:// URL."""

    path: str
    name: str
    weight: float
    species: str
    split: str
    sha256: str | None
    line: int
    letters: str | None = None
    bases: int = 0
    is_tried: bool = True
    records: str = ""
    """Which of a file's records are the genome (`runs/relative_lists.py`); "" where it is one."""
    alignment: str = ""
    """Its alignment to the target; of a MAF that is given alone, `path` itself."""

    @property
    def is_remote(self) -> bool:
        """Whether the file has to be fetched."""
        return "://" in self.path


@dataclass(frozen=True)
class GenomeList:
    """The lines of a list, sorted by name, so that their order in the file decides nothing."""

    path: str
    rows: tuple[GenomeRow, ...]
    sha256: str


def read_genome_list(path: str | Path) -> GenomeList:
    """The genomes of a list.

    Every bad line is told, each in a line of its own; the last of them is the `DataError` raised.
    """
    columns: list[str] | None = None
    rows: list[GenomeRow] = []
    faults: list[DataError] = []
    lines: dict[str, int] = {}
    folder = Path(os.path.abspath(path)).parent
    for number, text in read_text_lines(path, "a list of genomes"):
        if not text.strip() or is_comment(text):
            continue
        fields = [field.strip() for field in text.split("\t")]
        try:
            if columns is None:
                columns = _read_header(path, number, fields)
                continue
            row = _read_row(path, number, dict(_pair(path, number, columns, fields)), folder)
            if row.name.lower() in lines:
                raise DataError(
                    f"the name {row.name} stands in line {lines[row.name.lower()]} too",
                    file=path,
                    line=number,
                    fix="give each genome a name of its own",
                )
            lines[row.name.lower()] = number
            rows.append(row)
        except DataError as fault:
            if columns is None:
                raise
            faults.append(fault)
    if alike := find_alike([row.species for row in rows if row.species]):
        what = f"the species '{alike[0]}' and '{alike[1]}' differ in capitals only"
        faults.append(DataError(what, file=path, fix="write one species in one way"))
    if faults:
        for other in faults[:-1]:
            log.error("error: %s", other)
        raise faults[-1]
    if not rows:
        raise DataError("names no genome", file=path, fix=_HEADER_FIX)
    if len(rows) > MOST_GENOMES:
        what = f"names {len(rows):,} genomes, more than {MOST_GENOMES:,}"
        raise DataError(what, file=path, fix="give a shorter list")
    return GenomeList(str(path), tuple(sorted(rows, key=lambda r: r.name)), sha256_file(path))


def _read_header(path: str | Path, number: int, fields: list[str]) -> list[str]:
    columns = ["path" if field.lower() == "url" else field.lower() for field in fields]
    for mark, called in SEPARATORS.items():
        if len(columns) == 1 and mark in columns[0]:
            what, fix = f"columns are separated by {called}, not tabs", f"tr '{mark}' '\\t'"
            raise DataError(what, file=path, line=number, fix=fix)
    for name in columns:
        if name not in COLUMNS:
            what = f"no column '{printable(name, 40)}'; {did_you_mean(name, COLUMNS)}"
            raise DataError(what, file=path, line=number, fix=_HEADER_FIX)
        if columns.count(name) > 1:
            raise DataError(f"the column {name} is given twice", file=path, line=number)
    if "path" not in columns:
        raise DataError("no column 'path'", file=path, line=number, fix=_HEADER_FIX)
    return columns


def _pair(
    path: str | Path, number: int, columns: list[str], fields: list[str]
) -> list[tuple[str, str]]:
    if len(fields) > len(columns):
        what = f"has {len(fields)} fields, and there are {len(columns)} columns"
        raise DataError(what, file=path, line=number, fix="separate fields by one tab each")
    given = [(c, f) for c, f in zip(columns, fields, strict=False) if f not in ("", ".")]
    if not any(column == "path" for column, _ in given):
        fix = "give the genome's file or URL"
        raise DataError("has no path", file=path, line=number, fix=fix)
    return given


def _read_row(path: str | Path, number: int, given: dict[str, str], folder: Path) -> GenomeRow:
    def refuse(what: str, fix: str) -> DataError:
        return DataError(what, file=path, line=number, fix=fix)

    where = given["path"]
    if "://" in where:
        if not where.startswith("https://"):
            scheme = printable(where.split(":")[0], 20)
            raise refuse(f"{scheme}:// is not fetched", "give an https:// URL, or a file")
    else:
        where = os.path.abspath(folder / os.path.expanduser(where))
        if not os.path.isfile(where):
            shown = printable(given["path"], 80)
            what = "is a folder" if os.path.isdir(where) else "is no file"
            raise refuse(f"{shown} {what}", f"give a path from {folder}")
    alignment = given.get("alignment", "")
    if alignment:
        alignment = os.path.abspath(folder / os.path.expanduser(alignment))
        if not os.path.isfile(alignment):
            shown = printable(given["alignment"], 80)
            raise refuse(f"the alignment {shown} is no file", f"give a path from {folder}")
    stem = where.rstrip("/").rsplit("/", 1)[-1].split("?")[0]
    name = given.get("name") or re.sub(r"[^A-Za-z0-9._+-]+", "_", _ENDINGS.sub("", stem))
    if not _NAME.fullmatch(name):
        raise refuse(f"'{printable(name, 40)}' is no name of a genome", _NAME_FIX)
    species = given.get("species", "")
    for what, value in (("name", given.get("name", "")), ("species", species)):
        spoilt = find_spoilt_name(value)
        if value and is_missing(value):
            spoilt = "says that a value is missing", "give it, or leave the field empty"
        if spoilt:
            raise refuse(f"the {what} '{printable(value, 40)}' {spoilt[0]}", spoilt[1])
    if species and not _NAME.fullmatch(species.replace(" ", "_")):
        raise refuse(f"'{printable(species, 40)}' is no label", _NAME_FIX)
    for column in ("sha256", "letters"):
        if column in given and not _SHA256.fullmatch(given[column].lower()):
            what = f"the {column} is not 64 hexadecimal digits"
            raise refuse(what, "give it, or leave the field empty")
    tried = given.get("tried", "yes")
    if tried not in ("yes", "no"):
        raise refuse(f"tried '{printable(tried, 20)}' is not yes or no", "give one of these")
    return GenomeRow(
        where,
        name,
        _read_count("weight", given.get("weight", "1"), refuse),
        species.replace(" ", "_"),
        _read_rule(given.get("split", RULES[0]), folder, refuse),
        given.get("sha256", "").lower() or None,
        number,
        letters=given.get("letters", "").lower() or None,
        bases=int(_read_count("bases", given.get("bases", "0"), refuse)),
        is_tried=tried == "yes",
        records=given.get("records", "").replace(" ", "_"),
        alignment=alignment,
    )


_Refuse = Callable[[str, str], DataError]


def _read_count(column: str, text: str, refuse: _Refuse) -> float:
    number = read_number(text)
    if number is None or number < 0:
        what = f"the {column} '{printable(text, 20)}' is not 0 or more"
        raise refuse(what, "give 1, for example")
    return number


def _read_rule(text: str, folder: Path, refuse: _Refuse) -> str:
    if text.lower() in RULES:
        return text.lower()
    if text.lower().endswith(".bed"):
        bed = os.path.abspath(folder / os.path.expanduser(text))
        if not os.path.isfile(bed):
            raise refuse(f"{printable(text, 80)} is no file", f"give a path from {folder}")
        return bed
    what = f"no split '{printable(text, 40)}'; {did_you_mean(text, RULES)}"
    raise refuse(what, "give a rule of these, or a BED file")


WHOLE = "*"
"""In the place of a group of records: all of them, whatever their headers say."""
_ALIKE = 3
"""The fewest records of one length that are spoken of."""
_ORGANISM = re.compile(r"\[(?:organism|species)=([^\]]+)\]|\bOS=([A-Z][\w.-]+ [\w.-]+)")
_BINOMIAL = re.compile(r"(?:(?:UNVERIFIED|PREDICTED|TPA[\w:]*):? )?([A-Z][a-z]{2,}) ([a-z][\w.-]+)")
_SAMPLE = re.compile(r"([^#\s]+)#(\d+)#[^#\s]+")
_NO_GENUS = {
    "Alternate", "Alternative", "Assembly", "Chromosome", "Circular", "Complete", "Contig",
    "Coverage", "Depth", "Draft", "Genome", "Genomic", "Isolate", "Length", "Linear", "Linkage",
    "Locus", "Mitochondrial", "Mitochondrion", "Name", "Partial", "Plasmid", "Plastid",
    "Primary", "Scaffold", "Segment", "Sequence", "Size", "Strain", "Unitig", "Unlocalized",
    "Unplaced", "Whole",
}  # fmt: skip


def name_species(name: str, description: str) -> str:
    """The species or the sample that a header names; "" where it names none.

    >>> name_species("NC_012920.1", "Homo sapiens mitochondrion, complete genome")
    'Homo_sapiens'
    >>> name_species("HG002#1#chr1", ""), name_species("chr1", "Chromosome one")
    ('HG002#1', '')
    """
    if sample := _SAMPLE.fullmatch(name):
        return f"{sample[1]}#{sample[2]}"
    if said := _ORGANISM.search(description):
        return "_".join((said[1] or said[2]).split()[:2])
    words = _BINOMIAL.match(description)
    if words is None or words[1] in _NO_GENUS:
        return ""
    return f"{words[1]}_{words[2].rstrip('.,')}"


def find_several(headers: Mapping[str, str]) -> list[str]:
    """The species of a file that holds several, the most frequent first; else empty.

    Of a genome whose records are not all named, those that are have to be most of them.
    """
    found = Counter(filter(None, (name_species(*one) for one in headers.items())))
    several = len(found) > 1 and 2 * found.total() > len(headers)
    return [name for name, _ in found.most_common()] if several else []


def are_alike(lengths: Sequence[int]) -> bool:
    """Whether records have so nearly one length that each may be a genome: of organelles, say."""
    mean = sum(lengths) / max(len(lengths), 1)
    return len(lengths) >= _ALIKE and all(abs(one - mean) < 0.1 * mean for one in lengths)
