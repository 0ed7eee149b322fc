"""`genodiff eval` as a user meets it: figures on stdout, everything else on stderr."""

import json
import math
from contextlib import redirect_stdout
from io import StringIO

import pytest
from tiny_run import genome_text

from tests.commands import exit_code


def evaluate(*words: object) -> str:
    """What `genodiff eval WORDS` prints."""
    with redirect_stdout(StringIO()) as out:
        assert exit_code("eval", *words, "--threads", 1) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def whole(run):
    """A whole evaluation as an object, and as a table."""
    return json.loads(evaluate(run, "--json")), evaluate(run)


def test_json_is_one_object_with_the_keys_of_the_contract(run, whole):
    found = whole[0]
    assert found["split"] == "test"
    assert found["perplexity"] == pytest.approx(math.exp(found["nelbo_nats"]))
    assert found["perplexity"] == pytest.approx(2 ** found["bits_per_base"])
    assert found["ci95_bits"][0] <= found["bits_per_base"] <= found["ci95_bits"][1]
    assert {"0", "8"} <= set(found["markov_perplexity"])
    assert found["source_bits"] is None
    assert found["tokens"] > 0
    kept = json.loads((run / "eval.json").read_text())["test"]
    assert kept["bits_per_base"] == found["bits_per_base"]


def test_the_table_shows_the_bound_its_interval_and_the_baselines(whole):
    found, out = whole
    for figure in (found["bits_per_base"], *found["ci95_bits"], *found["markov_bits"].values()):
        assert f"{figure:.4f}" in out
    for name in ("Markov 8", "uniform", "soft-masked", "c4"):
        assert name in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_plan_says_what_would_be_done(run, whole):
    out = evaluate(run, "--plan", "--max-windows", 5)
    assert "5 of 10" in out
    assert str(run / "eval.json") in out
    assert json.loads(evaluate(run, "--plan", "--json"))["windows"] == 10


def test_flags_reach_the_evaluation(run):
    words = ("--split", "valid", "--repeats", 3, "--seed", 5, "--soft-masked", 0, "--max-windows",
             4, "--no-baselines")  # fmt: skip
    found = json.loads(evaluate(run, "--json", *words))
    asked = (found["split"], found["repeats"], found["seed"], found["soft_masked"],
             found["windows"])  # fmt: skip
    assert asked == ("valid", 3, 5, 0, 4)
    assert found["markov_bits"] == {}
    assert found["mask_se_bits"] is not None


def test_data_that_has_gone_is_named_with_a_remedy(run, whole, capsys):
    fasta, moved = run.parent / "genome.fa", run.parent / "moved.fa"
    fasta.rename(moved)
    try:
        assert exit_code("eval", run, "--offline", "--threads", 1) == 3
        assert "genome.fa" in capsys.readouterr().err
        found = json.loads(evaluate(run, "--fasta", moved, "--json", "--no-baselines"))
    finally:
        moved.rename(fasta)
    assert found["bits_per_base"] == whole[0]["bits_per_base"]


def test_unmasked_and_soft_masked_bases_stand_beside_all_with_both_weights(run, whole):
    found, out = whole
    soft, regions = found["soft_mask"], found["regions"]
    assert (soft["trained_weight"], soft["scored_weight"]) == (0.1, 1)
    assert soft["bases"] == regions["soft_masked"]["tokens"] > 0
    table = out[out.index("by case") : out.index("soft-masked (lower-case)")].splitlines()[1:]
    rows = {row.split()[0]: row.split()[1:] for row in table if row.strip()}
    parts = {"unmasked": regions["upper_case"], "soft-masked": regions["soft_masked"], "all": found}
    for name, part in parts.items():
        assert rows[name][:2] == [f"{part['tokens']:,}", f"{part['bits_per_base']:.4f}"]
        assert f"{part['markov_bits']['8']:.4f}" in rows[name]
    assert "weight 0.1 in training, 1 in this evaluation" in " ".join(out.split())
    uncounted = " ".join(evaluate(run, "--soft-masked", 0).split())
    assert "weight 0.1 in training, 0 in this evaluation" in uncounted


def test_an_upper_case_genome_is_said_to_have_no_soft_masked_bases(run, tmp_path):
    upper = tmp_path / "upper.fa"
    upper.write_text(genome_text().upper())
    words = (run, "--fasta", upper, "--split", "all", "--no-baselines")
    assert json.loads(evaluate(*words, "--json"))["soft_mask"]["bases"] == 0
    out = evaluate(*words)
    assert "no soft-masked bases" in " ".join(out.split())
    assert "by case" not in out
