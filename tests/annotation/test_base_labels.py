"""Labels that are planted in a genome are found at their bases, on both strands and at its ends."""

import logging
import re
from pathlib import Path

import numpy as np
import pytest

from genodiff.annotation.base_labels import (
    mirror_names,
    read_class_labels,
    read_gene_labels,
    read_value_labels,
)
from genodiff.annotation.gene_grammar import UNKNOWN, list_genes
from genodiff.errors import GenodiffError
from genodiff.io.faidx import Genome

LENGTH = 600
CONTIGS = {"chr1": LENGTH, "chr2": 90, "chr3": 40}


def write_letters(folder: Path, unread: tuple[int, int] = (0, 0)) -> Path:
    """A FASTA of the contigs with N at chr1[unread]."""
    draw = np.random.default_rng(1)
    text = []
    for name, length in CONTIGS.items():
        letters = draw.choice(list("ACGTacgt"), length)
        if name == "chr1":
            letters[slice(*unread)] = "N"
        text.append(f">{name}\n{''.join(letters)}\n")
    (folder / "g.fa").write_text("".join(text))
    return folder / "g.fa"


def gff(*rows: tuple[str, str, int, int, str, str]) -> str:
    """GFF3 of rows (contig, type, start from 0, end, strand, gene)."""
    return "##gff-version 3\n" + "".join(
        f"{contig}\t.\t{kind}\t{start + 1}\t{end}\t.\t{strand}\t.\tID={kind}-{name};"
        f"{'Parent' if kind == 'CDS' else 'Name'}={name}\n"
        for contig, kind, start, end, strand, name in rows
    )


# The first and the last base of chr1 are coding; a gene of each strand has an intron.
GENES = (
    ("chr1", "CDS", 0, 9, "+", "left"),
    ("chr1", "CDS", 100, 104, "+", "split"),
    ("chr1", "CDS", 150, 155, "+", "split"),
    ("chr1", "CDS", 300, 302, "-", "turned"),
    ("chr1", "CDS", 340, 347, "-", "turned"),
    ("chr1", "CDS", 594, 600, "-", "right"),
    ("chr2", "CDS", 10, 40, "-", "two"),
)


@pytest.fixture
def genes(tmp_path):
    (tmp_path / "g.gff3").write_text(gff(*GENES))
    return read_gene_labels(tmp_path / "g.gff3", CONTIGS)


def test_planted_genes_are_at_their_bases_on_both_strands(genes):
    states = np.array(genes.names)
    first = genes.contigs["chr1"]
    for start, end, strand in ((0, 9, "+"), (100, 104, "+"), (150, 155, "+"), (300, 302, "-"),
                               (340, 347, "-"), (594, 600, "-")):  # fmt: skip
        assert {s[:4] + s[-1] for s in states[first[start:end]]} == {f"exon{strand}"}
    assert set(states[first[104:150]]) == {"intron0+"}
    assert set(states[first[302:340]]) == {"intron0-"}
    coding = sum(end - start for contig, _, start, end, *_ in GENES if contig == "chr1")
    assert np.char.startswith(states[first], "exon").sum() == coding
    assert states[first[100:104]].tolist() == ["exon0+", "exon1+", "exon2+", "exon0+"]
    assert states[first[597:600]].tolist() == ["exon2-", "exon1-", "exon0-"]
    assert set(states[genes.contigs["chr2"][10:40]]) == {"exon0-", "exon1-", "exon2-"}
    # The file says nothing of chr3: no base of it is known, which is not the same as between genes.
    assert "chr3" not in genes.contigs
    assert (genes.cut("chr3", 3, 20) == UNKNOWN).all()


@pytest.mark.parametrize(("start", "end"), [(-5, 12), (590, 620), (95, 160), (301, 341), (20, 21)])
def test_a_window_has_the_labels_of_its_bases_and_knows_none_beyond_the_contig(genes, start, end):
    found = genes.cut("chr1", start, end)
    assert len(found) == end - start
    for offset, label in enumerate(found.tolist()):
        at = start + offset
        assert label == (genes.contigs["chr1"][at] if 0 <= at < LENGTH else UNKNOWN)


