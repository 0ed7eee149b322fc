"""Names of files: those of another place are no output of any verb; others may be no UTF-8."""

import io
import json
import os
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

import genodiff
from genodiff.errors import DataError, UsageError
from genodiff.io import atomic, input_file
from genodiff.io.file_kinds import encode_text, find_elsewhere, find_plain_path
from genodiff.io.input_file import open_input
from genodiff.io.process import open_missing_streams
from genodiff.io.target import check_folder, check_new_folder, check_target, is_own_file, seal_page
from genodiff.jobs.request import list_fields, list_kinds
from genodiff.jobs.verbs import list_verbs
from genodiff.runs.sealed_files import to_utf8
from tests.commands import command, exit_code
from tests.jobs.verb_calls import list_usual_words
from tests.tiny_run import change_base, write_run, write_vcf

ELSEWHERE = [
    "remote:bucket/o.vcf", "%TEMP%/o.vcf",
    "s3://bucket/o.vcf", "gs://b/o.tsv", "https://example.org/o.vcf", "HTTP://h/o", "file:///o.vcf",
    "hf://org/name", "az://c/o", "s3:/bucket/o.vcf", "host:/data/o.vcf", "me@host:o.vcf",
    "~/o.vcf", "~", "~me/o.vcf", "$HOME/o.vcf", "${OUT}/o.vcf", r"C:\Users\me\o.vcf", r"\\server\o",
    "file:o.vcf", "$OUT", "$(pwd)/o.vcf", "`pwd`/o.vcf", "{out}/o.vcf", "<out>/o.vcf",
]  # fmt: skip
HERE = (
    "o.vcf ./s3://o.vcf chr1:1-100/o.vcf a:b.vcf /tmp/a:b/o.vcf sample:1/o.vcf ~o.vcf~/x $(id).fa "
    "`id`.fa {x}.fa $OUT.vcf $1.vcf"
).split()
SCHEMES = ("s3://bucket/o", "memory://o", "file:///tmp/o", "https://example.org/o")
PATHS = [
    (verb, one.name)
    for verb, about in list_verbs().items()
    for one in list_fields(about.open())
    if one.is_output or Path in list_kinds(one.kind)
]
"""Every option of every verb that names a file or a folder."""
WORDS = {
    "train": "own", "predict": "yeast usual.fa", "sample": "yeast -o n.fa",
    "finetune table": "--train usual.fa --test usual.fa --model cnn", "finetune *": "--model cnn",
}  # fmt: skip
"""Of verbs that need more than their fields without a default."""


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


@pytest.mark.few(12)
@pytest.mark.parametrize(("verb", "name"), PATHS)
def test_an_address_is_refused_by_every_option(verb, name, here, capsys):
    request = list_verbs()[verb].open()
    option = next(one for one in list_fields(request) if one.name == name)
    words = list_usual_words(request, Path("yeast"), here, leave_out=name)
    if verb in WORDS and option.is_output:
        words = [
            one
            for one in WORDS[verb].split()
            if name not in ("out", "fasta") or one not in ("-o", "n.fa")
        ]
    verb = verb.replace("*", "gue")
    before = sorted(here.rglob("*"))
    for address in SCHEMES if option.is_output else SCHEMES[:1]:
        code, _, said = command(capsys, *verb.split(), *words, option.flags[0], address)
        assert code in ((2,) if option.is_output else (2, 3, 4)), said
        assert len([line for line in said.splitlines() if "error" in line]) == 1, said
        if option.is_output:
            assert "nothing is written there" in said
        assert sorted(here.rglob("*")) == before


