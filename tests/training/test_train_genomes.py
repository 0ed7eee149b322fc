"""A run on many genomes: planned, trained, gone on with, evaluated by genome, and
conditional on species."""

import json

import pytest

import genodiff
from genodiff.errors import DataError, UsageError
from tests.commands import command
from tests.data.genomes import write_family, write_list
from tests.tiny_training import TINY

NETWORK = {k: v for k, v in TINY.items() if k != "recipe"} | {"steps": 4, "validate_every": 4}


@pytest.fixture
def listed(tmp_path):
    made = write_family(tmp_path / "fa", n=6, bases=4000)
    rows = [{"path": f"fa/{n}.fa", "species": f"kind {a % 2}"} for n, a in made]
    return write_list(tmp_path / "l.tsv", rows)


def test_a_run_on_genomes_is_conditional_and_evaluated_by_genome(listed, tmp_path):
    asked = NETWORK | {"genomes": listed, "labels": "species", "temperature": 3.0}
    genodiff.train(**asked, out=tmp_path / "whole")
    model = genodiff.load(tmp_path / "whole")
    assert model.config.classes == ("kind_0", "kind_1")
    assert len(model.with_label("kind_1").sample(1, length=30)) == 1
    found = genodiff.evaluate(tmp_path / "whole", split="train", baselines=False, keep=False)
    assert found["contigs"] == {}
    assert len(found["genomes"]) >= 4
    tokens = {name: part["tokens"] for name, part in found["genomes"].items()}
    assert sum(tokens.values()) == found["tokens"]
    total = sum(part["nelbo_nats"] * part["tokens"] for part in found["genomes"].values())
    assert total == pytest.approx(found["nelbo_nats_total"])


@pytest.mark.slow
def test_other_genomes_are_refused_when_a_run_goes_on(listed, tmp_path):
    out = tmp_path / "run"
    genodiff.train(**(NETWORK | {"genomes": listed, "steps": 1}), out=out)
    text = listed.read_text()
    weighed = text.replace("path\tspecies", "path\tspecies\tweight")
    listed.write_text(weighed.replace("kind 0", "kind 0\t2"))
    with pytest.raises(DataError, match=r"sha256|have changed"):
        genodiff.train(resume=out, steps=2)
    listed.write_text(text)
    assert genodiff.train(resume=out, steps=2).step == 2
    fasta = tmp_path / "fa" / "g00.fa"
    fasta.unlink()  # what was built of it serves
    assert genodiff.train(resume=out, steps=3).step == 3


def test_the_plan_says_room_windows_and_shares(listed, capsys):
    words = ("data", "genomes", listed, "--seq-len", 64)
    code, out, _ = command(capsys, *words, "--plan")
    assert code == 0
    assert "6 genomes, 6 to build" in out
    assert "GB are free" in out
    code, out, _ = command(capsys, *words, "--json", "--threads", 1, "-q")
    row = json.loads(out)
    assert sum(genome["share"] for genome in row["genomes"]) == pytest.approx(1, abs=1e-4)
    assert row["windows"]["train"] == sum(g["train_windows"] for g in row["genomes"])
    code, out, _ = command(
        capsys, "train", "--genomes", listed, "--preset", "caduceus-ps-tiny", "--seq-len", 64,
        "--temperature", 2, "--plan", "--json",
    )  # fmt: skip
    planned = json.loads(out)["genomes"]
    assert planned["temperature"] == 2
    assert planned["windows"] == row["windows"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"fasta": "x.fa"}, "excludes a recipe"),
        ({"bed": "x.bed"}, "excludes a recipe"),
        ({"temperature": 0.0}, "temperature"),
    ],
)
def test_what_does_not_go_with_genomes_is_refused(listed, tmp_path, asked, said):
    with pytest.raises(UsageError, match=said):
        genodiff.train(**(NETWORK | {"genomes": listed} | asked), out=tmp_path / "run")


def test_species_and_temperature_need_genomes(listed, tmp_path):
    with pytest.raises(UsageError, match="is of a list of genomes"):
        genodiff.train("toy", labels="species", out=tmp_path / "run")
    with pytest.raises(UsageError, match="give --genomes LIST"):
        genodiff.train("toy", temperature=2.0, out=tmp_path / "run")
    listed.write_text(listed.read_text().replace("kind 1", "kind 0"))
    with pytest.raises(UsageError, match="has one species"):
        genodiff.train(**NETWORK, genomes=listed, labels="species", out=tmp_path / "run")
