"""What each format's reference reader takes and ours does not, over files of `reader_shapes.py`.

    python benchmarks/robustness/compare_readers.py [--format VCF] [--all] [--out FILE.md]

A file is taken where a reader ends without an error, and has at least one record. The reference is
pysam (htslib) for VCF and FASTA, Biopython for FASTA and GenBank, Python's csv, polars and, where
it is installed, pandas for tables and intervals: what any of them reads as the records that the
name of the shape promises. Prints a line for each file that a reference takes and we refuse, with
the reason and our message; with --all also those that we take and no reference does.
"""

import argparse
import csv
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import polars as pl  # noqa: E402
import pysam  # noqa: E402
from Bio import SeqIO  # noqa: E402
from reader_refusals import find_reason  # noqa: E402
from reader_shapes import GENOME, list_shapes  # noqa: E402

from genodiff.errors import GenodiffError  # noqa: E402
from genodiff.io.bed import read_bed  # noqa: E402
from genodiff.io.fasta import read_fasta  # noqa: E402
from genodiff.io.value_tracks import read_values  # noqa: E402
from genodiff.io.variant_source import open_variants  # noqa: E402
from genodiff.tasks.labelled_file import read_examples  # noqa: E402

try:
    import pandas as pd
except ImportError:
    pd = None

Read = Callable[[Path], list[Any]]
ENDINGS = {
    "VCF": ".vcf", "FASTA": ".fa", "CSV": ".csv", "variants": ".csv", "BED": ".bed",
    "bedGraph": ".bedgraph", "GenBank": ".gb",
}  # fmt: skip


def _pysam_vcf(path: Path) -> list[Any]:
    with pysam.VariantFile(str(path)) as file:
        return [(r.chrom, r.pos, r.ref, r.alts or ()) for r in file]


def _pysam_fasta(path: Path) -> list[Any]:
    with pysam.FastxFile(str(path)) as file:
        return [(r.name, r.sequence.upper()) for r in file]


def _faidx(path: Path) -> list[Any]:
    with pysam.FastaFile(str(path)) as file:
        return [(name, file.fetch(name).upper()) for name in file.references]


def _biopython(kind: str) -> Read:
    def read(path: Path) -> list[Any]:
        with open(path) as file:
            return [(r.id, str(r.seq).upper()) for r in SeqIO.parse(file, kind)]

    return read


def _csv(path: Path) -> list[Any]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file, strict=True) if row]
    if len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        raise ValueError("not a table")
    return rows[1:]


def _polars(separator: str, header: bool) -> Read:
    def read(path: Path) -> list[Any]:
        frame = pl.read_csv(
            path, separator=separator, has_header=header, comment_prefix="#", infer_schema=False
        )
        if frame.width < 2:
            raise ValueError("one column")
        return frame.rows()

    return read


def _pandas(separator: str, header: bool) -> Read:
    def read(path: Path) -> list[Any]:
        if pd is None:
            raise ImportError("pandas")
        frame = pd.read_csv(
            path, sep=separator, header=0 if header else None, comment="#", dtype=str
        )
        if frame.shape[1] < 2:
            raise ValueError("one column")
        return list(frame.itertuples(index=False))

    return read


def _tables(header: bool) -> dict[str, Read]:
    seps = (",", "\t", ";", " ") if header else ("\t", r"\s+")
    return {
        **({"csv": _csv} if header else {}),
        **{f"polars {s!r}": _polars(s, header) for s in seps if len(s) == 1},
        **{f"pandas {s!r}": _pandas(s, header) for s in seps},
    }


REFERENCES: dict[str, dict[str, Read]] = {
    "VCF": {"pysam": _pysam_vcf},
    "FASTA": {"pysam Fastx": _pysam_fasta, "faidx": _faidx, "Biopython": _biopython("fasta")},
    "CSV": _tables(True), "variants": _tables(True),
    "BED": _tables(False), "bedGraph": _tables(False),
    "GenBank": {"Biopython": _biopython("genbank")},
}  # fmt: skip


def _our_variants(path: Path) -> list[Any]:
    genome = path.parent / "genome.fa"
    if not genome.exists():
        genome.write_text(f">chr1\n{GENOME}\n")
    with open_variants(path) as source:
        return [(r.chrom, r.pos, r.ref, r.alts) for r in source.records()]


def _our_values(path: Path) -> list[Any]:
    return [int((~__import__("numpy").isnan(read_values(path, {"chr1": 300})["chr1"])).sum())]


OURS: dict[str, Read] = {
    "VCF": _our_variants, "variants": _our_variants, "bedGraph": _our_values,
    "FASTA": lambda path: [(r.name, r.sequence.decode().upper()) for r in read_fasta(path)],
    "GenBank": lambda path: [(r.name, r.sequence.decode().upper()) for r in read_fasta(path)],
    "CSV": lambda path: read_examples(path)[0].sequences,
    "BED": lambda path: read_bed(path, {"chr1": 300}).rows(),
}  # fmt: skip
"""Ours, by format."""


def _try(read: Read, path: Path) -> tuple[list[Any] | None, str]:
    try:
        found = read(path)
    except GenodiffError as fault:
        return None, str(fault).replace(f"{path}:", "").replace(str(path), "")
    except Exception as fault:  # what a library raises
        return None, f"{type(fault).__name__}: {str(fault)[:80]}"
    return (found, "") if found else (None, "no record")


def compare(kind: str, path: Path) -> dict[str, Any]:
    """Who takes a file, what we say of it, and whether we read other records than all of them."""
    takes = {}
    for name, read in REFERENCES[kind].items():
        for leftover in path.parent.glob(f"{path.name}.*"):
            leftover.unlink()
        found, _ = _try(read, path)
        if found is not None:
            takes[name] = found
    ours, said = _try(OURS[kind], path)
    same_form = kind in ("VCF", "FASTA", "GenBank")
    differs = same_form and ours is not None and bool(takes) and ours not in takes.values()
    return {
        "takes": list(takes),
        "ours": ours is not None,
        "said": said.strip(),
        "differs": differs,
    }


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--format")
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    pysam.set_verbosity(0)
    counts: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n, (kind, name, data) in enumerate(list_shapes()):
            if asked.format not in (None, kind):
                continue
            path = Path(folder) / str(n) / f"a{ENDINGS[kind]}"
            path.parent.mkdir()
            path.write_bytes(data)
            got = compare(kind, path)
            row = counts.setdefault(kind, [0, 0, 0, 0])
            row[0] += 1
            row[1] += bool(got["takes"])
            row[2] += bool(got["takes"]) and not got["ours"]
            row[3] += got["ours"] and not got["takes"]
            if got["takes"] and not got["ours"]:
                why = find_reason(kind, name) or "NO REASON"
                print(f"{kind} | {name} | {', '.join(got['takes'])} | {why} | {got['said']}")
            if got["differs"]:
                print(f"{kind} | {name} | {', '.join(got['takes'])} | other records")
            if asked.all and got["ours"] and not got["takes"]:
                print(f"{kind} | {name} | ours alone")
    for kind, (n, taken, refused, more) in counts.items():
        of = f"{taken} by a reference, of them {refused} not by us; {more} by us alone"
        print(f"{kind}: {n} shapes, {of}")


if __name__ == "__main__":
    main()
