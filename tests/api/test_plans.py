"""`--plan` of every verb reads headers: nothing is fitted, built, trained, fetched or kept, and it
ends soon, with relatives that nobody has fitted yet, too.

An audit hook notes every file that Python opens, and how. How much of a large file is read is told
by its lines: of the variants only the first are ever parsed.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import genodiff
from genodiff.io import planning
from genodiff.jobs.request import list_fields
from genodiff.jobs.verbs import list_verbs
from tests.commands import exit_code
from tests.finetuning.motif_task import examples
from tests.related_genomes import differ
from tests.tiny_run import genome_text

pytestmark = pytest.mark.slow
LIMIT = 6.0
"""Seconds of CPU time; about 1 s of it is the timing of the network itself."""
HEAD = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
RELATED = ("--relatives", "r1.fa", "r2.fa", "--strains")
GENOME = ("--fasta", "g.fa")
PLANS: dict[str, tuple[str, ...]] = {
    "score": ("{run}", "v.vcf", *GENOME, "-o", "o.vcf", *RELATED),
    "tracks": ("{run}", *GENOME, "--region", "c1", "-o", "t", *RELATED),
    "ism": ("{run}", *GENOME, "--region", "c1:1-50", "-o", "i.html", *RELATED),
    "dependencies": ("{run}", *GENOME, "--region", "c1:1-20", "-o", "d.html", *RELATED),
    "embed": ("{run}", *GENOME, "--region", "c1:1-500", "-o", "e.npz", *RELATED),
    "eval": ("{run}", *GENOME, *RELATED),
    "sample": ("{run}", "-n", "2", "--length", "64", "-o", "n.fa", *RELATED),
    "redesign": ("{run}", *GENOME, "--region", "c1:1-30", "-o", "r.fa", *RELATED),
    "constraint": ("g.fa", "--relatives", "r1.fa", "r2.fa", "-o", "k"),
    "compare": ("{run}", "other", "--out", "cmp"),
    "predict": ("{fitted}", "s.fa", "-o", "p.csv", "--seed", "1"),
    "finetune bases": (
        "{run}", "g.fa", "--genes", "g.gff3", "-o", "b", "--core", "60", "--context", "20",
        *RELATED,
    ),
    "finetune table": ("--train", "l.csv", "--test", "l2.csv", "-o", "f", "--model", "{run}"),
    "train": ("own", *GENOME, "-o", "runs/t", "--preset", "caduceus-ps-tiny"),
    "data relatives": ("l.tsv",),
    "data genomes": ("l.tsv",),
    "cache clean": ("--all",),
}  # fmt: skip
_opened: list[tuple[str, str | int]] | None = None


def _note(event: str, given: tuple[object, ...]) -> None:
    if _opened is None or event != "open" or not isinstance(given[0], str | bytes):
        return
    if "__pycache__" not in (name := os.fsdecode(given[0])):
        writes = isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        _opened.append((name, "w" if writes else "r"))


sys.addaudithook(_note)  # it stays for good, and is quiet outside of `watch`


@contextmanager
def watch() -> Iterator[list[tuple[str, str | int]]]:
    """The files that are opened while the block runs, each with r or w."""
    global _opened
    _opened = noted = []
    try:
        yield noted
    finally:
        _opened = None


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A sweep of a counted baseline, and the tables that it was fitted on."""
    home = tmp_path_factory.mktemp("fitted")
    for name, seed in (("l", 1), ("l2", 2)):
        some = examples(60, seed, (20, 30))
        rows = zip(some.names, some.sequences, some.labels, strict=True)
        text = "".join(f"{n},{s.decode()},{'no yes'.split()[y]}\n" for n, s, y in rows)
        (home / f"{name}.csv").write_text("name,seq,label\n" + text)
    words = ["--train", home / "l.csv", "--test", home / "l2.csv", "--out", home / "sweep"]
    assert exit_code("finetune", "table", *words, "--model", "kmer-lr", "-q", "--threads", 1) == 0
    return home


