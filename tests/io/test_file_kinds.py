"""Every reader says what a file is that it does not read; a stand-in is named with its remedy."""

import gzip
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genodiff.constraints.codon_usage import read_codon_usage
from genodiff.errors import CheckpointError, DataError, GenodiffError
from genodiff.hub.source import read_source
from genodiff.hub.weight_files import open_weights, read_json_file
from genodiff.io.annotation_rows import read_annotation
from genodiff.io.bed import read_bed
from genodiff.io.diagnosis import find_other_format
from genodiff.io.fasta import read_fasta
from genodiff.io.genes import read_genes
from genodiff.io.motifs import read_motifs
from genodiff.io.text_file import read_text_pieces
from genodiff.io.value_tracks import read_values
from genodiff.io.variant_source import open_variants
from genodiff.models.opening import open_any
from genodiff.runs.sealed_files import read_bytes, read_json, read_tensors
from genodiff.settings import read_yaml
from genodiff.tasks.labelled_file import read_examples
from genodiff.tasks.unlabelled import read_queries


def zip_names(*names: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return data.getvalue()


def save(array: Any) -> bytes:
    data = io.BytesIO()
    np.savez(data, a=array)
    return data.getvalue()


WIGGLE = b"track type=wiggle_0\nfixedStep chrom=a start=1\n1\n2\n"
KINDS: dict[str, tuple[bytes, str]] = {
    "wiggle": (WIGGLE, "a wiggle file"),
    "ncbi zip": (zip_names("README.md", "ncbi_dataset/data/GCF_1/a.fna"), "zip of NCBI datasets"),
    "npz": (save(np.zeros(3)), r"arrays of NumPy \(.npz\)"),
    "workbook": (zip_names("_rels/.rels", "xl/workbook.xml"), "workbook of Excel"),
    "pickle as text": (b"(dp0\nS'a'\np1\nI1\ns.", "pickle"),
    "pickle": (pickle.dumps({"a": 1}), "pickle"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\n1 0 obj\n", "PDF"),
    "bigWig": (b"\x26\xfc\x8f\x88\x04\x00" + b"\0" * 60, "bigWig"),
    "tabix": (gzip.compress(b"TBI\x01" + b"\0" * 32), "index of tabix"),
    "bam": (gzip.compress(b"BAM\x01" + b"\0" * 32), "BAM"),
    "rds": (gzip.compress(b"X\n\0\0\0\x03" + b"\0" * 32), "data of R"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + b"\0" * 64, "HDF5"),
    "sqlite": (b"SQLite format 3\0" + b"\0" * 64, "SQLite"),
    "fai": (b"chr1\t1000\t6\t60\t61\nchr2\t500\t1100\t60\t61\n", "index"),
    "md5": (b"0" * 32 + b"  a.fa\n", "checksums"),
    "adapter": (json.dumps({"peft_type": "LORA", "r": 8}).encode(), "adapter"),
    "notebook": (b'{\n "cells": [],\n "nbformat": 4\n}', "notebook"),
    "yaml": (b"samples: samples.tsv\nref: a.fa\nthreads: 4\n", "YAML"),
    "toml": (b"[tool.x]\na = 1\n", "configuration"),
    "page": (b"<!DOCTYPE html>\n<html><body>404</body></html>\n", "web page"),
    "error": (b"404: Not Found", "server's error"),
    "xml error": (b"<Error><Code>AccessDenied</Code></Error>\n", "XML"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer"),
    "maf": (b"##maf version=1\na score=1\ns a.chr1 0 3 + 9 ACG\n", "MAF"),
    "chain": (b"chain 1 chr1 9 + 0 9 chr1 9 + 0 9 1\n9\n", "chain"),
    "newick": (b"(a:0.1,(b:0.2,c:0.3):0.1);\n", "tree"),
    "sam": (b"@HD\tVN:1.6\n@SQ\tSN:a\tLN:9\n", "SAM"),
    "paf": (b"a.c1\t100\t0\t50\t+\tb.c1\t100\t0\t50\t10\t50\t60\n", "PAF"),
    "gfa": (b"H\tVN:Z:1.0\nS\t1\tACGT\n", "GFA"),
    "phylip": (b"2 4\nTaxon1    ACGT\nTaxon2    ACGA\n", "PHYLIP"),
    "hub": (b"hub x\nshortLabel x\ngenomesFile genomes.txt\n", "hub"),
    "track line": (b"track type=bigWig bigDataUrl=http://x/y.bw\n", "track line"),
    "http": (b"HTTP/1.1 200 OK\nContent-Type: text/plain\n\n>a\nACGT\n", "server's answer"),
    "python": (b"import torch\nprint(1)\n", "Python"),
    "axt": (b"0 chr1 1 9 chr2 1 9 + 99\nACG\nACG\n", "axt"),
    "script": (b"#!/bin/bash\necho\n", "script"),
    "commented page": (b"<!-- gone -->\n<html><body>404</body></html>\n", "web page"),
    "asn.1": (b"Seq-entry ::= set {\n  class nuc-prot ,\n", "ASN.1"),
    "blast": (b"BLASTN 2.12.0+\n\n\nReference: Zheng\n", "report of BLAST"),
    "blast table": (b"q\tchr1\t99.0\t100\t1\t0\t1\t100\t201\t300\t1e-40\t180\n", "table of BLAST"),
    "abi": (b"ABIF\0etdir" + b"\0" * 100, "trace of a sequencer"),
    "snapgene": (b"\t\0\0\0\x0eSnapGene\0\x01\0\x0f" + b"\0" * 50, "SnapGene"),
    "plink": (b"l\x1b\x01" + b"\xff" * 60, "PLINK"),
    "hmm": (b"HMMER3/f [3.3 | Nov 2019]\nNAME  x\n", "profile"),
    "mmcif": (b"data_1ABC\n#\n_entry.id   1ABC\n", "structure"),
    "mail": (b"From a@b.c Thu Jan  1 00:00:00 2020\nFrom: a@b.c\nSubject: x\n", "e-mail"),
    "traceback": (
        b'Traceback (most recent call last):\n  File "x.py", line 1\n',
        "log of a program",
    ),
    "bibtex": (b"@book{x,\n title={A}\n}\n", "bibliography"),
    "svg": (b'<svg xmlns="http://www.w3.org/2000/svg"></svg>\n', "XML"),
    "weights": (b"\x3c" + b"\0" * 7 + b'{"a":{"dtype":"F32"}}' + b" " * 39, "safetensors"),
    "conflict": (b"<<<<<<< HEAD\n>a\nACGT\n=======\n", "conflict"),
}


def open_source(path: Path) -> None:
    with open_variants(path) as source:
        list(source.records())


READERS: dict[str, Callable[[Path], Any]] = {
    "a.fa": lambda path: list(read_fasta(path)),
    "a.bed": lambda path: read_bed(path, {"chr1": 9}),
    "a.vcf": open_source,
    "a.csv": open_source,
    "b.csv": lambda path: read_examples(path),
    "c.tsv": lambda path: list(read_queries(path)),
    "d.parquet": lambda path: read_examples(path),
    "e.parquet": lambda path: list(read_queries(path)),
    "a.bw": lambda path: read_values(path, {"a": 9}),
    "a.gff3": lambda path: list(read_annotation(path, {"a": 9})),
    "b.gff3": lambda path: read_genes(path, {"a": 9}),
    "a.meme": read_motifs,
    "a.yaml": read_yaml,
    "a.codons": lambda path: read_codon_usage(path, 1),
    "run": lambda path: open_any(path, "cpu"),
    "model.safetensors": lambda path: read_tensors(path),
    "weights.safetensors": lambda path: open_weights([path]),
}
OWN = {  # what a reader reads, or answers better than by a name
    ("a.bw", "wiggle"), ("a.bw", "bigWig"), ("a.yaml", "yaml"), ("run", "yaml"),
    ("a.yaml", "adapter"), ("run", "notebook"), ("run", "adapter"),
    ("a.yaml", "notebook"), ("a.meme", "xml error"), ("a.yaml", "toml"), ("run", "toml"),
    ("model.safetensors", "weights"), ("weights.safetensors", "weights"), ("run", "weights"),
    ("a.codons", "toml"), ("a.codons", "adapter"), ("a.codons", "notebook"),
}  # fmt: skip


ADAPTER = "adapter_config.json"


@pytest.mark.few(40)
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_kind_is_named(name, kind, tmp_path):
    if (name, kind) in OWN:
        pytest.skip("it is read, or told otherwise")
    path = tmp_path / name
    path.write_bytes(KINDS[kind][0])
    with pytest.raises(GenodiffError, match=f"(?i){KINDS[kind][1]}") as fault:
        READERS[name](path)
    assert str(path) in str(fault.value)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({ADAPTER: '{"base_model_name_or_path": "x/y"}', "adapter_model.safetensors": ""},
         "is an adapter of PEFT for x/y, not a model; .*merge_and_unload"),
        ({ADAPTER: "{", "adapter_model.bin": ""}, "is an adapter of PEFT, not a model"),
        ({"ncbi_dataset/x": ""}, "is a folder of NCBI datasets"),
        ({"config.json": "{}", "tf_model.h5": ""}, "is a model of TensorFlow"),
        ({"m.gguf": ""}, "is a model as GGUF"),
        ({"snapshots/x": ""}, "is a folder of a hub's cache"),
        ({"tokenizer.json": "{}"}, "is a tokenizer without a model"),
    ],
)  # fmt: skip
def test_a_folder_that_is_no_model_is_named(files, said, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(CheckpointError, match=said):
        open_any(tmp_path, "cpu")
    if "config.json" not in files:
        with pytest.raises(CheckpointError, match=said):
            read_source(tmp_path)
    with pytest.raises(DataError, match="is a directory, not a file: "):
        list(read_fasta(tmp_path))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a: b,c\n1,2\n", "a table"), ("chain pos\n1 2\n", "a table"), ("seq\tlabel\n", "a table"),
        (">name,x\nA,1\n", "a table"), ("chr1\t0\t9\t4\t5\n", "BED"), ("404 is x\n1\n", "a table"),
        ("a\t1\t2\t3\t2\n", "BED"), ("key: value\n", "a table"), ("<html>\n", "text"),
        ("track type=bedGraph\na\t0\t1\t2\n", "BED"), (">a\nACGT\n", "FASTA"), ("[1]\n", "text"),
        ("{}\n", "JSON lines"),
        ("##fileformat=VCFv4.2\n", "vcf"), ("{}\n", "jsonl"), ("a\t0\t9\t3\t4\n", "BED"),
    ],
)  # fmt: skip
def test_good_files_are_nothing_else(text, wanted):
    assert find_other_format(text.encode(), wanted) is None


