"""The model `none`: related genomes alone, wherever a verb takes the name of a model."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import genodiff
from genodiff.errors import UsageError
from genodiff.runs.no_network import measure_gc
from genodiff.runs.related_backbone import BaseComposition
from genodiff.scoring.masked_reader import open_reader
from tests.commands import command
from tests.conservation.constraint_world import LENGTH, SLOW, World, spell, write_world
from tests.tiny_run import write_fasta, write_vcf


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def sites(world):
    letters = world.genome.read_text().splitlines()[1]
    turned = letters.translate(str.maketrans("ACGT", "GTAC"))
    rows = [f"chr1 {i + 1} {letters[i]} {turned[i]}" for i in range(100, LENGTH - 100, 60)]
    return write_vcf(world.genome.with_name("sites.vcf"), rows)


def measure_bits(model: genodiff.Model, world: World) -> float:
    """Of chr1, which relatives have."""
    split = world.genome.with_name("split.bed")
    split.write_text(f"chr1\t0\t{LENGTH}\ttest\n")
    told = genodiff.evaluate(
        model, split="test", fasta=world.genome, bed=split, baselines=False, repeats=2
    )
    return float(told["bits_per_base"])


def test_none_is_base_composition_and_relatives_are_told(world):
    alone = genodiff.load("none", fasta=world.genome)
    text = world.genome.read_text().splitlines()
    codes = np.array(["ACGT".index(c) for c in text[1] + text[3]], np.uint8)
    gc = measure_gc(codes)
    network = alone.inner.backbone
    assert isinstance(network, BaseComposition)
    p = network.logits[list(alone.inner.alphabet.targets)].exp().tolist()
    np.testing.assert_allclose(p, np.array([1 - gc, gc, gc, 1 - gc]) / 2, atol=0.005)
    told = genodiff.load("none", fasta=world.genome, relatives=[world.relatives[0]])
    assert measure_bits(alone, world) == pytest.approx(2, abs=0.02)
    assert measure_bits(told, world) < 1.2


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["another genome", "reversed"])
def test_a_genome_that_is_no_relative_changes_no_bits(world, tmp_path, kind):
    letters = world.genome.read_text().splitlines()[1]
    noise = spell(np.random.default_rng(8).integers(0, 4, LENGTH))
    near = world.relatives[0].read_text().splitlines()[1]
    other = write_fasta(tmp_path / "x.fa", {"x": noise if kind == "another genome" else near[::-1]})
    assert len(letters) == len(near)
    alone = genodiff.load("none", fasta=world.genome)
    with_other = genodiff.load("none", fasta=world.genome, relatives=[other])
    assert measure_bits(with_other, world) == pytest.approx(measure_bits(alone, world), abs=0.002)


@pytest.mark.slow
def test_score_tells_slow_sites(world, sites, tmp_path, capsys):
    words = ["score", "none", "--fasta", world.genome, "--variants", sites, "-q"]
    words += ["--relatives", *world.relatives]
    code, out, _ = command(capsys, *words, "--plan", "-o", tmp_path / "all.tsv")
    assert (code, list(tmp_path.iterdir())) == (0, [])
    assert "relatives" in out
    assert command(capsys, *words, "-o", tmp_path / "all.tsv")[0] == 0
    frame = pl.read_csv(tmp_path / "all.tsv", separator="\t", skip_rows=1, null_values=".")
    slow = np.zeros(LENGTH, bool)
    for start, end in SLOW:
        slow[start:end] = True
    at = slow[frame["Pos"].to_numpy() - 1]
    score = frame["RawScore"].to_numpy()
    assert score[at].mean() < score[~at].mean() - 1
    told = json.loads((tmp_path / "all.tsv.json").read_text())
    assert told["model"] == "none"


@pytest.mark.slow
def test_maps_tracks_and_samples_are_made_without_a_network(world, tmp_path, capsys):
    near = ["--relatives", world.relatives[0], "-q"]
    region = ["--region", "chr1:3001-3200"]
    at = ["none", "--fasta", world.genome, *region, *near]
    assert command(capsys, "ism", *at, "-o", tmp_path / "ism.tsv")[0] == 0
    assert pl.read_csv(tmp_path / "ism.tsv", separator="\t").height == 200 * 3
    more = ["--format", "parquet", "-o", tmp_path / "tracks"]
    assert command(capsys, "tracks", *at, *more)[0] == 0
    fill = ["--template", world.genome, *region, *near, "--fasta", tmp_path / "new.fa"]
    assert command(capsys, "sample", "none", *fill, "--only-filled")[0] == 0
    new = "".join((tmp_path / "new.fa").read_text().splitlines()[1:])
    old = world.genome.read_text().splitlines()[1][3000:3200]
    assert len(new) == 200
    assert sum(a == b for a, b in zip(new, old, strict=True)) > 130


@pytest.mark.slow
def test_torch_is_not_imported(world, sites, tmp_path):
    at = ["--fasta", str(world.genome), "--relatives", str(world.relatives[0]), "-q"]
    score = ["score", "none", str(sites), *at, "-o"]
    region = [*at, "--region", "chr1:3001-3040", "-o"]
    commands = [
        [*score, str(tmp_path / "a.vcf"), "--plan"],
        [*score, str(tmp_path / "a.vcf"), "--background", "100"],
        [*score, str(tmp_path / "a.tsv"), "--method", "llr"],
        [*score, str(tmp_path / "a.parquet"), "--method", "chain", "--exact", "--context", "2x"],
        ["tracks", "none", *region, str(tmp_path / "tracks"), "--format", "wig"],
        ["ism", "none", *region, str(tmp_path / "ism.tsv")],
    ]
    given = {"fasta": str(world.genome), "relatives": [str(one) for one in world.relatives]}
    python = [
        f"genodiff.score('none', {str(sites)!r}, out={str(tmp_path / 'b.tsv')!r}, **given)",
        "model = genodiff.load('none', **given)",
        f"model.score_variants({str(sites)!r}, fasta=given['fasta'])",
        "model.ism(given['fasta'], region='chr1:3001-3020')",
        "model.tracks(given['fasta'], region='chr1:3001-3020')",
    ]
    code = "import sys, genodiff, genodiff.runs.related_genome as fit; fit.FIT_WINDOWS = 16\n"
    code += f"from genodiff.cli import main\ngiven = {given!r}\n"
    code += "\n".join([*(f"main({words!r})" for words in commands), *python, ""])
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["alone", "with relatives"])
def test_numpy_reads_what_the_network_of_torch_says(world, kind):
    near = [world.relatives[0]] if kind == "with relatives" else []
    model = genodiff.load("none", fasta=world.genome, relatives=near).inner
    ids = model.alphabet.encode(world.genome.read_text().splitlines()[1][3000:3500])
    ids[np.random.default_rng(1).random(500) < 0.3] = model.alphabet.mask_id
    (found,) = open_reader(model).read([ids])
    (asked,) = open_reader(model._replace(network=model.backbone)).read([ids])
    assert len(found) > 100
    np.testing.assert_allclose(found, asked, rtol=0, atol=1e-14)


def test_a_folder_of_that_name_is_the_folder(here):
    (here / "none").mkdir()
    with pytest.raises(genodiff.errors.GenodiffError, match="none"):
        genodiff.load("none")


def test_features_are_refused():
    with pytest.raises(UsageError, match="no network"):
        genodiff.load("none").inner.backbone.features()
