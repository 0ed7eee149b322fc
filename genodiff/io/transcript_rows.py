"""Transcripts of the rows of GFF3 and GTF: which rows are one CDS, in which order, and how whole.

GFF3 says one CDS by one ID. Files that number the rows of a CDS are known by their exons. Parts of
a trans-spliced CDS follow `part`, or else the file, if the letters bear that out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from genodiff.io.annotation_rows import TITLES, AnnotationRow
from genodiff.io.gene_words import (
    GeneWords,
    Recoded,
    Words,
    find_biotype,
    find_code,
    find_open_ends,
    read_gene_words,
)
from genodiff.io.transcript_model import (
    NO_CDS,
    NO_ORDER,
    NO_PHASE,
    NO_STRAND,
    ON_BOTH,
    PSEUDO,
    GenePart,
    Transcript,
    lay_transcript,
    order_on_circle,
)

STRANDS = {"+": 1, "-": -1}
RNA = ("RNA", "transcript", "transcript_variant", "gene_segment")
"""Ends of the types of transcripts."""
_SO = {
    "SO:0000704": "gene", "SO:0000234": "mRNA", "SO:0000673": "transcript", "SO:0000147": "exon",
    "SO:0000316": "CDS", "SO:0000318": "start_codon", "SO:0000319": "stop_codon",
    "SO:0000336": "pseudogene", "pseudogenic_exon": "exon", "coding_exon": "CDS",
    "selenocysteine": "Selenocysteine", "five_prime_UTR": "UTR", "three_prime_UTR": "UTR",
    "five_prime_utr": "UTR", "three_prime_utr": "UTR", "5UTR": "UTR", "3UTR": "UTR",
}  # fmt: skip
_RECODED = {
    "Selenocysteine": "U", "stop_codon_redefined_as_selenocysteine": "U",
    "stop_codon_redefined_as_pyrrolysine": "O", "stop_codon_read_through": "X",
}  # fmt: skip
_NARROW = 20  # an intron is longer; a gap between two CDS rows of different names may not be

_PARTS = {"exon", "CDS", "UTR", "stop_codon", "start_codon", *_RECODED, "intron", "intein"}

Key = tuple[str, str]


class _SortedRows(NamedTuple):
    """Rows of genes and transcripts by name, parts by parent, genetic codes (`find_code`)."""

    named: dict[Key, list[AnnotationRow]]
    parents: set[Key]
    parts: dict[str, dict[Key, list[AnnotationRow]]]
    codes: dict[str, int]


def join_transcripts(
    rows: Iterable[AnnotationRow], contigs: Mapping[str, int], circular: set[str]
) -> Iterator[Transcript]:
    """Each parent of exons or of a CDS, and bare genes; circular contigs go to `circular`."""
    known = _sort_rows(rows, contigs, circular)
    parts = known.parts
    for key in dict.fromkeys([*known.named, *parts["exon"], *parts["CDS"]]):
        pieces, coding = parts["exon"].get(key, []), parts["CDS"].get(key, [])
        if key in known.parents and not pieces and not coding:
            continue  # its transcripts stand for it
        for one in _join_one(key, known, pieces, coding, contigs[key[0]], key[0] in circular):
            if one is not None:
                code = known.codes.get(key[0]) if one.table is None else one.table
                yield one._replace(table=code)


def is_of_gene(row: AnnotationRow) -> bool:
    """Whether a row is a gene, a transcript or a part of one."""
    kind = _SO.get(row.type, row.type)
    return kind in _PARTS or kind.endswith(("gene", *RNA))


def _sort_rows(
    rows: Iterable[AnnotationRow], contigs: Mapping[str, int], circular: set[str]
) -> _SortedRows:
    named: dict[Key, list[AnnotationRow]] = {}
    codes: dict[str, int] = {}
    parents = set[Key]()
    kinds = ("exon", "CDS", "UTR", "stop_codon", "start_codon", *_RECODED)
    parts: dict[str, dict[Key, list[AnnotationRow]]] = {kind: {} for kind in kinds}
    for number, row in enumerate(rows):
        names, kind = row.names, _SO.get(row.type, row.type)
        if row.words.get("Is_circular", "").lower() == "true":
            circular.add(row.contig)
        above = [one for one in names.get("Parent", "").split(",") if one]
        if kind in parts:
            above = above or [names.get("transcript_id") or names.get("gene_id") or
                              names.get("ID") or f" {number}"]  # fmt: skip
            for one in above:
                parts[kind].setdefault((row.contig, one), []).append(row)
        elif kind.endswith(("gene", *RNA)):
            own = names.get("ID") or names.get("transcript_id") or names.get("gene_id")
            named.setdefault((row.contig, own or f" {number}"), []).append(row)
            parents.update((row.contig, one) for one in above)
            if not above and "transcript_id" in names:
                parents.add((row.contig, names.get("gene_id", "")))
        elif row.start == 0 and row.end >= contigs[row.contig]:
            code = find_code(_list_words(row), kind)
            if code is not None:
                codes[row.contig] = code
    return _SortedRows(named, parents, parts, codes)


def _join_one(
    key: Key,
    known: _SortedRows,
    pieces: list[AnnotationRow],
    coding: list[AnnotationRow],
    length: int,
    circular: bool,
) -> Iterator[Transcript | None]:
    """The transcripts of one parent: one for each CDS, or one without."""
    about = known.named.get(key, [])
    owners = _list_owners(key, known, [*about, *coding, *pieces])
    frames = _split_frames(coding, pieces, owners)
    utrs = known.parts["UTR"].get(key, [])
    if not pieces and utrs and len(frames) < 2:
        pieces = [*utrs, *coding]
    stops = known.parts["stop_codon"].get(key, [])
    for frame, guessed in frames or [([], False)]:
        rows = [*frame, *([] if frame else about), *pieces]
        named = [*about, *frame, *pieces]
        title = _name_gene(key, known, named, owners)
        name = named[0].names.get("transcript_id") or key[1].partition(":")[2] or key[1]
        if len(frames) > 1:  # several coding sequences of one transcript
            name = frame[0].words.get("protein_id") or frame[0].names.get("ID", name)
        words = [_list_words(row) for row in (*frame, *about, *owners, *pieces[:1])]
        said = read_gene_words(words)
        made = _Frame(frame, pieces, about, said, length, circular, guessed)
        spots = (*about, *frame, *pieces, *stops) if frame else (*about, *pieces)
        one = Transcript(
            key[0], min(row.start for row in spots), max(row.end for row in spots),
            STRANDS.get(rows[0].strand, 0), title, name,
        )  # fmt: skip
        one = made.fill(one, stops)
        if not frame and not one.unknown and not _is_known_rna(about, words):
            one = one._replace(unknown=NO_CDS)
        recoded = [
            Recoded(((row.start, row.end),), amino)
            for kind, amino in _RECODED.items()
            for row in known.parts[kind].get(key, [])
        ]
        starts, ends = one.starts, one.ends
        if len(frames) == 1:  # a file that has such rows has them for every whole CDS
            begun = known.parts["start_codon"]
            starts = starts and (not begun or key in begun)
            ends = ends and (not known.parts["stop_codon"] or bool(stops))
        one = one._replace(starts=starts, ends=ends, recoded=(*said.recoded, *recoded))
        yield lay_transcript(one, length, circular=circular, trans=said.trans)


class _Frame(NamedTuple):
    """The rows of a CDS (none of a transcript without one) and what is said of them."""

    rows: Sequence[AnnotationRow]
    exons: Sequence[AnnotationRow]
    about: Sequence[AnnotationRow]
    said: GeneWords
    length: int
    circular: bool
    guessed: bool

    def fill(self, one: Transcript, stops: Sequence[AnnotationRow]) -> Transcript:
        """The transcript with its parts in order, or why they are not known."""
        said, rows = self.said, self.rows
        spots = tuple(sorted({(row.start, row.end) for row in (rows or self.exons or self.about)}))
        blank = one._replace(apart=spots, strand=0)
        ways = {row.strand for row in (*rows, *self.exons)} or {row.strand for row in self.about}
        turned = {*ways, *(row.strand for row in self.about)} - {"."}
        if "." in ways:
            return blank._replace(apart=(), unknown=NO_STRAND)
        inside = [s for s in stops if not any(r.start <= s.start and s.end <= r.end for r in rows)]
        ordered = self._order([*rows, *inside] if rows and not said.trans else rows)
        exons = self._order(self.exons)
        if ordered is None or (len(turned) > 1 and not said.trans):
            return blank._replace(unknown=ON_BOTH if len(turned) > 1 else NO_ORDER)
        coding, guessed = ordered
        if said.trans and rows:
            coding += sorted(inside, key=lambda row: row.start * STRANDS[row.strand])
        spans = tuple(sorted({(row.start, row.end) for row in self.about})) if said.trans else ()
        one = one._replace(
            exons=_as_pieces(exons[0] if exons and not exons[1] else ()),
            coding=_as_pieces(coding), guessed=guessed or self.guessed, apart=spans,
            slips=said.slips, any_start=said.any_start,
        )  # fmt: skip
        if not rows:
            return one._replace(unknown=PSEUDO if said.pseudo else said.unknown, guessed=False)
        starts, ends = self._find_ends(coding)
        skip = coding[0].phase or 0
        one = one._replace(skip=skip, table=said.table, starts=starts and not skip, ends=ends)
        if said.pseudo:
            return one._replace(exons=one.exons or one.coding, coding=(), unknown=PSEUDO)
        wrong = NO_PHASE if not _check_phases(coding) else ""
        return one._replace(unknown=said.unknown or wrong)

    def _order(self, rows: Sequence[AnnotationRow]) -> tuple[list[AnnotationRow], bool] | None:
        """Rows in the order of reading and whether that is a guess; None where none is known."""
        if not rows:
            return [], False
        said = _sort_by(rows, "part") or _sort_by(rows, "exon_number")
        strands = {row.strand for row in rows}
        if said and (len(strands) > 1 or self.said.trans or not _is_usual(said)):
            return said, False
        if self.said.trans:
            return list(rows), True
        if len(strands) > 1:
            return None
        way = STRANDS[rows[0].strand]
        of = {GenePart(row.start, row.end, way): row for row in rows}
        some = order_on_circle(list(of), self.length) if self.circular else sorted(of)[::way]
        return [of[piece] for piece in some], False

    def _find_ends(self, coding: Sequence[AnnotationRow]) -> tuple[bool, bool]:
        """Whether the first and the last codon are annotated, by the rows' own words."""
        first, last = coding[0], coding[-1]
        starts = ends = True
        some = [*self.rows, *self.about]
        ranged = any({"start_range", "end_range"} & row.words.keys() for row in self.rows)
        for row in some:
            low, high = find_open_ends({key: (text,) for key, text in row.words.items()})
            if ranged and not {"start_range", "end_range"} & row.words.keys():
                continue
            tags = row.words.get("tag", "")
            for one, is_first in ((first, True), (last, False)):
                at_low = (one.strand == "+") == is_first
                there = row.start == one.start if at_low else row.end == one.end
                if (low if at_low else high) and there:
                    starts, ends = starts and not is_first, ends and is_first
            starts, ends = starts and "cds_start_NF" not in tags, ends and "cds_end_NF" not in tags
        return starts, ends


