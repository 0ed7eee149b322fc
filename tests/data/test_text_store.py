"""Text: what is read is what stands in the store, each split in its place, and bad files in one
clear line.
"""

import gzip
import itertools
import logging
import pickle
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from genodiff.data import text_build
from genodiff.data.recipe import SPLITS
from genodiff.data.splits import Intervals
from genodiff.data.text_build import unpack
from genodiff.data.text_recipe import (
    TextRecipe,
    find_domain,
    list_text_recipe_names,
    load_text_recipe,
    make_text_recipe,
)
from genodiff.data.text_store import TextStore, build_text_store
from genodiff.data.tokenizer import ByteTokenizer
from genodiff.errors import DataError, UsageError
from genodiff.vocabulary import BYTES
from tests.texts import SONG, VERSES, store_of, write_rows, write_song


def text_of(store: TextStore, part: str | None = None) -> str:
    ids = np.asarray(store.flat if part is None else store.ids(part))
    return ByteTokenizer().decode(ids).decode()


def documents_of(store: TextStore) -> list[str]:
    ids, starts = np.asarray(store.flat), np.asarray(store.starts)
    return [ByteTokenizer().decode(ids[a:b]).decode() for a, b in itertools.pairwise(starts)]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("at_a_time", [7, 1 << 20])
def test_a_text_is_stored_byte_for_byte_and_ends_once(tmp_path, monkeypatch, at_a_time, zipped):
    monkeypatch.setattr(text_build, "_CHARACTERS_AT_A_TIME", at_a_time)
    path = write_song(tmp_path, 3 + at_a_time % 5)
    raw = path.read_bytes()
    if zipped:
        path = tmp_path / "song.txt.gz"
        path.write_bytes(gzip.compress(raw))
    store = store_of(path)
    assert text_of(store).encode() == raw
    assert np.flatnonzero(np.asarray(store.flat) == BYTES.end_id).tolist() == [len(raw)]
    assert store.manifest["parts"] == [
        {"name": "all", "tokens": len(raw) + 1, "documents": 1, "bytes": len(raw)}
    ]
    store.verify()


def test_one_text_is_cut_by_position_and_the_splits_cover_it_once(tmp_path):
    store = store_of(write_song(tmp_path))
    spans = sorted((int(i.start[0]), int(i.end[0])) for i in store.splits.intervals.values())
    assert spans[0][0] == 0
    assert spans[-1][1] == store.lengths[0]
    assert all(a[1] == b[0] for a, b in itertools.pairwise(spans))
    assert "split by position" in store.splits.notes[0]
    sizes = {s: i.n_bases for s, i in store.splits.intervals.items()}
    assert sizes["valid"] == sizes["test"] == int(0.05 * store.lengths[0])


def test_rows_are_dealt_by_the_hash_of_their_text_so_that_copies_stay_together(tmp_path):
    path = write_rows(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "twice.jsonl").write_text("".join(lines + lines[::-1]))
    one, two = store_of(path), store_of(tmp_path / "twice.jsonl")
    assert set(two.names) == set(SPLITS)
    assert two.duplicates() == {"valid": 0, "test": 0}
    sizes, twice = ([i.n_bases for i in x.splits.intervals.values()] for x in (one, two))
    assert [2 * n for n in sizes] == twice


def test_few_rows_are_cut_by_position(tmp_path):
    store = store_of(write_rows(tmp_path, 20))
    assert store.names == ("all",)
    assert len(store.splits.intervals["test"])


def test_files_go_to_the_splits_in_their_names(tmp_path, caplog, monkeypatch):
    # A command may have run before, and quietly.
    monkeypatch.setattr(logging.getLogger("genodiff"), "propagate", True)
    caplog.set_level(logging.WARNING, logger="genodiff")
    rows = "\n".join(f" {v} {i}" for i in range(9) for v in VERSES)
    (tmp_path / "ptb.train.txt").write_text(rows)
    (tmp_path / "ptb.valid.txt").write_text(f" {VERSES[0]} 3\nnew line here\n")
    (tmp_path / "ptb.test.txt").write_text("only in the test\n")
    store = build_text_store(load_text_recipe("ptb"), tmp_path, ByteTokenizer())
    assert store.names == ("train", "valid", "test")
    assert store.duplicates() == {"valid": 1, "test": 0}
    assert "1 document of valid also in train" in caplog.text
    assert BYTES.end_id not in np.asarray(store.flat), "this recipe has no ends"
    assert text_of(store, "test") == "only in the test"