@pytest.mark.parametrize(("start", "end"), [(0, 600), (-5, 360), (101, 152), (590, 606)])
def test_a_turned_window_is_that_of_the_turned_genome(tmp_path, genes, start, end):
    turned = [(c, k, LENGTH - b, LENGTH - a, {"+": "-", "-": "+"}[s], n)
              for c, k, a, b, s, n in GENES if c == "chr1"]  # fmt: skip
    (tmp_path / "t.gff3").write_text(gff(*turned))
    other = read_gene_labels(tmp_path / "t.gff3", CONTIGS)
    found = genes.turn(genes.cut("chr1", start, end))
    np.testing.assert_array_equal(found, other.cut("chr1", LENGTH - end, LENGTH - start))
    np.testing.assert_array_equal(genes.turn(found), genes.cut("chr1", start, end))


def test_bed12_gives_the_same_labels(tmp_path, genes):
    bed = ""
    for name in dict.fromkeys(row[-1] for row in GENES):
        rows = [row for row in GENES if row[-1] == name]
        first, last = rows[0][2], rows[-1][3]
        sizes = ",".join(str(b - a) for _, _, a, b, *_ in rows)
        starts = ",".join(str(a - first) for _, _, a, *_ in rows)
        bed += (
            f"{rows[0][0]}\t{first}\t{last}\t{name}\t0\t{rows[0][4]}\t{first}\t{last}\t0"
            f"\t{len(rows)}\t{sizes}\t{starts}\n"
        )
    (tmp_path / "g.bed").write_text(bed)
    found = read_gene_labels(tmp_path / "g.bed", CONTIGS)
    assert found.contigs.keys() == genes.contigs.keys()
    for contig, path in genes.contigs.items():
        np.testing.assert_array_equal(found.contigs[contig], path)


def test_bases_that_are_not_read_have_no_label_and_those_beside_them_keep_theirs(tmp_path, genes):
    with Genome(write_letters(tmp_path, (102, 152))) as genome:
        masked = genes.mask_unread(genome)
    for contig, path in genes.contigs.items():
        wanted = path.copy()
        if contig == "chr1":
            wanted[102:152] = UNKNOWN
        np.testing.assert_array_equal(masked.contigs[contig], wanted)
    window = masked.cut("chr1", 95, 160)
    assert masked.known(window).sum() == 65 - 50
    # Turned, the unknown bases stay unknown, at their mirror images.
    assert (masked.known(masked.turn(window)) == masked.known(window)[::-1]).all()
    assert masked.count().sum() == sum(CONTIGS[c] for c in ("chr1", "chr2")) - 50


def test_outside_the_labelled_intervals_nothing_is_known(genes):
    found = genes.mask_outside([("chr1", 98, 160), ("chr1", 590, 600), ("chr3", 0, 4)])
    path = found.contigs["chr1"]
    assert set(found.contigs) == {"chr1"}
    assert (path[:98] == UNKNOWN).all()
    assert (path[160:590] == UNKNOWN).all()
    assert len(list_genes(path[98:160])) == 1


CLASSES = (
    ("chr1", 0, 3, "tss", "+"),
    ("chr1", 3, 8, "peak", "-"),
    ("chr1", 596, 600, "peak", "+"),
    ("chr2", 89, 90, "tss", "-"),
)


@pytest.mark.parametrize("stranded", [True, False])
def test_classes_of_bed_and_of_gff_are_at_their_bases(tmp_path, stranded, caplog):
    rows = [f"{c}\t{a}\t{b}\t{name}\t0\t{way}\n" for c, a, b, name, way in CLASSES]
    (tmp_path / "c.bed").write_text("".join(rows))
    (tmp_path / "c.gff3").write_text(
        gff(*((c, name, a, b, way, f"n{a}") for c, a, b, name, way in CLASSES),
            ("chr2", "other", 0, 90, "+", "o"))
    )  # fmt: skip
    of_bed = read_class_labels(tmp_path / "c.bed", CONTIGS, stranded=stranded)
    assert ("on -; without --stranded" in caplog.text) is not stranded
    of_gff = read_class_labels(
        tmp_path / "c.gff3", CONTIGS, types=("tss", "peak"), stranded=stranded
    )
    ways = "+-" if stranded else ("",)
    assert of_bed.names == ("none", *(f"{name}{way}" for name in ("peak", "tss") for way in ways))
    for labels in (of_bed, of_gff):
        assert labels.contigs.keys() == {"chr1", "chr2"}
        for contig, path in labels.contigs.items():
            wanted = np.full(CONTIGS[contig], "none", "<U5")
            for name, start, end, kind, way in CLASSES:
                if name == contig:
                    wanted[start:end] = kind + way * stranded
            assert (np.array(labels.names)[path] == wanted).all()
        turned = labels.turn(labels.cut("chr1", 0, 8))
        wanted = [("peak+" if stranded else "peak")] * 5 + ["tss-" if stranded else "tss"] * 3
        assert [labels.names[i] for i in turned] == wanted


