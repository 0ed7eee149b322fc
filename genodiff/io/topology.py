"""Circular records: how a file says so, and letters that go round the origin.

GenBank and EMBL say `circular` in a record's first line. A FASTA header says it as NCBI writes it,
`[topology=circular]`, also without the brackets. A record that is converted to FASTA is given that
word, so that every reader of a header knows, and an output that keeps headers says it again.
"""

import logging
import re
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

CIRCULAR = "[topology=circular]"
_SAID = re.compile(r"(?:^|[\s\[;])topology=circular(?:$|[\s\];])", re.IGNORECASE)
MITOCHONDRIA = {"MT", "M", "Mito", "MtDNA", "mitochondrion", "mitochondrion_genome", "chrMT"}
_SHOWN = 3

log = logging.getLogger("genodiff")


def says_circular(description: str) -> bool:
    """Whether the words after a record's name say that it is circular."""
    return bool(_SAID.search(description))


def is_mitochondrion(name: str, description: str = "") -> bool:
    """Whether a contig is a mitochondrion's, by its name or by what its header says."""
    known = {*MITOCHONDRIA, *(f"chr{one}" for one in MITOCHONDRIA)}
    return name in known or "mitochondri" in description.lower()


def mark_circular(record: Any) -> str:
    """The description of a record of Biopython, with the word where its topology is circular."""
    about = getattr(record, "description", "")
    about = about if isinstance(about, str) and about != "<unknown description>" else ""
    topology = getattr(record, "annotations", {}).get("topology")
    if topology != "circular" or says_circular(about):
        return about
    return f"{about} {CIRCULAR}".lstrip()


def read_round(fetch: Callable[[int, int], bytes], length: int, start: int, end: int) -> bytes:
    """Letters start … end of a circle of `length` letters, which may begin before 0 and go on
    beyond the end. `fetch` gives those of an interval within it.

    >>> read_round(lambda a, b: b"ACGT"[a:b], 4, -1, 6)
    b'TACGTAC'
    """
    pieces = []
    while start < end:
        at = start % length
        n = min(end - start, length - at)
        pieces.append(fetch(at, at + n))
        start += n
    return b"".join(pieces)


def say_linear(shown: str | None, names: Collection[str]) -> None:
    """One line, once, for a file whose circular records are read as if they were linear."""
    if names:
        _say(shown or "sequences in memory", tuple(names))


@cache
def _say(shown: str, names: tuple[str, ...]) -> None:
    some = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    are, its = ("is", "its") if len(names) == 1 else ("are", "their")
    log.warning("%s: %s %s circular; here nothing is read across %s origin", shown, some, are, its)
