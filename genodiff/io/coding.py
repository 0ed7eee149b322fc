"""Coding sequences of GenBank and EMBL records, judged by the codon table that each one names.

A CDS is read as Biopython's `extract` gives it (strand, joined parts), from its /codon_start, by
its /transl_table (1 where it has none). What is found is a warning: genes with frameshifts exist.
"""

import warnings
from typing import NamedTuple

from Bio import BiopythonWarning
from Bio.Data.CodonTable import ambiguous_dna_by_id, unambiguous_dna_by_id
from Bio.Seq import Seq
from Bio.SeqFeature import AfterPosition, BeforePosition

from genodiff.io.genbank import FlatRecord, SeqRecord

_EXCEPTIONS = ("transl_except", "exception", "pseudo", "pseudogene")
"""Qualifiers of a CDS that its codon table does not explain: such a CDS is not judged."""
_UNSURE = "XBZJ"  # amino acids of a codon with ambiguity codes
_OPEN = (BeforePosition, AfterPosition)
_NAMES = ("gene", "locus_tag", "protein_id", "product")


class CodingReport(NamedTuple):
    """The number of CDS features, and the names of those with each finding."""

    n: int
    stops_inside: list[str]
    odd_length: list[str]
    """Neither partial (< or >) nor a multiple of three long."""
    translation_differs: list[str]
    """The sequence contradicts the given /translation."""
    not_judged: list[str]
    """With /transl_except or another exception, or a table or location that cannot be read."""

    def counts(self) -> dict[str, int]:
        """The number of each."""
        lists = {key: len(names) for key, names in self._asdict().items() if key != "n"}
        return {"n": self.n, **lists}


def judge_coding(record: FlatRecord) -> CodingReport:
    """The findings about every CDS of a record."""
    features = [one for one in record.parsed.features if one.type == "CDS"]
    report = CodingReport(len(features), [], [], [], [])
    for feature in features:
        _judge(feature, record.sequence, report)
    return report


def _judge(feature: SeqRecord, sequence: bytes, report: CodingReport) -> None:
    given = feature.qualifiers
    name = next((given[key][0] for key in _NAMES if given.get(key)), str(feature.location))
    letters = _extract(feature, sequence)
    start, code = (given.get(key, ["1"])[0] for key in ("codon_start", "transl_table"))
    table = int(code) if code.isdecimal() else 0
    known = start in ("1", "2", "3") and table in unambiguous_dna_by_id
    if letters is None or not known or any(key in given for key in _EXCEPTIONS):
        report.not_judged.append(name)
        return
    skip = int(start) - 1
    letters = letters[skip:]
    first, last = feature.location.parts[0], feature.location.parts[-1]
    begins = isinstance(first.end if first.strand == -1 else first.start, _OPEN)
    ends = isinstance(last.start if last.strand == -1 else last.end, _OPEN)
    if len(letters) % 3 and not begins and not ends:
        report.odd_length.append(name)
    whole = len(letters) // 3 * 3
    codons = str(letters[:whole])
    protein = _translate(codons, table)
    if protein and (protein[-1] == "*" or codons[-3:] in unambiguous_dna_by_id[table].stop_codons):
        protein = protein[:-1]  # in tables 27, 28 and 31 a stop codon also codes an amino acid
    if "*" in protein:
        report.stops_inside.append(name)
    translation = "".join(given.get("translation", ())).rstrip("*").upper()
    if not translation:
        return
    tail = _translate(f"{letters[whole:]}NN"[:3], table) if len(letters) % 3 else ""
    starts = ambiguous_dna_by_id[table].start_codons
    met = f"M{protein[1:]}" if codons[:3] in starts and not skip else protein
    allowed = {met, *([protein] if begins else [])}
    allowed |= {p + tail for p in allowed}  # two bases of a partial codon may name an amino acid
    fitting = (zip(ours, translation, strict=True) for ours in allowed
               if len(ours) == len(translation))  # fmt: skip
    if not any(all(a == b or a in _UNSURE or b == "X" for a, b in pairs) for pairs in fitting):
        report.translation_differs.append(name)


def _extract(feature: SeqRecord, sequence: bytes) -> Seq | None:
    """The letters of a CDS in its own direction, or None where its location is not all here."""
    parts = feature.location.parts
    try:
        ends = [(int(part.start), int(part.end)) for part in parts if part.ref is None]
    except TypeError:  # an unknown position
        return None
    inside = all(0 <= start <= end <= len(sequence) for start, end in ends)
    return feature.extract(Seq(sequence)) if inside and len(ends) == len(parts) else None


def _translate(codons: str, table: int) -> str:
    with warnings.catch_warnings():  # it warns of each codon that is a stop and an amino acid
        warnings.simplefilter("ignore", BiopythonWarning)
        return str(Seq(codons).translate(table=table))
