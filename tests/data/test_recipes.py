"""Recipes: what stands in the YAML files, how faults in them are told, and the commands `genodiff
data list` and `build`.
"""

import json
import re
from pathlib import Path

import pytest
from genomes import random_dna, write_fasta

from genodiff.data.recipe import Recipe, list_recipe_names, load_recipe, make_user_recipe
from genodiff.data.toy import ToySource
from genodiff.errors import DataError, UsageError
from genodiff.settings import to_yaml
from tests.commands import command, succeed


@pytest.mark.parametrize("name", ["ecoli_k12", "hg38", "mm39", "sacCer3", "toy"])
def test_every_promised_recipe_loads_under_its_own_name_and_says_where_it_comes_from(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert name in list_recipe_names()
    assert recipe.contigs
    sound = all(one.url.startswith("https://") and one.licence for one in recipe.sources)
    assert recipe.generator or sound


@pytest.mark.parametrize(
    ("name", "total", "n"), [("hg38", 3_088_269_832, 24), ("mm39", 2_723_414_844, 21)]
)
def test_the_primary_chromosomes_have_the_assemblys_known_total_length(name, total, n):
    recipe = load_recipe(name)
    assert sum(recipe.contigs.values()) == total
    assert len(recipe.contigs) == n


def test_hg38_agrees_with_the_chromosome_sizes_of_an_independent_source(shared):
    lines = (shared / "data/genomes/hg38.chrom.sizes").read_text().splitlines()
    sizes = {name: int(n) for name, n in (line.split("\t") for line in lines)}
    assert load_recipe("hg38").contigs == {c: n for c, n in sizes.items() if c != "chrM"}


def test_hg38_holds_out_whole_chromosomes_and_ignores_what_is_no_chromosome():
    recipe = load_recipe("hg38")
    assert (recipe.splits.valid, recipe.splits.test) == (("chr13", "chr20"), ("chr8", "chr21"))
    for kind in "M Un_KI270302v1 1_KI270706v1_random 6_GL000250v2_alt 1_KN538361v1_fix".split():
        assert re.search(recipe.ignore, f"chr{kind}")
    assert not any(re.search(recipe.ignore, contig) for contig in recipe.contigs)


def test_the_toy_recipe_names_the_contigs_of_the_toy_source():
    lengths = {f"toy{i + 1}": n for i, n in enumerate(ToySource().lengths)}
    assert load_recipe("toy").contigs == lengths


def test_a_recipe_written_as_yaml_is_read_back_unchanged(tmp_path):
    recipe = load_recipe("ecoli_k12")
    (tmp_path / "again.yaml").write_text(to_yaml(recipe))
    assert load_recipe(tmp_path / "again.yaml") == recipe


def test_an_unknown_recipe_answers_with_the_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'sacCer3'"):
        load_recipe("saccer3")


def test_a_sequence_file_in_a_recipes_place_is_told_to_come_with_fasta(tmp_path):
    (tmp_path / "x.fa").write_text(">a\nACGT\n")
    with pytest.raises(UsageError, match="--fasta"):
        load_recipe(tmp_path / "x.fa")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("sources: [{url: 'http://a.b/c.fa', filename: c.fa, licence: x}]", "https"),
        ("sources: [{url: 'https://a.b/c.fa', filename: ../c.fa, licence: x}]", "filename"),
        ("splits: {valid: [b], test: []}", "contig 'b'"),
        ("splits: {valid: [[a, 5, 11]], test: []}", "not inside"),
        ("splits: {valid: [[a, 5, 5]], test: []}", "not inside"),
        ("ignore: '['", "regular expression"),
        ("max_n_fraction: 1.0", "max_n_fraction"),
        ("colour: red", "colour"),
    ],
)
def test_a_faulty_recipe_is_refused_with_its_file_and_the_setting(tmp_path, change, told):
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\ncontigs: {{a: 10}}\n{change}\n")
    with pytest.raises(UsageError, match=told) as fault:
        load_recipe(path)
    assert fault.value.file == path


def test_the_digest_changes_with_the_split_and_the_beds_content_but_not_with_words(tmp_path):
    recipe = load_recipe("hg38")
    assert recipe.digest() == recipe.model_copy(update={"description": "other words"}).digest()
    assert recipe.digest() != recipe.model_copy(update={"max_n_fraction": 0.4}).digest()
    bed = tmp_path / "a.bed"
    bed.write_text("chr1\t0\t10\ttrain\n")
    one = recipe.with_bed(bed).digest()
    bed.write_text("chr1\t0\t11\ttrain\n")
    assert len({recipe.digest(), one, recipe.with_bed(bed).digest()}) == 3
    (tmp_path / "b.bed").write_text("chr1\t0\t11\ttrain\n")
    assert recipe.with_bed(tmp_path / "b.bed").digest() == recipe.with_bed(bed).digest()


def test_a_missing_bed_is_a_data_error_that_names_it(tmp_path):
    with pytest.raises(DataError, match=r"none\.bed"):
        load_recipe("hg38", bed=tmp_path / "none.bed").digest()


@pytest.mark.parametrize("name", ["my genome.fa.gz", "-x.fa", "ä.fasta", "...", "x.fna"])
def test_any_file_name_makes_a_recipe_of_ones_own(name):
    assert isinstance(make_user_recipe(name), Recipe)


def test_list_names_every_recipe_and_says_that_the_toy_is_built_in(capsys):
    code, out, _ = command(capsys, "data", "list")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} >= {
        "hg38", "mm39", "sacCer3", "ecoli_k12", "toy",
    }  # fmt: skip
    assert "built in" in next(line for line in out.splitlines() if line.startswith("toy"))
    _, out, _ = command(capsys, "data", "list", "--json")
    rows = {row["name"]: row for row in map(json.loads, out.splitlines())}
    assert rows["toy"]["present"] is True
    assert rows["hg38"]["present"] is False
    assert rows["hg38"]["sources"][0]["sha256"]


def test_build_counts_windows_and_reports_what_was_skipped(capsys, tmp_path):
    contigs = {"chr1": random_dna(5000) + "N" * 5000, "x": "ACGT"}
    contigs |= {"chr13": random_dna(700), "chr21": random_dna(600)}
    path = write_fasta(tmp_path / "part.fa", contigs)
    words = ("data", "build", "hg38", "--fasta", path, "--seq-len", 100)
    answer = json.loads(succeed(capsys, *words, "--json"))
    assert [answer["splits"][s]["windows"] for s in ("train", "valid", "test")] == [50, 7, 6]
    assert answer["splits"]["train"]["windows_too_much_n"] == 50
    assert any("lacks 21 of hg38's 24 contigs" in note for note in answer["notes"])
    assert any("x" in note for note in answer["notes"])
    assert Path(answer["store"]).is_dir()
    assert "50 windows with more than 50% N" in succeed(capsys, *words)


def test_build_honours_a_bed(capsys, tmp_path):
    path, bed = write_fasta(tmp_path / "in.fa", {"a": random_dna(1000)}), tmp_path / "in.bed"
    bed.write_text("a\t0\t500\ttrain\na\t500\t700\ttest\n")
    code, out, _ = command(
        capsys, "data", "build", "hg38", "--fasta", path, "--bed", bed, "--seq-len", 50, "--json"
    )
    splits = json.loads(out)["splits"]
    assert code == 0
    assert [splits[name]["windows"] for name in ("train", "test", "valid")] == [10, 4, 0]
