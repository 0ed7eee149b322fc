"""Shapes of small files, by format: what programs write, and what a standard allows or forbids.

Each is bytes of our own; a name says what is odd about it. `compare_readers.py` reads each by the
format's reference reader and by ours.
"""

import gzip
from collections.abc import Callable

import pysam

Shapes = dict[str, bytes]

GENOME = ("ACGTTGCATGCCGATAGGCTAACGTTGACCATTGCAAGGTCCATGATCGGTACCTTAGCAAT" * 5)[:300]
"""The contig chr1 of the files of variants and intervals."""

VCF_HEAD = "##fileformat=VCFv4.2\n##contig=<ID=chr1,length=300>\n"
VCF_NAMES = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
VCF_ROWS = "chr1\t3\t.\tG\tA\t.\t.\t.\nchr1\t5\trs1\tT\tTA\t30\tPASS\tDP=3\n"


def zip_blocks(data: bytes) -> bytes:
    """BGZF, as bgzip writes it."""
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".gz") as file:
        with pysam.BGZFile(file.name, "wb") as out:
            out.write(data)
        with open(file.name, "rb") as made:
            return made.read()


def wrap(shapes: Shapes, base: bytes) -> Shapes:
    """The shapes, and what becomes of any text file on its way."""
    more: dict[str, Callable[[bytes], bytes]] = {
        "as it is": lambda x: x,
        "CRLF": lambda x: x.replace(b"\n", b"\r\n"),
        "no newline at the end": lambda x: x.rstrip(b"\n"),
        "blank lines at the end": lambda x: x + b"\n\n",
        "blank line at the start": lambda x: b"\n" + x,
        "BOM": lambda x: b"\xef\xbb\xbf" + x,
        "UTF-16": lambda x: x.decode().encode("utf-16"),
        "gzip": gzip.compress,
        "two gzip members": lambda x: gzip.compress(x[:40]) + gzip.compress(x[40:]),
        "BGZF": zip_blocks,
        "BGZF without its end block": lambda x: zip_blocks(x)[:-28],
        "gzip, zeros behind": lambda x: gzip.compress(x) + b"\0" * 512,
        "old Mac line ends": lambda x: x.replace(b"\n", b"\r"),
        "NUL bytes at the end": lambda x: x + b"\0" * 16,
        "Ctrl-Z at the end": lambda x: x + b"\x1a",
        "empty": lambda x: b"",
        "cut in the middle": lambda x: x[: len(x) * 2 // 3],
    }
    return {**{name: change(base) for name, change in more.items()}, **shapes}


def list_vcf() -> Shapes:
    """VCF as text."""

    def make(head: str = VCF_HEAD, names: str = VCF_NAMES, rows: str = VCF_ROWS) -> bytes:
        return (head + names + rows).encode()

    def row(*fields: str) -> bytes:
        default = ["chr1", "3", ".", "G", "A", ".", ".", "."]
        for i, value in enumerate(fields):
            default[i] = value or default[i]
        return make(rows="\t".join(default) + "\n" + VCF_ROWS)

    named = VCF_NAMES.rstrip("\n")
    with_samples = named + "\tFORMAT\tS1\tS2\n"
    gt = '##FORMAT=<ID=GT,Number=1,Type=String,Description="">\n'
    calls = "chr1\t3\t.\tG\tA\t.\t.\t.\tGT\t0/1\t1|1\n"
    changes = {
        "tab behind #CHROM": make(names=named + "\t\n"),
        "two tabs behind #CHROM": make(names=named + "\t\t\n"),
        "blanks behind #CHROM": make(names=named + "  \n"),
        "tab behind rows": make(rows=VCF_ROWS.replace("\n", "\t\n")),
        "tab behind all": make(names=named + "\t\n", rows=VCF_ROWS.replace("\n", "\t\n")),
        "blanks behind rows": make(rows=VCF_ROWS.replace("\n", " \n")),
        "blank line between rows": make(rows=VCF_ROWS.replace("\nchr1", "\n\nchr1")),
        "blank line in the header": make(head=VCF_HEAD + "\n"),
        "blank lines of tabs": make(rows=VCF_ROWS + "\t\t\n"),
        "no ##fileformat": make(head="##contig=<ID=chr1,length=300>\n"),
        "##fileformat second": make(head="##source=x\n##fileformat=VCFv4.2\n"),
        "no ## lines at all": make(head=""),
        "only ##fileformat": make(head="##fileformat=VCFv4.2\n"),
        "VCFv4.5": make(head="##fileformat=VCFv4.5\n"),
        "VCFv3.3": make(head="##fileformat=VCFv3.3\n"),
        "lower-case fileformat": make(head="##fileFormat=VCFv4.2\n"),
        "comment of one # in the header": make(head=VCF_HEAD + "# by hand\n"),
        "comment of one # between rows": make(rows=VCF_ROWS + "# by hand\n" + VCF_ROWS),
        "header again between rows": make(rows=VCF_ROWS + VCF_HEAD + VCF_NAMES + VCF_ROWS),
        "names in lower case": make(names=VCF_NAMES.lower()),
        "names separated by blanks": make(names=VCF_NAMES.replace("\t", " ")),
        "CHROM without #": make(names=VCF_NAMES[1:]),
        "rows separated by blanks": make(rows=VCF_ROWS.replace("\t", " ")),
        "five columns": make(
            names="#CHROM\tPOS\tID\tREF\tALT\n", rows="chr1\t3\t.\tG\tA\nchr1\t5\t.\tT\tC\n"
        ),
        "seven columns": make(
            names=named.removesuffix("\tINFO") + "\n", rows="chr1\t3\t.\tG\tA\t.\t.\n"
        ),
        "rows of seven columns": make(rows="chr1\t3\t.\tG\tA\t.\t.\n"),
        "rows of five columns": make(rows="chr1\t3\t.\tG\tA\n"),
        "FORMAT without samples": make(
            names=named + "\tFORMAT\n", rows=calls.rsplit("\t", 2)[0] + "\n"
        ),
        "FORMAT, 8 columns in rows": make(names=named + "\tFORMAT\n"),
        "samples": make(head=VCF_HEAD + gt, names=with_samples, rows=calls),
        "tab behind samples": make(
            head=VCF_HEAD + gt, names=with_samples[:-1] + "\t\n", rows=calls
        ),
        "a sample's name twice": make(
            head=VCF_HEAD + gt, names=with_samples.replace("S2", "S1"), rows=calls
        ),
        "a sample's name with blanks": make(
            head=VCF_HEAD + gt, names=with_samples.replace("S2", "S 2"), rows=calls
        ),
        "a sample missing in a row": make(
            head=VCF_HEAD + gt, names=with_samples, rows=calls.replace("\t1|1", "")
        ),
        "a sample too many in a row": make(
            head=VCF_HEAD + gt, names=with_samples, rows=calls.replace("\n", "\t0/0\n")
        ),
        "no rows": make(rows=""),
        "no line of names": (VCF_HEAD + VCF_ROWS).encode(),
        "UTF-8 in INFO": row("", "", "", "", "", "", "", "NAME=é"),
        "Latin-1 in INFO": row("", "", "", "", "", "", "", "NAME=x").replace(b"=x", b"=\xe9"),
        "Latin-1 in the header": make(head=VCF_HEAD + "##x=e\n").replace(b"x=e", b"x=\xe9"),
        "control character in INFO": row("", "", "", "", "", "", "", "NAME=\x01"),
        "blanks in INFO": row("", "", "", "", "", "", "", "NAME=a b"),
        "quotes in INFO": row("", "", "", "", "", "", "", 'NAME="a;b"'),
        "INFO empty": make(rows="chr1\t3\t.\tG\tA\t.\t.\t\n"),
        "QUAL empty": make(rows="chr1\t3\t.\tG\tA\t\t.\t.\n"),
        "ID empty": make(rows="chr1\t3\t\tG\tA\t.\t.\t.\n"),
        "ALT empty": make(rows="chr1\t3\t.\tG\t\t.\t.\t.\n"),
        "REF empty": make(rows="chr1\t3\t.\t\tA\t.\t.\t.\n"),
        "QUAL is a word": row("", "", "", "", "", "high"),
        "FILTER not in the header": row("", "", "", "", "", "", "q10"),
        "contig not in the header": row("chr2"),
        "contig with a blank": row("chr 1"),
        "contig with a colon": row("HLA-A*01:01"),
        "contig in <>": row("<ctg1>"),
        "contig in quotes": row('"chr1"'),
        "POS 0": row("", "0"),
        "POS -1": row("", "-1"),
        "POS with a plus": row("", "+3"),
        "POS with zeros before": row("", "0003"),
        "POS 3.0": row("", "3.0"),
        "POS 1e2": row("", "1e2"),
        "POS with blanks": row("", " 3"),
        "POS 1,000": row("", "1,000"),
        "POS is a word": row("", "x"),
        "POS beyond 2^31": row("", "3000000000"),
        "ID with commas": row("", "", "rs1,rs2"),
        "ID with a blank": row("", "", "rs 1"),
        "lower-case REF": row("", "", "", "g"),
        "IUPAC REF": row("", "", "", "R"),
        "REF -": row("", "", "", "-"),
        "REF .": row("", "", "", "."),
        "REF with a digit": row("", "", "", "G1"),
        "ALT .": row("", "", "", "", "."),
        "ALT -": row("", "", "", "", "-"),
        "ALT *": row("", "", "", "", "*"),
        "ALT <DEL>": row("", "", "", "", "<DEL>"),
        "ALT <*>": row("", "", "", "", "<*>"),
        "ALT a breakend": row("", "", "", "", "G]chr1:9]"),
        "ALT a single breakend": row("", "", "", "", "G."),
        "ALT IUPAC": row("", "", "", "", "R"),
        "ALT with a blank": row("", "", "", "", "A, C"),
        "ALT A,": row("", "", "", "", "A,"),
        "ALT twice": row("", "", "", "", "A,A"),
        "ALT A,.": row("", "", "", "", "A,."),
        "ALT A/C": row("", "", "", "", "A/C"),
        "ALT 0": row("", "", "", "", "0"),
        "rows out of order": make(rows="".join(reversed(VCF_ROWS.splitlines(True)))),
        "a row twice": make(rows=VCF_ROWS * 2),
        "quoted rows": make(rows='"chr1"\t"3"\t"."\t"G"\t"A"\t"."\t"."\t"."\n'),
        "meta line without =": make(head=VCF_HEAD + "##reference\n"),
        "meta line not closed": make(head=VCF_HEAD + "##INFO=<ID=DP,Number=1\n"),
        "meta line with blanks at its end": make(head=VCF_HEAD + "##source=x  \n"),
        "Number missing": make(head=VCF_HEAD + '##INFO=<ID=DP,Type=Integer,Description="">\n'),
    }
    return wrap(changes, make())


def list_fasta() -> Shapes:
    """FASTA."""
    base = ">a first\nACGTACGTAC\nGGTT\n>b\nTTGACA\n"
    changes = {
        "lower case": base.lower(), "one line each": ">a\nACGTACGTACGGTT\n>b\nTTGACA\n",
        "lines of several lengths": ">a\nACG\nTACGTAC\nGG\nTT\n", "N": ">a\nACGNNNNTT\n",
        "IUPAC": ">a\nACGTRYKMACGTACGTACGTACGT\n", "RNA": ">a\nACGUACGU\n", "gaps": ">a\nAC--GT\n",
        "stop": ">a\nACGT*\n", "protein": ">a\nMKVLEFAP\n", "X": ">a\nACGXXACGT\n",
        "digits": ">a\n1 ACGT\n", "blanks inside a line": ">a\nACGTACGTAC GGTTACGTAC\n",
        "tabs inside a line": ">a\nACGTACGTAC\tGGTTACGTAC\n",
        "blanks at line ends": ">a\nACGT  \nGGTT\n",
        "blank lines between": ">a\nACGT\n\n>b\nTTG\n",
        "blank line inside a record": ">a\nACGT\n\nTTG\n", "blank behind >": "> a\nACGT\n",
        "no name": ">\nACGT\n", "a name twice": ">a\nACGT\n>a\nGGTT\n",
        "empty record": ">a\n>b\nACGT\n", "empty last record": ">a\nACGT\n>b\n",
        "; comments": ";x\n>a\nACGT\n", "# comment": "# x\n>a\nACGT\n",
        "; comment inside": ">a\n;x\nACGT\n", "tab in a header": ">a\tx\nACGT\n",
        "bars in a header": ">gi|1|ref|NC_1.1|x\nACGT\n", "UTF-8 in a description": ">a é\nACGT\n",
        "UTF-8 in a name": ">é\nACGT\n", "> in a description": ">a >b\nACGT\n",
        "quotes": '>"a"\nACGT\n', "no header": "ACGT\n", "text before": "hello\n>a\nACGT\n",
        "Ctrl-A headers": ">a x\x01b y\nACGT\n", "FASTQ": "@a\nACGT\n+\nIIII\n",
        "long header": ">a " + "x" * 5000 + "\nACGT\n", "dots": ">a\nAC..GT\n",
        "indented sequence": ">a\n  ACGT\n", "comma in a name": ">a,b\nACGT\n",
        "date in a name": ">1-Mar\nACGT\n", "vertical tab": ">a\nACGT\x0b\n",
        "form feed": ">a\nACGT\x0c\n", "question mark": ">a\nAC?GT\n",
        "windows quote in a description": ">a x\x92s\nACGT\n",
    }  # fmt: skip
    said = {
        name: text.encode("latin-1" if "windows" in name else "utf-8")
        for name, text in changes.items()
    }
    return wrap(said, base.encode())


def list_tables() -> Shapes:
    """CSV and TSV of sequences with labels; read as CSV by name."""
    rows = [("s1", "ACGTACGTAC", "0"), ("s2", "GGTTACGTCA", "1"), ("s3", "TTGACAGGTA", "1")]

    def make(sep: str = ",", end: str = "\n", quote: str = "") -> str:
        lines = [("name", "sequence", "label"), *rows]
        return "".join(sep.join(f"{quote}{one}{quote}" for one in row) + end for row in lines)

    base = make()
    long = "name,sequence,label\n" + "".join(f'{n},"{s[:5]}\n{s[5:]}",{x}\n' for n, s, x in rows)
    changes = {
        "quoted": make(quote='"'), "tabs": make("\t"), "semicolons": make(";"),
        "blanks": make(" "), "bars": make("|"), "comma and blank": make(", "),
        "single quotes": make(quote="'"), "line break in quotes": long,
        "CRLF in quotes": long.replace("\n", "\r\n"),
        "blank in quotes": base.replace("ACGTACGTAC", '"ACGTA CGTAC"'),
        "comma in quotes": base.replace("s1", '"s,1"'),
        "quote in quotes": base.replace("s1", '"s""1"'),
        "quote in the middle": base.replace("s1", 's"1'),
        "quote not closed": base.replace("s1", '"s1'),
        "backslash quotes": base.replace("s1", '"s\\"1"'),
        "blank line between": base.replace("\ns2", "\n\ns2"),
        "blanks around": base.replace(",", " , "),
        "index column": "".join(
            f"{'' if i == 0 else i - 1},{line}\n" for i, line in enumerate(base.splitlines())
        ),
        "R's names of rows": "name,sequence,label\n"
        + "".join(f"{i},{','.join(row)}\n" for i, row in enumerate(rows, 1)),
        "comma at line ends": base.replace("\n", ",\n"),
        "comma at rows' ends": base.replace("0\n", "0,\n").replace("1\n", "1,\n"),
        "a field missing": base.replace("s2,GGTTACGTCA,1", "s2,GGTTACGTCA"),
        "a field too many": base.replace("s2,GGTTACGTCA,1", "s2,GGTTACGTCA,1,x"),
        "rows of empty fields": base + ",,\n", "comment above": "# x\n" + base,
        "comment between": base + "# x\n", "comment below": base + "# the end\n",
        "names twice": base.replace("name,", "label,"),
        "names in capitals": base.replace("name,sequence,label", "NAME,SEQUENCE,LABEL"),
        "names with blanks": base.replace("sequence", " sequence "),
        "empty label": base.replace("TTGACAGGTA,1", "TTGACAGGTA,"),
        "label 1.0": base.replace(",1", ",1.0").replace(",0", ",0.0"),
        "label TRUE": base.replace(",1", ",TRUE").replace(",0", ",FALSE"),
        "only a header": "name,sequence,label\n", "sep=": "sep=,\n" + base,
        "header twice": base + base, "UTF-8 names": base.replace("s1", "é1"),
        "Latin-1 names": base.replace("s1", "é1"), "tab in a CSV cell": base.replace("s1", "s\t1"),
        "lower case": base.replace("ACGT", "acgt"),
        "no-break blank": base.replace("s1,", "s1\xa0,"),
        "NUL in a cell": base.replace("s1", "s\x001"), "row without commas": base + "total\n",
        "rows padded": base.replace("s2", "   s2"),
        "wide header": base.replace("label", "label,more"),
        "sequence of 200,000": base.replace("ACGTACGTAC", "ACGTACGTAC" * 20000),
    }  # fmt: skip
    said = {
        name: text.encode("latin-1" if name[:7] == "Latin-1" else "utf-8")
        for name, text in changes.items()
    }
    return wrap(said, base.encode())


def list_variant_tables() -> Shapes:
    """CSV and TSV of variants."""
    base = "chrom,pos,ref,alt\nchr1,3,G,A\nchr1,5,T,TA\nchr1,9,T,C\n"
    names = base.partition("\n")[0]

    def head(text: str) -> str:
        return base.replace(names, text)

    changes = {
        "insertion with -": base.replace("T,TA", "-,A"),
        "deletion with -": base.replace("T,TA", "TG,-"),
        "insertion with an empty REF": base.replace("T,TA", ",A"),
        "deletion with an empty ALT": base.replace("T,TA", "TG,"),
        "deletion with .": base.replace("T,TA", "TG,."),
        "names of VEP": head("Chromosome,Position,Reference,Alternate"),
        "names of ANNOVAR": "Chr,Start,End,Ref,Alt\nchr1,3,3,G,A\nchr1,5,6,TG,-\nchr1,7,7,-,CC\n",
        "names of MAF": (
            "Chromosome,Start_Position,End_Position,Reference_Allele,Tumor_Seq_Allele2\n"
            "chr1,3,3,G,A\nchr1,5,6,TG,-\n"
        ),
        "names of gnomAD": head("CHROM,POS,REF,ALT"),
        "names of dbNSFP": head("#chr,pos(1-based),ref,alt"),
        "names of UK Biobank": head("CHROM,GENPOS,ALLELE0,ALLELE1"),
        "names of PLINK": head("#CHROM,POS,REF,ALT"),
        "names of pvar": ("##x\n#CHROM\tPOS\tID\tREF\tALT\nchr1\t3\t.\tG\tA\n"),
        "names of HGVS": "variant\nchr1-3-G-A\n",
        "names of sumstats": head("chromosome,base_pair_location,other_allele,effect_allele"),
        "quotes": '"chrom","pos","ref","alt"\n"chr1","3","G","A"\n',
        "tabs": base.replace(",", "\t"), "semicolons": base.replace(",", ";"),
        "blanks": base.replace(",", " "), "R's quotes": base.replace("chr1", '"chr1"'),
        "lower-case bases": base.lower(), "POS 3.0": base.replace(",3,", ",3.0,"),
        "POS 1e+05": base.replace(",3,", ",1e+05,"),
        "blank behind ALT": base.replace("A\n", "A \n"),
        "several ALT": base.replace("G,A", 'G,"A,C"'), "ALT A/C": base.replace("G,A", "G,A/C"),
        "comment between": base + "# x\n",
        "blank line between": base.replace("\nchr1,9", "\n\nchr1,9"),
        "extra columns": "".join(
            line + (",gene\n" if i == 0 else ",BRCA1\n") for i, line in enumerate(base.splitlines())
        ),
        "empty line of commas": base + ",,,\n", "POS empty": base.replace(",3,", ",,"),
        "0-based names": head("chrom,start,ref,alt"),
    }  # fmt: skip
    return wrap({name: text.encode() for name, text in changes.items()}, base.encode())


def list_bed(value: bool = False) -> Shapes:
    """BED, or with a `value` bedGraph."""
    fourth = ("0.5", "-1", "2") if value else ("a", "b", "c")
    base = "".join(f"chr1\t{i * 20}\t{i * 20 + 9}\t{x}\n" for i, x in enumerate(fourth))
    changes = {
        "blanks": base.replace("\t", " "), "several blanks": base.replace("\t", "   "),
        "mixed tabs and blanks": base.replace("chr1\t", "chr1 "),
        "track line": "track type=bedGraph name=x\n" + base,
        "browser line": "browser position chr1:1-9\n" + base, "comment": "# x\n" + base,
        "comment between": base + "# x\n",
        "blank line between": base.replace("\nchr1\t20", "\n\nchr1\t20"),
        "tab at line ends": base.replace("\n", "\t\n"),
        "header": "chrom\tstart\tend\tname\n" + base,
        "# header": "#chrom\tstart\tend\tname\n" + base, "three columns": "chr1\t0\t9\n",
        "commas": base.replace("\t", ","), "start 1e2": base.replace("\t40\t", "\t4e1\t"),
        "start 40.0": base.replace("\t40\t", "\t40.0\t"),
        "end before start": base.replace("\t20\t29", "\t29\t20"),
        "empty interval": base.replace("\t20\t29", "\t20\t20"),
        "six columns": "chr1\t0\t9\ta\t0\t-\nchr1\t20\t29\tb\t1.5\t+\n",
        "strand ?": "chr1\t0\t9\ta\t0\t?\n", "score -": "chr1\t0\t9\ta\t-\t-\n",
        "several widths": base + "chr1\t60\t69\n",
        "name with blanks": base.replace("\ta\n", "\ta b\n") if not value else base,
        "out of order": "".join(reversed(base.splitlines(True))),
        "overlapping": base + "chr1\t0\t5\t9\n", "twice": base * 2,
        "BED12": "chr1\t0\t40\ta\t0\t+\t0\t40\t0\t2\t10,10,\t0,30,\n",
        "quotes": base.replace("chr1", '"chr1"'),
        "zeros before": base.replace("\t20\t", "\t020\t"), "value nan": base.replace("0.5", "nan"),
        "value 1e-3": base.replace("0.5", "1e-3"), "value ,": base.replace("0.5", "0,5"),
    }  # fmt: skip
    return wrap({name: text.encode() for name, text in changes.items()}, base.encode())


GENBANK = """LOCUS       AB000001                  60 bp    DNA     linear   BCT 01-JAN-2000
DEFINITION  made here.
ACCESSION   AB000001
VERSION     AB000001.1
KEYWORDS    .
SOURCE      none
  ORGANISM  none
            .
FEATURES             Location/Qualifiers
     source          1..60
     gene            10..30
                     /gene="abc"
     CDS             10..30
                     /gene="abc"
ORIGIN
        1 acgttgcatg ccgataggct aacgttgacc attgcaaggt ccatgatcgg taccttagca
//
"""


def list_genbank() -> Shapes:
    """GenBank."""
    base = GENBANK
    changes = {
        "two records": base + base.replace("AB000001", "AB000002"),
        "lines of a release above": "GBBCT1.SEQ  Genetic Sequence Data Bank\n\n  1 loci\n\n" + base,
        "no //": base.removesuffix("//\n"), "length too long": base.replace(" 60 bp", " 61 bp"),
        "length too short": base.replace(" 60 bp", " 59 bp"),
        "no VERSION": base.replace("VERSION     AB000001.1\n", ""),
        "no ACCESSION": base.replace("ACCESSION   AB000001\n", ""),
        "no ORIGIN": base.partition("ORIGIN")[0] + "//\n",
        "CONTIG": base.partition("ORIGIN")[0] + "CONTIG      join(X:1..9)\n//\n",
        "capitals": base.replace("acgttgcatg", "ACGTTGCATG"),
        "circular": base.replace("linear  ", "circular"),
        "LOCUS squeezed": base.replace(
            "LOCUS       AB000001                  60 bp    DNA     linear   BCT 01-JAN-2000",
            "LOCUS AB000001 60 bp DNA linear BCT 01-JAN-2000",
        ),
        "LOCUS without a date": base.replace(" 01-JAN-2000", ""),
        "LOCUS with a long name": base.replace(
            "AB000001                  60", "NODE_1_length_60_cov_12.345678 60"
        ),
        "no features": base.partition("FEATURES")[0] + "ORIGIN" + base.partition("ORIGIN")[2],
        "bad location": base.replace("gene            10..30", "gene            10...30"),
        "location beyond": base.replace("gene            10..30", "gene            10..90"),
        "UTF-8 qualifier": base.replace("abc", "é"),
        "qualifier not closed": base.replace('"abc"', '"abc'),
        "tabs": base.replace("     gene  ", "\tgene  "),
        "U": base.replace("acgttgcatg", "acguugcaug"),
        "gap": base.replace("acgttgcatg", "acgtt-catg"),
        "ss-RNA": base.replace("DNA    ", "ss-RNA "), "rc": base.replace(" 60 bp", " 60 rc"),
        "aa": base.replace(" 60 bp    DNA ", " 60 aa        "),
        "ORIGIN not numbered": base.replace("        1 acg", "          acg"),
        "blank line between": base.replace("KEYWORDS", "\nKEYWORDS"), "two the same": base + base,
        "comments of SnapGene": base.replace(
            "KEYWORDS    .", "KEYWORDS    .\nCOMMENT     SnapGene"
        ),
    }  # fmt: skip
    return wrap({name: text.encode() for name, text in changes.items()}, base.encode())


FORMATS: dict[str, Callable[[], Shapes]] = {
    "VCF": list_vcf, "FASTA": list_fasta, "CSV": list_tables, "variants": list_variant_tables,
    "BED": list_bed, "bedGraph": lambda: list_bed(value=True), "GenBank": list_genbank,
}  # fmt: skip
