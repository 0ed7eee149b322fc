"""`import genodiff.hf`: where transformers is absent, and what it costs where it is not wanted."""

import subprocess
import sys


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_without_transformers_the_import_says_in_one_line_what_to_install():
    done = python("import sys; sys.modules['transformers'] = None; import genodiff.hf")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: genodiff.hf needs transformers 5.10 or newer; "
        "install it: pip install 'genodiff[hf]'"
    )
    assert "During handling" not in done.stderr


def test_an_older_transformers_is_named():
    code = (
        "import sys, types\nold = types.ModuleType('transformers')\nold.__version__ = '5.9.0'\n"
        "sys.modules['transformers'] = old\nimport genodiff.hf"
    )
    done = python(code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: genodiff.hf needs transformers 5.10 or newer, found 5.9.0; "
        "install it: pip install 'genodiff[hf]'"
    )