def _sort_by(rows: Sequence[AnnotationRow], word: str) -> list[AnnotationRow]:
    """Rows by a number that each has and none share, or []; a stop codon comes behind its CDS."""
    keys = [(row.words.get(word, ""), row.type == "stop_codon") for row in rows]
    if not all(text.isdecimal() for text, _ in keys) or len(set(keys)) < len(rows):
        return []
    order = sorted(range(len(rows)), key=lambda i: (int(keys[i][0]), keys[i][1]))
    return [rows[i] for i in order]


def _is_usual(rows: Sequence[AnnotationRow]) -> bool:
    """Whether numbered parts of one strand run along it; on - some programs number them back."""
    some = [row for row in rows if row.type != "stop_codon"]
    steps = {after.start > before.start for before, after in pairwise(some)}
    return steps <= {True} or (steps <= {False} and rows[0].strand == "-")


def _as_pieces(rows: Iterable[AnnotationRow]) -> tuple[GenePart, ...]:
    return tuple(dict.fromkeys(GenePart(row.start, row.end, STRANDS[row.strand]) for row in rows))


def _check_phases(rows: Sequence[AnnotationRow]) -> bool:
    """Whether phases follow from the lengths; a file that has 0 throughout says nothing of them."""
    given = [row.phase for row in rows]
    if not any(given):
        return True
    read, first = 0, given[0] or 0
    for row, phase in zip(rows, given, strict=True):
        if phase is not None and row.type != "stop_codon" and phase != (first - read) % 3:
            return False
        read += row.end - row.start
    return True