INPUTS = {
    **{name: READERS[name] for name in ("a.fa", "a.bed", "a.vcf", "a.csv", "b.csv", "c.tsv")},
    "a.gb": READERS["a.fa"], "a.bcf": open_source, "e.parquet": READERS["e.parquet"],
}  # fmt: skip
WEIGHTS: dict[str, Callable[[Path], Any]] = {
    "model.safetensors": READERS["model.safetensors"],
    "model.json": lambda path: read_json(path),
    "config.json": lambda path: read_json_file(path),
    "pytorch_model.bin": lambda path: open_weights([path]),
    "weights.safetensors": READERS["weights.safetensors"],
    "last.ckpt": lambda path: open_weights([path]),
    "tokenizer.json": lambda path: read_bytes(path),
}
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 331000\n"
PAGE = "<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"
STAND_INS = {
    "lfs": (LFS, r"is a Git LFS pointer: the file itself was not downloaded; git lfs pull$"),
    "annex": ("/annex/objects/SHA256E-s331000--ab.fa\n",
              r"is a git-annex pointer: .* not downloaded; git annex get FILE$"),
    "page": (PAGE, r"(?:this )?is HTML or XML \(a web page.*; download the file again$"),
}  # fmt: skip


@pytest.mark.few(12)
@pytest.mark.parametrize("kind", STAND_INS)
@pytest.mark.parametrize("name", [*INPUTS, *WEIGHTS])
def test_a_stand_in_is_named_with_its_remedy(name, kind, tmp_path):
    if (name, kind) == ("e.parquet", "page"):
        pytest.skip("parquet is told by its end")
    text, words = STAND_INS[kind]
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError if name in INPUTS else CheckpointError, match=words) as caught:
        {**INPUTS, **WEIGHTS}[name](path)
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
    said = r"is empty: truncated to 0 bytes; download or copy it again"
    with pytest.raises(CheckpointError, match=said):
        WEIGHTS[name](tmp_path / name)


def test_data_that_only_begin_like_a_pointer_are_read(tmp_path):
    path = tmp_path / "in.fa"
    path.write_text(">annex/objects/1\nACGT\n")
    assert [one.name for one in read_fasta(path)] == ["annex/objects/1"]
