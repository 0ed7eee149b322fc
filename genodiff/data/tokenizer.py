"""Tokenizers: text to ids and back.

UTF-8 bytes and the letters of text8 are built in. Others are made from files: tokenizer.json, or
vocab.json with merges.txt (byte-level BPE as GPT-2's), or vocab.txt (WordPiece as BERT's), by the
package `tokenizers`. Where one of them lacks a token that diffusion needs (GPT-2 has no mask), a
new id stands after the last. Strings such as "[MASK]" or "<|endoftext|>" in a text are ordinary
characters, never special tokens.

A tokenizer is named by a word ("bytes", "text8", "gpt2", "bert-base-uncased") or by the folder or
file that holds it. The files of the two published names are fetched once and known by their sha256.
A run carries the files that it was trained with.
"""

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.data.fetch import fetch_file
from genodiff.data.recipe import Source
from genodiff.errors import DataError, MachineError, UsageError, did_you_mean
from genodiff.io.file_kinds import sha256_json
from genodiff.vocabulary import BYTES, TEXT8, Vocabulary

Ids = NDArray[Any]

_LETTERS = b"abcdefghijklmnopqrstuvwxyz "
_ID_OF_LETTER = np.full(256, 255, np.uint8)
_ID_OF_LETTER[list(_LETTERS)] = range(len(_LETTERS))


class Tokenizer(ABC):
    """Text to ids and back.

    `lossless` is true if decoding restores every text. `files` maps names to contents, for
    the run folder.
    """

    vocabulary: Vocabulary
    lossless = True
    files: dict[str, bytes] = {}  # noqa: RUF012

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of each text, without start and end. Raises `DataError` for unknown letters."""

    @abstractmethod
    def decode(self, ids: Ids) -> bytes:
        """The text of ids (tokens,) as UTF-8 bytes; special tokens have no text.

        A character that the ids cut is cut in the result.
        """

    @abstractmethod
    def token_bytes(self) -> NDArray[np.uint16] | None:
        """Bytes of text of each id, (padded vocabulary size,); None unless it is lossless."""


class ByteTokenizer(Tokenizer):
    """UTF-8 bytes as ids 0 to 255."""

    vocabulary = BYTES

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        return [np.frombuffer(text.encode(), np.uint8) for text in texts]

    def decode(self, ids: Ids) -> bytes:
        ids = np.asarray(ids)
        return ids[ids < 256].astype(np.uint8).tobytes()

    def token_bytes(self) -> NDArray[np.uint16]:
        return (np.arange(BYTES.padded_size) < 256).astype(np.uint16)


class LetterTokenizer(Tokenizer):
    """The 27 characters of text8: a to z and the space. Any other raises `DataError`."""

    vocabulary = TEXT8

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        encoded = []
        for text in texts:
            ids = _ID_OF_LETTER[np.frombuffer(text.encode("latin-1", "replace"), np.uint8)]
            if (ids == 255).any():
                what = f"{text[int(np.argmax(ids == 255))]!r} is not a letter of text8"
                fix = "give text of a to z and spaces, or use --tokenizer bytes"
                raise DataError(what, fix=fix)
            encoded.append(ids)
        return encoded

    def decode(self, ids: Ids) -> bytes:
        ids = np.asarray(ids)
        return np.frombuffer(_LETTERS, np.uint8)[ids[ids < len(_LETTERS)]].tobytes()

    def token_bytes(self) -> NDArray[np.uint16]:
        return (np.arange(TEXT8.padded_size) < len(_LETTERS)).astype(np.uint16)


JSON, VOCAB, MERGES, WORDS = "tokenizer.json", "vocab.json", "merges.txt", "vocab.txt"

_MASKS = ("[MASK]", "<mask>", "<|mask|>")
_PADS = ("[PAD]", "<pad>", "<|pad|>")
_ENDS = ("<|endoftext|>", "[SEP]", "</s>", "<eos>", "[EOS]")
_STARTS = ("[CLS]", "<s>", "<bos>", "[BOS]")
_UNKNOWN = ("[UNK]", "<unk>", "<|unk|>")


class FileTokenizer(Tokenizer):
    """A tokenizer of the package `tokenizers`. Raises `UsageError` where its files make none."""

    def __init__(self, files: dict[str, bytes], name: str, origin: str | Path) -> None:
        self.files = files
        tokenizers = _import_package(name)
        try:
            self._inner, self.lossless = _assemble(tokenizers, files)
            tokens: dict[str, int] = self._inner.get_vocab(with_added_tokens=True)
        except Exception as fault:  # the package raises bare Exceptions
            what = f"is no tokenizer ({type(fault).__name__}: {str(fault)[:120]})"
            raise UsageError(what, file=origin, fix="give its own files, unchanged") from None
        self.vocabulary = make_vocabulary(name, tokens, hash_tokenizer(files))
        own = self.vocabulary
        self._special = {own.mask_id, own.pad_id, own.end_id, own.start_id}
        self._tokens = tokens

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        kind = np.uint16 if self.vocabulary.padded_size <= 1 << 16 else np.uint32
        encoded = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [np.array(e.ids, kind) for e in encoded]

    def decode(self, ids: Ids) -> bytes:
        known = (int(i) for i in ids if i < self.vocabulary.n_tokens)
        kept = [i for i in known if i not in self._special]
        if not self.lossless:
            text: str = self._inner.decode(kept, skip_special_tokens=False)
            return text.encode()
        letters = "".join(self._inner.id_to_token(i) or "" for i in kept)
        return bytes(_BYTE_OF.get(c, 0x3F) for c in letters)

    def token_bytes(self) -> NDArray[np.uint16] | None:
        if not self.lossless:
            return None
        size = np.zeros(self.vocabulary.padded_size, np.uint16)
        for token, i in self._tokens.items():
            if i not in self._special:
                size[i] = len(token)
        return size


def hash_tokenizer(files: dict[str, bytes]) -> str:
    """sha256 (hex) of the names and contents of a tokenizer's files."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return sha256_json(hashes)


