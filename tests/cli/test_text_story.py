"""Text from file to file through the command line: train, resume, eval, sample, report; and what
goes wrong on the way.
"""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from genodiff.data.file_tokenizer import train_bpe
from genodiff.data.tokenizer import ByteTokenizer
from genodiff.errors import DataError, UsageError
from genodiff.generate.text_output import TextTemplate, draft, filled, prompted, read_template
from genodiff.runs.model import load_model
from tests.commands import command, exit_code
from tests.texts import SONG, VERSES, write_rows, write_song

SMALL = [
    "--d-model",
    "16",
    "--n-layer",
    "1",
    "--n-head",
    "2",
    "--batch-size",
    "4",
    "--validate-windows",
    "4",
    "--threads",
    "1",
    "-q",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 6 steps on a song, in a folder with the song."""
    folder = tmp_path_factory.mktemp("text")
    song = write_song(folder)
    out = folder / "run"
    assert (
        exit_code(
            "train",
            song,
            "--domain",
            "text",
            "--seq-len",
            32,
            "--max-steps",
            6,
            "--out",
            out,
            *SMALL,
        )
        == 0
    )
    return out


def test_a_file_in_a_recipes_place_trains_on_bytes_with_the_text_defaults(run: Path) -> None:
    model = load_model(run)
    assert model.alphabet.name == "bytes"
    assert model.config.domain == "text"
    assert model.config.recipe == "own"
    assert model.config.data.packing == "packed"
    assert model.config.backbone.kind == "dit"
    assert sorted(p.name for p in run.iterdir() if p.is_dir()) == ["checkpoints"]


def test_a_run_that_goes_on_is_the_run_that_never_stopped(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    song = run.parent / "song.txt"
    words = [
        "train",
        song,
        "--domain",
        "text",
        "--seq-len",
        32,
        "--out",
        tmp_path / "r",
        "--lr-schedule",
        "constant",
        *SMALL,
    ]
    whole = [
        "train",
        song,
        "--domain",
        "text",
        "--seq-len",
        32,
        "--out",
        tmp_path / "w",
        "--lr-schedule",
        "constant",
        *SMALL,
    ]
    for steps in (2, 5):
        assert command(capsys, *words, "--max-steps", steps)[0] == 0
    assert command(capsys, *whole, "--max-steps", 5)[0] == 0
    assert (tmp_path / "r/model.safetensors").read_bytes() == (
        tmp_path / "w/model.safetensors"
    ).read_bytes()


def test_eval_gives_bits_per_byte_and_perplexity_beside_n_grams(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = command(capsys, "eval", run, "--domain", "text", "--json", "-q")
    found = json.loads(out)
    assert code == 0
    assert found["bits_per_byte"] == pytest.approx(
        found["nelbo_nats_total"] / found["bytes"] / math.log(2)
    )
    assert found["perplexity"] == pytest.approx(math.exp(found["nelbo_nats"]))
    assert found["ci95_bits"][0] < found["bits_per_byte"] < found["ci95_bits"][1]
    assert set(found["markov_bits"]) == {str(k) for k in range(7)}
    assert found["markov_bits"]["6"] < found["markov_bits"]["0"] < 8.1
    difference = found["markov_minus_model_bits"]["3"]["bits"]
    assert difference == pytest.approx(found["markov_bits"]["3"] - found["bits_per_byte"])
    assert json.loads((run / "eval.json").read_text())["test"] == found
    code, out, _ = command(capsys, "eval", run, "-q", "--max-windows", 3)
    assert code == 0
    assert "bits/byte" in out
    assert "7-gram" in out
    assert "packed windows (bytes)" in out


def test_zero_shot_on_another_recipe_stands_under_its_own_name(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ptb.test.txt").write_text("\n".join(f" {v} " for v in VERSES * 4))
    code, out, err = command(
        capsys, "eval", run, "--recipe", "ptb", "--text", tmp_path, "--json", "--no-baselines"
    )
    assert code == 0, err
    assert json.loads(out)["recipe"] == "ptb"
    assert "test of ptb" in json.loads((run / "eval.json").read_text())


def test_a_suite_of_recipes_is_one_table_and_one_object_and_each_is_kept(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ptb.test.txt").write_text("the cat sat on the mat\n" * 60)
    both = (
        "--recipe",
        f"ptb={tmp_path}",
        "--recipe",
        f"wikitext2={tmp_path}",
        "--no-baselines",
        "--max-windows",
        2,
    )
    (tmp_path / "wiki.test.tokens").write_text("\n = Cats = \n\n the cat sat on the mat . \n" * 60)
    code, out, _ = command(capsys, "eval", run, *both, "--json")
    assert code == 0
    suite = json.loads(out)["suite"]
    assert set(suite) == {"ptb", "wikitext2"}
    assert all(found["windows"] == 2 and found["bits_per_byte"] > 0 for found in suite.values())
    code, out, _ = command(capsys, "eval", run, *both)
    assert (code, out.count("ptb"), out.count("wikitext2")) == (0, 1, 1)
    assert {"test of ptb", "test of wikitext2"} <= set(json.loads((run / "eval.json").read_text()))
    assert command(capsys, "eval", run, *both, "--text", tmp_path)[0] == 2


def test_samples_are_the_same_whatever_the_batch_and_the_sidecar_says_where_they_stand(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = [
        "sample",
        "--domain",
        "text",
        "--checkpoint",
        run,
        "--n",
        3,
        "--length",
        40,
        "--steps",
        8,
        "--threads",
        1,
        "-q",
    ]
    assert command(capsys, *first, "--out", tmp_path / "a.txt")[0] == 0
    assert command(capsys, *first, "--out", tmp_path / "b.txt", "--batch-size", 1)[0] == 0
    raw = (tmp_path / "a.txt").read_bytes()
    assert raw == (tmp_path / "b.txt").read_bytes()
    sidecar = json.loads((tmp_path / "a.txt.json").read_text())
    texts = [raw[r["start"] : r["start"] + r["bytes"]] for r in sidecar["records"]]
    assert b"\n<|endoftext|>\n".join(texts) + b"\n" == raw
    assert [r["length"] for r in sidecar["records"]] == [40] * 3
    assert sidecar["checkpoint"] == load_model(run).digest


def test_a_prompt_and_a_template_keep_their_text_to_the_byte(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main_bytes(tmp_path, run, "--prompt", "Öld man: ", "--n", 2, "--length", 24)
    parts = code.split(b"\n<|endoftext|>\n")
    assert all(p.startswith("Öld man: ".encode()) for p in parts)
    template = tmp_path / "t.txt"
    template.write_text("Ünder [[5]] the\n\n[[300]] end.\n", encoding="utf-8")
    got = main_bytes(tmp_path, run, "--template", template).decode()
    assert got.startswith("Ünder ")
    assert " the\n\n" in got
    assert got.endswith(" end.\n\n")


def main_bytes(folder: Path, run: Path, *words: object) -> bytes:
    assert (
        exit_code(
            "sample",
            "--checkpoint",
            run,
            "--out",
            folder / "o.txt",
            "--steps",
            4,
            "--threads",
            1,
            "-q",
            *words,
        )
        == 0
    )
    return (folder / "o.txt").read_bytes()


def test_the_report_of_a_text_run_speaks_of_bytes_and_draws_no_dna(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(capsys, "eval", run, "-q")[0] == 0
    main_bytes(run, run, "--n", 2)
    shutil.move(run / "o.txt", run / "samples.txt")
    shutil.move(run / "o.txt.json", run / "samples.txt.json")
    code, _, err = command(capsys, "report", run, "-q")
    page = (run / "report.html").read_text()
    assert code == 0, err
    assert "bits per byte, at most" in page
    assert "perplexity per token at most" in page
    assert "Generated text" in page
    assert "GC of" not in page
    assert "bits per base" not in page
    assert "fig-gc" not in page


def test_a_run_carries_its_tokenizer_and_needs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers", reason="the extra 'text' is not installed")
    (tmp_path / "bpe").mkdir()
    (tmp_path / "bpe/tokenizer.json").write_bytes(train_bpe([SONG] * 3, 300))
    rows = write_rows(tmp_path)
    words = [
        "train",
        rows,
        "--domain",
        "text",
        "--tokenizer",
        tmp_path / "bpe",
        "--packing",
        "padded",
        "--seq-len",
        40,
        *SMALL,
    ]
    code, _, err = command(capsys, *words, "--max-steps", 3, "--out", tmp_path / "run")
    assert code == 0, err
    shutil.rmtree(tmp_path / "bpe")
    code, _, err = command(capsys, *words, "--max-steps", 4, "--out", tmp_path / "run")
    assert code == 0, err
    code, out, err = command(capsys, "eval", tmp_path / "run", "--json", "-q")
    found = json.loads(out)
    assert code == 0
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
        (
            ["sample", "--checkpoint", "RUN", "--out", "-", "--domain", "dna"],
            2,
            "--domain says dna",
        ),
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
def test_what_contradicts_itself_is_one_line(
    run: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    places = {"RUN": str(run), "SONG": str(run.parent / "song.txt")}
    found, _, err = command(capsys, *[places.get(w, w) for w in words], "-q")
    assert (found, says in err, err.count("\n")) == (code, True, 1), err


def test_a_dna_run_is_no_text_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = [
        "train",
        "toy",
        "--preset",
        "caduceus-ps-tiny",
        "--d-model",
        8,
        "--n-layer",
        1,
        "--seq-len",
        32,
        "--max-steps",
        1,
    ]
    assert (
        command(
            capsys,
            *words,
            "--batch-size",
            2,
            "--validate-windows",
            0,
            "--out",
            tmp_path / "dna",
            "-q",
        )[0]
        == 0
    )
    code, _, err = command(capsys, "sample", "--checkpoint", tmp_path / "dna", "--out", "-", "-q")
    assert code == 4
    assert "is a dna model" in err
    code, _, err = command(capsys, "eval", tmp_path / "dna", "--text", "x.txt", "-q")
    assert code == 2
    assert "--text is for text, and this is a DNA run" in err


def test_plans_say_what_published_runs_take(capsys: pytest.CaptureFixture[str]) -> None:
    size = [
        "--tokenizer",
        "gpt2",
        "--preset",
        "dit-medium",
        "--seq-len",
        1024,
        "--batch-size",
        512,
        "--max-steps",
        1_000_000,
    ]
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


def test_data_verbs_know_text(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_config_show_knows_the_domain_of_a_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys, "config", "show", "lm1b-padded", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["domain"], found["preset"], found["data"]["packing"]) == (
        "text",
        "dit-tiny-bytes",
        "padded",
    )


def test_data_tokenizer_makes_what_train_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers", reason="the extra 'text' is not installed")
    code, out, _ = command(
        capsys,
        "data",
        "tokenizer",
        write_song(tmp_path),
        "--vocab-size",
        300,
        "--out",
        tmp_path / "bpe",
    )
    assert code == 0
    assert "300 tokens" in out
    assert (
        command(
            capsys,
            "data",
            "tokenizer",
            tmp_path / "song.txt",
            "--vocab-size",
            10,
            "--out",
            tmp_path / "x",
        )[0]
        == 2
    )
    words = [
        "data",
        "build",
        tmp_path / "song.txt",
        "--domain",
        "text",
        "--tokenizer",
        tmp_path / "bpe",
        "--seq-len",
        8,
        "-q",
    ]
    code, out, _ = command(capsys, *words)
    assert code == 0
    assert "packed windows of 8 tokens" in out


def test_templates_keep_text_and_gaps_in_order(tmp_path: Path) -> None:
    tokenizer = ByteTokenizer()
    (tmp_path / "t.txt").write_text("a[[3]]bc[[x]][[2]]")
    template = read_template(str(tmp_path / "t.txt"))
    assert template.parts == ("a", 3, "bc[[x]]", 2)
    assert template.gaps == 5
    made = draft(template, tokenizer, start=False)
    ids = made.ids.copy()
    assert (ids == 257).sum() == 5
    ids[ids == 257] = [*b"xy", 256, 0xFF, *b"z"]
    done = filled(template, made, ids, tokenizer)
    assert done.text.decode() == "axy\n<|endoftext|>\nbc[[x]]�z"
    assert done.invalid == 1
    assert (
        filled(
            TextTemplate((5,)),
            draft(TextTemplate((5,)), tokenizer, False),
            ids[:5],
            tokenizer,
            whole=True,
        ).text
        == b"axy"
    )
    assert prompted("abc", 10, tokenizer).parts == ("abc", 7)
    with pytest.raises(UsageError, match="the prompt has 3 tokens"):
        prompted("abc", 3, tokenizer)
    (tmp_path / "big.txt").write_text("[[99999999999999]]")
    with pytest.raises(DataError, match="is not between 1 and"):
        read_template(str(tmp_path / "big.txt"))
    assert np.array_equal(draft(TextTemplate(("ab",)), tokenizer, True).ids, [97, 98])


def test_the_real_files_train_evaluate_and_sample(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for recipe, text in (
        ("tinyshakespeare", "tinyshakespeare.txt.gz"),
        ("wikitext2", "wikitext-2"),
    ):
        out = tmp_path / recipe
        words = [
            "train",
            recipe,
            "--domain",
            "text",
            "--text",
            shared / "data/text" / text,
            "--max-steps",
            2,
            "--seq-len",
            32,
        ]
        assert command(capsys, *words, "--out", out, *SMALL)[0] == 0
        code, said, err = command(
            capsys, "eval", out, "--max-windows", 16, "--no-baselines", "--json", "-q"
        )
        assert code == 0, err
        assert 7 < json.loads(said)["bits_per_byte"] < 8.1
        assert main_bytes(tmp_path, out, "--n", 1, "--length", 16)
