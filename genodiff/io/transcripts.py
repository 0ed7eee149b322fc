"""The transcripts of an annotation file: GFF3, GTF, BED12, GenBank or EMBL.

Whatever says something of genes reads them here: consequences, labels of bases, pictures. Unlike
`genes`, which has one transcript of each gene, here are all.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import DataError, format_count
from genodiff.io.faidx import Genome
from genodiff.io.genbank import open_text
from genodiff.io.genes import read_blocks, read_rows
from genodiff.io.input_file import name_input
from genodiff.io.planning import was_cut
from genodiff.io.regions import find_contig, refuse_contigs, warn_of_contigs
from genodiff.io.transcript_model import (
    BEYOND,
    NO_CDS,
    NO_ORDER,
    GenePart,
    Transcript,
    check_guess,
    lay_transcript,
    read_pieces,
)
from genodiff.io.transcript_records import list_record
from genodiff.io.transcript_rows import join_transcripts

log = logging.getLogger("genodiff")

_FORMATS = "GFF3, GTF, BED12 or GenBank"


class TranscriptFile(NamedTuple):
    """The transcripts of a file by contig and place, and the contigs that it says anything of.

    `circular` are the contigs that go round, as the file or the genome says.
    """

    transcripts: list[Transcript]
    contigs: frozenset[str]
    circular: frozenset[str] = frozenset()


def read_transcripts(
    path: str | Path, contigs: Mapping[str, int], genome: Genome | None = None
) -> TranscriptFile:
    """The transcripts of a file on `contigs` (name → length).

    What the file leaves open is looked up in the letters of `genome`, or else unknown. Transcripts
    without a known protein are counted in the log by the reason. Raises `DataError` for a faulty
    row, and where no transcript is on any of the contigs.

        read_transcripts("genes.gff3", genome.contigs).transcripts[0].coding
    """
    seen: dict[str, None] = {}
    circular = set(genome.circular if genome else ())
    with open_text(path, _FORMATS) as source:
        shown = source.shown
        rows: Iterator[Transcript]
        if source.flat:
            renamed = (
                one._replace(name=find_contig(one.name, contigs, shown) or one.name)
                for one in source.records
            )
            listed = (list_record(one, contigs, seen, circular) for one in renamed)
            rows = chain.from_iterable(listed)
        else:
            rows = _read_rows(source.lines, path, contigs, seen, circular)
        found = [_settle(one, contigs, genome) for one in rows]
    known = seen.keys() & contigs.keys()
    if not known and seen and not was_cut(shown):
        raise refuse_contigs(next(iter(seen)), contigs, shown)
    if all(one.unknown == BEYOND for one in found) and not was_cut(shown):
        raise DataError("has no gene on the genome's contigs", file=shown, fix=f"give {_FORMATS}")
    warn_of_contigs(seen, contigs, shown)
    reasons = Counter(one.unknown for one in found if one.unknown not in ("", NO_CDS))
    if reasons:
        some = "; ".join(f"{reason}: {n:,}" for reason, n in reasons.most_common())
        what = "%s: the protein of %s is unknown: no change of amino acids, no label (%s)"
        log.warning(what, shown, format_count(reasons.total(), "transcript"), some)
    found.sort(key=lambda one: one[:3])
    return TranscriptFile(found, frozenset(known), frozenset(circular))


def _settle(one: Transcript, contigs: Mapping[str, int], genome: Genome | None) -> Transcript:
    """A transcript with its guess confirmed by the letters; else its protein is unknown."""
    if not one.guessed or one.unknown:
        return one
    if genome is not None:
        letters = read_pieces(
            lambda a, b: genome.fetch(one.contig, a, b), contigs[one.contig], one.coding
        )
        if check_guess(one, letters):
            return one
    return one._replace(unknown=NO_ORDER)


def _read_rows(
    lines: Iterator[tuple[int, str]],
    path: str | Path,
    contigs: Mapping[str, int],
    seen: dict[str, None],
    circular: set[str],
) -> Iterator[Transcript]:
    """Transcripts of GFF3, GTF or BED; every contig is added to `seen`."""

    def keeps(contig: str) -> str | None:
        found = find_contig(contig, contigs, name_input(path))
        seen[found or contig] = None
        return found

    def of_bed(row: Sequence[Any], fields: Sequence[str]) -> Transcript:
        gene = read_blocks(path, row, fields)
        one = Transcript(*gene[:4], gene.name, gene.name)
        if len(fields) < 12 or not gene.strand:
            one = one._replace(unknown=NO_CDS)
        else:
            parts = ((GenePart(a, b, gene.strand) for a, b in some[:: gene.strand])
                     for some in (gene.exons, gene.coding))  # fmt: skip
            exons, coding = map(tuple, parts)
            one = one._replace(exons=exons, coding=coding)
        laid = lay_transcript(one, contigs[one.contig], circular=False)
        return laid or one._replace(unknown=BEYOND, exons=(), coding=())

    of_annotation = partial(join_transcripts, contigs=contigs, circular=circular)
    return read_rows(lines, path, keeps, of_annotation, of_bed)