def _list_words(row: AnnotationRow) -> Words:
    found = {key: (text,) for key, text in row.words.items()}
    if "pseudogen" in row.type:
        found["pseudo"] = ("true",)
    return found


def _list_owners(
    key: Key, known: _SortedRows, rows: Sequence[AnnotationRow]
) -> list[AnnotationRow]:
    """The rows of the transcript's gene, and of what that belongs to."""
    found: list[AnnotationRow] = []
    todo = list(rows)
    for _ in range(3):
        above: list[AnnotationRow] = []
        for row in todo:
            names = (*row.names.get("Parent", "").split(","), row.names.get("gene_id", ""))
            some = [one for name in names if name and (row.contig, name) != key
                    for one in known.named.get((row.contig, name), ())]  # fmt: skip
            above += [one for one in some if not any(one is other for other in (*found, *above))]
        found += above
        todo = above
    return found


def _name_gene(
    key: Key, known: _SortedRows, named: Sequence[AnnotationRow], owners: Sequence[AnnotationRow]
) -> str:
    for row in named:
        if origin := row.words.get("Derives_from"):  # a CDS of an operon says which gene it is of
            owners = [*known.named.get((key[0], origin), ()), *owners]
            break
    direct = [one for one in owners if one.type.endswith("gene")] or owners
    titled = direct[:1] or named
    gene = next((row.names[t] for row in titled for t in TITLES if row.names.get(t)), key[1])
    return next((row.names["gene_name"] for row in named if row.names.get("gene_name")), gene)


