"""Files that a reference reader takes and we refuse, each with its reason."""

DAMAGE = "a sign of damage: what is lost cannot be known"
DOUBT = "two meanings: a reader that chooses one is wrong for the other half"
LETTERS = "the reference hands on letters that are no bases of DNA"
OTHER = "the reference reads it as text; it is another format, or other columns"
SPOILT = "a program spoilt a name, which then fits no other file"
MISSING = "a value is missing (tables of labels have --drop-missing)"
LOSSY = "the spelling may have lost digits"

_ANYWHERE = {
    "BGZF without its end block": DAMAGE,
    "NUL bytes at the end": DAMAGE,
    "Ctrl-Z at the end": DAMAGE,
    "cut in the middle": DAMAGE,
}
_INTERVALS = {
    "header": OTHER, "mixed tabs and blanks": DOUBT, "start 1e2": LOSSY, "end before start": DOUBT,
    "strand ?": DOUBT, "several widths": DAMAGE, "quotes": SPOILT,
}  # fmt: skip
_POSITION = "no position: the reference hands on the text, or another number"
_EMPTY = "a required column is empty"
_ANNOTATION = {
    "start 0": _POSITION, "start empty": _POSITION, "start .": _POSITION, "start 1e1": LOSSY,
    "start <10": _POSITION, "start 1,000": _POSITION, "negative start": _POSITION,
    "end before start": DOUBT, "end beyond": "another genome: no gene is left",
    "contig unknown": "another genome (genes are read, and the contig is counted)",
    "contig quoted": SPOILT, "type empty": _EMPTY, "strand empty": _EMPTY,
    "single quotes": "the reference has the quotes in names", "quotes around rows": SPOILT,
    "strand ?": DOUBT, "UTF-16": "the reference's records are bytes of UTF-16",
}  # fmt: skip
_BLANK = "a track without a finite value is of no use"
REASONS: dict[str, dict[str, str]] = {
    "GFF3": _ANNOTATION, "GTF": _ANNOTATION,
    "EMBL": {
        "U": LETTERS, "gap": LETTERS, "length too long": DAMAGE, "length too short": DAMAGE,
        "bad location": "the reference drops the feature with a warning", "two the same": DOUBT,
        "no //": DAMAGE,
    },
    "BCF": {
        "without its end block": DAMAGE,
        "two files joined": "the reference reads the first file, and drops the other",
    },
    "bigWig": {
        "longer contig": "made for another genome", "shorter contig": "made for another genome",
        "nan": _BLANK, "inf": _BLANK,
    },
    "MEME": {
        "RNA": LETTERS, "sum 0.9": "the reference rounds to counts", "a row missing": DAMAGE,
        "counts": "the reference rounds to counts", "an id twice": DOUBT,
    },
    "JASPAR": {
        "negative": "a count below 0", "an id twice": DOUBT,
        "four rows without >": "a matrix without a name, which files of results need",
    },
    "TRANSFAC": {"an id twice": DOUBT},
    "codon usage": {
        "a codon twice": DOUBT, "a codon missing": MISSING, "codon of four": MISSING,
        "codon with N": MISSING, "negative": "a frequency below 0", "nan": MISSING,
    },
    "VCF": {
        "a sample too many in a row": DAMAGE, "control character in INFO": DAMAGE,
        "ALT empty": MISSING, "REF empty": MISSING, "ALT A,": MISSING, "REF .": MISSING,
        "contig with a blank": SPOILT, "contig in quotes": SPOILT, "ID with a blank": SPOILT,
        "ALT with a blank": SPOILT, "POS with a plus": SPOILT, "REF with a digit": LETTERS,
        "REF -": DOUBT,
    },
    "FASTA": {
        "UTF-16": "the reference's records are bytes of UTF-16",
        "old Mac line ends": "the house's corpus of bad input refuses it (F013)",
        "RNA": LETTERS, "gaps": LETTERS, "stop": LETTERS, "protein": LETTERS, "X": LETTERS,
        "digits": LETTERS, "dots": LETTERS, "question mark": LETTERS, "vertical tab": LETTERS,
        "form feed": LETTERS, "blanks inside a line": "refused by the corpus of bad input (F044)",
        "tabs inside a line": "refused by the corpus of bad input (F046)",
        "indented sequence": "refused by the corpus of bad input (F044)",
        "no name": MISSING, "a name twice": DOUBT, "empty last record": DAMAGE,
        "; comments": "Fastx alone, and refused by the corpus of bad input (F051)",
        "# comment": "Fastx alone, which drops all above the first header",
        "text before": "Fastx alone, which drops all above the first header",
        "; comment inside": LETTERS, "quotes": SPOILT, "date in a name": SPOILT,
        "FASTQ": "reads, not a genome: seqtk seq -A makes FASTA",
    },
    "CSV": {
        "single quotes": "the reference has the quotes in names and cells",
        "backslash quotes": DOUBT, "a field missing": DAMAGE, "row without commas": DAMAGE,
        "wide header": DAMAGE, "NUL in a cell": DAMAGE, "names twice": DOUBT,
        "header twice": "the reference reads it as a row with the label 'label'",
        "empty label": MISSING,
    },
    "variants": {
        "insertion with an empty REF": MISSING, "deletion with an empty ALT": MISSING,
        "POS empty": MISSING, "0-based names": DOUBT,
        "names of UK Biobank": "alleles are tested and other, not ALT and REF",
        "names of sumstats": "alleles are tested and other, not ALT and REF",
    },
    "BED": _INTERVALS,
    "bedGraph": {
        **_INTERVALS, "three columns": OTHER, "six columns": OTHER, "score -": OTHER,
        "BED12": OTHER, "overlapping": DOUBT, "twice": DOUBT, "value nan": MISSING,
        "value ,": DOUBT,
    },
    "GenBank": {
        "no //": DAMAGE, "length too long": DAMAGE, "length too short": DAMAGE,
        "bad location": "the reference drops the feature with a warning", "U": LETTERS,
        "gap": LETTERS, "two the same": DOUBT,
    },
}  # fmt: skip


def find_reason(kind: str, name: str) -> str | None:
    """Why a shape is refused; None where there is no reason."""
    return REASONS.get(kind, {}).get(name) or _ANYWHERE.get(name)
