"""The benchmark's own script: the pieces that it pretrains on are those that it names, split by
locus.
"""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
_spec = importlib.util.spec_from_file_location(
    "genomic_benchmarks_run", ROOT / "benchmarks" / "genomic_benchmarks" / "run.py"
)
assert _spec is not None
assert _spec.loader is not None
run = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run)


def test_pieces_are_taken_by_name_and_split_by_locus(tmp_path: Path) -> None:
    genomes = tmp_path / "genomes"
    genomes.mkdir()
    hg38 = ">chr1:1-6\nACGTAC\n>chr13:5-8\nAAAA\n>chr21:24985581-24985584 x\nAC\nGT\n"
    hg19 = ">chr6:995529-995531\nACG\n>chr6:112323682-112323683\nTT\n>chr10:60001-60002\nCC\n"
    for name, text in (("hg38_regions", hg38), ("hg19_regions", hg19)):
        with gzip.open(genomes / f"{name}.fa.gz", "wt") as file:
            file.write(text)
    fasta, bed = run.pieces(tmp_path, tmp_path)
    assert fasta.read_text() == (
        ">hg38_chr1_1_6\nACGTAC\n>hg38_chr21_24985581_24985584\nAC\nGT\n>hg19_chr6_995529_995531\nACG\n>hg19_chr6_112323682_112323683\nTT\n"
    )
    assert [line.split("\t") for line in bed.read_text().splitlines()] == [
        ["hg38_chr1_1_6", "0", "6", "train"], ["hg38_chr21_24985581_24985584", "0", "4", "test"],
        ["hg19_chr6_995529_995531", "0", "3", "train"], ["hg19_chr6_112323682_112323683", "0", "2",
        "valid"],
    ]  # fmt: skip


def test_what_is_written_names_no_folder_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = tmp_path / "out" / "sweep"
    sweep.mkdir(parents=True)
    kept = (run.HERE / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    rows = [
        row
        for row in kept
        if json.loads(row)["task"] == "mouse/0"
        and json.loads(row)["method"] in ("full", "baseline")
    ]
    (sweep / "results.jsonl").write_text("".join(rows))
    session = {
        "command": f"genodiff finetune gue --data {tmp_path}/data/GUE --out {sweep}",
        "git": "0" * 40,
        "genodiff": "0.1.0",
    }
    session |= {"hardware": "a CPU", "threads": 1, "started": "2026"}
    (sweep / "sessions.json").write_text(json.dumps({"sessions": [session]}))
    (tmp_path / "FINDINGS.md").write_text("What they say.\n")
    monkeypatch.setattr(run, "HERE", tmp_path)
    run.write(tmp_path / "out", tmp_path / "data")
    page = (tmp_path / "RESULTS.md").read_text()
    assert str(tmp_path) not in page
    assert "genodiff finetune gue --data SHARED/data/GUE --out OUT/sweep" in page
    row = "| mouse/0 | average | {} | {} |"
    assert row.format("scratch", "-0.021 [-0.046, +0.004] | 0.0766 | 0.0766") in page
    assert row.format("kmer-lr", "+0.054 [+0.036, +0.072] | 0.0012 | 0.0024 | ahead") in page
    assert page.endswith("What they say.\n")
