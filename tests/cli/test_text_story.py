"""Text from file to file through the command line: train, resume, eval, sample, report."""

import json
import math
import shutil
from pathlib import Path

import pytest

from genodiff.runs.model import load_model
from tests.cli.conftest import SMALL
from tests.commands import command, exit_code, succeed
from tests.texts import SONG, VERSES, train_bpe, write_rows


def test_a_file_in_a_recipes_place_trains_on_bytes_with_the_text_defaults(text_run):
    model = load_model(text_run)
    assert model.alphabet.name == "bytes"
    assert model.config.domain == "text"
    assert model.config.recipe == "own"
    assert model.config.data.packing == "packed"
    assert model.config.backbone.kind == "dit"
    assert sorted(p.name for p in text_run.iterdir() if p.is_dir()) == ["checkpoints"]


def test_eval_gives_bits_per_byte_and_perplexity_beside_n_grams(text_run, capsys):
    found = json.loads(succeed(capsys, "eval", text_run, "--domain", "text", "--json", "-q"))
    assert found["bits_per_byte"] == pytest.approx(
        found["nelbo_nats_total"] / found["bytes"] / math.log(2)
    )
    assert found["perplexity"] == pytest.approx(math.exp(found["nelbo_nats"]))
    assert found["ci95_bits"][0] < found["bits_per_byte"] < found["ci95_bits"][1]
    assert set(found["markov_bits"]) == {str(k) for k in range(7)}
    assert found["markov_bits"]["6"] < found["markov_bits"]["0"] < 8.1
    difference = found["markov_minus_model_bits"]["3"]["bits"]
    assert difference == pytest.approx(found["markov_bits"]["3"] - found["bits_per_byte"])
    assert json.loads((text_run / "eval.json").read_text())["test"] == found
    out = succeed(capsys, "eval", text_run, "-q", "--max-windows", 3)
    assert "bits/byte" in out
    assert "7-gram" in out
    assert "packed windows (bytes)" in out


def test_zero_shot_on_another_recipe_stands_under_its_own_name(text_run, tmp_path, capsys):
    (tmp_path / "ptb.test.txt").write_text("\n".join(f" {v} " for v in VERSES * 4))
    out = succeed(
        capsys, "eval", text_run, "--recipe", "ptb", "--text", tmp_path, "--json", "--no-baselines"
    )
    assert json.loads(out)["recipe"] == "ptb"
    assert "test of ptb" in json.loads((text_run / "eval.json").read_text())


def test_a_suite_of_recipes_is_one_table_and_one_object_and_each_is_kept(
    text_run, tmp_path, capsys
):
    (tmp_path / "ptb.test.txt").write_text("the cat sat on the mat\n" * 60)
    both = ("--recipe", f"ptb={tmp_path}", "--recipe", f"wikitext2={tmp_path}", "--no-baselines",
            "--max-windows", 2)  # fmt: skip
    (tmp_path / "wiki.test.tokens").write_text("\n = Cats = \n\n the cat sat on the mat . \n" * 60)
    out = succeed(capsys, "eval", text_run, *both, "--json")
    suite = json.loads(out)["suite"]
    assert set(suite) == {"ptb", "wikitext2"}
    assert all(found["windows"] == 2 and found["bits_per_byte"] > 0 for found in suite.values())
    code, out, _ = command(capsys, "eval", text_run, *both)
    assert (code, out.count("ptb"), out.count("wikitext2")) == (0, 1, 1)
    assert {"test of ptb", "test of wikitext2"} <= set(
        json.loads((text_run / "eval.json").read_text())
    )
    assert command(capsys, "eval", text_run, *both, "--text", tmp_path)[0] == 2


def test_samples_are_the_same_whatever_the_batch_and_the_sidecar_says_where_they_stand(
    text_run, tmp_path, capsys
):
    first = ["sample", "--domain", "text", "--checkpoint", text_run, "--n", 3, "--length", 40,
             "--steps", 8, "--threads", 1, "-q"]  # fmt: skip
    succeed(capsys, *first, "--out", tmp_path / "a.txt")
    succeed(capsys, *first, "--out", tmp_path / "b.txt", "--batch-size", 1)
    raw = (tmp_path / "a.txt").read_bytes()
    assert raw == (tmp_path / "b.txt").read_bytes()
    sidecar = json.loads((tmp_path / "a.txt.json").read_text())
    texts = [raw[r["start"] : r["start"] + r["bytes"]] for r in sidecar["records"]]
    assert b"\n<|endoftext|>\n".join(texts) + b"\n" == raw
    assert [r["length"] for r in sidecar["records"]] == [40] * 3
    assert sidecar["checkpoint"] == load_model(text_run).digest


def test_a_prompt_and_a_template_keep_their_text_to_the_byte(text_run, tmp_path, capsys):
    code = main_bytes(tmp_path, text_run, "--prompt", "Öld man: ", "--n", 2, "--length", 24)
    parts = code.split(b"\n<|endoftext|>\n")
    assert all(p.startswith("Öld man: ".encode()) for p in parts)
    template = tmp_path / "t.txt"
    template.write_text("Ünder [[5]] the\n\n[[300]] end.\n", encoding="utf-8")
    got = main_bytes(tmp_path, text_run, "--template", template).decode()
    assert got.startswith("Ünder ")
    assert " the\n\n" in got
    assert got.endswith(" end.\n\n")


