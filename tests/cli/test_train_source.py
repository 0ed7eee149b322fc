"""`train FILE`: a user's own file in the recipe's place, and what does not go together."""

import gzip
import random

import pytest
import yaml

import genodiff
from tests.commands import command

TINY = [
    "--preset", "caduceus-ps-tiny", "--seq-len", "64", "--batch-size", "2", "--max-steps", "1",
    "--validate-windows", "2",
]  # fmt: skip


@pytest.fixture
def genome(tmp_path, monkeypatch):
    """A small random genome in the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    draws = random.Random(1)
    lines = ["".join(draws.choices("ACGT", k=80)) for _ in range(150)]
    path = tmp_path / "mine.fa"
    path.write_text(">chr1\n" + "\n".join(lines) + "\n")
    return path


def test_a_fasta_stands_in_the_recipes_place_also_compressed(genome, tmp_path, capsys):
    (tmp_path / "zipped.fa.gz").write_bytes(gzip.compress(genome.read_bytes()))
    (tmp_path / "odd.name").write_bytes(genome.read_bytes())  # known by its content
    for name in ("mine.fa", "zipped.fa.gz", "odd.name"):
        code, _, err = command(capsys, "train", name, *TINY)
        assert code == 0, err
        run = tmp_path / "runs" / f"{name.split('.')[0]}-caduceus-ps-tiny"
        written = yaml.safe_load((run / "config.yaml").read_text())
        assert (written["recipe"], written["fasta"]) == ("own", str(tmp_path / name))


def test_the_door_trains_the_same_run(genome, tmp_path):
    done = genodiff.train(
        genome, preset="caduceus-ps-tiny", seq_len=64, batch_size=2, max_steps=1,
        validate_windows=2, out=tmp_path / "x",
    )  # fmt: skip
    assert (done.run, done.step, done.already_done) == (tmp_path / "x", 1, False)
    assert genodiff.train(resume=tmp_path / "x").already_done
    with pytest.raises(genodiff.errors.UsageError, match="unknown setting 'sep_len'"):
        genodiff.train(genome, sep_len=64)
