"""Files out of a fetched archive (zip or tar): only those asked for by name, as plain files, whole
or absent.
"""

import fnmatch
import gzip
import lzma
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from genodiff.errors import DataError
from genodiff.io.atomic import write_error
from genodiff.io.file_lock import hold_file

_AGAIN = "download it again"
_MOST_GROWTH, _ALWAYS_FINE = 200, 1 << 24  # unpacked bytes for one packed; bytes that may be anyway


def unpack(archive: Path, members: str) -> list[Path]:
    """The files of `archive` whose names match `members`, in a folder beside it, under their bare
    names; sorted.

    Unpacked once. Links, devices and paths are never followed. Raises `DataError` where the archive
    is damaged, holds no such file, or would unpack to 200 times its size (text takes 3 to 10);
    `MachineError` where there is no room.
    """
    folder = archive.with_name(f"{archive.name}.files")
    with hold_file(f"{folder}.lock", "unpacks the same archive"):
        if not folder.is_dir():
            temporary = Path(tempfile.mkdtemp(dir=archive.parent, prefix=".unpack-"))
            most = max(_ALWAYS_FINE, _MOST_GROWTH * archive.stat().st_size)
            try:
                found = size = 0
                for name, stream in _members(archive, members):
                    found += 1
                    with open(temporary / Path(name).name, "xb") as out:
                        while block := stream.read(1 << 22):
                            size += len(block)
                            if size > most:
                                what = f"unpacks to more than {_MOST_GROWTH} times its size"
                                raise DataError(f"{what}: refused", file=archive, fix=_AGAIN)
                            out.write(block)
                if not found:
                    raise DataError(f"holds no file named {members}", file=archive, fix=_AGAIN)
                os.rename(temporary, folder)
            except (
                zipfile.BadZipFile,
                tarfile.TarError,
                zlib.error,
                lzma.LZMAError,
                gzip.BadGzipFile,
                EOFError,
                FileExistsError,
                NotImplementedError,  # a way of packing that zipfile does not know
                RuntimeError,  # encrypted
            ) as fault:
                raise DataError(
                    f"is no sound archive ({str(fault)[:80]})", file=archive, fix=_AGAIN
                ) from None
            except OSError as fault:
                raise write_error(folder, fault) from None
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return sorted(p for p in folder.iterdir() if p.is_file())


def _members(archive: Path, pattern: str) -> Iterator[tuple[str, IO[bytes]]]:
    with _opened(archive) as opened:
        if isinstance(opened, zipfile.ZipFile):
            for info in opened.infolist():
                if not info.is_dir() and fnmatch.fnmatchcase(Path(info.filename).name, pattern):
                    with opened.open(info) as stream:
                        yield info.filename, stream
            return
        for member in opened:
            if member.isreg() and fnmatch.fnmatchcase(Path(member.name).name, pattern):
                taken = opened.extractfile(member)
                if taken is not None:
                    with taken:
                        yield member.name, taken


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile | tarfile.TarFile]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            yield zipped
    else:
        with tarfile.open(archive) as tarred:
            yield tarred
