"""An evaluation with a memory of the training genome, beside the network alone."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_run import SEQ_LEN, genome_text

import genodiff
from genodiff.data.loader import EvalBatches
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.evaluation.bound import measure_bound
from genodiff.evaluation.eval_data import WindowMemory, open_data, open_window_memory
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.evaluation_file import write_evaluation
from genodiff.evaluation.request import EvalOptions
from genodiff.memory.memory import NOWHERE
from genodiff.memory.remembering import remembering
from genodiff.memory.search import Effort
from genodiff.runs import training_memory
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import open_train_memory
from tests.commands import command

WITH = EvalOptions(memory="on")


def open_it(model: TrainedModel) -> WindowMemory:
    found = open_window_memory(model, WITH, open_data(model))
    assert found is not None
    return found


def test_the_network_alone_stands_beside_it_bit_for_bit(model):
    plain = evaluate(model, mixture=False)
    found = evaluate(model, mixture=False, memory="on")
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert plain["memory"] is plain["without_memory"] is None
    assert found["without_memory"]["bits"] == plain["bits_per_base"]
    gain = found["without_memory"]["minus_model_bits"]
    assert gain["bits"] == pytest.approx(plain["bits_per_base"] - found["bits_per_base"], abs=1e-12)
    repeat, unique = (found["regions"][name] for name in ("repeat", "unique"))
    assert repeat["without_bits"] == plain["regions"]["repeat"]["bits_per_base"]
    assert repeat["without_minus_model_bits"]["bits"] > 0.3
    assert abs(unique["without_minus_model_bits"]["bits"]) < 0.01


def test_it_is_the_bound_of_the_network_that_remembers(model):
    """Two passes of the network, which know nothing of one another, draw the same nats."""
    known, windows = open_it(model), open_data(model).windows
    batches = EvalBatches(windows, 4, 1, 2)
    found = measure_bound(model.objective, model.backbone, batches, memory=known)
    alone = measure_bound(model.objective, model.backbone, batches)
    denoiser = remembering(model.backbone, known.loci.memory)
    remembered = measure_bound(model.objective, denoiser, batches)
    assert np.array_equal(found.drawn, remembered.drawn)
    assert found.without is not None
    assert np.array_equal(found.without, alone.nats)
    change = remembered.drawn - alone.drawn
    np.testing.assert_allclose(found.nats, alone.nats + change, atol=1e-9)
    assert np.abs(change).max() > 1


def test_an_exhaustive_memory_tries_every_place_of_the_genome(model):
    told = EvalOptions(memory="exhaustive")
    data = open_data(model)
    known = open_window_memory(model, told, data)
    assert known.loci.told["effort"] == {**open_it(model).loci.told["effort"], "scored": None}
    every = known.loci.memory.with_effort(Effort(scored=None, most=1000, least_odds=-50.0))
    batches = EvalBatches(data.windows, 4, 1, 2)
    found = measure_bound(model.objective, model.backbone, batches, memory=known)
    whole = measure_bound(model.objective, remembering(model.backbone, every), batches)
    np.testing.assert_allclose(found.drawn, whole.drawn, atol=0.05)
    with pytest.raises(UsageError, match="--memory exhaustive and --context contig exclude"):
        evaluate(model, memory="exhaustive", context="contig")


def test_what_was_remembered_is_said(run, model):
    told = evaluate(model, memory="on", max_windows=2, baselines=False)["memory"]
    assert told["split"] == "train"
    assert told["bases"] == open_data(model).store.splits.intervals["train"].n_bases
    assert Path(told["folder"]).is_dir()
    assert told["source"] == str(run.parent / "genome.fa")
    assert told["numbers"]["start"] > 0
    assert len(told["fingerprint"]) == len(told["content"]) == 64


def test_a_window_of_the_train_split_does_not_remember_itself(model, monkeypatch):
    options: dict[str, Any] = {"split": "train", "baselines": False, "max_windows": 24}
    found = evaluate(model, memory="on", **options)
    gain = found["without_memory"]["minus_model_bits"]["bits"]
    assert abs(gain) < 0.01
    monkeypatch.setattr(WindowMemory, "leave_out", lambda *_: NOWHERE)
    leaking = evaluate(model, memory="on", **options)
    assert leaking["without_memory"]["minus_model_bits"]["bits"] > 0.5


def test_an_own_locus_has_the_window_s_length_on_either_side(model):
    known = open_it(model)
    windows = open_data(model, EvalOptions(split="train")).windows
    for row in (0, 5, len(windows) - 1):
        start, end = known.of(windows).leave_out(row)
        assert known.loci.memory.text.count_bases(start, end) >= windows.length[row]
        contig, at = known.loci.memory.text.locate(start)
        assert contig == windows.store.names[windows.contig_index[row]]
        assert at == max(int(windows.start[row]) - SEQ_LEN, 0)
    assert known.leave_out(0) == NOWHERE  # of the test split


def test_the_training_genome_in_another_file_is_known_by_its_bases(model, tmp_path):
    names, text = {"c1": "one", "c2": "c3", "c3": "c2", "c4": "four"}, genome_text()
    text = re.sub(r">(c\d)", lambda name: f">{names[name[1]]}", text.lower())
    other = tmp_path / "other.fa"
    other.write_text(text + ">new\n" + "acgtt" * 40 + "\n")
    options = EvalOptions(split="all", fasta=str(other), memory="on")
    known = open_window_memory(model, options, open_data(model, options))
    told = {name: known.loci.find_name(name) for name in known.windows.store.names}
    assert told == {new: old for old, new in names.items()} | {"new": None}
    found = evaluate(model, "all", fasta=str(other), memory="on", baselines=False, max_windows=40)
    assert found["without_memory"]["minus_model_bits"]["bits"] < 0.05


def test_it_stands_beside_the_network_s_own_figures(run, model, tmp_path, capsys):
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    for memory in ("on", "off", "exhaustive", "on"):
        write_evaluation(copied, evaluate(model, memory=memory, baselines=False))
    kept = json.loads((copied / "eval.json").read_text())
    assert set(kept) == {"test", "test with memory", "test with exhaustive memory"}
    words = ("eval", copied, "--memory", "on", "--no-mixture", "--threads", 1, "-q")
    out = command(capsys, *words)[1]
    assert "without memory, at most" in out
    assert "memory gains" in out
    plan = command(capsys, *words, "--plan")[1]
    assert "bases of the split train" in plan
    assert genodiff.report(copied).exists()


def test_what_cannot_be_remembered_is_refused_in_one_line(model, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="--context contig exclude"):
        evaluate(model, memory="on", context="contig")
    with pytest.raises(UsageError, match="for DNA"):
        WITH.check_domain("text")
    diffusion = model.config.diffusion.model_copy(update={"objective": "ar"})
    config = model.config.model_copy(update={"diffusion": diffusion})
    with pytest.raises(UsageError, match="masked networks, and this is ar"):
        open_it(model._replace(config=config))
    with monkeypatch.context() as patch:
        patch.setattr(training_memory, "MOST_WINDOW", SEQ_LEN - 1)
        with pytest.raises(UsageError, match="windows of at most 63 bases, not 64"):
            open_it(model)
    with pytest.raises(CheckpointError, match="does not record its training genome"):
        open_it(model._replace(data={}))
    gone = model.config.model_copy(update={"fasta": str(tmp_path / "gone.fa")})
    unknown = {**model.data, "source_sha256": "0" * 64}
    with pytest.raises(DataError, match="training genome is needed for"):
        open_train_memory(model._replace(config=gone, data=unknown))
    with pytest.raises(DataError, match="the file has changed"):
        open_train_memory(model._replace(data=unknown))
    # Built before, the store serves without its FASTA.
    assert open_train_memory(model._replace(config=gone)).memory.text.n_bases
