"""Tokenizers: text to ids and back. Bytes of UTF-8 and the letters of text8 are built in; others
come from their files.

A tokenizer is named by a word ("bytes", "text8", "gpt2", "bert-base-uncased") or by the folder or
file that holds it: tokenizer.json, or vocab.json with merges.txt (byte-level BPE as GPT-2's), or
vocab.txt (WordPiece as BERT's). The files of the two published names are fetched once and known by
their sha256. A run carries the files that it was trained with.

Text is text: "[MASK]" or "<|endoftext|>" in it are characters, never control tokens. Where an id
has no such token yet (GPT-2 has no mask), a new one stands after the last.
"""

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import BYTES, TEXT8, Vocabulary
from genodiff.data.fetch import fetch_file
from genodiff.data.recipe import Source
from genodiff.errors import DataError, MachineError, UsageError
from genodiff.io.identity import sha256_json
from genodiff.settings import did_you_mean

Ids = NDArray[Any]

JSON, VOCAB, MERGES, WORDS = "tokenizer.json", "vocab.json", "merges.txt", "vocab.txt"
_LARGEST = 256 << 20
_LETTERS = b"abcdefghijklmnopqrstuvwxyz "

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

_MASKS = ("[MASK]", "<mask>", "<|mask|>")
_PADS = ("[PAD]", "<pad>", "<|pad|>")
_ENDS = ("<|endoftext|>", "[SEP]", "</s>", "<eos>", "[EOS]")
_STARTS = ("[CLS]", "<s>", "<bos>", "[BOS]")
_UNKNOWN = ("[UNK]", "<unk>", "<|unk|>")


class Tokenizer(ABC):
    """Text to ids and back. `lossless`: decoding gives back every text; `files`: name → content,
    for the run folder.
    """

    vocabulary: Vocabulary
    lossless = True
    files: dict[str, bytes]

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of each text, without start and end tokens. Raises `DataError` for what has no
        id.
        """

    @abstractmethod
    def decode(self, ids: Ids) -> bytes:
        """The text of ids as UTF-8 (pieces of it may be no whole characters); special tokens say
        nothing.
        """

    @abstractmethod
    def token_bytes(self) -> NDArray[np.uint16] | None:
        """How many bytes of text each id stands for, for all padded ids; None where tokens lose
        some of the text.
        """


class ByteTokenizer(Tokenizer):
    """Bytes of UTF-8 as ids 0 to 255."""

    vocabulary = BYTES

    def __init__(self) -> None:
        self.files = {}

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        return [np.frombuffer(text.encode(), np.uint8) for text in texts]

    def decode(self, ids: Ids) -> bytes:
        ids = np.asarray(ids)
        return ids[ids < 256].astype(np.uint8).tobytes()

    def token_bytes(self) -> NDArray[np.uint16]:
        return (np.arange(BYTES.padded_size) < 256).astype(np.uint16)


class LetterTokenizer(Tokenizer):
    """The 27 letters of text8; any other character is an error."""

    vocabulary = TEXT8

    def __init__(self) -> None:
        self.files = {}
        self._id_of = np.full(256, 255, np.uint8)
        self._id_of[list(_LETTERS)] = range(len(_LETTERS))
        self._letters = np.frombuffer(_LETTERS, np.uint8)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Ids:
        ids = self._id_of[np.frombuffer(text.encode("latin-1", "replace"), np.uint8)]
        if (ids == 255).any():
            what = f"{text[int(np.argmax(ids == 255))]!r} is not a letter of text8"
            raise DataError(what, fix="give text of a to z and blanks, or use --tokenizer bytes")
        return ids

    def decode(self, ids: Ids) -> bytes:
        ids = np.asarray(ids)
        return self._letters[ids[ids < len(_LETTERS)]].tobytes()

    def token_bytes(self) -> NDArray[np.uint16]:
        return (np.arange(TEXT8.padded_size) < len(_LETTERS)).astype(np.uint16)


class FileTokenizer(Tokenizer):
    """A tokenizer of the package `tokenizers`, made from its files. Raises `UsageError` where they
    make none.
    """

    def __init__(self, files: dict[str, bytes], name: str, origin: str | Path) -> None:
        self.files = files
        tokenizers = _package(name)
        try:
            self._inner, self.lossless = _assemble(tokenizers, files)
            tokens: dict[str, int] = self._inner.get_vocab(with_added_tokens=True)
        except Exception as fault:  # the package raises bare Exceptions
            what = f"is no tokenizer ({type(fault).__name__}: {str(fault)[:120]})"
            raise UsageError(what, file=origin, fix="give its own files, unchanged") from None
        self.vocabulary = _vocabulary(name, tokens, tokenizer_sha256(files))
        self._special = {
            self.vocabulary.mask_id,
            self.vocabulary.pad_id,
            self.vocabulary.end_id,
            self.vocabulary.start_id,
        }
        self._tokens = tokens

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        kind = np.uint16 if self.vocabulary.padded_size <= 1 << 16 else np.uint32
        return [
            np.array(e.ids, kind)
            for e in self._inner.encode_batch(list(texts), add_special_tokens=False)
        ]

    def decode(self, ids: Ids) -> bytes:
        kept = [
            int(i) for i in ids if int(i) not in self._special and int(i) < self.vocabulary.n_tokens
        ]
        if not self.lossless:
            text: str = self._inner.decode(kept, skip_special_tokens=False)
            return text.encode()
        return b"".join(self._bytes_of(i) for i in kept)

    def _bytes_of(self, token: int) -> bytes:
        text = self._inner.id_to_token(token)
        return b"" if text is None else bytes(_BYTE_OF.get(c, 0x3F) for c in text)

    def token_bytes(self) -> NDArray[np.uint16] | None:
        if not self.lossless:
            return None
        size = np.zeros(self.vocabulary.padded_size, np.uint16)
        for token, i in self._tokens.items():
            if i not in self._special:
                size[i] = len(token)
        return size


def open_tokenizer(name: str, *, offline: bool = False) -> Tokenizer:
    """The tokenizer of a name, or of the folder or file at a path. Raises `UsageError`, `DataError`
    or `MachineError`.
    """
    if name == BYTES.name:
        return ByteTokenizer()
    if name == TEXT8.name:
        return LetterTokenizer()
    path = Path(name)
    if name in PUBLISHED and not path.exists():
        return FileTokenizer(_published(name, offline), name, name)
    if not path.exists():
        near = did_you_mean(name, [BYTES.name, TEXT8.name, *PUBLISHED])
        raise UsageError(
            f"no tokenizer '{name}', and no such folder; {near}",
            fix="give a folder with tokenizer.json",
        )
    files = _read_files(path)
    return FileTokenizer(files, name_of(files), path)


def name_of(files: dict[str, bytes]) -> str:
    """The published name of a tokenizer's files, or one made from their hash."""
    known = next((n for n, sources in PUBLISHED.items() if _is(files, sources)), None)
    return known or f"tokenizer-{tokenizer_sha256(files)[:8]}"


