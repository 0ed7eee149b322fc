"""What a variant does to the genes of an annotation, in terms of the Sequence Ontology.

Each transcript is asked by itself. An insertion or deletion in a repeat may stand at several places
of the same sequence, and is judged at the one that harms the transcript least: what that leaves
whole is whole. Where it touches the coding sequence, the protein is read again from the changed
letters, by the contig's genetic code. An insertion on the border of an exon is outside of it.

    donor, acceptor   the first and the last two bases of an intron
    splice region     three bases of the exon and eight of the intron beside them
    no intron         a gap of fewer than 10 bases (ribosomal slippage)

Codons count from the first whole codon that is annotated. The first codon is a start where the
code lists it as one and the annotation says that it is the first. In code 1 only ATG keeps a start.
Where the annotation does not say what protein is made (`Transcript.unknown`), no codon is judged,
and the consequence says why.

Where an insertion or deletion in a repeat may stand: all of its spellings of one sequence.
"""

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from Bio.Data.CodonTable import unambiguous_dna_by_id

from genodiff.constraints.coding import check_table
from genodiff.errors import UsageError, did_you_mean
from genodiff.io.faidx import Genome
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.io.regions import find_contig, is_mitochondrion, read_round
from genodiff.io.transcript_model import Transcript
from genodiff.io.transcripts import read_transcripts
from genodiff.io.variants import BASES, Allele
from genodiff.variants.codon_changes import CodingLetters, edit_reading, judge_edits
from genodiff.variants.transcript_places import list_places, read_around, touches

_STEP = 64  # letters read at a time


@dataclass(frozen=True)
class Placements:
    """An allele moved by `low` to `high` bases, of which each is the same change of the contig."""

    allele: Allele
    low: int = 0
    high: int = 0

    @property
    def start(self) -> int:
        """Where the leftmost begins."""
        return self.allele.start + self.low

    @property
    def end(self) -> int:
        """Where the rightmost ends."""
        return self.allele.end + self.high

    def at(self, step: int) -> Allele:
        """The allele moved by a number of bases to the right."""
        one = self.allele
        ref, alt = (text[step % len(text) :] + text[: step % len(text)] if text else ""
                    for text in (one.ref, one.alt))  # fmt: skip
        return Allele(one.chrom, one.start + step, ref, alt) if step else one

    def move(self, shift: int) -> "Placements":
        """The same on coordinates that are `shift` higher."""
        one = self.allele
        moved = Allele(one.chrom, one.start + shift, one.ref, one.alt)
        return Placements(moved, self.low, self.high) if shift else self

    def list_beside(self, borders: Iterable[int]) -> Iterator[Allele]:
        """The outermost placements, and those on each side of borders, from left to right."""
        steps = {self.low, 0, self.high}
        for border in borders if self.low < self.high else ():
            for at in (border - 1, border, border + 1):
                steps |= {at - self.allele.start, at - self.allele.end}
        return (self.at(step) for step in sorted(steps) if self.low <= step <= self.high)


def place_allele(allele: Allele, genome: Genome, *, goes_round: bool = False) -> Placements:
    """The placements of an allele; on a contig that `goes_round` also across its origin."""
    unit = allele.ref or allele.alt
    if (allele.ref and allele.alt) or not unit:
        return Placements(allele)
    length, n = genome.contigs[allele.chrom], len(unit)
    least, most = (-length, 2 * length) if goes_round else (0, length)

    def fetch(start: int, end: int) -> str:
        letters = read_round(lambda a, b: genome.fetch(allele.chrom, a, b), length, start, end)
        return letters.decode("latin-1").upper()

    high, at, ahead = 0, allele.end, ""
    while at < most and high < length:
        ahead = ahead or fetch(at, min(at + _STEP, most))
        if ahead[0] != unit[high % n]:
            break
        high, at, ahead = high + 1, at + 1, ahead[1:]
    low, at, behind = 0, allele.start, ""
    while at > least and -low < length:
        behind = behind or fetch(max(at - _STEP, least), at)
        if behind[-1] != unit[(low - 1) % n]:
            break
        low, at, behind = low - 1, at - 1, behind[:-1]
    return Placements(allele, low, high)


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
_HARMLESS = {
    "start_retained_variant", "stop_retained_variant", "synonymous_variant",
    "5_prime_UTR_variant", "3_prime_UTR_variant",
}  # fmt: skip
"""Of a repeat that may be changed on either side of a border, all of these are said."""


