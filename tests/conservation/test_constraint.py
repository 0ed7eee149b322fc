"""`genodiff constraint`: from FASTA files to tracks, elements and an alignment."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from Bio import AlignIO

import genodiff
from tests.commands import command
from tests.conservation.constraint_world import LENGTH, SLOW, World, stop_at, write_world
from tests.tiny_run import write_fasta

FORMATS = ("parquet", "wig", "bigwig")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def whole(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "whole"
    run(world, out)  # the fit serves the other tests
    return out


def read(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.suffix != ".json"}


def table(folder: Path) -> dict[str, Any]:
    frame = pl.read_parquet(folder / "tracks.parquet").filter(pl.col("contig") == "chr1")
    assert frame["pos"].to_list() == list(range(1, LENGTH + 1))
    return {name: frame[name].to_numpy() for name in frame.columns}


def find_slow() -> np.ndarray:
    slow = np.zeros(LENGTH, bool)
    for start, end in SLOW:
        slow[start:end] = True
    return slow


def test_slow_stretches_are_constrained_and_the_rest_is_neutral(whole):
    found, slow = table(whole), find_slow()
    assert found["rs"][slow].mean() > 0.8 * found["length"][slow].mean()
    assert abs(found["rs"][~slow].mean()) < 0.15
    assert found["phylop"][slow].mean() > 0.1
    assert found["rate"][slow].mean() < 0.4 * found["rate"][~slow].mean()
    assert found["conserved"][slow].mean() > 0.8
    assert found["conserved"][~slow].mean() < 0.35
    assert found["coverage"].mean() > 1.9


def test_a_contig_in_no_relative_has_no_value_and_no_element(whole):
    frame = pl.read_parquet(whole / "tracks.parquet")
    assert set(frame["contig"]) == {"chr1"}
    assert "alone" not in (whole / "elements.bed").read_text()
    told = json.loads((whole / "constraint.json").read_text())
    assert told["bases"] == LENGTH + 1500
    assert told["scored"] == LENGTH


def test_elements_are_the_slow_stretches(whole):
    rows = [line.split("\t") for line in (whole / "elements.bed").read_text().splitlines()[1:]]
    covered = np.zeros(LENGTH, bool)
    for row in rows:
        covered[int(row[1]) : int(row[2])] = True
    slow = find_slow()
    assert covered[slow].mean() > 0.9
    assert covered[~slow].mean() < 0.05


def test_formats_hold_the_same_numbers(whole):
    import pyBigWig

    found = table(whole)
    for name in ("rs", "phylop", "conserved", "rate", "coverage", "length"):
        with pyBigWig.open(str(whole / f"{name}.bw")) as file:
            values = np.array(file.values("chr1", 0, LENGTH))
        np.testing.assert_allclose(values, found[name], rtol=1e-6)
        lines = (whole / f"{name}.wig").read_text().splitlines()
        numbers = [float(line) for line in lines if not line.startswith("fixedStep")]
        np.testing.assert_allclose(numbers, found[name], rtol=1e-4, atol=1e-5)


def test_the_hub_has_the_elements(whole):
    import pyBigWig

    lines = (whole / "elements.bed").read_text().splitlines()[1:]
    with pyBigWig.open(str(whole / "elements.bb")) as file:
        found = [f"chr1\t{a}\t{b}\t{more}" for a, b, more in file.entries("chr1", 0, LENGTH)]
    assert found == lines
    stanzas = (whole / "trackDb.txt").read_text()
    assert "track genodiff_elements\ntype bigBed 6 +\n" in stanzas
    assert "genes.bb" not in stanzas


def test_the_alignment_has_the_columns_that_were_scored(whole, world):
    coverage = table(whole)["coverage"]
    at = 0
    for block in AlignIO.parse(whole / "alignment.maf", "maf"):
        rows = {row.id: str(row.seq) for row in block}
        target = rows.pop("ref.chr1")
        there = np.sum([[c != "-" for c in row] for row in rows.values()], 0)
        np.testing.assert_array_equal(there, coverage[at : at + len(target)])
        at += len(target)
    assert at == LENGTH


@pytest.mark.slow
def test_the_alignment_is_read_as_related_genomes(whole, world, tmp_path):
    maf = whole / "alignment.maf"
    told = genodiff.constraint(world.genome, relatives=[maf], out=tmp_path / "o", formats=FORMATS)
    assert sorted(one["name"] for one in told["relatives"]["genomes"]) == ["far", "near"]
    frames = [pl.read_parquet(one / "tracks.parquet") for one in (whole, tmp_path / "o")]
    both = frames[0].join(frames[1], on=["contig", "pos"]).drop_nans(["rs", "rs_right"])
    assert len(both) > 0.95 * LENGTH
    assert np.corrcoef(both["rs"], both["rs_right"])[0, 1] > 0.95


def run(world: World, out: Path, **more: Any) -> dict[str, Any]:
    return genodiff.constraint(
        world.genome, relatives=world.relatives, out=out, formats=FORMATS, maf=True, **more
    )


def test_shards_and_a_resumed_run_have_the_same_bytes(world, whole, tmp_path, monkeypatch):
    parts = [tmp_path / f"{i}.npy" for i in (1, 2)]
    for i, part in enumerate(parts, 1):
        run(world, part, shard=f"{i}/2")
    genodiff.merge(parts[::-1], out=tmp_path / "merged")
    assert read(tmp_path / "merged") == read(whole)
    stop_at(monkeypatch, lambda kept: kept % 5 == 0)
    for _ in range(2):
        with pytest.raises(genodiff.errors.Interrupted):
            run(world, tmp_path / "again")
    monkeypatch.undo()
    run(world, tmp_path / "again")
    assert read(tmp_path / "again") == read(whole)


@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_bytes(world, whole, tmp_path, threads):
    torch.set_num_threads(threads[-1])
    run(world, tmp_path / "o")
    assert read(tmp_path / "o") == read(whole)


@pytest.mark.slow
def test_torch_is_not_imported(world, tmp_path):
    words = ["constraint", str(world.genome), "--relatives", str(world.relatives[0]), "-q"]
    words += ["--region", "chr1:1-2000", "-o", str(tmp_path / "o"), "--format", "wig"]
    code = "import sys, genodiff.runs.related_genome as fit; fit.FIT_WINDOWS = 12\n"
    code += f"from genodiff.cli import main\ntry: main({words!r})\n"
    code += "finally: assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_region_has_the_values_of_the_whole(world, whole, tmp_path):
    run(world, tmp_path / "o", region=["chr1:3,001-3,700"])
    part = pl.read_parquet(tmp_path / "o" / "tracks.parquet")
    every = pl.read_parquet(whole / "tracks.parquet")
    assert part.equals(every.filter(pl.col("pos").is_between(3001, 3700)))


def test_rate_1_is_that_of_the_sites_that_are_given(world, tmp_path):
    bed = tmp_path / "slow.bed"
    bed.write_text("".join(f"chr1\t{a}\t{b}\n" for a, b in SLOW))
    told = run(world, tmp_path / "o", neutral=bed, region=["chr1:1-600"])
    other = run(world, tmp_path / "p", region=["chr1:1-600"])
    assert told["neutral"]["source"] == "the sites of slow.bed"
    assert told["neutral"]["rate"] < 0.3 * other["neutral"]["rate"]
    for place, n in ((f"chr1\t5\t{5 + 60}\n", 60), ("alone\t0\t1000\n", 0)):
        bed.write_text(place)
        with pytest.raises(genodiff.errors.DataError, match=f"align to {n} neutral sites"):
            run(world, tmp_path / "q", neutral=bed)


@pytest.mark.slow
def test_the_command_says_how_many_bases_have_a_value(world, tmp_path, capsys):
    words = ["constraint", world.genome, "--relatives", world.relatives[0]]
    code, out, err = command(capsys, *words, "--plan", "-o", tmp_path / "o")
    assert (code, "of it preparing" in out) == (0, True)
    assert not (tmp_path / "o").exists()
    code, _, err = command(capsys, *words, "-o", tmp_path / "o")
    assert code == 0
    assert "13,500 bases, 12,000 scored (88.9% of known bases)" in err
    assert "rs takes only" in err


def refuse(capsys: pytest.CaptureFixture[str], genome: Path, relative: Path, out: Path) -> str:
    """The line that says why nothing can be computed, of which nothing is left."""
    words = ["constraint", genome, "--relatives", relative, "-o", out]
    code, _, err = command(capsys, *words, "-q")
    assert code in (2, 3), (genome, relative, err)
    assert err.strip().splitlines()[-1].startswith("genodiff: error:"), err
    assert not [*out.parent.glob(f"{out.name}*")]
    return err


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("the genome itself", "holds chr1 of the genome itself"),
        ("nothing alike", "rate 1 cannot be estimated; give more closely related"),
        ("a strain", "of the target's own species"),
    ],
)
def test_what_is_no_relative_is_named_in_one_line(world, tmp_path, capsys, name, said):
    letters = world.genome.read_text().splitlines()[1]
    rng = np.random.default_rng(9)
    noise = "".join(rng.choice(list("ACGT"), 9000))
    strain = letters[:300] + "A" + letters[301:]
    texts = {"the genome itself": letters, "nothing alike": noise, "a strain": strain}
    other = write_fasta(tmp_path / "x.fa", {"x": texts[name]})
    assert said in refuse(capsys, world.genome, other, tmp_path / "o")


def test_odd_genomes_are_read_and_bad_ones_named_in_one_line(world, tmp_path, capsys):
    near = world.relatives[0].read_text().splitlines()[1]
    packed = gzip.compress(world.relatives[0].read_bytes())
    (tmp_path / "cut.fa.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "empty.fa.gz").write_bytes(gzip.compress(b""))
    species = "".join(
        f">x{i} Genus species{i} complete genome\n{near[i * 400 : i * 400 + 400]}\n"
        for i in range(12)
    )
    (tmp_path / "species.fa").write_text(species)
    protein = write_fasta(tmp_path / "protein.fa", {"p": "MKVLAADEFGHIKLMNPQRSTVWY" * 40})
    ns = write_fasta(tmp_path / "ns.fa", {"n": "N" * 5000})
    for genome, relative in (
        (world.genome, tmp_path / "cut.fa.gz"), (world.genome, tmp_path / "empty.fa.gz"),
        (world.genome, tmp_path / "species.fa"), (protein, world.relatives[0]),
        (ns, world.relatives[0]), (world.genome, tmp_path / "gone.fa"), (world.genome, protein),
        (world.genome, write_fasta(tmp_path / "empty.fa", {"x": ""})),
    ):  # fmt: skip
        err = refuse(capsys, genome, relative, tmp_path / "o")
        assert err.count("\n") == 1, err


@pytest.mark.slow
def test_a_relative_may_lie_elsewhere_and_not_nowhere(world, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("genodiff.runs.related_genome.FIT_WINDOWS", 4)
    near = world.relatives[0]
    part = write_fasta(tmp_path / "part.fa", {"x": near.read_text().splitlines()[1][6000:]})
    rng = np.random.default_rng(9)
    noise = write_fasta(tmp_path / "noise.fa", {"x": "".join(rng.choice(list("ACGT"), 1500))})
    words = ["constraint", world.genome, "--region", "chr1:1-2,000", "--relatives"]
    code, _, err = command(capsys, *words, near, part, noise, "-o", tmp_path / "o")
    assert code == 0, err
    assert re.search(r"part aligns to \d+ of the 2,000 bases read \(over", err)
    assert re.search(r"noise aligns to \d+ of the 2,000 bases read: is it a related species\?", err)
    code, _, err = command(capsys, *words, part, "-o", tmp_path / "p")
    assert (code, "give another region" in err) == (3, True), err


@pytest.mark.slow
def test_a_genome_without_neutral_sites_is_named_in_one_line(world, tmp_path, capsys):
    """What the relative shares is its own, base for base, so nothing is left for rate 1."""
    letters = world.genome.read_text().splitlines()[1]
    noise = "".join(np.random.default_rng(9).choice(list("ACGT"), LENGTH))
    kept = [noise[a : a + 1800] + letters[a + 1800 : a + 3000] for a in range(0, LENGTH, 3000)]
    other = write_fasta(tmp_path / "islands.fa", {"x": "".join(kept)})
    err = refuse(capsys, world.genome, other, tmp_path / "o")
    said = r"genodiff: error: \S+: related genomes align to \d\d? neutral sites?: rate 1 cannot be "
    said += r"estimated; give more closely related genomes, or neutral sites \(--neutral BED\)\n"
    assert re.fullmatch(said, err), err


def test_soft_masks_and_runs_of_n_change_nothing_else(world, whole, tmp_path, monkeypatch):
    rows = world.genome.read_text().splitlines()
    soft = rows[1][:4000].lower() + rows[1][4000:]
    genome = write_fasta(tmp_path / "ref.fa", {"chr1": soft, "alone": rows[3]})
    run(world._replace(genome=genome), tmp_path / "soft")
    assert table(tmp_path / "soft")["rs"].tolist() == table(whole)["rs"].tolist()
    hidden = rows[1][:4000] + "N" * 300 + rows[1][4300:]
    genome = write_fasta(tmp_path / "n.fa", {"chr1": hidden, "alone": rows[3]})
    near = world._replace(genome=genome, relatives=world.relatives[:1])
    told = run(near, tmp_path / "n", region=["chr1:3,001-5,000"])
    frame = pl.read_parquet(tmp_path / "n" / "tracks.parquet")
    assert told["known"] == 1700
    assert told["scored"] == 1700
    values = frame.filter(pl.col("pos").is_between(4001, 4300))["rs"]
    assert values.is_null().all() or values.is_nan().all() or not len(values)


@pytest.mark.slow
def test_a_genome_of_many_scaffolds_has_all_of_them(world, tmp_path):
    letters, near = (x.read_text().splitlines()[1] for x in (world.genome, world.relatives[0]))
    cut = [slice(at, at + 60) for at in range(0, LENGTH, 60)]
    genome = write_fasta(tmp_path / "g.fa", {f"s{i}": letters[one] for i, one in enumerate(cut)})
    other = write_fasta(tmp_path / "r.fa", {f"r{i}": near[one] for i, one in enumerate(cut)})
    told = genodiff.constraint(genome, relatives=[other], out=tmp_path / "o", formats=["parquet"])
    assert told["bases"] == LENGTH
    assert told["scored"] > 0.8 * LENGTH
