"""Sampling with a memory of the training genome, and the nearest train match of each record."""

import json
from typing import Any

import numpy as np
import pytest
from tiny_run import SEQ_LEN

import genodiff
from genodiff.alphabet import DNA
from genodiff.errors import CheckpointError, DataError, GenodiffError, UsageError
from genodiff.generate import sample_memory
from genodiff.generate.dna_drawing import DnaDrawing
from genodiff.generate.sample import infill, sample
from genodiff.generate.sample_memory import SampleMemory
from genodiff.generate.sampling import Sampling
from genodiff.io.file_kinds import sha256_json
from genodiff.quality.scorecard import longest_matches
from genodiff.runs import training_memory
from genodiff.runs.training_memory import list_stretches

QUICK: dict[str, Any] = {"steps": 16, "device": "cpu"}


@pytest.fixture
def train(model):
    memory = SampleMemory(model, Sampling(memory="on"))
    codes = (c[0 : len(c)] for _, _, c in list_stretches(memory._store, "train"))
    ids = np.array([*DNA.targets, DNA.tokens.index("N")], np.uint8)
    return [ids[np.minimum(part, 4)] for part in codes]


def cut_gap(ids: np.ndarray, start: int, end: int) -> np.ndarray:
    draft = ids.copy()
    draft[start:end] = DNA.mask_id
    return draft


def test_a_gap_in_a_copy_is_filled_as_its_source(model, train):
    source = train[1][1500 : 1500 + SEQ_LEN]
    draft = cut_gap(source, 20, 40)
    (on,) = infill(model, [draft], how=Sampling(memory="on", steps=16))
    (off,) = infill(model, [draft], how=Sampling())
    assert (on.ids == source).mean() > 0.98
    assert (off.ids == source).mean() < 0.9
    with pytest.raises(GenodiffError, match=f"record 1: none of {sample_memory.TRIES} draws"):
        list(infill(model, [draft], how=Sampling(memory="novel", steps=1)))


def test_records_do_not_depend_on_their_company(model, train):
    drafts = [cut_gap(train[0][a : a + n], 10, 25) for a, n in ((900, 64), (1200, 41), (60, 64))]
    drafts.append(np.full(30, DNA.mask_id, np.uint8))
    hows = (Sampling(memory="on", batch_size=size, steps=9) for size in (1, 4))
    one, other = ([s.ids.tolist() for s in infill(model, drafts, how=how)] for how in hows)
    assert one == other


@pytest.mark.slow
def test_every_record_tells_its_longest_train_match(run, model, train, tmp_path):
    told = genodiff.sample(run, out=tmp_path / "a.fa", n=6, memory="on", **QUICK)
    kept = json.loads((tmp_path / "a.fa.json").read_text())
    assert kept["memory"] == told["memory"]
    assert (kept["memory"]["mode"], kept["memory"]["split"]) == ("on", "train")
    lines = (tmp_path / "a.fa").read_text().split()
    sequences = [genodiff.load(run).sample(6, memory="on", steps=16)][0]
    expected = longest_matches([DNA.encode(s.encode()) for s in sequences], train).tolist()
    assert [r["train_match"]["length"] for r in kept["records"]] == expected
    assert [w for w in lines if w.startswith("train_match=")] == [
        f"train_match={n}" for n in expected
    ]
    assert lines.count("memory=on") == 6
    compared, memory = kept["train_matches"], SampleMemory(model, Sampling(memory="on"))
    assert compared["records"] == {
        "sequences": 6, "median": float(np.median(expected)), "longest": max(expected)
    }  # fmt: skip
    limit = memory.find_limit(np.ones(SEQ_LEN, bool))
    assert compared["limit"] == limit <= compared["held_out"]["longest"]
    assert compared["above_limit"] == sum(n > limit for n in expected)
    assert compared["held_out"]["sequences"] == 10
    longer = genodiff.sample(run, out=tmp_path / "c.fa", n=1, memory="on", length=2000, **QUICK)
    assert longer["train_matches"]["held_out"] is None  # the valid split has none so long
    plain = genodiff.sample(run, out=tmp_path / "b.fa", n=1, **QUICK)
    assert "memory" not in plain
    assert "memory" not in (tmp_path / "b.fa").read_text()


def test_novel_records_are_drawn_again_until_they_are(model, monkeypatch):
    def draw(memory: str, size: int = 8) -> list[Any]:
        return list(sample(model, 12, SEQ_LEN, steps=8, memory=memory, batch_size=size))

    on, memory = draw("on"), SampleMemory(model, Sampling(memory="novel"))
    everything = np.ones(SEQ_LEN, bool)
    lengths = [match.length if (match := memory.find_match(s.ids, everything)) else 0 for s in on]
    limit = sorted(lengths)[5]
    assert min(lengths) <= limit < max(lengths)
    monkeypatch.setattr(SampleMemory, "find_limit", lambda *_: limit)
    novel = draw("novel")
    for one, before, length in zip(novel, on, lengths, strict=True):
        assert memory.is_novel(one.ids, everything)
        assert np.array_equal(one.ids, before.ids) == (length <= limit)
        assert (one.nfe > before.nfe) == (length > limit)
    assert [s.ids.tolist() for s in draw("novel", 5)] == [s.ids.tolist() for s in novel]


def test_the_limit_is_that_of_nine_in_ten_held_out_sequences(model, train):
    memory = SampleMemory(model, Sampling(memory="novel"))
    ids = np.array(DNA.targets, np.uint8)
    held_out = [
        ids[codes[at : at + 50]]
        for _, _, codes in list_stretches(memory._store, "valid")
        for at in range(0, len(codes) - 49, 50)
        if (codes[at : at + 50] < 4).all()
    ]
    lengths = longest_matches(held_out, train)
    limit = memory.find_limit(np.ones(50, bool))
    assert (lengths <= limit).mean() >= 0.9
    assert (lengths < limit).mean() < 1
    assert memory.find_limit(np.arange(50) == 25) <= limit
    with pytest.raises(DataError, match="the valid split has none of 5,000 bases"):
        memory.find_limit(np.ones(5000, bool))


def test_the_memory_decides_the_records(model):
    plain, on, unsaid = (
        sha256_json(DnaDrawing(model, Sampling(memory=mode), 2).identify())
        for mode in ("off", "on", None)
    )
    assert plain == unsaid != on


def test_what_cannot_be_is_refused_in_one_line(run, model, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="no --memory 'onn'"):
        Sampling(memory="onn")
    with pytest.raises(UsageError, match="--memory is for DNA"):
        genodiff.sample(run, out=tmp_path / "x.txt", domain="text", memory="on")
    with pytest.raises(CheckpointError, match="does not record its training genome"):
        SampleMemory(model._replace(data={}), Sampling(memory="on"))
    diffusion = model.config.diffusion.model_copy(update={"objective": "ar"})
    config = model.config.model_copy(update={"diffusion": diffusion})
    with pytest.raises(UsageError, match="masked networks, and this is ar"):
        sample(model._replace(config=config), 1, 8, memory="on")
    monkeypatch.setattr(training_memory, "MOST_WINDOW", SEQ_LEN - 1)
    with pytest.raises(UsageError, match="windows of at most 63 bases"):
        SampleMemory(model, Sampling(memory="on"))
