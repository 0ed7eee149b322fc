"""README's first three commands run as they stand: by a small model that stands in for `yeast`, and
by the one that comes with the package where no training genome is needed.
"""

import gzip
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import genodiff
from genodiff.io.fasta import read_fasta
from genodiff.runs.resolve import resolve_config
from tests.commands import command
from tests.related_genomes import LETTERS, differ
from tests.tiny_run import NETWORK, save_run

ROOT = Path(__file__).resolve().parents[1]
PACKAGED = ROOT / "genodiff" / "models" / "yeast"


def read_commands() -> list[list[str]]:
    """The words after `genodiff` of the section's commands."""
    section = (ROOT / "README.md").read_text().split("## First results\n")[1].split("\n## ")[0]
    block = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return [shlex.split(line)[1:] for line in block[1].splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A genome of two contigs under the name of yeast's, a relative of it, and variants."""
    base = tmp_path_factory.mktemp("first")
    rng = np.random.default_rng(1)
    bases = {
        n: LETTERS[rng.integers(0, 4, size)] for n, size in (("chrII", 9_000), ("chrXIV", 102_000))
    }
    text = "".join(f">{name}\n{row.tobytes().decode()}\n" for name, row in bases.items())
    for name, genome in (("sacCer3", text), ("paradoxus", differ(text, 0.15, 2))):
        (base / f"{name}.fa.gz").write_bytes(gzip.compress(genome.encode()))
    lines = ["##fileformat=VCFv4.2", "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"]
    for at in (100_100, 100_200, 100_300):
        ref = chr(bases["chrXIV"][at - 1])
        alt = "ACGT"[("ACGT".index(ref) + 1) % 4]
        lines.append(f"chrXIV\t{at}\t.\t{ref}\t{alt}\t.\t.\t.")
    (base / "variants.vcf").write_text("\n".join(lines) + "\n")
    given = {"recipe": "own", "fasta": str(base / "sacCer3.fa.gz"), "backbone": NETWORK}
    run = save_run(base / "run", resolve_config(given | {"data": {"seq_len": 256}}))
    genodiff.export_checkpoint(run, out=base / "models" / "yeast", format="safetensors", half=True)
    return base


def judge_scores(folder: Path) -> None:
    records = [x for x in (folder / "scored.vcf").read_text().splitlines() if x[0] != "#"]
    assert len(records) == 3
    assert all("GD_SCORE=" in one for one in records)


def judge(folder: Path) -> None:
    """What the three commands left: scores, a page of tracks, designs that keep the rules."""
    judge_scores(folder)
    assert (folder / "tracks" / "tracks.html").is_file()
    designs = [one.sequence.decode() for one in read_fasta(folder / "designs.fa")]
    assert len(designs) == 2
    for one in designs:
        assert "GAATTC" not in one
        assert 0.35 <= sum(base in "GC" for base in one) / len(one) <= 0.45


def run_all(folder: Path, words: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    for one in words:
        code, _, err = command(capsys, *one)
        assert code == 0, err


def test_the_three_commands_of_the_readme_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GENODIFF_MODELS", str(folder / "models"))
    words = read_commands()
    assert [one[0] for one in words] == ["score", "tracks", "redesign"]
    assert all("yeast" in one for one in words)
    run_all(folder, words, capsys)
    judge(folder)
    assert (folder / "scored.vcf").read_text().count("GD_VOTES=") == 3


@pytest.mark.parametrize(
    "some", [pytest.param(False, marks=pytest.mark.slow, id="all"), pytest.param(True, id="score")]
)
@pytest.mark.skipif(not PACKAGED.is_dir(), reason="no yeast in the package yet")
def test_they_run_by_the_model_of_the_package(
    some: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GENODIFF_MODELS", raising=False)
    words = read_commands()
    at = words[0].index("--relatives")
    del words[0][at : at + 2]  # they are fitted to the genome of yeast, which is not here
    run_all(folder, [[*one, "--force"] for one in words[: 1 if some else 3]], capsys)
    (judge_scores if some else judge)(folder)
