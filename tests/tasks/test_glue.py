"""GLUE: files as it gives them out and as others have cut them, sentences as ids, baselines of
text, and text runs in a sweep.
"""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genodiff.backbones.dit import DiTSettings
from genodiff.data.tokenizer import ByteTokenizer
from genodiff.errors import DataError
from genodiff.finetuning.baselines import fit_baseline
from genodiff.finetuning.batches import SentenceEncoder, encode, shorten
from genodiff.finetuning.fit import raw_scores
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.protocol import FitSettings
from genodiff.runs.resolve import resolve_config
from genodiff.tasks.audit import audit
from genodiff.tasks.data_request import load_cached
from genodiff.tasks.examples import Examples, Parts
from genodiff.tasks.layouts import glue
from genodiff.tasks.suite import Task, TaskFiles, load_suite
from genodiff.tasks.task import TaskData, load_task, subsample_train
from genodiff.training.run import train
from genodiff.vocabulary import BYTES, Vocabulary
from tests.commands import command
from tests.finetuning.test_sweep import rows_of
from tests.labelled_files import write
from tests.texts import NETWORK, write_song
from tests.tiny_run import write_run

END = BYTES.end_id
GOOD, BAD = ("warm", "bright", "moving", "tender"), ("dull", "cold", "tired", "flat")


def read_glue(folder: Path, name: str) -> Parts:
    return glue.read_glue(TaskFiles(load_suite("glue"), load_suite("glue").find(name), folder))


def reviews(n: int, seed: int) -> list[tuple[str, int]]:
    rng = np.random.default_rng(seed)
    words = [(GOOD if i % 2 else BAD)[rng.integers(4)] for i in range(n)]
    return [(f'a {w} film about "number {rng.integers(90)}"', i % 2) for i, w in enumerate(words)]


def write_sst2(root: Path, n: int = 60, n_dev: int = 20) -> Path:
    for part, size, seed in (("train", n, 1), ("dev", n_dev, 2)):
        rows = "".join(f"{sentence} \t{label}\n" for sentence, label in reviews(size, seed))
        write(root / f"SST-2/{part}.tsv", f"sentence\tlabel\n{rows}")
    write(root / "SST-2/test.tsv", "index\tsentence\n0\tno label here\n")
    return root


def write_wnli(root: Path) -> Path:
    said = [f"The cup {i} is hot.\tIt is {'hot' if i % 2 else 'cold'}." for i in range(20)]
    rows = "".join(f"{i}\t{text}\t{i % 2}\n" for i, text in enumerate(said))
    for part in ("train", "dev"):
        write(root / f"WNLI/{part}.tsv.gz", f"index\tsentence1\tsentence2\tlabel\n{rows}")
    return root


def test_the_dev_part_tests_and_the_unlabelled_test_part_is_left_alone(tmp_path):
    parts = read_glue(write_sst2(tmp_path), "sst2")
    assert (parts.train.n, parts.test.n, parts.valid_index) == (60, 20, None)
    assert parts.train.sequences[:1] == [reviews(60, 1)[0][0].encode()]
    assert parts.test.labels.tolist() == [0, 1] * 10
    assert "GLUE's dev part (20 examples)" in parts.notes[0]


def test_a_cut_train_part_is_put_together_again(tmp_path):
    folder = write_sst2(tmp_path) / "SST-2"
    (folder / "dev.tsv").rename(folder / "test.tsv")  # the official dev part, called test
    (folder / "train.tsv").rename(folder / "dev.tsv")
    write(folder / "train.tsv", "sentence\tlabel\none more\t1\n")
    parts = read_glue(tmp_path, "sst2")
    assert (parts.train.n, parts.test.n) == (61, 20)
    cola = tmp_path / "CoLA"
    write(cola / "train.tsv.gz", 'gj04\t1\t\tShe said "yes.\ngj04\t0\t*\tput \ba picture.\n')
    write(cola / "val.tsv.gz", "gj04\t0\t*\tCar the honked.\n")
    write(cola / "dev.tsv.gz", "gj04\t1\t\tIt rains.")
    parts = read_glue(cola, "cola")
    assert parts.train.sequences == [b'She said "yes.', b"put \x08a picture.", b"Car the honked."]
    assert (parts.train.labels.tolist(), parts.test.labels.tolist()) == ([1, 0, 0], [1])