def main_bytes(folder: Path, run: Path, *words: object) -> bytes:
    usual = ("--out", folder / "o.txt", "--steps", 4, "--threads", 1, "-q")
    assert exit_code("sample", "--checkpoint", run, *usual, *words) == 0
    return (folder / "o.txt").read_bytes()


def test_the_report_of_a_text_run_speaks_of_bytes_and_draws_no_dna(text_run, capsys):
    succeed(capsys, "eval", text_run, "-q")
    main_bytes(text_run, text_run, "--n", 2)
    shutil.move(text_run / "o.txt", text_run / "samples.txt")
    shutil.move(text_run / "o.txt.json", text_run / "samples.txt.json")
    succeed(capsys, "report", text_run, "-q")
    page = (text_run / "report.html").read_text()
    for word in ("bits per byte, at most", "perplexity per token at most", "Generated text"):
        assert word in page
    for word in ("GC of", "bits per base", "fig-gc"):
        assert word not in page


def test_a_run_carries_its_tokenizer_and_needs_nothing_else(tmp_path, capsys):
    pytest.importorskip("tokenizers", reason="the extra 'text' is not installed")
    (tmp_path / "bpe").mkdir()
    (tmp_path / "bpe/tokenizer.json").write_bytes(train_bpe([SONG] * 3, 300))
    rows = write_rows(tmp_path)
    words = ["train", rows, "--domain", "text", "--tokenizer", tmp_path / "bpe", "--packing",
             "padded", "--seq-len", 40, *SMALL]  # fmt: skip
    succeed(capsys, *words, "--max-steps", 3, "--out", tmp_path / "run")
    shutil.rmtree(tmp_path / "bpe")
    succeed(capsys, *words, "--max-steps", 4, "--out", tmp_path / "run")
    found = json.loads(succeed(capsys, "eval", tmp_path / "run", "--json", "-q"))
    assert found["packing"] == "padded"
    assert found["bytes"] > found["tokens"]
    assert found["lossless"]
    assert main_bytes(tmp_path, tmp_path / "run", "--n", 1)
    path = tmp_path / "run/tokenizer/tokenizer.json"
    path.write_bytes(path.read_bytes() + b" ")
    code, _, err = command(capsys, "sample", "--checkpoint", tmp_path / "run", "--out", "-", "-q")
    assert code == 4
    assert "is not the tokenizer that the model was trained with" in err
    shutil.rmtree(path.parent)
    code, _, err = command(capsys, "eval", tmp_path / "run", "-q")
    assert code == 4
    assert "holds no tokenizer for the vocabulary" in err


@pytest.mark.slow
def test_the_real_files_train_evaluate_and_sample(shared, tmp_path, capsys):
    for recipe, text in (
        ("tinyshakespeare", "tinyshakespeare.txt.gz"),
        ("wikitext2", "wikitext-2"),
    ):
        out = tmp_path / recipe
        words = ["train", recipe, "--domain", "text", "--text", shared / "data/text" / text,
                 "--max-steps", 2, "--seq-len", 32]  # fmt: skip
        succeed(capsys, *words, "--out", out, *SMALL)
        said = succeed(capsys, "eval", out, "--max-windows", 16, "--no-baselines", "--json", "-q")
        assert 7 < json.loads(said)["bits_per_byte"] < 8.1
        assert main_bytes(tmp_path, out, "--n", 1, "--length", 16)


@pytest.mark.parametrize("out", ["-", "o.txt"])
def test_bytes_that_are_no_utf8_are_replaced_and_counted(text_run, sample, here, out):
    code, text, err = sample(text_run, "-o", out, "--n", 2, "--steps", 4)  # decodes stdout strictly
    assert code == 0, err
    raw = text if out == "-" else (here / out).read_bytes().decode()
    n = raw.count("\ufffd")
    assert n > 1  # the song has none: a network of six steps draws any byte
    assert f"{out}: {n} places that were no UTF-8 are written as U+FFFD" in err


def test_plans_say_what_published_runs_take(capsys):
    size = ["--tokenizer", "gpt2", "--preset", "dit-medium", "--seq-len", 1024, "--batch-size", 512,
            "--max-steps", 1_000_000]  # fmt: skip
    found = json.loads(succeed(capsys, "train", "openwebtext", *size, "--plan", "--json", "-q"))
    assert found["parameters"] == 424_477_010
    assert found["tokens"] == 524_288_000_000
    assert found["tokens_per_step"] == 524_288
    told = (found["tokenizer"], found["vocabulary_size"], found["packing"])
    assert told == ("gpt2", 50258, "packed")
    assert found["flop"] == 6.0 * found["parameters"] * found["tokens"]
    assert "tokenizer/" in found["files"]


def test_config_show_knows_the_domain_of_a_recipe(capsys):
    found = json.loads(succeed(capsys, "config", "show", "lm1b-padded", "--json"))
    told = (found["domain"], found["preset"], found["data"]["packing"])
    assert told == ("text", "dit-tiny-bytes", "padded")
