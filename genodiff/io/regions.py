"""Contigs and regions as words name them: circular ones, mitochondria, `chr1:1-100`."""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any

from genodiff.errors import DataError, UsageError, did_you_mean, format_count

log = logging.getLogger("genodiff")
_RANGE = re.compile(
    r"(?P<contig>.+):(?P<start>[0-9][0-9,]*)(?:(?P<dash>-)(?P<end>[0-9][0-9,]*)?)?\Z", re.DOTALL
)
CHROMOSOME = re.compile(r"([1-9]\d?|[IVX]{1,5}|[WXYZ])([LRAB]|het)?")
"""What chromosomes are called without `chr`."""
_FORM = "write it as CONTIG:START-END, 1-based and inclusive, for example chr1:1,000-2,000"


def parse_region(
    text: str, contigs: dict[str, int], circular: Collection[str] = ()
) -> tuple[str, int, int]:
    """(contig, start, end) of a region, 0-based and half-open.

    Forms are `chr1:1,000-2,000`, `chr1:1,000-` (to the end), `chr1:1,000` (one base) and `chr1`
    (the whole contig). `contigs` gives the length of each contig.

    A text that equals a contig's name is that contig, since names may hold colons
    (`HLA-A*01:01:01:01`). Braces, as in `{name}:1-20`, make a name unambiguous. A region of one of
    the `circular` contigs may cross its origin: `pX:290-10` of 300 bases is 289 … 310. Raises
    `UsageError` for an unknown contig, and for a range that is empty or outside the contig.
    """
    if text in contigs:
        return text, 0, contigs[text]
    found = _RANGE.match(text)
    if found is None:
        braced = text[1:-1] if text.startswith("{") and text.endswith("}") else text
        if (whole := find_contig(braced, contigs)) is not None:
            return whole, 0, contigs[whole]
        if ":" in text and text.rsplit(":", 1)[0] in contigs:
            raise UsageError(f"region '{text}' has no valid range", fix=_FORM)
        fix = suggest_contig(text, contigs)
        raise UsageError(f"region '{text}': no contig of that name", fix=fix)
    named = found["contig"]
    if named.startswith("{") and named.endswith("}") and named not in contigs:
        named = named[1:-1]
    contig = find_contig(named, contigs)
    if contig is None:
        fix = suggest_contig(named, contigs)
        raise UsageError(f"region '{text}': no contig '{named}'", fix=fix)
    length = contigs[contig]
    start = _parse_number(found["start"], text)
    end = _parse_number(found["end"], text) if found["end"] else length if found["dash"] else start
    if start == 0:
        raise UsageError(f"region '{text}': positions start at 1 (only BED is 0-based)", fix=_FORM)
    if start > end and found["end"] and contig in circular and start <= length and end:
        return contig, start - 1, end + length
    if start > end and found["end"]:
        raise UsageError(f"region '{text}' ends before it starts", fix=_FORM)
    if end > length or start > length:
        what = f"region '{text}' is past the end of {contig} (length {length:,})"
        raise UsageError(what, fix="give a range within it")
    return contig, start - 1, end


def hold_contigs(contigs: Mapping[str, int]) -> dict[str, int]:
    """`contigs` as a dict; those of a genome that a plan knows in part stay open."""
    return contigs if isinstance(contigs, dict) else dict(contigs)


def find_contig(name: str, contigs: Mapping[str, int], shown: str = "") -> str | None:
    """The contig of a genome that `name` means: itself, or one that other files call so.

    `1` and `chr1`, `chrIV` and `chr4` or `4`, `MT`, `M` and `chrM` are one name where the genome
    has exactly one of them. A line says so, once for a file that is `shown`. None for several.
    """
    if name in contigs:
        return name
    alike: list[str] = []
    for names in _list_names(name):
        if alike := [one for one in names if one in contigs]:
            break
    if len(alike) != 1 or (
        alike[0].endswith("X")
        and not name.endswith("X")
        and not ("IX" in contigs or "chrIX" in contigs)
    ):  # X is a sex chromosome where chromosomes have no Roman numerals
        return None
    found = alike[0]
    if (pair := (shown, name.startswith("chr"), found.startswith("chr"))) not in _said:
        _said.add(pair)
        where = f"{shown}: " if shown else ""
        log.warning("%scontig '%s' is taken for '%s' of the FASTA", where, name, found)
    return found


@cache
def _list_names(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a contig may be called: with `chr` and without; then in other numerals, or M and MT."""
    bare = name[3:] if name[:3].lower() == "chr" else name
    others: list[str] = []
    if not CHROMOSOME.fullmatch(bare) and bare not in MITOCHONDRIA:
        return (), ()
    if bare in MITOCHONDRIA:
        others = ["M", "MT", "Mito"]
    elif bare.isascii() and bare.isdecimal() and 0 < int(bare) < 40 and bare[0] != "0":
        others = [_write_roman(int(bare))]
    elif bare != "X" and bare and set(bare) <= set("IVX"):
        others = [str(n) for n in range(1, 40) if _write_roman(n) == bare]
    first, second = (
        tuple(dict.fromkeys(f"{chr_}{one}" for one in some for chr_ in ("chr", "Chr", "")))
        for some in ([bare], others)
    )
    return first, second


def _write_roman(n: int) -> str:
    ones = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
    return "X" * (n // 10) + ones[n % 10]


_said: set[tuple[str, bool, bool]] = set()


def warn_of_contigs(names: Iterable[str], contigs: Mapping[str, int], shown: str) -> None:
    """Log how many `names` of contigs in a file the genome lacks: what is on them is left out."""
    if left := sorted(name for name in set(names) if find_contig(name, contigs) is None):
        some = ", ".join(left[:4]) + (", ..." if len(left) > 4 else "")
        what = "%s: what is on %s is left out: the FASTA has none of them (%s)"
        log.warning(what, shown, format_count(len(left), "contig"), some)


def refuse_contigs(first: str, contigs: Mapping[str, int], shown: str) -> DataError:
    """The error for a file none of whose contigs, `first` and so on, is one of a genome's."""
    what = f"none of its contigs ('{first}', ...) is one of the genome's"
    return DataError(what, file=shown, fix=suggest_contig(first, dict(contigs)))


def suggest_contig(name: str, contigs: dict[str, int]) -> str:
    """The remedy for an unknown contig: its name in another convention, or a similar name."""
    bare = name[3:] if name.lower().startswith("chr") else name
    conventions = (f"chr{bare}", bare, *(("chrM", "MT", "M") if bare in ("M", "MT") else ()))
    for other in conventions:
        if other in contigs and other != name:
            return f"did you mean '{other}'? rename the contigs so that both files agree"
    hint = did_you_mean(name, contigs)
    if len(contigs) > 25 and not hint.startswith("did"):
        return f"it is not among the {len(contigs):,} contigs of the FASTA"
    return hint


def _parse_number(digits: str, text: str) -> int:
    """The number in `digits`, commas allowed. Raises `UsageError` that names the region `text`."""
    if "," in digits and not re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+", digits):
        raise UsageError(f"region '{text}': '{digits}' is not a number", fix=_FORM)
    plain = digits.replace(",", "")
    if len(plain) > 18:
        raise UsageError(f"region '{text}': {plain} is past the end of any contig", fix=_FORM)
    return int(plain)


CIRCULAR = "[topology=circular]"
_SAID = re.compile(r"(?:^|[\s\[;])topology=circular(?:$|[\s\];])", re.IGNORECASE)
MITOCHONDRIA = {"MT", "M", "Mito", "MtDNA", "mitochondrion", "mitochondrion_genome", "chrMT"}
_SHOWN = 3


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
