"""Small texts written for the tests, and a tiny configuration that reads them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from genodiff.data.text_recipe import make_text_recipe
from genodiff.data.text_store import TextStore, build_text_store
from genodiff.data.tokenizer import ByteTokenizer, Tokenizer

VERSES = (
    "The mill stood idle all the spring, the brook was dry as bone,",
    "and no one came along the lane but one old man, alone.",
    "He sat beside the silent wheel and spoke of years gone by,",
    "when flour lay like winter snow beneath a summer sky.",
    "Ünder the eaves a swallow built — she came back every year —",
    "and every year he told her news that no one else would hear.",
)
SONG = "\n".join(VERSES) + "\n"
NETWORK = {"kind": "dit", "d_model": 16, "n_layer": 1, "n_head": 2, "adaln": False}


def write_song(folder: Path, times: int = 12) -> Path:
    """A text file of some 4,000 bytes whose stanzas differ by a number."""
    path = folder / "song.txt"
    path.write_text("".join(f"{i}.\n{SONG}\n" for i in range(times)), encoding="utf-8")
    return path


def write_rows(folder: Path, n: int = 200) -> Path:
    """JSON lines: n documents that all differ."""
    path = folder / "rows.jsonl"
    path.write_text(
        "".join(json.dumps({"text": f"{VERSES[i % 6]} ({i})"}) + "\n" for i in range(n)),
        encoding="utf-8",
    )
    return path


def store_of(path: Path, tokenizer: Tokenizer | None = None, **changes: Any) -> TextStore:
    """The store of a file by its own recipe, with some of its settings changed."""
    recipe = make_text_recipe(path).model_copy(update=changes)
    return build_text_store(recipe, path, tokenizer or ByteTokenizer())


def train_bpe(texts: Iterable[str], vocab_size: int) -> bytes:
    """The tokenizer.json of a byte-level BPE, as docs/how-to/text.md makes one."""
    import tokenizers

    bpe = tokenizers.ByteLevelBPETokenizer()
    special = ["<|pad|>", "<|mask|>", "<|endoftext|>"]
    bpe.train_from_iterator(texts, vocab_size, special_tokens=special, show_progress=False)
    text: str = bpe.to_str(pretty=True)
    return text.encode()
