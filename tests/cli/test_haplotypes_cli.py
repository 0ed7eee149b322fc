"""`genodiff score --haplotypes` from outside: nothing is dropped."""

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pysam
import pytest

import genodiff
from genodiff.errors import DataError
from genodiff.io.variants import Allele
from genodiff.scoring.allele_score import AlleleScore
from tests.commands import check_refused, command, succeed

LETTERS = "ACGTTGCAAC" * 30
META = "##fileformat=VCFv4.2\n##contig=<ID=chr1,length=300>\n"
FORMAT = '##FORMAT=<ID=GT,Number=1,Type=String,Description="g">\n' + (
    '##FORMAT=<ID=PS,Number=1,Type=Integer,Description="p">\n'
)
HEAD = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tmother\tchild\n"
ROWS = [
    # pos, ref, alt, FORMAT, two samples
    "5 T A,C GT:PS 1|2:5 0|0",
    "8 A AA GT:PS 0|1:5 1|1",
    "10 C G GT:PS 1|0:5 0|1",
    "12 C <DEL>,T GT 0/0 1|2",
    "14 T G GT:DP:PS 1|0 0/1:9:.",
    "20 C A GT:PS 1|1:20 .|1",
    "23 G A GT:PS 0|1:20 ./1",
    "24 T . GT 0/0 ./.",
    "30 C A GT 1 1",
    "31 A C GT 1 0",
    "33 G T DP 3 4",
    "40 CACG C GT 0|1 1|0",
    "42 C A GT 0|1 0|1",
]


@pytest.fixture
def case(here):
    (here / "ref.fa").write_text(f">chr1\n{LETTERS}\n")
    write_vcf(here / "in.vcf", ROWS)
    return here


def write_vcf(path: Path, rows: list[str], head: str = HEAD) -> None:
    lines = []
    for row in rows:
        pos, ref, alt, *samples = row.split()
        lines.append("\t".join(["chr1", pos, ".", ref, alt, ".", "PASS", "X=1", *samples]) + "\n")
    path.write_text(META + FORMAT + head + "".join(lines))


def fake(
    model: Any, genome: Any, options: Any, loci: Any, alleles: Iterable[Any]
) -> Iterator[AlleleScore]:
    """Scores without a network: a number of the alleles alone."""
    for one in alleles:
        some = [one] if isinstance(one, Allele) else list(one)
        value = sum(a.start / 7 + len(a.alt) for a in some) + 100 * (len(some) - 1)
        yield AlleleScore(value, 0.0, "llr", 0, 1, 1)


@pytest.fixture(scope="module")
def model(run):
    return genodiff.load(run, device="cpu")


@pytest.fixture
def quick(model, monkeypatch):
    monkeypatch.setattr("genodiff.variants.score_job.open_scorer", partial(partial, fake))
    monkeypatch.setattr("genodiff.api.load.load", lambda *_, **__: model)


def words(run: Path, out: str, *more: object) -> list[object]:
    given = ["score", "in.vcf", "--model", run, "--fasta", "ref.fa", "-o", out, "--threads", 1]
    return [*given, "--haplotypes", "-q", *more]


def fields(path: Path, sample: int) -> list[dict[str, str]]:
    rows = [row.split("\t") for row in path.read_text().splitlines() if not row.startswith("#")]
    return [dict(zip(row[8].split(":"), row[9 + sample].split(":"), strict=False)) for row in rows]


def test_a_network_scores_haplotypes_beside_their_variants(run, case, capsys):
    write_vcf(case / "in.vcf", ["5 T A GT 0|1 1|1", "7 C G GT 0|1 1|0", "100 C G GT 1|1 0|0"])
    code, out, err = command(capsys, *words(run, "o.vcf.gz", "--exact"))
    assert (code, out) == (0, ""), err
    with pysam.VariantFile(str(case / "o.vcf.gz")) as found:
        rows = list(found)
    mother = [row.samples["mother"] for row in rows]
    assert mother[0]["GD_HAP"] == mother[1]["GD_HAP"] != (rows[0].info["GD_SCORE"][0],)
    assert [one["GD_HAPN"] for one in mother] == [(None, 2), (None, 2), (1, 1)]
    assert mother[2]["GD_HAP"] == rows[2].info["GD_SCORE"] * 2
    child = rows[0].samples["child"]
    assert child["GD_HAP"] == (mother[0]["GD_HAP"][1], rows[0].info["GD_SCORE"][0])
    told = json.loads((case / "o.vcf.gz.json").read_text())["haplotypes"]
    assert (told["joint"], told["alleles"], told["scored"]) == (1, 7, 7)
    frame = genodiff.load(run).score_variants("in.vcf", fasta="ref.fa", haplotypes=True, exact=True)
    first = frame["haplotypes"][0].to_list()
    assert [(one["sample"], one["copy"], one["variants"]) for one in first] == [
        ("mother", 2, 2), ("child", 1, 2), ("child", 2, 1),
    ]  # fmt: skip
    assert first[0]["score"] == first[1]["score"] == pytest.approx(mother[0]["GD_HAP"][1], rel=1e-5)
    assert first[2]["score"] == frame["score"][0]


