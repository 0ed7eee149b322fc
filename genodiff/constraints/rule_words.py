"""Constraints as a user writes them: flags of the command line, or keys of a YAML or JSON file.

    avoid: [GGTCTC, ATTTA]          max_run: 5
    require: [GAATTC]               max_edits: 10
    enzymes: [EcoRI, BamHI]         keep: ["chr1:1,020-1,030"]
    gc: ["30-70%", "30-70%/50:25"]  no_repeats: ["20:vector.fa"]
    protein: [forward, "chr1:100-399:-", {exons: ["chr1:1-90", "chr1:201-290"], strand: "-"}]
    no_stop: [reverse]              genetic_code: 11
    allow_stops: true
    codon_usage: e_coli

`forward` and `reverse` are frames of each region itself. Regions are 1-based and inclusive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from genodiff.errors import DataError, GenodiffError, UsageError, did_you_mean

Words = Sequence[Any]


@dataclass(frozen=True)
class RuleWords:
    """Constraints as given by the user, each with its help; numbers are None without a limit."""

    max_edits: Annotated[
        int | None,
        "Bases of a region that may change; an N or another code that is filled is none.",
    ] = None
    avoid: Annotated[Words, "A word (IUPAC) to avoid, on both strands."] = ()
    require: Annotated[Words, "A word that each region holds, on either strand."] = ()
    enzymes: Annotated[Words, "Restriction enzymes without a site: EcoRI,BsaI."] = ()
    gc: Annotated[Words, "Share of G and C: 30-70%, in windows 30-70%/50:25."] = ()
    max_run: Annotated[int | None, "Longest run of one base."] = None
    protein: Annotated[
        Words,
        "Keep what is coded: forward or reverse (each region is a frame), or chr1:100-399:- (a "
        "frame of the genome).",
    ] = ()
    no_stop: Annotated[Words, "As --protein: a frame without stop codons."] = ()
    genetic_code: Annotated[int | None, "NCBI's number of the code (default 1)."] = None
    codon_usage: Annotated[
        str | None,
        "Of --protein: weigh codons as a species (e_coli, h_sapiens) or a file has them.",
    ] = None
    allow_stops: Annotated[
        bool | None,
        "Of --protein and --no-stop: take a frame that holds stop codons before its end as it is. "
        "Otherwise it is refused: most often it is the other strand's.",
    ] = None
    keep: Annotated[
        Words,
        "Bases that stay within the regions: chr1:120-130, or a BED file, such as elements.bed of "
        "`genodiff constraint`.",
    ] = ()
    no_repeats: Annotated[Words, "No stretch longer than 20 that a file has: 20:vector.fa."] = ()

    def join(self, other: "RuleWords") -> "RuleWords":
        """Combine both. Raises `UsageError` if they give two values for one number."""
        found: dict[str, Any] = {}
        for name, value in asdict(self).items():
            theirs = getattr(other, name)
            if name in _NUMBERS:
                if None not in (value, theirs) and value != theirs:
                    flag = name.replace("_", "-")
                    what = f"--{flag} {value}, and the file of constraints says {theirs}"
                    raise UsageError(what, fix="give it once")
                found[name] = theirs if value is None else value
            else:
                found[name] = (*value, *theirs)
        return RuleWords(**found)


_NUMBERS = ("max_run", "max_edits", "genetic_code", "codon_usage", "allow_stops")
_KINDS: dict[str, tuple[type, str, str]] = {
    "codon_usage": (str, "is no text", "give a species or a file"),
    "allow_stops": (bool, "is neither true nor false", "give true"),
}
"""Of those that are no whole numbers: the type, and what is said of another value."""


def read_rule_words(found: Mapping[str, Any], path: str | Path | None = None) -> RuleWords:
    """Parse constraints by name. Raises `DataError` with the file, or `UsageError` without one."""

    def fault(what: str, fix: str | None = None) -> GenodiffError:
        return UsageError(what, fix=fix) if path is None else DataError(what, file=path, fix=fix)

    known = [one.name for one in fields(RuleWords)]
    values: dict[str, Any] = {}
    for key, value in found.items():
        name = str(key).replace("-", "_")
        if name not in known:
            raise fault(f"no constraint '{key}'; {did_you_mean(name, known)}")
        if name in values:
            raise fault(f"{name} is given twice", "give it once, as a list of all")
        if name in _NUMBERS:
            kind, what, fix = _KINDS.get(name, (int, "is no whole number", "give one"))
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise fault(f"{key}: {value!r} {what}", fix)
            values[name] = value
            continue
        values[name] = tuple(value) if isinstance(value, list | tuple) else (value,)
        for word in values[name]:
            if not isinstance(word, (str, dict) if name == "protein" else str):
                raise fault(f"{key}: {word!r} is no text", 'write it in quotes, "…"')
    return RuleWords(**values)
