"""`--plan` of every verb reads headers: nothing is fitted, built, trained, fetched or kept, and it
ends soon, with relatives that nobody has fitted yet, too.

An audit hook notes every file that Python opens, and how. How much of a large file is read is told
by its lines: of the variants only the first are ever parsed.
"""

import os
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import genodiff
from genodiff.io import input_file, variant_source
from tests.commands import exit_code
from tests.finetuning.motif_task import write_tables
from tests.jobs.verb_calls import SUITE, find_words, list_planned, write_inputs
from tests.labelled_files import load_own
from tests.tiny_run import genome_text

pytestmark = pytest.mark.slow
LIMIT = 6.0
"""Seconds of CPU time; about 1 s of it is the timing of the network itself."""
_opened: list[tuple[str, str | int]] | None = None


def _note(event, given: tuple[object, ...]):
    if _opened is None or event != "open" or not isinstance(given[0], str | bytes):
        return
    if "__pycache__" not in (name := os.fsdecode(given[0])):
        writes = isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        _opened.append((name, "w" if writes else "r"))


sys.addaudithook(_note)  # it stays for good, and is quiet outside of `watch`


@contextmanager
def watch():
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
    write_tables(home, 60, 60, labels=("no", "yes"))
    words = ["--train", home / "train.csv", "--test", home / "test.csv", "--out", home / "sweep"]
    assert exit_code("finetune", "table", *words, "--model", "kmer-lr", "-q", "--threads", 1) == 0
    return home


