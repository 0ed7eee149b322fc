"""What a surrounding script has set in torch changes neither weights nor numbers."""

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_run import NETWORK, genome_text

import genodiff
from genodiff.errors import UsageError
from genodiff.kernels.defaults import own_defaults

DNA = "ACGTTGCATANNAAGC"
UNTOUCHED = {"to", "with_label"}
"""Methods of a model that make no tensor of their own."""


@contextmanager
def set_for(change: Callable[[Any], None], value: Any, usual: Any) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(usual)


def default_type(dtype: torch.dtype) -> AbstractContextManager[None]:
    return set_for(torch.set_default_dtype, dtype, torch.float32)


SURROUNDINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "float64": lambda: default_type(torch.float64),
    "bfloat16": lambda: default_type(torch.bfloat16),
    "a default device": lambda: set_for(torch.set_default_device, "meta", None),
    "a device around": lambda: torch.device("meta"),
    "inference": torch.inference_mode,
    "no gradients": torch.no_grad,
    "deterministic": lambda: set_for(torch.use_deterministic_algorithms, True, False),
}


def everything(run: Path) -> dict[str, Any]:
    """One result of each kind, by name."""
    m = genodiff.load(run, device="cpu")
    ids = torch.tensor([[7, 8, 9, 10, 7, 8]], device="cpu")
    fasta = run.parent / "genome.fa"
    oracle = genodiff.one_hot_network(m, outputs="features")
    variants = [("c1", 900, genome_text().split("\n")[1][899].upper(), "<DEL>")]
    variants += [("c1", 900, genome_text().split("\n")[1][899].upper(), x) for x in ("A", "CAT")]
    return {
        "weights": {(x.dtype, x.device.type) for x in m.network.state_dict().values()},
        "predict": m.predict(DNA).tolist(),
        "each": m.predict("ACGTA", leave_one_out=True).tolist(),
        "embed": m.embed([DNA]).tolist(),
        "bits": m.bits([DNA * 9]),
        "infill": m.infill(DNA, steps=4),
        "sample": m.sample(2, length=20, steps=4),
        "encode": m.encode([DNA, "ACG"]),
        "score": m.score_variants(variants, fasta=fasta, se=2).to_dicts(),
        "ism": m.ism("ACGTA").tolist(),
        "dependencies": np.nan_to_num(m.dependencies("ACGTA").dependency).tolist(),
        "tracks": m.tracks("ACGTA").entropy.tolist(),
        "redesign": m.redesign("ACGTNNNNACGT", rules={"require": ["GATC"]}, steps=4),
        "logits": m.network(ids).tolist(),
        "head": m.network.new_head(2).weight.tolist(),
        "one-hot": oracle(torch.eye(4, dtype=torch.float32, device="cpu")[None]).tolist(),
    }


@pytest.fixture(scope="module")
def alone(run):
    return everything(run)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_every_result_has_the_same_bits_in_any_surroundings(name, run, alone):
    with SURROUNDINGS[name]():
        found = everything(run)
    assert found["weights"] == {(torch.float32, "cpu")}
    for key, value in alone.items():
        assert str(found[key]) == str(value), key


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["float64", "a default device", "inference"])
def test_training_has_the_same_bits_in_any_surroundings(name, tmp_path, run):
    def fit(folder: str) -> str:
        genodiff.train(
            fasta=run.parent / "genome.fa", out=tmp_path / folder, device="cpu",
            backbone=NETWORK, max_steps=2, seq_len=32, batch_size=2,
        )  # fmt: skip
        return genodiff.load(tmp_path / folder, device="cpu").digest

    with SURROUNDINGS[name]():
        there = fit("there")
    assert there == fit("here")


def test_a_model_that_was_loaded_in_inference_mode_can_be_trained(run):
    with torch.inference_mode():
        m = genodiff.load(run, device="cpu")
    m.network.features(torch.tensor([[7, 8, 9]])).sum().backward()
    assert next(m.network.parameters()).grad is not None


def test_the_defaults_of_the_script_stand_again_after_a_call_and_after_a_fault(run):
    m = genodiff.load(run, device="cpu")
    with default_type(torch.float64), torch.device("meta"), torch.inference_mode():
        m.predict("ACGT")
        with pytest.raises(UsageError):
            m.predict("ACGT", every=2)
        assert torch.zeros(1).dtype == torch.float64
        assert torch.zeros(1).device.type == "meta"
        assert torch.is_inference_mode_enabled()


def test_an_oracle_sees_the_defaults_of_its_script(run):
    seen = set()

    def ask(some: list[str]) -> list[float]:
        seen.add((torch.get_default_dtype(), torch.get_default_device().type))
        return [0.0] * len(some)

    m = genodiff.load(run, device="cpu")
    with default_type(torch.float64), torch.device("meta"):
        m.redesign("ACGTNNACGT", oracle=ask, guide={"options": {"particles": 2.0}}, steps=2)
    assert seen == {(torch.float64, "meta")}


def test_two_threads_that_overlap_leave_the_type_of_the_script():
    inside, go = threading.Event(), threading.Event()

    def hold() -> None:
        with own_defaults():
            inside.set()
            go.wait(10)

    with default_type(torch.float64):
        other = threading.Thread(target=hold)
        with own_defaults():
            other.start()
            inside.wait(10)
        assert torch.get_default_dtype() == torch.float32  # the other is still inside
        go.set()
        other.join()
        assert torch.get_default_dtype() == torch.float64


def test_each_method_of_a_model_keeps_foreign_defaults_out():
    methods = {
        name: call
        for name, call in inspect.getmembers(genodiff.Model, inspect.isfunction)
        if name[0] != "_"
    }
    methods["predict of a fine-tuned model"] = genodiff.FinetunedModel.predict
    assert len(methods) > 10
    bare = {name for name, call in methods.items() if inspect.unwrap(call) is call}
    assert bare <= UNTOUCHED
