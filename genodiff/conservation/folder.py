"""The folder of `genodiff constraint`: tracks, elements.bed, a page, alignment.maf, classes.tsv."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.conservation.base_classes import CLASSES, GENE_FIELDS, TOTALS, BaseClasses
from genodiff.conservation.elements import (
    FIELDS,
    Element,
    find_elements,
    format_bed,
    list_rows,
)
from genodiff.conservation.reader import FEW_VALUES, VALUES, ConstraintRun, list_constraint_kinds
from genodiff.conservation.request import PAGE, SIDECAR, ConstraintRequest
from genodiff.errors import UsageError
from genodiff.io import atomic
from genodiff.io.big_bed import write_big_bed
from genodiff.jobs.job import EmptyOutputError, Rows
from genodiff.jobs.request import find_named
from genodiff.maps.track_files import TrackSet, list_files, name_assembly
from genodiff.maps.track_format import FORMATS
from genodiff.maps.track_hub import BedTrack, HubRequest
from genodiff.maps.track_values import BaseTracks, read_letters
from genodiff.memory.column_rates import ColumnClasses
from genodiff.memory.columns import ColumnNumbers
from genodiff.memory.text import NONE

_DEFAULT = ("bigwig",)
_LEAST_SHARE, _LEAST_BASES = 0.001, 32  # fewer are chance
_RENDER = "genodiff.reports.constraint_page:render_constraint_page"
AROUND = 600
"""Bases that the page shows on either side of the strongest element."""
_ELEMENTS = BedTrack("elements", "bigBed 6 +", "Conserved elements", "130,60,20")
_GENES = BedTrack("genes", "bigBed 12 .", "Genes of the annotation", "20,20,120")
_LETTERS = np.frombuffer(b"ACGT-", np.uint8)
_log = logging.getLogger("genodiff")


@dataclass(frozen=True)
class ConstraintForm:
    """How the folder is written."""

    formats: tuple[str, ...]
    assembly: str | None
    email: str
    fdr: float
    maf: bool
    genes: str | None = None

    @classmethod
    def of(cls, asked: ConstraintRequest) -> "ConstraintForm":
        """The form of a request."""
        wanted = set(asked.formats or _DEFAULT)
        formats = tuple(one for one in FORMATS.list_names() if one in wanted)
        if drawn := [one for one in formats if FORMATS[one]().is_drawn]:
            what = f"constraint has no --format {drawn[0]}"
            raise UsageError(what, fix="draw its bigWigs: genodiff tracks --track NAME=FILE")
        genes = None if asked.genes is None else str(asked.genes)
        return cls(formats, asked.assembly, asked.email, asked.fdr, asked.maf, genes)

    def __post_init__(self) -> None:
        """Raises `MachineError` where a package is missing."""
        for one in self.formats:
            FORMATS[one]().check()

    def list_files(self, assembly: str) -> list[str]:
        """The names of all files."""
        kinds = list_constraint_kinds()
        found = list_files(SIDECAR, self.formats, kinds, None if self.assembly else assembly)
        more = ["alignment.maf"] * self.maf + ["classes.tsv"] * (self.genes is not None)
        more += [f"{one.name}.bb" for one in self.list_beds()]
        return sorted([*found, "elements.bed", PAGE, *more])

    def list_beds(self) -> tuple[BedTrack, ...]:
        """The tracks of intervals in the hub."""
        found = (_ELEMENTS, *(_GENES,) * (self.genes is not None))
        return found if "bigwig" in self.formats else ()


def write_constraint(
    out: str | Path,
    run: ConstraintRun,
    rows: Rows,
    form: ConstraintForm,
    told: Mapping[str, Any],
    classes: BaseClasses | None = None,
) -> dict[str, Any]:
    """Write all files of `out`, a folder that is complete or not there; what its sidecar says.

    `classes` are those of `form.genes`. Raises `DataError` where no base has a value,
    `MachineError`.
    """
    related = told["relatives"]["genomes"]
    genomes = [one["name"] for one in related]
    tally = count_constraint(run, rows, genomes)
    if tally["scored"] <= _LEAST_SHARE * tally["known"]:
        n, of = tally["scored"], tally["bases"]
        what = f"no related genome aligns to more than {n:,} of {of:,} bases"
        elsewhere = any(one["homologous"] > _LEAST_SHARE for one in related)
        closer = "give more closely related species, or check the files"
        fix = "give another region" if elsewhere else closer
        raise EmptyOutputError(what, file=told["fasta"]["path"], fix=fix)
    _tell_absent(related, tally)
    numbers = ColumnNumbers(**told["columns"])
    stretches, columns = run.stretches(rows())
    slow = ColumnClasses(numbers, told["neutral"]["rate"], columns)
    elements = find_elements(stretches, columns, slow, fdr=form.fdr)
    assembly = name_assembly(told["fasta"]["path"])
    contigs, beds = dict(run.genome.contigs), form.list_beds()

    def describe(folder: Path, names: Mapping[str, str]) -> dict[str, Any]:
        renamed = [one._replace(contig=names[one.contig]) for one in elements]
        atomic.write_text(folder / "elements.bed", format_bed(renamed))
        if beds:
            lengths = {names[name]: length for name, length in contigs.items()}
            about = "elements", _ELEMENTS.label
            listed = list_rows(renamed)
            write_big_bed(folder / "elements.bb", lengths, listed, FIELDS, about=about)
            if classes is not None:
                given = classes.list_rows(names)
                about = "genes", _GENES.label
                write_big_bed(folder / "genes.bb", lengths, given, GENE_FIELDS, about=about)
        if form.maf:
            with open(folder / "alignment.maf", "w", encoding="utf-8") as file:
                file.writelines(format_blocks(assembly, genomes, run, rows))
        summary = {
            **asdict(form), **told, **tally, "elements": len(elements),
            "element_bases": sum(one.end - one.start for one in elements),
        }  # fmt: skip
        if classes is not None:
            summary["classes"] = measure_classes(run, rows, elements, classes)
            columns = ("class", "bases", "scored", "in_elements", *VALUES)
            table = [columns, *([row[name] for name in columns] for row in summary["classes"])]
            text = "".join("\t".join(map(str, row)) + "\n" for row in table)
            atomic.write_text(folder / "classes.tsv", text)
        strongest = sorted(elements, key=lambda one: (-one.lod, one.contig, one.start))
        around = _read_around(run, rows, strongest[0]) if strongest else None
        page = find_named(_RENDER)(summary, assembly, strongest, around)
        atomic.write_text(folder / PAGE, page)
        return summary

    hub = HubRequest(
        form.assembly, assembly, form.email, told["relatives_digest"], run.intervals[0], beds
    )
    facts = {"relatives": ", ".join(genomes), "rate 1": told["neutral"]["source"]}
    kinds = list_constraint_kinds(len(genomes))
    tracks = TrackSet(
        run.genome, run.intervals, lambda: run.blocks(rows()), kinds, form.formats, hub, facts
    )
    return tracks.write(out, SIDECAR, describe)


def _read_letters(run: ConstraintRun, rows: Iterable[bytes]) -> Iterator[Any]:
    for piece, one in run.read(rows):
        letters = read_letters(run.genome, piece.contig, piece.start, piece.end)
        yield piece.contig, piece.start, letters, one


def _read_around(run: ConstraintRun, rows: Rows, element: Element) -> BaseTracks:
    """The tracks of an element and of `AROUND` bases on either side, where they were read."""
    start, end = max(0, element.start - AROUND), element.end + AROUND
    found = [
        one for one in run.blocks(rows())
        if one.contig == element.contig and one.start < end and one.start + len(one.letters) > start
    ]  # fmt: skip
    at = found[0].start
    low, high = max(start - at, 0), end - at
    related = {
        name: np.concatenate([one.related[name] for one in found])[low:high] for name in VALUES
    }
    letters = "".join(one.letters for one in found)[low:high]
    return BaseTracks(element.contig, at + low, letters, found[0].p[:0], related)


def _tell_absent(related: Sequence[Mapping[str, Any]], tally: Mapping[str, Any]) -> None:
    """Name the genomes that lie nowhere in what was read; no relatives, or only not here."""
    known = tally["known"]
    for one in related:
        n, everywhere = tally["covered"][one["name"]], one["homologous"]
        if n >= max(_LEAST_SHARE * known, min(_LEAST_BASES, known)):
            continue
        what = f"{one['name']} aligns to {n:,} of the {known:,} bases read"
        if everywhere > _LEAST_SHARE:
            _log.info("%s (over %.0f%% of a sample of the genome)", what, 100 * everywhere)
        else:
            _log.warning("%s: is it a related species?", what)


def count_constraint(run: ConstraintRun, rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    """Count bases and those with values, the means of the tracks over these, and the bases that
    each related genome lies over.
    """
    bases = scored = known = 0
    few: set[float] = set()
    sums, present = np.zeros(len(VALUES)), np.zeros(len(names), np.int64)
    for _, _, letters, one in _read_letters(run, rows()):
        bases += len(letters)
        known += len(letters) - letters.count("N")
        there = ~np.isnan(one.values[:, 0])
        scored += int(there.sum())
        if len(few) <= FEW_VALUES:
            few |= set(np.unique(one.values[there, 0].round(3)).tolist())
        sums += one.values[there, : len(VALUES)].sum(0, dtype=np.float64)
        present += (one.bases[there] < NONE).sum(0)
    means = (sums / max(scored, 1)).round(6).tolist()
    covered = dict(zip(names, present.tolist(), strict=True))
    return {
        "bases": bases, "known": known, "scored": scored, "covered": covered,
        "means": dict(zip(VALUES, means, strict=True)),
        **({"rs_values": len(few)} if len(few) <= FEW_VALUES else {}),
    }  # fmt: skip


def measure_classes(
    run: ConstraintRun, rows: Rows, elements: Sequence[Element], classes: BaseClasses
) -> list[dict[str, Any]]:
    """For each class of `CLASSES` with bases, and each sum of `TOTALS`: how many, how many are
    scored, in elements, and the means of the tracks over those scored.
    """
    n = len(CLASSES)
    bases, scored, inside = np.zeros((3, n), np.int64)
    sums = np.zeros((n, len(VALUES)))
    for piece, one in run.read(rows()):
        labels = classes.read(piece.contig, piece.start, piece.end)
        there = ~np.isnan(one.values[:, 0])
        bases += np.bincount(labels, minlength=n)
        scored += np.bincount(labels[there], minlength=n)
        np.add.at(sums, labels[there], one.values[there, : len(VALUES)].astype(np.float64))
    for element in sorted(elements, key=lambda one: one.contig):
        labels = classes.read(element.contig, element.start, element.end)
        inside += np.bincount(labels, minlength=n)
    parts = {name: [name] for name in CLASSES} | TOTALS
    found: list[dict[str, Any]] = []
    for name, some in parts.items():
        at = [CLASSES.index(one) for one in some]
        whole, valued = int(bases[at].sum()), int(scored[at].sum())
        means = (sums[at].sum(0) / max(valued, 1)).round(4).tolist()
        counts = {"bases": whole, "scored": valued, "in_elements": int(inside[at].sum())}
        found.append({"class": name, **counts, **dict(zip(VALUES, means, strict=True))})
    return [one for one in found if one["bases"]]


def format_blocks(
    target: str, names: Sequence[str], run: ConstraintRun, rows: Rows
) -> Iterator[str]:
    """The lines of a MAF, a block for each tile; `target` and `names` are species.

    Rows are the columns that were tested (`memory/column_rates.py`): the target, then each genome
    that is present in the tile, with `-` where it is not. Insertions in a related genome are not
    shown, and its rows have no coordinates of its own, since a tile may be covered from several
    places of it: each is a contig of its own, by the number of the block.
    """
    yield "##maf version=1 scoring=none program=genodiff\n"
    for number, (contig, start, letters, piece) in enumerate(_read_letters(run, rows())):
        size = f"{len(letters)} + {run.genome.contigs[contig]}"
        lines = [f"s {target}.{contig} {start} {size} {letters}\n"]
        for g, name in enumerate(names):
            bases = piece.bases[:, g]
            if n := int((bases < NONE).sum()):
                text = _LETTERS[np.minimum(bases, NONE)].tobytes().decode()
                lines.append(f"s {name}.aligned_{number} 0 {n} + {n} {text}\n")
        if len(lines) > 1:
            yield "a score=0\n" + "".join(lines) + "\n"
