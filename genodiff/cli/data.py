"""`genodiff data`: check what you have. Getting, listing and building stand in data_store.py.

`check` reads and judges and writes nothing. It must start at once, so nothing heavy is imported
before it is needed.
"""

import json as json_format
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from genodiff.cli import data_store, data_text
from genodiff.cli.common import Common
from genodiff.errors import DataError, UsageError, printable
from genodiff.io.fasta import contig_lengths, digests
from genodiff.io.source import STDIN
from genodiff.io.text import text_digest

app = App(name="data", help="Check, get, build and list data.")
data_store.register(app)
data_text.register(app)

_SPOOL = 1 << 26
_BED = (".bed", ".narrowpeak", ".broadpeak", *(f".bed{n}" for n in range(3, 13)))
_VCF = (".vcf", ".bcf")
_ZIPPED = (".gz", ".bgz")


@app.command
def check(
    file: Annotated[
        str | None,
        Parameter(help="FASTA or BED file, plain, gzip or bgzip; - is FASTA from stdin."),
    ] = None,
    /,
    *,
    stdin: Annotated[
        bool, Parameter(name=STDIN, negative="", show=False)
    ] = False,  # cyclopts takes "-" for a flag
    json: Annotated[
        bool, Parameter(negative="", help="One JSON line per record on stdout.")
    ] = False,
    fasta: Annotated[str | None, Parameter(help="The FASTA whose contigs a BED must fit.")] = None,
    seq_len: Annotated[
        int | None, Parameter(help="Refuse FASTA or text without one window of this length.")
    ] = None,
    text: Annotated[
        str | None, Parameter(help="With a text recipe's name as FILE: its files or folder.")
    ] = None,
    domain: Annotated[Literal["dna", "text"], Parameter(help="What the file should hold.")] = "dna",
    common: Common = Common(),
) -> None:
    """Read a file from end to end and judge it; exit 3 with one line where it is not sound. Nothing
    is written.

    With --json: FASTA {"name", "length", "sha"} (sha256 of the upper-case sequence, IUPAC codes as
    N); BED {"contig", "start", "end", "name", "strand"}; text {"name", "length", "sha"}
    (characters; sha256 of the UTF-8 bytes); a text recipe, folder or table {"name": split,
    "documents", "length", "repeated", "in_train"}.
    """
    logging.getLogger("genodiff").setLevel(logging.ERROR if common.quiet else logging.INFO)
    if (file is None) != stdin:
        raise UsageError(
            "give one FILE, or - for stdin", fix="a name that starts with - needs ./ before it"
        )
    file = STDIN if file is None else file
    kind = _kind(file, domain)
    if (
        domain == "text"
        and file != STDIN
        and (
            text is not None or os.path.isdir(file) or _is_table(file) or not os.path.lexists(file)
        )
    ):
        from genodiff.cli.data_text import check_documents
        from genodiff.data.text_recipe import text_recipe_names

        if text is not None or os.path.lexists(file) or file in text_recipe_names():
            check_documents(file, text, json, seq_len)
            return
    rows: Iterator[dict[str, Any]]
    if fasta is not None and kind != "BED":
        raise UsageError(
            f"--fasta: {printable(file)} is read as {kind}, which needs no reference",
            fix="leave it out",
        )
    if kind == "FASTA":
        rows = ({"name": d.name, "length": d.length, "sha": d.sha} for d in digests(file))
        _answer(file, rows, json, "record", "base", seq_len)
    elif kind == "BED":
        _answer(
            file,
            _intervals(file, None if fasta is None else contig_lengths(fasta)),
            json,
            "interval",
            "base",
            None,
        )
    elif kind == "text":
        found = text_digest(file)
        rows = iter([{"name": Path(file).name, "length": found.characters, "sha": found.sha}])
        _answer(file, rows, json, "text", "character", seq_len)
    else:
        raise UsageError(
            f"{printable(file)}: checking {kind} is not here yet",
            fix="this version checks FASTA and BED",
        )


def _is_table(file: str) -> bool:
    return file.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".parquet"))


def _kind(file: str, domain: str) -> str:
    if domain == "text":
        return "text"
    name = Path(file).name.lower()
    for ending in _ZIPPED:
        name = name.removesuffix(ending)
    return "BED" if name.endswith(_BED) else "VCF" if name.endswith(_VCF) else "FASTA"


def _intervals(file: str, contigs: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    from genodiff.io.bed import check_splits, read_bed  # polars

    table = read_bed(file, contigs)
    check_splits(table, file)
    lengths = table.select(
        "contig", "start", "end", "name", "strand", length=table["end"] - table["start"]
    )
    yield from lengths.iter_rows(named=True)


def _answer(
    file: str,
    rows: Iterator[dict[str, Any]],
    json: bool,
    thing: str,
    part: str,
    shortest: int | None,
) -> None:
    """Rows (or their sum) on stdout, but only once all of them are known to be good: half an answer
    is none.
    """
    n = total = longest = 0
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL, mode="w+", encoding="utf-8") as kept:
        for row in rows:
            n, total, longest = n + 1, total + row["length"], max(longest, row["length"])
            if json:
                kept.write(json_format.dumps(row) + "\n")
        if shortest is not None and longest < shortest:
            what = (
                f"every {thing} is shorter than --seq-len {shortest}: the longest has "
                f"{_count(longest, part)}"
            )
            raise DataError(what, file=file, fix="give longer data or a smaller --seq-len")
        if json:
            kept.seek(0)
            for line in kept:
                sys.stdout.write(line)
        else:
            print(f"{printable(file)}: sound; {_count(n, thing)}, {_count(total, part)}")
    sys.stdout.flush()  # a full disk or a closed pipe is noticed here, not at the interpreter's end


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'s' * (n != 1)}"
