"""Transcripts of GenBank and EMBL records, by their feature tables.

A location says the order of its parts. Exons of a CDS are those of an mRNA of its gene that holds
its parts. `order(...)`, parts in another record, and positions that are not exact leave a protein
unknown; < and > at an end say that the feature goes on there.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from Bio.SeqFeature import AfterPosition, BeforePosition, ExactPosition

from genodiff.io.features import NAMES
from genodiff.io.genbank import FlatRecord
from genodiff.io.gene_words import GeneWords, Words, find_biotype, find_code, read_gene_words
from genodiff.io.transcript_model import (
    NO_CDS,
    NO_ORDER,
    NO_PLACE,
    PSEUDO,
    GenePart,
    Part,
    Transcript,
    covers,
    lay_transcript,
)
from genodiff.io.transcript_rows import RNA

_SEGMENTS = {"C_region", "D_segment", "J_segment", "N_region", "S_region", "V_region", "V_segment"}
"""Parts of genes that are rearranged before they are read."""


class _FlatLocation(NamedTuple):
    """The parts of a location, whether the feature ends where it does, and what is amiss."""

    pieces: tuple[GenePart, ...]
    starts: bool = True
    ends: bool = True
    fault: str = ""


def is_of_record(kind: str) -> bool:
    """Whether a type of feature is a gene, a transcript or a CDS."""
    return kind in ("CDS", "gene", *_SEGMENTS) or kind.endswith(RNA)


def list_record(
    record: FlatRecord, contigs: Mapping[str, int], seen: dict[str, None], circular: set[str]
) -> Iterator[Transcript]:
    """Transcripts of a record; its name is added to `seen`, and to `circular` if it goes round."""
    seen[record.name] = None
    if record.name not in contigs:
        return
    if record.parsed.annotations.get("topology") == "circular":
        circular.add(record.name)
    length, is_circular = contigs[record.name], record.name in circular
    features = record.parsed.features
    genes = [one for one in features if one.type == "gene"]
    source: Words = next((one.qualifiers for one in features if one.type == "source"), {})
    messengers: dict[str, list[_FlatLocation]] = {}
    made: list[tuple[Transcript, GeneWords]] = []
    for feature in features:
        is_coding = feature.type == "CDS"
        if not is_of_record(feature.type):
            continue
        place = _read_place(feature.location)
        if not place.pieces:
            continue
        if feature.type == "mRNA":
            messengers.setdefault(_name(feature), []).append(place)
            continue
        owners = [one.qualifiers for one in genes if is_coding and _same_gene(one, feature)]
        said = read_gene_words([feature.qualifiers, *owners])
        if said.table is None:
            said = said._replace(table=find_code(source))
        made.append((_make(record.name, feature, place, said), said))
    whole = {one.gene for one, _ in made if one.exons or one.coding}
    for one, said in made:
        bare = not one.exons and not one.coding and one.unknown in (NO_CDS, PSEUDO)
        if bare and (one.gene in whole or one.gene in messengers):
            continue
        if one.coding and not said.trans:
            around = (place.pieces for place in messengers.get(one.gene, ())
                      if not place.fault and covers(place.pieces, one.coding))  # fmt: skip
            one = one._replace(exons=next(around, one.exons))
        laid = lay_transcript(one, length, circular=is_circular, trans=said.trans)
        if laid is not None:
            yield laid
    for gene in messengers.keys() - whole:
        for place in messengers[gene]:
            one = _outline(record.name, gene, gene, place)._replace(
                exons=() if place.fault else place.pieces, unknown=NO_CDS
            )
            laid = lay_transcript(one, length, circular=is_circular)
            if laid is not None:
                yield laid


def _name(feature: Any) -> str:
    given = feature.qualifiers
    return str(next((some[0] for key in NAMES if (some := given.get(key))), feature.type))


def _same_gene(gene: Any, feature: Any) -> bool:
    keys = [key for key in ("locus_tag", "gene") if key in gene.qualifiers]
    return any(gene.qualifiers[key] == feature.qualifiers.get(key) for key in keys[:1])


def _read_place(location: Any) -> _FlatLocation:
    """The parts of a location of Biopython in the order of reading."""
    pieces: list[GenePart] = []
    fault = NO_ORDER if getattr(location, "operator", "join") != "join" else ""
    for part in location.parts:
        if part.ref is not None:
            fault = "a part of it is in another record"
            continue
        try:
            pieces.append(GenePart(int(part.start), int(part.end), -1 if part.strand == -1 else 1))
        except TypeError:  # an unknown position
            fault = NO_PLACE
    ways = [-1 if part.strand == -1 else 1 for part in location.parts]
    ends = [(part.start, part.end)[::way] for part, way in zip(location.parts, ways, strict=True)]
    flat = [position for pair in ends for position in pair]
    fuzzy = [not isinstance(position, ExactPosition) for position in flat]
    strange = [position for position, odd in zip(flat, fuzzy, strict=True)
               if odd and not isinstance(position, (BeforePosition, AfterPosition))]  # fmt: skip
    if strange or any(fuzzy[1:-1]):
        fault = fault or NO_PLACE
    return _FlatLocation(tuple(pieces), not fuzzy[0], not fuzzy[-1], fault)


def _outline(contig: str, gene: str, name: str, place: _FlatLocation) -> Transcript:
    """A transcript of which only the place is known."""
    spans: tuple[Part, ...] = tuple(sorted({one[:2] for one in place.pieces}))
    ways = {one.strand for one in place.pieces}
    start, end = spans[0][0], max(b for _, b in spans)
    apart = spans if len(spans) > 1 else ()
    return Transcript(contig, start, end, ways.pop() if len(ways) == 1 else 0, gene, name,
                      apart=apart)  # fmt: skip


def _make(contig: str, feature: Any, place: _FlatLocation, said: GeneWords) -> Transcript:
    given, gene = feature.qualifiers, _name(feature)
    name = next((given[k][0] for k in ("transcript_id", "protein_id", "locus_tag")
                 if given.get(k)), gene)  # fmt: skip
    one = _outline(contig, gene, name, place)
    if feature.type in _SEGMENTS:
        return one._replace(unknown="rearranged before it is read")
    if feature.type == "gene":
        biotype = find_biotype(given)
        known = biotype and biotype != "protein_coding"
        pseudo = PSEUDO if said.pseudo else ""
        return one._replace(unknown=pseudo or ("" if known else NO_CDS))
    is_coding = feature.type == "CDS"
    if place.fault:
        return one._replace(unknown=place.fault if is_coding else "")
    one = one._replace(exons=place.pieces, apart=())
    if not is_coding or said.pseudo:
        return one._replace(unknown=PSEUDO if said.pseudo else "")
    start = given.get("codon_start", ["1"])[0]
    skip = int(start) - 1 if start in ("1", "2", "3") else 0
    wrong = "" if start in ("1", "2", "3") else "its codon_start is none"
    return one._replace(
        coding=place.pieces, skip=skip, table=said.table,
        starts=place.starts and not skip, ends=place.ends, slips=said.slips,
        any_start=said.any_start or given.get("translation", [""])[0].startswith("M"),
        recoded=said.recoded, unknown=said.unknown or wrong,
    )  # fmt: skip