def test_rows_as_one_class_and_bases_of_both_strands_unknown(tmp_path, caplog):
    """Overlaps in any order of rows, of three rows too, and of rows of one class."""
    rows = [("a", 2, 8, "+"), ("b", 6, 12, "-"), ("c", 5, 7, "+"), ("d", 20, 25, "-"),
            ("e", 23, 28, "-"), ("f", 7, 9, "+")]  # fmt: skip
    for order in (rows, rows[::-1]):
        text = "".join(f"chr1\t{a}\t{b}\t{name}\t0\t{way}\n" for name, a, b, way in order)
        (tmp_path / "o.bed").write_text(text)
        with caplog.at_level(logging.WARNING, logger="genodiff"):
            found = read_class_labels(
                tmp_path / "o.bed", CONTIGS, all_as="orf", stranded=True, mask_shared=True
            )
        assert found.names == ("none", "orf+", "orf-")
        wanted = np.zeros(LENGTH, np.int8)
        wanted[2:6], wanted[9:12], wanted[20:28], wanted[6:9] = 1, 2, 2, UNKNOWN
        np.testing.assert_array_equal(found.contigs["chr1"], wanted)
        assert "3 bases of two classes are unknown" in caplog.text


def write_tracks(folder: Path, **tracks: str) -> dict[str, Path]:
    for name, text in tracks.items():
        (folder / f"{name}.bedGraph").write_text(text)
    return {name: folder / f"{name}.bedGraph" for name in tracks}


def test_tracks_stand_beside_one_another_and_a_turned_window_exchanges_strands(tmp_path):
    texts = ("chr1\t0\t4\t2\n", "chr1\t1\t2\t5\n", "chr1\t3\t4\t7\nchr2\t0\t1\t1\n")
    names = ("cover", "rna+", "rna-")
    tracks = write_tracks(tmp_path, **dict(zip(names, texts, strict=True)))
    labels = read_value_labels(tracks, CONTIGS)
    nan = np.nan
    wanted = [[2, nan, nan], [2, 5, nan], [2, nan, nan], [2, nan, 7], [nan] * 3]
    np.testing.assert_array_equal(labels.cut("chr1", 0, 5), np.array(wanted, np.float32))
    turned = [[nan] * 3, [2, 7, nan], [2, nan, nan], [2, nan, 5], [2, nan, nan]]
    np.testing.assert_array_equal(labels.turn(labels.cut("chr1", 0, 5)), np.float32(turned))
    assert labels.count().tolist() == [4, 1, 2]
    filled = read_value_labels(tracks, CONTIGS, fill=True)
    wanted = [[2, 0, 0], [2, 5, 0], [2, 0, 0], [2, 0, 7], [0, 0, 0]]
    np.testing.assert_array_equal(filled.cut("chr1", 0, 5), np.float32(wanted))
    # Of chr2 one track alone says anything: the others stay unknown there.
    assert np.isnan(filled.cut("chr2", 0, 90)).all(0).tolist() == [True, True, False]


def test_a_gene_that_has_no_path_is_counted_and_unknown(tmp_path, caplog):
    (tmp_path / "g.gff3").write_text(gff(*GENES, ("chr2", "CDS", 60, 70, "+", "odd")))
    with caplog.at_level(logging.WARNING, logger="genodiff"):
        found = read_gene_labels(tmp_path / "g.gff3", CONTIGS)
    assert "1 of 6 genes are left out" in caplog.text
    assert (found.contigs["chr2"][60:70] == UNKNOWN).all()
    assert (found.contigs["chr2"][70:] == 0).all()


