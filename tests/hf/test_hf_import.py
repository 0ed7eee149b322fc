"""`import genodiff.hf`: where transformers is absent, and what it costs where it is not wanted."""

import subprocess
import sys

import pytest


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