@pytest.mark.usefixtures("quick")
def test_each_copy_has_its_outcome_and_all_else_stays(run, case, capsys):
    succeed(capsys, *words(run, "o.vcf"))
    mother, child = fields(case / "o.vcf", 0), fields(case / "o.vcf", 1)
    assert [one.get("GD_HAPN", ".") for one in mother] == [
        "2,2", ".,2", "2,.", ".", "1,.", "1,2", ".,2", ".", "2", "2", ".", ".", ".",
    ]  # fmt: skip
    assert [one.get("GD_HAPF", ".") for one in mother] == ["."] * 11 + [".,overlap"] * 2
    assert [one.get("GD_HAPF", ".") for one in child] == [
        ".", ".,incomplete", ".,incomplete", "symbolic,incomplete", ".,unphased",
        ".,incomplete", ".,unphased", ".", ".", ".", ".", ".", ".",
    ]  # fmt: skip
    assert mother[0]["GD_HAPID"] == "5-10,5-7"
    assert mother[0]["GD_HAP"].split(",")[0] == mother[2]["GD_HAP"].split(",")[0]
    # What was read is there, byte by byte, and a value that was left out has its place
    given = (case / "in.vcf").read_text().splitlines()[5:]
    written = [row for row in (case / "o.vcf").read_text().splitlines() if not row.startswith("#")]
    for before, after in zip(given, written, strict=True):
        one, two = before.split("\t"), after.split("\t")
        assert one[:6] == two[:6]
        assert all(b.startswith(a) for a, b in zip(one[8:], two[8:], strict=True))
    assert written[4].split("\t")[9].startswith("1|0:.:.:")
    assert written[10].split("\t")[8:] == ["DP", "3", "4"]
    # What was scored is read and scored again: ours is replaced, and goes without haplotypes
    (case / "o.vcf").rename(case / "in.vcf")
    succeed(capsys, *words(run, "again.vcf"))
    assert (case / "again.vcf").read_text() == (case / "in.vcf").read_text()
    plain = [word for word in words(run, "plain.vcf") if word != "--haplotypes"]
    succeed(capsys, *plain)
    assert "GD_HAP" not in (case / "plain.vcf").read_text()


@pytest.mark.usefixtures("quick")
def test_bcf_has_the_haplotypes_of_its_vcf(run, case, capsys):
    more = "".join(
        f'##{kind}=<ID={name},Number=1,Type=Integer,Description="x">\n'
        for kind, name in (("INFO", "X"), ("INFO", "END"), ("FORMAT", "DP"))
    )
    (case / "in.vcf").write_text(META + more + (case / "in.vcf").read_text()[len(META) :])
    succeed(capsys, *words(run, "a.vcf"))
    with (
        pysam.VariantFile("in.vcf") as given,
        pysam.VariantFile("in.bcf", "wb", header=given.header) as kept,
    ):
        for row in given:
            kept.write(row)
    succeed(capsys, *[w if w != "in.vcf" else "in.bcf" for w in words(run, "b.vcf")])
    for sample in (0, 1):
        one, two = fields(case / "a.vcf", sample), fields(case / "b.vcf", sample)
        for name in ("GD_HAP", "GD_HAPID", "GD_HAPN", "GD_HAPF"):
            assert [row.get(name) for row in one] == [row.get(name) for row in two]


@pytest.mark.usefixtures("quick")
def test_tables_have_a_column_of_copies(run, case, capsys):
    for ending in (".tsv", ".parquet", ".jsonl"):
        succeed(capsys, *words(run, f"o{ending}"))
    frame = pl.read_parquet(case / "o.parquet")
    rows = [json.loads(one) for one in (case / "o.jsonl").read_text().splitlines()]
    assert frame["haplotypes"].to_list() == [row["haplotypes"] for row in rows]
    lines = [one.split("\t") for one in (case / "o.tsv").read_text().splitlines()[1:]]
    assert lines[0][-2:] == ["BackgroundN", "Haplotypes"]
    assert len({len(one) for one in lines}) == 1
    assert lines[1][-1].split("|")[:7] == ["mother", "1", "5", "5", "10", "2", "llr"]
    assert lines[1][-1].count(";") == 0
    assert lines[3][-1].count(";") == 2
    assert lines[-2][-1].split("|")[-1] == "."
    plain = [word for word in words(run, "p.parquet") if word != "--haplotypes"]
    succeed(capsys, *plain)
    assert pl.read_parquet(case / "p.parquet").columns == frame.columns[:-1]


@pytest.mark.slow
def test_the_plan_knows_their_cost(run, case, capsys):
    out = succeed(capsys, *words(run, "o.vcf", "--plan"))
    assert "haplotypes 5 chain" in " ".join(out.split())
    assert "haplotype evaluations " in out
    assert sorted(p.name for p in case.iterdir()) == ["in.vcf", "ref.fa"]


@pytest.mark.parametrize(
    ("rows", "head", "said"),
    [
        (["5 T A"], HEAD.split("\tFORMAT")[0] + "\n", "has no samples"),
        ([ROWS[1], ROWS[0]], HEAD, "sorted records"),
        (["5 T A GT 0|3 0|1"], HEAD, "GT 0|3 names an allele"),
    ],
)
def test_a_file_without_phased_calls_is_refused(run, case, capsys, rows, head, said):
    write_vcf(case / "in.vcf", rows, head)
    check_refused(capsys, words(run, "o.vcf"), 3, said)
    with pytest.raises(DataError, match="no samples"):
        genodiff.score_variants(run, [("chr1", 5, "T", "A")], fasta="ref.fa", haplotypes=True)
