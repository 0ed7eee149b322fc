"""Published DiTs of MDLM and UDLM in transformers: their logits, their way out and back."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

import genodiff.hf
from genodiff.hub.adopt import adopt_network
from genodiff.hub.source import read_source
from genodiff.runs.model import load_model
from genodiff.runs.resolve import resolve_config
from tests.commands import exit_code
from tests.tiny_run import genome_text, save_run

DIT = {
    "kind": "dit", "d_model": 16, "n_layer": 2, "n_head": 2, "d_cond": 8, "adaln": True,
    "qk_bias": False, "tie_head": False, "rotary": True, "norm": "layer", "mlp_ratio": 4,
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """A run of a DiT that is told the time, every weight drawn (fresh heads and gates are zero)."""
    fasta = tmp_path / "genome.fa"
    fasta.write_text(genome_text())
    config = resolve_config(
        {"recipe": "own", "fasta": str(fasta), "data": {"seq_len": 64},
         "backbone": DIT | {"time_conditioning": True}}
    )  # fmt: skip
    folder = save_run(tmp_path / "first", config)
    assert exit_code("checkpoint", "export", folder, "--out", tmp_path / "drawn") == 0
    file = tmp_path / "drawn" / "model.safetensors"
    draws = torch.Generator().manual_seed(0)
    state = {
        name: x if "inv_freq" in name else x + 0.2 * torch.randn(x.shape, generator=draws)
        for name, x in load_file(file).items()
    }
    save_file(state, file, metadata={"format": "pt"})
    adopt_network(read_source(tmp_path / "drawn"), tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def folder(run):
    out = run.parent / "hub"
    assert exit_code("checkpoint", "export", run, "--out", out) == 0
    return out


def test_a_folder_that_the_reference_wrote_gives_its_logits_and_its_bytes(shared, tmp_path):
    source = shared / "conformance" / "cases" / "hf_layout_udlm_tiny"
    io = load_file(source / "io.safetensors")
    model = AutoModelForMaskedLM.from_pretrained(source)
    assert type(model) is genodiff.hf.UDLM
    with torch.no_grad():
        out = model(io["in/input_ids"], io["in/timesteps_sigma"], io["in/cond"])
    torch.testing.assert_close(out.logits, io["out/logits"], rtol=0, atol=2e-4)
    model.save_pretrained(tmp_path)
    before = load_file(source / "model.safetensors")
    after = load_file(tmp_path / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(x, after[name]) for name, x in before.items())
    told = json.loads((tmp_path / "config.json").read_text())
    kept = json.loads((source / "config.json").read_text())
    for name in kept.keys() - {"torch_dtype", "transformers_version"}:
        assert told[name] == kept[name]


def test_an_exported_run_has_its_logits_and_comes_back(run, folder, tmp_path):
    ids, sigma = torch.randint(7, 11, (2, 20)), torch.tensor([0.3, 2.0])
    model = AutoModelForMaskedLM.from_pretrained(folder)
    assert type(model) is genodiff.hf.MDLM
    with torch.no_grad():
        wanted = load_model(run).backbone(ids, sigma)
        assert torch.equal(model(ids, sigma).logits, wanted)
        assert torch.equal(model(ids, sigma[:, None]).logits, wanted)
        assert not torch.equal(model(ids).logits, wanted)
        direct, tokenizer = genodiff.hf.from_run(run)
        assert torch.equal(direct(ids, sigma).logits, wanted)
        assert tokenizer.model_max_length == 64
        model.save_pretrained(tmp_path / "saved")
        back = genodiff.load(tmp_path / "saved", device="cpu").network
        assert torch.equal(back(ids, sigma=sigma), wanted)


def test_outputs_are_those_of_transformers(folder):
    ids = torch.randint(7, 11, (2, 20))
    model = AutoModelForMaskedLM.from_pretrained(folder)
    out = model(ids, labels=ids, output_hidden_states=True)
    assert len(out.hidden_states) == 3
    torch.testing.assert_close(
        out.loss, torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), ids.flatten())
    )
    assert torch.equal(model(ids, return_dict=False), out.logits)
    loss, logits = model(ids, labels=ids, return_dict=False)
    assert torch.equal(loss, out.loss)
    assert torch.equal(logits, out.logits)


def test_copies_types_and_fresh_models_have_weights_of_their_own(folder):
    ids = torch.randint(7, 11, (2, 20))
    model = AutoModelForMaskedLM.from_pretrained(folder)
    wanted = model(ids).logits
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert not other(ids).logits.any()
    assert torch.equal(model(ids).logits, wanted)
    double = copy.deepcopy(model).double()(ids).logits
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), wanted)
    fresh = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(folder))
    assert not fresh(ids).logits.any()  # a fresh published head gives every token the same chance
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(ids).logits, wanted)


def test_twenty_steps_of_the_trainer_lower_the_loss(folder, tmp_path):
    tokenizer = genodiff.hf.CaduceusTokenizer()
    model = AutoModelForMaskedLM.from_pretrained(folder)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            str(tmp_path / "out"), max_steps=20, learning_rate=1e-2, report_to="none", seed=1,
            use_cpu=True, disable_tqdm=True, logging_steps=1, save_steps=20,
            dataloader_pin_memory=False,
        ),
        train_dataset=[tokenizer("ACGGT" * 10) for _ in range(32)],
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15),
    )  # fmt: skip
    trainer.train()
    seen = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert sum(seen[-5:]) < 0.7 * sum(seen[:5])
    saved = AutoModelForMaskedLM.from_pretrained(tmp_path / "out" / "checkpoint-20")
    ids = torch.randint(7, 11, (2, 20))
    assert torch.equal(saved(ids).logits, model.eval()(ids).logits)


def test_damaged_folders_are_one_line(folder):
    name = "backbone.blocks.1.attn_qkv.weight"
    file = folder / "model.safetensors"
    state = load_file(file)
    save_file({n: x for n, x in state.items() if n != name}, file)
    with pytest.raises(OSError, match=f"model.safetensors: lacks '{name}'"):
        AutoModelForMaskedLM.from_pretrained(folder)
    save_file(state, file)
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"n_heads": 2', '"n_heads": 4'))
    with pytest.raises(OSError, match="n_heads is 4 in the config, but the tensors say 2"):
        AutoModelForMaskedLM.from_pretrained(folder)
    with pytest.raises(ValueError, match="model_type is 'mdlm', not 'caduceus'"):
        genodiff.hf.CaduceusForMaskedLM.from_pretrained(folder)
