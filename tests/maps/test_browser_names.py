"""Contigs of a hub are called as the browser calls them; what it will not show is told."""

from functools import partial

import numpy as np
import pyBigWig
import pytest

from genodiff.maps.track_files import TrackContent, name_contigs, rename_blocks, write_format
from genodiff.maps.track_values import BaseTracks


@pytest.mark.parametrize(
    ("genome", "name", "wanted"),
    [
        ("hg38", "1", "chr1"), ("hg38", "X", "chrX"), ("hg38", "MT", "chrM"), ("hg38", "23", "23"),
        ("hg38", "chr1", "chr1"), ("hg38", "chrUn_GL000195v1", "chrUn_GL000195v1"),
        ("hg38", "GL000195.1", "GL000195.1"), ("hg19", "M", "chrM"), ("mm10", "19", "chr19"),
        ("sacCer3", "IV", "chrIV"), ("sacCer3", "Mito", "chrM"), ("dm6", "2L", "chr2L"),
        ("ce11", "MtDNA", "chrM"), ("GCF_000146045.2", "1", "1"), (None, "1", "1"),
    ],
)  # fmt: skip
def test_names_are_those_of_the_assembly(genome, name, wanted):
    assert name_contigs({name: 600}, genome) == {name: wanted}


def test_a_contig_of_the_length_of_one_chromosome_is_that_chromosome():
    assert name_contigs({"NC_000021.9": 46_709_983}, "hg38") == {"NC_000021.9": "chr21"}
    assert name_contigs({"MT": 16_569}, "hg19") == {"MT": "chrMT"}  # of two mitochondria


def test_what_the_browser_will_not_show_is_told(caplog):
    caplog.set_level("INFO", "genodiff")
    contigs = {"1": 600, "21": 46_709_983, "GL000195.1": 60, "x": 9}
    name_contigs(contigs, "hg38")
    said = caplog.text
    assert "'GL000195.1' and 1 more could not be matched to a contig of hg38" in said
    assert "2 contigs renamed as in hg38: '1' is now chr1" in said
    assert "chr1 has 600 bases here and 248,956,422 in hg38" in said
    assert "chr21 has" not in said
    caplog.clear()
    name_contigs({"21": 46_709_983}, "hg38")
    assert [one.levelname for one in caplog.records] == ["INFO"]
    assert name_contigs({"1": 5, "chr1": 5}, "mm10") == {"1": "1", "chr1": "chr1"}


@pytest.mark.parametrize(
    ("genome", "contigs", "names"),
    [
        ("sacCer3", {"a_I": 230_218, "b_I": 230_218}, ["chrI", "b_I"]),  # two haplotypes
        ("galGal6", {"M": 16_000, "MT": 16_100}, ["chrM", "MT"]),
    ],
)
def test_two_contigs_never_get_one_name(genome, contigs, names, caplog):
    assert [*name_contigs(contigs, genome).values()] == names
    assert f"'{names[1]}' could not be matched to a contig of {genome}" in caplog.text


def test_a_bigwig_holds_the_values_under_the_new_names_in_their_order(tmp_path):
    contigs = {"GL000195.1": 4, "1": 6, "MT": 5, "X": 3}
    order = sorted(contigs)  # as tracks are read: 1, GL000195.1, MT, X
    blocks = [
        BaseTracks(name, 0, "A" * contigs[name], np.full((contigs[name], 4), i / 8, np.float32))
        for i, name in enumerate(order, 1)
    ]
    names = name_contigs(contigs, "hg19")
    lengths = {names[name]: n for name, n in contigs.items()}
    renamed = partial(rename_blocks, lambda: blocks, names, order)
    write_format(tmp_path, "bigwig", TrackContent(renamed, lengths, [], lambda _: None))
    file = pyBigWig.open(str(tmp_path / "p_A.bw"))
    assert file.chroms() == {"GL000195.1": 4, "chr1": 6, "chrM": 5, "chrX": 3}
    means = {name: file.stats(name, exact=True)[0] for name in file.chroms()}
    assert means == {"chr1": 0.125, "GL000195.1": 0.25, "chrM": 0.375, "chrX": 0.5}
