"""Constraints as a user writes them, and what they mean in a genome: of every region, of places.

They are flags of the command line, or keys of a YAML or JSON file:

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

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from genodiff.constraints.coding import Intervals, KeepProtein, NoStop, check_table
from genodiff.constraints.codon_usage import read_codon_usage
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import AllOf, Constraint, KeepBases, MaxEdits
from genodiff.constraints.repeats import read_repeats
from genodiff.constraints.words import Avoid, AvoidSites, MaxRun, Require
from genodiff.errors import DataError, GenodiffError, UsageError, did_you_mean, format_count
from genodiff.io.regions import parse_region
from genodiff.registry import find_named
from genodiff.settings import read_yaml

_GC = re.compile(r"([0-9.]+)(%?)-([0-9.]+)(%?)(?:/([0-9]+)(?::([0-9]+))?)?")
_log = logging.getLogger("genodiff")
_FRAMES = {"forward": 1, "reverse": -1}
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


@dataclass(frozen=True)
class DesignRules:
    """What holds in every region, and on each contig at places of its own."""

    everywhere: AllOf = field(default_factory=AllOf)
    on_contig: Mapping[str, tuple[Constraint, ...]] = field(default_factory=dict)
    allow_stops: bool = False
    """Whether frames are kept that hold stop codons."""

    def of(self, contig: str) -> tuple[Constraint, ...]:
        """The constraints at places of this contig."""
        return self.on_contig.get(contig, ())


def read_rule_file(path: str | Path) -> RuleWords:
    """The constraints of a YAML or JSON file. Raises `DataError`."""
    found = read_yaml(path, error=DataError)
    if not isinstance(found, dict) or not found:
        raise DataError("holds no constraints", file=path, fix="write keys such as avoid: [GAATTC]")
    return read_rule_words(found, path)


def make_rules(
    words: RuleWords,
    contigs: dict[str, int],
    circular: Collection[str] = (),
    regions: Sequence[tuple[str, int, int]] | None = None,
) -> DesignRules:
    """The constraints that `words` mean in a genome. Raises `UsageError`, `DataError`.

    Places on one of the `circular` contigs may cross its origin. Of a BED file of bases to keep,
    the intervals that share a base with `regions` count (None: all).
    """
    places_in = (contigs, circular)
    code = 1 if words.genetic_code is None else words.genetic_code
    check_table(code)
    if words.genetic_code is not None and not (words.protein or words.no_stop):
        fix = "give --protein or --no-stop too, or leave it out"
        raise UsageError("--genetic-code is of a reading frame, and there is none", fix=fix)
    usage = None
    if words.codon_usage is not None:
        if not words.protein:
            fix = "give --protein too, or leave it out"
            raise UsageError("--codon-usage is of a kept protein, and there is none", fix=fix)
        usage = read_codon_usage(words.codon_usage, code)
    every: list[Constraint] = []
    places: dict[str, list[Constraint]] = {}
    if words.avoid:
        every.append(Avoid(tuple(map(str, words.avoid))))
    every += [Require((str(word),)) for word in words.require]
    names = [name.strip() for word in words.enzymes for name in str(word).split(",")]
    every += [AvoidSites((name,)) for name in dict.fromkeys(names)]
    every += [parse_gc(str(word)) for word in words.gc]
    if words.max_run is not None:
        every.append(MaxRun(words.max_run))
    every += [_parse_repeats(str(word)) for word in words.no_repeats]
    for word in words.protein:
        if isinstance(word, str) and word in _FRAMES:
            every.append(KeepProtein((), _FRAMES[word], code, usage=usage))
        else:
            contig, rule = _parse_protein(word, code, *places_in)
            places.setdefault(contig, []).append(replace(rule, usage=usage))
    for word in words.no_stop:
        if word in _FRAMES:
            every.append(NoStop((), _FRAMES[word], code))
        else:
            contig, start, end, strand = _parse_stranded(str(word), *places_in)
            places.setdefault(contig, []).append(NoStop(((start, end),), strand, code))
    for contig, start, end in _list_kept(words.keep, contigs, circular, regions):
        places.setdefault(contig, []).append(KeepBases((start, end)))
    if words.max_edits is not None:
        every.append(MaxEdits(words.max_edits))
    on_contig = {name: tuple(some) for name, some in places.items()}
    return DesignRules(AllOf(tuple(every)), on_contig, bool(words.allow_stops))


def _list_kept(
    words: Sequence[str],
    contigs: dict[str, int],
    circular: Collection[str],
    regions: Sequence[tuple[str, int, int]] | None,
) -> Iterator[tuple[str, int, int]]:
    """Each interval to keep: places, and the rows of BED files, such as conserved elements."""
    for word in map(str, words):
        if not word.endswith((".bed", ".bed.gz")):
            yield parse_region(word, contigs, circular)
            continue
        read_bed = find_named("genodiff.io.bed:read_bed")  # polars
        rows = read_bed(word, contigs).select("contig", "start", "end").iter_rows()
        within = [
            (contig, start, end)
            for contig, start, end in rows
            if regions is None or any(contig == c and a < end and start < b for c, a, b in regions)
        ]
        if within:
            _log.info("%s: %s in the regions, kept", word, format_count(len(within), "interval"))
        else:
            _log.warning("%s: no interval of it lies in the regions: nothing is kept", word)
        yield from within


def parse_gc(text: str) -> GcContent:
    """`0.3-0.7`, `30-70%`, `30-70%/50` (windows) or `30-70%/50:25` (every 25 bases).

    Raises `UsageError`.
    """
    found = _GC.fullmatch(text.replace(" ", ""))
    try:
        if found is None:
            raise ValueError
        low, high = float(found[1]), float(found[3])
    except ValueError:
        fix = "write 0.3-0.7, 30-70%, or 30-70%/50:25 for windows"
        raise UsageError(f"GC '{text}' is no range", fix=fix) from None
    scale = 100 if found[2] or found[4] else 1
    window = None if found[5] is None else int(found[5])
    return GcContent(low / scale, high / scale, window, 1 if found[6] is None else int(found[6]))


def _parse_repeats(text: str) -> Constraint:
    number, colon, path = text.partition(":")
    if not colon or not number.isdecimal() or not path:
        raise UsageError(f"repeats '{text}'", fix="write LONGEST:FASTA, for example 20:vector.fa")
    return read_repeats(path, int(number))


def _parse_stranded(
    text: str, contigs: dict[str, int], circular: Collection[str]
) -> tuple[str, int, int, int]:
    sign = text[-2:] if text not in contigs else ""
    if sign in (":+", ":-"):
        return *parse_region(text[:-2], contigs, circular), 1 if sign == ":+" else -1
    return *parse_region(text, contigs, circular), 1


def _parse_protein(
    word: Any, code: int, contigs: dict[str, int], circular: Collection[str]
) -> tuple[str, KeepProtein]:
    if not isinstance(word, dict):
        if ":" not in str(word) and word not in contigs:
            what = f"--protein '{word}' is no place; names of genes are not read"
            fix = "give its coding sequence, chr1:100-399:-, or its exons in --constraints FILE"
            raise UsageError(what, fix=fix)
        contig, start, end, strand = _parse_stranded(str(word), contigs, circular)
        return contig, KeepProtein(((start, end),), strand, code)
    unknown = set(word) - {"exons", "strand", "sequence"}
    exons = word.get("exons")
    strand = {"+": 1, "-": -1}.get(str(word.get("strand", "+")), 0)
    if unknown or not isinstance(exons, list) or not exons or not strand:
        fix = 'write {exons: ["chr1:1-90"], strand: "+"}, and sequence if new'
        raise UsageError(f"protein {word}", fix=fix)
    parts = [parse_region(str(exon), contigs, circular) for exon in exons]
    if len({contig for contig, _, _ in parts}) > 1:
        fix = "give exons of one contig"
        raise UsageError(f"protein {word}: exons on several contigs", fix=fix)
    protein = word.get("sequence")
    contig = parts[0][0]
    intervals = _order([part[1:] for part in parts], contigs[contig], contig in circular)
    rule = KeepProtein(intervals, strand, code, None if protein is None else str(protein))
    return contig, rule


def _order(parts: Sequence[tuple[int, int]], length: int, goes_round: bool) -> Intervals:
    """Exons from left to right: on a circle also round it, if that makes a shorter gene."""
    ordered = sorted(parts)
    if goes_round:
        unrolled: list[tuple[int, int]] = []
        for start, end in parts:
            by = length if unrolled and start < unrolled[-1][1] else 0
            unrolled.append((start + by, end + by))
        ordered = min(ordered, unrolled, key=lambda some: some[-1][1] - some[0][0])
    return tuple(ordered)


def name_conflict(parts: Sequence[str], where: str) -> GenodiffError:
    """The error for constraints that cannot be met."""
    if len(parts) == 1:
        what = f"{where}: this constraint contradicts the fixed bases: {parts[0]}"
        return UsageError(what, fix="leave it out, or let more bases change")
    what = f"{where}: these constraints contradict each other: {'; '.join(parts)}"
    fix = "leave one of them out; without any one, the others can be satisfied"
    return UsageError(what, fix=fix)
