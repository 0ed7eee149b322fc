"""Text on the command line: what contradicts itself, plans, and the verbs about data."""

import json

import pytest

from tests.commands import command
from tests.texts import VERSES, write_rows


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (
            ["train", "hg38", "--domain", "text"],
            2,
            "'hg38' is a recipe of dna, and --domain says text",
        ),
        (
            ["train", "tinyshakespeare", "--domain", "dna"],
            2,
            "is a recipe of text, and --domain says dna",
        ),
        (
            ["train", "tinyshakespeare", "--fasta", "x.fa"],
            2,
            "--fasta does not go with 'tinyshakespeare'",
        ),
        (["train", "hg38", "--text", "x.txt"], 2, "--text does not go with 'hg38'"),
        (["train", "SONG", "--text", "x.txt", "--domain", "text"], 2, "are two texts"),
        (
            ["train", "SONG"],
            2,
            "is a file, not a recipe; name a recipe and give the file with --fasta (DNA), or "
            "give --domain text",
        ),
        (["train", "wikitext", "--domain", "text"], 2, "did you mean 'wikitext2'"),
        (
            ["train", "lm1b", "--domain", "text"],
            2,
            "'lm1b' comes as lm1b-packed and lm1b-padded; name one of them",
        ),
        (
            ["train", "SONG", "--domain", "text", "--tokenizer", "nosuch"],
            2,
            "no tokenizer 'nosuch'",
        ),
        (
            ["train", "SONG", "--domain", "text", "--preset", "caduceus-ps-tiny"],
            2,
            "strands: single",
        ),
        (["train", "tinyshakespeare", "--offline"], 3, "get https://raw.githubusercontent.com"),
        (
            ["sample", "--checkpoint", "RUN", "--fasta", "x.fa"],
            4,
            "is a text model; give --out FILE",
        ),
        (
            ["sample", "--checkpoint", "RUN", "--domain", "text", "--fasta", "x.fa"],
            2,
            "--fasta is for DNA",
        ),
        (
            ["sample", "--checkpoint", "RUN", "--domain", "text"],
            2,
            "no file to write; give --out FILE",
        ),
        (["sample", "--checkpoint", "RUN", "--out", "-", "--domain", "dna"], 4, "is a text model"),
        (
            ["sample", "--checkpoint", "RUN", "--out", "-", "--prompt", "x" * 99],
            2,
            "the prompt has 99 tokens",
        ),
        (
            ["sample", "--checkpoint", "RUN", "--out", "-", "--template", "SONG"],
            3,
            "has no gap to fill; write [[20]]",
        ),
        (["eval", "RUN", "--domain", "dna"], 4, "is a text model; give a dna run"),
        (["eval", "RUN", "--fasta", "x.fa"], 2, "--fasta is for DNA, and this is a text run"),
        (["data", "check", "nosuch.txt", "--domain", "text"], 3, "no such file"),
    ],
)
def test_what_contradicts_itself_is_one_line(text_run, capsys, words, code, says):
    places = {"RUN": str(text_run), "SONG": str(text_run.parent / "song.txt")}
    found, _, err = command(capsys, *[places.get(w, w) for w in words], "-q")
    assert (found, says in err, err.count("\n")) == (code, True, 1), err


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
