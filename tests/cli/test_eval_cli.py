"""`genodiff eval` as a user meets it: figures on stdout, everything else on stderr, one line for
what is wrong.
"""

import json
import math

import pytest
from tiny_run import genome_text

from tests.commands import exit_code


def called(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = exit_code("eval", *words, "--threads", 1)
    return code, *capfd.readouterr()


def test_json_is_one_object_with_the_keys_of_the_contract(run, capfd):
    code, out, _ = called(capfd, run, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["split"] == "test"
    assert found["perplexity"] == pytest.approx(math.exp(found["nelbo_nats"]))
    assert found["perplexity"] == pytest.approx(2 ** found["bits_per_base"])
    assert found["ci95_bits"][0] <= found["bits_per_base"] <= found["ci95_bits"][1]
    assert {"0", "8"} <= set(found["markov_perplexity"])
    assert found["source_bits"] is None
    assert found["tokens"] > 0
    assert json.loads((run / "eval.json").read_text())["test"] == found


def test_a_quick_look_does_not_replace_the_whole_evaluation(run, capfd):
    whole = json.loads(called(capfd, run, "--json")[1])
    look = json.loads(called(capfd, run, "--json", "--max-windows", 3, "--no-baselines")[1])
    kept = json.loads((run / "eval.json").read_text())
    assert kept["test"] == whole
    assert kept["test, 3 of 10 windows, no baselines"] == look


def test_the_table_shows_the_bound_its_interval_and_the_lines(run, capfd):
    code, out, _ = called(capfd, run)
    found = json.loads((run / "eval.json").read_text())["test"]
    assert code == 0
    for figure in (found["bits_per_base"], *found["ci95_bits"], *found["markov_bits"].values()):
        assert f"{figure:.4f}" in out
    for name in ("Markov 8", "uniform", "soft-masked", "c4"):
        assert name in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_checkpoint_folder_is_scored_like_its_run(run, capfd):
    step = next((run / "checkpoints").iterdir())
    one, other = (json.loads(called(capfd, path, "--json")[1]) for path in (run, step))
    assert one["bits_per_base"] == other["bits_per_base"]
    assert not (step / "eval.json").exists()


def test_a_plan_says_what_would_be_done_and_does_nothing(run, capfd):
    (run / "eval.json").unlink(missing_ok=True)
    code, out, _ = called(capfd, run, "--plan", "--max-windows", 5)
    assert code == 0
    assert "5 of 10" in out
    assert str(run / "eval.json") in out
    assert not (run / "eval.json").exists()
    assert json.loads(called(capfd, run, "--plan", "--json")[1])["windows"] == 10


def test_flags_reach_the_evaluation(run, capfd):
    words = ("--split", "valid", "--repeats", 3, "--seed", 5, "--soft-masked", 0, "--max-windows",
             4, "--no-baselines")  # fmt: skip
    found = json.loads(called(capfd, run, "--json", *words)[1])
    asked = (found["split"], found["repeats"], found["seed"], found["soft_masked"],
             found["windows"])  # fmt: skip
    assert asked == ("valid", 3, 5, 0, 4)
    assert found["markov_bits"] == {}
    assert found["mask_se_bits"] is not None


def test_data_that_has_gone_is_named_with_a_remedy(run, capfd):
    fasta = run.parent / "genome.fa"
    text = fasta.read_text()
    fasta.unlink()
    try:
        code, _, err = called(capfd, run, "--offline")
    finally:
        fasta.write_text(text)
    assert code == 3
    assert "genome.fa" in err
    moved = run.parent / "moved.fa"
    moved.write_text(text)
    found = json.loads(called(capfd, run, "--fasta", moved, "--json")[1])
    assert found["bits_per_base"] == json.loads(called(capfd, run, "--json")[1])["bits_per_base"]


def test_unmasked_and_soft_masked_bases_stand_beside_all_with_both_weights(run, capfd):
    found = json.loads(called(capfd, run, "--json")[1])
    soft, regions = found["soft_mask"], found["regions"]
    assert (soft["trained_weight"], soft["scored_weight"]) == (0.1, 1)
    assert soft["bases"] == regions["soft_masked"]["tokens"] > 0
    out = called(capfd, run)[1]
    table = out[out.index("by case") : out.index("soft-masked (lower-case)")].splitlines()[1:]
    rows = {row.split()[0]: row.split()[1:] for row in table if row.strip()}
    parts = {"unmasked": regions["upper_case"], "soft-masked": regions["soft_masked"], "all": found}
    for name, part in parts.items():
        assert rows[name][:2] == [f"{part['tokens']:,}", f"{part['bits_per_base']:.4f}"]
        assert f"{part['markov_bits']['8']:.4f}" in rows[name]
    assert "weight 0.1 in training, 1 in this evaluation" in " ".join(out.split())
    uncounted = " ".join(called(capfd, run, "--soft-masked", 0)[1].split())
    assert "weight 0.1 in training, 0 in this evaluation" in uncounted


def test_an_upper_case_genome_is_said_to_have_no_soft_masked_bases(run, tmp_path, capfd):
    upper = tmp_path / "upper.fa"
    upper.write_text(genome_text().upper())
    words = ("--fasta", upper, "--split", "all", "--no-baselines")
    assert json.loads(called(capfd, run, "--json", *words)[1])["soft_mask"]["bases"] == 0
    out = called(capfd, run, *words)[1]
    assert "no soft-masked bases" in " ".join(out.split())
    assert "by case" not in out