NAME = "g\udce9nome"  # the byte 0xE9


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A folder with such a name, and in it a run and its genome."""
    folder = tmp_path_factory.mktemp("names") / NAME
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has names of UTF-8 only")
    write_run(folder)
    return folder


def test_json_and_yaml_give_the_same_name_back(tmp_path):
    atomic.write_json(tmp_path / "a.json", {"fasta": NAME})
    assert (tmp_path / "a.json").read_bytes() == b'{\n  "fasta": "g\\udce9nome"\n}\n'
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"fasta": NAME}
    text = encode_text(yaml.safe_dump({"fasta": NAME}, allow_unicode=True))
    assert yaml.safe_load(text.decode()) == {"fasta": NAME}


def test_a_page_with_such_a_name_is_known_as_ours(tmp_path):
    atomic.write_text(tmp_path / "page.html", seal_page(f"<p>{NAME}</p>"))
    assert is_own_file(tmp_path / "page.html")


def test_names_of_a_c_locale_become_text_and_others_keep_their_bytes():
    assert to_utf8({"a": ["\udcc3\udcbc", NAME]}) == {"a": ["ü", NAME]}


def test_a_plain_path_leads_to_the_file_whether_it_is_there_or_not(odd):
    assert find_plain_path(odd.parent) == str(odd.parent)
    (odd / "there.txt").write_text("yes")
    assert Path(find_plain_path(odd / "there.txt")).read_text() == "yes"
    found = find_plain_path(odd / f"{NAME}.txt")
    assert found.isascii()
    assert found.endswith(".txt")
    Path(found).write_text("made")
    assert (odd / f"{NAME}.txt").read_text() == "made"


def test_embeddings_are_written_beside_such_a_name(odd):
    out = odd / f"{NAME}.parquet"
    words = ["embed", odd / "run", "--fasta", odd / "genome.fa", "-o", out, "--threads", 1, "-q"]
    assert exit_code(*words) == 0
    assert f'"{odd.parent}/g\\udce9nome/genome.fa"' in Path(f"{out}.json").read_text()
    assert out.exists()
    assert not list(odd.glob("*.partial"))


def test_a_bigwig_is_written_into_such_a_folder(odd):
    bigwig = pytest.importorskip("pyBigWig")
    words = ["tracks", odd / "run", "--fasta", odd / "genome.fa", "--region", "c1:1-20"]
    assert exit_code(*words, "-o", odd / "tracks", "--threads", 1, "-q") == 0
    with bigwig.open(find_plain_path(odd / "tracks" / "p_A.bw")) as track:
        assert track.chroms("c1") == 6000
        assert sum(track.values("c1", 0, 20)) > 0


def test_scores_name_such_files_and_are_read_back(odd):
    write_vcf(odd / f"{NAME}.vcf", [change_base(odd / "genome.fa", "c1", 100)])
    for ending in ("vcf", "parquet"):
        words = ["score", odd / f"{NAME}.vcf", "--model", odd / "run", "--fasta"]
        words += [odd / "genome.fa", "-o", odd / f"scores.{ending}", "--threads", 1, "-q"]
        assert exit_code(*words) == 0
    told = json.loads((odd / "scores.vcf.json").read_bytes())
    assert told["variants"]["path"] == str(odd / f"{NAME}.vcf")
    assert pl.read_parquet((odd / "scores.parquet").read_bytes())["pos"].to_list() == [100]


def test_runs_of_such_names_are_compared_and_their_pages_written(odd, run):
    words = ["compare", odd / "run", run, "--max-windows", 1, "--fasta", odd / "genome.fa"]
    assert exit_code(*words, "--out", odd / "compared", "--threads", 1, "-q") == 0
    assert "table.md" in os.listdir(odd / "compared")
    assert genodiff.load(odd / "run").network is not None


def test_a_name_that_the_locale_cannot_hold_is_one_line(monkeypatch):
    def refuse(path: str) -> None:
        str(path).encode("ascii")

    monkeypatch.setattr(input_file.os, "stat", refuse)
    with pytest.raises(DataError, match=r"cannot be named in this locale.*set LC_ALL=C\.UTF-8"):
        open_input("ü.fa").__enter__()


def test_stdout_of_a_locale_without_utf_8_escapes_what_it_lacks(monkeypatch):
    held = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, encoding="ascii"))
    open_missing_streams()
    print(f"≤ {NAME}", flush=True)
    assert held.getvalue() == b"\\u2264 g\\udce9nome\n"
