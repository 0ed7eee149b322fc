"""What a fault in an input file probably is, and what to do about it.

File formats are told by their first bytes or lines, letters by themselves. Every reader of text
asks `find_other_format` with the name of what it reads; all else is asked once a fault is found.
Nothing here decides whether data are good.
"""

import re
import unicodedata
from collections.abc import Callable

Diagnosis = tuple[str, str]
"""What it is, and what to do."""

_IUPAC = b"ACGTNRYSWKMBDHVacgtnryswkmbdhv"
_PROTEIN_ONLY = b"EFILPQZJOefilpqzjo"
_DNA_FASTA = "give a DNA FASTA file"
_OWN = ""  # nothing better to say than to give the right kind of file
_TWO_BIT = (b"\x43\x27\x41\x1a", b"\x1a\x41\x27\x43")
BIGWIG = (b"\x26\xfc\x8f\x88", b"\x88\x8f\xfc\x26")
BIGBED = (b"\xeb\xf2\x89\x87", b"\x87\x89\xf2\xeb")

_Begins = bytes | tuple[bytes, ...]
_BINARY: tuple[tuple[_Begins, str, str], ...] = (
    ((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"), "UTF-32 text", "save it as UTF-8 or ASCII"),
    ((b"\xff\xfe", b"\xfe\xff"), "UTF-16 text", "convert the encoding: iconv -f UTF-16 -t UTF-8"),
    (b"\x1f\x8b", "gzip data inside gzip data", "decompress it once: gunzip"),
    (b"BZh", "bzip2 data", "decompress it: bunzip2"),
    (b"\xfd7zXZ\x00", "xz data", "decompress it: unxz"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "decompress it: zstd -d"),
    (b"\x04\x22\x4d\x18", "lz4 data", "decompress it: lz4 -d"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it"),
    (b"Rar!", "a RAR archive", "unpack it"),
    (b"BAM\x01", "BAM (binary alignments)", "extract the sequence: samtools fasta"),
    (b"CRAM", "CRAM (binary alignments)", "extract the sequence: samtools fasta"),
    (b"BCF", "BCF (binary variants)", "convert it: bcftools view"),
    (_TWO_BIT, "2bit (binary sequence)", "convert it: twoBitToFa"),
    (b"\x3a\x3d\xe9\x6b", "nib (binary sequence)", "convert it: nibFrag"),
    (b"TBI\x01", "an index of tabix (.tbi)", "give the file that it is of"),
    (b"CSI\x01", "an index of htslib (.csi)", "give the file that it is of"),
    (b"BAI\x01", "an index of a BAM (.bai)", "give the file that it is of"),
    (b"MMI\x02", "an index of minimap2", "give the FASTA itself"),
    (BIGWIG, "bigWig (values)", "convert it: bigWigToBedGraph"),
    (BIGBED, "bigBed (intervals)", "convert it: bigBedToBed"),
    (b"ABIF", "a trace of a sequencer (ABI)", "export its sequence as FASTA"),
    (b"\t\x00\x00\x00\x0eSnapGene", "a file of SnapGene", "export it as GenBank"),
    (b"l\x1b\x01", "genotypes of PLINK (binary data)", "convert it: plink --recode vcf"),
    (b"NCBI.sra", "an archive of SRA (reads)", "convert it: fasterq-dump"),
    (b"ARROW1", "Arrow (Feather)", "save it as Parquet or CSV"),
    (b"Obj\x01", "Avro (binary data)", "save it as Parquet or CSV"),
    (b"ORC", "ORC (binary data)", "save it as Parquet or CSV"),
    ((b"RDX", b"RDA"), "data of R (.rda)", "write it as a table: write.csv"),
    (b"X\n\x00\x00\x00", "data of R (.rds)", "write it as a table: write.csv"),
    (b"MATLAB 5", "data of MATLAB", _OWN),
    (b"CDF\x01", "netCDF (binary data)", _OWN),
    (b"GGUF", "weights as GGUF", "give weights of torch as safetensors"),
    (b"\x00\x05\x16\x07", "what a Mac keeps beside a file (._NAME)", "give the file itself"),
    (b"\x89HDF", "HDF5 (binary data)", _OWN),
    (b"\x93NUMPY", "a NumPy array (binary data)", _OWN),
    (b"PAR1", "Parquet (binary data)", _OWN),
    (b"SQLite format 3", "an SQLite database (binary data)", _OWN),
    (b"%PDF", "a PDF document", _OWN),
    (b"\x89PNG", "a PNG image", _OWN),
    (b"\xff\xd8\xff", "a JPEG image", _OWN),
    (b"GIF8", "a GIF image", _OWN),
    (b"MZ\x90", "a program of Windows (binary data)", _OWN),
    (b"\x7fELF", "a program (binary data)", _OWN),
    (b"\xd0\xcf\x11\xe0", "an old Office document (binary data)", _OWN),
)
_ZIPPED: tuple[tuple[bytes, str, str], ...] = (
    (b"ncbi_dataset/", "a zip of NCBI datasets", "unzip it: ncbi_dataset/data/ACCESSION/*.fna"),
    (b"xl/", "a workbook of Excel (.xlsx)", "save it as CSV"),
    (b"[Content_Types].xml", "an Office file (.xlsx or .docx)", "save it as CSV or plain text"),
    (b"mimetypeapplication/vnd.oasis", "an OpenDocument file (.ods)", "save it as CSV"),
    (b"/data.pkl", "a checkpoint of PyTorch", "give it as the model"),
    (b".npy", "arrays of NumPy (.npz)", _OWN),
)
"""What stands in the head of an archive, and what it then is."""
_PAGE = "HTML or XML (a web page saved in place of the file?)", "download the file again"


def find_stand_in(head: bytes) -> Diagnosis | None:
    """What stands in the place of a large file that was not downloaded, and how to get it."""
    if head.startswith((b"version https://git-lfs", b"version https://hawser")):
        return "a Git LFS pointer: the file itself was not downloaded", "git lfs pull"
    if head.lstrip(b"./").startswith((b"annex/objects/", b"git/annex/objects/")):
        return "a git-annex pointer: the file itself was not downloaded", "git annex get FILE"
    return None


def find_page(head: bytes) -> Diagnosis | None:
    """Whether `head` begins a web page: a server's answer that was saved in place of a file."""
    start = re.sub(rb"\A(\s|\xef\xbb\xbf|<!--.*?-->)+", b"", head, flags=re.DOTALL)[:256].lower()
    if start.startswith(b"<?xml"):  # so do XML's own formats
        return _PAGE if b"<html" in start or b"<!doctype html" in start else None
    return _PAGE if start.startswith((b"<!doctype html", b"<html")) else None


def find_binary_format(head: bytes) -> Diagnosis | None:
    """What a file that starts with `head` is, if it is no UTF-8 text; the remedy may be empty."""
    if known := find_stand_in(head):  # of a stream, which is not looked at beforehand
        return known
    for magic, what, fix in _BINARY:
        if head.startswith(magic):
            return what, fix
    if head.startswith(b"PK\x03\x04"):
        zips = ((what, fix) for mark, what, fix in _ZIPPED if mark in head)
        return next(zips, ("a ZIP archive", "unpack it and give the file inside"))
    if is_pickle(head):
        return "a pickle of Python, which may run code: it is not read", "save the data as a table"
    if head[6:10] == b'\0\0{"':
        return "weights as safetensors", "give it as the model"
    if head[257:262] == b"ustar":
        return "a tar archive", "unpack it and give the file inside"
    nuls = head[:4096].count(b"\x00")
    if nuls and not head[:4096].strip(b"\x00"):
        return "NUL bytes only (a file cut off by a crash?)", "copy or download the file again"
    if nuls * 3 > len(head[:4096]):
        return "UTF-16 text or binary data (NUL bytes)", "save it as UTF-8 or ASCII"
    return None


_PICKLE = re.compile(
    rb"\x80[\x02-\x05]|\(?[dl]p\d+\n|\(i?c?(dp|lp)\d|"
    rb"c(__builtin__|builtins|copy_?reg|collections|os|posix|nt|subprocess|numpy[\w.]*|torch[\w.]*)\n"
)


def is_pickle(head: bytes) -> bool:
    """Whether a file that starts with `head` is a bare pickle, binary or as text."""
    return _PICKLE.match(head) is not None


def guess_format(head: bytes) -> Diagnosis | None:
    """What a file that starts with `head` probably is: no FASTA, and told by no word of its own."""
    line = head.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0].rstrip(b"\r ")
    fields = line.split(b"\t")
    numbers = [i for i, one in enumerate(fields) if one.isdigit()]
    table = "write each sequence under a header line: >name"
    cases = (
        (b"\x00" in head, "binary data (NUL bytes)", _OWN),
        (line[:1] == b"@", "FASTQ (reads), not FASTA", "convert it: seqtk seq -A"),
        (line[:1] == b";", "a ';' comment line (Pearson's old FASTA) before the first header",
         "remove such lines"),
        (line[:1] == b"#", "a '#' comment line before the first header",
         "remove the comment lines"),
        (len(fields) == 5 and numbers == [1, 2, 3, 4], "a FASTA index (.fai), not the FASTA",
         "give the FASTA itself"),
        (len(fields) in (8, 9) and {3, 4} <= {*numbers}, "GTF or GFF (annotation), not FASTA",
         "give the FASTA itself"),
        ({1, 2} <= {*numbers}, "BED (intervals), not FASTA", "name it .bed"),
        (len(fields) > 1, "a table (TSV)", table),
        (b"," in line, "a table (CSV)", table),
        (line and not line.translate(None, _IUPAC + b"Uu*-"), "sequence without a header",
         "put a line '>name' above it"),
    )  # fmt: skip
    return next(((what, fix) for found, what, fix in cases if found), None)


def describe_letter(line: bytes, at: int) -> Diagnosis:
    """What the byte at `at` of a sequence line is, and the remedy. `line` has no line end."""
    byte, bare = line[at : at + 1], line.strip(b" \t")
    letter, first = byte.decode("latin-1"), not line[:at].strip()
    protein = next((chr(c) for c in line if c in _PROTEIN_ONLY), "")
    cases: tuple[tuple[object, str, str], ...] = (
        (byte == b"\x00", "NUL byte in the sequence (binary data, or a file cut off by a crash)",
         "copy or download the file again"),
        (byte == b"\r", "carriage return without a line feed (classic Mac or mixed line ends)",
         "convert the line ends (tr '\\r' '\\n', or mac2unix)"),
        (byte in b" \t" and first and bare.startswith(b">"),
         "a header indented by a blank: '>' must be the first character of its line",
         "remove the blank"),
        (byte in b" \t" and first and bare[:1].isdigit(),
         "a numbered sequence line (GenBank style: blanks and digits)",
         "convert the file to FASTA"),
        (byte in b" \t", f"{'blank' if byte == b' ' else 'tab'} (whitespace) inside the sequence",
         "remove blanks and tabs"),
        (byte == b">", "'>' inside a line (two files joined without a line end?)",
         "start the header on a line of its own"),
        (byte in b";#" and first, f"a comment line ('{letter}')", "remove comment lines"),
        (byte in b"@+" and first,
         f"unexpected character '{letter}' at the start of a line (FASTQ?)",
         "give FASTA, not FASTQ"),
        (line[at : at + 3] == b"\xef\xbb\xbf",
         "a byte order mark (BOM) inside the file (files joined?)", "remove it"),
        (byte[0] >= 0x80, f"non-ASCII character {_shown(line[at:])}",
         "remove it, or save the file as plain ASCII"),
        (byte[0] < 0x20 or byte[0] == 0x7F, f"control character {_shown(line[at:])}", "remove it"),
        (byte.isdigit(), f"digit '{letter}' in the sequence (numbered lines?)",
         "remove line numbers and positions"),
        (protein, f"'{protein}' is not a DNA letter: this looks like protein, not DNA", _DNA_FASTA),
        (byte in b"Uu", f"'{letter}' is RNA, not DNA", "convert U to T"),
        (byte in b"Xx", f"'{letter}' is not an IUPAC DNA letter (a masked base, or protein)",
         "write unknown bases as N"),
        (byte in b"-.~", f"gap character '{letter}' (an alignment?)", "remove the gaps"),
        (byte == b"*", "'*' is not a DNA letter (a stop codon: protein?)", _DNA_FASTA),
        (True, f"invalid character {_shown(line[at:])} in the sequence",
         "give A, C, G, T, N or IUPAC codes"),
    )  # fmt: skip
    return next((what, fix) for found, what, fix in cases if found)


def _shown(tail: bytes) -> str:
    """The first character of `tail` for a message, with its code point; else its first byte."""
    for length in range(1, 5):
        try:
            character = tail[:length].decode()
        except UnicodeDecodeError:
            continue
        if ord(character) < 0x20 or ord(character) == 0x7F:
            return f"0x{ord(character):02X}"
        if ord(character) < 0x80:
            return f"'{character}'"
        name = f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
        return f"'{character}' ({name})"
    return f"byte 0x{tail[0]:02X}"


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