def test_two_sentences_stand_with_a_tab_between_and_words_are_labels(tmp_path):
    parts = read_glue(write_wnli(tmp_path), "wnli")
    assert parts.train.sequences[1] == b"The cup 1 is hot.\tIt is hot."
    rows = "3\tRain falls.\tIt is wet.\tentailment\n4\tSun.\tRain.\tnot_entailment\n"
    for part in ("train", "dev"):
        write(tmp_path / f"rte/{part}.tsv", rows)
    assert read_glue(tmp_path, "rte").train.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sentence\tlabel\nfine\t1\t2\n", "line 2: 3 fields, not 2"),
        ("sentence\tlabel\nfine\t2\n", "line 2: unknown label '2': sst2 has 0 and 1"),
        ("sentence\tlabel\n \t1\n", "line 2: empty sentence"),
        ("sentence\tlabl\nfine\t1\n", "line 1: no column 'label', .* did you mean 'labl'"),
        ("sentence1\tsentence2\tlabel\na\tb\t1\n", "line 1: no column 'sentence'"),
        ("gj04\t1\t\tfine\n", "line 1: no file of sst2: its first line has 4 fields, not 2"),
        ("sentence\tlabel\n", "has no rows"),
        ("", "has no rows"),
    ],
)
def test_what_is_no_part_of_the_task_is_named(tmp_path, text, said):
    write_sst2(tmp_path)
    write(tmp_path / "SST-2/train.tsv", text)
    with pytest.raises(DataError, match=said):
        read_glue(tmp_path, "sst2")


def test_what_is_missing_is_named(tmp_path):
    write_sst2(tmp_path)
    (tmp_path / "SST-2/dev.tsv").unlink()
    with pytest.raises(DataError, match=r"no dev\.tsv, and test\.tsv has no labels"):
        read_glue(tmp_path, "sst2")
    with pytest.raises(DataError, match="no folder RTE"):
        read_glue(tmp_path, "rte")
    (tmp_path / "SST-2/dev.tsv").write_bytes(b"sentence\tlabel\nb\xe4d\t0\n")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_glue(tmp_path, "sst2")


@pytest.mark.parametrize("name", ["sst2", "cola", "rte", "wnli"])
def test_the_official_sizes_are_found(shared, name):
    folder = shared / "data/text/glue"
    if not folder.is_dir():
        pytest.skip("no GLUE here")
    data = load_task("glue", name, source=folder)  # raises where the counts of a class differ
    assert data.task.metrics[0] == ("mcc" if name == "cola" else "accuracy")
    assert data.test.n == {"sst2": 872, "cola": 1043, "rte": 277, "wnli": 71}[name]


def test_sentences_end_as_documents_do():
    reader = SentenceEncoder(ByteTokenizer())
    rows, cut = reader.rows([b"ab", "ü\tcd".encode()], 10)
    assert [row.tolist() for row in rows] == [[97, 98, END], [0xC3, 0xBC, END, 99, 100, END]]
    assert (cut, rows[0].dtype) == (0, np.uint16)  # the end of a text has an id beyond a byte


def test_a_start_token_comes_first_where_there_is_one():
    tokenizer = ByteTokenizer()
    tokenizer.vocabulary = Vocabulary.of(
        "x", 300, mask_id=256, pad_id=257, end_id=258, start_id=259, tokenizer_sha256=""
    )
    rows, cut = SentenceEncoder(tokenizer).rows([b"abcdef\tgh"], 8)
    assert rows[0].tolist() == [259, *b"abc", 258, *b"gh", 258]
    assert cut == 1


@given(st.lists(st.integers(0, 40), min_size=1, max_size=2), st.integers(2, 60))
def test_what_is_too_long_is_cut_from_the_longer_sentence(sizes, most):
    found = shorten(sizes, most)
    assert all(0 <= new <= old for new, old in zip(found, sizes, strict=True))
    assert sum(found) == min(most, sum(sizes))
    if len(sizes) == 2 and found != sizes:
        kept, lost = sorted(zip(sizes, found, strict=True))
        assert kept[0] == kept[1] or abs(found[0] - found[1]) <= 1
        assert lost[1] >= kept[1] - 1


