"""Training beside a memory of the train split: what the network is told, and what it is not."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_run import NETWORK, SEQ_LEN, genome_text, save_run
from tiny_training import build_parts, read_losses, read_rows

import genodiff
from genodiff.alphabet import DNA
from genodiff.api.train import TrainRequest
from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.generate.sample_memory import SampleMemory
from genodiff.memory.memory import NOWHERE
from genodiff.memory.remembering import remembering
from genodiff.runs import training_memory
from genodiff.runs.checkpoint import locate_checkpoint
from genodiff.runs.config import RunConfig
from genodiff.runs.denoiser import make_inputs
from genodiff.runs.feed import open_feed, open_train_batches
from genodiff.runs.model import build_backbone, load_model
from genodiff.runs.resolve import resolve_config
from genodiff.runs.training_memory import open_memory_of_run, open_train_memory
from genodiff.training import memory as memory_module
from genodiff.training.memory import open_run_memory
from genodiff.training.module import batch_loss
from genodiff.training.run import train


@pytest.fixture(scope="module")
def fasta(tmp_path_factory):
    path = tmp_path_factory.mktemp("genome") / "genome.fa"
    path.write_text(genome_text())
    return path


@pytest.fixture(scope="module")
def copied(fasta):
    """The same genome, and a contig that is a copy of half of it, one base in 25 changed."""
    rng = np.random.default_rng(3)
    text = fasta.read_text()
    letters = np.frombuffer("".join(text.split("\n")[1::2]).encode(), np.uint8)[:7000].copy()
    changed = rng.random(len(letters)) < 0.04
    letters[changed] = rng.choice(np.frombuffer(b"ACGT", np.uint8), int(changed.sum()))
    path = fasta.with_name("copied.fa")
    path.write_text(f"{text}>c5\n{letters.tobytes().decode()}\n")
    return path


def configure(fasta: Path, *, recalls: bool = True, **train: Any) -> RunConfig:
    loop = {"batch_size": 4, "max_steps": 4, "checkpoint_every": 2, "validate_windows": 4}
    backbone = NETWORK | ({"recalls": True} if recalls else {})
    given = {"recipe": "own", "fasta": str(fasta), "backbone": backbone}
    more = {"data": {"seq_len": SEQ_LEN}, "train": loop | {"validate_every": 2} | train}
    return resolve_config(given | more)


def test_at_first_the_network_is_the_plain_one_bit_for_bit(fasta):
    plain, reads = (build_backbone(configure(fasta, recalls=r), DNA) for r in (False, True))
    xt = torch.randint(7, 11, (3, SEQ_LEN), generator=torch.Generator().manual_seed(1))
    recalled = torch.rand(3, SEQ_LEN, 4)
    assert torch.equal(reads(xt, None, recalled=recalled), plain(xt))
    assert sum(p.numel() for p in reads.parameters()) == configure(fasta).backbone.n_parameters(16)
    with pytest.raises(UsageError, match="reads no memory"):
        plain(xt, None, recalled=recalled)


@pytest.mark.parametrize("lengths", [None, [64, 50, 33]])
def test_what_is_recalled_of_the_other_strand_is_turned(fasta, lengths):
    network = build_backbone(configure(fasta), DNA).double()
    draws = torch.Generator().manual_seed(2)
    with torch.no_grad():
        network.recalled.normal_(generator=draws)
    ids = np.random.default_rng(1).choice([*DNA.targets, DNA.mask_id], (3, SEQ_LEN))
    recalled = torch.rand(3, SEQ_LEN, 4, generator=draws, dtype=torch.float64)
    sizes = None if lengths is None else torch.tensor(lengths)
    turned, back = ids.copy(), recalled.clone()
    for row, n in enumerate(lengths or [SEQ_LEN] * 3):
        turned[row, :n] = DNA.rc(ids[row, :n].astype(np.uint8))
        back[row, :n] = recalled[row, :n].flip(0, 1)
    given = network(torch.from_numpy(ids), None, sizes, recalled=recalled)
    other = network(torch.from_numpy(turned), None, sizes, recalled=back)
    complement = torch.tensor(DNA.complement)
    assert (given - network(torch.from_numpy(ids), None, sizes)).abs().max() > 0.1
    for row, n in enumerate(lengths or [SEQ_LEN] * 3):
        expected = other[row, :n].flip(0)[:, complement]
        torch.testing.assert_close(given[row, :n], expected, atol=1e-10, rtol=0)


def test_a_window_does_not_remember_itself_in_training(fasta, monkeypatch):
    """c1's end is a copy of its beginning, which stays; each window's own locus does not."""
    config = configure(fasta, batch_size=16)
    feed = open_feed(config)
    batches = open_train_batches(feed, config)
    known = open_run_memory(config, feed, batches, None, None)
    assert known.train is not None
    backbone, objective = build_parts(config)

    def measure(remember: Any, **options: Any) -> list[float]:
        found = [
            batch_loss(objective, backbone, batches.batch(k), 1.0, remember, **options)[0]
            for k in range(3)
        ]
        return [float(one.nats_unweighted / one.n_tokens) for one in found]

    alone, beside = measure(None), measure(known.train)
    np.testing.assert_allclose(beside, alone, atol=0.02)
    monkeypatch.setattr(memory_module, "leave_out_own", lambda *a: [NOWHERE] * len(a[2]))
    assert max(measure(known.train)) < min(alone) - 0.3


def test_no_window_of_an_epoch_finds_itself_or_its_neighbours(fasta):
    """Neither its own place nor that of a window of another tiling that overlaps it."""
    config = configure(fasta)
    feed = open_feed(config)
    batches = open_train_batches(feed, config)
    memory = open_memory_of_run(feed.store).memory
    index = np.arange(40)
    starts, lengths = batches.place(index)
    own = training_memory.leave_out_own(memory, feed.store, starts.tolist(), lengths.tolist())
    rows = batches.windows.gather(starts, lengths, 0) & 31
    code_of = np.full(256, 4, np.uint8)
    code_of[list(DNA.targets)] = range(4)
    masked = code_of[rows]
    masked[:, 16:40] = 4
    found = memory.find_all(masked, own)
    gone = memory.find_all(masked)
    for row, (a, b) in enumerate(own):
        places = [d for strand in found[row] for d in strand.tolist()]
        # No diagonal lies in what was left out, in either direction.
        assert not any(a < d + SEQ_LEN and d < b for d in places)
        assert any(a <= d < b for d in gone[row][0].tolist())


def test_training_is_deterministic_and_resumed_exactly(copied, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(configure(copied), whole, argv=["test"])
    shutil.copytree(whole, parts)
    shutil.rmtree(locate_checkpoint(parts, 4))
    for name in ("model.safetensors", "model.json"):
        (parts / name).unlink()
    assert train(configure(copied), parts, argv=["test"]).step == 4
    assert read_losses(whole) == read_losses(parts)
    assert load_model(whole).digest == load_model(parts).digest
    plain = tmp_path / "plain"
    train(configure(copied, recalls=False), plain, argv=["test"])
    valid, with_memory = (float(read_rows(r)[-1]["valid_bits"]) for r in (plain, whole))
    assert with_memory < valid - 0.1
    table = load_model(whole).backbone.recalled
    assert float(table.detach().abs().max()) > 0  # it is learnt


def test_the_checkpoint_says_which_memory_and_another_is_refused(fasta, tmp_path, monkeypatch):
    run = tmp_path / "run"
    train(configure(fasta, max_steps=2), run, argv=["test"])
    model = load_model(run)
    told = model.data["memory"]
    assert Path(told["folder"]).is_dir()
    assert len(told["fingerprint"]) == 64
    assert json.loads((run / "provenance.json").read_text())["data"]["memory"] == told
    assert open_train_memory(model).told == told

    # With numbers of its own: they are those of the run, whatever the folder has by now.
    other = told | {"numbers": told["numbers"] | {"copies": 0.5}, "effort": {"most": 7}}
    found = open_train_memory(model._replace(data=model.data | {"memory": other}))
    assert (found.memory.numbers.copies, found.memory.effort.most) == (0.5, 7)

    changed = told | {"fingerprint": "0" * 64}
    with pytest.raises(DataError, match="another memory than the run recorded"):
        open_train_memory(model._replace(data=model.data | {"memory": changed}))
    monkeypatch.setattr(training_memory, "fingerprint_memory", lambda _: "1" * 64)
    with pytest.raises(DataError, match="another memory than the run recorded"):
        train(configure(fasta, max_steps=4), run, argv=["test"])


def test_what_cannot_have_a_memory_is_refused_in_one_line(fasta, tmp_path):
    def plan(source: str | Path = fasta, **options: Any) -> None:
        asked = TrainRequest.make(source, memory=True, out=tmp_path / "x", **options)
        asked.planned.config.check_together()

    for options, words in (
        ({"preset": "dit-470k"}, "recalls"),
        ({"preset": "mamba-470k", "objective": "ar"}, "masked networks, and this is ar"),
    ):
        with pytest.raises(GenodiffError, match=words) as fault:
            plan(**options)
        assert "\n" not in str(fault.value)
    with pytest.raises(GenodiffError, match="recalls"):
        plan("text8")
    several = {"recipe": "own", "genomes": "list.tsv", "backbone": NETWORK | {"recalls": True}}
    with pytest.raises(GenodiffError, match="not for many genomes"):
        resolve_config(several)
    config = configure(fasta)
    wide = config.model_copy(update={"data": config.data.model_copy(update={"seq_len": 9000})})
    feed = open_feed(config)
    with pytest.raises(UsageError, match="windows of at most"):
        open_run_memory(wide, feed, open_train_batches(feed, config), None, None)


def test_the_loss_is_that_of_the_network_that_remembers(copied):
    config = configure(copied)
    feed = open_feed(config)
    batches = open_train_batches(feed, config)
    known = open_run_memory(config, feed, batches, None, None)
    backbone, objective = build_parts(config)
    batch = batches.batch(5)
    starts, lengths = batches.place(batch.index.numpy())
    memory = open_memory_of_run(feed.store).memory
    own = training_memory.leave_out_own(memory, feed.store, starts.tolist(), lengths.tolist())
    inputs = make_inputs(batch, backbone, "cpu", 1.0)
    by_hand = objective.loss(remembering(backbone, memory, without=own), *inputs[1:])
    found, _ = batch_loss(objective, backbone, batch, 1.0, known.train)
    assert torch.equal(found.nats, by_hand.nats)
    found.nats.backward()
    assert torch.isfinite(backbone.recalled.grad).all()
    assert float(backbone.recalled.grad.abs().max()) > 0


def test_a_run_remembers_by_default(fasta, tmp_path, monkeypatch):
    """New sequences, templates, regions of a genome and designs alike."""
    reads, plain = (
        save_run(tmp_path / str(recalls), configure(fasta, recalls=recalls))
        for recalls in (True, False)
    )
    opened = []
    for name in ("__init__", "wrap"):
        real = getattr(SampleMemory, name)
        monkeypatch.setattr(
            SampleMemory, name, lambda *a, _real=real, _name=name: opened.append(_name) or _real(*a)
        )
    (tmp_path / "gap.fa").write_text(">g\nACGTNNNNACGT\n")
    places: dict[str, Any] = {"region": ["c2:101-120"]}
    for i, (verb, run, asked, reading) in enumerate(
        (
            (genodiff.sample, reads, {"length": 32}, True),
            (genodiff.sample, reads, {"template": tmp_path / "gap.fa"}, True),
            (genodiff.sample, reads, {"length": 32, "memory": "off"}, False),
            (genodiff.sample, plain, {"length": 32}, False),
            (genodiff.sample, reads, places | {"template": fasta}, True),
            (genodiff.redesign, reads, places | {"fasta": fasta}, True),
        )
    ):
        opened.clear()
        told = verb(run, out=tmp_path / f"{i}.fa", steps=4, device="cpu", n=1, **asked)
        assert told.get("memory", {}).get("mode") == ("on" if reading else None), asked
        assert ("wrap" in opened) == bool(opened) == reading, asked
    opened.clear()
    genodiff.load(reads, device="cpu").redesign("ACGTNNNNACGT", 1, steps=4)
    assert "wrap" in opened