def _import_package(name: str) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # else it warns in every forked worker
    try:
        import tokenizers
    except ImportError:
        what = f"the tokenizer {name} needs the package 'tokenizers', which is not installed"
        fix = "pip install 'genodiff[text]', or use --tokenizer bytes"
        raise MachineError(what, fix=fix) from None
    return tokenizers


def _assemble(tokenizers: Any, files: dict[str, bytes]) -> tuple[Any, bool]:
    """The package's tokenizer, and whether it keeps every byte (byte-level, nothing normalised)."""
    if JSON in files:
        inner = tokenizers.Tokenizer.from_str(files[JSON].decode())
        inner.encode_special_tokens = True  # the text "[MASK]" is six letters
        inner.no_truncation()
        inner.no_padding()
        parts = json.loads(files[JSON])
        return inner, parts.get("normalizer") is None and _is_byte_level(parts.get("pre_tokenizer"))
    if VOCAB in files:
        lines = files[MERGES].decode().split("\n")
        merges = [tuple(x.split(" ")) for x in lines if x and not x.startswith("#version")]
        inner = tokenizers.Tokenizer(tokenizers.models.BPE(json.loads(files[VOCAB]), merges))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = tokenizers.decoders.ByteLevel()
        return inner, True
    words = files[WORDS].decode().removesuffix("\n").split("\n")
    cased = any(w != w.lower() for w in words if not w.startswith("["))
    ids = {word.removesuffix("\r"): i for i, word in enumerate(words)}
    pieces = tokenizers.models.WordPiece
    inner = tokenizers.Tokenizer(pieces(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    inner.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=not cased)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.decoder = tokenizers.decoders.WordPiece()
    return inner, False


def _is_byte_level(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    if part.get("type") == "Sequence":
        return any(_is_byte_level(p) for p in part.get("pretokenizers", []))
    return part.get("type") == "ByteLevel" and not part.get("add_prefix_space", False)


def make_vocabulary(
    name: str, tokens: dict[str, int], sha256: str, n: int | None = None
) -> Vocabulary:
    """The vocabulary of a tokenizer's `tokens`, with new ids for a mask and an end it lacks."""
    n = 1 + max(tokens.values()) if n is None else n

    def found(names: tuple[str, ...]) -> int | None:
        return next((tokens[t] for t in names if t in tokens), None)

    mask, end, pad = found(_MASKS), found(_ENDS), found(_PADS)
    if mask is None:
        mask, n = n, n + 1
    if end is None:
        end, n = n, n + 1
    start, unk = found(_STARTS), found(_UNKNOWN)
    return Vocabulary.of(
        name, n, mask_id=mask, pad_id=end if pad is None else pad, end_id=end, start_id=start,
        unk_id=-1 if unk is None else unk, tokenizer_sha256=sha256,
    )  # fmt: skip


_PLAIN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [b for b in range(256) if b not in _PLAIN]
_BYTE_OF = {chr(b): b for b in _PLAIN} | {chr(0x100 + i): b for i, b in enumerate(_OTHERS)}
"""The byte of each letter of byte-level BPE; unprintable bytes have letters from U+0100 on."""


_LARGEST = 256 << 20
_HUB = "https://huggingface.co"
PUBLISHED: dict[str, tuple[Source, ...]] = {
    "gpt2": (
        Source(
            url=f"{_HUB}/openai-community/gpt2/resolve/main/vocab.json",
            filename=VOCAB,
            sha256="196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
            licence="MIT (modified), OpenAI",
        ),
        Source(
            url=f"{_HUB}/openai-community/gpt2/resolve/main/merges.txt",
            filename=MERGES,
            sha256="1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
            licence="MIT (modified), OpenAI",
        ),
    ),
    "bert-base-uncased": (
        Source(
            url=f"{_HUB}/google-bert/bert-base-uncased/resolve/main/vocab.txt",
            filename=WORDS,
            sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            licence="Apache-2.0, Google",
        ),
    ),
}
_BUILT_IN: dict[str, type[Tokenizer]] = {BYTES.name: ByteTokenizer, TEXT8.name: LetterTokenizer}


def open_tokenizer(name: str, *, offline: bool = False) -> Tokenizer:
    """The tokenizer of a name, folder or file. Raises `UsageError`, `DataError`, `MachineError`."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    path = Path(name)
    if name in PUBLISHED and not path.exists():
        return FileTokenizer(_fetch_published(name, offline), name, name)
    if not path.exists():
        near = did_you_mean(name, [*_BUILT_IN, *PUBLISHED])
        fix = "give a folder with tokenizer.json"
        raise UsageError(f"no tokenizer '{name}', and no such folder; {near}", fix=fix)
    files = _read_files(path)
    return FileTokenizer(files, name_tokenizer(files), path)


def name_tokenizer(files: dict[str, bytes]) -> str:
    """The published name of a tokenizer's files, or one made from their hash."""
    found = hash_tokenizer(files)
    known = (name for name in PUBLISHED if _hash_published(name) == found)
    return next(known, f"tokenizer-{found[:8]}")


def rebuild_tokenizer(files: dict[str, bytes], vocabulary: Vocabulary, origin: Path) -> Tokenizer:
    """A vocabulary's tokenizer, of the files in a run. Raises `UsageError` where they differ."""
    if vocabulary in (BYTES, TEXT8):
        return _BUILT_IN[vocabulary.name]()
    if not files:
        what = f"holds no tokenizer for the vocabulary '{vocabulary.name}'"
        raise UsageError(what, file=origin, fix="restore the run's files")
    found, wanted = hash_tokenizer(files), vocabulary.tokenizer_sha256
    if found != wanted:
        what = "is not the tokenizer that the model was trained with (sha256 "
        what += f"{found[:12]}, not {wanted[:12]})"
        raise UsageError(what, file=origin, fix="restore the run's files")
    return FileTokenizer(files, vocabulary.name, origin)


def read_vocabulary(name: str) -> Vocabulary:
    """The vocabulary of a tokenizer; of the published ones without their files. For plans."""
    if name in PUBLISHED and not Path(name).exists():
        sha = _hash_published(name)
        if name == "gpt2":
            tokens = {"<|endoftext|>": 50256}
        else:
            tokens = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
        return make_vocabulary(name, tokens, sha, 50257 if name == "gpt2" else 30522)
    return open_tokenizer(name, offline=True).vocabulary


def _fetch_published(name: str, offline: bool) -> dict[str, bytes]:
    try:
        given = f"the tokenizer {name}", "--tokenizer"
        found = {s.filename: fetch_file(s, *given, offline=offline) for s in PUBLISHED[name]}
    except DataError as fault:
        urls = " and ".join(s.url for s in PUBLISHED[name])
        fix = f"get {urls} and give the folder with --tokenizer FOLDER"
        raise DataError(fault.what, fix=fix) from None
    return {filename: path.read_bytes() for filename, path in found.items()}


def _read_files(path: Path) -> dict[str, bytes]:
    if path.is_dir():
        there = {p.name for p in path.iterdir()}
        names = next((n for n in ((JSON,), (VOCAB, MERGES), (WORDS,)) if set(n) <= there), None)
        if names is None:
            fix = f"give a folder with {JSON}, {VOCAB} and {MERGES}, or {WORDS}"
            raise UsageError("holds no tokenizer", file=path, fix=fix)
        given = {name: path / name for name in names}
    else:
        given = {WORDS if path.suffix == ".txt" else JSON: path}
        if path.name in (VOCAB, MERGES):
            given = {name: path.parent / name for name in (VOCAB, MERGES)}
    try:
        for file in given.values():
            if file.stat().st_size > _LARGEST:
                what = f"is larger than {_LARGEST:,} bytes: no tokenizer"
                raise UsageError(what, file=file, fix="give a tokenizer's file")
        return {name: file.read_bytes() for name, file in given.items()}
    except OSError as fault:
        what = f"cannot be read ({fault.strerror})"
        raise UsageError(what, file=fault.filename, fix="give a tokenizer's files") from None


def _hash_published(name: str) -> str:
    """`hash_tokenizer` of the files of a published name."""
    return sha256_json({s.filename: str(s.sha256) for s in PUBLISHED[name]})
