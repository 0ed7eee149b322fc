"""Codon usage: how often a species writes an amino acid with each of its codons.

A table is one of the package python-codon-tables, by species (`e_coli`, `h_sapiens`), or a file of
lines CODON FREQUENCY, separated by commas, semicolons, blanks or tabs; further columns are not
read, nor are comments (#) and the lines above the first codon. U is T. Every codon of an amino acid
is there, or none. Frequencies may be counts: they are made relative within each amino acid, and
none is below `LEAST`, so that no codon is impossible.
"""

import re
from pathlib import Path
from typing import Any

from genodiff.constraints.coding import CODONS, Usage, read_codon
from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.delimited import split_rows
from genodiff.io.text_lines import is_comment, read_number, read_text_lines

LEAST = 1e-3
_OF_MODELS = {"ecoli": "e_coli", "yeast": "s_cerevisiae"}
"""The species of pretrained models, by these."""
_CODON = re.compile("[ACGTU]{3}")
_THREE = re.compile("[0-9]{3}")
_POINT_OF_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:[.][0-9]{3})+")


def read_codon_usage(source: str, table: int) -> Usage:
    """The usage that `source` names, a species or a file, for NCBI's genetic code `table`.

    Raises `UsageError` for an unknown species, also where the package is missing, and `DataError`
    for a faulty file.
    """
    if Path(source).is_file():
        found = _read_file(Path(source), table)
    else:
        found = _read_species(source)
    return _make_relative(found, table)


def _make_relative(found: dict[str, float], table: int) -> Usage:
    totals: dict[tuple[str, bool], float] = {}
    for codon in CODONS:
        amino = read_codon(codon, table)
        totals[amino] = totals.get(amino, 0.0) + found.get(codon, 0.0)
    weights = []
    for codon in CODONS:
        total = totals[read_codon(codon, table)]
        weights.append((codon, max(LEAST, found.get(codon, 0.0) / total if total else 1.0)))
    return tuple(weights)


def _read_species(name: str) -> dict[str, float]:
    try:
        import python_codon_tables
    except ImportError:
        fix = "pip install 'genodiff[codons]', or give a file of CODON FREQUENCY"
        what = f"codon usage '{name}' is no file, and its species needs python-codon-tables"
        raise UsageError(what, fix=fix) from None
    known: dict[str, str] = {}
    for full in sorted(python_codon_tables.available_codon_tables_names):
        known.setdefault(full.rpartition("_")[0], full)
        known[full] = full
    name = _OF_MODELS.get(name, name)
    if name not in known:  # the package would fetch an unknown one
        raise UsageError(f"no codon usage of '{name}'; {did_you_mean(name, list(known))}")
    tables: dict[str, dict[str, Any]] = python_codon_tables.get_codons_table(known[name])
    return {c: float(f) for codons in tables.values() for c, f in codons.items()}


def _read_file(path: Path, table: int) -> dict[str, float]:
    def fault(what: str, line: int | None = None) -> DataError:
        return DataError(what, file=path, line=line, fix="write lines such as AAG 0.24")

    every = read_text_lines(path, "codon usage")
    lines = [(n, t) for n, t in every if t.strip() and not is_comment(t)]
    first = next((i for i, (_, text) in enumerate(lines) if _find_codon(text) is not None), None)
    if first is None:
        raise fault("has no codon")
    found: dict[str, float] = {}
    texts: list[str] = []
    rows = split_rows(lines[first:], str(path))
    width = len(rows[0][1])
    for number, fields in rows:
        words = [field.upper() for field in fields]
        at = next((i for i, word in enumerate(words) if _CODON.fullmatch(word)), None)
        if at is None or len(fields) != width:
            what = "has no codon" if at is None else f"has {len(fields)} columns, not {width}"
            raise fault(f"this line {what}", number)
        codon, text = words[at].replace("U", "T"), ([*fields, ""])[at + 1]
        value = read_number(text)
        if value is None or value < 0:
            raise fault(f"codon {codon} has no frequency: '{text}' is no number from 0", number)
        if codon in found:
            raise fault(f"codon {codon} is listed twice", number)
        found[codon] = value
        texts.append(text)
    if any(_POINT_OF_THOUSANDS.fullmatch(text) for text in texts) and all(
        text.isdecimal() or _POINT_OF_THOUSANDS.fullmatch(text) for text in texts
    ):
        raise fault("has numbers such as 1.234, which may be thousands, beside whole numbers")
    if all(_THREE.fullmatch(fields[-1]) for _, fields in rows) and width > 2:
        raise fault("has numbers with thousands separators")
    if len(found) < 61:
        raise fault(f"has {len(found)} codons, fewer than 61")
    known = {read_codon(codon, table)[0] for codon in found}
    for codon in CODONS:
        amino = read_codon(codon, table)[0]
        if codon not in found and amino and amino in known:
            raise fault(f"has no frequency of {codon}, and has those of other codons of {amino}")
    return found


def _find_codon(text: str) -> str | None:
    words = re.split(r"[\s,;]+", text.upper())
    return next((word for word in words if _CODON.fullmatch(word.strip('"'))), None)
