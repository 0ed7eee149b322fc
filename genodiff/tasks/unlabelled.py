"""Sequences without labels, one after another, from any file that holds such.

    .csv .tsv .tab .txt .parquet    a column of sequences, found by its usual name or named
    .bed, or with a genome          intervals of a FASTA file; a row on - is reverse-complemented
    anything else, and -            FASTA, GenBank or EMBL, told by its first bytes; of a file (such
                                    as <(command)) also a table that has a column of sequences

Of text a .txt file has one sentence a line, and tables have a column of sentences, or two. Tables,
FASTA and text may be gzip or BGZF. Memory is for one record at a time, and for the names. Every
fault is one `DataError` with file, line and record: nothing is skipped.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.containers import NAME, SEQUENCE, Columns, choose_column, read_columns
from genodiff.io.delimited import read_delimited
from genodiff.io.faidx import Genome
from genodiff.io.fasta import read_fasta
from genodiff.io.input_file import is_file, name_input, open_input
from genodiff.io.places import list_places
from genodiff.io.sequences import Sequences, read_sequences
from genodiff.io.tables import ENDINGS, PARQUET, find_ending, find_usual, open_table
from genodiff.io.text_lines import RowReader, read_text_lines
from genodiff.tasks.examples import check_sequence
from genodiff.tasks.labelled_file import check_cell

_TEXTS = {1: (("sentence", "text"),), 2: (("sentence1",), ("sentence2",))}
_NO_BED = (*ENDINGS, PARQUET, ".fa", ".fasta", ".fna", ".gb", ".gbk", ".gbff", ".embl")
_TAB = "\t"


class Query(NamedTuple):
    """A sequence to predict for: upper-case DNA, or UTF-8 with a tab between two sentences.

    `line` is that of its record or row, `file` the name for messages; None for one in memory.
    `strand` is - of a row whose reverse complement it is.
    """

    name: str
    sequence: bytes
    line: int
    file: str | None = None
    strand: str = "+"


class QuerySource(NamedTuple):
    """How a file is to be read."""

    columns: tuple[str, ...] = ()
    """Columns of the sequence, or of a text's sentences; none: by their usual names."""
    fasta: str | Path | None = None
    """The genome of a BED file, and of `regions`."""
    domain: str = "dna"
    n_texts: int = 1
    regions: tuple[str, ...] = ()
    """Parts of the genome in the place of a file, as chr1:1,000-2,000."""


def read_queries(given: Sequences | None, source: QuerySource = QuerySource()) -> Iterator[Query]:
    """The sequences of a file, "-" (stdin), or of a program, each judged before it is given.

    `given` is None where the source has regions. A `Path` is a file; of DNA so is a string that is
    no DNA (see `genodiff.io.sequences`). Raises `DataError` for a faulty record, a name that stands
    twice, a missing column or nothing at all.
    """
    seen: set[str] = set()
    for query in _queries(given, source):
        name, file, line = query.name, query.file, query.line if query.file else None
        if name in seen:
            what = "duplicate name: it stands more than once"
            fix = "give each sequence its own name"
            raise DataError(what, file=file, line=line, record=name, fix=fix)
        seen.add(name)
        yield query
    if not seen:
        shown = name_input(given) if isinstance(given, str | Path) else None
        raise DataError("holds no sequence", file=shown, fix="give at least one")


def _queries(given: Sequences | None, source: QuerySource) -> Iterator[Query]:
    if source.regions or given is None:
        if given is not None or not source.regions:
            what = "regions of a genome, and sequences beside them" if given else "no sequences"
            raise UsageError(what, fix="give SEQUENCES, or --fasta with --region")
        return _intervals(None, source)
    if source.domain != "dna" and not isinstance(given, Path) and given != "-":
        return _texts_in_memory(given, source)
    if source.domain == "dna" and not is_file(given):
        columns = read_columns(given)
        if columns is None:
            _refuse_columns(source, "sequences in memory")
        elif source.columns:
            (column,) = _held_columns(columns, source)
            named = {name: held for name, held in columns.items() if name.strip().lower() in NAME}
            given = {**named, "sequence": columns[column]}
        return (Query(r.name, r.sequence.upper(), r.line) for r in read_sequences(given))
    path = Path(given)
    ending = find_ending(path) if str(given) != "-" else ""
    if source.fasta is not None and ending in _NO_BED:
        what = "--fasta is the genome of a BED file, and this is none"
        fix = "leave it out, or give intervals as .bed"
        raise UsageError(what, file=name_input(given), fix=fix)
    if ending == ".bed" or source.fasta is not None:
        return _intervals(given if str(given) == "-" else path, source)
    if source.domain != "dna" and ending not in (".csv", ".tsv", ".tab", PARQUET):
        _refuse_columns(source, "one sentence a line")
        lines, shown = read_text_lines(given, "text"), name_input(given)
        texts = ((n, _sentences(line.split(_TAB), source, shown, n)) for n, line in lines)
        return (Query(f"line{n}", text, n, shown) for n, text in texts)
    if ending == PARQUET or ending in ENDINGS or _is_table(given):
        return _table(path, source)
    _refuse_columns(source, "FASTA")
    return _records(given)


