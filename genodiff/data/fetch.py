"""Getting a recipe's public files: https only, hashed, tried three times, and never half there.

A file appears under its final name only when it is complete and, where the recipe pins a hash,
right. Beside it stands `NAME.json` with its URL, size and sha256, so that a later change on disk is
noticed.
"""

import hashlib
import importlib.util
import json
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pooch
import requests

from genodiff.data.recipe import Recipe, Source
from genodiff.data.text_recipe import TextRecipe
from genodiff.domain import DOMAINS
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_file
from genodiff.io.file_lock import hold_file
from genodiff.io.input_file import is_planning
from genodiff.io.progress import is_on_screen
from genodiff.io.target import cache_dir

log = logging.getLogger("genodiff")

SCHEMES = ("https",)
TRIES = 3
PAUSE = 1.0
_TIMEOUT = 30
_SHA256 = re.compile(r"^\W*([0-9a-f]{64})\W*$")


def find_local_path(source: Source) -> Path:
    """Where a fetched file lies in the cache; it may not be there yet."""
    folder = hashlib.sha256(source.url.encode()).hexdigest()[:12]
    return cache_dir() / "downloads" / folder / source.filename


def is_present(source: Source) -> bool:
    """Whether the file was fetched and still has the size that it had then."""
    return _recorded(find_local_path(source)) is not None


def fetch(recipe: Recipe | TextRecipe, *, offline: bool = False) -> list[Path]:
    """The recipe's files, fetched where needed. Raises `DataError` with a remedy."""
    flag = DOMAINS[recipe.domain].input_flag
    owner = f"the recipe {recipe.name}"
    if not recipe.sources:
        raise DataError(f"{owner} has no public source", fix=f"give your own file with {flag}")
    return [fetch_file(source, owner, flag, offline=offline) for source in recipe.sources]


def forget(recipe: Recipe | TextRecipe) -> None:
    """Delete fetched files whose hash no recipe pins, so that they are fetched again."""
    for source in recipe.sources:
        if source.sha256 is None:
            _record_path(find_local_path(source)).unlink(missing_ok=True)


def fetch_file(source: Source, owner: str, flag: str, *, offline: bool = False) -> Path:
    """One file on this machine, fetched where needed.

    Messages name its `owner` and the `flag` that gives it otherwise. Nothing is written where it is
    `offline` and not here, and a plan believes its size. Raises `DataError`.
    """
    path = find_local_path(source)
    here = _recorded(path) is not None
    if here and is_planning():
        return path
    if offline and not here:
        raise _missing(owner, flag, source, "--offline forbids fetching it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with hold_file(f"{path}.lock", "fetches the same file"):
        record = _recorded(path)
        if record is not None:
            found = sha256_file(path)
            if found == record["sha256"] and source.sha256 in (None, found):
                return path
            log.warning("%s: changed since it was fetched; downloading again", path)
        if offline:
            raise _missing(owner, flag, source, "--offline forbids fetching it")
        for killed in path.parent.glob(".fetch-*"):  # the lock is ours: nobody is writing there
            shutil.rmtree(killed, ignore_errors=True)
        log.info("fetching %s", source.url)
        try:
            found = bring(partial(copy_https, source.url), path, source.sha256)
        except DataError as fault:
            raise _missing(owner, flag, source, f"it {fault.what}") from None
        told = {"url": source.url, "bytes": path.stat().st_size, "sha256": found}
        atomic.write_json(_record_path(path), told)
    return path


def copy_https(url: str, path: Path) -> str | None:
    """Write what stands at an https URL to `path`; its sha256 where the server names one.

    A redirect to another scheme is refused.
    Hugging Face names the sha256 of a large file in the header X-Linked-Etag of its answer; what
    came from its storage is compared with it. Raises `OSError` (requests' faults are some) and
    `ValueError`.
    """
    stated: list[str] = []

    def check(answer: requests.Response, **_: Any) -> None:
        if answer.is_redirect:  # to another scheme (http:, file:, ftp:), before it is followed
            _allowed(urljoin(answer.url, answer.headers["location"]))
        stated.extend(_SHA256.findall(answer.headers.get("x-linked-etag", "")))

    shows = is_on_screen() and importlib.util.find_spec("tqdm") is not None
    read = pooch.HTTPDownloader(timeout=_TIMEOUT, hooks={"response": check}, progressbar=shows)
    read(_allowed(url), str(path), None)
    if not stated:
        return None
    found = sha256_file(path)
    if found != stated[0]:
        raise ValueError(f"its sha256 is {found}, the server names {stated[0]}")
    return found


def bring(copy: Callable[[Path], str | None], path: Path, sha256: str | None) -> str:
    """Let `copy` write a file, which appears at `path` when it is whole; its sha256.

    It is tried three times. Raises `DataError` with the reason of the last, where its sha256 is not
    the one that is wanted, and at once where another try gives the same.
    """
    reason = ""
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetch-") as folder:
            part = Path(folder) / path.name
            try:
                found = copy(part) or sha256_file(part)
                if sha256 in (None, found):
                    with open(part, "rb") as file:
                        os.fsync(file.fileno())
                    os.replace(part, path)
                    return found
                reason = f"its sha256 is {found}, not {sha256}"
            except (OSError, ValueError, ImportError) as fault:  # requests' faults are OSErrors
                reason = _why(fault)
                if isinstance(fault, ImportError | FileNotFoundError):
                    break
    raise DataError(f"could not be fetched ({reason})")


def _allowed(url: str) -> str:
    if urlsplit(url).scheme not in SCHEMES:
        raise ValueError(f"refused: {url.split(':')[0]}:// is not {' or '.join(SCHEMES)}")
    return url


def _missing(owner: str, flag: str, source: Source, why: str) -> DataError:
    what = f"{source.filename} of {owner} is not on this machine and {why}"
    return DataError(what, fix=f"get {source.url} and give it with {flag} {source.filename}")


def _why(fault: Exception) -> str:
    if isinstance(fault, requests.ConnectTimeout | requests.ReadTimeout):
        return "no answer in time"
    if isinstance(fault, requests.ConnectionError):
        return "no connection"
    return (str(fault) or type(fault).__name__).splitlines()[0][:200]


def _record_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _recorded(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(_record_path(path).read_text(encoding="utf-8"))
        if record["bytes"] == path.stat().st_size and isinstance(record["sha256"], str):
            return record
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
