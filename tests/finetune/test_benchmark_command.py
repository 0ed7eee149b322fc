"""The benchmark's own script: the pieces that it pretrains on are those that it names, split by locus."""

import gzip
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
_spec = importlib.util.spec_from_file_location("genomic_benchmarks_run", ROOT / "benchmarks" / "genomic_benchmarks" / "run.py")
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
        ["hg19_chr6_995529_995531", "0", "3", "train"], ["hg19_chr6_112323682_112323683", "0", "2", "valid"],
    ]  # fmt: skip


def test_what_is_written_names_no_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = tmp_path / "out" / "sweep"
    sweep.mkdir(parents=True)
    (sweep / "RESULTS.md").write_text(f"genodiff finetune --data {tmp_path}/data/GUE --out {tmp_path}/out/sweep\n")
    (sweep / "results.jsonl").write_text("{}\n")
    (sweep / "report.html").write_text("page")
    (tmp_path / "FINDINGS.md").write_text("What they say.\n")
    monkeypatch.setattr(run, "HERE", tmp_path)
    run.write(tmp_path / "out", tmp_path / "data")
    assert (tmp_path / "RESULTS.md").read_text() == "genodiff finetune --data SHARED/data/GUE --out OUT/sweep\nWhat they say.\n"
