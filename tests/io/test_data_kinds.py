"""`genodiff data check` judges a file as what it holds, whatever its name says."""

import json
from pathlib import Path

import polars as pl
import pytest

from genodiff.api.data_kind import find_data_kind
from tests.commands import check_refused, command

FASTA = ">chr1\nCCCCCGATTACACCCC\n>2\nACGT\n"
CODONS = "".join(f"{a}{b}{c} 1\n" for a in "ACGT" for b in "ACGT" for c in "ACGT")
GTF = 'chr1\tx\tgene\t6\t12\t.\t-\t.\tgene_id "g1";\nchr1\tx\texon\t6\t8\t.\t-\t0\tgene_id "g1";\n'
FILES = {
    "BED": "chr1\t5\t12\tword\t0\t-\n",
    "annotation": GTF,
    "VCF": "chrom,pos,ref,alt\nchr1,6,G,A\n",
    "codon usage": CODONS,
    "sequences": "name,seq,label\na,ACGT,yes\nb,AC,no\nc,GG,no\n",
    "labels": "chr1\tyeast\n2\thuman\n",
    "FASTA": FASTA,
    "motifs": ">m\nA [ 1 2 ]\nC [ 1 2 ]\nG [ 1 2 ]\nT [ 1 2 ]\n",
    "genomes": "path\tspecies\ng.fa\tyeast\n",
}


def check(
    capsys: pytest.CaptureFixture[str], file: Path, *more: object
) -> tuple[int, list[str], str]:
    code, out, err = command(capsys, "data", "check", file, *more)
    return code, out.splitlines(), err


@pytest.fixture
def folder(here):
    (here / "g.fa").write_text(FASTA)
    return here


@pytest.mark.few(9)
@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("name", ["x", "x.txt", "x.dat"])
def test_a_file_is_known_by_its_content(folder, kind, name):
    (folder / name).write_text(FILES[kind])
    assert find_data_kind(name) == kind


def test_other_writings_of_the_same_are_known(folder):
    pl.DataFrame({"chrom": ["chr1"], "pos": [6], "ref": ["G"], "alt": ["A"]}).write_parquet("a")
    pl.DataFrame({"seq": ["ACGT"], "label": [1]}).write_parquet("b")
    (folder / "c").write_text("# made by hand\n#Chrom\tPos\tRef\tAlt\nchr1\t6\tG\tA\n")
    (folder / "d").write_text("# a, b\n#chrom\tstart\tend\nchr1\t5\t12\n")
    (folder / "e.bed").write_text(GTF)
    (folder / "f.bed").write_text("chr1\tfive\ttwelve\n")
    (folder / "g").write_text("GeneID\tChr\tStart\tEnd\tStrand\nw\tchr1\t6\t12\t-\n")
    (folder / "h").write_text('{"chrom": "chr1", "pos": 6, "ref": "G", "alt": "A"}\n')
    (folder / "i").write_bytes("chrom,pos,ref,alt,note\nchr1,6,G,A,caf\xe9\n".encode("latin-1"))
    (folder / "j").write_text("chr1\t5\t12\t1\t0\t-\t.\t5\t12\n")
    wanted = {
        "i": "VCF",
        "j": "BED",
        "a": "VCF", "b": "sequences", "c": "VCF", "d": "BED", "e.bed": "annotation",
        "f.bed": "BED", "g": "annotation", "h": "VCF",
    }  # fmt: skip
    assert {name: find_data_kind(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("kind", "said", "rows"),
    [
        (
            "BED",
            "sound; 1 interval, 7 bases; 1 on -",
            [{"contig": "chr1", "start": 5, "end": 12, "name": "word", "strand": "-", "length": 7}],
        ),
        (
            "annotation",
            "sound; 2 rows, 10 bases; 1 exon, 1 gene; 2 on -",
            [
                {"contig": "chr1", "start": 5, "end": end, "name": "g1", "strand": "-",
                 "type": kind, "length": end - 5}
                for kind, end in (("gene", 12), ("exon", 8))
            ],
        ),
        (
            "labels",
            "sound; 2 labels",
            [
                {"contig": "chr1", "start": 0, "end": None, "label": "yeast"},
                {"contig": "2", "start": 0, "end": None, "label": "human"},
            ],
        ),
    ],
)  # fmt: skip
def test_what_has_places_is_checked_with_the_genome(folder, capsys, kind, said, rows):
    file = folder / "x"
    file.write_text(FILES[kind])
    for more in ((), ("--fasta", "g.fa")):
        code, out, err = check(capsys, file, *more)
        assert (code, out[0], err) == (0, f"{file}: {said}", "")
        code, out, err = check(capsys, file, "--json", *more)
        assert (code, [json.loads(line) for line in out], err) == (0, rows, "")
    file.write_text(FILES[kind].replace("chr1", "chr3"))
    said = f"{file}, line 1: unknown contig 'chr3': not in the FASTA"
    check_refused(capsys, ["data", "check", file, "--fasta", "g.fa"], 3, said)
    assert check(capsys, file)[0] == 0


def test_a_table_of_variants_is_checked_with_the_genome(folder, capsys):
    file = folder / "x"
    file.write_text(FILES["VCF"])
    assert check(capsys, file, "--fasta", "g.fa")[1] == [f"{file}: sound; 1 record: 1 snv"]
    file.write_text("chrom,pos,ref,alt\nchr1,6,T,A\nchr1,7,C,A\n")
    check_refused(capsys, ["data", "check", file, "--fasta", "g.fa"], 3, "REF")


def test_tables_without_places_are_judged_by_their_readers(folder, capsys):
    file = folder / "x.csv"
    file.write_text(FILES["sequences"])
    assert check(capsys, file)[1] == [f"{file}: sound; 3 sequences, 8 bases; 2 no, 1 yes"]
    out = check(capsys, file, "--json")[1]
    assert json.loads(out[0]) == {"name": "a", "length": 4, "label": "yes"}
    file.write_text(FILES["sequences"].replace("GG", "GX"))
    words = ["data", "check", file]
    check_refused(capsys, words, 3, "x.csv, line 4 (record c): position 2: 'X'")
    file.write_text("name,seq\na,ACGT\n")
    assert check(capsys, file)[1] == [f"{file}: sound; 1 sequence, 4 bases"]
    file.write_text(CODONS)
    assert check(capsys, file)[1] == [f"{file}: sound; 64 codons"]
    file.write_text(CODONS.replace("CCC 1", "CCC -1"))
    check_refused(capsys, words, 3, "line 22")  # 16 of A, then CAA to CCC
    said = "read as codon usage, which needs no reference"
    check_refused(capsys, [*words, "--fasta", "g.fa"], 2, said)
    (folder / "list").write_text(FILES["genomes"])
    assert check(capsys, folder / "list")[1] == [f"{folder / 'list'}: sound; 1 genome"]


def test_annotation_is_told_with_what_reads_it(folder, capsys):
    (folder / "x.bed").write_text(GTF)
    code, out, _ = check(capsys, folder / "x.bed")
    assert code == 0
    assert "GTF, counted from 1; make BED of the rows that you mean: awk" in out[1]
    assert "with --features gene" in out[1]
