"""Ready models: a name wherever a model goes, never written into, and never believed damaged."""

import json
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import genodiff
from genodiff.api.models import find_model, seal_facts
from genodiff.errors import CheckpointError, MachineError, UsageError
from genodiff.finetuning.model_spec import parse_models
from genodiff.runs.run_paths import READY_MODELS, find_ready_model, list_ready_models, locate
from tests.commands import command, exit_code
from tests.runs.test_checkpoint import same_json
from tests.tiny_run import change_base, genome_text, write_run, write_vcf


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder of ready models with one of them, `tiny`."""
    base = tmp_path_factory.mktemp("ready")
    (base / "models").mkdir()
    run = write_run(base)
    genodiff.export_checkpoint(run, out=base / "models" / "tiny", format="safetensors")
    return base / "models"


@pytest.fixture
def ready(exported, monkeypatch, tmp_path):
    """The folder of `tiny`, which has its name; the working folder is empty."""
    monkeypatch.setenv("GENODIFF_MODELS", str(exported))
    monkeypatch.chdir(tmp_path)
    return exported / "tiny"


def list_files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_the_name_is_the_folder(ready):
    assert locate("tiny") == ready
    assert genodiff.load("tiny").digest == genodiff.load(ready).digest
    assert parse_models(["tiny"], [])[0].name == "tiny"
    assert [one["name"] for one in genodiff.list_models() if one["name"] == "tiny"]
    shown = genodiff.show_model("tiny")
    weights = sum(p.numel() for p in genodiff.load(ready).trained.backbone.parameters())
    assert (shown["parameters"], shown["facts"]) == (weights, {})


@pytest.mark.parametrize(
    "words",
    [
        ["sample", "tiny", "--n", "1", "--length", "20", "--steps", "2", "--out", "-"],
        ["sample", "--model", "tiny", "--n", "1", "--length", "20", "--steps", "2", "--out", "-"],
        ["ism", "tiny", "--fasta", "genome.fa", "--region", "c2:101-104", "--out", "x.tsv"],
        ["tracks", "tiny", "--fasta", "genome.fa", "--region", "c2:101-104", "--out", "x"],
        ["embed", "tiny", "genome.fa", "--region", "c2:101-164", "--out", "x.npz"],
        ["score", "tiny", "x.vcf", "--fasta", "genome.fa", "--out", "y.vcf"],
        ["eval", "tiny", "--fasta", "genome.fa", "--max-windows", "2", "--no-baselines"],
        ["checkpoint", "check", "tiny"],
        ["models", "export", "tiny", "--out", "there"],
        ["models", "show", "tiny"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_every_verb_takes_the_name_and_writes_nothing_into_it(ready, words, tmp_path):
    (tmp_path / "genome.fa").write_text(genome_text())
    write_vcf(tmp_path / "x.vcf", [change_base(tmp_path / "genome.fa", "c1", 101)])
    before = list_files(ready)
    assert exit_code(*words) == 0
    assert list_files(ready) == before


def test_a_path_of_that_name_comes_first_and_is_said(ready, caplog):
    Path("tiny").mkdir()
    with caplog.at_level(logging.WARNING), pytest.raises(CheckpointError, match="missing"):
        genodiff.load("tiny")
    assert (
        f"tiny is used as a path, not as the pretrained model of that name: {ready}" in caplog.text
    )


def test_a_name_that_is_not_known_names_what_is_near(ready, capsys):
    Path("x.fa").write_text(">c1\nACGT\n")
    Path("x.vcf").write_text("#CHROM\tPOS\tID\tREF\tALT\nc1\t2\t.\tC\tT\n")
    with pytest.raises(CheckpointError, match="did you mean the pretrained model 'tiny'"):
        locate("tinny")
    with pytest.raises(UsageError, match="did you mean 'tiny'"):
        genodiff.show_model("tinny")
    for words in (
        ["eval", "tinny"],
        ["score", "x.vcf", "--model", "tinny", "--fasta", "x.fa", "--out", "y.vcf"],
        ["train", "toy", "--init", "tinny", "--out", "run"],
        ["models", "path", "tinny"],
        ["checkpoint", "check", "tinny"],
    ):
        code, _, err = command(capsys, *words)
        assert code in (2, 4), err
        assert "did you mean" in err, words
        assert "tiny" in err
        assert len(err.strip().splitlines()) == 1
    assert find_ready_model("") is find_ready_model("..") is find_ready_model("a/tiny") is None


def test_nothing_is_put_into_it(ready):
    with pytest.raises(MachineError, match=r"read-only; give --out FILE\.html"):
        genodiff.report("tiny")
    with pytest.raises(MachineError, match="read-only; give --out FOLDER"):
        genodiff.export_checkpoint("tiny")
    with pytest.raises(MachineError, match="read-only"):
        genodiff.fit_memory("tiny")


def test_a_plug_in_adds_a_model(exported, monkeypatch):
    monkeypatch.delenv("GENODIFF_MODELS", raising=False)
    monkeypatch.setitem(READY_MODELS._pieces, "maize", exported / "tiny")
    assert list_ready_models()["maize"] == find_ready_model("maize") == exported / "tiny"


def test_a_byte_that_is_flipped_in_any_file_is_seen_where_a_model_is_shown_or_opened(
    ready, tmp_path, monkeypatch
):
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    for file in ready.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    facts = {"about": "A toy.", "tables": [], "limits": ["All."]}
    (folder / "facts.json").write_text(json.dumps(seal_facts(facts, folder), indent=1))
    monkeypatch.setenv("GENODIFF_MODELS", str(folder.parent))
    before = genodiff.show_model("tiny")
    assert before["facts"] == facts
    for file in sorted(folder.iterdir()):
        if file.name == "README.md":  # says the same for readers; no program reads it
            continue
        whole = file.read_bytes()
        for at in random.Random(1).sample(range(len(whole)), min(40, len(whole))):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << (at % 7)]) + whole[at + 1 :])
            if file.name in ("model.json", "model.safetensors"):
                opened = find_fault(lambda: genodiff.load("tiny", device="cpu"))
                assert isinstance(opened, str) or same_json(whole, file.read_bytes())
            told = find_fault(lambda: genodiff.show_model("tiny"))
            if isinstance(told, str):
                assert "\n" not in told
                assert file.name in told
                assert find_fault(lambda: find_model("tiny")) == told  # what transformers is given
            else:
                assert told == before or same_json(whole, file.read_bytes()), (file.name, at)
        file.write_bytes(whole)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json: was changed .* or is missing"):
        genodiff.show_model("tiny")


def find_fault(act: Callable[[], Any]) -> Any:
    """What it gives, or the line of its `CheckpointError`."""
    try:
        return act()
    except CheckpointError as fault:
        return str(fault)
