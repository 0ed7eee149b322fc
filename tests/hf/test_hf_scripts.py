"""Scripts as users of published Caduceus have them run with `import genodiff.hf` added."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hf_folders import write_with_remote_code

MODEL_CARD = """
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer
import genodiff.hf

model_name = "{folder}"
tokenizer = AutoTokenizer.from_pretrained(model_name)
model = AutoModelForMaskedLM.from_pretrained(model_name)
inputs = tokenizer("ACGTNacgt[MASK]", return_tensors="pt")
with torch.inference_mode():
    outputs = model(**inputs, output_hidden_states=True)
hidden = outputs.hidden_states[-1]
rc = torch.tensor([tokenizer.complement_map[i] for i in inputs["input_ids"][0].tolist()])
other = model(rc.flip(0)[None]).logits.flip(1)[..., list(model.config.complement_map.values())]
print(tuple(outputs.logits.shape), tuple(hidden.shape), torch.allclose(other, outputs.logits))
"""


def run_script(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder.parent / "home")}
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning:genodiff", "-c", code], env=environment,
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("trust", ["", ", trust_remote_code=True"])
def test_the_script_of_a_model_card_runs_on_a_folder(tmp_path, trust):
    write_with_remote_code(tmp_path / "hub")
    code = MODEL_CARD.replace("(model_name)", f"(model_name{trust})")
    done = run_script(code.format(folder=tmp_path / "hub"), tmp_path / "hub")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(1, 11, 16) (1, 11, 24) True"
    assert not re.search("remote code|custom code|torch_dtype", done.stderr)
