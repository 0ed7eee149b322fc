"""A fine-tuned model as an oracle of saturation mutagenesis, from outside."""

from pathlib import Path

import numpy as np
import pytest

import genodiff
from genodiff.errors import UsageError
from tests.commands import command, exit_code
from tests.labelled_files import random_dna

LETTERS = "ACGTTGCATAN" + "ACGTT" * 3


def test_a_map_of_a_classifier_is_the_change_of_its_log_odds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("train", 1), ("test", 2)):
        rows = [f"{dna},{'yes' if 'TA' in dna[:9] else 'no'}\n" for dna in random_dna(60, 40, seed)]
        Path(f"{name}.csv").write_text("sequence,label\n" + "".join(rows))
    words = "finetune table --train train.csv --test test.csv --model kmer-lr --seeds 1 --out mine"
    assert exit_code(*words.split(), "--threads", 1) == 0
    model = genodiff.load("mine")
    found = model.ism(LETTERS, label="yes")
    assert np.isnan(found).all(0).tolist() == [letter == "N" for letter in LETTERS]

    def log_odds(sequence: str) -> float:
        p = float(model.predict([sequence])["p_yes"][0])
        return float(np.log(p / (1 - p)))

    for place, letter in ((0, "C"), (8, "G"), (25, "A")):
        other = LETTERS[:place] + letter + LETTERS[place + 1 :]
        wanted = log_odds(other) - log_odds(LETTERS)  # of chances in float32
        assert found["ACGT".index(letter), place] == pytest.approx(wanted, abs=1e-5)
    assert model.ism(LETTERS, label="no")[1, 0] == pytest.approx(-found[1, 0], abs=1e-9)
    for options, said in (({}, "--label is missing"), ({"label": "x"}, "no class")):
        with pytest.raises(UsageError, match=said):
            model.ism(LETTERS, **options)
    with pytest.raises(UsageError, match="without context"):
        model.ism(LETTERS, label="yes", context=64)
    Path("long.fa").write_text(">a\n" + "ACGT" * 20 + "\n")
    words = "ism --model mine --fasta long.fa -o o.tsv --label yes --threads 1"
    code, _, err = command(capsys, *words.split())
    assert (code, err.count("\n")) == (2, 1), err
    assert "the fit reads 40" in err
