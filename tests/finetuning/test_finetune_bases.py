"""`genodiff finetune bases`: a killed fit goes on, labels are learned, bad ones are told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import genodiff
from genodiff.annotation.base_labels import read_class_labels
from genodiff.finetuning.base_job import split_intervals
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_lesson import BaseLesson
from genodiff.finetuning.base_request import BasesRequest
from genodiff.finetuning.base_windows import subtract
from genodiff.finetuning.kept_labeller import read_labeller
from genodiff.io.faidx import Genome
from genodiff.jobs.journal import Journal
from genodiff.runs.model import load_model
from tests.commands import check_refused, command, succeed
from tests.finetuning.motif_task import draw_letters, write_genome
from tests.tiny_networks import bases

CONTIGS = {"chr1": 400, "chr2": 300, "chr3": 150}
SMALL = ("--core", 60, "--context", 20, "--batch-size", 3, "--threads", 1, "-q")


@pytest.fixture
def genome(tmp_path, monkeypatch):
    """A genome, and labels of each kind that its letters decide."""
    monkeypatch.chdir(tmp_path)
    letters = draw_letters(CONTIGS)
    write_genome(tmp_path, letters)
    graph, gff = [], ["##gff-version 3\n"]
    for name, text in letters.items():
        graph += [f"{name}\t{i}\t{i + 1}\t{'ACGT'.index(c)}\n" for i, c in enumerate(text)]
        for start, way in ((31, "+"), (91, "-")):
            about = f"{name}\tx\t{{}}\t{start}\t{start + 29}\t.\t{way}\t{{}}\t{{}}\n"
            gff.append(about.format("gene", ".", f"ID={name}{start}"))
            gff.append(about.format("CDS", "0", f"ID=c{name}{start};Parent={name}{start}"))
    for file, lines in (("a.bedgraph", graph), ("g.gff3", gff)):
        Path(file).write_text("".join(lines))
    return tmp_path


def words(run: Path, out: str, *more: object) -> list[object]:
    return ["finetune", "bases", run, "g.fa", "-o", out, *SMALL, *more]


KINDS = {
    "genes": ("--genes", "g.gff3", "--valid", "chr3"),
    "chain": ("--genes", "g.gff3", "--chain", "--head", "linear"),
    "classes": ("--classes", "a.bed", "--stranded", "--class-power", "0.5", "--test", "chr2"),
    "values": ("--track", "x=a.bedgraph", "--head", "unet", "--ema", "0.9"),
    "adapted": ("--classes", "a.bed", "--adapter", "lora:r=2"),
}


def read(out: str) -> tuple[bytes, dict[str, Any]]:
    """The weights, and what is told but for times and names."""
    told = json.loads(Path(out, "labeller.json").read_text())["told"]
    for key in ("seconds", "created", "argv", "out"):
        del told[key]
    return Path(out, "model.safetensors").read_bytes(), told


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_is_killed_goes_on_to_the_same_bits(kind, genome, run, capsys, monkeypatch):
    succeed(capsys, *words(run, "whole", *KINDS[kind]))
    whole = read("whole")
    assert len(whole[1]["history"]) == 3
    monkeypatch.setattr("genodiff.finetuning.fit_loop.SAVE_SECONDS", -1.0)  # after every step
    original, done, stops = BaseLesson.learn, 0, 0

    def stop(self: Any, *given: Any) -> float:
        nonlocal done
        done += 1
        if done % 4 == 0:
            raise KeyboardInterrupt  # in the midst of a step, whose gradients are lost
        return original(self, *given)

    monkeypatch.setattr(BaseLesson, "learn", stop)
    while (got := command(capsys, *words(run, "again", *KINDS[kind])))[0] == 130:
        stops += 1
        assert Path("again.partial.safetensors").exists()
    assert got[0] == 0, got[2]
    assert stops > 1
    assert read("again") == whole
    assert not list(Path().glob("again.*"))


def test_an_adapted_model_that_is_written_scores_as_its_adapters_did(genome, run, monkeypatch):
    x = bases(2, 90)
    lengths, judge, seen = torch.full((2,), 90), BaseLesson.judge, list[torch.Tensor]()

    def watch(lesson: BaseLesson, network: BaseLabeller) -> tuple[float, float]:
        assert any("parametrizations" in name for name, _ in network.named_parameters())
        with torch.no_grad():
            seen.append(network.eval().predict(x, lengths))
        return judge(lesson, network)

    monkeypatch.setattr(BaseLesson, "judge", watch)
    how = {"core": 60, "context": 20, "epochs": 1, "lr": 0.05, "adapter": "lora:r=2"}
    genodiff.finetune_bases(run, "g.fa", out="o", classes="a.bed", **how)
    _, network = read_labeller(Path("o"), "cpu")
    assert not any("parametrizations" in name for name, _ in network.named_parameters())
    with torch.no_grad():
        assert (network.predict(x, lengths) - seen[-1]).abs().max() <= 1e-6
        network.backbone.load_state_dict(load_model(run).backbone.state_dict())
        assert (network.predict(x, lengths) - seen[-1]).abs().max() > 1e-3  # it was adapted


@pytest.mark.slow
def test_what_is_kept_of_another_request_is_refused_and_fresh_begins_again(
    genome, run, capsys, monkeypatch
):
    append = Journal.append

    def stop(journal: Journal, entry: bytes) -> None:
        append(journal, entry)
        raise KeyboardInterrupt

    kind, other = KINDS["classes"], [*KINDS["classes"], "--seed", 5]
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", stop)
        code, _, err = command(capsys, *words(run, "o", *kind))
    assert (code, "1 finished epoch is kept in o.partial" in err) == (130, True), err
    check_refused(capsys, words(run, "o", *other), 2, "another request")
    Path("o.partial.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0no state")
    assert command(capsys, *words(run, "o", *kind))[0] == 0, "it begins again"
    succeed(capsys, *words(run, "plain", *kind))
    assert read("o") == read("plain")
    assert command(capsys, *words(run, "o", *other, "--fresh"))[0] == 0, "our own is replaced"
    Path("o", "mine.txt").write_text("somebody's")
    check_refused(capsys, words(run, "o", *other), 2, "exists already")


def test_labels_that_letters_decide_are_learned_on_both_strands(genome, run, capsys):
    more = ("--epochs", 12, "--lr", 0.02, "--head", "linear", "--test", "chr2")
    succeed(capsys, *words(run, "o", "--classes", "a.bed", "--stranded", *more))
    told = read("o")[1]
    assert told["counts"]["a+"] > 100
    assert all(value > 0.99 for value in told["measured"]["test"].values()), told["measured"]
    card, network = read_labeller(Path("o"), "cpu")
    assert card.names == ("none", "a+", "a-")
    assert not network.training


def test_a_plan_tells_windows_and_time_and_writes_nothing(genome, run, capsys, monkeypatch):
    monkeypatch.setattr("genodiff.jobs.machine.time_steps", lambda step: float(step()))
    before = set(Path().iterdir())
    plan = json.loads(succeed(capsys, *words(run, "o", *KINDS["genes"], "--plan", "--json")))
    assert plan["windows"] == {"train": 12, "valid": 3}
    assert (plan["steps"], plan["seconds"]) == (12, 36)  # a batch has three windows
    assert set(Path().iterdir()) == before


BAD: dict[str, tuple[tuple[object, ...], str, str, int]] = {
    "other names": (("--classes", "bad.bed"), "7\t3\t9\ta\n", "'7'", 3),
    "strand missing": (
        ("--classes", "bad.bed", "--stranded"), "chr1\t3\t9\ta\t0\t.\n", "no strand", 3,
    ),
    "no coding gene": (
        ("--genes", "bad.gff3"), "chr1\tx\tCDS\t4\t10\t.\t+\t0\tID=a\n", "no coding gene", 3,
    ),
    "track elsewhere": (("--track", "x=bad.bedgraph"), "chrX\t0\t5\t1\n", "chrX", 3),
    "below 0": (("--track", "x=bad.bedgraph"), "chr1\t0\t400\t-1\n", "poisson", 2),
    "no labels": ((), "", "--genes", 2),
    "two kinds": (("--genes", "g.gff3", "--classes", "a.bed"), "", "two kinds", 2),
    "no name": (("--track", "a.bedgraph"), "", "NAME=FILE", 2),
    "held out of all": (("--classes", "a.bed", "--test", "chr1", "chr2", "chr3"), "", "leave", 2),
    "held out twice": (
        ("--classes", "a.bed", "--test", "chr2", "--valid", "chr2:1-50"), "", "overlap", 2,
    ),
    "held out unknown": (("--classes", "a.bed", "--test", "chr9"), "", "chr9", 2),
    "held out unlabelled": (
        ("--classes", "bad.bed", "--valid", "chr2"), "chr1\t3\t9\ta\n", "--valid chr2", 3,
    ),
    "chain of classes": (("--classes", "a.bed", "--chain"), "", "--chain is for --genes", 2),
    "types of genes": (("--genes", "g.gff3", "--types", "CDS"), "", "--types is of", 2),
    "adapter of none": (("--classes", "a.bed", "--adapter", "lora:on=no"), "", "'no'", 2),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_labels_are_one_line_each(case, genome, run, capsys):
    more, text, said, exit_code = BAD[case]
    for ending in ("bed", "gff3", "bedgraph"):
        Path(f"bad.{ending}").write_text(text)
    check_refused(capsys, words(run, "o", *more), exit_code, said)


def test_held_out_places_are_in_no_training_interval(genome, run):
    asked = BasesRequest(
        run=run, fasta="g.fa", out="o", classes="a.bed", test=["chr2:11-20", "chr3"]
    )
    with Genome("g.fa") as opened:
        labels = read_class_labels("a.bed", CONTIGS, stranded=True)
        spans = split_intervals(asked, opened, labels)
    assert spans["test"] == [("chr2", 10, 20), ("chr3", 0, 150)]
    assert spans["valid"] == [("chr1", 360, 400), ("chr2", 9, 10), ("chr2", 272, 300)]
    assert spans["train"] == [("chr1", 0, 360), ("chr2", 0, 9), ("chr2", 20, 272)]


def test_subtract_equals_a_mask():
    draw = np.random.default_rng(3)
    for _ in range(200):
        ends = np.sort(draw.integers(0, 30, (5, 2)), 1).tolist()
        whole, others = ends[0], [("c", *pair) for pair in ends[1:]]
        mask = np.zeros(31, bool)
        mask[slice(*whole)] = True
        for _, start, end in others:
            mask[start:end] = False
        found = np.zeros(31, bool)
        for _, start, end in subtract([("c", *whole)], others):
            assert not found[start:end].any()
            assert start < end
            found[start:end] = True
        assert (found == mask).all()
