"""The shapes and types that functions declare are those of the tensors that tests give them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
CHECKED = {**os.environ, "GENODIFF_CHECK_SHAPES": "1"}
WRONG = """
import conftest, torch
from genodiff.kernels.naive import naive_scan
naive_scan(*[torch.zeros(2)] * 5)
"""


@pytest.mark.parametrize("room", ["backbones", "diffusion", "kernels"])
def test_they_hold_in_the_tests_of(room):
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", HERE / room]
    ran = subprocess.run(words, env=CHECKED, capture_output=True, text=True, cwd=HERE.parent)
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert " passed" in ran.stdout


def test_a_tensor_of_another_shape_is_noticed():
    given = {**CHECKED, "PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}"}
    ran = subprocess.run([sys.executable, "-c", WRONG], env=given, capture_output=True, text=True)
    assert "TypeCheckError" in ran.stderr, ran.stderr
