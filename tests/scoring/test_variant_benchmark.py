"""`benchmarks/variants`: its statistics, the readers of its data sets, and the laws of genes."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn import metrics

from benchmarks.variants import variant_measures as measures
from benchmarks.variants import variant_sets as sets
from benchmarks.variants import yeast_laws as laws
from genodiff.io.faidx import Genome


def write_gzip(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.write(text)


@pytest.mark.parametrize("seed", range(5))
def test_figures_equal_those_of_scipy_and_sklearn_with_ties(seed):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 12, 80).astype(float)
    truth = score + rng.integers(0, 9, 80)
    positive = truth > np.median(truth)
    assert measures.spearman(score, truth) == pytest.approx(stats.spearmanr(score, truth)[0])
    assert measures.pearson(score, truth) == pytest.approx(stats.pearsonr(score, truth)[0])
    assert measures.auroc(score, positive) == pytest.approx(metrics.roc_auc_score(positive, score))
    assert measures.auprc(score, positive) == pytest.approx(
        metrics.average_precision_score(positive, score)
    )


def test_without_a_second_class_there_is_no_figure():
    score = np.arange(4.0)
    assert np.isnan(measures.auroc(score, np.ones(4, bool)))
    assert np.isnan(measures.auprc(score, np.zeros(4, bool)))
    assert np.isnan(measures.spearman(score, np.ones(4)))


def test_an_interval_over_blocks_is_wider_where_a_block_says_one_thing():
    rng = np.random.default_rng(1)
    level = np.repeat(rng.normal(size=20), 25)
    score, truth = level, level + np.repeat(rng.normal(size=20), 25)
    blocks = [str(i // 25) for i in range(500)]
    whole = measures.bootstrap(measures.pearson, (score, truth), blocks, seed=1, draws=300)
    alone = measures.bootstrap(
        measures.pearson, (score, truth), [str(i) for i in range(500)], seed=1, draws=300
    )
    assert whole["value"] == alone["value"]
    assert whole["blocks"] == 20
    assert whole["high"] - whole["low"] > 2 * (alone["high"] - alone["low"])


def test_ridge_is_never_fitted_on_the_block_that_it_predicts():
    rng = np.random.default_rng(2)
    blocks = [str(i // 10) for i in range(100)]
    own = np.eye(10, dtype=np.float32)[np.arange(100) // 10]  # a feature that names the block
    truth = np.repeat(rng.normal(size=10), 10)
    left_out = measures.ridge_left_out(own, truth, blocks, seed=1)
    assert measures.pearson(left_out, truth) < 0.1
    feature = rng.normal(size=(100, 1))
    assert measures.pearson(
        measures.ridge_left_out(feature, feature[:, 0], blocks, seed=1), feature[:, 0]
    ) == pytest.approx(1, abs=1e-4)


def test_changes_of_words_and_of_gc_are_counted():
    changes = measures.word_changes(["AACA"], ["AAGA"], 2)[0].reshape(4, 4)
    assert changes[0, 1] == changes[1, 0] == -1  # AC, CA
    assert changes[0, 2] == changes[2, 0] == 1  # AG, GA
    assert changes[0, 0] == 0
    assert measures.gc_change(["AACA", "AACA"], ["AAGA", "AATA"]).tolist() == [0, -1]


def test_ranks_within_a_stratum_do_not_hear_of_its_level():
    ranks = measures.rank_within(np.array([1.0, 2, 101, 102]), ["a", "a", "b", "b"])
    assert ranks.tolist() == [0.25, 0.75, 0.25, 0.75]


def test_drift_pairs_are_read_with_their_swapped_names_put_right(tmp_path):
    names = ["seq", "original_seq", "original_measured", "evol_measured"]
    names += ["original_predicted", "evol_predicted"]
    row = ["AAT", "AAC", "3", "5", "2.5", "5"]  # the mutant AAT was measured at 3
    write_gzip(
        tmp_path / "promoters/yeast/Drift_pairs_complex.tsv.gz",
        "\t".join(names) + "\n" + "\t".join(row) + "\n",
    )
    found = sets.read_drift(tmp_path, tmp_path, 10, 1)
    assert (found.before, found.after, found.truth.tolist()) == (["AAC"], ["AAT"], [-2])
    assert [v.tolist() for v in found.known.values()] == [[-2.5]]


def test_a_scan_is_read_as_dna_and_put_into_its_genome_on_either_strand(tmp_path):
    rng = np.random.default_rng(3)
    text = "".join(rng.choice(list("ACGT"), 800))
    (tmp_path / "g.fa").write_text(f">chrX\n{text}\n")
    wild = sets.reverse_complement(text[400:420])
    changed = ("A" if wild[4] != "A" else "C") + wild[5:]
    mutant = wild[:4] + changed
    rows = [
        "mutant,DMS_score,sequence",
        f",0,{wild}",
        f"{wild[4]}5{mutant[4]},-1.5,{mutant}".replace("T", "U"),
    ]
    write_gzip(tmp_path / "s.csv.gz", "\n".join(rows) + "\n")
    sequences, scores, found = sets.read_scan(tmp_path / "s.csv.gz")
    assert found == wild
    with Genome(tmp_path / "g.fa") as genome:
        place = sets.find_wild(genome, found, "chrX", 380)
        assert place == ("chrX", 400, -1)
        one = sets.place_scan(sequences, scores, genome, place, 10, 1)
        with pytest.raises(ValueError, match="not near"):
            sets.find_wild(genome, "ACGT" * 5, "chrX", 380)
    assert one.truth.tolist() == [-1.5]
    assert one.before[0] == sets.reverse_complement(text[400 - 92 : 420 + 92])
    assert one.after[0][92:112] == mutant


def test_elements_are_read_once_and_counted_from_their_own_start(tmp_path):
    folder = tmp_path / "variants"
    head = "Chrom Pos Ref Alt Barcodes DNA RNA Coefficient pValue Element Release"
    rows = [
        "X 101 C A 12 1 1 -0.5 0.1 F9 GRCh38",
        "X 101 C A 12 1 1 -0.5 0.1 F9 GRCh37",  # the other release
        "X 101 C - 12 1 1 -0.5 0.1 F9 GRCh38",  # a deletion
        "X 102 G A 9 1 1 -0.5 0.1 F9 GRCh38",  # few barcodes
        "X 102 G A 90 1 1 -0.5 0.1 UC88 GRCh38",  # not of the 14
    ]
    write_gzip(
        folder / "mpra_saturation_elements.tsv.gz",
        "\n".join("\t".join(line.split()) for line in [head, *rows]) + "\n",
    )
    (folder / "mpra_saturation_elements_ref.fa").write_text(">F9 chrX:100-104 GRCh38\nACGTA\n")
    found = sets.read_mpra(tmp_path, tmp_path, 10, 1)
    assert found.rows == [("F9", 2, "C", "A")]
    assert (found.before, found.after) == (["ACGTA"], ["AAGTA"])
    assert found.places == [("chrX", 100)]


def test_brca1_blocks_are_stretches_and_its_columns_are_turned(tmp_path):
    (tmp_path / "variants").mkdir()
    write_gzip(tmp_path / "genomes/hg38_sparse.fa.gz", ">chr17\n" + "ACGT" * 100 + "\n")
    pl.DataFrame(
        {
            "chromosome": [17, 17], "pos_hg38": [10, 300], "ref": ["C", "T"], "alt": ["A", "G"],
            "function_score": [-2.0, 0.1], "CADD": [30.0, 1.0], "phyloP": [2.0, -1.0],
        }
    ).write_parquet(tmp_path / "variants/brca1_sge_findlay2018.parquet")  # fmt: skip
    found = sets.read_brca1(tmp_path, tmp_path, 10, 1)
    assert len(set(found.block)) == 2
    assert [v.tolist() for v in found.known.values()] == [[-30, -1], [-2, 1]]
    assert found.before[0][9] == "C"
    assert found.after[0][9] == "A"


def test_rare_and_common_are_those_whose_alt_is_the_minor_allele(tmp_path):
    (tmp_path / "variants").mkdir()
    write_gzip(tmp_path / "genomes/hg38_sparse.fa.gz", ">chr21\n" + "ACGT" * 100 + "\n")
    write_gzip(tmp_path / "genomes/annotation/hg38_epdnew_tss.bed.gz", "chr21\t50\t51\tx\t1\t+\n")
    rows = [(9, "A", "G", "G", 0.3), (10, "C", "T", "C", 0.3), (11, "G", "A", "A", 0.0005),
            (12, "T", "A", "A", 0.01), (13, "G", "A", "A", 0.4)]  # fmt: skip
    pl.DataFrame(
        [("chr21", s, r, a, m, f, True, "0", 1) for s, r, a, m, f in rows],
        schema=["chrom", "start", "ref", "alts", "minor_allele", "minor_allele_freq", "is_snv",
                "failed", "strand"], orient="row",
    ).write_parquet(
        tmp_path / "variants/dbsnp_ensembl_hg38_chr21_25M-26M.parquet"
    )  # fmt: skip
    found = sets.read_dbsnp(tmp_path, tmp_path, 100, 1)
    assert {row[1] for row in found.rows} <= {9, 11, 13}
    assert 10 not in {row[1] for row in found.rows}
    assert all(t == (row[1] != 11) for row, t in zip(found.rows, found.truth, strict=True))


def test_a_draw_is_seeded_sorted_and_without_repeats():
    assert sets.pick(5, 5, 1).tolist() == [0, 1, 2, 3, 4]
    drawn = sets.pick(100, 10, 1).tolist()
    assert drawn == sorted(set(drawn)) == sets.pick(100, 10, 1).tolist()
    assert drawn != sets.pick(100, 10, 2).tolist()


def test_blocks_are_chains_of_near_positions():
    names = sets.name_blocks([500, 10, 100, 90], 100)
    assert names[1] == names[2] == names[3] != names[0]


INTRON = "GTATGT" + "C" * 41 + "TACTAAC" + "C" * 10 + "TAG"
FRAME = "ATG" + "TGG" * 10 + "TAA"


@pytest.fixture
def toy(tmp_path):
    """Two frames, one on each strand, one with an intron, and one that is none."""
    turned = sets.reverse_complement(FRAME)
    split = FRAME[:10] + INTRON + FRAME[10:]
    pieces = [FRAME, turned, split, "ATGTAATGGTAA"]
    text, rows = "C" * 50, []
    for i, piece in enumerate(pieces):
        strand = "-" if i == 1 else "+"
        rows.append(f"chrA\t{len(text)}\t{len(text) + len(piece)}\tg{i}\t0\t{strand}")
        text += piece + "C" * 50
    (tmp_path / "g.fa").write_text(f">chrA\n{text}\n")
    write_gzip(tmp_path / "orfs.bed.gz", "\n".join(rows) + "\n")
    with Genome(tmp_path / "g.fa") as genome:
        return [text, laws.read_genes(tmp_path / "orfs.bed.gz", genome)]


def test_frames_are_believed_where_the_genome_agrees(toy):
    genes = toy[1]
    assert [gene.name for gene in genes] == ["g0", "g1", "g2"]
    assert [gene.intron for gene in genes] == [None, None, (10, 10 + len(INTRON))]
    assert genes[0].sequence == genes[1].sequence == FRAME


def test_substitutions_of_a_codon_are_classified_on_both_strands(toy):
    text, genes = toy
    for gene in genes[:2]:
        found = list(laws.change_codon(gene, 6))  # TGG: only TAG and TGA are stops
        assert all(text[v.pos - 1] == v.ref != v.alt for v in found)
        kinds = [v.kind for v in found]
        assert (kinds.count("stop"), kinds.count("missense")) == (2, 7)
        assert {v.codon_position for v in found if v.kind == "stop"} == {2, 3}
    start = list(laws.change_codon(genes[0], 33))  # TAA -> TAG and TGA stay stops
    assert [v.kind for v in start].count("synonymous") == 2


def test_every_drawn_variant_has_the_genome_as_its_ref_and_controls_have_its_letters(toy):
    text, genes = toy
    found = laws.draw_variants(genes, {"chrA"}, 60, 1)
    assert all(text[v.pos - 1] == v.ref for v in found)
    donors = [v for v in found if v.kind == "donor"]
    assert not donors  # the toy intron has no other GT to compare with
    assert {v.codon_position for v in found} >= {1, 2, 3}
    assert laws.mean_gap(np.array([1.0, 3]), np.array([False, True]), np.array([True, False])) == 2
