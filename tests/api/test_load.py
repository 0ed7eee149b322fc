"""`genodiff.load`: runs, checkpoints, published folders and text, and nothing left behind."""

from pathlib import Path

import numpy as np
import pytest
import torch

import genodiff
from genodiff.errors import CheckpointError, GenodiffError, UsageError
from genodiff.runs.resolve import resolve_config
from genodiff.training.run import train
from tests.commands import exit_code
from tests.hub.mdlm_folders import DIT, network, write
from tests.hub.published_folders import sample_ids, write_published
from tests.texts import NETWORK, SONG, write_song


def listing(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


@pytest.mark.parametrize("paired", [True, False])
def test_a_published_caduceus_is_read_as_it_stands_and_as_its_import(tmp_path, paired):
    folder = tmp_path / "published"
    theirs = write_published(folder, rcps=paired)
    before = listing(tmp_path)
    ours = genodiff.load(folder, device="cpu")
    assert listing(tmp_path) == before
    with torch.no_grad():
        torch.testing.assert_close(ours.network(sample_ids()), theirs(sample_ids()), rtol=0, atol=0)
    assert exit_code("checkpoint", "import", folder, "--out", tmp_path / "run", "-q") == 0
    imported = genodiff.load(tmp_path / "run", device="cpu")
    assert imported.digest == ours.digest
    assert imported.config == ours.config
    assert imported.sample(2, length=30, steps=4) == ours.sample(2, length=30, steps=4)
    np.testing.assert_array_equal(imported.embed("ACGTTNA"), ours.embed("ACGTTNA"))
    assert ours.bits("ACGTTNA" * 20).value == imported.bits("ACGTTNA" * 20).value
    with pytest.raises(GenodiffError):
        ours.bits()  # no data of its own


def test_a_published_network_of_mdlm_is_read_as_it_stands(tmp_path):
    theirs = network(DIT)
    folder = write(tmp_path / "published", theirs)
    before = listing(tmp_path)
    ours = genodiff.load(folder)
    assert listing(tmp_path) == before
    ids, sigma = sample_ids(), torch.tensor([0.1, 0.5, 2.0])
    with torch.no_grad():
        found, expected = ours.network(ids, sigma=sigma), theirs(ids, sigma)
    torch.testing.assert_close(found[..., :12], expected[..., :12], rtol=0, atol=1e-5)
    assert len(ours.sample(1, length=20, steps=3)[0]) == 20


def test_what_is_no_model_is_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for path, said in (("nowhere", "not found"), ("empty", "not found"), ("file", "is a file")):
        with pytest.raises(CheckpointError, match=said):
            genodiff.load(tmp_path / path)


@pytest.fixture(scope="module")
def text_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    given = {"recipe": "own", "domain": "text", "text": str(write_song(folder))}
    config = resolve_config(
        given
        | {"backbone": NETWORK, "data": {"seq_len": 32}, "optim": {"warmup_steps": 0}}
        | {"train": {"max_steps": 2, "batch_size": 4, "checkpoint_every": 2}}
    )
    train(config, folder / "run", argv=["test"])
    return folder / "run"


def test_a_model_of_text_samples_fills_and_is_scored(text_run, tmp_path):
    model = genodiff.load(text_run)
    out = tmp_path / "out.txt"
    words = ["sample", "--domain", "text", "--checkpoint", text_run, "--out", out, "--n", 2]
    assert exit_code(*words, "--prompt", "The mill", "-q", "--threads", 1) == 0
    texts = model.sample(2, prompt="The mill")
    assert out.read_text() == "\n<|endoftext|>\n".join(texts) + "\n"
    filled = model.infill("The mill [[4]] idle")
    assert filled.startswith("The mill ")
    assert filled.endswith(" idle")
    assert model.infill(["a [[2]] b", "The mill [[4]] idle"], seed=3)[0][:2] == "a "
    found = model.bits()
    assert found.ci95[0] < found.value < found.ci95[1]
    ids, lengths = model.encode([SONG[:9], "abc"])
    assert ids.shape == (2, 9)
    assert lengths.tolist() == [9, 3]
    assert model.network(ids, lengths).shape == (2, 9, model.network.vocab_size)


def test_what_text_has_not_is_one_line(text_run):
    model = genodiff.load(text_run)
    for ask in (model.predict, model.embed, model.bits):
        with pytest.raises(UsageError, match=r"model is of text"):
            ask("ACGT")
    with pytest.raises(GenodiffError, match="no gap to fill"):
        model.infill("nothing is missing")
