"""Tables of variants: CSV, TSV and parquet with a column each for contig, position, REF and ALT.

Positions count from 1, as in a VCF. Columns are known by their usual names, in any case; others are
not read. An insertion or deletion has its anchor base, as in a VCF.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from genodiff.errors import DataError, did_you_mean
from genodiff.io.diagnosis import find_page
from genodiff.io.input_file import name_input, open_input
from genodiff.io.variants import VariantRecord
from genodiff.io.vcf import check_ref, parse_position

_NAMES = {
    "chrom": ("chrom", "chr", "chromosome", "contig", "seqname"),
    "pos": ("pos", "position"),
    "ref": ("ref", "reference", "ref_allele", "reference_allele"),
    "alt": ("alt", "alternate", "alternative", "alt_allele", "alternate_allele"),
}
_ID_NAMES = ("id", "rsid", "name", "variant_id")


class VariantTable:
    """The columns of a table that say what its variants are."""

    def __init__(self, path: str | Path, table: pl.DataFrame | None = None) -> None:
        """Read them, or take `table`, whose name is then `path`.

        Raises `DataError` for no table, and for one without the columns.
        """
        self.path = path
        self._table = _choose_columns(_read_table(path) if table is None else table, path)

    def __len__(self) -> int:
        return self._table.height

    def records(self) -> Iterator[VariantRecord]:
        """Its rows, in order. `line` counts from 2 where a line of names stands before them."""
        for line, row in enumerate(self._table.iter_rows(), 2):
            chrom, pos, ref, alt, name = ("" if value is None else str(value) for value in row)
            if not chrom or chrom != "".join(chrom.split()):
                raise DataError(
                    f"'{chrom}' is not the name of a contig",
                    file=name_input(self.path),
                    line=line,
                    fix="remove blanks",
                )
            at = parse_position(pos, line, self.path)
            check_ref(ref, line, self.path)
            alts = () if alt in ("", ".") else tuple(alt.split(","))
            yield VariantRecord(line, chrom, at, name or ".", ref, alts)


def _read_table(path: str | Path) -> pl.DataFrame:
    with open_input(path) as source:
        data = b"".join(source.blocks())
    shown = name_input(path)
    page = find_page(data[:256])
    if page is not None:
        raise DataError(f"no table of variants: this is {page[0]}", file=shown, fix=page[1])
    try:
        if data.startswith(b"PAR1"):
            return pl.read_parquet(data)
        head = data[: data.find(b"\n") if b"\n" in data else None]
        separator = "\t" if b"\t" in head else ","
        return pl.read_csv(data, separator=separator, infer_schema=False, quote_char='"')
    except (pl.exceptions.PolarsError, OSError) as fault:
        what = f"no table of variants: {str(fault).splitlines()[0]}"
        raise DataError(
            what, file=shown, fix="give CSV, TSV or parquet with column names"
        ) from None


def _choose_columns(table: pl.DataFrame, path: str | Path) -> pl.DataFrame:
    shown = name_input(path)
    known = {name.removeprefix("#").strip().lower(): name for name in reversed(table.columns)}
    found = []
    for wanted, names in _NAMES.items():
        column = next((known[name] for name in names if name in known), None)
        if column is None:
            near = did_you_mean(wanted, known)
            fix = f"a table of variants has chrom, pos, ref and alt; {near}"
            raise DataError(f"no column '{wanted}'", file=shown, line=1, fix=fix)
        found.append(pl.col(column).cast(pl.String).alias(wanted))
    name = next((known[name] for name in _ID_NAMES if name in known), None)
    found.append((pl.lit(".") if name is None else pl.col(name).cast(pl.String)).alias("id"))
    table = table.select(found)
    if not table.height:
        raise DataError("is empty: no variant", file=shown, fix="give a row for each variant")
    return table
