"""`genodiff predict`: rows in every format, faults in one line, and nothing half-written."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import genodiff
from genodiff.errors import UsageError
from genodiff.finetuning.model_spec import parse_models
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.scored_unit import read_predictions, run_unit
from genodiff.finetuning.unit import Unit
from genodiff.tasks.examples import Examples
from genodiff.tasks.suite import Task
from genodiff.tasks.task import TaskData
from tests.commands import check_refused, command, exit_code, succeed
from tests.finetuning.motif_task import examples, write_tables


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep of two seeds of kmer-lr, in a folder with its test part without labels."""
    home = tmp_path_factory.mktemp("predict")
    write_tables(home, 60, 30, labels=("no", "yes"))
    rows = [line.split(",") for line in (home / "test.csv").read_text().splitlines()[1:]]
    (home / "test.fa").write_text("".join(f">{name}\n{sequence}\n" for name, sequence, _ in rows))
    words = ["finetune", "table", "--train", home / "train.csv", "--test", home / "test.csv"]
    words += ["--out", home / "sweep", "--seeds", 2, "--threads", 1, "-q"]
    assert exit_code(*words, "--model", "kmer-lr", "--model", "majority") == 0
    return home


def run(capsys: pytest.CaptureFixture[str], sweep: Path, *words: object) -> tuple[int, str, str]:
    return command(capsys, "predict", sweep / "sweep", *words, "--threads", 1)


def test_rows_are_those_of_the_contract_and_of_the_test_pass(sweep, capsys):
    code, out, err = run(capsys, sweep, sweep / "test.fa", "--seed", 1, "--json")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    (unit,) = [
        p.parent
        for p in (sweep / "sweep" / "units").glob("*/predictor.json")
        if json.loads(p.read_text())["unit"]["seed"] == 1
    ]
    predicted = read_predictions(unit)[0]
    assert [row["name"] for row in rows] == [f"s{i}" for i in range(30)]
    for row, wanted in zip(rows, predicted, strict=True):
        assert set(row) == {"name", "prediction", "probabilities"}
        assert row["probabilities"] == pytest.approx({"no": wanted[0], "yes": wanted[1]}, abs=1e-6)
        assert row["prediction"] == ("yes" if wanted[1] > wanted[0] else "no")


def test_every_format_holds_the_same_and_says_where_it_is_from(sweep, tmp_path, capsys):
    frames = []
    for ending in ("csv", "tsv", "parquet", "jsonl"):
        out = tmp_path / f"p.{ending}"
        words = (sweep / "test.csv", "--ensemble", "-o", out, "--batch-size", 1 + len(frames))
        assert run(capsys, sweep, *words)[0] == 0
        about = json.loads(Path(f"{out}.json").read_text())
        assert about["rows"] == 30
        assert [unit["seed"] for unit in about["units"]] == [1, 2]
        assert about["sequences"]["path"] == str(sweep / "test.csv")
        if ending == "jsonl":
            rows = [json.loads(line) for line in out.read_text().splitlines()]
            flat = [{**row, **{f"p_{k}": p for k, p in row["probabilities"].items()}}
                    for row in rows]  # fmt: skip
            frames.append(pl.DataFrame(flat).select(frames[0].columns))
        elif ending == "parquet":
            frames.append(pl.read_parquet(out))
        else:
            frames.append(pl.read_csv(out, separator="," if ending == "csv" else "\t"))
    assert frames[0].columns == ["name", "prediction", "p_no", "p_yes", "spread"]
    for other in frames[1:]:
        assert other["prediction"].to_list() == frames[0]["prediction"].to_list()
        for column in ("p_yes", "spread"):
            assert other[column].to_list() == pytest.approx(frames[0][column].to_list(), abs=1e-7)
    code, out_text, _ = run(capsys, sweep, sweep / "test.csv", "--ensemble")
    assert code == 0
    assert out_text == (tmp_path / "p.csv").read_text()


def test_python_gives_the_frame_that_the_command_writes(sweep, tmp_path):
    frame = genodiff.predict(sweep / "sweep", sweep / "test.fa", seed=2)
    assert isinstance(frame, pl.DataFrame)
    about = genodiff.predict(sweep / "sweep", sweep / "test.fa", seed=2, out=tmp_path / "p.parquet")
    assert isinstance(about, dict)
    assert pl.read_parquet(tmp_path / "p.parquet").equals(frame)
    some = genodiff.predict(sweep / "sweep", ["ACGTACGT", "TTTT"], seed=2)
    assert isinstance(some, pl.DataFrame)
    assert some["name"].to_list() == ["seq1", "seq2"]
    with pytest.raises(UsageError, match="exclude each other"):
        genodiff.predict(sweep / "sweep", ["A"], seed=2, ensemble=True)


