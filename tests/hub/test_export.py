"""A run goes back to the layout of the hub, byte for byte, in either form; the card says what is
known and nothing more.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from published_folders import (
    COMPLEMENT,
    CONFIG,
    PLANT,
    assert_code,
    same_logits,
    sample_ids,
    write_published,
)
from safetensors.torch import load_file
from tiny_run import NETWORK, write_run

import genodiff
from genodiff.errors import CheckpointError, UsageError
from genodiff.hub.adopt import adopt_network
from genodiff.hub.caduceus import exchange_form
from genodiff.hub.export import export_model
from genodiff.hub.source import read_source
from genodiff.runs.model import load_model
from genodiff.runs.sealed_files import seal

BIASES = {"bias": True, "conv_bias": False}


def round_trip(source: Path, folder: Path) -> Path:
    adopt_network(read_source(source), folder / "run")
    export_model(folder / "run", folder / "out", layout="caduceus")
    return folder / "out"


@pytest.mark.parametrize("name", ["hf_layout_ps_tiny", "hf_layout_ph_tiny"])
def test_what_the_reference_wrote_comes_back_byte_for_byte(name, shared, tmp_path):
    source = shared / "conformance" / "cases" / name
    out = round_trip(source, tmp_path)
    assert (out / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    assert json.loads((out / "config.json").read_text()) == json.loads(
        (source / "config.json").read_text()
    )
    io, backbone = load_file(source / "io.safetensors"), load_model(tmp_path / "run").backbone
    ids = next(x for key, x in io.items() if "ids" in key)
    wanted = {key: x for key, x in io.items() if key.endswith(("logits", "logits_f64"))}
    assert wanted
    for key, logits in wanted.items():
        atol = 1e-9 if logits.dtype == torch.float64 else 2e-4
        with torch.no_grad():
            found = backbone.to(logits.dtype)(ids)
        torch.testing.assert_close(found, logits, rtol=0, atol=atol, msg=key)
    again = round_trip(out, tmp_path / "again")
    assert (again / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "changes",
    [
        {"fused_add_norm": False},
        {"rcps": False, "fused_add_norm": False},
        {"rcps": False, "rms_norm": False, "tie_word_embeddings": False},
        {"bidirectional_weight_tie": False, "bidirectional_strategy": "ew_multiply", "n_layer": 3},
        {"ssm_cfg": {"d_state": 3, "d_conv": 2, "expand": 1, "dt_rank": 5, **BIASES}},
        {"rcps": False, "tie_word_embeddings": False, "bidirectional": False},
        {"complement_map": dict(sorted(CONFIG["complement_map"].items()))},
        {"architectures": ["Caduceus"]},
        {"architectures": ["CaduceusForSequenceClassification"]},
        PLANT,
    ],
    ids=str,
)
def test_every_published_form_keeps_its_logits_and_comes_back_byte_for_byte(tmp_path, changes):
    theirs, source = write_published(tmp_path / "hf", **changes), tmp_path / "hf"
    out = round_trip(source, tmp_path)
    assert (out / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    assert json.loads((out / "config.json").read_text()) == CONFIG | changes
    if changes is not PLANT:  # its bases have other ids
        same_logits(load_model(tmp_path / "run").backbone, theirs)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"bidirectional_weight_tie": False},
        {"bidirectional_strategy": "ew_multiply", "rms_norm": False},
        {"ssm_cfg": {"d_state": 3, "bias": True}, "n_layer": 4},
        {"ssm_cfg": {"d_state": 3, "bias": True}, "bidirectional_weight_tie": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("fused", [True, False])
def test_the_fused_and_the_unfused_form_have_the_same_logits(tmp_path, changes, fused):
    theirs = write_published(tmp_path / "hf", fused_add_norm=fused, **changes).double()
    adopt_network(read_source(tmp_path / "hf"), tmp_path / "run")
    export_model(tmp_path / "run", tmp_path / "other", layout="caduceus", fused=not fused)
    other = read_source(tmp_path / "other")
    assert other.settings.alternate_strands is not fused
    again = other.settings.build(16, COMPLEMENT)
    again.load_state_dict(other.tensors)
    ids = sample_ids()
    with torch.no_grad():
        torch.testing.assert_close(again.double()(ids), theirs(ids), rtol=0, atol=1e-10)
    back = exchange_form(*exchange_form(other.settings, other.tensors))
    assert back[0] == other.settings
    assert all(torch.equal(back[1][n], x) for n, x in other.tensors.items())


def test_a_network_that_has_one_form_only_says_so(tmp_path):
    write_published(tmp_path / "hf", n_layer=3)
    adopt_network(read_source(tmp_path / "hf"), tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"odd number of layers \(3\).*--fused"):
        export_model(tmp_path / "run", tmp_path / "out", layout="caduceus", fused=False)
    assert not (tmp_path / "out").exists()


def test_a_run_of_our_own_exports_with_a_card_and_comes_back(tmp_path, capsys):
    run = write_run(tmp_path, backbone=NETWORK | {"n_layer": 2})
    entry = {
        "checkpoint": load_model(run).digest, "bits_per_base": 1.9368, "ci95_bits": [1.9339,
        1.9398], "perplexity": 3.829, "tokens": 1234,
        "seed": 7, "markov_bits": {"0": 1.95, "8": 1.93},
    }  # fmt: skip
    told = {"test": entry, "valid": entry | {"checkpoint": "of another"}}
    (run / "eval.json").write_text(json.dumps(told))
    licence = ["--unfused", "--license", "cc-by-4.0"]
    for words in ([], ["--fused"], licence, ["--format", "safetensors"]):
        out = tmp_path / "_".join(["out", *words]).replace("-", "")
        assert_code(0, "checkpoint", "export", str(run), "--out", str(out), "--json", "--threads",
                    "1", *words)  # fmt: skip
        found = json.loads(capsys.readouterr().out)
        assert sorted(found["files"]) == sorted(p.name for p in out.iterdir())
        text = (out / "README.md").read_text()
        assert "| test | 1.9368 | 1.9339 – 1.9398 | 3.8290 | 1.9300 | 1,234 | 7 |" in text
        assert "| valid |" not in text
        assert ("Licence of these weights: cc-by-4.0." in text) is ("--license" in words)
        backbone = load_model(run).backbone
        if "safetensors" in words:
            same_logits(load_model(out).backbone, backbone)
            continue
        config = json.loads((out / "config.json").read_text())
        assert config["fused_add_norm"] is ("--fused" in words)
        adopt_network(read_source(out), tmp_path / f"again_{out.name}")
        if "--fused" not in words:
            same_logits(load_model(tmp_path / f"again_{out.name}").backbone, backbone)


def test_a_card_without_an_evaluation_says_that_nothing_was_measured(tmp_path):
    export_model(write_run(tmp_path), tmp_path / "out", layout="caduceus")
    assert "Not measured" in (tmp_path / "out" / "README.md").read_text()


def test_an_existing_folder_and_a_form_of_nothing_are_refused(tmp_path):
    run = write_run(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").touch()
    with pytest.raises(UsageError, match="exists already"):
        export_model(run, tmp_path / "out", layout="caduceus")
    with pytest.raises(UsageError, match="--fused"):
        export_model(run, tmp_path / "new", layout="safetensors", fused=True)


def test_half_keeps_weights_in_16_bits_and_computes_in_32(tmp_path):
    run = write_run(tmp_path)
    told = export_model(run, tmp_path / "half", layout="safetensors", half=True)
    whole = export_model(run, tmp_path / "whole", layout="safetensors")
    assert (told["dtype"], whole["dtype"]) == ("F16", "F32")
    kept, own = (load_model(tmp_path / name) for name in ("half", "whole"))
    assert told["checkpoint"] == kept.digest != own.digest
    for mine, theirs in zip(kept.backbone.parameters(), own.backbone.parameters(), strict=True):
        assert mine.dtype == torch.float32
        assert torch.equal(mine, theirs.half().float())
    sizes = [(tmp_path / x / "model.safetensors").stat().st_size for x in ("half", "whole")]
    assert sizes[0] < 0.7 * sizes[1]
    with pytest.raises(UsageError, match="only for the format safetensors"):
        export_model(run, tmp_path / "no", layout="caduceus", half=True)
    card = json.loads((tmp_path / "half" / "model.json").read_text())
    del card["weights_dtype"]
    (tmp_path / "half" / "model.json").write_text(json.dumps(seal(card)))
    with pytest.raises(CheckpointError, match=r"dtype is not float32|dtype F16, not F32"):
        load_model(tmp_path / "half")


def test_splits_of_a_bed_go_with_the_weights(tmp_path):
    bed = tmp_path / "mine.bed"
    bed.write_text("c1\t0\t6000\ttrain\nc2\t0\t4000\tvalid\nc3\t0\t3001\ttest\n")
    run = write_run(tmp_path, bed=str(bed))
    before = genodiff.evaluate(run, max_windows=4, baselines=False)
    export_model(run, tmp_path / "out", layout="safetensors")
    bed.unlink()
    export_model(tmp_path / "out", tmp_path / "again", layout="safetensors")
    for folder in (tmp_path / "out", tmp_path / "again"):
        assert json.loads((folder / "model.json").read_text())["config"]["bed"] == "splits.bed"
        after = genodiff.evaluate(
            folder, fasta=tmp_path / "genome.fa", max_windows=4, baselines=False, keep=False
        )
        assert after["bits_per_base"] == before["bits_per_base"]
        assert after["windows_total"] == before["windows_total"]


@pytest.mark.parametrize("layout", ["caduceus", "safetensors"])
def test_an_exported_folder_is_imported(run, tmp_path, layout):
    genodiff.export_checkpoint(run, out=tmp_path / "out", format=layout)  # type: ignore[arg-type]
    planned = genodiff.import_checkpoint(tmp_path / "out", out=tmp_path / "again", plan=True)
    assert not (tmp_path / "again").exists()
    found = genodiff.import_checkpoint(tmp_path / "out", out=tmp_path / "again")
    assert found["parameters"] == planned["parameters"]
    given = ["ACGTTTGACANNNNACGTTT"]
    one, two = (genodiff.load(path, device="cpu") for path in (run, tmp_path / "again"))
    np.testing.assert_allclose(one.predict(given)[0], two.predict(given)[0], atol=1e-6)
