"""A genome's labels: a state, a class or values at each base, with what is unknown left out.

    genes      one of the 13 states of `gene_grammar`, from GFF3, GTF, GenBank, EMBL or BED12
    classes    `none` or a class, from BED (its name column) or rows of GTF and GFF3 by type
    values     a number on each of several tracks, from bigWig or bedGraph

Read as the reverse complement, a base has the label `mirror` of its own: exon0+ becomes exon0-. Of
stranded classes, c+ and c- are two; of values, the tracks NAME+ and NAME- are a pair. Unknown are
contigs that a file says nothing of, and bases that are not A, C, G or T (`mask_unread`).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from genodiff.annotation.gene_grammar import (
    STATES,
    UNKNOWN,
    as_coding_genes,
    has_path,
    label_genes,
    mirror_states,
)
from genodiff.errors import DataError, UsageError, format_count
from genodiff.io.annotation_rows import list_pseudo_lines, read_annotation
from genodiff.io.bed import read_bed
from genodiff.io.faidx import Genome
from genodiff.io.input_file import name_input
from genodiff.io.transcripts import read_transcripts
from genodiff.io.value_tracks import read_values

log = logging.getLogger("genodiff")

Kind = Literal["genes", "classes", "values"]
NONE = "none"
"""The class of a base that has none."""
INSIDE = "inside"
"""The class of an interval without a name."""
_OTHER = {"+": "-", "-": "+"}
PSEUDO = "(pseudogene)"
_CODING = frozenset({"CDS", "start_codon", "stop_codon"})
_MOST = 127  # classes: a label is a byte
_BLOCK = 1 << 22  # letters that are read at once
_IS_READ = np.isin(np.arange(256), np.frombuffer(b"ACGTacgt", np.uint8))


@dataclass(frozen=True)
class BaseLabels:
    """The labels of contigs. An array is (length,) int8, or (length, tracks) float32 for values.

    Unknown are `UNKNOWN` and NaN. A contig without an array is unknown.
    """

    kind: Kind
    names: tuple[str, ...]
    contigs: dict[str, NDArray[Any]]

    @property
    def mirror(self) -> tuple[int, ...]:
        """The number of each label or track when a base is read as its complement."""
        return mirror_states() if self.kind == "genes" else mirror_names(self.names)

    def cut(self, contig: str, start: int, end: int) -> NDArray[Any]:
        """The labels of contig[start:end]; beyond the contig's ends they are unknown."""
        whole = self.contigs.get(contig, self._unknown(0))
        found = self._unknown(end - start)
        first, last = max(start, 0), min(end, len(whole))
        if first < last:
            found[first - start : last - start] = whole[first:last]
        return found

    def turn(self, window: NDArray[Any]) -> NDArray[Any]:
        """The labels of a window's reverse complement."""
        other = np.array(self.mirror)
        if self.kind == "values":
            return np.ascontiguousarray(window[::-1][:, other])
        turned = window[::-1]
        return np.where(turned == UNKNOWN, UNKNOWN, other[turned]).astype(window.dtype)

    def known(self, window: NDArray[Any]) -> NDArray[np.bool_]:
        """Which labels of a window are known."""
        found = np.isfinite(window) if self.kind == "values" else window != UNKNOWN
        return np.asarray(found)

    def count(self) -> NDArray[np.int64]:
        """How many bases have each label, or how many values each track has."""
        total = np.zeros(len(self.names), np.int64)
        for whole in self.contigs.values():
            if self.kind == "values":
                total += np.isfinite(whole).sum(0)
            else:
                total += np.bincount(whole[whole != UNKNOWN], minlength=len(self.names))
        return total

    def mask_unread(self, genome: Genome) -> "BaseLabels":
        """The same, unknown where the genome has a letter that is not A, C, G or T."""
        found = {}
        for contig, whole in self.contigs.items():
            found[contig] = masked = whole.copy()
            for start in range(0, len(whole), _BLOCK):
                end = min(start + _BLOCK, len(whole))
                letters = np.frombuffer(genome.fetch(contig, start, end), np.uint8)
                masked[start:end][~_IS_READ[letters]] = self.blank
        return replace(self, contigs=found)

    def mask_outside(self, intervals: Iterable[tuple[str, int, int]]) -> "BaseLabels":
        """The same, unknown outside `intervals` (contig, start, end)."""
        found: dict[str, NDArray[Any]] = {}
        for contig, start, end in intervals:
            if contig in self.contigs:
                whole = self.contigs[contig]
                kept = found.setdefault(contig, self._unknown(len(whole)))
                kept[start:end] = whole[start:end]
        return replace(self, contigs=found)

    @property
    def blank(self) -> float:
        """What stands for an unknown label."""
        return np.nan if self.kind == "values" else UNKNOWN

    def _unknown(self, length: int) -> NDArray[Any]:
        if self.kind == "values":
            return np.full((length, len(self.names)), np.nan, np.float32)
        return np.full(length, UNKNOWN, np.int8)