def texts(pairs: list[tuple[str, int]]) -> Examples:
    sentences, labels = zip(*pairs, strict=True)
    names = [str(i) for i in range(len(pairs))]
    return Examples([s.encode() for s in sentences], np.array(labels), names)


TASK = Task(suite="glue", name="t", max_length=9, domain="text")


def task_of(train: Examples, test: Examples) -> TaskData:
    return TaskData(TASK, train, test, "official")


def test_padding_is_neither_seen_nor_pooled():
    shape = DiTSettings(d_model=16, n_layer=2, n_head=2, adaln=False)
    backbone = shape.build(BYTES.padded_size, seed=1)
    for block in backbone.blocks:
        torch.nn.init.normal_(block.attention.out.weight)
    classifier = Classifier(backbone, 2, FitSettings(), None, seed=1)
    assert classifier.strands == "none"
    some = texts([("short", 0), ("somewhat longer than that", 1), ("a\tb", 0)])
    part = encode(some, SentenceEncoder(ByteTokenizer()), 20)
    alone, padded = (
        raw_scores(classifier, part, batch_size=size, extra=more) for size, more in ((1, 0), (3, 7))
    )
    assert np.abs(alone - padded).max() < 1e-5
    assert np.ptp(alone[:, 0]) > 1e-3
    assert part.cut == 1


@pytest.mark.parametrize("name", ["bow-lr", "char-lr"])
def test_a_regression_on_words_or_characters_learns_what_they_say(name):
    predict = fit_baseline(name, TASK, texts(reviews(80, 1)), texts(reviews(20, 2)), 1)
    test = texts(reviews(40, 3))
    found = predict(test)
    assert np.allclose(found.sum(1), 1)
    assert (found.argmax(1) == test.labels).mean() > 0.95


def test_what_two_sentences_share_is_seen():
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(400)]

    def pair(same: int) -> tuple[str, int]:
        first = rng.choice(words, 5)
        second = first[:3] if same else rng.choice(words, 3)
        return " ".join(first) + "\t" + " ".join(second), same

    train, valid, test = (texts([pair(i % 2) for i in range(n)]) for n in (200, 50, 100))
    predict = fit_baseline("bow-lr", TASK, train, valid, 1)
    assert (predict(test).argmax(1) == test.labels).mean() > 0.9


def test_a_train_part_of_one_class_is_predicted_without_a_fit():
    some = texts([("a", 1), ("b", 1)])
    predict = fit_baseline("bow-lr", TASK, some, some, 1)
    assert predict(some).tolist() == [[0.0, 1.0]] * 2


def test_fewer_train_examples_are_the_same_ones_for_all_and_leave_the_rest_alone():
    whole = texts([(f"s{i}", i % 2) for i in range(50)])
    data = task_of(whole, whole)
    some = subsample_train(data, 20)
    assert (some.train.n, some.test.n) == (20, 50)
    again = subsample_train(data, 20).train.names
    assert some.train.names == again == sorted(again, key=int)
    assert "20 of 50" in some.notes[-1]
    assert subsample_train(data, 50) is data
    given_ = subsample_train(data._replace(valid_index=np.array([3, 40])), 20)
    assert [given_.train.names[i] for i in given_.valid_index] == ["3", "40"]  # type: ignore[union-attr]
    assert given_.train.n == 22
    assert len(set(given_.train.names)) == 22


def test_the_audit_of_text_compares_sentences_and_turns_nothing_around():
    train = texts([("A  good film", 1), ("bad", 0), ("a good film", 0)])
    found = audit(task_of(train, texts([("a Good film", 1), ("new", 0)])))
    assert found["leaks"] == {"same": {"all": [1, 2], "negative": [0, 1], "positive": [1, 1]}}
    assert (found["repeats"], found["conflicts"]) == ({"train": 1, "test": 0}, 1)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("glue")
    write_wnli(write_sst2(folder / "data"))
    write_run(folder)
    given = {"recipe": "own", "domain": "text", "text": str(write_song(folder))}
    small = {"backbone": NETWORK, "seq_len": 32, "max_steps": 2}
    train(resolve_config(given | small), folder / "text", argv=["test"])
    return folder