def test_a_recipe_without_a_file_of_train_trains_on_valid_and_says_so(tmp_path):
    rows = "\n".join(f" = Title {i} = \n {v}" for i in range(20) for v in VERSES)
    (tmp_path / "wiki.valid.tokens").write_text(rows)
    (tmp_path / "wiki.test.tokens").write_text(" = Other = \n\n text of the test\n")
    store = build_text_store(load_text_recipe("wikitext2"), tmp_path, ByteTokenizer())
    assert "no file of train: its valid trains in that place" in store.splits.notes[0]
    train, valid = store.documents("train"), store.documents("valid")
    assert len(train) + len(valid) == 120
    assert train[-1] + 1 == valid[0]


def test_a_cut_falls_between_documents(tmp_path):
    cut = {"valid": 500, "test": 0.1}
    store = store_of(write_rows(tmp_path, 100), split_by_hash=False, cut=cut)
    starts = set(np.asarray(store.starts).tolist())
    for split in SPLITS:
        assert int(store.splits.intervals[split].start[0]) in starts


@pytest.mark.parametrize("how", ["jsonl", "parquet", "csv", "tsv"])
def test_the_same_documents_are_read_from_every_format(tmp_path, how):
    texts = [f'{v} "{i}"' for i in range(8) for v in VERSES]
    path, frame = tmp_path / f"in.{how}", pl.DataFrame({"n": range(len(texts)), "text": texts})
    if how == "jsonl":
        frame.write_ndjson(path)
    elif how == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if how == "tsv" else ",")
    assert documents_of(store_of(path, split_by_hash=False)) == texts


def test_lines_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes("one\u2028still\x85one\r\ntwo\n\n   \nthree".encode())
    found = documents_of(store_of(path, documents="line"))
    assert found == ["one\u2028still\x85one", "two", "three"]


