"""Formats of text that begin like nothing else, told by their first lines.

`find_other_format` is asked by every reader of text with the name of what it reads.
"""

import re
from collections.abc import Callable

from genodiff.io.diagnosis import Diagnosis

HEAD = 1 << 14
"""Bytes that tell what a file is."""


def _is_index(text: str) -> bool:
    rows = [line.split("\t") for line in text.split("\n")[:4]]
    numbers = all(len(row) in (5, 6) and all(map(str.isdecimal, row[1:])) for row in rows)
    return numbers and all(
        int(row[1]) > 0 and int(row[2]) > len(row[0]) and int(row[4]) - int(row[3]) in (1, 2)
        for row in rows
    )


def _is_yaml(text: str) -> bool:
    key = re.compile(r"[A-Za-z_][\w.-]*:( [^\t,;]*)?")
    shown = [one for one in text.split("\n") if not one.startswith(("#", " ", "- "))][:4]
    return len(shown) > 1 and (shown[0] == "---" or all(map(key.fullmatch, shown)))


def _is_newick(text: str) -> bool:
    tree = text.partition("\n")[0].strip()
    return tree.startswith("(") and tree.endswith(";") and tree.count("(") == tree.count(")")


_HERE = "give the file itself"
_ALIGNED = "an alignment: relatives and genomes are given as unaligned FASTA"
_FORMATS: tuple[tuple[str, str | Callable[[str], bool], str, str], ...] = (
    ("wiggle", r"((track|browser|#).*\n)*(fixed|variable)Step", "a wiggle file (values)",
     "give it as --track, or make bedGraph of it: wigToBigWig, then bigWigToBedGraph"),
    ("FASTA", r">[^\t\n]*\n[ \t]*([ACGTNUacgtnu*.-]+|[A-Za-z*.-]{20,})$", "FASTA (sequences)", ""),
    ("FASTQ", r"@.*\n.*\n\+", "FASTQ (reads)", "seqtk seq -A makes FASTA of it"),
    ("SAM", r"@(HD|SQ|RG|PG|CO)\t", "SAM, or a .dict of Picard (alignments)",
     "samtools fasta makes FASTA of it"),
    ("VCF table", "##fileformat=VCF", "VCF (variants)", ""),
    ("GFF3 BED annotation", "##(gff|gvf|gtf)-version", "GFF (annotation)", ""),
    ("GenBank", "LOCUS {3}", "GenBank (an annotated genome)", ""),
    ("EMBL GenBank TRANSFAC", "ID {3}[^\t\n]*;", "EMBL (a genome)", ""),
    ("alignment", "##maf ", "MAF", _ALIGNED),
    ("alignment", r"chain \d+ \S+ \d+ [+-]", "a chain file of UCSC", _ALIGNED),
    ("", r"psLayout|(\d+\t){8}[+-]{1,2}\t\S+\t(\d+\t){3}\S+\t", "PSL", _ALIGNED),
    ("alignment", r"\S+\t\d+\t\d+\t\d+\t[+-]\t\S+(\t\d+){6}", "PAF (of minimap2)", _ALIGNED),
    ("", r"\d+ \S+ \d+ \d+ \S+ \d+ \d+ [+-] -?\d+$", "an axt file of UCSC", _ALIGNED),
    ("", r".*\n(NUCMER|PROMER)$", "MUMmer's", _ALIGNED),
    ("", r"[ \t]*\d+[ \t]+\d+[ \t]*[A-Z]?\n\S+[ \t]+[A-Za-z?*. \t-]+$", "PHYLIP", _ALIGNED),
    ("", r"H\tVN:Z:|S\t\S+\t[ACGTNacgtn]+(\t|$)", "GFA (an assembly's graph)",
     "gfatools gfa2fa makes FASTA of it"),
    ("", "track .*bigDataUrl=", "a track line that names a file elsewhere",
     "download that file and give it"),
    ("", r"(hub|track|genome)( .*)?\n(.*\n){0,4}?(bigDataUrl|genomesFile|trackDb|shortLabel)( |$)",
     "a track hub's description", "give the files that it names"),
    ("", r"HTTP/\d", "a server's answer", "download the file without its head"),
    ("", r"(import|from) [\w.]+( import| as|$)", "a program in Python", _HERE),
    ("", "#NEXUS", "NEXUS", _ALIGNED),
    ("", "# STOCKHOLM", "Stockholm", _ALIGNED),
    ("", "CLUSTAL", "Clustal", _ALIGNED),
    ("", _is_newick, "a tree in Newick's format", _HERE),
    ("", _is_index, "a FASTA index (.fai)", "give the FASTA itself"),
    ("", r"[0-9a-f]{32}([0-9a-f]{8,96})?  ?\*?\S+$", "a list of checksums (md5, sha)", _HERE),
    ("", r"(?i)[ \t]*((http\S* )?(error )?[45]0\d(:? (bad request|unauthorized|forbidden|not found|"
     r"internal server error|bad gateway|service unavailable))?|access denied|"
     r"(file |page )?not found)(\n.*){0,2}\Z",
     "a server's error, saved in place of the file", "download the file again"),
    ("", "<{7} ", "a file with an open conflict of git", "resolve it"),
    ("", r"#!/|#!\s*/usr", "a script", _HERE),
    ("", r"\{\\rtf", "a rich-text document", "save it as plain text"),
    ("MEME", r"<[\s\S]*MEME", "XML", ""),
    ("", r"<\?xml|<!DOCTYPE|<[A-Za-z]", "XML", "give another format"),
    ("", "Seq-(entry|submit) ::=", "ASN.1 of NCBI", "download it as FASTA"),
    ("", r"(# )?T?BLAST[NPX] \d", "a report of BLAST", _ALIGNED),
    ("", r"\S+\t\S+\t\d+(\.\d+)?\t(\d+\t){7}\S+\t *[\d.]+$", "a table of BLAST", _ALIGNED),
    ("", r"HMMER\d/", "a profile (HMM)", "give sequences"),
    ("", r"HEADER {4}\S|data_\w+$|ATOM  +\d", "a structure (PDB, mmCIF)", "give FASTA"),
    ("", r"From \S+@|Return-Path:|Received: ", "an e-mail", _HERE),
    ("", r"Traceback \(most|slurmstepd: |srun: |--\d{4}-\d\d-\d\d \d\d:",
     "the log of a program, saved in place of the file", "make the file again"),
    ("", r"rule \w+:$|nextflow\.|process \w+ \{$|FROM \S+:\S+$|library\(|@\w+\{\S+,$",
     "the source of a program, a workflow or a bibliography", _HERE),
    ("codon JSON", r"\[[A-Za-z][\w. -]*\][ \t]*$", "INI or TOML: a configuration", _HERE),
    ("configuration", _is_yaml, "YAML: a configuration, as of Snakemake or genodiff", _HERE),
)  # fmt: skip
"""The words by which its readers call themselves, how its lines begin, what it is, a remedy."""


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
    text = "\n".join(lines)
    for words, begins, what, fix in _FORMATS:
        if re.match(begins, text, re.M) if isinstance(begins, str) else begins(text):
            return None if any(word in wanted for word in words.lower().split()) else (what, fix)
    return None


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
