"""A model of `finetune bases` on a genome: files that others read, shards, stops, arrays."""

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyBigWig
import pysam
import pytest
from Bio import SeqIO

import genodiff
from genodiff.annotation.base_labels import read_class_labels, read_gene_labels
from genodiff.annotation.gene_grammar import CodingGene, format_bed12, format_gff3, label_genes
from genodiff.errors import GenodiffError
from tests.commands import check_refused, succeed
from tests.finetuning.motif_task import draw_letters, write_genome

QUOTED = str.maketrans({";": "%3B", "%": "%25"})
CONTIGS = {"chr2": 1003, "chr10": 61, "chr1": 700}
GENES = [CodingGene(1, ((3, 10), (15, 23))), CodingGene(-1, ((30, 34), (40, 41), (50, 60)))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run):
    """A genome and two models of it, of genes (a chain) and of classes that letters decide."""
    folder = tmp_path_factory.mktemp("bases")
    letters = draw_letters(CONTIGS)
    letters["chr2"] = letters["chr2"][:500] + "N" * 40 + letters["chr2"][540:]
    write_genome(folder, letters)
    gff = format_gff3([(name, GENES) for name in CONTIGS], CONTIGS)
    (folder / "g.gff3").write_text("".join(gff))
    (folder / "x.bedgraph").write_text("".join(f"{n}\t0\t{k}\t2\n" for n, k in CONTIGS.items()))
    how = {"core": 60, "context": 20, "head": "linear", "batch_size": 4}
    for name, labels in (
        ("genes", {"genes": folder / "g.gff3", "chain": True, "epochs": 2}),
        ("classes", {"classes": folder / "a.bed", "stranded": True, "epochs": 10, "lr": 0.02}),
        ("values", {"track": [f"x={folder / 'x.bedgraph'}"], "epochs": 1}),
    ):
        genodiff.finetune_bases(run, folder / "g.fa", out=folder / name, **how, **labels)
    return folder


@pytest.fixture(params=["genes", "classes", "values"])
def kind(request, folder, monkeypatch):
    monkeypatch.chdir(folder)
    kind: str = request.param
    return kind


@pytest.mark.few(2)
def test_bigwig_has_the_array_at_its_places(kind, tmp_path):
    genodiff.predict(kind, Path("g.fa"), out=tmp_path / "o")
    model = genodiff.load(kind)
    arrays = model.predict(Path("g.fa"))
    assert {name: one.shape for name, one in arrays.items()} == {
        name: (n, len(model.labels)) for name, n in CONTIGS.items()
    }
    for file in (tmp_path / "o").glob("*.bw"):
        columns = [i for i, name in enumerate(model.labels) if name == file.stem]
        if kind == "genes":
            way = file.stem[-1]
            columns = [i for i, n in enumerate(model.labels) if n[:4] == "exon" and n[-1] == way]
        with pyBigWig.open(str(file)) as opened:
            assert opened.chroms() == CONTIGS
            for name, array in arrays.items():
                values = opened.values(name, 0, CONTIGS[name], numpy=True)
                assert np.abs(values - array[:, columns].sum(1)).max() < 1e-6
    one = model.predict(Path("g.fa"), region=["chr2:101-160"])
    assert np.abs(one["chr2:101-160"] - arrays["chr2"][100:160]).max() < 0.5
    with open("g.fa") as file:
        text = next(SeqIO.parse(file, "fasta"))
    held = model.predict({"chr2": str(text.seq)})
    assert (held["chr2"] == arrays["chr2"]).all()


def read_page(folder: Path) -> Any:
    page = (folder / "tracks.html").read_text()
    return json.loads(re.search(r'id="data">(.*?)</script>', page)[1])  # type: ignore[index]


