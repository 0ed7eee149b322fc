"""Arrays that took long to make, kept in the cache folder by all that decides them."""

import io
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import MachineError
from genodiff.io.atomic import write_bytes
from genodiff.io.file_kinds import sha256_json
from genodiff.io.target import cache_dir

Array = NDArray[Any]
log = logging.getLogger("genodiff")


def keep_array(
    kind: str, made_from: Any, shape: tuple[int, ...], make: Callable[[], Array], dtype: Any = float
) -> Array:
    """The array of `shape` and `dtype` that `make` gives, kept in the cache and read there again.

    `made_from` is all that decides it, as values of JSON; `kind` is the folder in the cache.
    """
    path = _find_array(kind, made_from)
    with suppress(OSError, ValueError, EOFError):
        kept = np.load(path, allow_pickle=False)
        if kept.shape == shape and kept.dtype == dtype:
            return np.asarray(kept)
    found = make()
    buffer = io.BytesIO()
    np.save(buffer, found)
    try:
        write_bytes(path, buffer.getvalue())
    except MachineError as fault:
        log.warning("%s; it will be counted again", fault)
    return found


def is_kept(kind: str, made_from: Any) -> bool:
    """Whether `keep_array` has an array that it need not make again."""
    return _find_array(kind, made_from).exists()


def _find_array(kind: str, made_from: Any) -> Path:
    return cache_dir() / kind / f"{sha256_json(made_from, compact=True)[:32]}.npy"
