"""What `--relatives` takes: recipes by name, lists, FASTA files and built folders."""

import json
import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

import genodiff
from genodiff.data import fetch
from genodiff.data.fetch import find_local_path
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.recipe import Source
from genodiff.errors import DataError, MachineError
from genodiff.io.file_kinds import sha256_file
from genodiff.models.opening import open_language
from genodiff.runs.known_contigs import hash_letters
from genodiff.runs.relative_lists import list_genomes, list_relative_recipes
from genodiff.runs.relatives import read_genome_text
from tests.commands import SERVER, check_refused, command, succeed
from tests.data.genomes import read_tree, write_list
from tests.tiny_run import differ, genome_text

NAMES = [
    "brassicales", "drosophila", "ecoli", "mammals", "nematodes", "primates", "saccharomyces",
    "sarbecoviruses",
]  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of its own with a cache, a near and a far relative of the tiny run's genome."""
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "near.fa").write_text(differ(genome_text(), 0.12, 2))
    (tmp_path / "far.fa").write_text(differ(genome_text(), 0.2, 3))
    return tmp_path


@pytest.fixture
def recipe(here, monkeypatch):
    """A recipe `two` of near (fetched already) and far (to be fetched, and nobody can)."""
    folder = here / "recipes" / "relatives"
    folder.mkdir(parents=True)
    monkeypatch.setattr(
        "genodiff.runs.relative_lists.list_recipe_folders", lambda: [here / "recipes"]
    )
    monkeypatch.setattr(fetch, "PAUSE", 0.001)
    rows = [
        {"path": f"https://127.0.0.1:1/{name}.fa", "name": name, "species": f"S {name}"}
        | {"bases": "14301", "tried": tried}
        for name, tried in (("near", "yes"), ("far", "no"))
    ]
    path = write_list(folder / "two.tsv", rows)
    path.write_text("# For tests: two genomes.\n" + path.read_text())
    put_fetched(rows[0]["path"], here / "near.fa")
    return path


def put_fetched(url: str, file: Path) -> None:
    """Put a file where one that was fetched from `url` would lie."""
    path = find_local_path(Source(url=url, filename=file.name, licence="none"))
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, path)
    record = {"url": url, "bytes": file.stat().st_size, "sha256": sha256_file(file)}
    path.with_name(f"{path.name}.json").write_text(json.dumps(record))


def test_the_recipes_are_lists_that_say_what_is_known_and_what_was_never_tried():
    recipes = list_relative_recipes()
    assert [one.name for one in recipes] == NAMES
    for one in recipes:
        listed = read_genome_list(one.path)
        assert one.description.startswith("For "), one.name
        assert len(listed.rows) >= 4
        for row in listed.rows:
            assert row.is_remote
            assert row.bases > 10_000
            assert row.species
            assert not row.is_tried  # no network where they were written: say yes when one was had


def test_a_recipe_is_planned_before_anything_is_fetched(here, capsys):
    out = succeed(capsys, "data", "relatives", "saccharomyces", "--plan")
    assert "CBS432 " in out
    assert "12.02 Mb  to fetch, untried" in out
    for word in ("disk ", "memory ", "time ", "untried: 8 URLs"):
        assert word in out
    out = succeed(capsys, "data", "relatives", "saccharomyces", "--plan", "--json")
    told = json.loads(out)
    assert told["to_build"] == 8
    assert {one["state"] for one in told["genomes"]} == {"to fetch"}
    assert told["disk_bytes"] > 1.1 * sum(one["bases"] for one in told["genomes"])
    assert not (here / "cache" / "memories").exists()


def test_what_is_too_large_for_this_machine_is_said_and_not_begun(here, monkeypatch, capsys):
    for module in ("relatives_plan", "relatives"):
        monkeypatch.setattr(f"genodiff.runs.{module}.read_memory", lambda: (10**10, 10**9))
    out = command(capsys, "data", "relatives", "primates", "--plan")[1]
    assert "too large for this machine: 8 GB of memory are needed, and 1 GB free" in out
    words, said = ["data", "relatives", "primates"], "calJac4 is too large for this machine"
    check_refused(capsys, words, 5, said)
    write_list(here / "l.tsv", [{"path": "near.fa"}])
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(MachineError, match="about 22 kB are needed, and 1 kB are free"):
        genodiff.build_relatives("l.tsv")


def test_recipes_are_told_without_a_name(here, capsys):
    out = succeed(capsys, "data", "relatives")
    assert [line.split()[0] for line in out.splitlines()] == NAMES


def test_a_recipe_goes_by_its_name_when_it_is_built(run, recipe, capsys):
    with pytest.raises(DataError, match="2 of the 2 relatives of two are not here") as fault:
        open_language(run, "cpu", ["two"])
    assert fault.value.fix == "genodiff data relatives two"
    code, out, err = command(capsys, "data", "relatives", "two", "--threads", 1)
    assert (code, out) == (3, "")
    assert "far.fa of the genome far (from a URL that nobody has tried yet) is not on this" in err
    assert "line 4" in err
    with pytest.raises(DataError, match=r"1 of the 2 relatives of two are not here \(far\)"):
        open_language(run, "cpu", ["two"])
    put_fetched("https://127.0.0.1:1/far.fa", Path("far.fa"))
    out = succeed(capsys, "data", "relatives", "two", "--threads", 1)
    assert out.splitlines()[-1] == "give --relatives two"
    model = open_language(run, "cpu", ["two"])
    assert [one["name"] for one in model.relatives["genomes"]] == ["far", "near"]
    row = genodiff.list_relatives()[0]
    assert (row["name"], row["genomes"], row["built"]) == ("two", 2, 2)


