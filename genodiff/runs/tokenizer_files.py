"""The tokenizer in a run folder: RUN/tokenizer/ holds the files of the training."""

from pathlib import Path

from genodiff.alphabet import Alphabet
from genodiff.data.file_tokenizer import JSON, MERGES, VOCAB, WORDS
from genodiff.data.tokenizer import Tokenizer
from genodiff.data.tokenizer_sources import rebuild_tokenizer
from genodiff.errors import CheckpointError, UsageError
from genodiff.io import atomic
from genodiff.runs.sealed_files import read_bytes
from genodiff.vocabulary import Vocabulary

FOLDER = "tokenizer"
_LARGEST = 256 << 20


def write_tokenizer(run: Path, files: dict[str, bytes]) -> None:
    """Write a tokenizer's files into the run folder. Raises `MachineError`."""
    for name, content in files.items():
        path = run / FOLDER / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(exist_ok=True)
            atomic.write_bytes(path, content)


def read_tokenizer(run: Path) -> dict[str, bytes]:
    """The tokenizer's files in a run folder; none without such a folder.

    Raises `CheckpointError`.
    """
    folder = run / FOLDER
    names = [name for name in (JSON, VOCAB, MERGES, WORDS) if (folder / name).exists()]
    return {name: read_bytes(folder / name, _LARGEST) for name in names}


def open_model_tokenizer(run: Path, alphabet: Alphabet) -> Tokenizer:
    """The tokenizer of a trained model of text.

    Raises `CheckpointError` where the run lacks it or has another.
    """
    if not isinstance(alphabet, Vocabulary):
        raise CheckpointError(f"is a {alphabet.domain} model", file=run, fix="give a text run")
    try:
        return rebuild_tokenizer(read_tokenizer(run), alphabet, run / FOLDER)
    except UsageError as fault:
        raise CheckpointError(fault.what, file=fault.file, fix=fault.fix) from None
