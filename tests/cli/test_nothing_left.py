"""A training or a fine-tuning that is refused once its data are known leaves no file or folder."""

import random
from pathlib import Path

import pytest

from tests.commands import command

REFUSED = [
    ("train hg38 --offline", 3, "--offline forbids"),
    ("train hg38 --offline --out above/run", 3, "--offline forbids"),
    ("finetune table --train t.csv --model yeast --rc augment", 2, "reads both; give --rc conjoin"),
    ("finetune table --train t.csv --model yeast --rc average", 2, "reads both; give --rc conjoin"),
    ("finetune table --train t.csv --model none", 2, "'none' has no network"),
    ("finetune table --train t.csv --model none scratch", 2, "'none' has no network"),
]


@pytest.mark.parametrize(("words", "exit_code", "said"), REFUSED)
def test_a_refusal_leaves_nothing(words, exit_code, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    draw = random.Random(1)
    rows = [f"{''.join(draw.choices('ACGT', k=40))},{i % 2}\n" for i in range(40)]
    Path("t.csv").write_text("sequence,label\n" + "".join(rows))
    more = ("--test-share", ".2") if "finetune" in words else ()
    code, out, err = command(capsys, *words.split(), *more)
    assert (code, out) == (exit_code, "")
    assert said in err.splitlines()[-1]
    assert {path.name for path in Path().iterdir()} <= {"t.csv", "cache"}