def test_a_part_of_a_recipe_is_built_in_a_folder_that_may_be_moved(run, recipe, here):
    built = genodiff.build_relatives("two", only=["near"], out="mine", jobs=1)
    assert [one["state"] for one in built.row["genomes"]] == ["built"]
    direct = open_language(run, "cpu", ["near.fa"])
    shutil.rmtree(here / "cache")
    (here / "mine").rename(here / "moved")
    moved = open_language(run, "cpu", ["moved"])
    assert moved.digest == open_language(run, "cpu", ["moved"]).digest
    assert direct.relatives is not None
    genomes = [one.relatives["genomes"][0]["fingerprint"] for one in (direct, moved)]
    assert genomes[0] == genomes[1]
    assert moved.relatives["genomes"][0]["species"] == "S_near"


@pytest.mark.slow
def test_a_killed_build_goes_on_to_the_same_bytes(here):
    rows = [{"path": f"{name}.fa"} for name in ("near", "far")]
    write_list(here / "l.tsv", rows)
    words = ["data", "relatives", "l.tsv", "--out", "mine", "--jobs", "1"]
    for moment in (9, 30):  # within the first and the second genome
        env = os.environ | {"GENODIFF_CRASH_AT": str(moment)}
        assert SERVER.run(words, env=env).returncode == -signal.SIGKILL
    genodiff.build_relatives("l.tsv", out="mine", jobs=2)
    genodiff.build_relatives("l.tsv", out="whole", jobs=1)
    whole = read_tree(here / "whole")
    assert read_tree(here / "mine") == whole


def test_letters_are_those_of_the_bases_whatever_the_file(here):
    text = Path("near.fa").read_text()
    bodies = [one.split("\n", 1)[1].replace("\n", "") for one in text[1:].split(">")]
    lines = [[body.lower()[j : j + 50] for j in range(0, len(body), 50)] for body in bodies[::-1]]
    turned = "".join("\n".join([f">x{i}", *some, ""]) for i, some in enumerate(lines))
    Path("other.fa").write_text(turned)
    one, two = (hash_letters(read_genome_text(Path(f"{x}.fa"))[1]) for x in ("near", "other"))
    assert one == two
    write_list(here / "l.tsv", [{"path": "other.fa", "letters": one}])
    genodiff.build_relatives("l.tsv", jobs=1)
    for built in ("other", "far"):  # one that is built already, and one that is not
        write_list(here / "l.tsv", [{"path": f"{built}.fa", "letters": "0" * 64}])
        with pytest.raises(DataError, match="its bases have the sha256"):
            genodiff.build_relatives("l.tsv", jobs=1)


LIST = "path\tname\tspecies\tsha256\n"
FAULTS = {
    "no list": (None, ["gone.tsv"], "gone.tsv: no such file"),
    "no file": (None, ["gone.fa"], "gone.fa: is not there"),
    "no recipe": (None, ["sacharomyces"], "did you mean 'saccharomyces'?"),
    "no relatives in a folder": (None, ["empty"], "empty: is a folder without relatives"),
    "a genome twice": (LIST + "near.fa\tx\nnear.fa\ty\n", ["l.tsv"], "x and y are the same genome"),
    "a wrong hash": (LIST + f"near.fa\tx\t\t{'0' * 64}\n", ["l.tsv"], ", not 0000"),
    "protein": (">p\nMKVLLEMKVLLE\n", ["l.fa"], "l.fa"),
    "the genome itself": (genome_text(), ["l.fa"], "l holds c1 of the genome itself"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_cannot_be_relatives_is_one_line_and_nothing_is_half_written(name, run, here, capsys):
    content, given, said = FAULTS[name]
    (here / "empty").mkdir()
    if content is not None:
        (here / given[0]).write_text(content)
    before = sorted(here.glob("*"))
    words = [word for one in given for word in ("--relatives", one)]
    options = ("--max-windows", 2, "--no-baselines", "--out", "e.json", "--threads", 1)
    code, out, err = command(capsys, "eval", run, *words, *options)
    lines = [line for line in err.splitlines() if "error: " in line]
    assert (code in (2, 3), out, len(lines)) == (True, "", 1), err
    assert said in lines[0]
    if name != "the genome itself":
        code, out, err = command(capsys, "data", "relatives", *given, "--out", "mine")
        lines = [line for line in err.splitlines() if "error: " in line]
        assert (code, out, len(lines)) == (3, "", 1), err
        assert said in lines[0]
        assert not (here / "mine" / "relatives.json").exists()
    assert sorted({*here.glob("*")} - {here / "mine", here / "cache"}) == [
        one for one in before if one.name != "cache"
    ]


def test_a_list_may_be_mixed_with_files_and_names_are_sorted(here):
    write_list(here / "l.tsv", [{"path": "near.fa"}])
    assert [row.name for row in list_genomes(["l.tsv", "far.fa"]).rows] == ["far", "near"]
    (here / "all").mkdir()
    for name in ("near.fa", "far.fa"):
        (here / "all" / name).symlink_to(here / name)
    (here / "all" / "notes.md").touch()
    assert [row.name for row in list_genomes(["all"]).rows] == ["far", "near"]
    with pytest.raises(DataError, match="two relatives are called near"):
        list_genomes(["l.tsv", "near.fa"])
