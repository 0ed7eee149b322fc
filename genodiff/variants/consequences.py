"""What a variant does to the genes of an annotation, in terms of the Sequence Ontology.

Each transcript is asked by itself. Bases of its coding sequence are exchanged, and the codons that
the change touches are read again by the contig's genetic code. An allele stands as far to the left
as it can, and is judged there. An insertion on the border of an exon is outside of it.

    donor, acceptor   the first and the last two bases of an intron
    splice region     three bases of the exon and eight of the intron beside them
    no intron         a gap of fewer than 10 bases (ribosomal slippage)

Codons count from the first whole codon that is annotated. The first codon is a start where the
code lists it as one and no base stands before it. In code 1 only ATG keeps a start.
"""

import logging
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from Bio.Data.CodonTable import unambiguous_dna_by_id

from genodiff.constraints.coding import check_table
from genodiff.errors import UsageError, did_you_mean
from genodiff.io.faidx import Genome
from genodiff.io.identity import sha256_file, sha256_json
from genodiff.io.topology import is_mitochondrion
from genodiff.io.transcripts import Transcript, read_transcripts
from genodiff.io.variants import BASES, Allele
from genodiff.variants.codon_changes import compare_codons, edit_coding, turn

_log = logging.getLogger("genodiff")

TERMS = (
    "transcript_ablation", "splice_acceptor_variant", "splice_donor_variant", "stop_gained",
    "frameshift_variant", "stop_lost", "start_lost", "inframe_insertion", "inframe_deletion",
    "missense_variant", "splice_region_variant", "incomplete_terminal_codon_variant",
    "start_retained_variant", "stop_retained_variant", "synonymous_variant",
    "coding_sequence_variant", "5_prime_UTR_variant", "3_prime_UTR_variant",
    "non_coding_transcript_exon_variant", "intron_variant", "non_coding_transcript_variant",
    "gene_variant", "intergenic_variant",
)  # fmt: skip
"""The terms, the most severe first."""
_RANK = {term: rank for rank, term in enumerate(TERMS)}
_SITE, _EXON_SIDE, _INTRON_SIDE = 2, 3, 8
_SHORTEST_INTRON = 10


class Consequence(NamedTuple):
    """What an allele does to one transcript: `terms`, the most severe first.

    `protein` is the change of amino acids, such as A12V, V12del, 12_13insQ or A12fs; "" where none
    is known. Between genes `gene` and `transcript` are "".
    """

    terms: tuple[str, ...]
    gene: str = ""
    transcript: str = ""
    protein: str = ""

    def __str__(self) -> str:
        return "|".join([self.transcript, self.gene, "+".join(self.terms), self.protein])