def test_a_byte_order_mark_is_no_text_and_a_control_token_is_only_text(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(b"\xef\xbb\xbf[MASK] <|endoftext|> [PAD]")
    assert text_of(store_of(path)) == "[MASK] <|endoftext|> [PAD]"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("in.txt", b"", "empty or holds only white space"),
        ("in.txt", b" \n\t\n", "empty or holds only white space"),
        ("in.txt", b"good\nbad \xc0\xaf", ", line 2: byte 0xC0 at offset 9 is not UTF-8"),
        ("in.txt", b"a\nb\0c", "in.txt, line 2: NUL byte"),
        ("in.txt", "text".encode("utf-16"), "UTF-16"),
        ("in.jsonl", b'{"text": "a"}\n{"text": 3}\n', "in.jsonl, line 2: 'text' is not a string"),
        ("in.jsonl", b'{"text": "a"}\n\n{"text": \n', "in.jsonl, line 3: not JSON"),
        ("in.txt", b"a\n\xe2\x80", "in.txt, line 2: ends in the middle"),
        ("in.jsonl", b"[1]", "in.jsonl, line 1: no object"),
        ("in.jsonl", b'{"text":"\\ud800"}', "surrogate"),
        ("in.csv", b"a,b\n1,2\n", "in.csv, line 1: has no column 'text'"),
        ("in.csv", b'n,text\n1,"open\n', "no sound table"),
        ("in.parquet", b"PAR1 is not enough", "no whole parquet file"),
    ],
)
def test_a_bad_file_is_named_and_leaves_no_store(tmp_path, own_cache, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    before = set((own_cache / "stores").glob("*/manifest.json"))
    with pytest.raises(DataError) as caught:
        store_of(path)
    assert says in str(caught.value)
    assert name in str(caught.value)
    assert set((own_cache / "stores").glob("*/manifest.json")) == before


def test_a_folder_without_text_and_a_missing_file_are_errors(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"x")
    with pytest.raises(DataError, match="holds no file of text"):
        store_of(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        store_of(tmp_path / "none.txt")


def test_a_store_is_found_again_and_its_identity_notices_what_has_changed(tmp_path):
    path = write_song(tmp_path)
    store = store_of(path)
    assert store_of(path).path == store.path
    store.check_same(store_of(path).identity())
    path.write_text(SONG * 9)
    with pytest.raises(DataError, match="the file has changed since the run started"):
        store_of(path).check_same(store.identity())
    with pytest.raises(DataError, match="the recipe has changed"):
        store.check_same(store.identity() | {"fingerprint": "x"})
    with pytest.raises(DataError, match="the tokenizer has changed"):
        store.check_same(store.identity() | {"fingerprint": "x", "tokenizer_sha256": "0" * 64})


def test_an_open_store_travels_to_a_worker_without_its_text(tmp_path):
    store = store_of(write_song(tmp_path))
    assert store.flat.sum()
    assert len(store.hashes)
    sent = pickle.dumps(store)
    assert len(sent) < 20_000
    assert np.array_equal(pickle.loads(sent).flat, store.flat)


def test_a_damaged_store_is_built_again(tmp_path):
    path = write_song(tmp_path)
    store = store_of(path)
    (store.path / "tokens.ids").write_bytes(b"short")
    assert text_of(store_of(path)).encode() == path.read_bytes()


def test_bytes_of_windows_are_counted_exactly(tmp_path):
    store = store_of(write_rows(tmp_path))
    starts = np.asarray(store.starts)
    found = store.bytes_of(starts[:-1], np.diff(starts))
    each = np.load(store.path / "bytes.npy")
    assert np.array_equal(found, each)
    store.token_bytes = None  # of a tokenizer that loses text: shared out over a document's tokens
    assert np.allclose(store.bytes_of(starts[:-1], np.diff(starts)), each)
    half = np.diff(starts) // 2
    assert np.allclose(store.bytes_of(starts[:-1], half), each * half / np.diff(starts))


@pytest.mark.parametrize("name", list_text_recipe_names())
def test_every_text_recipe_says_where_it_comes_from_and_how_it_is_cut(name):
    recipe = load_text_recipe(name)
    assert recipe.name == name
    assert find_domain(name) == "text"
    assert recipe.description
    assert all(s.url.startswith("https://") and s.licence for s in recipe.sources)
    assert recipe.sources or "--text" in recipe.description
    for source in recipe.sources:
        assert source.members or recipe.bucket(Path(source.filename)) is not None, source.filename
    said = any(word in recipe.description for word in ("packed", "padded"))
    assert said or recipe.documents == "file"


def test_the_promised_text_recipes_are_there():
    promised = {"text8", "enwik8", "lm1b-packed", "lm1b-padded", "openwebtext", "wikitext2",
                "wikitext103", "ptb", "lambada"}  # fmt: skip
    assert promised | {"ag_news", "c4", "pubmed", "arxiv", "tinyshakespeare"} <= set(
        list_text_recipe_names()
    )
    assert len(load_text_recipe("c4").sources) == 1032
    assert load_text_recipe("c4").sources[7].filename == "c4-train.00007-of-01024.json.gz"


def test_a_recipe_of_the_other_domain_is_refused():
    with pytest.raises(UsageError, match="is a recipe of DNA"):
        load_text_recipe("hg38")
    with pytest.raises(UsageError, match="unknown detokenizer 'ptp'; did you mean 'ptb'"):
        TextRecipe.parse({"name": "x", "detokenizer": "ptp"})


def test_an_archive_gives_up_the_files_that_are_asked_for_and_no_others(tmp_path):
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("deep/../text8", "the text")
        made.writestr("README", "no text")
    assert [p.read_text() for p in unpack(archive, "text8")] == ["the text"]
    assert unpack(archive, "text8")[0].parent.name == "a.zip.files"
    (tmp_path / "b.zip").write_bytes(b"nothing")
    with pytest.raises(DataError, match="no sound archive"):
        unpack(tmp_path / "b.zip", "*")
    archive.rename(tmp_path / "c.zip")
    with pytest.raises(DataError, match="holds no file named x"):
        unpack(tmp_path / "c.zip", "x")


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path):
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("text8", bytes(1 << 25))
    with pytest.raises(DataError, match="more than 200 times its size"):
        unpack(archive, "text8")
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".lock"] == ["bomb.zip"]


def test_own_recipes_know_rows_from_texts(tmp_path):
    assert not make_text_recipe("x/my text.txt.gz").split_by_hash
    assert make_text_recipe("x/rows.jsonl").split_by_hash
    assert make_text_recipe(tmp_path).split_by_hash
    assert make_text_recipe("x/my text.txt.gz").name == "my_text"
    assert isinstance(store_of(write_song(tmp_path)).splits.intervals["train"], Intervals)


def test_files_of_train_and_of_no_split_both_train(tmp_path):
    (tmp_path / "a.txt").write_text("only in train\n")
    (tmp_path / "b.txt").write_text("of no split\n" * 40)
    recipe = TextRecipe(name="mixed", files={"train": ["a.txt"], "all": ["b.txt"]})
    store = build_text_store(recipe, tmp_path, ByteTokenizer())
    assert {store.names[i] for i in store.splits.intervals["train"].contig} == {"train", "all"}


def test_splits_that_no_document_fell_to_are_told_as_such(tmp_path, monkeypatch):
    class Fixed:
        update = staticmethod(len)
        digest = staticmethod(lambda: bytes([2, *7 * [0]]))

    monkeypatch.setattr(text_build.hashlib, "blake2b", lambda **_: Fixed())
    store = store_of(write_rows(tmp_path, 61))  # of no other test: its store is built here
    (note,) = store.splits.notes
    assert note.startswith("no document fell to valid and test: ")
    assert note.endswith(" of the end of train is held out")
