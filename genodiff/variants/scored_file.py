"""Reading a file of scored variants again: VCF, TSV, parquet or JSON lines, row by row.

A row is one ALT. Of each file the rows are the same, so what is counted over them does not depend
on its form. Nothing is held but one part of a parquet file.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from genodiff.errors import DataError
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.input_file import open_input
from genodiff.io.text_lines import read_text_lines
from genodiff.io.variants import Allele, Unscorable, VariantRecord, judge_alt
from genodiff.io.vcf import VcfHeader, read_vcf
from genodiff.variants.output import (
    CONSEQUENCE_COLUMNS,
    CONSEQUENCE_SCHEMA,
    TSV_COLUMNS,
    TSV_KEYS,
)
from genodiff.variants.request import ENDINGS, find_ending

_ROWS = 1 << 16
_FILTER = "gd_"
_ABOUT = re.compile(r"##genodiff_score=<(.*)>")
_NUMBERS = ("score", "se", "percentile", "z", "phred")
_COUNTS = ("pos", "n_evaluations", "n_background")
_OF_GENES = ("gene", "consequence", "protein")
_VCF_KEYS = {
    "GD_SCORE": "score", "GD_SE": "se", "GD_METHOD": "method", "GD_N": "n_evaluations",
    "GD_FLAGS": "flags", "GD_PCT": "percentile", "GD_Z": "z", "GD_PHRED": "phred",
    "GD_BG": "background", "GD_BGN": "n_background", "GD_GENE": "gene", "GD_CSQ": "consequence",
    "GD_AA": "protein",
}  # fmt: skip
_TSV_NAMES = dict(zip(TSV_COLUMNS, TSV_KEYS, strict=True)) | dict(
    zip(CONSEQUENCE_COLUMNS, CONSEQUENCE_SCHEMA, strict=True)
)


class ScoredRow(NamedTuple):
    """One ALT: its place (`pos` from 1), its alleles as they stand in the file, and its score.

    `ref_bases` and `alt_bases` are how many bases differ. `score` is None with a reason first in
    `flags`; the unit is the file's. `gene`, `consequence` (terms joined by &) and `protein` are ""
    in a file without an annotation.
    """

    chrom: str
    pos: int
    id: str
    ref: str
    alt: str
    kind: str
    ref_bases: int
    alt_bases: int
    method: str
    score: float | None
    se: float | None
    n_evaluations: int
    flags: tuple[str, ...]
    percentile: float | None
    z: float | None
    background: str
    n_background: int
    gene: str = ""
    consequence: str = ""
    protein: str = ""


class ScoredFile:
    """A file of scored variants: `about` says what its header does, `rows` gives each ALT."""

    def __init__(self, path: str | Path) -> None:
        """Raises `DataError` for a file that holds no scores of genodiff."""
        self.path = str(path)
        self.ending = find_ending(path) or ""
        if not self.ending:
            what = "has none of the endings " + ", ".join(ENDINGS)
            raise DataError(what, file=path, fix="give an output of genodiff score")
        with open_input(path):
            pass
        self.about: dict[str, str] = {}
        self.records = 0
        """Records of a VCF that were read; rows of another file."""

    def rows(self) -> Iterator[ScoredRow]:
        """Each ALT, in order. Raises `DataError`, with the line, for what is not ours."""
        readers: dict[str, Callable[[], Iterator[ScoredRow]]] = {
            "vcf": self._read_vcf, "tsv": self._read_tsv, "jsonl": self._read_json,
            "parquet": self._read_parquet,
        }  # fmt: skip
        self.records = 0
        yield from readers[self.ending.removesuffix(".gz")[1:]]()

    def _read_vcf(self) -> Iterator[ScoredRow]:
        header, records = read_vcf(self.path)
        self.about = _read_about(header)
        if not any(line.startswith("##INFO=<ID=GD_SCORE,") for line in header.meta):
            raise self._fault("a VCF without GD_SCORE: it is not scored")
        for record in records:
            self.records += 1
            yield from _split_record(record)

    def _read_tsv(self) -> Iterator[ScoredRow]:
        names: list[str] = []
        for number, line in read_text_lines(self.path, "TSV"):
            if line.startswith("## genodiff score: "):
                said = (one.partition(" ") for one in line[19:].split(", "))
                self.about = {key: value for key, _, value in said}
            elif tuple(line.split("\t")[: len(TSV_COLUMNS)]) == TSV_COLUMNS:
                names = [_TSV_NAMES.get(name, name) for name in line.split("\t")]
            elif not names:
                raise self._fault("no table of genodiff score: other columns", number)
            elif line:
                fields = line.split("\t")
                if len(fields) != len(names):
                    raise self._fault(f"{len(fields)} fields, not {len(names)}", number)
                told: dict[str, Any] = dict(zip(names, fields, strict=True))
                told = {key: None if value == "." else value for key, value in told.items()}
                told["flags"] = (told["flags"] or "").split(";")
                yield self._make_row({**told, "alt": told["alt"] or "."}, number)
        if not names:
            raise self._fault("no table of genodiff score: no line of column names")

    def _read_json(self) -> Iterator[ScoredRow]:
        for number, line in read_text_lines(self.path, "JSON lines"):
            if not line:
                continue
            try:
                told = json.loads(line)
            except ValueError:
                told = None
            if not isinstance(told, dict) or not {"chrom", "pos", "score"} <= told.keys():
                raise self._fault("no JSON line of genodiff score", number)
            yield self._make_row(told, number)

    def _read_parquet(self) -> Iterator[ScoredRow]:
        try:
            table = pl.scan_parquet(find_plain_path(self.path))
            names = table.collect_schema().names()
            if not {"chrom", "pos", "ref", "alt", "score", "flags"} <= set(names):
                raise self._fault("a parquet file without the columns of genodiff score")
            first = 0
            while (some := table.slice(first, _ROWS).collect()).height:
                for told in some.iter_rows(named=True):
                    yield self._make_row(told, None)
                first += _ROWS
        except (pl.exceptions.PolarsError, OSError) as fault:
            raise self._fault(f"cannot be read as parquet: {fault}".split("\n")[0]) from None

    def _make_row(self, told: Mapping[str, Any], line: int | None) -> ScoredRow:
        self.records += 1
        try:
            return make_row(told)
        except (TypeError, ValueError, KeyError):
            raise self._fault("no row of genodiff score", line) from None

    def _fault(self, what: str, line: int | None = None) -> DataError:
        return DataError(what, file=self.path, line=line, fix="give an output of genodiff score")


def make_row(told: Mapping[str, Any]) -> ScoredRow:
    """A row of what a table says of an ALT. Raises `KeyError`, `TypeError`, `ValueError`."""
    numbers = {key: None if told.get(key) is None else float(told[key]) for key in _NUMBERS}
    counts = {key: int(told.get(key) or 0) for key in _COUNTS}
    flags = tuple(one for one in told.get("flags") or () if one)
    ref, alt = str(told["ref"]), str(told["alt"])
    kind, n_ref, n_alt = measure_change(ref, alt) if numbers["score"] is not None else ("", 0, 0)
    if numbers["score"] is None and not flags:
        flags = (Unscorable.FAILED.value,)
    return ScoredRow(
        str(told["chrom"]), counts["pos"], str(told.get("id") or "."), ref, alt, kind, n_ref, n_alt,
        str(told.get("method") or ""), numbers["score"], numbers["se"], counts["n_evaluations"],
        flags, numbers["percentile"], numbers["z"], str(told.get("background") or ""),
        counts["n_background"], *(str(told.get(key) or "") for key in _OF_GENES),
    )  # fmt: skip


def measure_change(ref: str, alt: str) -> tuple[str, int, int]:
    """The kind of a change, and the bases of REF and of ALT that differ."""
    if len(ref) == len(alt) == 1:
        return "snv", 1, 1
    ref, alt = ref.upper(), alt.upper()
    behind = _count_common(ref[::-1], alt[::-1])
    ref, alt = ref[: len(ref) - behind], alt[: len(alt) - behind]
    ahead = _count_common(ref, alt)
    allele = Allele("", 0, ref[ahead:], alt[ahead:])
    return allele.kind, len(allele.ref), len(allele.alt)


def _count_common(one: str, other: str) -> int:
    """How many letters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _read_about(header: VcfHeader) -> dict[str, str]:
    found = next((m for line in reversed(header.meta) if (m := _ABOUT.fullmatch(line))), None)
    said = found[1].split(",") if found else []
    return {key: value for key, _, value in (one.partition("=") for one in said)}


def _split_record(record: VariantRecord) -> Iterator[ScoredRow]:
    _, filters, info, *_ = record.rest or (".", ".", ".")
    reasons = [one.removeprefix(_FILTER) for one in filters.split(";") if one.startswith(_FILTER)]
    items = (item.partition("=") for item in info.split(";") if item.startswith("GD_"))
    given = {_VCF_KEYS[key]: value.split(",") for key, _, value in items if key in _VCF_KEYS}
    for number, alt in enumerate(record.alts or (".",)):
        told: dict[str, Any] = {
            key: None if number >= len(values) or values[number] == "." else values[number]
            for key, values in given.items()
        }
        flags = (told.get("flags") or "").split("&")
        if not record.alts:
            flags = reasons or [Unscorable.NO_ALT.value]
        elif told.get("score") is None and not any(flags):
            flags = reasons or [str(judge_alt(alt) or Unscorable.FAILED)]
        yield make_row(
            {
                **told, "chrom": record.chrom, "pos": record.pos, "id": record.id,
                "ref": record.ref, "alt": alt, "flags": flags,
            }
        )  # fmt: skip
