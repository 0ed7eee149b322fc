"""The page on Hugging Face: its Python runs from top to bottom; and `import genodiff.hf` where
transformers is absent or old.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import exit_code
from tests.tiny_run import write_run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "hugging-face.md"


@pytest.mark.slow
def test_the_code_of_the_page_runs(tmp_path):
    run = write_run(tmp_path)
    assert exit_code("checkpoint", "export", run, "--out", tmp_path / "published") == 0
    (tmp_path / "runs").mkdir()
    run.rename(tmp_path / "runs" / "toy")
    code = "".join(re.findall(r"^```python$(.*?)^```$", PAGE.read_text(), re.M | re.S))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert lines[0] == "torch.Size([1, 11, 16]) torch.Size([1, 11, 32])"
    assert lines[-1] == "caduceus"
    assert (tmp_path / "to-the-hub" / "tokenizer_config.json").is_file()


@pytest.mark.parametrize(
    ("module", "found"), [("None", ""), ("types.SimpleNamespace(__version__='5.9.0')", "5.9.0")]
)
def test_without_a_new_transformers_the_import_says_in_one_line_what_to_install(module, found):
    code = f"import sys, types; sys.modules['transformers'] = {module}; import genodiff.hf"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: genodiff.hf needs transformers 5.10 or newer{found and f', found {found}'}; "
        "install it: pip install 'genodiff[hf]'"
    )
    assert "During handling" not in done.stderr
