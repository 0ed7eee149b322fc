"""The script in README runs as it stands: at most 12 lines, nothing imported but genodiff."""

import ast
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def read_script() -> str:
    section = README.read_text().split("## In Python\n")[1].split("\n## ")[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    return found[1]


def test_it_is_short_and_imports_nothing_else():
    script = read_script()
    assert len([line for line in script.splitlines() if line.strip()]) <= 12
    statements = ast.walk(ast.parse(script))
    imported = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imported] == ["import genodiff"]


def test_it_runs_and_prints_what_it_says(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", read_script()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    samples, filled, probabilities, shape, *network = done.stdout.splitlines()
    first, second = ast.literal_eval(samples)
    assert {*first, *second} <= set("ACGT")
    assert len(first) == len(second) == 60
    assert re.fullmatch("ACGTTGCA[ACGT]{8}TGCAACGT", filled)
    numbers = [float(word) for word in probabilities.strip("[]").split()]
    assert len(numbers) == 4
    assert abs(sum(numbers) - 1) < 1e-6
    assert re.fullmatch(r"\(2, \d+\)", shape)
    assert len(network) > 5