def tokenizer_from(files: dict[str, bytes], vocabulary: Vocabulary, origin: Path) -> Tokenizer:
    """The tokenizer of a vocabulary, from the files that a run carries. Raises `UsageError` where
    they are others.
    """
    if vocabulary == BYTES:
        return ByteTokenizer()
    if vocabulary == TEXT8:
        return LetterTokenizer()
    if not files:
        raise UsageError(
            f"holds no tokenizer for the vocabulary '{vocabulary.name}'",
            file=origin,
            fix="restore the run's files",
        )
    if tokenizer_sha256(files) != vocabulary.tokenizer_sha256:
        what = (
            f"is not the tokenizer that the model was trained with (sha256 "
            f"{tokenizer_sha256(files)[:12]}"
        )
        raise UsageError(
            f"{what}, not {vocabulary.tokenizer_sha256[:12]})",
            file=origin,
            fix="restore the run's files",
        )
    return FileTokenizer(files, vocabulary.name, origin)


def vocabulary_of(name: str, *, offline: bool = True) -> Vocabulary:
    """The vocabulary of a tokenizer; of the published ones without their files. For plans."""
    if name in PUBLISHED and not Path(name).exists():
        sha = sha256_json({s.filename: str(s.sha256) for s in PUBLISHED[name]})
        tokens = (
            {"<|endoftext|>": 50256}
            if name == "gpt2"
            else {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
        )
        return _vocabulary(name, tokens, sha, 50257 if name == "gpt2" else 30522)
    return open_tokenizer(name, offline=offline).vocabulary


def train_bpe(texts: Iterable[str], vocab_size: int) -> bytes:
    """The tokenizer.json of a byte-level BPE of `vocab_size` tokens, with pad, mask and end among
    them.
    """
    tokenizers = _package("of your own")
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=["<|pad|>", "<|mask|>", "<|endoftext|>"],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    text: str = inner.to_str(pretty=True)
    return text.encode()


def tokenizer_sha256(files: dict[str, bytes]) -> str:
    """sha256 (hex) of the names and contents of a tokenizer's files."""
    return sha256_json(
        {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    )


def _package(name: str) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # else it warns in every forked worker
    try:
        import tokenizers
        import tokenizers.decoders
        import tokenizers.models
        import tokenizers.normalizers
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError:
        what = f"the tokenizer {name} needs the package 'tokenizers', which is not installed"
        raise MachineError(
            what, fix="pip install 'genodiff[text]', or use --tokenizer bytes"
        ) from None
    return tokenizers


def _assemble(tokenizers: Any, files: dict[str, bytes]) -> tuple[Any, bool]:
    """The package's tokenizer, and whether it keeps every byte (byte-level, nothing normalised)."""
    if JSON in files:
        inner = tokenizers.Tokenizer.from_str(files[JSON].decode())
        inner.encode_special_tokens = True  # the text "[MASK]" is six letters
        inner.no_truncation()
        inner.no_padding()
        parts = json.loads(files[JSON])
        return inner, parts.get("normalizer") is None and _byte_level(parts.get("pre_tokenizer"))
    if VOCAB in files:
        merges = [
            tuple(line.split(" "))
            for line in files[MERGES].decode().split("\n")
            if line and not line.startswith("#version")
        ]
        inner = tokenizers.Tokenizer(tokenizers.models.BPE(json.loads(files[VOCAB]), merges))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = tokenizers.decoders.ByteLevel()
        return inner, True
    words = files[WORDS].decode().removesuffix("\n").split("\n")
    cased = any(w != w.lower() for w in words if not w.startswith("["))
    ids = {word.removesuffix("\r"): i for i, word in enumerate(words)}
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    inner.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=not cased)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.decoder = tokenizers.decoders.WordPiece()
    return inner, False


def _byte_level(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    if part.get("type") == "Sequence":
        return any(_byte_level(p) for p in part.get("pretokenizers", []))
    return part.get("type") == "ByteLevel" and not part.get("add_prefix_space", False)


def _vocabulary(name: str, tokens: dict[str, int], sha256: str, n: int | None = None) -> Vocabulary:
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


def _published(name: str, offline: bool) -> dict[str, bytes]:
    try:
        found = {
            s.filename: fetch_file(s, f"the tokenizer {name}", "--tokenizer", offline=offline)
            for s in PUBLISHED[name]
        }
    except DataError as fault:
        urls = " and ".join(s.url for s in PUBLISHED[name])
        raise DataError(
            fault.what, fix=f"get {urls} and give the folder with --tokenizer FOLDER"
        ) from None
    return {filename: path.read_bytes() for filename, path in found.items()}


def _read_files(path: Path) -> dict[str, bytes]:
    folder = path if path.is_dir() else path.parent
    if path.is_dir():
        there = {p.name for p in path.iterdir()}
        names = next((n for n in ((JSON,), (VOCAB, MERGES), (WORDS,)) if set(n) <= there), None)
        if names is None:
            raise UsageError(
                "holds no tokenizer",
                file=path,
                fix=f"give a folder with {JSON}, {VOCAB} and {MERGES}, or {WORDS}",
            )
        given = {name: folder / name for name in names}
    else:
        names = (
            (VOCAB, MERGES)
            if path.name in (VOCAB, MERGES)
            else (WORDS,)
            if path.suffix == ".txt"
            else (JSON,)
        )
        given = {name: folder / name if len(names) > 1 else path for name in names}
    try:
        for file in given.values():
            if file.stat().st_size > _LARGEST:
                raise UsageError(
                    f"is larger than {_LARGEST:,} bytes: no tokenizer",
                    file=file,
                    fix="give a tokenizer's file",
                )
        return {name: file.read_bytes() for name, file in given.items()}
    except OSError as fault:
        raise UsageError(
            f"cannot be read ({fault.strerror})",
            file=fault.filename,
            fix="give a tokenizer's files",
        ) from None


def _is(files: dict[str, bytes], sources: tuple[Source, ...]) -> bool:
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return hashes == {s.filename: s.sha256 for s in sources}


def _byte_letters() -> dict[str, int]:
    """The letter that byte-level BPE writes for each byte: printable ones as they are, the others
    from U+0100 on.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTE_OF = _byte_letters()