@pytest.mark.slow
def test_multilabel_rows_and_values(tmp_path, capsys):
    some = examples(40, 1, (20, 30), "multilabel")
    rows = [
        f"{s.decode()},{a},{b}\n" for s, (a, b, _) in zip(some.sequences, some.labels, strict=True)
    ]
    (tmp_path / "m.csv").write_text("seq,x,y\n" + "".join(rows))
    values = [f"{s.decode()},{len(s) / 7}\n" for s in some.sequences]
    (tmp_path / "v.csv").write_text("seq,label\n" + "".join(values))
    for name, more in (("m", ("--label", "x", "--label", "y")), ("v", ())):
        table = tmp_path / f"{name}.csv"
        words = ("finetune", "table", "--train", table, "--test", table, *more, "-q", "--seeds", 1)
        out = tmp_path / name
        assert exit_code(*words, "--model", "kmer-lr", "--threads", 1, "--out", out) == 0
    out_text = succeed(capsys, "predict", tmp_path / "m", tmp_path / "m.csv", "--json")
    row = json.loads(out_text.splitlines()[0])
    assert row["prediction"] == [c for c in "xy" if row["probabilities"][c] >= 0.5]
    code, out_text, _ = command(capsys, "predict", tmp_path / "v", tmp_path / "v.csv", "--json")
    row = json.loads(out_text.splitlines()[0])
    assert (code, row["probabilities"]) == (0, {})
    assert isinstance(row["prediction"], float)


def test_longer_sequences_are_cut_and_counted(sweep, tmp_path, capsys):
    (tmp_path / "l.fa").write_text(f">short\n{'ACGT' * 5}\n>long\n{'ACGT' * 50}\n")
    code, out, err = run(capsys, sweep, tmp_path / "l.fa", "--seed", 1)
    assert code == 0
    assert len(out.splitlines()) == 3
    assert "1 of 2 sequences are longer than 30 bases and are cut" in err
    assert "the first: long" in err


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["test.fa"], 2, "give --seed N, or --ensemble"),
        (["test.fa", "--model", "majority", "--seed", 1], 2, "no model 'majority' is saved here"),
        (["test.fa", "--seed", 9], 2, "known: 1, 2"),
        (["test.fa", "--seed", 1, "--ensemble"], 2, "exclude each other"),
        (["test.fa", "--seed", 1, "--batch-size", 0], 2, "below 1"),
        (["test.fa", "--seed", 1, "--out", "x.xlsx"], 2, "ends in none of .csv"),
        (["test.fa", "--seed", 1, "--out", "x.csv", "--json"], 2, "--out x.jsonl"),
        (["no.fa", "--seed", 1], 3, "no such file"),
        (["empty.fa", "--seed", 1], 3, "is empty"),
        (["bad.csv", "--seed", 1], 3, "line 3"),
        (["test.fa", "--seed", 1, "--out", "test.csv"], 2, "genodiff did not write it"),
        (["test.fa", "--seed", 1, "--out", "test.fa"], 2, "ends in none of"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    sweep, capsys, monkeypatch, more, code, said
):
    monkeypatch.chdir(sweep)
    Path("empty.fa").write_text("")
    Path("bad.csv").write_text("name,seq\na,ACGT\nb,ACGJ\n")
    check_refused(capsys, ["predict", "sweep", *more, "--threads", 1, "-q"], code, said)


def test_sentences_are_answered_as_in_the_test_pass(text_run, tmp_path, capsys):
    ends = [f"moon {i}" if i % 2 else f"the night {i}" for i in range(24)]
    pairs = [(f"the night {i} is long", end) for i, end in enumerate(ends)]
    some = Examples(
        [f"{a}\t{b}".encode() for a, b in pairs],
        np.arange(24) % 2,
        [f"row{i}" for i in range(1, 25)],
    )
    task = Task(suite="glue", name="pairs", domain="text", max_length=40)
    (model,) = parse_models([f"ours={text_run}"], (), "text")
    unit = Unit(
        suite="glue", task="pairs", split="official", data="x", model=model, seed=1,
        settings=FitSettings(epochs=1, batch_size=8, rc="none"),
    )  # fmt: skip
    run_unit(unit, TaskData(task, some, some, "official"), tmp_path)
    wanted = read_predictions(unit.folder(tmp_path))[0]
    table, lines = tmp_path / "pairs.tsv", tmp_path / "pairs.txt"
    table.write_text("sentence1\tsentence2\n" + "".join(f"{a}\t{b}\n" for a, b in pairs))
    lines.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    for given in (table, lines):
        out = succeed(capsys, "predict", tmp_path, given, "--json", "--threads", 1)
        rows = [json.loads(line) for line in out.splitlines()]
        found = [list(row["probabilities"].values()) for row in rows]
        assert np.abs(np.array(found) - wanted).max() < 1e-6
    lines.write_text("only one\n")
    code, _, err = command(capsys, "predict", tmp_path, lines, "--threads", 1)
    assert code == 3
    assert "line 1: one sentence, and the model reads two sentences" in err
