"""`genodiff report` of scored variants, from outside: every form, shards, logos, refusals."""

import json
import re
from pathlib import Path

import pytest

import genodiff
from tests.cli.test_score_cli import FASTA, N_ALTS, case, quick, words, write_vcf
from tests.commands import command

__all__ = ["case", "quick"]

Capture = pytest.CaptureFixture[str]


def read_text(page: Path) -> str:
    """What a page says, without its pictures and marks."""
    body = re.sub(r"<(style|svg)\b.*?</\1>", " ", page.read_text(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_every_form_and_merged_shards_say_the_same(run: Path, case: Path, capsys: Capture) -> None:
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
    assert f"8 records with {N_ALTS} ALTs were read, {N_ALTS} ALTs are in the file" in text
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
    assert text.split("Where this comes from")[0] == merged.split("Where this comes from")[0]


def test_a_model_adds_logos_and_second_draws(run: Path, case: Path, capsys: Capture) -> None:
    write_vcf(case / "in.vcf", ["chr1\t5\t.\tT\tA\t.\t.\t.", "chr1\t20\t.\tC\tCACGT\t.\t.\t."])
    assert command(capsys, *words(run, "o.tsv", "--method", "nelbo", "--se", 5))[0] == 0
    code, _, err = command(capsys, "report", "o.tsv", "--model", run, "--top", 2)
    assert code == 0, err
    page = (case / "o.tsv.html").read_text()
    assert page.count('id="top-1-ref-A"') == page.count('id="top-2-alt-T"') == 1
    assert "variants were scored again with other random draws" in read_text(case / "o.tsv.html")
    assert "fig-errors" in page
    assert "no logos" not in page
    assert genodiff.report("o.tsv", model=run, top=1) == Path("o.tsv.html")
    assert 'id="top-2-ref-A"' not in (case / "o.tsv.html").read_text()


@pytest.mark.usefixtures("quick")
def test_what_cannot_be_reported_is_refused(
    run: Path, case: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_file_that_was_changed_and_one_without_scores_say_so(
    run: Path, case: Path, capsys: Capture
) -> None:
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
