"""Regions and designs with a memory of the training genome: what is drawn, what is left out."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_run import genome_text
from torch import Tensor, nn

import genodiff
from genodiff.constraints.design_rules import make_rules, read_rule_words
from genodiff.design.design_drawing import DesignDrawing
from genodiff.errors import UsageError
from genodiff.generate.guiding import Guiding
from genodiff.generate.infill import Gap
from genodiff.generate.oracle import Oracle
from genodiff.generate.sample_memory import SampleMemory
from genodiff.generate.sampling import Sampling
from genodiff.io.faidx import Genome
from genodiff.memory.memory import NOWHERE, Memory
from genodiff.memory.remembering import remembering
from genodiff.runs import training_memory
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import open_train_memory

COPY = (5740, 5743)  # of c1: test, and the same bases as from 1,030 on, which is train
TRAINED = (2500, 2520)
DRAW: dict[str, Any] = {"steps": 4, "device": "cpu"}
RULES = {"max_edits": 2, "avoid": ["GATC"]}


@pytest.fixture
def genome(run):
    return Genome(run.parent / "genome.fa")


def ask(
    model: TrainedModel,
    genome: Genome,
    regions: Sequence[tuple[int, int]],
    rules: dict[str, Any],
    n: int,
    guiding: Guiding | None = None,
    **how: Any,
) -> DesignDrawing:
    gaps = [Gap("c1", a, b) for a, b in regions]
    held = make_rules(read_rule_words(rules), genome.contigs)
    return DesignDrawing(model, Sampling(**how), n, genome, gaps, held, guiding=guiding)


def list_designs(drawing: DesignDrawing, seed: int = 1) -> list[str]:
    drawn = drawing.read(drawing.draw(seed))
    return [after.decode() for _, _, designs in drawn for after, _ in designs]


class _RememberingNetwork(nn.Module):
    """A network and a memory, as one network."""

    def __init__(self, backbone: nn.Module, memory: Memory, own: tuple[int, int]) -> None:
        super().__init__()
        self.backbone, self.held = backbone, [memory]
        self.own = own

    def __deepcopy__(self, _: dict[int, Any]) -> "_RememberingNetwork":
        return _RememberingNetwork(copy.deepcopy(self.backbone), self.held[0], self.own)

    def forward(
        self, xt: Tensor, sigma: Tensor | None = None, lengths: Tensor | None = None
    ) -> Tensor:
        own = [self.own] * len(xt)
        return remembering(self.backbone, self.held[0], without=own)(xt, sigma, lengths)


def like_pairs(sequences: list[str]) -> list[float]:
    return [float(one.upper().count("TA")) for one in sequences]


def make_guiding(guidance: str | None, conditional: TrainedModel) -> Guiding | None:
    if guidance is None:
        return None
    if guidance == "cfg":
        return Guiding("cfg", 2.0, conditional=conditional)
    return Guiding(guidance, 2.0, Oracle(like_pairs, "TA", "strings", None, "0" * 64))


def sharpen(backbone: Any) -> Any:
    """Another network of the same kind."""
    other = copy.deepcopy(backbone)
    with torch.no_grad():
        for weight in other.parameters():
            weight *= 1.3
    return other


@pytest.mark.few(1)
@pytest.mark.parametrize("guidance", [None, "smc", "beam", "best-of-n", "cfg"])
def test_a_memory_is_a_denoiser_to_constraints_and_guidance(model, genome, guidance):
    """The same bytes as of networks that remember by themselves, the own locus left out."""
    conditional = model._replace(network=sharpen(model.backbone))
    made = make_guiding(guidance, conditional)
    for place in (TRAINED, COPY):
        request = ask(model, genome, [place], RULES, 3, made, memory="on", steps=4)
        ((start, end),) = request.designer.groups[0].rounds
        held, own = request.memory.memory, request.memory.leave_out(("c1", start, end))
        assert (own != NOWHERE) == (place == TRAINED)
        whole, other = (
            one._replace(network=_RememberingNetwork(one.backbone, held, own))  # type: ignore[arg-type]
            for one in (model, conditional)
        )
        again = ask(whole, genome, [place], RULES, 3, make_guiding(guidance, other), steps=4)
        found = list_designs(request)
        assert found == list_designs(again)
    assert found != list_designs(ask(model, genome, [COPY], RULES, 3, made, steps=4))


@pytest.mark.slow
def test_a_memory_of_nothing_leaves_every_design(run, genome, tmp_path, monkeypatch):
    empty = Memory.build([("c", 0, np.full(300, 4, np.uint8))])
    monkeypatch.setattr(
        training_memory,
        "open_train_memory",
        lambda model, *_, **__: open_train_memory(model)._replace(memory=empty),
    )
    bed = tmp_path / "r.bed"
    bed.write_text("c1\t2500\t2520\nc1\t5740\t5760\nc2\t300\t309\n")
    fasta: dict[str, Any] = {"fasta": run.parent / "genome.fa", "bed": bed, "n": 2, **DRAW}
    for name, more in (("a", {}), ("b", {"rules": RULES, "guide": guide()})):
        for memory in ("on", "off"):
            genodiff.redesign(
                run, out=tmp_path / f"{name}.{memory}", memory=memory, **fasta, **more
            )
        one, other = (tmp_path / f"{name}.{memory}.vcf" for memory in ("on", "off"))
        assert list_bases(tmp_path / f"{name}.on") == list_bases(tmp_path / f"{name}.off")
        rows = [[x for x in f.read_text().split("\n") if x[:1] != "#"] for f in (one, other)]
        assert rows[0] == rows[1]


def guide() -> dict[str, Any]:
    return {"guidance": "smc", "strength": 1.0, "oracle": like_pairs}


def list_bases(path: Path) -> list[str]:
    return [line for line in path.read_text().split("\n") if not line.startswith(">")]


def share_kept(path: Path, text: str) -> float:
    found = [x for x in "".join(list_bases(path)).upper()]
    return float(np.mean([a == b for a, b in zip(found, text * 9, strict=False)]))


@pytest.mark.parametrize("verb", ["redesign", "sample"])
def test_what_stood_in_a_region_is_not_copied_back(run, genome, verb, tmp_path, monkeypatch):
    """Of the training genome, under other names and in lower case."""
    other = tmp_path / "other.fa"
    other.write_text(genome_text().lower().replace(">c1\n", ">one\n"))
    text = genome.fetch("c1", *TRAINED).decode().upper()
    region = [f"one:{TRAINED[0] + 1}-{TRAINED[1]}"]
    given: dict[str, Any] = {"region": region, "n": 4, **DRAW}
    given |= {"fasta": other} if verb == "redesign" else {"template": other, "only_filled": True}
    call = getattr(genodiff, verb)
    for name, memory in (("on", "on"), ("off", "off"), ("leak", "on")):
        if name == "leak":
            monkeypatch.setattr(SampleMemory, "leave_out", lambda *_: NOWHERE)
        call(run, out=tmp_path / name, memory=memory, **given)
    assert share_kept(tmp_path / "leak", text) > 0.95
    assert share_kept(tmp_path / "on", text) < 0.6
    assert abs(share_kept(tmp_path / "on", text) - share_kept(tmp_path / "off", text)) < 0.15


def test_a_copy_elsewhere_fills_a_region(run, genome, tmp_path):
    text = genome.fetch("c1", 5740, 5760).decode().upper()
    for memory in ("on", "off"):
        genodiff.redesign(
            run, out=tmp_path / memory, fasta=run.parent / "genome.fa", region=["c1:5741-5760"],
            memory=memory, n=4, **DRAW,
        )  # fmt: skip
    assert share_kept(tmp_path / "on", text) > 0.95
    assert share_kept(tmp_path / "off", text) < 0.6
    sequence = genome.fetch("c1", 5716, 5790).decode()
    designs = genodiff.load(run, device="cpu").redesign(
        sequence, 2, regions=[(24, 44)], memory="on", steps=4
    )
    assert [one[24:44].upper() for one in designs] == [text, text]


def test_company_changes_no_byte_and_the_sidecar_names_the_memory(run, tmp_path):
    """Windows of different loci, each left out, in batches of 1 and of 5."""
    bed = tmp_path / "r.bed"
    bed.write_text("c1\t1030\t1040\nc1\t5740\t5750\nc2\t300\t309\nc2\t900\t1000\n")
    given: dict[str, Any] = {"fasta": run.parent / "genome.fa", "bed": bed, "n": 2, **DRAW}
    for size in (1, 5):
        told = genodiff.redesign(
            run, out=tmp_path / f"{size}.fa", memory="on", batch_size=size, **given
        )
    assert (tmp_path / "1.fa").read_bytes() == (tmp_path / "5.fa").read_bytes()
    assert "memory=on" in (tmp_path / "1.fa").read_text()
    kept = json.loads((tmp_path / "5.fa.json").read_text())
    assert kept["memory"] == told["memory"]
    assert (kept["memory"]["mode"], len(kept["memory"]["fingerprint"])) == ("on", 64)
    plain = genodiff.redesign(run, out=tmp_path / "p.fa", **given)
    assert "memory" not in plain
    filled = genodiff.sample(
        run, out=tmp_path / "g.fa", template=run.parent / "genome.fa", bed=bed, only_filled=True,
        memory="on", n=1, **DRAW,
    )  # fmt: skip
    assert filled["memory"]["fingerprint"] == kept["memory"]["fingerprint"]


def test_what_cannot_be_is_refused_in_one_line(run, tmp_path):
    fasta, region = run.parent / "genome.fa", ["c1:101-110"]
    for call, given in (
        (genodiff.redesign, {"fasta": fasta}),
        (genodiff.sample, {"template": fasta}),
    ):
        with pytest.raises(UsageError, match="novel is for new sequences and templates"):
            call(run, out=tmp_path / "x.fa", region=region, memory="novel", **given)
        with pytest.raises(UsageError, match="no --memory 'onn'"):
            call(run, out=tmp_path / "x.fa", region=region, memory="onn", **given)
