"""Scores and maps with a memory of the training genome: what is mixed in, what is left out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from tiny_run import SEQ_LEN, genome_text, write_vcf

import genodiff
from genodiff.alphabet import DNA
from genodiff.errors import DataError, UsageError
from genodiff.io.faidx import Genome
from genodiff.memory.memory import NOWHERE
from genodiff.memory.remembering import remembering
from genodiff.runs import training_memory
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import OwnLoci, TrainMemory, open_loci, open_train_memory
from genodiff.scoring.masked_reader import open_reader
from tests.commands import command

REPEAT = range(5725, 5795)  # of c1: test, and the same bases as from 1,015 on, which is train
UNIQUE = range(5825, 5895)
TRAINED = range(1015, 1085)


@pytest.fixture
def genome(run):
    return Genome(run.parent / "genome.fa")


def list_snvs(genome: Genome, places: range) -> list[tuple[str, int, str, str]]:
    letters = genome.fetch("c1", places.start, places.stop).decode().upper()
    next_one = dict(zip("ACGT", "CGTA", strict=True))
    return [("c1", i + 1, a, next_one[a]) for i, a in zip(places, letters, strict=True)]


def score(
    run: Path, rows: list[tuple[str, int, str, str]], fasta: Path | None = None, **options: Any
) -> np.ndarray:
    model = genodiff.load(run, device="cpu")
    found = model.score_variants(rows, fasta=fasta or run.parent / "genome.fa", **options)
    assert isinstance(found, pl.DataFrame)
    return found["score"].to_numpy()


def count_openings(monkeypatch: pytest.MonkeyPatch) -> list[TrainedModel]:
    """The models whose memories are opened from now on."""
    found: list[TrainedModel] = []

    def watch(model: TrainedModel, *given: Any, **more: Any) -> TrainMemory:
        found.append(model)
        return open_train_memory(model, *given, **more)

    monkeypatch.setattr(training_memory, "open_train_memory", watch)
    return found


def test_a_variant_in_a_copy_is_judged_by_the_copy(run, genome):
    rows = list_snvs(genome, REPEAT)
    alone, kept = score(run, rows), score(run, rows, memory="on")
    assert np.array_equal(alone, score(run, rows, memory="off"))
    assert np.median(alone) > -1
    assert np.median(kept) < -4
    unique = list_snvs(genome, UNIQUE)
    assert np.abs(score(run, unique, memory="on") - score(run, unique)).max() < 0.3


@pytest.mark.parametrize("exact", [True, False])
def test_a_score_is_that_of_the_network_that_remembers(run, model, genome, exact):
    rows = list_snvs(genome, range(5740, 5746))
    memory = open_train_memory(model).memory
    found = score(run, rows, memory="on", exact=exact)
    for (_, pos, ref, alt), value in zip(rows, found, strict=True):
        start = pos - 1 - (SEQ_LEN - 1) // 2
        ids = DNA.encode(genome.fetch("c1", start, start + SEQ_LEN - 1).upper())
        ids[pos - 1 - start] = DNA.mask_id
        xt = torch.from_numpy(ids.astype(np.int64))[None]
        with torch.inference_mode():
            logits = remembering(model.backbone, memory)(xt, torch.zeros(1))[0, pos - 1 - start]
        a, b = (int(DNA.encode(x.encode())[0]) for x in (ref, alt))
        assert value == pytest.approx(float(logits[b] - logits[a]), abs=2e-3 if exact else 0.5)


def test_variants_of_the_training_genome_do_not_find_themselves(run, genome, monkeypatch):
    """Left out, a locus of the train split is judged by what else resembles it: nothing."""
    rows = list_snvs(genome, range(2500, 2570))
    alone = score(run, rows)
    assert np.abs(score(run, rows, memory="on") - alone).max() < 0.3
    monkeypatch.setattr(OwnLoci, "leave_out", lambda *_: NOWHERE)
    assert np.median(score(run, rows, memory="on")) < np.median(alone) - 3


def test_a_genome_is_known_by_its_bases_and_nothing_else(run, model, genome, tmp_path):
    other = tmp_path / "other.fa"
    text = genome_text().lower().replace(">c1\n", ">one\n").replace(">c2\n", ">c1\n")
    other.write_text(text + ">short\nacgt\n")
    found = open_train_memory(model)
    with Genome(other) as renamed:
        loci, own = OwnLoci(found, renamed), OwnLoci(found, genome)
        assert loci.leave_out(("one", 2000, 2064)) == own.leave_out(("c1", 2000, 2064)) != NOWHERE
        assert loci.leave_out(("c1", 2000, 2064)) == own.leave_out(("c2", 2000, 2064)) != NOWHERE
        assert loci.leave_out(("short", 0, 4)) == loci.leave_out(None) == NOWHERE
    changed = tmp_path / "changed.fa"
    place = text.index("\n") + 3000
    base = "a" if text[place] != "a" else "c"
    changed.write_text(text[:place] + base + text[place + 1 :])
    with Genome(changed) as one:
        loci = OwnLoci(found, one)
        assert loci.leave_out(("one", 2000, 2064)) == NOWHERE  # one base of it is another
        assert loci.leave_out(("c1", 2000, 2064)) != NOWHERE
    # The whole interval of a window of the test part is left in: it is no part of the memory.
    assert own.leave_out(("c1", 5740, 5804)) == NOWHERE


def test_equal_windows_of_different_places_are_read_by_themselves(model, genome):
    loci = open_loci(model, genome, "on", longest=SEQ_LEN)
    reader = open_reader(model, loci=loci)
    ids = DNA.encode(genome.fetch("c1", 1018, 1082).upper())
    assert np.array_equal(ids, DNA.encode(genome.fetch("c1", 5728, 5792).upper()))
    ids[32] = DNA.mask_id
    places = [("c1", 1018, 1082), ("c1", 5728, 5792)]
    trained, held_out = reader.read([ids, ids], places)
    assert reader.evaluations == 2
    assert np.array_equal(reader.read([ids], places[1:])[0], held_out)
    assert np.array_equal(reader.read([ids], places[:1])[0], trained)
    assert np.abs(trained - held_out).max() > 1
    alone = open_reader(model).read([ids])[0]
    assert np.abs(trained - alone).max() < 0.3


def test_how_windows_are_put_together_changes_nothing(run, genome):
    rows = [*list_snvs(genome, REPEAT), *list_snvs(genome, TRAINED)]
    whole = score(run, rows, memory="on", exact=True, batch_size=8)
    one = score(run, rows, memory="on", exact=True, batch_size=1)
    np.testing.assert_allclose(whole, one, atol=1e-5)
    parts = [score(run, [row], memory="on", exact=True, batch_size=8)[0] for row in rows[::20]]
    np.testing.assert_allclose(parts, whole[::20], atol=1e-5)


def test_indels_and_drawn_scores_take_it_too(run, genome):
    ref = genome.fetch("c1", 5744, 5748).decode().upper()
    rows = [("c1", 5745, ref, ref[0]), ("c1", 5745, ref[0], ref[0] + "GTCA")]
    for method in ("chain", "nelbo"):
        alone = score(run, rows, method=method, se=1.0)
        kept = score(run, rows, method=method, se=1.0, memory="on")
        assert kept[0] < alone[0] - 3, method  # what the copy has is deleted
        assert kept[1] != alone[1], method


def test_maps_take_it_too(run, genome):
    model = genodiff.load(run, device="cpu")
    fasta, places = run.parent / "genome.fa", slice(5740, 5748)
    region = [f"c1:{places.start + 1}-{places.stop}"]
    rows = list_snvs(genome, range(places.start, places.stop))
    (alone,), (kept,) = (model.ism(fasta, region=region, memory=x) for x in (None, "on"))
    at = ["ACGT".index(alt) for _, _, _, alt in rows]
    taken = kept[at, range(len(at))]
    np.testing.assert_allclose(taken, score(run, rows, memory="on", exact=True), atol=1e-4)
    assert np.median(taken) < np.median(alone[at, range(len(at))]) - 3

    (plain,), (mixed,) = (model.tracks(fasta, region=region, memory=x) for x in ("off", "on"))
    assert np.median(mixed.surprisal) < 0.1 < np.median(plain.surprisal)
    (own,) = model.tracks(fasta, region=["c1:1031-1038"], memory="on")
    assert np.array_equal(own.letters, mixed.letters)  # the same bases, of the train split
    assert np.median(own.surprisal) > 1

    (few,), (more,) = (
        model.dependencies(fasta, region=region, memory=x, exact=True) for x in (None, "on")
    )
    assert np.isfinite(more.dependency).all()
    assert not np.allclose(few.dependency, more.dependency)


@pytest.mark.parametrize("verb", ["ism", "dependencies", "tracks"])
def test_the_sidecar_of_a_map_names_the_memory(run, verb, here, monkeypatch, capsys):
    out = "folder" if verb == "tracks" else "m.tsv"
    asked = (verb, run, "--fasta", run.parent / "genome.fa", "--region", "c1:5741-5744", "-o", out)
    more = ("--format", "npz") if verb == "tracks" else ()
    opened = count_openings(monkeypatch)
    assert command(capsys, *asked, *more, "--memory", "on")[0] == 0
    assert len(opened) == 1
    (place,) = Path(out).glob("*.json") if verb == "tracks" else [Path(f"{out}.json")]
    told = json.loads(place.read_text())
    assert len(told["memory"]["fingerprint"]) == 64
    assert "folder" not in told["memory"]


@pytest.mark.slow
def test_the_sidecar_and_the_vcf_say_so(run, here, monkeypatch, capsys, genome):
    write_vcf(Path("in.vcf"), (" ".join(map(str, row)) for row in list_snvs(genome, REPEAT)[:3]))
    fasta = run.parent / "genome.fa"
    asked = ("score", "in.vcf", "--model", run, "--fasta", fasta, "--method", "nelbo", "--se", 4,
             "--device", "cpu")  # fmt: skip
    opened = count_openings(monkeypatch)
    assert command(capsys, *asked, "--memory", "on", "-o", "kept.vcf")[0] == 0
    assert len(opened) == 1
    assert command(capsys, *asked, "-o", "alone.vcf")[0] == 0
    told, plain = (json.loads(Path(f"{x}.vcf.json").read_text()) for x in ("kept", "alone"))
    assert len(told["memory"]["fingerprint"]) == 64
    assert "memory" not in plain
    assert told["request"] != plain["request"]
    assert f"memory={told['memory']['fingerprint'][:12]}" in Path("kept.vcf").read_text()


def test_what_it_cannot_serve_is_refused_in_one_line(run, model, genome, monkeypatch, tmp_path):
    rows = list_snvs(genome, REPEAT)[:1]
    with pytest.raises(UsageError, match="no --memory 'novel'; known: off, on"):
        score(run, rows, memory="novel")
    with monkeypatch.context() as patch:
        patch.setattr(training_memory, "MOST_WINDOW", 1000)
        with pytest.raises(UsageError, match=r"windows of at most 1,000 bases, not 1,\d+"):
            score(run, rows, memory="on")
    gone = model.config.model_copy(update={"fasta": str(tmp_path / "gone.fa")})
    other = model._replace(config=gone, data={**model.data, "source_sha256": "0" * 64})
    with pytest.raises(DataError, match="training genome is needed for"):
        open_loci(other, genome, "on", longest=SEQ_LEN)
