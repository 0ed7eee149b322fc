"""`genodiff data`: check what you have. Getting, listing and building stand in data_store.py.

`check` reads and judges and writes nothing. It must start at once, so nothing heavy is imported before it is needed.
"""

import json as json_module
import sys
import tempfile
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from genodiff.cli.common import Common
from genodiff.io.fasta import digests

app = App(name="data", help="Check, get, build and list data.")

_SPOOL = 1 << 26


@app.command
def check(
    file: Annotated[str, Parameter(help="A FASTA file, plain, gzip or bgzip; - is stdin.")],
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON line per record: name, length, sha.")] = False,
    domain: Annotated[Literal["dna", "text"], Parameter(help="What the file should hold.")] = "dna",
    common: Common = Common(),
) -> None:
    """Read a file from end to end and judge it; exit 3 with one line where it is not sound."""
    _print_when_sound(({"name": d.name, "length": d.length, "sha": d.sha} for d in digests(file)), json=json)


def _print_when_sound(rows: Iterator[dict[str, Any]], *, json: bool) -> None:
    """Rows on stdout, but only once all of them are known to be good: half an answer is none."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL, mode="w+", encoding="ascii") as kept:
        n = 0
        for row in rows:
            n += 1
            if json:
                kept.write(json_module.dumps(row) + "\n")
        kept.seek(0)
        for line in kept:
            sys.stdout.write(line)
