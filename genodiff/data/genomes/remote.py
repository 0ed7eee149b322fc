"""A folder of built genomes elsewhere: in object storage (s3://, gs://, az://, hf://, ...) through
fsspec, or on a web server through https.

Files come into the cache folder when they are first read, and are believed when their sha256 is
that of the manifest. The manifest is read anew with each run, unless it is offline.
"""

import hashlib
import os
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fsspec  # type: ignore[import-untyped]

from genodiff.data import fetch
from genodiff.data.genomes.collection import require_manifest
from genodiff.data.store import MANIFEST
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.file_lock import hold_file
from genodiff.io.target import cache_dir

_REFUSED = ("http", "ftp", "ftps")
_CHUNK = 1 << 22


def is_remote(where: str) -> bool:
    """Whether this names a folder by a URL."""
    return "://" in where


@dataclass(frozen=True)
class RemoteFolder:
    """A folder at a URL; its files are cached when needed (`offline`: read from the cache only)."""

    url: str
    offline: bool = False

    @property
    def local(self) -> Path:
        """The folder in the cache that its files are copied to."""
        name = hashlib.sha256(self.url.rstrip("/").encode()).hexdigest()[:32]
        return cache_dir() / "remote" / name

    def read_manifest(self) -> dict[str, Any]:
        """The manifest: as it is now, or offline as it was last. Raises `DataError`."""
        path = self.local / MANIFEST
        if not self.offline:
            self._fetch(MANIFEST, path, None)
        elif not path.is_file():
            raise self._refuse_offline(MANIFEST)
        return require_manifest(self.local, self.url)

    def fetch(self, name: str, digest: str) -> Path:
        """The local copy of a file, made where it is not there. Raises `DataError`."""
        path = self.local / name
        if not path.resolve().is_relative_to(self.local.resolve()):
            fix = "do not use it"
            raise DataError(f"names a file outside of it ({name})", file=self.url, fix=fix)
        if self.offline and not path.is_file():
            raise self._refuse_offline(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with hold_file(f"{path}.lock", "fetches the same file"):
            checked = path.with_name(f"{path.name}.sha256")
            if path.is_file() and checked.is_file() and checked.read_text() == _stamp(path, digest):
                return path
            if self.offline:
                raise self._refuse_offline(name)
            self._fetch(name, path, digest)
            atomic.write_text(checked, _stamp(path, digest))
        return path

    def _fetch(self, name: str, path: Path, digest: str | None) -> None:
        """Copy a file to `path`, where it appears when it is whole, and has this sha256."""
        try:
            fetch.bring(partial(self._copy, name), path, digest)
        except DataError as fault:
            fix = "check the address and the connection"
            raise DataError(f"{name} {fault.what}", file=self.url, fix=fix) from None

    def _copy(self, name: str, part: Path) -> None:
        scheme, where = urlsplit(self.url).scheme, f"{self.url.rstrip('/')}/{name}"
        if scheme in _REFUSED:
            what = f"{scheme}:// is not safe on its way: give https:// or object storage"
            raise DataError(f"could not be fetched ({what})")
        if scheme == "https":
            fetch.copy_https(where, part)
            return
        with fsspec.open(where, "rb") as source, open(part, "wb") as out:
            shutil.copyfileobj(source, out, _CHUNK)

    def _refuse_offline(self, name: str) -> DataError:
        what = f"{name} is not in the cache, and --offline forbids fetching it"
        return DataError(what, file=self.url, fix="go online once")


def _stamp(path: Path, digest: str) -> str:
    """What stands beside a copy that had this sha256, for as long as nobody changes it."""
    found = os.stat(path)
    return f"{digest} {found.st_size} {found.st_mtime_ns}"
