"""Where a tokenizer comes from: a built-in or published name, a folder, or the files of a run.

A tokenizer is named by a word ("bytes", "text8", "gpt2", "bert-base-uncased") or by the folder or
file that holds it. The files of the two published names are fetched once and known by their sha256.
A run carries the files that it was trained with.
"""

from pathlib import Path

from genodiff.data.fetch import fetch_file
from genodiff.data.recipe import Source
from genodiff.data.tokenizer import (
    JSON,
    MERGES,
    VOCAB,
    WORDS,
    ByteTokenizer,
    FileTokenizer,
    LetterTokenizer,
    Tokenizer,
    hash_tokenizer,
    make_vocabulary,
)
from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.file_kinds import sha256_json
from genodiff.vocabulary import BYTES, TEXT8, Vocabulary

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
        found = {
            s.filename: fetch_file(s, f"the tokenizer {name}", "--tokenizer", offline=offline)
            for s in PUBLISHED[name]
        }
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
