"""Recipes, stores, tokenizers and documents from Python; errors come before heavy libraries."""

import json
from pathlib import Path

import pytest

import genodiff
from genodiff.errors import DataError, UsageError
from tests.commands import command
from tests.texts import VERSES, write_rows


def test_recipes_are_the_rows_that_the_command_line_prints(capsys):
    for domain in ("text", "dna"):
        rows = genodiff.list_recipes(domain)
        _, out, _ = command(capsys, "data", "list", "--domain", domain, "--json")
        assert json.loads(json.dumps(rows)) == [json.loads(line) for line in out.splitlines()]
    present = {row["name"]: row["present"] for row in rows}
    assert (present["toy"], present["hg38"]) == (True, False)
    _, out, _ = command(capsys, "data", "list")
    places = {line.split()[0]: line[21:30].strip() for line in out.splitlines()}
    assert (places["toy"], places["hg38"], places["pubmed"]) == ("built in", "to fetch", "yours")


def test_data_that_are_generated_have_no_files_and_others_are_not_fetched_offline():
    assert genodiff.fetch_data("toy") == []
    with pytest.raises(DataError, match="--offline forbids"):
        genodiff.fetch_data("hg38", offline=True)
    with pytest.raises(UsageError, match="no recipe 'hg83'"):
        genodiff.fetch_data("hg83")


def test_a_store_says_what_the_command_line_prints(capsys, tmp_path):
    path = tmp_path / "one.fa"
    path.write_text(">one\n" + "ACGTTGCA" * 500 + "\n")
    built = genodiff.build_store(path, seq_len=50)
    words = ("data", "build", path, "--seq-len", 50, "-q")
    assert built.row == json.loads(command(capsys, *words, "--json")[1])
    assert built.path == Path(built.row["store"])
    assert built.path.is_dir()
    assert sum(split["bases"] for split in built.row["splits"].values()) == 4000
    lines = [f"{split:<6} {said}" for split, said in built.summaries.items()]
    assert command(capsys, *words)[1].splitlines() == [*lines, f"store  {built.path}"]
    with pytest.raises(DataError, match="give --seq-len 4000 or less"):
        genodiff.build_store(path, seq_len=5000)


def test_a_store_of_text_counts_bytes_and_copies(tmp_path, capsys):
    built = genodiff.build_store(write_rows(tmp_path), domain="text", seq_len=16)
    assert built.row["tokenizer"] == "bytes"
    assert built.row["duplicates_of_train"] == {"valid": 0, "test": 0}
    assert built.summaries["train"].startswith(f"{built.row['splits']['train']['windows']:,} ")
    words = ("data", "build", tmp_path / "rows.jsonl", "--domain", "text", "--seq-len", 16, "-q")
    assert json.loads(command(capsys, *words, "--json")[1]) == built.row
    code, out, _ = command(capsys, "data", "check", tmp_path / "rows.jsonl", "--domain", "text")
    assert (code, "sound" in out) == (0, True)


def test_documents_of_a_recipe_are_counted_with_their_copies(tmp_path):
    (tmp_path / "ptb.train.txt").write_text(f"{VERSES[0]}\n{VERSES[1]}\n{VERSES[1]}\n")
    (tmp_path / "ptb.test.txt").write_text(f"{VERSES[0]}\nother\n")
    found = genodiff.check_documents("ptb", text=tmp_path)
    counts = {
        row["name"]: (row["documents"], row["repeated"], row["in_train"]) for row in found.rows
    }
    assert counts == {"train": (3, 1, 0), "test": (2, 0, 1)}
    assert found.n_files == 2
    own = genodiff.check_documents(tmp_path)
    assert sum(row["documents"] for row in own.rows) == 2
    with pytest.raises(DataError, match="every split is shorter than --seq-len 100000"):
        genodiff.check_documents(tmp_path, seq_len=100_000)
    with pytest.raises(UsageError, match="'hg38' is a recipe of DNA"):
        genodiff.check_documents("hg38")
