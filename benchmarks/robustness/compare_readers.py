"""What each format's reference reader takes and ours does not, over files of `reader_shapes.py`.

    python benchmarks/robustness/compare_readers.py [--format VCF] [--all] [--out FILE.md]

A file is taken where a reader ends without an error, and has at least one record. The reference is
pysam (htslib) for VCF, BCF and FASTA, `bcftools` where it is installed, Biopython for FASTA,
GenBank, EMBL and motifs, pyBigWig, Python's csv, polars and, where it is installed, pandas for
tables, intervals and annotation: what any of them reads as the records that the name of the shape
promises. FASTQ is read nowhere in genodiff: it is among the shapes of FASTA, and refused by name.
Prints a line for each file that a reference takes and we refuse, with the reason and our message;
with --all also those that we take and no reference does.
"""

import argparse
import csv
import logging
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
import pyBigWig  # noqa: E402
import pysam  # noqa: E402
from annotation_shapes import MORE  # noqa: E402
from Bio import SeqIO, motifs  # noqa: E402
from reader_refusals import find_reason  # noqa: E402
from reader_shapes import FORMATS, GENOME  # noqa: E402

from genodiff.constraints.codon_usage import read_codon_usage  # noqa: E402
from genodiff.errors import GenodiffError  # noqa: E402
from genodiff.io.annotation_rows import read_annotation  # noqa: E402
from genodiff.io.bed import read_bed  # noqa: E402
from genodiff.io.fasta import read_fasta  # noqa: E402
from genodiff.io.motifs import read_motifs  # noqa: E402
from genodiff.io.transcripts import read_transcripts  # noqa: E402
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
    "bedGraph": ".bedgraph", "GenBank": ".gb", "GFF3": ".gff3", "GTF": ".gtf", "EMBL": ".embl",
    "BCF": ".bcf", "bigWig": ".bw", "MEME": ".meme", "JASPAR": ".jaspar", "TRANSFAC": ".transfac",
    "codon usage": ".tsv",
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


def _bcftools(path: Path) -> list[Any]:
    if shutil.which("bcftools") is None:
        raise ImportError("bcftools")
    words = ["bcftools", "query", "-f", "%CHROM %POS %REF %ALT\\n", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=20)
    rows = [line.split(" ") for line in done.stdout.splitlines()]
    return [(c, int(p), r, tuple(a.split(",")) if a != "." else ()) for c, p, r, a in rows]


def _annotation(parser: Any) -> Read:
    """htslib's rows of GTF and GFF3: contig, start, end, strand."""

    def read(path: Path) -> list[Any]:
        with open(path) as file:
            rows = pysam.tabix_iterator(file, parser)
            return [(row.contig, row.start, row.end, row.strand) for row in rows]

    return read


def _nine(rows: Read) -> Read:
    """A table with nine columns, of which the fourth and fifth are numbers."""

    def read(path: Path) -> list[Any]:
        found = rows(path)
        if any(len(row) != 9 or int(row[3]) > int(row[4]) for row in found):
            raise ValueError("not annotation")
        return found

    return read


def _bigwig(path: Path) -> list[Any]:
    with pyBigWig.open(str(path)) as file:
        if not file.isBigWig():
            raise ValueError("no bigWig")
        return [one for name in file.chroms() for one in file.intervals(name) or ()]


def _motifs(*forms: str) -> Read:
    def read(path: Path) -> list[Any]:
        for form in forms:
            with open(path) as file:
                found = motifs.parse(file, form)
                if any(one.length for one in found):
                    return [one.length for one in found]
        raise ValueError("no motif")

    return read


def _codons(separator: str, header: bool) -> Read:
    """A table in which one column has 61 codons or more and another numbers."""

    def read(path: Path) -> list[Any]:
        rows = (_pandas if separator == r"\s+" else _polars)(separator, header)(path)
        columns = [[str(one) for one in column] for column in zip(*rows, strict=True)]
        word = [c for c in columns if sum(set(one.upper()) <= set("ACGTU") for one in c) > 60]
        if not word or not any(all(map(_is_number, column)) for column in columns):
            raise ValueError("no codons")
        return rows

    return read


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_ROWS = {
    f"{name} {sep!r}": _nine(make(sep, header=False))
    for name, make, sep in (("polars", _polars, "\t"), ("pandas", _pandas, "\t"))
}
REFERENCES: dict[str, dict[str, Read]] = {
    "VCF": {"pysam": _pysam_vcf},
    "FASTA": {"pysam Fastx": _pysam_fasta, "faidx": _faidx, "Biopython": _biopython("fasta")},
    "CSV": _tables(True), "variants": _tables(True),
    "BED": _tables(False), "bedGraph": _tables(False),
    "GenBank": {"Biopython": _biopython("genbank")},
    "EMBL": {"Biopython": _biopython("embl")},
    "GFF3": {"pysam": _annotation(pysam.asGFF3()), **_ROWS},
    "GTF": {"pysam": _annotation(pysam.asGTF()), **_ROWS},
    "BCF": {"pysam": _pysam_vcf, "bcftools": _bcftools}, "bigWig": {"pyBigWig": _bigwig},
    "MEME": {"Biopython": _motifs("minimal")}, "JASPAR": {"Biopython": _motifs("jaspar", "pfm")},
    "TRANSFAC": {"Biopython": _motifs("transfac")},
    "codon usage": {
        f"{sep!r}{' names' * header}": _codons(sep, header)
        for sep in ("\t", ",", ";", " ", r"\s+") for header in (False, True)
    },
}  # fmt: skip


def _our_variants(path: Path) -> list[Any]:
    genome = path.parent / "genome.fa"
    if not genome.exists():
        genome.write_text(f">chr1\n{GENOME}\n")
    with open_variants(path) as source:
        return [(r.chrom, r.pos, r.ref, r.alts) for r in source.records()]


def _our_values(path: Path) -> list[Any]:
    return [int((~np.isnan(read_values(path, {"chr1": 300})["chr1"])).sum())]


def _our_annotation(path: Path) -> list[Any]:
    read_transcripts(path, {"chr1": 300})
    rows = read_annotation(path, {"chr1": 300})
    return [(row.contig, row.start, row.end, row.strand) for row in rows]


OURS: dict[str, Read] = {
    "VCF": _our_variants, "variants": _our_variants, "bedGraph": _our_values,
    "FASTA": lambda path: [(r.name, r.sequence.decode().upper()) for r in read_fasta(path)],
    "GenBank": lambda path: [(r.name, r.sequence.decode().upper()) for r in read_fasta(path)],
    "CSV": lambda path: read_examples(path)[0].sequences,
    "BED": lambda path: read_bed(path, {"chr1": 300}).rows(),
    "EMBL": lambda path: [(r.name, r.sequence.decode().upper()) for r in read_fasta(path)],
    "GFF3": _our_annotation, "GTF": _our_annotation, "BCF": _our_variants, "bigWig": _our_values,
    "MEME": lambda path: [one.width for one in read_motifs(path)],
    "JASPAR": lambda path: [one.width for one in read_motifs(path)],
    "TRANSFAC": lambda path: [one.width for one in read_motifs(path)],
    "codon usage": lambda path: list(read_codon_usage(str(path), 1)),
}  # fmt: skip
"""Ours, by format."""


def list_shapes() -> Iterator[tuple[str, str, bytes]]:
    """Format, name and bytes of every shape."""
    return ((kind, *one) for kind, make in (FORMATS | MORE).items() for one in make().items())


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
    same_form = kind in ("VCF", "FASTA", "GenBank", "BCF", "MEME", "JASPAR", "TRANSFAC")
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