@pytest.fixture
def home(run, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    text = genome_text()
    Path("g.fa").write_text(text)
    for i in (1, 2):
        Path(f"r{i}.fa").write_text(differ(text, 0.1, i))
    Path("l.tsv").write_text("path\tsplit\nr1.fa\ttrain\nr2.fa\ttrain\n")
    Path("g.gff3").write_text("##gff-version 3\nc1\tx\tCDS\t31\t60\t.\t+\t0\tID=a\n")
    row = f"c1\t50\t.\t{text.split()[1][49]}\tG,C,T,A\t.\t.\t.\n"
    Path("v.vcf").write_text(HEAD + 20_000 * row)
    Path("s.fa").write_text(f">s\n{text.split()[1][:25]}\n")
    shutil.copytree(run, "other")
    for name in ("l.csv", "l2.csv"):
        Path(name).write_bytes((fitted / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("verb", PLANS)
def test_a_plan_does_nothing(
    verb, home, run, fitted, monkeypatch,
    capsys,
):  # fmt: skip
    for name in ("open_relatives", "fit_related"):
        monkeypatch.setattr(f"genodiff.runs.related_model.{name}", lambda *_, **__: 1 / 0)
    for name in (
        "memory.memory.write_memory", "data.fetch.fetch_file", "io.fasta_index._build_index",
        "data.dna_store.build_dna_store",
    ):  # fmt: skip
        monkeypatch.setattr(f"genodiff.{name}", lambda *_, **__: 1 / 0)
    before = sorted(home.rglob("*"))
    began = time.process_time()
    words = [word.format(run=run, fitted=fitted / "sweep") for word in PLANS[verb]]
    with watch() as opened:
        code = exit_code(*verb.split(), *words, "--plan", "--threads", "1")
    took = time.process_time() - began
    out, err = capsys.readouterr()
    assert code == 0, err
    assert out
    assert took < LIMIT, f"{verb}: {took:.1f} s"
    assert sorted(home.rglob("*")) == before
    opened = [one for one in opened if not one[0].endswith(".lock")]  # looked for, never made
    inside = {(name, how) for name, how in opened if str(home) in os.path.abspath(name)}
    written = {name for name, how in opened if how == "w" and name != os.devnull}
    assert not {name for name, how in inside if how == "w"}, inside
    assert all(name.startswith(("/dev/", "/proc/", "/tmp/")) for name in written), written
    print(f"{verb}: {took:.1f} s, reads", sorted(os.path.basename(name) for name, _ in inside))
    if "--relatives" in words:
        assert "2 to index, 2 genomes to fit" in out or verb == "constraint"


def test_of_many_variants_the_first_are_read_and_the_rest_is_forecast(home, run, monkeypatch):
    from genodiff.io import vcf

    parsed = 0
    parse = vcf._parse_record

    def count(*given: object) -> object:
        nonlocal parsed
        parsed += 1
        return parse(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(vcf, "_parse_record", count)
    told = genodiff.score(run, "v.vcf", fasta="g.fa", plan=True)
    assert 0.9 < told["records"] / 20_000 < 1.1
    assert 0.9 < told["kinds"]["snv"] / 60_000 < 1.1
    assert parsed < 5 * planning.VARIANTS
    Path("v.csv").write_text("chrom,pos,ref,alt\n" + 30_000 * f"c1,50,{told_ref()},N\n")
    assert 0.9 < genodiff.score(run, "v.csv", fasta="g.fa", plan=True)["records"] / 30_000 < 1.1


def told_ref() -> str:
    return genome_text().split()[1][49]


def test_of_a_large_genome_without_an_index_the_beginning_is_read(home, run, monkeypatch, caplog):
    monkeypatch.setattr(planning, "GENOME_BYTES", 1 << 12)
    monkeypatch.setattr("genodiff.io.input_file.BLOCK", 1 << 12)
    told = genodiff.tracks(run, "g.fa", region=["c4:1-500"], out="t", plan=True)
    assert told["bases"] == 500
    assert "the plan reads" in caplog.text
    assert genodiff.score(run, "v.vcf", fasta="g.fa", plan=True)["kinds"]["snv"] > 50_000
    assert not (home / "cache").exists()


def test_every_verb_with_a_plan_is_here():
    for name, verb in list_verbs().items():
        if "plan" in {one.name for one in list_fields(verb.open())}:
            assert name in PLANS.keys() | {"checkpoint import", "finetune *"}
