"""`genodiff score` and `genodiff merge` from outside: nothing is dropped."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pysam
import pytest

import genodiff
from genodiff.io.variants import Allele, judge_record
from genodiff.scoring.allele_score import AlleleScore
from tests.commands import check_refused, command, succeed
from tests.tiny_run import VCF

FASTA = ">chr1\n" + "ACGTTGCAAC" * 30 + "\n>chr2\n" + "GGATCNTTAACCGG" * 8 + "\n"
ROWS = [
    "chr1\t5\trs1\tT\tA,C\t.\tPASS\tX=1",
    "chr1\t8\t.\tA\tAA\t.\tPASS\t.",
    "chr1\t8\t.\tAA\tA\t.\t.\t.",
    "chr1\t12\t.\tC\t<DEL>,T\t.\t.\t.",
    "chr1\t300\t.\tC\tG\t.\t.\t.",
    "chr2\t6\t.\tN\tA\t.\t.\t.",
    "chr2\t7\t.\tT\t.\t.\t.\t.",
    "chr2\t8\t.\tT\tGG\t.\t.\t.",
]
N_ALTS = 10


@pytest.fixture
def case(here):
    """A folder with in.vcf and ref.fa, to work in."""
    (here / "ref.fa").write_text(FASTA)
    write_rows(here / "in.vcf", ROWS)
    return here


def write_rows(path: Path, rows: list[str]) -> None:
    path.write_text(VCF + "".join(f"{row}\n" for row in rows))


def fake(*_: Any) -> Any:
    """Scores without a network: a number of the allele alone."""

    def score(alleles: Iterable[Allele]) -> Iterator[AlleleScore]:
        for one in alleles:
            value = one.start / 7 + len(one.alt) - 3 * len(one.ref)
            yield AlleleScore(value, 0.0, "llr", 0, 1, 1)

    return score


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("genodiff.variants.score_job.open_scorer", fake)


def words(run: Path, out: str, *more: object) -> list[object]:
    return ["score", "in.vcf", "--model", run, "--fasta", "ref.fa", "-o", out, "--threads", 1,
            *more]  # fmt: skip


def body(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line for line in data.decode().splitlines() if not line.startswith("#")]


def test_a_vcf_is_scored_by_a_network(run, case, capsys):
    code, out, err = command(capsys, *words(run, "o.vcf.gz"))
    assert (code, out) == (0, ""), err
    told = json.loads((case / "o.vcf.gz.json").read_text())
    assert (told["records"], told["scored"]) == (len(ROWS), N_ALTS - 3)
    assert told["unscored"] == {"ambiguous_base": 1, "no_alt": 1, "symbolic": 1}
    with pysam.VariantFile(str(case / "o.vcf.gz")) as found:
        rows = list(found)
        assert [(r.chrom, r.pos, r.ref) for r in rows] == [
            (c, int(p), r) for c, p, _, r, *_ in (row.split("\t") for row in ROWS)
        ]
        assert [len(r.info["GD_SCORE"]) for r in rows if "GD_SCORE" in r.info] == [2, 1, 1, 2, 1, 1]
        assert rows[0].info["X"] == "1"
        assert rows[1].info["GD_NORMAL"] == ("chr1:7:C:CA",)
        assert rows[3].info["GD_FLAGS"] == ("symbolic", ".")
        assert list(rows[5].filter) == ["gd_ambiguous_base"]
        assert [r.pos for r in found.fetch("chr2", 6, 8)] == [7, 8]  # by its index
    frame = genodiff.load(run).score_variants("in.vcf", fasta="ref.fa")
    assert frame.height == N_ALTS
    assert frame["score"][0] == pytest.approx(rows[0].info["GD_SCORE"][0], rel=1e-5)
    table = pl.DataFrame({"chrom": ["chr1"], "pos": [5], "ref": ["T"], "alt": ["A"]})
    for given in (table, [("chr1", 5, "T", "A")]):
        again = genodiff.score_variants(run, given, fasta="ref.fa", unit="bits")
        assert again["score"][0] * 0.6931471805599453 == pytest.approx(frame["score"][0])


@pytest.mark.usefixtures("quick")
def test_the_run_is_the_first_word_or_has_a_flag(run, case, capsys):
    rest = ["--fasta", "ref.fa", "-q", "-o"]
    for number, given in enumerate(
        ([run, "in.vcf"], ["in.vcf", "--model", run], ["--run", run, "in.vcf"],
         [f"--checkpoint={run}", "in.vcf"])
    ):  # fmt: skip
        assert command(capsys, "score", *given, *rest, f"{number}.tsv") == (0, "", "")
    first, *others = [(case / f"{number}.tsv").read_bytes() for number in range(4)]
    assert others == [first] * 3
    for given, said in (
        ([run], "VARIANTS is missing"), (["in.vcf"], "RUN is missing"),
        (["in.vcf", run], "are swapped"),
        ([run, "in.vcf", "--model", run], "unexpected argument in.vcf"),
    ):  # fmt: skip
        check_refused(capsys, ["score", *given, *rest, "x.tsv"], 2, said)


def test_a_score_that_stops_above_the_wanted_error_says_so_with_its_error(run, case, capsys):
    write_rows(case / "in.vcf", [ROWS[0], "chr1\t20\t.\tC\tCGGATTACAGATTA\t.\t.\t."])
    told = words(run, "o.tsv", "-q", "--max-evaluations", 104, "--se", 0.0001)
    assert command(capsys, *told) == (0, "", "")
    *snvs, long = pl.read_csv("o.tsv", separator="\t", comment_prefix="##").iter_rows(named=True)
    assert (long["Method"], long["Evaluations"], long["Flags"]) == ("nelbo", 104, "se_above_wanted")
    assert long["SE"] > 0.0001
    assert [one["Flags"] for one in snvs] == [".", "."]
    assert json.loads((case / "o.tsv.json").read_text())["requested"]["max_evaluations"] == 104


@pytest.mark.usefixtures("quick")
def test_a_shard_is_refused_where_the_whole_file_is_and_judges_no_other_records(
    run, case, capsys, monkeypatch
):
    fit = [f"chr1\t{pos}\t.\t{FASTA[5 + pos]}\tN\t.\t.\t." for pos in range(1, 6)]
    wrong = [f"chr1\t{pos}\t.\tN\tA\t.\t.\t." for pos in range(301, 306)]  # behind its end
    seen: list[int] = []
    for reader in ("variants.records", "io.variants"):
        monkeypatch.setattr(
            f"genodiff.{reader}.judge_record",
            lambda record, genome: seen.append(record.pos) or judge_record(record, genome),
        )

    def shard(number: int) -> tuple[int, bool, int]:
        seen.clear()
        given = words(run, f"{number}.vcf", "-q", "--force", "--shard", f"{number}/3")
        code = command(capsys, *given)[0]
        return code, (case / f"{number}.vcf").exists(), len(seen)

    write_rows(case / "in.vcf", fit[:4] + wrong[:2])  # 2 of 6 do not fit: kept and marked
    assert [shard(n) for n in (1, 2, 3)] == [(0, True, 2), (0, True, 2), (3, True, 2 + 6)]
    (case / "3.vcf").unlink()
    write_rows(case / "in.vcf", fit[:2] + wrong[:4])  # 4 of 6: refused
    assert [shard(n) for n in (1, 2, 3)] == [(0, True, 2), (3, True, 2 + 6), (3, False, 2 + 6)]


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_background_ranks_scores_in_the_same_bytes_however_it_is_carried_out(
    run, case, capsys, monkeypatch
):
    ranked = ("--background", 300)
    (case / "ref.fa").write_text(FASTA + ">chr3\n" + "ACGGTTTAACCGTAGGCATA" * 40 + "\n")
    for ending in (".vcf.gz", ".tsv"):
        succeed(capsys, *words(run, f"o{ending}", *ranked))
        for i in (1, 2, 3):
            monkeypatch.setenv("GENODIFF_CACHE", str(case / f"cache{i}"))  # draws its own
            more = ("--shard", f"{i}/3", "--batch-size", i, *ranked)
            succeed(capsys, *words(run, f"s{i}{ending}", *more))
        names = [f"s{i}{ending}" for i in (2, 1, 3)]
        succeed(capsys, "merge", *names, "-o", f"m{ending}")
        assert (case / f"m{ending}").read_bytes() == (case / f"o{ending}").read_bytes()
        told = [json.loads((case / f"{x}{ending}.json").read_text()) for x in "om"]
        assert told[0]["background"] == told[1]["background"]
    assert told[0]["background"]["n"] == 300
    assert sorted(told[0]["background"]["classes"]) == ["del1", "delins1/2", "ins1", "snv"]
    assert told[0]["background"]["classes"]["snv"]["scores"] == 900
    with pysam.VariantFile(str(case / "o.vcf.gz")) as found:
        rows = list(found)
        assert len(rows[0].info["GD_PCT"]) == 2
        assert all(0 < x < 100 for x in rows[0].info["GD_PCT"])
        assert rows[0].info["GD_BG"][0].endswith(("T>A]G", "A>T]G"))
        assert min(rows[0].info["GD_BGN"]) == 30
        assert "GD_PCT" not in rows[5].info
        assert "background=300" in str(found.header)
    frame = genodiff.load(run).score_variants("in.vcf", fasta="ref.fa", background=300)
    assert frame["percentile"].null_count() == 4
    edge = frame.row(by_predicate=pl.col("pos") == 300, named=True)  # no neighbour to be matched by
    assert (edge["percentile"], edge["flags"]) == (None, ["too_rare"])
    line = next(row for row in (case / "o.tsv").read_text().splitlines() if row[:3] == "#Ch")
    assert line.split("\t")[:6] == ["#Chrom", "Pos", "Ref", "Alt", "RawScore", "PHRED"]
    # Without it nothing is drawn, and no column is filled
    monkeypatch.setenv("GENODIFF_CACHE", str(case / "cache9"))
    succeed(capsys, *words(run, "p.vcf", "--background", "off"))
    assert "GD_PCT" not in (case / "p.vcf").read_text()
    assert not list(case.glob("cache9/backgrounds/*"))
    code, out, _ = command(capsys, *words(run, "p.vcf", "--plan", "--background", "on"))
    assert (code, "background 10,000 del1, 2,500 delins1/2" in " ".join(out.split())) == (
        0,
        True,
    ), out
    check_refused(capsys, words(run, "p.vcf", "--background", "5"), 2, "--background 5 is no num")


@pytest.mark.usefixtures("quick")
def test_merge_refuses_what_is_no_whole_set_of_shards(run, case, capsys):
    for i in (1, 2):
        succeed(capsys, *words(run, f"s{i}.tsv", "--shard", f"{i}/2"))
    succeed(capsys, *words(run, "other.tsv", "--shard", "2/2", "--unit", "bits"))
    for names, said in (
        (["s1.tsv"], "shard 2 of 2 is missing"),
        (["s1.tsv", "s2.tsv", "s1.tsv"], "more than once"),
        (["s1.tsv", "other.tsv"], "another request"),
        (["s1.tsv", "in.vcf"], "no shard"),
        (["s1.tsv", "gone.tsv"], "no such file"),
    ):
        check_refused(capsys, ["merge", *names, "-o", "m.tsv"], 3, said)
    (case / "s1.tsv").write_text((case / "s1.tsv").read_text().replace("1", "2"))
    check_refused(capsys, ["merge", "s1.tsv", "s2.tsv", "-o", "m.tsv"], 3, "was changed")


@pytest.mark.usefixtures("quick")
def test_stdout_has_the_text_of_a_file(run, case, capsys):
    for ending, more in ((".vcf", ()), (".jsonl", ("--json",))):
        succeed(capsys, *words(run, f"o{ending}"))
        out = command(capsys, *words(run, "-", *more))[1]
        assert out == (case / f"o{ending}").read_text()
    assert not list(case.glob("-*"))


@pytest.mark.usefixtures("quick")
def test_records_that_do_not_fit_are_kept_marked_and_said(run, case, capsys):
    wrong = ["chr1\t5\t.\tG\tA\t.\tPASS\t.", "chr3\t5\t.\tG\tA\t.\tPASS\t."]
    write_rows(case / "in.vcf", [*ROWS, *wrong])
    code, _, err = command(capsys, *words(run, "o.vcf", "-q"))
    assert (code, err.count("\n")) == (3, 1)
    assert "line 11 (record chr1:5): REF mismatch: G here, T in the FASTA (2 of 10" in err
    assert "o.vcf is whole" in err
    assert len(body(case / "o.vcf")) == len(ROWS) + 2
    assert [row.split("\t")[6] for row in body(case / "o.vcf")[-2:]] == [
        "gd_ref_mismatch", "gd_unknown_contig",
    ]  # fmt: skip
    succeed(capsys, *words(run, "o.vcf", "--allow-mismatches"))
    write_rows(case / "in.vcf", [ROWS[0], *wrong])  # of another genome: nothing is written
    code, _, err = command(capsys, *words(run, "p.vcf", "-q"))
    assert (code, (case / "p.vcf").exists()) == (3, False)
    succeed(capsys, *words(run, "p.vcf", "--allow-mismatches", "-q"))


def test_the_plan_counts_and_writes_nothing(case, capsys):
    out = succeed(capsys, *words(Path("no-such-run"), "o.vcf", "--plan"))
    assert "kinds 1 del, 1 delins, 1 ins, 4 snv" in " ".join(out.split())
    assert sorted(p.name for p in case.iterdir()) == ["in.vcf", "ref.fa"]


@pytest.mark.slow
def test_the_plan_tells_evaluations_and_time(run, case, capsys):
    long = "chr1\t20\t.\tC\tCGGATTACAGATTA\t.\t.\t."
    write_rows(case / "in.vcf", [*ROWS, long])
    out = succeed(capsys, *words(run, "o.vcf", "--plan"))
    told = dict(line.split(maxsplit=1) for line in out.splitlines())
    # Sites 5, 12 and 300 of chr1 take one each, so do an insertion and a deletion of a base.
    # T>GG is a chain of 1 and 3, and the long insertion is by nelbo: 104 to 512.
    assert told["evaluations"] == f"{3 + 2 + 4 + 104} to {3 + 2 + 4 + 512}"
    assert re.fullmatch(r"about [0-9]+ s to [0-9]+ s on cpu", told["time"])
    assert sorted(p.name for p in case.iterdir()) == ["in.vcf", "ref.fa"]


@pytest.mark.usefixtures("quick")
def test_features_put_the_consequence_beside_each_score_whatever_the_form(run, case, capsys):
    Path("g.bed").write_text("chr1\t0\t30\tADE2\t0\t+\t3\t27\t0\t1\t30\t0\n")
    genes = ("--features", "g.bed", "--genetic-code", "chr1=1")
    for ending in (".vcf", ".tsv", ".parquet"):
        succeed(capsys, *words(run, f"o{ending}", *genes))
    for i in (1, 2):
        succeed(capsys, *words(run, f"s{i}.tsv", "--shard", f"{i}/2", *genes))
    succeed(capsys, "merge", "s1.tsv", "s2.tsv", "-o", "m.tsv")
    assert (case / "m.tsv").read_bytes() == (case / "o.tsv").read_bytes()
    told = [json.loads((case / f"{name}.tsv.json").read_text()) for name in "om"]
    for key in ("records", "scored", "unscored", "evaluations", "request", "cut", "shard"):
        assert told[0][key] == told[1][key]
    frame = genodiff.load(run).score_variants("in.vcf", fasta="ref.fa", features="g.bed")
    columns = ["gene", "consequence", "protein", "transcripts"]
    assert frame[columns].equals(pl.read_parquet("o.parquet")[columns])
    first = frame.row(0, named=True)
    assert (first["gene"], first["consequence"]) == ("ADE2", "start_lost")
    with pysam.VariantFile("o.vcf") as found:
        assert next(iter(found)).info["GD_CSQ"] == ("start_lost",) * 2
    told = json.loads((case / "o.tsv.json").read_text())
    assert (told["features"]["path"], told["features"]["genetic_codes"]) == ("g.bed", {"chr1": 1})
    succeed(capsys, *words(run, "p.tsv"))
    other = json.loads((case / "p.tsv.json").read_text())
    assert other["request"] != told["request"]
    check_refused(capsys, words(run, "q.tsv", "--features", "none.gff3"), 3, "none.gff3")


def test_what_is_too_long_is_counted_beside_the_option_that_moves_the_limit(run, case, capsys):
    write_rows(case / "in.vcf", [ROWS[0], f"chr1\t8\t.\tA\tA{'C' * 30}\t.\t.\t."])
    code, _, err = command(capsys, *words(run, "o.vcf", "--longest", 29))
    assert code == 0
    assert "2 records, 2 ALTs scored, 1 not: 1 too_long (more than 29 bases: --longest)" in err
    told = json.loads((case / "o.vcf.json").read_text())
    assert (told["unscored"], told["requested"]["longest"]) == ({"too_long": 1}, 29)
    text = (case / "o.vcf").read_text()
    assert "more than 29 bases differ (--longest moves this limit)" in text
    assert "GD_FLAGS=not_scored&too_long" in text
    code, _, err = command(capsys, *words(run, "p.vcf", "--longest", 30))
    assert "3 ALTs scored, 0 not" in err


@pytest.mark.usefixtures("quick")
def test_records_outside_of_regions_and_samples_are_counted(run, case, capsys):
    write_rows(case / "in.vcf", [f"{row}\tGT\t0/1\t0/0" for row in ROWS])
    text = (case / "in.vcf").read_text().replace("\tINFO\n", "\tINFO\tFORMAT\ta\tb\n")
    (case / "in.vcf").write_text(text)
    for more in ((), ("--shard", "1/2")):
        asked = words(run, "o.tsv", "--region", "chr1", "--force", *more)
        code, _, err = command(capsys, *asked)
        assert code == 0, err
        assert "; 3 records outside of the regions left out; 2 samples not written" in err
        told = json.loads((case / "o.tsv.json").read_text())
        assert (told["outside_regions"], told["samples_not_scored"]) == (3, 2)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_columns_of_a_table_that_are_not_written_are_named(run, case, capsys, form):
    contig, pos, _, ref, alt = ROWS[0].split("\t")[:5]
    row = {"chrom": contig, "pos": int(pos), "ref": ref, "alt": alt.split(",")[0], "depth": 9}
    table = pl.DataFrame([row | {"gene": "x"}] * 2)
    getattr(table, {"jsonl": "write_ndjson"}.get(form, f"write_{form}"))(case / f"in.{form}")
    asked = [str(one).replace("in.vcf", f"in.{form}") for one in words(run, "o.tsv")]
    code, _, err = command(capsys, *asked)
    assert code == 0, err
    assert "; 2 columns of the table not written (depth, gene)" in err
    told = json.loads((case / "o.tsv.json").read_text())
    assert told["columns_not_written"] == ["depth", "gene"]