class Consequence(NamedTuple):
    """What an allele does to one transcript: `terms`, the most severe first.

    `protein` is the change of amino acids, such as A12V, V12del, 12_13insQ or A12fs; "" where none
    is known. `unknown` is why the protein of the transcript is not known, or "". Between genes
    `gene` and `transcript` are "".
    """

    terms: tuple[str, ...]
    gene: str = ""
    transcript: str = ""
    protein: str = ""
    unknown: str = ""

    def __str__(self) -> str:
        fields = [self.transcript, self.gene, "+".join(self.terms), self.protein]
        return "|".join([*fields, *([self.unknown] if self.unknown else [])])


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
        transcripts, self._known, self._circular = read_transcripts(path, genome.contigs, genome)
        self.sha256 = sha256_file(path)
        by_contig: dict[str, list[Transcript]] = {}
        for one in transcripts:
            by_contig.setdefault(one.contig, []).append(one)
        self._by_contig = {name: _Stack(some) for name, some in by_contig.items()}
        self._read = lru_cache(256)(self._read_transcript)
        self._say_what_is_missing(transcripts)

    def _say_what_is_missing(self, transcripts: list[Transcript]) -> None:
        lacking = [name for name in self._genome.contigs if name not in self._known]
        if lacking:
            what = "%s: nothing on %s of the genome's contigs (%s%s); no consequence is given there"
            more = ", ..." if len(lacking) > 1 else ""
            _log.warning(what, self.path, f"{len(lacking):,}", lacking[0], more)
        unread = {one.contig for one in transcripts
                  if one.coding and not one.unknown and self.find_table(one) is None}  # fmt: skip
        if unread:
            what = "%s: no genetic code of %s; give it by transl_table or --genetic-code %s=N"
            _log.warning(what, self.path, ", ".join(sorted(unread)), min(unread))

    def list_transcripts(self, contig: str) -> list[Transcript] | None:
        """The transcripts of a contig; None where the annotation says nothing of it."""
        if contig not in self._known:
            return None
        stack = self._by_contig.get(contig)
        return [] if stack is None else stack.every

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
        found = []
        stack = self._by_contig.get(allele.chrom)
        if stack:
            goes_round = allele.chrom in self._circular
            length = self._genome.contigs[allele.chrom]
            placed = place_allele(allele, self._genome, goes_round=goes_round)
            for shift in (0, length, -length) if goes_round else (0,):
                moved = placed.move(shift)
                for one in stack.overlap(moved.start, moved.end):
                    told = self._judge(one, moved)
                    found += [told] if told else []
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

    def _judge(self, one: Transcript, placed: Placements) -> Consequence | None:
        """What the least harmful of the placements does; None where one is outside the transcript.

        Of placements that do no harm, each adds what it is beside.
        """
        best: tuple[int, set[str], str] | None = None
        codons = _list_end_codons(one) if placed.low < placed.high else []
        retained = set[str]()
        borders = [at for piece in (*one.exons, *one.coding) for at in piece[:2]]
        for allele in placed.list_beside(borders):
            terms, protein = self._judge_placement(one, allele)
            retained |= {term for term, a, b in codons if touches(allele, a, b)}
            harm = [_RANK[term] for term in terms if term not in _HARMLESS]
            rank = min(harm, default=len(TERMS))
            if "coding_sequence_variant" in terms:
                rank = -1  # another placement may say what becomes of the protein
            if best is None or rank > best[0]:
                best = rank, terms, protein
            elif rank == best[0] == len(TERMS):
                best = rank, best[1] | terms, best[2] or protein
        terms = best[1] | (retained if best[0] == len(TERMS) else set()) if best else set()
        if not best or not terms:
            return None
        if len(terms) > 1 and best[0] == len(TERMS):
            terms.discard("synonymous_variant")
        ordered = tuple(sorted(terms, key=_RANK.__getitem__))
        return Consequence(ordered, one.gene, one.name, best[2], one.unknown)

    def _judge_placement(self, one: Transcript, allele: Allele) -> tuple[set[str], str]:
        if allele.ref and allele.start <= one.start and one.end <= allele.end and not allele.alt:
            return {"transcript_ablation"}, ""
        terms, protein = list_places(one, allele, self._fetcher(one)), ""
        if not terms or not one.coding:
            return terms, ""
        table = self.find_table(one)
        is_coding = "coding" in terms
        terms.discard("coding")
        if one.unknown or table is None:
            return terms | ({"coding_sequence_variant"} if is_coding else set()), ""
        if not is_coding:
            return terms, ""
        reading = self._read(one)
        edits = edit_reading(reading, allele)
        more = {"coding_sequence_variant"}
        if edits is None:  # over the end of an exon
            if not terms & {"splice_donor_variant", "splice_acceptor_variant"}:
                more = _judge_ends(one, allele) or more
        else:
            more, protein = judge_edits(reading, edits, table)
        return terms | more, protein

    def _fetcher(self, one: Transcript) -> Callable[[int, int], bytes]:
        length = self._genome.contigs[one.contig]
        return lambda a, b: read_round(
            lambda c, d: self._genome.fetch(one.contig, c, d), length, a, b
        )

    def _read_transcript(self, one: Transcript) -> CodingLetters:
        goes_round, length = one.contig in self._circular, self._genome.contigs[one.contig]
        return read_around(one, self._fetcher(one), length, goes_round=goes_round)


