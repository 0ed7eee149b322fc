"""`examples/train_in_one_file.py` trains the weights of `genodiff train`, bit for bit."""

import runpy
from pathlib import Path

import torch

import genodiff
from genodiff.runs.model import load_model

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "train_in_one_file.py"
STEPS = 8


def test_one_file_without_lightning_trains_the_weights_that_genodiff_train_does(tmp_path):
    text = SCRIPT.read_text()
    assert len(text.splitlines()) <= 150
    assert "lightning" not in text.lower().replace("no lightning", "")
    network = runpy.run_path(str(SCRIPT))["train"](STEPS)
    genodiff.train(
        "toy", preset="caduceus-ps-tiny", seq_len=256, batch_size=8, max_steps=STEPS,
        out=tmp_path / "run",
    )  # fmt: skip
    wanted = dict(load_model(tmp_path / "run").backbone.named_parameters())
    trained = dict(network.named_parameters())
    assert trained.keys() == wanted.keys()
    for name, weight in wanted.items():
        assert torch.equal(trained[name], weight), name
