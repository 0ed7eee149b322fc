"""`genodiff report` of scored variants, from outside: every form, shards, logos, refusals."""

import json
import re
from pathlib import Path

import pytest

import genodiff
from tests.cli.test_score_cli import FASTA, N_ALTS, case, quick, words, write_vcf
from tests.commands import command
from tests.runs.test_related_backbone import differ
from tests.tiny_run import genome_text

__all__ = ["case", "quick"]


def read_text(page: Path) -> str:
    """What a page says, without its pictures and marks."""
    body = re.sub(r"<(style|svg)\b.*?</\1>", " ", page.read_text(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_every_form_and_merged_shards_say_the_same(run, case, capsys):
    (case / "ref.fa").write_text(FASTA + ">chr3\n" + "ACGGTTTAACCGTAGGCATA" * 40 + "\n")
    said = {}
    for ending in (".vcf.gz", ".tsv", ".jsonl", ".parquet"):
        assert command(capsys, *words(run, f"o{ending}", "--background", 200))[0] == 0
        code, out, err = command(capsys, "report", f"o{ending}")
        assert (code, out.strip()) == (0, f"o{ending}.html"), err
        said[ending] = read_text(case / f"o{ending}.html").replace(f"o{ending}", "o")
    alike = {re.sub(r"written .*", "", text) for text in said.values()}
    assert len(alike) == 1, alike
    text = alike.pop()
    assert f"{N_ALTS} ALTs: {N_ALTS - 3} with a score, 3 without" in text
    assert "neither is pathogenicity" in text
    assert "symbolic" in text
    assert "no logos" in text
    for i in (1, 2):
        more = ("--shard", f"{i}/2", "--background", 200)
        assert command(capsys, *words(run, f"s{i}.vcf.gz", *more))[0] == 0
    assert command(capsys, "merge", "s2.vcf.gz", "s1.vcf.gz", "-o", "m.vcf.gz")[0] == 0
    assert command(capsys, "report", "m.vcf.gz", "-o", "page.html")[0] == 0
    merged = read_text(case / "page.html").replace("m.vcf.gz", "o")
    assert "merged from 2 shards" in merged
    assert text.split("Provenance")[0] == merged.split("Provenance")[0]


def test_a_model_adds_logos(run, case, capsys):
    write_vcf(case / "in.vcf", ["chr1\t5\t.\tT\tA\t.\t.\t.", "chr1\t20\t.\tC\tCACGT\t.\t.\t."])
    assert command(capsys, *words(run, "o.tsv", "--method", "nelbo", "--se", 5))[0] == 0
    code, _, err = command(capsys, "report", "o.tsv", "--model", run, "--top", 2)
    assert code == 0, err
    page = (case / "o.tsv.html").read_text()
    assert page.count('id="top-1-ref-A"') == page.count('id="top-2-alt-T"') == 1
    assert "no logos" not in page
    assert genodiff.report("o.tsv", model=run, top=1) == Path("o.tsv.html")
    assert 'id="top-2-ref-A"' not in (case / "o.tsv.html").read_text()


def test_consequences_and_relatives_stand_on_the_page(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fasta = run.parent / "genome.fa"
    Path("near.fa").write_text(differ(genome_text(), 0.12, 2))
    genome = fasta.read_text().splitlines()[1].upper()
    place = "c1\tx\t%s\t2001\t2300\t.\t+\t%s\tID=%s"
    rows = [place % ("gene", ".", "g;Name=abc"), place % ("mRNA", ".", "t;Parent=g")]
    rows += [place % ("CDS", "0", "d;Parent=t")]
    Path("g.gff3").write_text("##gff-version 3\n" + "\n".join(rows) + "\n")
    alts = [(at, genome[at], "ACGT"["TGCA".index(genome[at])]) for at in range(1990, 2100, 10)]
    write_vcf(Path("in.vcf"), [f"c1\t{at + 1}\t.\t{a}\t{b}\t.\t.\t." for at, a, b in alts])
    more = ("--relatives", "near.fa", "--features", "g.gff3", "--threads", 1)
    words_ = ("score", run, "in.vcf", "--fasta", fasta, *more, "--page", "-o")
    code, _, err = command(capsys, *words_, "-")
    assert (code, "--page is of a file of scores" in err) == (2, True)
    code, _, err = command(capsys, *words_, "o.vcf")
    assert code == 0, err
    assert "Aligned bases of related genomes" in read_text(Path("o.vcf.html"))
    code, _, err = command(capsys, "report", "o.vcf", "--model", run, "--top", 3)
    assert code == 0, err
    page, text = Path("o.vcf.html").read_text(), read_text(Path("o.vcf.html"))
    assert "fig-places" in page
    assert "fig-consequences" in page
    assert "abc" in text
    assert text.count("Aligned bases of related genomes") == 3
    assert " relatives near " in text
    bare = command(capsys, "report", "o.vcf", "-o", "bare.html")
    assert bare[0] == 0, bare
    assert "Aligned bases of related genomes" not in read_text(Path("bare.html"))


@pytest.mark.usefixtures("quick")
def test_what_cannot_be_reported_is_refused(run, case, capsys, monkeypatch):
    assert command(capsys, *words(run, "o.tsv"))[0] == 0

    def refused(*given: object, code: int = 2) -> str:
        found, out, err = command(capsys, "report", *given)
        assert (found, out, err.count("\n")) == (code, "", 1), err
        return err

    assert "not scored" in refused("in.vcf", code=3)
    assert "nothing to report on" in refused()
    assert "--samples is for" in refused("o.tsv", "--samples", "x.fa")
    assert "--model and --fasta are for" in refused(run, "--fasta", "ref.fa")
    assert "--fasta is for logos" in refused("o.tsv", "--fasta", "ref.fa")
    assert "cannot be written as well" in refused("o.tsv", "-o", "o.tsv")
    (case / "other.fa").write_text(FASTA.replace("ACGTT", "ACGTA"))
    assert "is not the genome" in refused("o.tsv", "--model", run, "--fasta", "other.fa")
    told = json.loads((case / "o.tsv.json").read_text())
    (case / "o.tsv.json").write_text(json.dumps({**told, "checkpoint": "0" * 12}))
    assert "the scores are of the model" in refused("o.tsv", "--model", run)
    (case / "o.tsv.json").unlink()
    assert "has no sidecar" in refused("o.tsv", "--model", run, code=3)
    assert command(capsys, "report", "o.tsv")[0] == 0
    assert "no sidecar beside the file" in read_text(case / "o.tsv.html")
    (case / "o.tsv.html").write_text("mine")
    assert "genodiff did not write it" in refused("o.tsv")
    assert command(capsys, "report", "o.tsv", "--force")[0] == 0


@pytest.mark.usefixtures("quick")
def test_a_file_that_was_changed_and_one_without_scores_say_so(run, case, capsys):
    assert command(capsys, *words(run, "o.vcf"))[0] == 0
    lines = (case / "o.vcf").read_text().splitlines()
    (case / "o.vcf").write_text("\n".join(lines[:-1]) + "\n")
    assert command(capsys, "report", "o.vcf")[0] == 0
    assert "was changed since genodiff wrote it" in read_text(case / "o.vcf.html")
    write_vcf(case / "in.vcf", ["chr1\t12\t.\tC\t<DEL>\t.\t.\t."])
    assert command(capsys, *words(run, "none.vcf"))[0] == 0
    assert command(capsys, "report", "none.vcf")[0] == 0
    said = read_text(case / "none.vcf.html")
    assert "No ALT has a score" in said
    assert "1 ALTs: 0 with a score, 1 without" in said
