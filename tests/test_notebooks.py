"""Every notebook runs from top to bottom without shared data or network."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))


# Minutes each: CI runs the others, and `make test-all` these too.
LONG = {
    "an_honest_comparison", "annotate_your_genome", "design_of_promoters",
    "embeddings_and_a_linear_head", "fine_tune_and_predict", "fine_tuning_on_a_small_task",
    "from_a_vcf_to_a_ranked_table", "from_fasta_to_new_dna", "variants_with_relatives",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.long] * (path.stem in LONG))
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs_from_top_to_bottom(path, tmp_path):
    copy = tmp_path / path.name  # it runs where it stands, and writes files there
    shutil.copy(path, copy)
    words = ["--nbmake", "--nbmake-timeout=900", "-p", "no:cacheprovider", "-q", "-o", "addopts=",
             "-W", "default"]  # fmt: skip
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(copy)],
        cwd=tmp_path,
        env={"OMP_NUM_THREADS": "1", **os.environ, "PATH": path, "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=1000,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs_and_without_traces_of_the_machine_it_ran_on(path):
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    assert outputs
    assert all(
        output.get("name") != "stderr" and output.output_type != "error" for output in outputs
    )
    text = path.read_text()
    assert len(text) < 600_000
    assert not re.search(r"/(home|root|work|tmp)/|site-packages", text)
