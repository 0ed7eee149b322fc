"""Files of variants: what is read, and what is refused with its line."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pysam
import pytest

from genodiff.errors import DataError
from genodiff.io.variant_source import open_variants
from genodiff.variants.output import TSV
from genodiff.variants.scored_variants import SCHEMA
from tests.commands import command

HEAD = (
    "##fileformat=VCFv4.2\n##contig=<ID=chr1,length=20>\n"
    '##INFO=<ID=X,Number=1,Type=Integer,Description="x">\n'
)
NAMES = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
ROWS = [
    "chr1\t3\trs1\tG\tA,T\t.\tPASS\tX=1",
    "chr1\t5\t.\tac\ta\t10\t.\t.",
    "chr1\t1\t.\tA\t.\t.\t.\t.",
]
FASTA = ">chr1\nACGTACGTACGTACGTACGT\n"


def write(path: Path, rows: list[str], head: str = HEAD + NAMES) -> Path:
    path.write_text(head + "".join(f"{row}\n" for row in rows))
    return path


def sites(path: Path) -> list[tuple[Any, ...]]:
    with open_variants(path) as source:
        found = [(r.chrom, r.pos, r.id, r.ref, r.alts) for r in source.records()]
        assert found == [(r.chrom, r.pos, r.id, r.ref, r.alts) for r in source.records()]
    return found


def test_vcf_gzip_bgzip_and_bcf_give_the_same_records(tmp_path):
    plain = write(tmp_path / "a.vcf", ROWS)
    expected = [
        ("chr1", 3, "rs1", "G", ("A", "T")),
        ("chr1", 5, ".", "ac", ("a",)),
        ("chr1", 1, ".", "A", ()),
    ]
    assert sites(plain) == expected
    with gzip.open(tmp_path / "b.vcf.gz", "wb") as file:
        file.write(plain.read_bytes())
    assert sites(tmp_path / "b.vcf.gz") == expected
    pysam.tabix_compress(str(plain), str(tmp_path / "c.vcf.gz"))
    assert sites(tmp_path / "c.vcf.gz") == expected
    with (
        pysam.VariantFile(str(plain)) as given,
        pysam.VariantFile(str(tmp_path / "d.bcf"), "wb", header=given.header) as bcf,
    ):
        for record in given:
            bcf.write(record)
    assert sites(tmp_path / "d.bcf") == expected
    plain.write_text(plain.read_text().replace("\n", "\r\n"))
    with open_variants(plain) as source:
        assert [record.rest[-1] for record in source.records()] == ["X=1", ".", "."]


def test_tables_are_read_by_the_names_of_their_columns(tmp_path):
    table = pl.DataFrame(
        {"score": [0.5, 1.0], "Chromosome": ["chr1", "chr1"], "POS": [3, 5], "Ref": ["G", "AC"],
         "ALT": ["A", "A"], "rsid": ["rs1", None]}
    )  # fmt: skip
    expected = [("chr1", 3, "rs1", "G", ("A",)), ("chr1", 5, ".", "AC", ("A",))]
    table.write_csv(tmp_path / "a.csv")
    table.write_csv(tmp_path / "a.tsv", separator="\t")
    table.write_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.tsv", "a.parquet"):
        assert sites(tmp_path / name) == expected
    (tmp_path / "a.tsv").write_text("#Chrom\tPos\tRef\tAlt\tRawScore\n" + "chr1\t3\tG\tA\t1\n")
    assert sites(tmp_path / "a.tsv") == [("chr1", 3, ".", "G", ("A",))]
    (tmp_path / "a.csv").write_text("chrom,pos,ref\nchr1,3,G\n")
    with pytest.raises(DataError, match="line 1: no column 'alt'"):
        sites(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("chrom,pos,ref,alt\nchr1,3,G,A\nchr1,x,G,A\n")
    with pytest.raises(DataError, match=r"line 3.*'x' is not an integer"):
        sites(tmp_path / "a.csv")


def test_what_score_and_cadd_write_is_read(tmp_path):
    expected = [("chr1", 3, "rs1", "G", ("A",)), ("chr1", 5, ".", "AC", ("A",))]
    names = "\t".join(name for key, name in TSV.items() if key in SCHEMA)
    rest = ".\t0\tllr\t1\tsnv\t."
    (tmp_path / "own.tsv").write_text(
        f"## genodiff score: version 1, unit nats\n{names}\n"
        + "".join(f"{c}\t{p}\t{r}\t{a[0]}\t-1.5\t{rest}\t{i}" + "\t." * 5 + "\n"
                  for c, p, i, r, a in expected)
    )  # fmt: skip
    assert sites(tmp_path / "own.tsv") == expected
    rows = [dict(zip(("chrom", "pos", "id", "ref"), row, strict=False)) for row in expected]
    lines = [json.dumps({**row, "alt": "A", "score": None}) for row in rows]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    assert sites(tmp_path / "own.jsonl") == expected
    (tmp_path / "cadd.tsv").write_text(
        "## CADD GRCh38-v1.6\n#Chrom\tPos\tRef\tAlt\tRawScore\tPHRED\nchr1\t3\tG\tA\t0.1\t3\n"
    )
    assert sites(tmp_path / "cadd.tsv") == [("chr1", 3, ".", "G", ("A",))]


@pytest.mark.parametrize("minus", ["-", "-1"])
def test_a_strand_beside_variants_is_not_used_and_that_is_told(tmp_path, caplog, minus):
    rows = f"chrom,pos,ref,alt,strand\nchr1,3,G,A,{minus}\nchr1,4,T,A,+\n"
    (tmp_path / "a.csv").write_text(rows)
    expected = [("chr1", 3, ".", "G", ("A",)), ("chr1", 4, ".", "T", ("A",))]
    assert sites(tmp_path / "a.csv") == expected
    assert "1 of 2 rows have - in the column of strands, which is not used" in caplog.text
    caplog.clear()
    (tmp_path / "b.csv").write_text(rows.replace(minus + "\n", "+\n"))
    assert sites(tmp_path / "b.csv") == expected
    assert not caplog.records


def test_na_beside_an_n_is_two_bases(tmp_path):
    (tmp_path / "a.csv").write_text("chrom;pos;ref;alt\nchr1;3;NA;N\nchr1;3;n;nan\n")
    assert sites(tmp_path / "a.csv") == [
        ("chr1", 3, ".", "NA", ("N",)),
        ("chr1", 3, ".", "n", ("nan",)),
    ]


def test_what_pysam_reads_is_what_is_read(shared, tmp_path):
    folder = shared / "conformance/bcftools"
    files = [p for p in sorted(folder.glob("norm*.vcf")) if p.name != "norm.setref.vcf"]  # REF .
    real = shared / "data/variants/1000G_phase3_hg19_chr22_17.44M-17.68M.vcf.gz"
    (tmp_path / "real.vcf").write_bytes(gzip.decompress(real.read_bytes()))
    files.append(tmp_path / "real.vcf")
    before = pysam.set_verbosity(0)
    for path in files:
        with pysam.VariantFile(str(path)) as known:
            expected = [(r.chrom, r.pos, r.ref, tuple(r.alts or ())) for r in known]
        assert [(c, p, r, a) for c, p, _, r, a in sites(path)] == expected, path
    pysam.set_verbosity(before)


def test_data_check_tells_the_kinds_of_a_vcf(tmp_path, capsys):
    (tmp_path / "ref.fa").write_text(FASTA)
    path = write(tmp_path / "a.vcf", [*ROWS, "chr1\t3\t.\tG\tC,*\t.\t.\t."])
    fasta = ("--fasta", str(tmp_path / "ref.fa"))
    code, out, err = command(capsys, "data", "check", str(path), *fasta, "--json")
    assert code == 0
    assert [json.loads(line)["kinds"] for line in out.splitlines()] == [
        ["snv", "snv"], ["del"], ["no_alt"], ["snv", "spanning_deletion"],
    ]  # fmt: skip
    assert "1 ALT cannot be scored: spanning_deletion, ALT is *" in err
    code, out, err = command(capsys, "data", "check", str(path), *fasta)
    assert out == f"{path}: sound; 4 records: 1 del, 3 snv\n"
    code, out, err = command(capsys, "data", "check", str(path))
    assert (code, out) == (0, f"{path}: sound; 4 records\n")
    write(path, ["chr1\t4\t.\tG\tA\t.\t.\t.", "chr1\t8\t.\tG\tA\t.\t.\t."])
    code, out, err = command(capsys, "data", "check", str(path), *fasta)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "line 5 (record chr1:4): REF mismatch: G here, T in the FASTA (2 of 2" in err
    assert "one base to the left" in err