def _list_end_codons(one: Transcript) -> list[tuple[str, int, int]]:
    """The start and the stop codon, as (term, start, end), where they are annotated and whole."""
    if not one.coding or one.unknown:
        return []
    found = []
    (a, b, way), (c, d, other) = one.coding[0], one.coding[-1]
    if one.starts and not one.skip:
        found.append(("start_retained_variant", *((a, a + 3) if way > 0 else (b - 3, b))))
    if one.ends and not (sum(high - low for low, high, _ in one.coding) - one.skip) % 3:
        found.append(("stop_retained_variant", *((d - 3, d) if other > 0 else (c, c + 3))))
    return found


def _judge_ends(one: Transcript, allele: Allele) -> set[str]:
    """Of an allele that removes whole parts: whether the start and the stop are among them."""
    found = set()
    (a, b, way), (c, d, other) = one.coding[0], one.coding[-1]
    if one.starts and allele.start < (a if way > 0 else b) < allele.end:
        found.add("start_lost")
    if one.ends and allele.start < (d if other > 0 else c) < allele.end:
        found.add("stop_lost")
    return found


def parse_codes(texts: Sequence[str], contigs: Mapping[str, int]) -> dict[str, int]:
    """`CONTIG=N`, or `N` for all contigs, as contig → NCBI's number. Raises `UsageError`."""
    codes: dict[str, int] = {}
    for text in texts:
        contig, _, number = text.rpartition("=")
        if not number.isdecimal():
            raise UsageError(f"--genetic-code {text}", fix="give CONTIG=N, such as chrM=2")
        known = find_contig(contig, contigs) if contig else ""
        if known is None:
            fix = did_you_mean(contig, contigs)
            raise UsageError(f"--genetic-code {text}: the FASTA has no contig '{contig}'", fix=fix)
        check_table(int(number))
        codes |= dict.fromkeys([known] if known else contigs, int(number))
    return codes


class _Stack:
    """Transcripts of a contig by place, of which those over an interval are found."""

    def __init__(self, transcripts: list[Transcript]) -> None:
        spans = [(a, b, number) for number, one in enumerate(transcripts) for a, b in one.spans]
        self.every, self._spans = transcripts, sorted(spans)
        self._starts = [start for start, *_ in self._spans]
        self._reach = list(accumulate((end for _, end, _ in self._spans), max))

    def overlap(self, start: int, end: int) -> Iterator[Transcript]:
        """Those that have a base in [start:end], or where start is end, one on either side."""
        found = set()
        at = bisect_left(self._starts, max(end, start)) - 1
        while at >= 0 and self._reach[at] > start:
            if self._spans[at][1] > start:
                found.add(self._spans[at][2])
            at -= 1
        return (self.every[number] for number in sorted(found))
