"""Names that mean something elsewhere are refused as outputs before any work, by every verb."""

from pathlib import Path

import pytest

from genodiff.errors import UsageError
from genodiff.io import atomic
from genodiff.io.file_kinds import find_elsewhere
from genodiff.io.target import check_folder, check_new_folder, check_target
from genodiff.jobs.request import list_fields, list_kinds
from genodiff.jobs.verbs import list_verbs
from tests.commands import command
from tests.jobs.usual_words import list_usual_words

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
def test_an_address_is_refused_by_every_option(verb, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    request = list_verbs()[verb].open()
    option = next(one for one in list_fields(request) if one.name == name)
    words = list_usual_words(request, Path("yeast"), tmp_path, leave_out=name)
    if verb in WORDS and option.is_output:
        words = [
            one
            for one in WORDS[verb].split()
            if name not in ("out", "fasta") or one not in ("-o", "n.fa")
        ]
    verb = verb.replace("*", "gue")
    before = sorted(tmp_path.rglob("*"))
    for address in SCHEMES if option.is_output else SCHEMES[:1]:
        code, _, said = command(capsys, *verb.split(), *words, option.flags[0], address)
        assert code in ((2,) if option.is_output else (2, 3, 4)), said
        assert len([line for line in said.splitlines() if "error" in line]) == 1, said
        if option.is_output:
            assert "nothing is written there" in said
        assert sorted(tmp_path.rglob("*")) == before
