"""Words of an annotation that change what a gene means: qualifiers of INSDC, attributes of GFF3.

pseudo, pseudogene, a biotype        nothing is translated
exception, artificial_location ...   the protein does not follow from the letters, with few
                                     exceptions
ribosomal_slippage, trans_splicing   parts are read in another way than introns between them
transl_except                        one codon is read as another amino acid
partial, start_range, cds_start_NF   an end is not annotated
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from Bio.SeqUtils import seq1

_BIOTYPES = ("transcript_biotype", "transcript_type", "gene_biotype", "biotype", "gene_type")
_FLAGS = {"ribosomal_slippage", "trans_splicing"}
_OPAQUE = {"artificial_location", "codon"}
"""Qualifiers of a CDS whose protein is not that of its letters."""
ROW_WORDS = frozenset(
    {*_BIOTYPES, *_FLAGS, *_OPAQUE, "pseudo", "pseudogene", "exception", "transl_except",
     "transl_table", "partial", "start_range", "end_range", "tag", "part", "exon_number",
     "Is_circular", "Derives_from", "protein_id",
     "genome", "organelle"}
)  # fmt: skip
"""Attributes of GFF3 and GTF that are read here, besides those that name a row."""
_NO = {"false", "no", "0"}
_HARMLESS = {"nonconsensus splice site", "dicistronic gene"}
_SLIPS = {"ribosomal slippage", "ribosome slippage"}
_TRANS = {"trans splicing"}
_START = {"alternative start codon"}
_OF_UNKNOWN_CODE = ("mitochondri", "kinetoplast", "hydrogenosome")
_EXCEPT = re.compile(r"\(?\s*pos:(.*?),\s*aa:\s*(\w+)")
_SPAN = re.compile(r"(\d+)(?:\.\.(\d+))?")

Words = Mapping[str, Sequence[str]]
"""Each word with its values, as Biopython has qualifiers."""


class Recoded(NamedTuple):
    """The codon at some bases of the contig (0-based, half-open parts) is read as `amino`."""

    parts: tuple[tuple[int, int], ...]
    amino: str


class GeneWords(NamedTuple):
    """What the words of a gene say. `unknown` is why its protein does not follow, or ""."""

    pseudo: bool = False
    unknown: str = ""
    slips: bool = False
    trans: bool = False
    any_start: bool = False
    """Its first codon is a start codon, whatever the genetic code says."""
    recoded: tuple[Recoded, ...] = ()
    table: int | None = None


def read_gene_words(some: Sequence[Words]) -> GeneWords:
    """What the words of a CDS, its transcript and its gene say together."""
    unknown = ""
    exceptions: set[str] = set()
    recoded: list[Recoded] = []
    for words in some:
        for one in ",".join(words.get("exception", ())).split(","):
            exceptions.add(" ".join(one.lower().replace("-", " ").replace("_", " ").split()))
        for key in _OPAQUE & words.keys():
            unknown = unknown or key.replace("_", " ")
        for text in words.get("transl_except", ()):
            for place, amino in _EXCEPT.findall(text.replace(" ", "")):
                spans = tuple((int(a) - 1, int(b or a)) for a, b in _SPAN.findall(place))
                recoded.append(Recoded(spans, seq1(amino)))
    held = {*_HARMLESS, *_SLIPS, *_TRANS, *_START, ""}
    unknown = unknown or min(exceptions - held, default="")
    return GeneWords(
        any(_is_pseudo(words) for words in some),
        unknown,
        bool(exceptions & _SLIPS) or any("ribosomal_slippage" in words for words in some),
        bool(exceptions & _TRANS) or any("trans_splicing" in words for words in some),
        bool(exceptions & _START),
        tuple(dict.fromkeys(recoded)),
        _find_table(some),
    )


def find_code(words: Words, kind: str = "") -> int | None:
    """The genetic code that a row or feature of a whole sequence says for its CDS.

    0 is that of an organelle whose code is not said, None where nothing is said.

    >>> find_code({"genome": ["mitochondrion"]}), find_code({"organelle": ["plastid:chloroplast"]})
    (0, 11)
    """
    table = _find_table([words])
    if table is not None:
        return table
    place = " ".join([*words.get("genome", ()), *words.get("organelle", ()), kind]).lower()
    if any(name in place for name in _OF_UNKNOWN_CODE):
        return 0
    return 11 if "plast" in place or "chromatophore" in place else None


def _find_table(some: Sequence[Words]) -> int | None:
    tables = (text for words in some for text in words.get("transl_table", ()))
    return next((int(text) for text in tables if text.isdecimal()), None)


def find_biotype(words: Words) -> str:
    """The biotype of a gene or transcript, "" where none is given."""
    return next((words[key][0] for key in _BIOTYPES if words.get(key)), "")


def _is_pseudo(words: Words) -> bool:
    given = [text for key in ("pseudo", "pseudogene") for text in words.get(key, ())]
    return any(text.lower() not in _NO for text in given) or "pseudogene" in find_biotype(words)


def is_pseudo_row(kind: str, words: Mapping[str, str]) -> bool:
    """Whether a row of GFF3 or GTF of the type `kind` says itself that it is of a pseudogene."""
    return "pseudogen" in kind.lower() or _is_pseudo({key: (text,) for key, text in words.items()})


def find_open_ends(words: Words) -> tuple[bool, bool]:
    """Whether the low and the high end of a row of GFF3 or GTF are not the ends of the feature.

    NCBI says `partial=true` with start_range or end_range, Prodigal `partial=10`.
    """
    said = words.get("partial", ("",))[0].lower()
    if said in ("10", "01", "11", "00"):
        return said[0] == "1", said[1] == "1"
    low, high = "start_range" in words, "end_range" in words
    if said == "true" and not low and not high:
        return True, True
    return low, high