def _is_known_rna(about: Sequence[AnnotationRow], words: Sequence[Words]) -> bool:
    """Whether a transcript without a CDS is known to code for nothing."""
    biotype = next((found for one in words if (found := find_biotype(one))), "")
    kind = _SO.get(about[0].type, about[0].type) if about else "transcript"
    if kind == "mRNA" or kind.endswith("gene_segment") or biotype == "protein_coding":
        return False
    if kind.endswith("gene"):
        return bool(biotype) or kind not in ("gene", "pseudogene", "protein_coding_gene")
    return True


def _split_frames(
    rows: Sequence[AnnotationRow], exons: Sequence[AnnotationRow], owners: Sequence[AnnotationRow]
) -> list[tuple[list[AnnotationRow], bool]]:
    """The rows of each CDS of a parent, and whether that they are one is a guess.

    Rows of one ID are one CDS. Rows of several are one only where each step between them is from
    the end of an exon to the start of the next; without exons, where their phases go on.
    """
    by_id: dict[tuple[str, ...], list[AnnotationRow]] = {}
    for row in rows:
        own = (row.names.get("ID", ""), row.names.get("gene_id", ""),
               *(row.words.get(k, "") for k in ("protein_id", "Derives_from")))  # fmt: skip
        by_id.setdefault(own, []).append(row)
    groups = list(by_id.values())
    if len(groups) < 2:
        return [(list(rows), False)] if rows else []
    apart = [(some, False) for some in groups]
    if len({own[1:] for own in by_id}) > 1 or any(len(some) > 1 for some in groups):
        return apart
    parents = {row.names.get("Parent", "") for row in rows}
    of_gene = any(one.type.endswith("gene") and one.names.get("ID") in parents for one in owners)
    ordered = sorted(rows, key=lambda row: row.start)
    steps = list(pairwise(ordered))
    narrow = any(b.start - a.end < _NARROW for a, b in steps)
    if of_gene or narrow or not _check_phases(ordered[:: STRANDS.get(rows[0].strand, 1)]):
        return apart
    if not exons:
        return [(list(rows), True)]
    starts, ends = {row.start for row in exons}, {row.end for row in exons}
    spliced = all(a.end in ends and b.start in starts for a, b in steps)
    return [(list(rows), False)] if spliced else apart