class Consequences:
    """The consequences of alleles of a genome, by an annotation.

        with Genome("genome.fa") as genome:
            Consequences("genes.gff3", genome).find(Allele("chr1", 99, "A", "G"))

    `sha256` is the hash of the annotation. `codes` (contig → NCBI's number) are genetic codes that
    go before those of the annotation. Of a mitochondrion no code is guessed: without one, what
    changes its CDS is a coding_sequence_variant. Raises `DataError` for an annotation that cannot
    be read, or of other contigs; `UsageError` for a code that is none.
    """

    def __init__(
        self, path: str | Path, genome: Genome, codes: Mapping[str, int] | None = None
    ) -> None:
        if str(path) == "-":
            raise UsageError("--features cannot be stdin", fix="give a file")
        self.path, self.codes = str(path), dict(codes or {})
        self._genome = genome
        for table in self.codes.values():
            check_table(table)
        transcripts, self._known, _ = read_transcripts(path, genome.contigs)
        self.sha256 = sha256_file(path)
        by_contig: dict[str, list[Transcript]] = {}
        for one in transcripts:
            by_contig.setdefault(one.contig, []).append(one)
        self._by_contig = {name: _Stack(some) for name, some in by_contig.items()}
        self._read = lru_cache(256)(self._read_coding)
        self._say_what_is_missing(transcripts)

    def _say_what_is_missing(self, transcripts: list[Transcript]) -> None:
        lacking = [name for name in self._genome.contigs if name not in self._known]
        if lacking:
            what = "%s: nothing on %s of the genome's contigs (%s%s); no consequence is given there"
            more = ", ..." if len(lacking) > 1 else ""
            _log.warning(what, self.path, f"{len(lacking):,}", lacking[0], more)
        unread = {one.contig for one in transcripts if one.coding and self.find_table(one) is None}
        if unread:
            what = "%s: no genetic code of %s; say it by transl_table or --genetic-code %s=N"
            _log.warning(what, self.path, ", ".join(sorted(unread)), min(unread))

    @property
    def digest(self) -> str:
        """What the consequences depend on but the genome: a hash of annotation and codes."""
        return sha256_json(self.describe_source() | {"path": ""})

    def describe_source(self) -> dict[str, Any]:
        """As a sidecar has it."""
        return {"path": self.path, "sha256": self.sha256, "genetic_codes": self.codes}

    def find_table(self, one: Transcript) -> int | None:
        """NCBI's number of the genetic code of a transcript, None where it is not known."""
        if one.contig in self.codes:
            return self.codes[one.contig]
        if one.table is not None:
            return one.table if one.table in unambiguous_dna_by_id else None
        about = self._genome.descriptions.get(one.contig, "")
        return None if is_mitochondrion(one.contig, about) else 1

    def find(self, allele: Allele) -> list[Consequence]:
        """The consequence for each transcript, the most severe first; between genes there is one.

        It is [] where the annotation says nothing of the contig, and for letters other than ACGT.
        """
        if allele.chrom not in self._known or not set(allele.ref + allele.alt) <= BASES:
            return []
        stack = self._by_contig.get(allele.chrom)
        some = stack.overlap(allele.start, allele.end) if stack else []
        found = [self._judge(one, allele) for one in some]
        found = sorted(found, key=lambda one: (_RANK[one.terms[0]], one.gene, one.transcript))
        return found or [Consequence(("intergenic_variant",))]

    def describe(self, allele: Allele | None) -> dict[str, Any]:
        """As tables have it: gene, consequence and protein of the most severe, and all."""
        found = self.find(allele) if allele is not None else []
        first = found[0] if found else Consequence(())
        return {
            "gene": first.gene, "consequence": "&".join(first.terms), "protein": first.protein,
            "transcripts": [str(one) for one in found if one.transcript],
        }  # fmt: skip

    def _judge(self, one: Transcript, allele: Allele) -> Consequence:
        if allele.ref and allele.start <= one.start and one.end <= allele.end and not allele.alt:
            return Consequence(("transcript_ablation",), one.gene, one.name)
        if not one.exons:
            return Consequence(("gene_variant",), one.gene, one.name)
        terms, protein = list_places(one, allele), ""
        if "coding" in terms:
            terms.discard("coding")
            more, protein = self._judge_coding(one, allele, terms)
            terms.update(more)
        ordered = tuple(sorted(terms, key=_RANK.__getitem__))
        return Consequence(ordered, one.gene, one.name, protein)

    def _read_coding(self, one: Transcript) -> str:
        """The coding sequence in the direction of the transcript."""
        parts = (self._genome.fetch(one.contig, a, b).decode().upper() for a, b in one.coding)
        return "".join(part if one.strand > 0 else turn(part) for part in parts)

    def _judge_coding(
        self, one: Transcript, allele: Allele, places: set[str]
    ) -> tuple[set[str], str]:
        old, table = self._read(one), self.find_table(one)
        new, first, last = edit_coding(one, old, allele)
        if new is None:  # over a border of the coding sequence
            if places & {"splice_donor_variant", "splice_acceptor_variant"}:
                return {"coding_sequence_variant"}, ""
            lost = set()
            low, high = min(one.coding)[0], max(b for _, b in one.coding)
            begins = allele.start < low if one.strand > 0 else allele.end > high
            ends = allele.end > high if one.strand > 0 else allele.start < low
            if begins and not one.skip:
                lost.add("start_lost")
            if ends:
                lost.add("stop_lost")
            return lost or {"coding_sequence_variant"}, ""
        if table is None:
            return {"coding_sequence_variant"}, ""
        return compare_codons(old[one.skip :], new[one.skip :], first - one.skip, last - one.skip,
                              table, starts=not one.skip)  # fmt: skip


