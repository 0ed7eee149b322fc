"""Codon usage: how often a species writes an amino acid with each of its codons.

A table is one of the package python-codon-tables, by species (`e_coli`, `h_sapiens`), or a file of
lines CODON FREQUENCY, separated by commas, blanks or tabs; further columns before the codon are not
read, nor is a line without a codon. U is T. Frequencies may be counts: they are made relative
within each amino acid, and none is below `LEAST`, so that no codon is impossible.
"""

import re
from pathlib import Path
from typing import Any

from genodiff.constraints.coding import Usage, read_codon
from genodiff.constraints.space import BASES
from genodiff.errors import DataError, GenodiffError, UsageError, did_you_mean

LEAST = 1e-3
_CODON = re.compile("[ACGTU]{3}")


def read_codon_usage(source: str, table: int) -> Usage:
    """The usage that `source` names, a species or a file, for NCBI's genetic code `table`.

    Raises `UsageError` for an unknown species, also where the package is missing, and `DataError`
    for a faulty file.
    """
    if Path(source).is_file():
        found = _read_file(Path(source))
    else:
        found = _read_species(source)
    return _make_relative(found, table)


def _make_relative(found: dict[str, float], table: int) -> Usage:
    totals: dict[tuple[str, bool], float] = {}
    codons = [a + b + c for a in BASES for b in BASES for c in BASES]
    for codon in codons:
        amino = read_codon(codon, table)
        totals[amino] = totals.get(amino, 0.0) + found.get(codon, 0.0)
    weights = []
    for codon in codons:
        total = totals[read_codon(codon, table)]
        weights.append((codon, max(LEAST, found.get(codon, 0.0) / total if total else 1.0)))
    return tuple(weights)


def _read_species(name: str) -> dict[str, float]:
    try:
        import python_codon_tables
    except ImportError:
        fix = "pip install 'genodiff[codons]', or give a file of CODON FREQUENCY"
        raise UsageError(
            f"codon usage '{name}' is no file, and its species needs python-codon-tables", fix=fix
        ) from None
    known: dict[str, str] = {}
    for full in sorted(python_codon_tables.available_codon_tables_names):
        known.setdefault(full.rpartition("_")[0], full)
        known[full] = full
    if name not in known:  # the package would fetch an unknown one
        raise UsageError(f"no codon usage of '{name}'; {did_you_mean(name, list(known))}")
    tables: dict[str, dict[str, Any]] = python_codon_tables.get_codons_table(known[name])
    return {c: float(f) for codons in tables.values() for c, f in codons.items()}


def _read_file(path: Path) -> dict[str, float]:
    found: dict[str, float] = {}

    def fault(what: str, line: int | None = None) -> GenodiffError:
        return DataError(what, file=path, line=line, fix="write lines such as AAG 0.24")

    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as wrong:
        raise fault(f"cannot be read ({type(wrong).__name__})") from None
    for number, line in enumerate(lines, 1):
        words = line.upper().replace(",", " ").split()
        at = next((i for i, word in enumerate(words) if _CODON.fullmatch(word)), None)
        if at is None:
            continue
        codon = words[at].replace("U", "T")
        try:
            value = float(words[at + 1])
        except (IndexError, ValueError):
            raise fault(f"codon {codon} has no frequency", number) from None
        if not 0 <= value < float("inf") or codon in found:
            raise fault(f"codon {codon}: {value:g} is no frequency, or a second one", number)
        found[codon] = value
    if len(found) < 61:
        raise fault(f"has {len(found)} codons, fewer than 61")
    return found
