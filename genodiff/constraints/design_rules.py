"""Constraints in words as what they mean in a genome: of every region, and of places."""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from genodiff.constraints.bases import KeepBases, MaxEdits
from genodiff.constraints.coding import Intervals, KeepProtein, NoStop, check_table
from genodiff.constraints.codon_usage import read_codon_usage
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import AllOf, Constraint
from genodiff.constraints.repeats import read_repeats
from genodiff.constraints.rule_words import RuleWords, read_rule_words
from genodiff.constraints.words import Avoid, AvoidSites, MaxRun, Require
from genodiff.errors import DataError, GenodiffError, UsageError, format_count
from genodiff.io.bed import read_bed
from genodiff.io.regions import parse_region
from genodiff.settings import read_yaml

_GC = re.compile(r"([0-9.]+)(%?)-([0-9.]+)(%?)(?:/([0-9]+)(?::([0-9]+))?)?")
_log = logging.getLogger("genodiff")
_FRAMES = {"forward": 1, "reverse": -1}


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
    return UsageError(
        what, fix="leave one of them out; without any one, the others can be satisfied"
    )
