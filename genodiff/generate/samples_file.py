"""Samples in a file, read back as ids: the counterpart of writing them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.generate.text_templates import END
from genodiff.io.fasta import read_fasta
from genodiff.io.text_file import read_text_pieces
from genodiff.runs.tokenizer_files import open_model_tokenizer
from genodiff.runs.trained_model import TrainedModel

Ids = NDArray[Any]


def read_samples(path: str, model: TrainedModel) -> list[Ids]:
    """The sequences of a file in the ids of `model`. Raises `DataError`."""
    return _READERS[model.alphabet.domain](path, model)


def _read_dna(path: str, model: TrainedModel) -> list[Ids]:
    return [model.alphabet.encode(record.sequence) for record in read_fasta(path)]


def _read_text(path: str, model: TrainedModel) -> list[Ids]:
    texts = _split_texts("".join(read_text_pieces(path)), Path(f"{path}.json"))
    tokenizer = open_model_tokenizer(model.run, model.alphabet)
    return [np.asarray(ids, np.int64) for ids in tokenizer.encode(texts)]


def _split_texts(whole: str, sidecar: Path) -> list[str]:
    """The samples of a file of text, as its sidecar says, else cut at end lines.

    An end line may stand inside a sample, too.
    """
    try:
        records = json.loads(sidecar.read_text(encoding="utf-8"))["records"]
        raw = whole.encode()
        return [raw[record["start"] :][: record["bytes"]].decode() for record in records]
    except (OSError, ValueError, KeyError, TypeError):
        return [text.removesuffix("\n") for text in whole.split(f"\n{END.decode()}\n")]


_READERS = {"dna": _read_dna, "text": _read_text}
