"""Formats of text that begin like nothing else, told by their first lines.

`find_other_format` is asked by every reader of text with the name of what it reads.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from genodiff.io.diagnosis import Diagnosis

HEAD = 1 << 14
"""Bytes that tell what a file is."""
_BASES = re.compile(r"[ACGTNUacgtnu*.-]+|[A-Za-z*.-]{20,}")


class TextFormat(NamedTuple):
    """A format: the words by which readers name it, how a file of it begins, what it is, a remedy.

    A reader whose own name holds one of the `words` reads it.
    """

    words: tuple[str, ...]
    begins: Callable[[list[str]], object]
    what: str
    fix: str


def _first(pattern: str) -> Callable[[list[str]], object]:
    compiled = re.compile(pattern)
    return lambda lines: compiled.match(lines[0])


def _is_wiggle(lines: list[str]) -> bool:
    first = next((one for one in lines if not one.startswith(("track", "browser", "#"))), "")
    return first.startswith(("fixedStep", "variableStep"))


def _is_fasta(lines: list[str]) -> object:
    plain = "\t" not in lines[0] and len(lines) > 1
    return lines[0].startswith(">") and plain and _BASES.fullmatch(lines[1].strip())


def _is_fastq(lines: list[str]) -> bool:
    return len(lines) > 2 and lines[0].startswith("@") and lines[2].startswith("+")


def _is_index(lines: list[str]) -> bool:
    rows = [line.split("\t") for line in lines[:4]]
    numbers = all(len(row) in (5, 6) and all(map(str.isdecimal, row[1:])) for row in rows)
    return numbers and all(
        int(row[1]) > 0 and int(row[2]) > len(row[0]) and int(row[4]) - int(row[3]) in (1, 2)
        for row in rows
    )


_ERROR = re.compile(
    r"(http\S* )?(error )?[45]0\d(:? (bad request|unauthorized|forbidden|not found|internal server "
    r"error|bad gateway|service unavailable))?|access denied|(file |page )?not found",
    re.IGNORECASE,
)


def _is_error(lines: list[str]) -> bool:
    return len(lines) < 4 and _ERROR.fullmatch(lines[0].strip()) is not None


def _is_yaml(lines: list[str]) -> bool:
    key = re.compile(r"[A-Za-z_][\w.-]*:( [^\t,;]*)?")
    shown = [one for one in lines if not one.startswith(("#", " ", "- "))][:4]
    return len(shown) > 1 and (shown[0] == "---" or all(map(key.fullmatch, shown)))


def _is_newick(lines: list[str]) -> bool:
    text = lines[0].strip()
    return text.startswith("(") and text.endswith(";") and text.count("(") == text.count(")")


def _is_phylip(lines: list[str]) -> bool:
    counts = re.fullmatch(r"\s*(\d+)\s+\d+\s*[A-Z]?", lines[0])
    rows = re.compile(r"\S+\s+[A-Za-z?*.\s-]+")
    return counts is not None and len(lines) > 1 and rows.fullmatch(lines[1]) is not None


def _is_hub(lines: list[str]) -> bool:
    first, *words = [line.split(" ")[0] for line in lines[:6]]
    known = {"bigDataUrl", "genomesFile", "trackDb", "shortLabel"}
    return first in ("hub", "track", "genome") and not known.isdisjoint(words)


_HERE = "give the file itself"
_ALIGNED = "an alignment: relatives and genomes are given as unaligned FASTA"
_FORMATS = (
    TextFormat(
        ("wiggle",), _is_wiggle, "a wiggle file (values)",
        "give it as --track, or make bedGraph of it: wigToBigWig, then bigWigToBedGraph",
    ),
    TextFormat(("FASTA",), _is_fasta, "FASTA (sequences)", ""),
    TextFormat(("FASTQ",), _is_fastq, "FASTQ (reads)", "seqtk seq -A makes FASTA of it"),
    TextFormat(
        ("SAM",), _first(r"@(HD|SQ|RG|PG|CO)\t"), "SAM, or a .dict of Picard (alignments)",
        "samtools fasta makes FASTA of it",
    ),
    TextFormat(("VCF", "table"), _first("##fileformat=VCF"), "VCF (variants)", ""),
    TextFormat(
        ("GFF3", "BED", "annotation"), _first("##(gff|gvf|gtf)-version"), "GFF (annotation)", "",
    ),
    TextFormat(("GenBank",), _first("LOCUS {3}"), "GenBank (an annotated genome)", ""),
    TextFormat(("EMBL", "GenBank", "TRANSFAC"), _first("ID {3}[^\t]*;"), "EMBL (a genome)", ""),
    TextFormat(("alignment",), _first("##maf "), "MAF", _ALIGNED),
    TextFormat(("alignment",), _first(r"chain \d+ \S+ \d+ [+-]"), "a chain file of UCSC", _ALIGNED),
    TextFormat((), _first("psLayout"), "PSL", _ALIGNED),
    TextFormat((), _first(r"(\d+\t){8}[+-]{1,2}\t\S+\t(\d+\t){3}\S+\t"), "PSL", _ALIGNED),
    TextFormat(
        ("alignment",), _first(r"\S+\t\d+\t\d+\t\d+\t[+-]\t\S+(\t\d+){6}"), "PAF (of minimap2)",
        _ALIGNED,
    ),
    TextFormat(
        (), _first(r"\d+ \S+ \d+ \d+ \S+ \d+ \d+ [+-] -?\d+$"), "an axt file of UCSC", _ALIGNED
    ),
    TextFormat((), lambda x: len(x) > 1 and x[1] in ("NUCMER", "PROMER"), "MUMmer's", _ALIGNED),
    TextFormat((), _is_phylip, "PHYLIP", _ALIGNED),
    TextFormat(
        (), _first(r"H\tVN:Z:|S\t\S+\t[ACGTNacgtn]+(\t|$)"), "GFA (an assembly's graph)",
        "gfatools gfa2fa makes FASTA of it",
    ),
    TextFormat(
        (), _first("track .*bigDataUrl="), "a track line that names a file elsewhere",
        "download that file and give it",
    ),
    TextFormat((), _is_hub, "a track hub's description", "give the files that it names"),
    TextFormat((), _first(r"HTTP/\d"), "a server's answer", "download the file without its head"),
    TextFormat((), _first(r"(import|from) [\w.]+( import| as|$)"), "a program in Python", _HERE),
    TextFormat((), _first("#NEXUS"), "NEXUS", _ALIGNED),
    TextFormat((), _first("# STOCKHOLM"), "Stockholm", _ALIGNED),
    TextFormat((), _first("CLUSTAL"), "Clustal", _ALIGNED),
    TextFormat((), _is_newick, "a tree in Newick's format", _HERE),
    TextFormat((), _is_index, "a FASTA index (.fai)", "give the FASTA itself"),
    TextFormat(
        (), _first(r"[0-9a-f]{32}([0-9a-f]{8,96})?  ?\*?\S+$"), "a list of checksums (md5, sha)",
        _HERE,
    ),
    TextFormat(
        (), _is_error,
        "a server's error, saved in place of the file", "download the file again",
    ),
    TextFormat((), _first("<{7} "), "a file with an open conflict of git", "resolve it"),
    TextFormat((), _first("#!/|#!\\s*/usr"), "a script", _HERE),
    TextFormat((), _first(r"\{\\rtf"), "a rich-text document", "save it as plain text"),
    TextFormat(("MEME",), lambda x: x[0][:1] == "<" and "MEME" in "".join(x), "XML", ""),
    TextFormat((), _first(r"(<\?xml|<!DOCTYPE|<[A-Za-z])"), "XML", "give another format"),
    TextFormat((), _first("Seq-(entry|submit) ::="), "ASN.1 of NCBI", "download it as FASTA"),
    TextFormat((), _first(r"(# )?T?BLAST[NPX] \d"), "a report of BLAST", _ALIGNED),
    TextFormat(
        (), _first(r"\S+\t\S+\t\d+(\.\d+)?\t(\d+\t){7}\S+\t *[\d.]+$"), "a table of BLAST", _ALIGNED
    ),
    TextFormat((), _first(r"HMMER\d/"), "a profile (HMM)", "give sequences"),
    TextFormat(
        (), _first(r"HEADER {4}\S|data_\w+$|ATOM  +\d"), "a structure (PDB, mmCIF)", "give FASTA"
    ),
    TextFormat((), _first(r"From \S+@|Return-Path:|Received: "), "an e-mail", _HERE),
    TextFormat(
        (), _first(r"Traceback \(most|slurmstepd: |srun: |--\d{4}-\d\d-\d\d \d\d:"),
        "the log of a program, saved in place of the file", "make the file again",
    ),
    TextFormat(
        (), _first(r"rule \w+:$|nextflow\.|process \w+ \{$|FROM \S+:\S+$|library\(|@\w+\{\S+,$"),
        "the source of a program, a workflow or a bibliography", _HERE,
    ),
    TextFormat(
        ("codon", "JSON"), _first(r"\[[A-Za-z][\w. -]*\]\s*$"), "INI or TOML: a configuration",
        _HERE,
    ),
    TextFormat(
        ("configuration",), _is_yaml, "YAML: a configuration, as of Snakemake or genodiff", _HERE
    ),
)  # fmt: skip


def find_other_format(head: bytes, wanted: str) -> Diagnosis | None:
    """What text that begins with `head` is, where that is for certain not the `wanted` format.

    >>> find_other_format(b"fixedStep chrom=chr1 start=1\\n1\\n", "BED")[0]
    'a wiggle file (values)'
    """
    lines = [line.rstrip() for line in head[:HEAD].decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line.strip()]
    wanted = wanted.lower()
    if not lines or wanted == "text":
        return None
    if lines[0].lstrip().startswith(("{", "[")) and not re.match(r"\s*\[[\w. -]+\]$", lines[0]):
        known = _name_json(head)
        return None if known is None or "json" in wanted or "codon" in wanted else known
    found = next((one for one in _FORMATS if one.begins(lines)), None)
    if found is None or any(word.lower() in wanted for word in found.words):
        return None
    return found.what, found.fix


def _name_json(head: bytes) -> Diagnosis | None:
    text = head[:HEAD].decode("utf-8", "replace").lstrip()
    keys = set(re.findall(r'"(\w+)"\s*:', text))
    if not keys:
        return ("JSON", _HERE) if re.match(r"\[\s*[\[\"\d\]]|\{\s*\}", text) else None
    for some, what in (
        ({"peft_type"}, "the configuration of an adapter (PEFT)"),
        ({"weight_map"}, "the index of a model's shards"),
        ({"nbformat"}, "a Jupyter notebook"),
        ({"model_type"}, "a model's configuration"), ({"architectures"}, "a model's configuration"),
        ({"genodiff"}, "what genodiff says of a file beside it"),
        ({"message", "status"}, "a server's answer, saved in place of the file"),
        ({"error"}, "a server's answer, saved in place of the file"),
    ):  # fmt: skip
        if some <= keys:
            return f"JSON: {what}", _HERE
    return "JSON", _HERE
