"""Names that mean something elsewhere are refused as outputs before any work, by every verb."""

import pytest

from genodiff.errors import UsageError
from genodiff.io import atomic
from genodiff.io.file_kinds import find_elsewhere
from genodiff.io.target import check_folder, check_new_folder, check_target
from tests.commands import command

ELSEWHERE = [
    "remote:bucket/o.vcf", "%TEMP%/o.vcf",
    "s3://bucket/o.vcf", "gs://b/o.tsv", "https://example.org/o.vcf", "HTTP://h/o", "file:///o.vcf",
    "hf://org/name", "az://c/o", "s3:/bucket/o.vcf", "host:/data/o.vcf", "me@host:o.vcf",
    "~/o.vcf", "~", "~me/o.vcf", "$HOME/o.vcf", "${OUT}/o.vcf", r"C:\Users\me\o.vcf", r"\\server\o",
]  # fmt: skip
HERE = ["o.vcf", "./s3://o.vcf", "chr1:1-100/o.vcf", "a:b.vcf", "/tmp/a:b/o.vcf", "a:b.vcf",
        "sample:1/o.vcf", "~o.vcf~/x", "$1.vcf"]  # fmt: skip
VERBS = {
    "train": "train {fa} --max-steps 1 --out {out}",
    "finetune-table": "finetune table --train {csv} --test {csv} --model majority --out {out}",
    "finetune-bases": "finetune bases yeast {fa} --track a={fa} --out {out}",
    "tokenizer": "data tokenizer {fa} --out {out}",
    "genomes": "data genomes {tsv} --out {out}",
    "relatives": "data relatives {fa} --out {out}",
    "demo": "demo --out {out}",
    "merge": "merge a.vcf b.vcf --out {out}",
    "report": "report a.fa --out {out}",
    "import": "checkpoint import {fa} --out {out}",
    "export": "checkpoint export yeast --out {out}",
    "sample": "sample yeast --out {out}.fa",
    "eval": "eval yeast --out {out}.json",
    "score": "score yeast {vcf} --fasta {fa} --out {out}.vcf",
    "embed": "embed yeast {fa} --out {out}.npz",
    "ism": "ism yeast --fasta {fa} --out {out}.npz",
    "dependencies": "dependencies yeast --fasta {fa} --out {out}.npz",
    "tracks": "tracks yeast --fasta {fa} --out {out}",
    "compare": "compare yeast ecoli --out {out}",
    "redesign": "redesign yeast --fasta {fa} --region a:1-9 --out o.fa --vcf {out}.vcf",
    "scorecard": "scorecard {fa} --real {fa} --html {out}.html",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_of_another_place_is_no_output(name):
    assert find_elsewhere(name)
    for check in (
        check_target,
        check_new_folder,
        lambda x: check_folder(x, [], own=True, force=True),
    ):
        with pytest.raises(UsageError, match="nothing is written there"):
            check(name)
    with pytest.raises(UsageError), atomic.open_atomic(name):
        pass
    with pytest.raises(UsageError), atomic.atomic_directory(name):
        pass


@pytest.mark.parametrize("name", HERE)
def test_other_names_are_files(name):
    assert find_elsewhere(name) is None


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_writes_refuses_addresses(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_text(">a\n" + "ACGTTGCA" * 40 + "\n")
    (tmp_path / "a.csv").write_text("sequence,label\nACGTTGCATG,0\nACGTTGGGTG,1\n" * 3)
    (tmp_path / "a.tsv").write_text("path\na.fa\n")
    (tmp_path / "a.vcf").write_text("##fileformat=VCFv4.2\n")
    named = {kind: f"a.{kind}" for kind in ("fa", "csv", "tsv", "vcf")}
    before = sorted(tmp_path.rglob("*"))
    words = VERBS[verb].format(**named, out="s3://bucket/o").split()
    code, _, said = command(capsys, *words)
    assert code == 2, said
    assert "is an address: nothing is written there" in said
    assert sorted(tmp_path.rglob("*")) == before