def _is_table(given: Any) -> bool:
    """Whether a file whose name does not say it is a table with a column of sequences."""
    if str(given) == "-":
        return False
    with open_input(given) as opened:
        start = next(opened.blocks(), b"").lstrip()[:1]
    try:
        return start != b">" and bool(find_usual(read_delimited(given, ",").names, SEQUENCE))
    except DataError:  # its reader as FASTA says best what it is
        return False


def _refuse_columns(source: QuerySource, what: str) -> None:
    if source.columns:
        fix = "give a .csv, .tsv or .parquet file"
        raise UsageError(f"--column is for tables, and this is {what}", fix=fix)


def _records(given: str | Path) -> Iterator[Query]:
    shown = name_input(given)
    for record in read_fasta(given):
        sequence = check_sequence(record.sequence, shown, line=record.line, record=record.name)
        yield Query(record.name, sequence, record.line, shown)


def _intervals(path: Any, source: QuerySource) -> Iterator[Query]:
    """The rows of a BED file, or the source's regions where `path` is None."""
    if source.fasta is None:
        what = "is BED: of which genome?" if path else "--region: of which genome?"
        raise UsageError(what, file=path, fix="give its FASTA file with --fasta")
    _refuse_columns(source, "BED" if path else "a region")
    shown = name_input(path) if path else None
    with Genome(source.fasta) as genome:
        for place in list_places(genome.contigs, source.regions, path):
            letters = place.read(genome.fetch)
            sequence = check_sequence(letters, str(source.fasta), record=place.name)
            yield Query(place.name, sequence, place.line, shown, place.strand)


def _sentences(fields: list[str], source: QuerySource, shown: str | None, line: int) -> bytes:
    if len(fields) != source.n_texts:
        wanted = "one sentence" if source.n_texts == 1 else "two sentences with a tab between"
        n = "one sentence" if len(fields) == 1 else f"{len(fields)} sentences"
        what = f"{n}, and the model reads {wanted}"
        raise DataError(what, file=shown, line=line, fix=f"give {wanted}")
    words = [field.strip() for field in fields]
    if not all(words):
        raise DataError("empty sentence", file=shown, line=line, fix="remove it, or give its words")
    return _TAB.join(words).encode()


def _find_columns(
    names: Collection[str], source: QuerySource, find: Callable[[tuple[str, ...]], str | None],
    file: str | None = None,
) -> list[str]:  # fmt: skip
    """The columns that are read: the source's, else those that `find` finds by usual names.

    Raises `DataError` for a missing column of a `file`, `UsageError` for one of a frame.
    """
    usual = (SEQUENCE,) if source.domain == "dna" else _TEXTS[source.n_texts]
    for column in source.columns:
        if column not in names:
            what = f"no column '{column}'; {did_you_mean(column, names)}"
            raise DataError(what, file=file, line=1) if file else UsageError(what)
    if len(source.columns) not in (0, len(usual)):
        what = f"{len(source.columns)} columns, and the model reads {len(usual)}"
        raise UsageError(what, fix=f"give --column {'once' if len(usual) == 1 else 'twice'}")
    found = list(source.columns) or [name for one in usual if (name := find(one)) is not None]
    if len(found) < len(usual):
        words = " or ".join(usual[0]) if len(usual) == 1 else "sentence1 and sentence2"
        what = f"has no column of {'sequences' if source.domain == 'dna' else 'sentences'}"
        fix = f"name it: --column COLUMN (columns: {', '.join(names)})"
        raise DataError(f"{what} ({words})", file=file, line=1, fix=fix)
    return found


def _held_columns(columns: Columns, source: QuerySource) -> list[str]:
    return _find_columns(columns, source, lambda usual: choose_column(columns, usual, usual[0]))


def _texts_in_memory(given: Any, source: QuerySource) -> Iterator[Query]:
    columns = read_columns(given)
    pairs: Iterable[Any] = [given] if isinstance(given, str) else given
    if columns is None:
        _refuse_columns(source, "text in memory")
    else:
        pairs = zip(*(columns[name] for name in _held_columns(columns, source)), strict=True)
    for number, one in enumerate(pairs, 1):
        fields = one.split(_TAB) if isinstance(one, str) else list(one)
        yield Query(f"text{number}", _sentences(fields, source, None, number), number)


def _table(path: Path, source: QuerySource) -> Iterator[Query]:
    # GLUE's own files have quotation marks that quote nothing.
    table = open_table(path, literal=source.domain != "dna")
    wanted = _find_columns(
        table.names, source, lambda usual: find_usual(table.names, usual), table.shown
    )
    column = find_usual(table.names, NAME)
    named = -1 if column is None or column in wanted else table.names.index(column)
    at = [table.names.index(name) for name in wanted]
    for number, (line, cells) in enumerate(table.rows, 1):
        name = cells[named] if named >= 0 else f"row{number}"
        if not name:
            fix = "give it, or remove both"
            raise DataError(f"no name in column '{column}'", file=path, line=line, fix=fix)
        if source.domain == "dna":
            sequence = check_cell(cells[at[0]], table.shown, line=line, record=name)
            RowReader(table.shown, line).check_name(name, "name")
        else:
            sequence = _sentences([cells[i] for i in at], source, table.shown, line)
        yield Query(name, sequence, line, table.shown)