ROW = "chr1\t0\t9\ta"
FAULTS = (
    (read_class_labels, "chr1\t590\t601\ta\t0\t+\n", {}, "past the end of chr1"),
    (read_class_labels, f"{ROW}\t0\t*\n", {}, "'*' is no strand"),
    (read_class_labels, f"{ROW}\t0\t.\n", {"stranded": True},
     "line 1: the a chr1:0-9 has no strand"),
    (read_class_labels, f"{ROW}\nchr1\t7\t12\tb\n", {},
     "line 2: base 7 of chr1 (0-based) is b and also a"),
    (read_class_labels, f"{ROW}\t0\t+\nchr1\t8\t9\ta\t0\t-\n", {"stranded": True},
     "is a- and also a+"),
    (read_class_labels, "chr1\t0\t9\tnone\n", {}, "a class is called 'none'"),
    (read_class_labels, f"{ROW}+\n", {}, "a class is called 'a+'"),
    (read_class_labels, "".join(f"chr1\t{i}\t{i + 1}\tp{i}\n" for i in range(200)), {},
     "has 200 classes"),
    (read_class_labels, "chr1\t4\t4\ta\n", {}, "holds no interval with any base"),
    (read_class_labels, gff(("chr1", "exon", 0, 700, "+", "a")), {"types": ("exon",)},
     "past the end of chr1"),
    (read_class_labels, gff(("chr1", "exon", 0, 7, "+", "a")), {"types": ("exom",)},
     "did you mean 'exon'"),
    (read_gene_labels, gff(("chr1", "CDS", 0, 10, "+", "a")), {}, "no coding gene to learn from"),
    (read_gene_labels, gff(("chr1", "gene", 0, 9, "+", "a")), {}, "no coding gene to learn from"),
    (read_gene_labels, gff(("chr1", "CDS", 0, 9, "x", "a")), {}, "'x' is no strand"),
    (read_gene_labels, gff(("chr1", "CDS", 0, 9, ".", "a")), {}, "no coding gene to learn from"),
    (read_gene_labels, gff(("chr1", "CDS", 594, 603, "+", "a")), {},
     "no gene on the genome's contigs"),
)  # fmt: skip


@pytest.mark.parametrize(("read", "text", "options", "said"), FAULTS, ids=range(len(FAULTS)))
def test_faulty_classes_and_genes_are_one_line(tmp_path, read, text, options, said):
    (tmp_path / "labels.txt").write_text(text)
    with pytest.raises(GenodiffError, match=re.escape(said)) as fault:
        read(tmp_path / "labels.txt", CONTIGS, **options)
    assert "\n" not in str(fault.value)


def test_one_strand_without_the_other_and_an_empty_track_are_one_line(tmp_path):
    files = write_tracks(tmp_path, a="chr1\t0\t4\t2\n", b="# nothing\n")
    for tracks, said in (({"a+": files["a"]}, "give 'a-' too"), (files, "an empty track")):
        with pytest.raises(GenodiffError, match=re.escape(said)):
            read_value_labels(tracks, CONTIGS)


def test_mirrors_are_their_own_inverse(genes):
    for mirror in (genes.mirror, mirror_names(["none", "a+", "b", "a-"])):
        assert [mirror[i] for i in mirror] == list(range(len(mirror)))


@pytest.mark.parametrize("style", ["ncbi", "ensembl", "gtf"])
def test_the_coding_rows_of_a_pseudogene_are_unknown_and_counted(style, tmp_path, caplog):
    """Whether the row itself says so, the gene two rows above it, or an attribute of GTF."""
    rows = {
        "ncbi": {"gene": "ID=g;pseudo=true", "CDS": "ID=c;Parent=g;pseudo=true"},
        "ensembl": {"pseudogene": "ID=g;biotype=processed_pseudogene",
                    "pseudogenic_transcript": "ID=t;Parent=g", "CDS": "ID=c;Parent=t"},
        "gtf": {"gene": 'gene_id "g"; gene_biotype "pseudogene";',
                "CDS": 'gene_id "g"; transcript_id "t";'},
    }[style]  # fmt: skip
    good = 'gene_id "h"; transcript_id "u";' if style == "gtf" else "ID=d"
    lines = [f"chr1\tx\t{kind}\t101\t160\t.\t+\t{'.0'[kind == 'CDS']}\t{about}\n"
             for kind, about in rows.items()]  # fmt: skip
    lines.append(f"chr1\tx\tCDS\t301\t360\t.\t-\t0\t{good}\n")
    (tmp_path / "a.gff").write_text("".join(lines))
    found = read_class_labels(tmp_path / "a.gff", CONTIGS, types=["CDS"])
    assert found.names == ("none", "CDS")
    assert (found.contigs["chr1"][100:160] == UNKNOWN).all()
    assert (found.contigs["chr1"][300:360] == 1).all()
    assert (found.contigs["chr1"] == UNKNOWN).sum() == 60
    assert "1 coding row of pseudogenes are unknown" in caplog.text
