"""Broken files of every format: one line that says where, what, and what to do."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from genodiff.errors import DataError
from genodiff.io.alignments import read_alignments
from genodiff.io.annotation_rows import read_annotation
from genodiff.io.bed import read_bed
from genodiff.io.delimited import read_delimited
from genodiff.io.genes import read_genes
from genodiff.io.motifs import read_motifs
from genodiff.io.value_tracks import read_values
from genodiff.io.variant_source import open_variants
from tests.io.test_alignments import WRITTEN
from tests.io.test_bed import CONTIGS
from tests.io.test_motifs import BAD
from tests.io.test_places import GTF
from tests.io.test_variant_source import HEAD, NAMES, ROWS


def read_variants(path: Path) -> None:
    with open_variants(path) as source:
        list(source.records())


def read_rows(path: Path) -> None:
    list(read_annotation(path, {"1": 16, "chr2": 9}))


def spoil(name: str, old: str, new: str) -> str:
    assert old in WRITTEN[name]
    return WRITTEN[name].replace(old, new, 1)


PAF = WRITTEN["paf"].splitlines()[0].split("\t")
MAF = WRITTEN["maf"].splitlines()[2]
GENE_AND_EXON = "".join(GTF.splitlines(keepends=True)[:2])


class Broken(NamedTuple):
    """Texts, and a pattern of the line that each is answered with; what stands above and below."""

    ending: str
    read: Callable[[Path], Any]
    rows: list[tuple[str | bytes, str]]
    around: tuple[tuple[str, str], ...] = (("", ""),)


FORMATS = {
    "rows of BED": Broken(".bed", lambda path: read_bed(path, CONTIGS), [
        ("chr1", "1 column, fewer than 3"),
        ("chr1\t1", "2 columns, fewer than 3"),
        ("chr1,0,100", "commas, not tabs"),
        ("chr1;0;100", "semicolons, not tabs.*tr ';'"),
        (">chr1", "this is FASTA"),
        ("chr1\t-1\t100", "start '-1' is negative.*0-based"),
        ("chr1\t0\t-100", "end '-100' is negative"),
        ("chr1\tten\t100", "'ten' is not an integer"),
        ("chr1\t0\t1e3", "'1e3' is in scientific notation.*not an integer"),
        ("chr1\t0\t1.23457e+06", "may have lost digits.*scipen"),
        ("chr1\t0\t100.5", "'100.5' is not an integer"),
        ("chr1\t0\t1.000", "thousands separators"),
        ("chr1\t+1\t100", "not an integer"),
        ("chr1\t1_0\t100", "not an integer"),
        ("chr1\t\t100", "'' says that a value is missing"),
        ("chr1\t١\t100", "not an integer"),
        ('"chr1"\t0\t100', "contig's name.*quotation mark"),
        ("ch r1\t0\t100", "not the name of a contig"),
        ("1-Sep\t0\t100", "is a date, as spreadsheets make"),
        ("\t0\t100", "not the name of a contig"),
        ("chr1\t1,000\t2,000", "thousands separators"),
        ("chr1\t0\t99999999999999999999", "out of range"),
        ("chr1\t0\t9223372036854775808", "out of range"),
        ("chr1\t200\t100", "end 100 is before the start 200"),
        ("chr2\t4000\t5001", "past the end of chr2 .length 5000.; is the file 1-based"),
        ("chr2\t0\t5001", r"end 5001 is past the end of chr2 \(length 5000\); BED"),
        ("chrM\t600\t700", "start 600 and the end 700 are past the end of chrM"),
        ("chrM\t500\t501", "start 500 and the end 501 are past"),
        ("chrX\t0\t100", "unknown contig 'chrX'"),
        ("chr1\t0\t100\tn\t0\t?", r"'\?' is no strand"),
        ("chr1\t0\t100\tn\t0\t1", "'1' is no strand"),
        ("chr1\t0\t100\t3\t-", "column 5 is the score, and '-' is a strand"),
        ("chr1\t0\t100\t-", "column 4 is the name, and '-' is a strand"),
        ("chr1\t0\t100\tn\x00", "NUL byte"),
        ("chr1\t0\t100\tn\x1b[2J", "control character 0x1B"),
        (b"chr1\t0\t100\tn\xe9", "0xE9 is not UTF-8"),
    ], (("", ""), ("#c\ntrack x\n\n", "\nchr1\t0\t10\n"))),
    "BED": Broken(".bed", read_bed, [
        ("", "is empty: no interval"),
        ("\n#x\ntrack a\n", "no interval"),
        ("chr1\t5\t5\n", "no interval with any base .1 empty"),
        ("chr1\t0\t1\n".encode("utf-16")[:-1], "UTF-16.*cut short"),
        ("chr1\t0\t1\n".encode("utf-16-le"), "UTF-16"),
        ("\0" * 100, "NUL bytes only"),
        ("PK\x03\x04", "ZIP"),
        ("chr1\t0\t10\ttrain\nchr1\t20\t30\n", "line 2: has 3 columns where the .* have 4"),
        ("chrom\tstart\tend\nchr1\t0\t1\n", "line 1: the start 'start' .*column names with '#'"),
        ("chr1\tHAVANA\tgene\t11869\t14409\t.\t+\n", "not an integer"),
        (gzip.compress(b"chr1\t0\t1\n", mtime=0)[:-9], "truncated"),
    ]),
    "alignments": Broken(".txt", lambda path: list(read_alignments(path)), [
        (spoil("maf", MAF, MAF[:-1]), "line 3.*says that it has"),
        (spoil("maf", MAF, MAF + "-"), "line 4.*columns"),
        (spoil("maf", MAF, MAF.replace(" + ", " * ")), "line 3.*is no strand"),
        (spoil("maf", MAF, "z what"), "line 3.*is no line of MAF"),
        (spoil("chain", " 3000 + 200", " 300 + 200"), "line 1.*is not within chr1"),
        (WRITTEN["chain"][: WRITTEN["chain"].rindex("\t")], "chain"),
        (spoil("chain", "\t0\t", "\t1\t"), "line 1.*its blocks end at"),
        (spoil("paf", "cg:Z:", "xx:Z:"), "line 1.*neither cg nor cs"),
        (spoil("paf", "cg:Z:", "cg:Z:1M"), "line 1.*its gaps end at"),
        (spoil("paf", "cg:Z:", "cg:Z:?"), "line 1.*its CIGAR cannot be read"),
        (spoil("cs", "cs:Z:", "cs:Z:?"), "line 1.*its cs tag cannot be read"),
        ("\t".join([*PAF[:6], "300", *PAF[7:]]), "line 1.*is not within chr1"),
        ("\t".join(PAF[:9]) + "\n", "line 1.*9 columns"),
        (">a\nACGT\n", "line 1.*FASTA"),
        ("hello\n", "is no alignment"),
        ("##maf version=1\n", "holds no alignment"),
    ]),
    "tables": Broken(".csv", lambda path: list(read_delimited(path, ",").rows), [
        ("", "is empty: no header line"),
        ("<!DOCTYPE html>\n<p>\n", "line 1: not a table: this is HTML"),
        ("a,b\n1,2\na,b\n", "line 3: the line of column names stands again"),
        ("a,b\n1,2\n3\n", "line 3: 1 field, but the header has 2"),
        ("a,a\n1,2\n", "line 1: duplicate column name: 'a'"),
        ("a,b\n1,é\n".encode("latin-1"), r"line 2: byte 0xE9 is not UTF-8 .*Windows-1252.*iconv"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "UTF-16 text is cut short"),
        ("a,b\u200b\n1,2\n", "line 1: the column's name .*invisible"),
        ('a,b\n1,"2\n', "line 2: not CSV"),
    ]),
    "genes": Broken(".txt", lambda path: read_genes(path, {"chr1": 1000, "chr2": 200}), [
        ("chr1\tx\tgene\t9\t5\t.\t+\t.\tID=a\n", "line 1"),
        ("chr1\t1\t5\nchr1\tx\tgene\t0\t5\t.\t+\t.\tID=a\n", "line 2"),
        ("chr1\t1\t5\tx\t0\t+\t1\t5\t0\t2\t3\t0,2\n", "blocks"),
        ("chr1\t1\t9\tx\t0\t+\t1\t9\t0\t2\t3,2\t0,5\n", "blocks"),  # the last ends at 8
        ("chr1\t1\t5\tx\t0\t+\t1\t6\t0\t1\t4\t0\n", "blocks"),  # coding beyond the row
        ("chr1\tx\tgene\t1\t5\t.\t\u2212\t.\tID=a\n", "is no strand"),
        ("chr1\t1\t5\tx\nchr1\t1\t5\n", "line 2"),
        ("hello world\n", "neither"),
        ("#nothing\n", "no gene"),
    ]),
    "rows of annotation": Broken(".gtf", read_rows, [
        ('1\tx\texon\t0\t12\t.\t-\t0\tgene_id "g1";', "the first position is 1"),
        ('1\tx\texon\t10\t1e1\t.\t-\t0\tgene_id "g1";', "1. '1e1' is in scient.*write the digits"),
        ('1\tx\texon\t12\t10\t.\t-\t0\tgene_id "g1";', "the end 10 is before the start 12"),
        ('1\tx\texon\t10\t17\t.\t-\t0\tgene_id "g1";', "end 17 is past the end of 1 .length 16"),
        ('1\tx\texon\t10\t12\t.\tx\t0\tgene_id "g1";', "'x' is no strand"),
        ("1\tx\texon\t10\t12\t.\t-", "has 7 columns, not 9"),
        ('chr22\tx\texon\t10\t12\t.\t-\t0\tgene_id "g1";', "'chr22'.*did you mean 'chr2'"),
    ], ((GENE_AND_EXON, "\n"),)),
    "wiggle": Broken(".wig", lambda path: read_values(path, {"a": 10}), [
        ("fixedStep chrom=b start=1\n1\n", "line 1: unknown contig 'b'"),
        ("fixedStep chrom=a\n1\n", "line 1: .* is no start of a block"),
        ("fixedStep chrom=a start=10 span=2\n1\n", "line 2: base 11 is past the end"),
        ("variableStep chrom=a\n3 1\n3 2\n", r"line 3: base 2 of a \(0-based\) has two values"),
        ("variableStep chrom=a\n1\n", "line 2: '1' is no row of variableStep"),
    ]),
    "bedGraph": Broken(".bedGraph", lambda path: read_values(path, {"chr1": 30, "chr2": 12}), [
        ("chr1\t0\t31\t1\n", "line 1: the end 31 is past the end of chr1"),
        ("chr1\t0\t3\t1\nchr1\t2\t4\t2\n", "line 2: base 2 of chr1 .0-based. has two values"),
        ("chr1\t0\t3\tnan\n", "the value 'nan' is not a finite number"),
        ("chr1\t0\t3\tx\t0\t+\n", "has 6 columns; bedGraph has 4"),
        ("chr1\t0\t0\t1\n", "an empty track"),
        ("", "an empty track"),
    ]),
    "rows of variants": Broken(".csv", read_variants, [
        ('chr1,"1,000",G,A', "'1,000' has thousands separators"),
        ("chr1,1.23457e+06,G,A", "may have lost digits"),
        ("chr1,3.5,G,A", "'3.5' is not an integer"),
        ("chr1,NA,G,A", "'NA' says that a value is missing"),
        ("NA,3,G,A", "contig's name 'NA' says that a value is missing"),
        ("chr1,3,G,nan", "ALT 'nan' says that a value is missing"),
        ("chr1,3,G,", "ALT '' is no base"),
        ("chr1,3,-,-", "ALT '-' is no base"),
        ("'chr1,3,G,A", "has a quotation mark"),
        ("1-Sep,3,G,A", "is a date"),
        ("chr1,3,G,А", "a letter that is not ASCII"),
    ], (("chrom,pos,ref,alt\nchr1,3.0,G,A\n\n", "\n"),)),
    "tables of variants": Broken(".csv", read_variants, [
        ("chrom,start,ref,alt\nchr1,3,G,A\n", "starts without ends that say how they count"),
        ("chrom,start,end,ref,alt\nchr1,3,9,G,A\n", "line 2: start, end and the length of REF"),
        ("chrom,start,end,ref,alt\nchr1,3,3,G,A\nchr1,2,3,G,A\n", "line 3: start, end"),
        ("chrom,pos,ref,alt,ALT\nchr1,3,G,A,T\n", "line 1: .* and .* differ in capitals"),
        ("chrom,pos,ref,alt,Ref\nchr1,3,G,A,T\n", "line 1: .* and .* differ in capitals"),
    ]),
    "rows of VCF": Broken(".vcf", read_variants, [
        ("chr1\t3\t.\tG\tA\t.\t.", "7 columns, fewer than 8"),
        ("chr1 3 . G A . . .", "separate columns by tabs"),
        ("chr1\t3\t.\tG\tA\t.\t.\t.\t.", "9 columns, more than 8"),
        ("chr1\t-3\t.\tG\tA\t.\t.\t.", "negative"),
        ("chr1\t3.5\t.\tG\tA\t.\t.\t.", "not an integer"),
        ("chr1\t3\t.\t\tA\t.\t.\t.", "REF is empty"),
        ("chr1\t3\t.\t.\tA\t.\t.\t.", "REF '.' is not"),
        ("chr1\t3\t.\tG\t\t.\t.\t.", "ALT allele is empty"),
        ("chr1\t3\t.\tG\tA,\t.\t.\t.", "ALT allele is empty"),
        ("ch r1\t3\t.\tG\tA\t.\t.\t.", "not the name of a contig"),
        ("chr1\t3\t.\tG\tA\t.\t.\t\0", "NUL byte"),
        ("chr1\t3\t.\tG\tnull\t.\t.\t.", "ALT 'null' says that a value is missing"),
        ("chr1\t3\t. \tG\tA\t.\t.\t.", "'. ' has a blank"),
        ("chr1\u200b\t3\t.\tG\tA\t.\t.\t.", "invisible or control character"),
        ("chr1\t3\t'rs1\tG\tA\t.\t.\t.", "the ID ''rs1' has a quotation mark"),
        ("chr1\t1e+05\t.\tG\tA\t.\t.\t.", "scientific notation"),
    ], ((f"{HEAD}{NAMES}{ROWS[0]}\n", "\n"),)),
    "VCF": Broken(".vcf", read_variants, [
        ("", "empty"),
        (HEAD, "no VCF header"),
        (HEAD + ROWS[0] + "\n", "line of column names .* is missing"),
        (ROWS[0] + "\n", "line of column names .* is missing"),
        (HEAD + NAMES.replace("\t", " "), "not as in a VCF"),
        (HEAD + NAMES[:-1] + "\tFORMAT\tS\tS\n", "duplicate sample"),
    ]),
}  # fmt: skip
FORMATS |= {
    ending: Broken(ending, read_motifs, [
        (text, f"line {line}\\b.*{words}" if line else words)
        for other, text, words, line in BAD if other == ending
    ])
    for ending in dict.fromkeys(row[0] for row in BAD)
}  # fmt: skip
CASES = [(name, *row) for name, one in FORMATS.items() for row in one.rows]


@pytest.mark.parametrize(
    ("name", "text", "said"), CASES, ids=[f"{n}-{s}"[:60] for n, _, s in CASES]
)
def test_a_fault_is_one_line_that_says_where_what_and_what_to_do(name, text, said, tmp_path):
    form = FORMATS[name]
    path = tmp_path / f"in{form.ending}"
    for above, below in form.around:
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(above.encode() + data + below.encode())
        with pytest.raises(DataError, match=said) as caught:
            form.read(path)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)
        assert caught.value.fix
        assert caught.value.exit_code == 3
        if name.startswith("rows"):
            assert caught.value.line == above.count("\n") + 1
