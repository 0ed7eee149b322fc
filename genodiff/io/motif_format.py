"""Which kind of motif file a file is. It loads no NumPy, which the reader of motifs needs."""

import re
from pathlib import Path

_SUFFIXES = {
    ".meme": "MEME",
    ".jaspar": "JASPAR",
    ".pfm": "JASPAR",
    ".transfac": "TRANSFAC",
    ".tf": "TRANSFAC",
}


def find_motif_format(path: str | Path, head: bytes) -> str | None:
    """`MEME`, `JASPAR` or `TRANSFAC` by a file's first bytes or its suffix, or None."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    if text.startswith(">"):
        if re.match(r">[^\n]*\n\s*A[ \t]*(\[|[ \t][ \t]*[0-9])", text):
            return "JASPAR"
    elif re.search(r"^MEME version|^<MEME\b", text, re.MULTILINE):
        return "MEME"
    elif re.search(r"^P[0O]\s+A\s+C\s+G\s+[TU]\b", text, re.MULTILINE):
        return "TRANSFAC"
    name = Path(path).name.lower().removesuffix(".gz")
    return _SUFFIXES.get(Path(name).suffix)
