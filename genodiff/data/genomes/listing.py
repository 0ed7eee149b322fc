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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from genodiff.errors import DataError, did_you_mean, printable
from genodiff.io.delimited import SEPARATORS
from genodiff.io.file_kinds import sha256_file
from genodiff.io.text_lines import RowReader, find_alike, is_comment, read_text_lines

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

    def check_sha256(self, found: str, file: Path) -> None:
        """Raises `DataError` where the file has another sha256 than the list says."""
        if self.sha256 not in (None, found):
            what = f"its sha256 is {found}, not {self.sha256}"
            raise DataError(what, file=file, fix="get the file again, or correct the list")


@dataclass(frozen=True)
class GenomeList:
    """The lines of a list, sorted by name, so that their order in the file decides nothing."""

    path: str
    rows: tuple[GenomeRow, ...]
    sha256: str


def read_genome_list(path: str | Path) -> GenomeList:
    """The genomes of a list. Raises `DataError` for its last bad line, and logs all others."""
    columns: list[str] = []
    rows: list[GenomeRow] = []
    faults: list[DataError] = []
    lines: dict[str, int] = {}
    folder = Path(os.path.abspath(path)).parent
    for number, text in read_text_lines(path, "a list of genomes"):
        if not text.strip() or is_comment(text):
            continue
        reader = RowReader(path, number)
        fields = [field.strip() for field in text.split("\t")]
        if not columns:
            columns = _read_header(reader, fields)
            continue
        try:
            row = _read_row(reader, columns, fields, folder)
            if (before := lines.setdefault(row.name.lower(), number)) != number:
                what = f"the name {row.name} stands in line {before} too"
                raise reader.fault(what, "give each genome a name of its own")
            rows.append(row)
        except DataError as fault:
            faults.append(fault)
    if alike := find_alike([row.species for row in rows if row.species]):
        what = f"the species '{alike[0]}' and '{alike[1]}' differ in capitals only"
        faults.append(DataError(what, file=path, fix="write one species in one way"))
    raise_last(faults)
    if not rows:
        raise DataError("names no genome", file=path, fix=_HEADER_FIX)
    if len(rows) > MOST_GENOMES:
        what = f"names {len(rows):,} genomes, more than {MOST_GENOMES:,}"
        raise DataError(what, file=path, fix="give a shorter list")
    return GenomeList(str(path), tuple(sorted(rows, key=lambda r: r.name)), sha256_file(path))


def raise_last(faults: Sequence[DataError]) -> None:
    """Raise the last of several errors, if any, and log those before it."""
    for other in faults[:-1]:
        log.error("error: %s", other)
    if faults:
        raise faults[-1]


def _read_header(reader: RowReader, fields: list[str]) -> list[str]:
    columns = ["path" if field.lower() == "url" else field.lower() for field in fields]
    for mark, called in SEPARATORS.items():
        if len(columns) == 1 and mark in columns[0]:
            what = f"columns are separated by {called}, not tabs"
            raise reader.fault(what, f"tr '{mark}' '\\t'")
    for name in columns:
        if name not in COLUMNS:
            what = f"no column '{printable(name, 40)}'; {did_you_mean(name, COLUMNS)}"
            raise reader.fault(what, _HEADER_FIX)
        if columns.count(name) > 1:
            raise reader.fault(f"the column {name} is given twice", "remove one of them")
    if "path" not in columns:
        raise reader.fault("no column 'path'", _HEADER_FIX)
    return columns


def _read_row(reader: RowReader, columns: list[str], fields: list[str], folder: Path) -> GenomeRow:
    def find_file(text: str, noun: str = "") -> str:
        file = os.path.abspath(folder / os.path.expanduser(text))
        if not os.path.isfile(file):
            what = "is a folder" if os.path.isdir(file) else "is no file"
            raise reader.fault(f"{noun}{printable(text, 80)} {what}", f"give a path from {folder}")
        return file

    def read_digest(column: str) -> str | None:
        digest = given.get(column, "").lower()
        if digest and not _SHA256.fullmatch(digest):
            what = f"the {column} is not 64 hexadecimal digits"
            raise reader.fault(what, "give it, or leave the field empty")
        return digest or None

    if len(fields) > len(columns):
        what = f"has {len(fields)} fields, and there are {len(columns)} columns"
        raise reader.fault(what, "separate fields by one tab each")
    given = {c: f for c, f in zip(columns, fields, strict=False) if f not in ("", ".")}
    if (where := given.get("path")) is None:
        raise reader.fault("has no path", "give the genome's file or URL")
    if "://" not in where:
        where = find_file(where)
    elif not where.startswith("https://"):
        what = f"{printable(where.split(':')[0], 20)}:// is not fetched"
        raise reader.fault(what, "give an https:// URL, or a file")
    stem = where.rstrip("/").rsplit("/", 1)[-1].split("?")[0]
    name = given.get("name") or re.sub(r"[^A-Za-z0-9._+-]+", "_", _ENDINGS.sub("", stem))
    species = given.get("species", "").replace(" ", "_")
    for noun, value in (("name", name), ("species", species)):
        if noun in given:
            reader.check_given(given[noun], noun, "give it, or leave the field empty")
            reader.check_name(given[noun], noun)
        if value and not _NAME.fullmatch(value):
            raise reader.fault(f"the {noun} '{printable(value, 40)}' is no label", _NAME_FIX)
    if (tried := given.get("tried", "yes")) not in ("yes", "no"):
        raise reader.fault(f"tried '{printable(tried, 20)}' is not yes or no", "give one of these")
    split = given.get("split", RULES[0])
    is_bed = split.lower().endswith(".bed")
    if not is_bed and split.lower() not in RULES:
        what = f"no split '{printable(split, 40)}'; {did_you_mean(split, RULES)}"
        raise reader.fault(what, "give a rule of these, or a BED file")
    weight, bases = (
        reader.read_number(given.get(column, default), column, "give 1, for example", 0)
        for column, default in (("weight", "1"), ("bases", "0"))
    )
    return GenomeRow(
        where, name, weight, species,
        find_file(split) if is_bed else split.lower(),
        read_digest("sha256"),
        reader.line or 0,
        letters=read_digest("letters"),
        bases=int(bases),
        is_tried=tried == "yes",
        records=given.get("records", "").replace(" ", "_"),
        alignment=find_file(given["alignment"], "the alignment ") if "alignment" in given else "",
    )  # fmt: skip


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
    """The species of a file that holds several and mostly names them, by frequency; else none."""
    found = Counter(filter(None, (name_species(*one) for one in headers.items())))
    several = len(found) > 1 and 2 * found.total() > len(headers)
    return [name for name, _ in found.most_common()] if several else []


def are_alike(lengths: Sequence[int]) -> bool:
    """Whether records have so nearly one length that each may be a genome: of organelles, say."""
    mean = sum(lengths) / max(len(lengths), 1)
    return len(lengths) >= _ALIKE and all(abs(one - mean) < 0.1 * mean for one in lengths)
