"""The core does without the wings: a copy without them trains, evaluates, samples and scores."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.test_floors import FLOOR

PACKAGE = Path(__file__).resolve().parent.parent / "genodiff"
WINGS = (
    "annotation", "conservation", "design", "diagnosis", "embedding", "finetuning", "hf", "hub",
    "laws", "maps", "quality", "reports", "studies", "tasks",
)  # fmt: skip
"""What no part of the core imports. ARCHITECTURE.md draws them beside it."""

STORY = """
import sys

# An editable installation finds what the copy lacks: without its finder the copy is all there is.
sys.meta_path[:] = [
    one for one in sys.meta_path if "editable" not in str(getattr(one, "__module__", "")).lower()
]
from genodiff.cli import main

def run(*words):
    try:
        main([*words, "--threads", "1", "-q"])
    except SystemExit as end:
        if end.code:
            sys.exit(f"genodiff {' '.join(words)}: exit {end.code}")

run("train", "g.fa", "--preset", "caduceus-ps-tiny", "--seq-len", "64", "--batch-size", "2",
    "--max-steps", "2", "--out", "run")
run("eval", "run", "--no-baselines", "--max-windows", "2")
run("sample", "run", "--fasta", "out.fa", "--n", "1", "--length", "40", "--steps", "4")
run("score", "run", "v.vcf", "--fasta", "g.fa", "--out", "scores.tsv")
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("genodiff.")}
print("wings that were imported:", *sorted(rooms & set(%r)))
"""


def test_without_the_wings_the_core_trains_evaluates_samples_and_scores(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "genodiff")  # what is compiled, too
    shutil.copytree(PACKAGE.parent / "data_recipes", tmp_path / "data_recipes")
    for wing in WINGS:
        shutil.rmtree(tmp_path / "genodiff" / wing)
    letters = "ACGTTGCATCAGGATTACAGCCTATCGGATCA" * 60
    (tmp_path / "g.fa").write_text("".join(f">c{i}\n{letters}\n" for i in range(4)))
    head = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
    (tmp_path / "v.vcf").write_text(f"{head}c1\t5\t.\tT\tC\t.\t.\t.\n")
    done = subprocess.run(
        [sys.executable, "-c", STORY % (WINGS,)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "wings that were imported:"
    assert (tmp_path / "out.fa").read_text().startswith(">")
    assert (tmp_path / "scores.tsv").exists()


def test_the_map_of_the_core_names_every_room_once() -> None:
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text()
    core = text.split("## The core", 1)[1].split("\n## ", 1)[0]
    drawn = re.findall(r"^\| `(\w+)`", core, re.MULTILINE)
    ground = {"__init__", "alphabet", "counter", "domain", "errors", "registry", "settings"}
    assert sorted(drawn) == sorted(
        set(FLOOR) - ground - {"version", "vocabulary", "words"} - set(WINGS)
    )
    assert all(f"`{wing}`" in core for wing in WINGS)