def finetuned(home: Path, *more: object, capsys: Any) -> tuple[int, str, str]:
    load_cached.cache_clear()  # what a test before let pass is not known here
    task = [] if "--task" in more else ["--task", "sst2"]
    words = ["finetune", "glue", "--data", home / "data", *task, "--threads", 1, "--offline", *more]
    return command(capsys, *words)


@pytest.mark.slow
def test_a_text_run_is_fine_tuned_beside_scratch_and_baselines(home, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("genodiff.tasks.task._check_counts", lambda *_: None)
    words = ("--model", f"mine={home / 'text'}", "--model", "scratch", "--model", "baselines",
             "--seeds", 2, "--epochs", 8, "--lr", 3e-3, "--max-train", 50,
             "--out", tmp_path / "out", "--json")  # fmt: skip
    code, out, err = finetuned(home, *words, capsys=capsys)
    assert code == 0, err
    told = [json.loads(line) for line in out.splitlines()]
    rows = [row for row in told if not row.get("ensemble")]
    assert sorted(r["model"] for r in told if r.get("ensemble")) == ["mine", "scratch"]
    names = ("bow-lr", "char-lr", "length-tree", "majority", "mine", "scratch")
    assert [(r["model"], r["seed"]) for r in rows] == [*product(names, (1, 2))]
    by_name = {(r["model"], r["seed"]): r for r in rows}
    mine = by_name["mine", 1]
    assert mine["settings"]["rc"] == "none"
    assert mine["settings"]["patience"] == 3
    assert (mine["n_train"], mine["n_valid"], mine["n_test"]) == (45, 5, 20)
    assert mine["pretrained_on"] == "own"
    assert by_name["bow-lr", 1]["value"] >= 0.85
    assert mine["parameters"] == by_name["scratch", 1]["parameters"]
    page = (tmp_path / "out/RESULTS.md").read_text()
    assert "GLUE's dev part" in page
    assert "50 of 60 examples" in page
    assert "bases" not in page
    before = rows_of(tmp_path / "out")
    (tmp_path / "out/units" / mine["key"] / "result.json").unlink()
    (tmp_path / "out/results.jsonl").unlink()
    assert finetuned(home, *words, capsys=capsys)[0] == 0  # goes on from what the units have kept
    assert rows_of(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--model", "RUN"], 4, "is a DNA model; these tasks are of text; give a model of text"),
        (["--model", "kmer-lr"], 2, "known: baselines, bow-lr, char-lr"),
        (["--model", "scratch:caduceus-ps-tiny"], 2, "reads both strands of DNA"),
        (["--model", "TEXT", "--rc", "average"], 2, "give --rc none"),
        (["--model", "majority", "--reference", "hg38=x.fa"], 2, "--reference is for DNA tasks"),
        (["--model", "majority", "--split", "dedup"], 2, "which is of DNA"),
        (["--model", "majority", "--max-train", 3], 2, "--max-train 3 is below 10"),
        (["--model", "majority"], 3, "the published data 29,780 / 37,569"),
        (["--model", "majority", "--task", "sst"], 2, "did you mean 'sst2'"),
        (["--model", "majority", "--task", "cola"], 3, "no folder CoLA"),
    ],
)
def test_what_cannot_be_meant_of_text_is_one_line(
    home, tmp_path, monkeypatch, capsys, more, code, said
):
    if code == 2:
        monkeypatch.setattr("genodiff.tasks.task._check_counts", lambda *_: None)
    places = {"RUN": home / "run", "TEXT": home / "text"}
    words = (places.get(str(w), w) for w in more)
    found, out, err = finetuned(home, *words, "--out", tmp_path / "out", capsys=capsys)
    lines = [line for line in err.splitlines() if line.startswith("genodiff: error:")]
    assert (found, out, len(lines)) == (code, "", 1)
    assert said in lines[0]


def test_a_plan_counts_the_tokens_of_the_networks_own_tokenizer(home, monkeypatch, capsys):
    monkeypatch.setattr("genodiff.tasks.task._check_counts", lambda *_: None)
    models = ("--model", home / "text", "--model", "majority")
    code, out, _ = finetuned(home, *models, "--plan", "--json", capsys=capsys)
    assert code == 0
    network, baseline = json.loads(out)["rows"]
    assert network["length"] == baseline["length"] + 1  # bytes, and the end
    assert network["seconds"] > 0