def mirror_names(names: Sequence[str]) -> tuple[int, ...]:
    """The number of each name's other strand: x- for x+, and a name without strand its own.

    Raises `UsageError` for one strand without the other.

    >>> mirror_names(["none", "exon+", "exon-"])
    (0, 2, 1)
    """
    place = {name: number for number, name in enumerate(names)}
    found = []
    for name in names:
        turned = name[:-1] + _OTHER.get(name[-1:], name[-1:])
        if turned not in place:
            fix = f"give '{turned}' too, or a name that ends in neither + nor -"
            raise UsageError(f"'{name}' is of one strand, and the other is missing", fix=fix)
        found.append(place[turned])
    return tuple(found)


def read_gene_labels(
    path: str | Path, contigs: Mapping[str, int], genome: Genome | None = None
) -> BaseLabels:
    """The states of the coding genes of GFF3, GTF, GenBank, EMBL or BED12 on `contigs`.

    Genes that the grammar has no path for, that are cut off, whose protein is not known, or that
    reach beyond a contig are unknown, and counted in the log. What the file leaves open is looked
    up in the letters of `genome`. Raises `DataError` as `read_transcripts` does, and where no
    coding gene is left.
    """
    file, shown = read_transcripts(path, contigs, genome), name_input(path)
    genes = as_coding_genes(file.transcripts)
    found, left_out, total = {}, 0, 0
    cut = [one for one in file.transcripts if one.coding and not (one.unknown or has_path(one))]
    for contig in sorted(file.contigs):
        whole, partial = genes.get(contig, ([], []))
        circular = contig in file.circular
        found[contig], more = label_genes(whole, contigs[contig], partial, circular=circular)
        left_out, total = left_out + more, total + len(whole)
    if left_out:
        what = "%s: %s of %s genes are left out: not of whole codons, or beside or on another"
        log.warning(what, shown, f"{left_out:,}", f"{total:,}")
    if cut:
        what = "%s: no label for %s: partial, trans-spliced or with ribosomal slippage"
        log.warning(what, shown, format_count(len(cut), "transcript"))
    if total == left_out:
        fix = "give CDS rows, or BED12 with its coding part, with strands"
        raise DataError("has no coding gene to learn from", file=shown, fix=fix)
    return BaseLabels("genes", STATES, found)


def _list_typed(
    path: str | Path, contigs: Mapping[str, int], types: Sequence[str]
) -> Iterator[tuple[str, int, int, str, str, int]]:
    """The rows of these types; one that crosses the origin of a circular contig is two.

    What a pseudogene has in place of a CDS or a codon codes for nothing: its type is `PSEUDO`.
    """
    pseudo = list_pseudo_lines(path) if _CODING.intersection(types) else set[int]()
    for row in read_annotation(path, contigs, types, over_origin=True):
        kind = PSEUDO if row.line in pseudo and row.type in _CODING else row.type
        length, rest = contigs[row.contig], (kind, row.strand, row.line)
        yield (row.contig, row.start, min(row.end, length), *rest)
        if row.end > length:
            yield (row.contig, 0, row.end - length, *rest)


