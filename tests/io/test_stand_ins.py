"""What is saved in place of a large file is named, with the command that gets the file itself."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from genodiff.errors import CheckpointError, DataError, GenodiffError
from genodiff.hub.weight_files import open_weights, read_json_file
from genodiff.io.bed import read_bed
from genodiff.io.fasta import read_fasta
from genodiff.io.text_file import read_text_pieces
from genodiff.io.variant_source import open_variants
from genodiff.runs.sealed_files import read_bytes, read_json, read_tensors
from genodiff.tasks.labelled_file import read_examples
from genodiff.tasks.unlabelled import read_queries

LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 331000\n"
ANNEX = "/annex/objects/SHA256E-s331000--ab.fa\n"
PAGE = "<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"
KINDS = {
    "lfs": (LFS, r"is a Git LFS pointer: the file itself was not downloaded; git lfs pull$"),
    "annex": (ANNEX, r"is a git-annex pointer: .* not downloaded; git annex get FILE$"),
    "page": (PAGE, r"(?:this )?is HTML or XML \(a web page.*; download the file again$"),
}


def open_source(path: Path) -> None:
    with open_variants(path):
        pass


INPUTS: dict[str, Callable[[Path], Any]] = {
    "a.fa": lambda path: list(read_fasta(path)),
    "a.gb": lambda path: list(read_fasta(path)),
    "a.bed": lambda path: read_bed(path, {"chr1": 9}),
    "a.vcf": open_source,
    "a.bcf": open_source,
    "a.csv": open_source,
    "b.csv": lambda path: list(read_queries(path)),
    "b.parquet": lambda path: list(read_queries(path)),
    "c.tsv": lambda path: read_examples(path),
}
WEIGHTS: dict[str, Callable[[Path], Any]] = {
    "model.safetensors": lambda path: read_tensors(path),
    "model.json": lambda path: read_json(path),
    "config.json": lambda path: read_json_file(path),
    "pytorch_model.bin": lambda path: open_weights([path]),
    "weights.safetensors": lambda path: open_weights([path]),
    "last.ckpt": lambda path: open_weights([path]),
    "tokenizer.json": lambda path: read_bytes(path),
}


@pytest.mark.few(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*INPUTS, *WEIGHTS])
def test_a_stand_in_is_named_with_its_remedy(name, kind, tmp_path):
    if (name, kind) == ("b.parquet", "page"):
        pytest.skip("parquet is told by its end")
    text, words = KINDS[kind]
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(GenodiffError, match=words) as caught:
        {**INPUTS, **WEIGHTS}[name](path)
    assert isinstance(caught.value, DataError if name in INPUTS else CheckpointError)
    assert str(path) in str(caught.value)


def test_a_text_may_be_a_web_page_and_no_pointer(tmp_path):
    path = tmp_path / "page.txt"
    path.write_text(PAGE)
    assert "".join(read_text_pieces(path)) == PAGE
    path.write_text(LFS)
    with pytest.raises(DataError, match="git lfs pull"):
        list(read_text_pieces(path))


def test_a_link_of_git_annex_without_its_file_says_how_to_get_it(tmp_path):
    for name, read in {"a.fa": INPUTS["a.fa"], "config.json": read_json_file}.items():
        os.symlink(".git/annex/objects/Xx/SHA256E-s9--ab", tmp_path / name)
        with pytest.raises(GenodiffError, match=r"broken link to \.git/annex.*git annex get FILE"):
            read(tmp_path / name)


@pytest.mark.parametrize("name", WEIGHTS)
def test_an_empty_file_of_a_checkpoint_is_called_empty(name, tmp_path):
    (tmp_path / name).touch()
    with pytest.raises(
        CheckpointError, match=r"is empty: truncated to 0 bytes; download or copy it again"
    ):
        WEIGHTS[name](tmp_path / name)


def test_data_that_only_begin_like_a_pointer_are_read(tmp_path):
    path = tmp_path / "in.fa"
    path.write_text(">annex/objects/1\nACGT\n")
    assert [one.name for one in read_fasta(path)] == ["annex/objects/1"]
