"""Windows of text: packed ones run through the documents of a split, padded ones hold the beginning
of one document.

Packed windows are tiled as those of DNA are, phases included. A padded window is the start token
where the tokenizer has one, then the document's first tokens and its end token, as far as they go;
what is longer is cut off and counted. Every token of the text and every end token is scored; start
tokens and padding never are.
"""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.data.text_recipe import TextRecipe
from genodiff.data.text_store import TextStore
from genodiff.data.windows import IntervalTiling, Ints, TiledWindows, Tokens, Windows
from genodiff.errors import DataError, UsageError

log = logging.getLogger("genodiff")

Ids = NDArray[Any]


class PackedWindows(TiledWindows):
    """All windows of one split, each of `seq_len` consecutive tokens of its documents."""

    store: TextStore
    units = "tokens"

    def __init__(
        self,
        store: TextStore,
        recipe: TextRecipe,
        split: str,
        seq_len: int,
        *,
        by_document: bool = False,
    ) -> None:
        """`by_document`: tokens see their own document only. Raises `UsageError`, `DataError`."""
        if by_document and not recipe.ends:
            what = f"the recipe {recipe.name} marks no ends of documents"
            fix = "leave --document-attention out, or set ends: true in the recipe"
            raise UsageError(what, fix=fix)
        self.by_document = by_document
        self.pad_id = store.vocabulary.pad_id
        self._is_target = make_target_table(store)
        super().__init__(store, split, seq_len)
        log.info("%s: %s", split, self.summary())

    def tokens(self, data: Ids, length: Ints) -> Tokens:
        """See `Windows.tokens`; nothing is soft-masked."""
        inside = np.arange(data.shape[1]) < length[:, None]
        segments = None
        if self.by_document:
            ended = np.cumsum(data == self.store.vocabulary.end_id, axis=1)
            segments = np.concatenate((np.zeros_like(ended[:, :1]), ended[:, :-1]), axis=1)
        maskable, soft = self._is_target[data] & inside, np.zeros(data.shape, np.bool_)
        return Tokens(data.astype(np.int64), maskable, soft, segments)

    def summary(self) -> str:
        left = self.dropped["tail_bases"]
        said = f"{len(self):,} packed windows of {self.seq_len} tokens"
        return said + (f"; left out: {left:,} tokens at the end" if left else "")

    def _refuse_short(self) -> None:
        size = int((self.intervals.end - self.intervals.start).max(initial=0))
        needed = self.seq_len if self.split == "train" else 1
        refuse_short(self.store, self.split, size, needed, self.seq_len)


class PaddedWindows(Windows):
    """One window for each document of a split."""

    store: TextStore

    def __init__(self, store: TextStore, recipe: TextRecipe, split: str, seq_len: int) -> None:
        super().__init__(store, split, seq_len)
        if seq_len < 2:
            fix = "give 2 or more"
            raise UsageError(f"a window of {seq_len} tokens cannot hold a document", fix=fix)
        self.pad_id = store.vocabulary.pad_id
        self._is_target = make_target_table(store)
        documents = store.documents(split)
        starts = np.asarray(store.starts)
        self.lead = int(store.vocabulary.start_id is not None)
        begin, size = starts[documents], starts[documents + 1] - starts[documents]
        begin, size = begin[size > 0], size[size > 0]
        length = np.minimum(size, seq_len - self.lead)
        n = len(begin)
        self._tiling = IntervalTiling(np.arange(n + 1), begin, length, np.array([[0, n]]))
        self.dropped = {"tokens_beyond_window": int((size - length).sum())}
        self.intervals = store.splits.intervals[split]
        refuse_short(store, split, int(size.sum()), 1, seq_len)
        log.info("%s: %s", split, self.summary())

    def gather(self, flat_start: Ints, length: Ints, pad: int) -> Ids:
        """(B, seq_len) ids, right-padded with `pad`."""
        out = np.full((len(flat_start), self.seq_len), pad, np.int64)
        if self.store.vocabulary.start_id is not None:
            out[:, 0] = self.store.vocabulary.start_id
        for row, (start, n) in enumerate(zip(flat_start.tolist(), length.tolist(), strict=True)):
            out[row, self.lead : self.lead + n] = self.store.flat[start : start + n]
        return out

    def tokens(self, data: Ids, length: Ints) -> Tokens:
        """See `Windows.tokens`."""
        place = np.arange(data.shape[1])
        inside = (place >= self.lead) & (place < length[:, None] + self.lead)
        return Tokens(data, self._is_target[data] & inside, np.zeros(data.shape, np.bool_), None)

    def widths(self, length: Ints) -> Ints:
        """What of a row is no padding."""
        return length + self.lead

    def summary(self) -> str:
        cut = self.dropped["tokens_beyond_window"]
        said = f"{len(self):,} padded windows of at most {self.seq_len} tokens, one for each"
        return f"{said} document" + (f"; left out: {cut:,} tokens beyond the window" if cut else "")


def open_text_windows(
    store: TextStore,
    recipe: TextRecipe,
    split: str,
    seq_len: int,
    *,
    packing: str = "auto",
    by_document: bool = False,
) -> PackedWindows | PaddedWindows:
    """The windows of a split; `packing` "auto": the recipe's. Raises `UsageError`, `DataError`."""
    if (recipe.packing if packing == "auto" else packing) == "padded":
        if by_document:
            fix = "leave it out: a padded window holds one document"
            raise UsageError("--document-attention is for packed windows", fix=fix)
        return PaddedWindows(store, recipe, split, seq_len)
    return PackedWindows(store, recipe, split, seq_len, by_document=by_document)


def make_target_table(store: TextStore) -> NDArray[np.bool_]:
    """Whether an id may be predicted."""
    found = np.zeros(store.vocabulary.padded_size, np.bool_)
    found[list(store.vocabulary.targets)] = True
    return found


def refuse_short(store: TextStore, split: str, tokens: int, needed: int, seq_len: int) -> None:
    """Raise `DataError` where the split has less than one window."""
    if not tokens:
        fix = "give more text, or files for each split"
        raise DataError(f"the split {split} is empty", file=store.source.path, fix=fix)
    if tokens < needed:
        what = f"the text is too short: the split {split} has {tokens:,} tokens, less than one "
        what += f"window of seq_len {seq_len}"
        fix = f"give more text, or --seq-len {tokens} or less"
        raise DataError(what, file=store.source.path, fix=fix)
