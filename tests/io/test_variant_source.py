"""Variants as files have them, and in their normal form: one form for all spellings of a change."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.variant_source import open_variants
from genodiff.io.variants import (
    Allele,
    Unscorable,
    VariantRecord,
    align_left,
    anchor_allele,
    judge_record,
)
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


SEQUENCE = "ACACACGTTTTTGACNACAGGGRA"


def fetch_from(sequence: str) -> Callable[[int, int], str]:
    return lambda start, end: sequence[start:end]


def apply(sequence: str, start: int, ref: str, alt: str) -> str:
    assert sequence[start : start + len(ref)] == ref
    return sequence[:start] + alt + sequence[start + len(ref) :]


@pytest.fixture
def genome(tmp_path):
    (tmp_path / "ref.fa").write_text(f">chr1\n{SEQUENCE[:10]}\n{SEQUENCE[10:].lower()}\n>chrM\nA\n")
    return Genome(tmp_path / "ref.fa")


dna = st.text("AC", max_size=8)


@given(st.text("AC", min_size=1, max_size=16), st.data())
def test_all_spellings_of_one_haplotype_are_one_allele(sequence, data):
    start = data.draw(st.integers(0, len(sequence)))
    end = data.draw(st.integers(start, len(sequence)))
    ref, alt = sequence[start:end], data.draw(dna)
    if ref == alt:
        return
    found = align_left(start, ref, alt, fetch_from(sequence))
    assert apply(sequence, *found) == apply(sequence, start, ref, alt)
    # A wider spelling of the same change: context added on both sides
    left, right = data.draw(st.integers(0, start)), data.draw(st.integers(end, len(sequence)))
    wide = (sequence[left:start] + ref + sequence[end:right],
            sequence[left:start] + alt + sequence[end:right])  # fmt: skip
    assert align_left(left, *wide, fetch_from(sequence)) == found
    # An insertion or deletion is as far left as any spelling that gives this haplotype
    at, ref, alt = found
    if not (ref and alt):
        size = len(ref) or len(alt)
        goal = apply(sequence, *found)
        others = [
            p
            for p in range(len(sequence) - (size if ref else 0) + 1)
            if (sequence[:p] + sequence[p + size :] if ref else sequence[:p] + goal[p : p + size]
                + sequence[p:]) == goal
        ]  # fmt: skip
        assert at == min(others)


@pytest.mark.parametrize(
    ("ref", "alt", "kind"),
    [("A", "C", "snv"), ("AC", "GT", "mnv"), ("", "A", "ins"), ("A", "", "del"),
     ("AC", "T", "delins"), ("A", "TG", "delins")],
)  # fmt: skip
def test_an_allele_is_of_a_kind_by_its_lengths(ref, alt, kind):
    assert Allele("chr1", 4, ref, alt).kind == kind


def test_an_anchored_allele_is_judged_to_be_itself(genome):
    for allele in (
        Allele("chr1", 0, "AC", ""),
        Allele("chr1", 0, "", "G"),
        Allele("chr1", 6, "G", "T"),
        Allele("chr1", 7, "TT", ""),
        Allele("chr1", 6, "GT", "CCC"),
        Allele("chr1", 24, "", "C"),
    ):
        pos, ref, alt = anchor_allele(allele, genome)
        assert ref
        assert alt
        assert judge_record(VariantRecord(1, "chr1", pos, ".", ref, (alt,)), genome) == [allele]


@pytest.mark.parametrize(
    ("chrom", "pos", "ref", "alt", "reason"),
    [
        ("chr1", 1, "C", "A", Unscorable.REF),
        ("chr1", 1, "C", "<DEL>", Unscorable.REF),
        ("chr1", 1, "R", "A", Unscorable.AMBIGUOUS),
        ("chr1", 1, "A", "N", Unscorable.AMBIGUOUS),
        ("chr1", 16, "N", "A", Unscorable.AMBIGUOUS),
        ("chr1", 16, "A", "C", Unscorable.AMBIGUOUS),
        ("chr1", 15, "CN", "<DEL>", Unscorable.SYMBOLIC),
        ("chr1", 23, "R", "A", Unscorable.AMBIGUOUS),
        ("chr1", 1, "A", "<DEL>", Unscorable.SYMBOLIC),
        ("chr1", 1, "A", "A]chrM:1]", Unscorable.BREAKEND),
        ("chr1", 1, "A", "A.", Unscorable.BREAKEND),
        ("chr1", 1, "A", "*", Unscorable.STAR),
        ("chr1", 1, "A", "a", Unscorable.SAME),
        ("chr1", 25, "A", "C", Unscorable.OUTSIDE),
        ("chr1", 24, "AC", "A", Unscorable.OUTSIDE),
        ("chr1", 0, "A", "C", Unscorable.OUTSIDE),
        ("chr1", 0, "N", "<DEL>", Unscorable.SYMBOLIC),
        ("chr1", 25, "N", "<DUP>", Unscorable.SYMBOLIC),
        ("chr1", 25, "N", "]chrM:1]N", Unscorable.BREAKEND),
        ("chr1", 25, "N", ".", Unscorable.NO_ALT),
        ("chr1", 26, "N", "<DUP>", Unscorable.OUTSIDE),
        ("chr2", 1, "A", "C", Unscorable.CONTIG),
    ],
)
def test_what_cannot_be_scored_has_its_reason(genome, chrom, pos, ref, alt, reason):
    assert judge_record(VariantRecord(1, chrom, pos, ".", ref, (alt,)), genome) == [reason]


def test_each_alt_has_its_own_verdict_and_case_does_not_matter(genome):
    record = VariantRecord(1, "chr1", 7, ".", "g", ("t", "*", "<X>", "GT"))
    assert judge_record(record, genome) == [
        Allele("chr1", 6, "G", "T"),
        Unscorable.STAR,
        Unscorable.SYMBOLIC,
        Allele("chr1", 7, "", "T"),
    ]
    assert judge_record(VariantRecord(1, "chr1", 7, ".", "G", ()), genome) == [Unscorable.NO_ALT]
    assert judge_record(VariantRecord(1, "chrM", 1, ".", "A", ("C",)), genome) == [
        Allele("chrM", 0, "A", "C")
    ]
