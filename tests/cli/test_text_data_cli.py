"""Text on the command line: what contradicts itself, plans, and the verbs about data."""

import json

from tests.commands import command
from tests.texts import VERSES, write_rows


def test_a_dna_run_is_no_text_run(capsys, tmp_path):
    words = ["train", "toy", "--preset", "caduceus-ps-tiny", "--d-model", 8, "--n-layer", 1,
             "--seq-len", 32, "--max-steps", 1]  # fmt: skip
    assert (
        command(capsys, *words, "--batch-size", 2, "--validate-windows", 0, "--out",
                tmp_path / "dna", "-q")[0]
        == 0
    )  # fmt: skip
    code, _, err = command(capsys, "sample", tmp_path / "dna", "-o", "-", "--domain", "text", "-q")
    assert code == 4
    assert "is a dna model" in err
    code, _, err = command(capsys, "eval", tmp_path / "dna", "--text", "x.txt", "-q")
    assert code == 2
    assert "--text is for text, and this is a DNA run" in err


def test_plans_say_what_published_runs_take(capsys):
    size = ["--tokenizer", "gpt2", "--preset", "dit-medium", "--seq-len", 1024, "--batch-size", 512,
            "--max-steps", 1_000_000]  # fmt: skip
    code, out, err = command(capsys, "train", "openwebtext", *size, "--plan", "--json", "-q")
    found = json.loads(out)
    assert code == 0, err
    assert found["parameters"] == 424_477_010
    assert found["tokens"] == 524_288_000_000
    assert found["tokens_per_step"] == 524_288
    assert (found["tokenizer"], found["vocabulary_size"], found["packing"]) == (
        "gpt2",
        50258,
        "packed",
    )
    assert found["flop"] == 6.0 * found["parameters"] * found["tokens"]
    assert "tokenizer/" in found["files"]


def test_data_verbs_know_text(text_run, tmp_path, capsys):
    code, out, _ = command(capsys, "data", "list", "--domain", "text", "--json")
    assert code == 0
    assert {json.loads(line)["domain"] for line in out.splitlines()} == {"text"}
    rows = write_rows(tmp_path, 100)
    rows.write_text(rows.read_text() + rows.read_text().splitlines()[0] + "\n")
    code, out, _ = command(
        capsys, "data", "build", rows, "--domain", "text", "--seq-len", 16, "--json", "-q"
    )
    built = json.loads(out)
    assert code == 0
    assert built["tokenizer"] == "bytes"
    assert built["duplicates_of_train"] == {"valid": 0, "test": 0}
    (tmp_path / "t").mkdir()
    (tmp_path / "t/ptb.train.txt").write_text(f"{VERSES[0]}\n{VERSES[1]}\n{VERSES[1]}\n")
    (tmp_path / "t/ptb.test.txt").write_text(f"{VERSES[0]}\nother\n")
    code, out, _ = command(
        capsys, "data", "check", "ptb", "--text", tmp_path / "t", "--domain", "text", "--json"
    )
    found = {row["name"]: row for row in map(json.loads, out.splitlines())}
    assert code == 0
    assert found["test"]["in_train"] == 1
    assert found["train"]["repeated"] == 1
    code, out, _ = command(capsys, "data", "check", rows, "--domain", "text")
    assert code == 0
    assert "sound" in out


def test_config_show_knows_the_domain_of_a_recipe(capsys):
    code, out, _ = command(capsys, "config", "show", "lm1b-padded", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["domain"], found["preset"], found["data"]["packing"]) == (
        "text",
        "dit-tiny-bytes",
        "padded",
    )