@pytest.fixture
def home(run, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    write_inputs(variants=20_000)
    genodiff.export_checkpoint(run, out="pub")
    shutil.copytree(run, "other")
    for name in ("train.csv", "test.csv"):
        Path(name).write_bytes((fitted / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("verb", list_planned())
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
    words = find_words(verb, run, fitted / "sweep")
    with watch() as opened:
        code = exit_code(*verb.replace("*", SUITE).split(), *words, "--plan", "--threads", "1")
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
        assert "2 to index, 2 genomes to fit" in out or verb in ("align", "constraint")


def test_of_many_variants_the_first_are_read_and_the_rest_is_forecast(home, run, monkeypatch):
    parsed = 0
    parse = variant_source._parse_record

    def count(*given: object):
        nonlocal parsed
        parsed += 1
        return parse(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(variant_source, "_parse_record", count)
    told = genodiff.score(run, "v.vcf", fasta="g.fa", plan=True)
    assert 0.9 < told["records"] / 20_000 < 1.1
    assert 0.9 < told["kinds"]["snv"] / 60_000 < 1.1
    assert parsed < 5 * input_file.VARIANTS
    ref = genome_text().split()[1][49]
    Path("v.csv").write_text("chrom,pos,ref,alt\n" + 30_000 * f"c1,50,{ref},N\n")
    assert 0.9 < genodiff.score(run, "v.csv", fasta="g.fa", plan=True)["records"] / 30_000 < 1.1


def test_of_a_large_genome_without_an_index_the_beginning_is_read(home, run, monkeypatch, caplog):
    monkeypatch.setattr(input_file, "GENOME_BYTES", 1 << 12)
    monkeypatch.setattr("genodiff.io.input_file.BLOCK", 1 << 12)
    told = genodiff.tracks(run, "g.fa", region=["c4:1-500"], out="t", plan=True)
    assert told["bases"] == 500
    assert "the plan reads" in caplog.text
    assert genodiff.score(run, "v.vcf", fasta="g.fa", plan=True)["kinds"]["snv"] > 50_000
    assert not (home / "cache").exists()


def test_of_long_texts_the_beginning_is_read(home, run, monkeypatch, caplog):
    """Annotation and BED, also where what is drawn stands behind what is read."""
    monkeypatch.setattr("genodiff.io.input_file.BLOCK", 1 << 12)
    monkeypatch.setattr(input_file, "TEXT_BYTES", 1 << 12)
    row = "far\tx\tCDS\t31\t60\t.\t+\t0\tID=a{}\n"
    Path("g.gff3").write_text("##gff-version 3\n" + "".join(map(row.format, range(9_000))))
    Path("g.bed").write_text("".join(f"c1\t{i}\t{i + 10}\tx\n" for i in range(3_000)))
    calls: dict[str, Any] = {
        "g.gff3": lambda: genodiff.tracks(
            run, "g.fa", region=["c1:1-500"], genes="g.gff3", out="t", plan=True
        ),
        "g.bed": lambda: genodiff.embed(run, "g.fa", bed="g.bed", out="e.npz", plan=True),
    }
    for name, call in calls.items():
        with watch() as opened:
            call()
        assert f"{name}: the plan reads its first 0 MB" in caplog.text
        assert {how for path, how in opened if path.endswith(name)} == {"r"}
    assert genodiff.score(run, "v.vcf", fasta="g.fa", features="g.gff3", plan=True)["records"]


def test_a_long_plan_names_what_is_quicker_and_what_that_costs(home, run, monkeypatch, capsys):
    monkeypatch.setattr("genodiff.generate.estimate._LONG", -1)
    monkeypatch.setattr("genodiff.studies.compare_request._LONG", -1)
    monkeypatch.setattr("genodiff.studies.compare_request._FEW", 5)
    for words, ways in (
        (
            ("sample", run, "-n", "1", "--length", "500", "-o", "n.fa"),
            ("--steps 8 (", "--stride 64 (", "--steps 1 ("),
        ),
        (
            ("sample", run, "-n", "1", "--length", "60", "-o", "n.fa"),
            ("--steps 64 (", "--steps 1 ("),
        ),
        (("compare", run, "other", "--out", "cmp"), ("--max-windows 5",)),
    ):
        assert exit_code(*words, "--plan", "--threads", "1") == 0
        said = capsys.readouterr().out
        line = next(one for one in said.splitlines() if one.startswith("quicker"))
        assert all(way in line for way in ways), line
        assert ("--stride" in line) == ("--stride 64 (" in ways)


def write_big_tables(form: str):
    """Tables of two classes, the second at their end; returns the words that name them."""
    rows = {
        n: [("ACGTACGTAC"[i % 7 :], "ab"[i > 0.9 * n]) for i in range(n)] for n in (40_000, 9_000)
    }
    for some, name in zip(rows.values(), ("big", "small"), strict=True):
        if form == "folder":
            for i, (letters, label) in enumerate(some[::20]):
                at = Path("set", "train" if name == "big" else "test", label, f"{i}.txt")
                at.parent.mkdir(parents=True, exist_ok=True)
                at.write_text(letters)
        elif form == "fa":
            Path(f"{name}.fa").write_text(
                "".join(f">s{i:05}|{b}\n{a}\n" for i, (a, b) in enumerate(some))
            )
        else:
            frame = pl.DataFrame(some, schema=["sequence", "label"], orient="row")
            getattr(frame, f"write_{form}")(f"{name}.{form}")
    if form == "folder":
        return ["--train", "set"], (2_000, 450)
    return ["--train", f"big.{form}", "--test", f"small.{form}"], tuple(rows)


@pytest.mark.parametrize("form", ["csv", "parquet", "fa", "folder"])
def test_a_plan_forecasts_a_table_by_its_beginning(home, monkeypatch, caplog, form):
    """Also where a class stands behind what is read; a fit of the same data reads them whole."""
    monkeypatch.setattr("genodiff.io.input_file.BLOCK", 1 << 12)
    monkeypatch.setattr(input_file, "TEXT_BYTES", 1 << 14)
    monkeypatch.setattr(input_file, "GENOME_BYTES", 1 << 14)
    words, sizes = write_big_tables(form)
    named = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2], strict=True))
    train = named.pop("train")
    told = genodiff.finetune(train, model="kmer-lr", out="o", plan=True, **named)
    (row,) = told["rows"]
    assert [row["n_train"], row["n_test"]] == pytest.approx(sizes, rel=0.02)
    assert "the plan reads" in caplog.text
    caplog.clear()
    data = load_own(train, named.get("test"))
    assert (data.train.n, data.test.n, data.task.classes) == (*sizes, ("a", "b"))
    assert not caplog.text