@pytest.mark.slow
def test_what_is_predicted_is_drawn_below_the_tracks_of_a_network(
    folder, run, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(folder)
    genodiff.predict("genes", Path("g.fa"), out=tmp_path / "o")
    both = ("--region", "chr2:1-90", "--region", "chr10:5-60", "--threads", 1, "-q")
    words = ["tracks", run, "--fasta", "g.fa", *both, "--track", tmp_path / "o"]
    more = ["--track", "twos=x.bedgraph", "--format", "html", "--format", "npz"]
    succeed(capsys, *words, *more, "-o", tmp_path / "t")
    data = read_page(tmp_path / "t")
    assert [(one["name"], one["limits"]) for one in data["related"]] == [
        ("coding+", [0, 1]), ("coding-", [0, 1]), ("twos", [0, 2]),
    ]  # fmt: skip
    with pyBigWig.open(str(tmp_path / "o" / "coding+.bw")) as file:
        for region in data["regions"]:
            start = region["start"] - 1
            place = (region["contig"], start, start + len(region["letters"]))
            shown = [np.frombuffer(base64.b64decode(one), "<f4") for one in region["related"]]
            np.testing.assert_array_equal(shown[0], file.values(*place, numpy=True))
            assert (shown[2] == 2).all()
    assert [one["genes"] for one in data["regions"]] == [[], []]  # none is predicted
    shutil.copy("g.gff3", tmp_path / "o" / "labels.gff3")
    succeed(capsys, *words, "--format", "html", "-o", tmp_path / "u")
    regions = read_page(tmp_path / "u")["regions"]
    genes = next(one["genes"] for one in regions if one["contig"] == "chr2")
    assert [tuple(map(tuple, one["coding"])) for one in genes] == [one.parts for one in GENES]
    told = json.loads((tmp_path / "t" / "tracks.json").read_text())
    assert set(told["tracks"]) == {"coding+", "coding-", "twos"}
    with np.load(tmp_path / "t" / "tracks.npz") as arrays:
        assert "twos" not in arrays
    Path("else.bedgraph").write_text("chrX\t0\t9\t1\n")
    for code, words_more, text in (
        (2, ["--format", "npz"], "--track is drawn below a picture"),
        (2, ["--track", "x.bedgraph"], "NAME=FILE"),
        (3, ["--track", "x=else.bedgraph"], "chrX"),
        (3, ["--track", "x=none.bw"], "none.bw"),
    ):
        check_refused(capsys, [*words, *words_more, "-o", "bad"], code, text)


def test_classes_are_found_at_their_places_on_both_strands(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    genodiff.predict("classes", Path("g.fa"), out=tmp_path / "o.bed")
    said = read_class_labels(tmp_path / "o.bed", CONTIGS, stranded=True)
    true = read_class_labels("a.bed", CONTIGS, stranded=True)
    for name in CONTIGS:
        same = said.contigs[name] == true.contigs[name]
        assert np.delete(same, slice(500, 540) if name == "chr2" else []).mean() > 0.99
    both = genodiff.load("classes").predict({"x": "ACGT" * 9, "y": "ACGT" * 9})
    assert (both["x"] == both["y"]).all()
    assert np.allclose(both["x"][::-1][:, [0, 2, 1]], both["x"], atol=2e-3), "its own complement"


def test_genes_that_are_written_are_read_back_and_have_their_phases(tmp_path):
    listed = [("chr2", GENES), ("chr10", []), ("a;b%", GENES[:1])]
    lengths = {"chr2": 100, "chr10": 9, "a;b%": 50}
    for name, lines in (
        ("g.gff3", format_gff3(listed, lengths)), ("g.bed", format_bed12(listed[:2])),
    ):  # fmt: skip
        (tmp_path / name).write_text("".join(lines))
    found = read_gene_labels(tmp_path / "g.gff3", lengths)
    assert (found.contigs["chr2"] == label_genes(GENES, 100)[0]).all()
    assert (found.contigs["a;b%"] == label_genes(GENES[:1], 50)[0]).all()
    with (tmp_path / "g.gff3").open() as file:
        rows = [one for one in pysam.tabix_iterator(file, pysam.asGFF3()) if one.feature == "CDS"]
    read = [(one.contig, one.start, one.end, one.strand) for one in rows]
    parts = [(name, *part, "+" if gene.strand > 0 else "-")
             for name, genes in listed for gene in genes for part in gene.parts]  # fmt: skip
    assert sorted(read) == sorted((name.translate(QUOTED), *rest) for name, *rest in parts)
    of_bed = read_gene_labels(tmp_path / "g.bed", lengths)
    assert (of_bed.contigs["chr2"] == found.contigs["chr2"]).all()
    rows = [line.split("\t") for line in (tmp_path / "g.gff3").read_text().splitlines()
            if line[0] != "#"]  # fmt: skip
    names = dict.fromkeys(row[8].partition("=")[2] for row in rows if row[2] == "gene")
    assert len(names) == 3
    for name, own in zip(names, GENES, strict=False):
        cds = [row for row in rows if row[2] == "CDS" and row[8].endswith(f"Parent={name}.t1")]
        assert [(int(row[3]) - 1, int(row[4])) for row in cds] == list(own.parts)
        read = 0
        for row in cds[:: own.strand]:
            assert int(row[7]) == -read % 3
            read += int(row[4]) - int(row[3]) + 1
        assert {row[6] for row in cds} == {"+" if own.strand > 0 else "-"}


BAD = {
    "values as genes": (("values", "g.fa", "-o", "o.gff3"), "cannot hold values"),
    "classes as genes": (("classes", "g.fa", "-o", "o.gff3"), "cannot hold classes"),
    "another ending": (("genes", "g.fa", "-o", "o.csv"), "no name of labels"),
    "no output": (("genes", "g.fa"), "give a folder"),
    "stdout": (("genes", "g.fa", "-o", "-"), "no name of labels"),
    "shard as folder": (("genes", "g.fa", "--shard", "1/2", "-o", "o"), "x.npy"),
    "of sequences": (("genes", "g.fa", "--ensemble", "-o", "o"), "--ensemble"),
    "unknown region": (("genes", "g.fa", "--region", "chr9:1-5", "-o", "o"), "chr9"),
}


OTHERS = {
    "ism": ("--fasta", "g.fa", "--region", "chr1:1-9", "-o", "o.npz"),
    "dependencies": ("--fasta", "g.fa", "--region", "chr1:1-9", "-o", "o.npz"),
    "tracks": ("--fasta", "g.fa", "-o", "o"),
    "embed": ("--fasta", "g.fa", "-o", "o.npz"),
    "redesign": ("--fasta", "g.fa", "--region", "chr1:1-9", "-o", "o.fa"),
    "sample": ("-n", "1", "--length", "9", "-o", "o.fa"),
    "score": ("v.csv", "--fasta", "g.fa", "-o", "o.tsv"),
    "eval": ("-o", "o.json"),
}


WORDS = {case: (["predict", *words], said) for case, (words, said) in BAD.items()} | {
    verb: ([verb, "genes", *words], "that it was tuned from") for verb, words in OTHERS.items()
}


@pytest.mark.parametrize("case", WORDS)
def test_what_cannot_be_meant_of_labels_of_bases_is_one_line(case, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    first = (folder / "g.fa").read_text()[len(">chr2\n")]
    (folder / "v.csv").write_text(f"chrom,pos,ref,alt\nchr2,1,{first},{'AC'[first == 'A']}\n")
    check_refused(capsys, WORDS[case][0], 2, WORDS[case][1])


def test_a_model_that_was_changed_is_refused(folder, tmp_path, monkeypatch):
    for name, change in (("labeller.json", b'"core"'), ("model.safetensors", None)):
        copy = shutil.copytree(folder / "genes", tmp_path / name.partition(".")[0])
        raw = bytearray((copy / name).read_bytes())
        at = raw.index(change) + len(change) + 2 if change else len(raw) - 5
        raw[at] ^= 1
        (copy / name).write_bytes(raw)
        with pytest.raises(GenodiffError):
            genodiff.load(copy)
    told = json.loads((folder / "genes" / "labeller.json").read_text())
    assert told["chain"] is True
    assert told["told"]["measured"]["valid"]
