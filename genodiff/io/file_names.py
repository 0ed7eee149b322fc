"""Names of files that are not UTF-8, in texts and in the hands of other libraries.

To Python a name is text in which an undecodable byte is a lone surrogate: "g\\udce9nome.fa". Texts
hold it as the escape `\\udce9`, which JSON and YAML read back as the same name.
"""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from genodiff.io.pipes import find_readable

ERRORS = "backslashreplace"
"""How a text file of ours encodes what is not UTF-8."""


def encode_text(text: str) -> bytes:
    """`text` as UTF-8, with the names of files in it escaped where they are not.

    >>> encode_text('{"fasta": "g\\udce9.fa"}')
    b'{"fasta": "g\\\\udce9.fa"}'
    """
    return text.encode("utf-8", ERRORS)


def find_plain_path(path: str | Path) -> str:
    """A path to the same file or folder for libraries that take UTF-8 only, and crash otherwise.

    It is `path` itself, or else a link in a temporary folder, which this process removes at its
    end. The file may be one that is yet to be written.
    """
    path = find_readable(path)
    try:
        path.encode()
    except UnicodeEncodeError:
        return _link(os.path.abspath(path))
    return path


@cache
def _link(path: str) -> str:
    folder = tempfile.mkdtemp(prefix="genodiff-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ending = Path(path).suffix
    link = os.path.join(folder, f"file{ending if ending.isascii() else ''}")
    os.symlink(path, link)
    return link
