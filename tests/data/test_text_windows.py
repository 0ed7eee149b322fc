"""Windows of text, packed and padded, and the batches that are made of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from genodiff.data.loader import BatchStream, EvalBatches, TrainBatches
from genodiff.data.text_recipe import TextRecipe, make_text_recipe
from genodiff.data.text_windows import PackedWindows, PaddedWindows, open_text_windows
from genodiff.data.tokenizer import open_tokenizer
from genodiff.errors import DataError, UsageError
from genodiff.vocabulary import BYTES
from tests.texts import store_of, write_rows, write_song


def packed(path: Path, split: str = "train", seq_len: int = 32, **more: bool) -> PackedWindows:
    return PackedWindows(store_of(path), make_text_recipe(path), split, seq_len, **more)


def padded(path: Path, split: str = "train", seq_len: int = 48) -> PaddedWindows:
    return PaddedWindows(store_of(path), make_text_recipe(path), split, seq_len)


def test_packed_evaluation_windows_are_the_text_in_order(tmp_path):
    windows = packed(write_rows(tmp_path))
    got = torch.cat([b.x0[b.maskable] for b in EvalBatches(windows, 7, seed=1)])
    i = windows.store.splits.intervals["train"]
    want = np.asarray(windows.store.flat[: int(i.end[0])])[: len(got)]
    assert np.array_equal(got.numpy(), want)
    assert len(want) + windows.dropped["tail_bases"] == int(i.end[0])
    assert windows.bytes().sum() == (want < 256).sum()


def test_padded_windows_hold_one_document_each_and_its_end(tmp_path):
    windows = padded(write_rows(tmp_path))
    store = windows.store
    documents = store.documents("train")
    assert len(windows) == windows.per_epoch == len(documents)
    rows = [b for b in EvalBatches(windows, 5, seed=1)]
    x0, maskable = torch.cat([b.x0 for b in rows]), torch.cat([b.maskable for b in rows])
    for row, number in enumerate(documents.tolist()):
        ids = np.asarray(store.flat[store.starts[number] : store.starts[number + 1]])[:48]
        assert x0[row, : len(ids)].tolist() == ids.tolist()
        assert (x0[row, len(ids) :] == BYTES.pad_id).all()
        assert maskable[row].tolist() == [True] * len(ids) + [False] * (48 - len(ids))
    lengths = torch.cat([b.lengths for b in rows])
    assert torch.equal(lengths, maskable.sum(-1))
    whole = sum(int(store.starts[d + 1] - store.starts[d]) for d in documents.tolist())
    assert windows.dropped["tokens_beyond_window"] == whole - int(maskable.sum())


def test_a_start_token_is_given_and_never_scored(tmp_path):
    pytest.importorskip("tokenizers", reason="the extra 'text' is not installed")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "mill"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    path = write_rows(tmp_path)
    store = store_of(path, open_tokenizer(str(tmp_path)))
    windows = PaddedWindows(store, make_text_recipe(path), "train", 16)
    batch = next(iter(EvalBatches(windows, 8, seed=1)))
    assert (batch.x0[:, 0] == 2).all()
    assert not batch.maskable[:, 0].any()
    ends = batch.lengths - 1
    assert torch.equal(batch.maskable.sum(-1), ends)
    short = ends < 15
    assert (batch.x0[torch.arange(8), ends][short] == 3).all()


@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
@pytest.mark.parametrize("make", [packed, padded])
def test_batches_are_functions_of_seed_and_number_whoever_makes_them(tmp_path, make):
    windows = make(write_rows(tmp_path))  # type: ignore[operator]
    batches = TrainBatches(windows, 5, 4)
    loaded = DataLoader(BatchStream(batches, 3, 9), batch_size=None, num_workers=2)
    for k, batch in enumerate(loaded, 3):
        alone = TrainBatches(windows, 5, 4).batch(k)
        for mine, theirs in zip(batch, alone, strict=True):
            assert torch.equal(mine, theirs) if isinstance(mine, torch.Tensor) else mine == theirs


def test_an_epoch_of_packed_windows_shows_no_token_twice(tmp_path):
    windows = packed(write_song(tmp_path), seq_len=16)
    batches = TrainBatches(windows, 1, 1)
    for epoch in range(3):
        index = np.arange(epoch * windows.per_epoch, (epoch + 1) * windows.per_epoch)
        starts, lengths = batches.place(index)
        seen = np.concatenate([np.arange(a, a + n) for a, n in zip(starts, lengths, strict=True)])
        assert len(np.unique(seen)) == len(seen)
        assert seen.max() < windows.store.splits.intervals["train"].end[0]


def test_a_part_of_the_windows_reads_as_the_whole_does(tmp_path):
    for windows in (packed(write_rows(tmp_path)), padded(write_rows(tmp_path))):
        some = windows.spread(5)
        assert type(some) is type(windows)
        rows = next(iter(EvalBatches(some, 5, seed=1)))
        whole = torch.cat([b.x0 for b in EvalBatches(windows, 64, seed=1)])
        assert torch.equal(rows.x0, whole[torch.arange(5) * len(windows) // 5])
        assert rows.maskable.sum() > 60
        assert some.bytes().sum() < windows.bytes().sum()


def test_segments_number_the_documents_of_a_window(tmp_path):
    windows = packed(write_rows(tmp_path), seq_len=128, by_document=True)
    batch = next(iter(EvalBatches(windows, 4, seed=1)))
    for x, segments in zip(batch.x0.tolist(), batch.segments.tolist(), strict=True):
        number = 0
        for token, segment in zip(x, segments, strict=True):
            assert segment == number
            number += token == BYTES.end_id
    told = []
    network = torch.nn.Linear(1, 1)
    network.forward = lambda xt, segments: told.append(segments)  # type: ignore[method-assign]
    batch.denoiser(network)(batch.x0)
    assert torch.equal(told[0], batch.segments)
    assert next(iter(EvalBatches(packed(write_rows(tmp_path)), 4, seed=1))).segments is None


def test_the_recipe_says_how_windows_are_packed_unless_one_is_asked_for(tmp_path):
    path = write_rows(tmp_path)
    recipe = make_text_recipe(path)
    padded = recipe.model_copy(update={"packing": "padded"})

    def opened(asked: TextRecipe, **how: Any) -> type:
        return type(open_text_windows(store_of(path), asked, "train", 32, **how))

    assert opened(recipe) is PackedWindows
    assert opened(recipe, packing="padded") is opened(padded) is PaddedWindows
    with pytest.raises(UsageError, match="--document-attention is for packed windows"):
        opened(padded, by_document=True)
    with pytest.raises(UsageError, match="marks no ends of documents"):
        opened(recipe.model_copy(update={"ends": False}), by_document=True)


def test_too_short_a_text_names_the_file_and_the_remedy(tmp_path):
    path = write_song(tmp_path, 1)
    said = r"song\.txt: the text is too short: .* less than one window of seq_len 4096; .*--seq-len"
    with pytest.raises(DataError, match=said):
        packed(path, seq_len=4096)
    with pytest.raises(UsageError, match="no split 'dev'"):
        padded(path, "dev")
    with pytest.raises(UsageError, match="cannot hold a document"):
        padded(path, seq_len=1)