def parse_codes(texts: Sequence[str], contigs: Collection[str]) -> dict[str, int]:
    """`CONTIG=N`, or `N` for all contigs, as contig → NCBI's number. Raises `UsageError`."""
    codes: dict[str, int] = {}
    for text in texts:
        contig, _, number = text.rpartition("=")
        if not number.isdecimal():
            raise UsageError(f"--genetic-code {text}", fix="give CONTIG=N, such as chrM=2")
        if contig and contig not in contigs:
            raise UsageError(
                f"--genetic-code {text}: the FASTA has no contig '{contig}'",
                fix=did_you_mean(contig, contigs),
            )
        check_table(int(number))
        codes |= dict.fromkeys([contig] if contig else contigs, int(number))
    return codes


class _Stack:
    """Transcripts of a contig by place, of which those over an interval are found."""

    def __init__(self, transcripts: list[Transcript]) -> None:
        self._all = transcripts
        self._starts = [one.start for one in transcripts]
        self._reach = list(accumulate((one.end for one in transcripts), max))

    def overlap(self, start: int, end: int) -> list[Transcript]:
        """Those that have a base in [start:end], or where start is end, one on either side."""
        found = []
        at = bisect_left(self._starts, max(end, start)) - 1
        while at >= 0 and self._reach[at] > start:
            if self._all[at].end > start:
                found.append(self._all[at])
            at -= 1
        return found[::-1]


def list_places(one: Transcript, allele: Allele) -> set[str]:
    """The parts of a transcript that an allele touches, as terms; "coding" for its CDS."""
    start, end = allele.start, allele.end

    def touches(a: int, b: int) -> bool:
        return a < end and start < b if start < end else a < start < b

    way = one.strand or 1
    terms: set[str] = set()
    for (exon, left), (right, last) in pairwise(one.exons):
        if right - left < _SHORTEST_INTRON:
            if touches(left, right):
                terms.add("coding_sequence_variant" if one.coding else "intron_variant")
            continue
        if touches(left, right) or start == end in (left, right):
            terms.add("intron_variant")
        sites = ("splice_donor_variant", "splice_acceptor_variant")[::way]
        near = touches(left - min(_EXON_SIDE, left - exon), left + _INTRON_SIDE)
        near |= touches(right - _INTRON_SIDE, right + min(_EXON_SIDE, last - right))
        hit = {
            term
            for term, at in zip(sites, (left, right - _SITE), strict=True)
            if touches(at, at + _SITE)
        }
        terms |= hit or ({"splice_region_variant"} if near else set())
    if not one.coding:
        if any(touches(a, b) for a, b in one.exons):
            terms.add("non_coding_transcript_exon_variant")
        elif terms:
            terms.add("non_coding_transcript_variant")
        return terms or {"non_coding_transcript_variant"}
    if any(touches(a, b) for a, b in one.coding):
        terms.add("coding")
    low, high = min(one.coding)[0], max(b for _, b in one.coding)
    utrs = ("5_prime_UTR_variant", "3_prime_UTR_variant")[::way]
    for term, (x, y) in zip(utrs, ((-1, low), (high, high + (1 << 60))), strict=True):
        for a, b in one.exons:
            outer = max(a, x), min(b, y)
            if outer[0] < outer[1] and (
                touches(*outer) or (start == end and start in (low, high) and start in outer)
            ):
                terms.add(term)
    return terms or {"coding_sequence_variant"}
