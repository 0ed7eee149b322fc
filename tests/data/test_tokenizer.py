"""Tokenizers: what goes in comes out, what is text stays text, and what is missing is said in one
line.
"""

import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genodiff.alphabet import DNA
from genodiff.data.text_recipe import DETOKENIZERS
from genodiff.data.tokenizer import (
    ByteTokenizer,
    FileTokenizer,
    LetterTokenizer,
    name_tokenizer,
    open_tokenizer,
    read_vocabulary,
    rebuild_tokenizer,
)
from genodiff.errors import CheckpointError, DataError, MachineError, UsageError
from genodiff.vocabulary import BYTES, TEXT8, Vocabulary
from tests.texts import SONG, VERSES, train_bpe

tokenizers = pytest.importorskip("tokenizers", reason="the extra 'text' is not installed")
ODD = "Grüße, 世界! 👩‍👩‍👧 é é [MASK] <|endoftext|> [PAD] \x1b[1m\u2028\r\n  tabs\t."


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    """The folder of a byte-level BPE of 400 tokens."""
    folder = tmp_path_factory.mktemp("bpe")
    (folder / "tokenizer.json").write_bytes(train_bpe([SONG] * 3, 400))
    return folder


@pytest.fixture
def bert(tmp_path):
    """A vocab.txt of a few words."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "mill", "stood", "##s", "s", "m",
             "##ill", ",", "[", "]", "mask"]  # fmt: skip
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    return tmp_path


@pytest.mark.slow
@given(st.text())
def test_bytes_give_back_every_text(text):
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode([text])[0]
    assert tokenizer.decode(ids) == text.encode()
    assert len(ids) == len(text.encode())


@pytest.mark.parametrize("text", [ODD, SONG, "", " ", "a" * 500])
def test_byte_level_bpe_gives_back_every_text_and_its_bytes_add_up(bpe, text):
    tokenizer = open_tokenizer(str(bpe))
    ids = tokenizer.encode([text])[0]
    size = tokenizer.token_bytes()
    assert tokenizer.lossless
    assert tokenizer.decode(ids) == text.encode()
    assert int(size[ids].sum()) == len(text.encode())
    v = tokenizer.vocabulary
    assert not {v.mask_id, v.pad_id, v.end_id} & set(ids.tolist())


def test_a_file_and_its_folder_are_one_tokenizer(bpe):
    one, other = (open_tokenizer(str(path)) for path in (bpe / "tokenizer.json", bpe))
    assert one.vocabulary == other.vocabulary


def test_wordpiece_reads_words_and_a_mask_in_the_text_is_no_mask(bert):
    tokenizer = open_tokenizer(str(bert))
    v = tokenizer.vocabulary
    assert (v.mask_id, v.pad_id, v.end_id, v.start_id, v.unk_id) == (4, 0, 3, 2, 1)
    assert tokenizer.encode(["The mills stood, [MASK]"])[0].tolist() == [5, 6, 8, 7, 12, 13, 15, 14]
    assert not tokenizer.lossless
    assert tokenizer.token_bytes() is None
    assert tokenizer.decode(np.array([2, 5, 6, 8, 3])) == b"the mills"
    assert v.targets == tuple(i for i in range(16) if i not in (0, 2, 4))


def test_letters_of_text8_and_nothing_else():
    tokenizer = LetterTokenizer()
    text = "the quick brown fox jumps over the lazy dog"
    ids = tokenizer.encode([text])[0]
    assert set(ids.tolist()) <= set(range(27))
    assert tokenizer.decode(np.append(ids, TEXT8.end_id)) == text.encode()
    with pytest.raises(DataError, match="'é' is not a letter of text8"):
        tokenizer.encode(["caféz"])


def test_the_published_vocabularies_are_known_without_their_files_and_agree_with_them(shared):
    for name, folder in (("gpt2", "gpt2"), ("bert-base-uncased", "bert-base-uncased")):
        there = open_tokenizer(str(shared / "data/tokenizers" / folder))
        assert there.vocabulary == read_vocabulary(name)
    gpt2 = open_tokenizer(str(shared / "data/tokenizers/gpt2"))
    v = gpt2.vocabulary
    assert (v.padded_size, v.mask_id, v.end_id) == (50258, 50257, 50256)
    assert gpt2.encode(["Hello world"])[0].tolist() == [15496, 995]
    assert gpt2.decode(gpt2.encode([ODD])[0]) == ODD.encode()
    bert = open_tokenizer(str(shared / "data/tokenizers/bert-base-uncased"))
    assert bert.encode(["Hello, Wörld!"])[0].tolist() == [7592, 1010, 2088, 999]


def test_a_tokenizer_json_with_added_tokens_reads_text_as_text(shared):
    tokenizer = open_tokenizer(str(shared / "data/tokenizers/gena_lm_human_bpe32k"))
    assert tokenizer.vocabulary.mask_id not in tokenizer.encode(["ACGT[MASK]ACGT"])[0]


def test_a_run_takes_back_its_own_tokenizer_and_no_other(bpe, tmp_path):
    tokenizer = open_tokenizer(str(bpe))
    again = rebuild_tokenizer(tokenizer.files, tokenizer.vocabulary, tmp_path)
    assert again.vocabulary == tokenizer.vocabulary
    assert name_tokenizer(tokenizer.files) == tokenizer.vocabulary.name
    changed = {"tokenizer.json": tokenizer.files["tokenizer.json"] + b"\n"}
    with pytest.raises(UsageError, match="is not the tokenizer that the model was trained with"):
        rebuild_tokenizer(changed, tokenizer.vocabulary, tmp_path)
    with pytest.raises(UsageError, match="holds no tokenizer"):
        rebuild_tokenizer({}, tokenizer.vocabulary, tmp_path)
    assert rebuild_tokenizer({}, BYTES, tmp_path).vocabulary == BYTES


def test_what_is_no_tokenizer_is_said(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'gpt2'"):
        open_tokenizer("gpt-2")
    with pytest.raises(UsageError, match="holds no tokenizer"):
        open_tokenizer(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(UsageError, match="is no tokenizer"):
        open_tokenizer(str(tmp_path))
    said = r"the tokenizer gpt2 is not on this machine.*give the folder with --tokenizer"
    with pytest.raises(DataError, match=said):
        open_tokenizer("gpt2", offline=True)


def test_a_missing_package_is_one_line_with_the_remedy(bpe, monkeypatch):
    files = {"tokenizer.json": (bpe / "tokenizer.json").read_bytes()}
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    said = r"needs the package 'tokenizers'.*pip install 'genodiff\[text\]'"
    with pytest.raises(MachineError, match=said):
        FileTokenizer(files, "mine", "here")


def test_a_vocabulary_goes_through_json_and_its_fingerprint_covers_the_files(bpe):
    mine = open_tokenizer(str(bpe)).vocabulary
    for vocabulary in (BYTES, TEXT8, mine, read_vocabulary("gpt2")):
        again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
        assert again == vocabulary
        assert again.fingerprint() == vocabulary.fingerprint()
        assert len(json.dumps(vocabulary.to_json())) < 1000
    values = mine.to_json()
    other = Vocabulary.from_json(values | {"tokenizer_sha256": "0" * 64})
    assert other.fingerprint() != mine.fingerprint()
    ids = {"mask_id": 400}, {"mask_id": values["end_id"]}
    for wrong in (*ids, {"domain": "dna"}, {"n_tokens": 10**12}):
        with pytest.raises(CheckpointError, match="does not describe a vocabulary"):
            Vocabulary.from_json(values | wrong)
    with pytest.raises(TypeError, match="encode with that"):
        mine.encode("x")
    with pytest.raises(ValueError):
        mine.rc(np.zeros(3, np.int64))
    assert DNA.domain == "dna"
    assert mine.domain == "text"
    assert mine.size == 400


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "ptb",
            " mr. <unk> said he ca n't sell N shares at $ N each ",
            "mr. <unk> said he can't sell N shares at $N each",
        ),
        (
            "wikitext",
            " It was 3 @.@ 5 m , or 1 @,@ 000 ( one thousand ) .\n",
            " It was 3.5 m, or 1,000 (one thousand).\n",
        ),
        ("wikitext", ' He said " no " ; it \'s done .', ' He said "no"; it\'s done.'),
        ("lm1b", "It 's a $ 5 bill , he said .", "It's a $5 bill, he said."),
        ("lm1b", "See http : / / x.com or a / b ?", "See http://x.com or a/b?"),
        ("lambada", " “ no , ” she said . ", '" no, " she said.'),
    ],
)
def test_detokenisers_bring_running_text_back(name, before, after):
    assert DETOKENIZERS[name](before) == after


def test_detokenisers_leave_running_text_alone():
    for name, detokenize in DETOKENIZERS.items():
        for verse in VERSES:
            assert detokenize(verse) == verse, name
