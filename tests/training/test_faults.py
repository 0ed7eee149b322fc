"""`make faults`, each fault tried a few times."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "robustness" / "run.py"


@pytest.mark.slow
@pytest.mark.long
def test_every_fault_is_survived_when_tried_a_few_times():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--seed", "7"],
        capture_output=True, text=True, timeout=1800, env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count("survived") >= 10