def read_class_labels(
    path: str | Path,
    contigs: Mapping[str, int],
    *,
    types: Sequence[str] = (),
    all_as: str = "",
    stranded: bool = False,
    mask_shared: bool = False,
) -> BaseLabels:
    """The classes of bases: rows of GTF or GFF3 of the `types`, or else BED by its name column.

    An interval of BED without a name is `inside`; with `all_as`, every row is of that class, where
    names are those of genes. `stranded` makes two of each class. Raises `DataError` for a row
    beyond its contig or of an unknown one, without a strand where one is needed, and for bases of
    two classes. With `mask_shared` those are unknown, and counted in the log. So are rows on -
    whose strand is not used.
    """
    shown = name_input(path)
    if types:
        some = list(_list_typed(path, contigs, types))
    else:
        table = read_bed(path, dict(contigs))
        columns = ("contig", "start", "end", "name", "strand", "line")
        some = [(*row[:3], row[3] if row[3] not in (None, "", ".") else INSIDE, *row[4:])
                for row in table.select(columns).iter_rows()]  # fmt: skip
    if n := sum(row[3] == PSEUDO for row in some):
        what = "%s: the bases of %s of pseudogenes are unknown"
        log.warning(what, shown, format_count(n, "coding row"))
    if all_as:
        some = [(*row[:3], row[3] if row[3] == PSEUDO else all_as, *row[4:]) for row in some]
    turned = sum(row[4] == "-" for row in some)
    if turned and not stranded:
        what = "%s: %s on -; without --stranded a class is of both strands, and theirs is not used"
        log.warning(what, shown, format_count(turned, "row"))
    plain = sorted({row[3] for row in some} - {PSEUDO})
    names = (NONE, *(f"{one}{way}" for one in plain for way in ("+-" if stranded else ("",))))
    if len(names) > _MOST:
        what = f"has {len(plain):,} classes, more than a base's label can tell apart ({_MOST})"
        fix = "write the kind of each in column 4, or take all as one class"
        raise DataError(what, file=shown, fix=fix)
    for one in plain:
        if one == NONE or one.endswith(("+", "-")):
            what = f"a class is called '{one}': taken, or like a class of one strand"
            raise DataError(what, file=shown, fix="rename it")
    number = {name: place for place, name in enumerate(names)}
    found = {contig: np.zeros(contigs[contig], np.int8) for contig, *_ in some}
    for contig, start, end, name, strand, line in some:
        if name == PSEUDO:
            continue
        if stranded and strand not in ("+", "-"):
            what = f"the {name} {contig}:{start}-{end} has no strand"
            fix = "write + or -, or leave strands out"
            raise DataError(what, file=shown, line=line, fix=fix)
        label = number[name + strand if stranded else name]
        inside = found[contig][start:end]
        taken = (inside != 0) & (inside != label)
        if taken.any() and not mask_shared:
            at = int(taken.argmax())
            what = f"base {start + at} of {contig} (0-based) is {names[label]} and also "
            fix = "cut the intervals, leave one of the classes out, or mask what they share"
            raise DataError(what + names[inside[at]], file=shown, line=line, fix=fix)
        inside[:] = np.where(taken, UNKNOWN, label)
    if shared := sum(np.count_nonzero(whole == UNKNOWN) for whole in found.values()):
        log.warning("%s: %s bases of two classes are unknown", shown, f"{shared:,}")
    for contig, start, end, name, *_ in some:
        inside = found[contig][start:end]
        inside[(inside == 0) & (name == PSEUDO)] = UNKNOWN
    return BaseLabels("classes", names, found)


def read_value_labels(
    tracks: Mapping[str, str | Path], contigs: Mapping[str, int], *, fill: bool = False
) -> BaseLabels:
    """The values of tracks, name → bigWig or bedGraph; NAME+ and NAME- are strands of one.

    With `fill`, a base without a value has 0 where its track has any on its contig. Raises
    `UsageError` for half a pair of strands, `DataError` as `read_values`.
    """
    names = tuple(tracks)
    mirror_names(names)
    found: dict[str, NDArray[Any]] = {}
    for number, path in enumerate(tracks.values()):
        for contig, values in read_values(path, contigs).items():
            if contig not in found:
                found[contig] = np.full((contigs[contig], len(names)), np.nan, np.float32)
            if fill and np.isfinite(values).any():
                values = np.nan_to_num(values)
            found[contig][:, number] = values
    return BaseLabels("values", names, found)
