"""`--plan` of every verb reads headers: nothing is fitted, built, trained, fetched or kept, and it
ends soon, with relatives that nobody has fitted yet, too."""

import time
from pathlib import Path

import pytest

from genodiff.jobs.request import list_fields
from genodiff.jobs.verbs import list_verbs
from tests.commands import exit_code
from tests.related_genomes import differ
from tests.tiny_run import genome_text

pytestmark = pytest.mark.slow
LIMIT = 6.0
"""Seconds of CPU time; about 1 s of it is the timing of the network itself."""
HEAD = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
RELATED = ("--relatives", "r1.fa", "r2.fa", "--strains")
PLANS: dict[str, tuple[str, ...]] = {
    "score": ("{run}", "v.vcf", "--fasta", "g.fa", "-o", "o.vcf", *RELATED),
    "tracks": ("{run}", "--fasta", "g.fa", "--region", "c1", "-o", "t", *RELATED),
    "ism": ("{run}", "--fasta", "g.fa", "--region", "c1:1-50", "-o", "i.html", *RELATED),
    "dependencies": ("{run}", "--fasta", "g.fa", "--region", "c1:1-20", "-o", "d.html", *RELATED),
    "embed": ("{run}", "--fasta", "g.fa", "--region", "c1:1-500", "-o", "e.npz", *RELATED),
    "eval": ("{run}", "--fasta", "g.fa", *RELATED),
    "sample": ("{run}", "-n", "2", "--length", "64", "-o", "s.fa", *RELATED),
    "redesign": ("{run}", "--fasta", "g.fa", "--region", "c1:1-30", "-o", "r.fa", *RELATED),
    "finetune bases": (
        "{run}", "g.fa", "--genes", "g.gff3", "-o", "b", "--core", "60", "--context", "20",
        *RELATED,
    ),
    "train": ("toy", "-o", "runs/t", "--preset", "caduceus-ps-tiny"),
    "data relatives": ("l.tsv",),
    "data genomes": ("l.tsv",),
    "cache clean": ("--all",),
}  # fmt: skip


@pytest.fixture
def home(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    text = genome_text()
    Path("g.fa").write_text(text)
    for i in (1, 2):
        Path(f"r{i}.fa").write_text(differ(text, 0.1, i))
    Path("l.tsv").write_text("path\tsplit\nr1.fa\ttrain\nr2.fa\ttrain\n")
    Path("g.gff3").write_text("##gff-version 3\nc1\tx\tCDS\t31\t60\t.\t+\t0\tID=a\n")
    Path("v.vcf").write_text(HEAD + f"c1\t50\t.\t{text.split()[1][49]}\tG,C,T,A\t.\t.\t.\n")
    return tmp_path


@pytest.mark.parametrize("verb", PLANS)
def test_a_plan_does_nothing(
    verb: str, home: Path, run: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in ("open_relatives", "fit_related"):
        monkeypatch.setattr(f"genodiff.runs.related_model.{name}", lambda *_, **__: 1 / 0)
    monkeypatch.setattr("genodiff.memory.memory.write_memory", lambda *_, **__: 1 / 0)
    monkeypatch.setattr("genodiff.data.fetch.fetch_file", lambda *_, **__: 1 / 0)
    before = sorted(home.iterdir())
    began = time.process_time()
    words = [word.format(run=run) for word in PLANS[verb]]
    assert exit_code(*verb.split(), *words, "--plan", "--threads", "1") == 0, capsys.readouterr()
    took = time.process_time() - began
    out, err = capsys.readouterr()
    assert out, err
    assert took < LIMIT, f"{verb}: {took:.1f} s"
    made = [one.name for one in sorted(home.iterdir()) if one not in before]
    assert made in ([], ["cache"])
    assert not list(home.glob("cache/memories/*"))
    if "--relatives" in words:
        assert "2 to index, 2 genomes to fit" in out


def test_every_verb_with_a_plan_is_here() -> None:
    others = {"checkpoint import", "compare", "finetune table", "finetune *", "predict"}
    others |= {"constraint"}
    for name, verb in list_verbs().items():
        if "plan" in {one.name for one in list_fields(verb.open())}:
            assert name in PLANS.keys() | others
