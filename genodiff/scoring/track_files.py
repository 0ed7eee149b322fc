"""Tracks as files, written as they come: memory holds a block of bases.

bigwig     p_A.bw ... surprisal.bw, one value a base, none where nothing was read
bedgraph   the same as text, six decimals; bedgraph.gz is BGZF
npz        p (bases, 4), entropy, information and surprisal (bases,), NaN where there is none;
           letters of the reference; contig, start, end and offsets of the intervals
parquet    a row for each base that was read: contig, pos (from 1), ref, and the tracks
"""

import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from Bio import bgzf
from numpy.typing import NDArray

from genodiff.errors import MachineError
from genodiff.io.atomic import write_error
from genodiff.io.file_names import find_plain_path
from genodiff.scoring.track_hub import sort_contigs, write_sizes
from genodiff.scoring.track_values import TRACKS, BaseTracks

Blocks = Callable[[], Iterable[BaseTracks]]
"""All tracks from the beginning, interval after interval; may be called several times."""
Intervals = Sequence[tuple[str, int, int]]

_VALUES = 1 << 9  # of a block of a bigWig: closing one holds 100,000 blocks at a time
_PART = 1 << 18  # bases of a part of a parquet
_TABLE = ("p_A", "p_C", "p_G", "p_T", "entropy", "information", "surprisal")


def write_format(
    folder: Path, form: str, blocks: Blocks, contigs: Mapping[str, int], intervals: Intervals
) -> None:
    """Write the files of one format into `folder`. Raises `MachineError`."""
    if form == "bigwig":
        write_sizes(folder, contigs)
        write_bigwigs(folder, blocks(), contigs)
    elif form.startswith("bedgraph"):
        write_sizes(folder, contigs)
        write_bedgraphs(folder, blocks(), zipped=form.endswith(".gz"))
    elif form == "npz":
        write_npz(folder / "tracks.npz", blocks, intervals)
    else:
        write_parquet(folder / "tracks.parquet", blocks())


def list_track_files(form: str) -> list[str]:
    """The names of the files of one format, but for a hub's and the page."""
    endings = {"bigwig": "bw", "bedgraph": "bedGraph", "bedgraph.gz": "bedGraph.gz"}
    if form in endings:
        return ["chrom.sizes", *(f"{name}.{endings[form]}" for name in TRACKS)]
    return [f"tracks.{form}"]


def import_bigwig() -> Any:
    """pyBigWig. Raises `MachineError` where it is missing."""
    try:
        import pyBigWig
    except ImportError:
        fix = "pip install 'genodiff[tracks]', or give --format bedgraph"
        raise MachineError("writing .bw needs the package pyBigWig", fix=fix) from None
    return pyBigWig


def write_bigwigs(folder: Path, blocks: Iterable[BaseTracks], contigs: Mapping[str, int]) -> None:
    """Write a bigWig for each track, with all contigs in its header."""
    bigwig = import_bigwig()
    header = [(name, contigs[name]) for name in sort_contigs(contigs)]
    files: dict[str, Any] = {}
    plain = find_plain_path(folder)
    try:
        for name in TRACKS:
            files[name] = bigwig.open(f"{plain}/{name}.bw", "w")
            files[name].addHeader(header)
        for block in blocks:
            runs = list(_find_runs(block.known))
            for name, kind in TRACKS.items():
                values = np.ascontiguousarray(kind.compute(block), np.float32)
                for first, last in runs:
                    files[name].addEntries(
                        block.contig, block.start + first, values=values[first:last], span=1, step=1
                    )
        while files:  # one after the other: closing takes memory, some bytes for each base
            files.popitem()[1].close()
    except RuntimeError as fault:
        fix = "see that the disk has room, and try again"
        raise MachineError(f"a bigWig cannot be written: {fault}", file=folder, fix=fix) from None
    finally:
        for file in files.values():
            file.close()


def _find_runs(known: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First and last + 1 of the stretches of values, each of at most `_VALUES`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]])))
    for first, last in edges.reshape(-1, 2).tolist():
        for start in range(first, last, _VALUES):
            yield start, min(start + _VALUES, last)


def write_bedgraphs(folder: Path, blocks: Iterable[BaseTracks], *, zipped: bool) -> None:
    """Write a bedGraph for each track: contig, start (from 0), end, value."""
    with ExitStack() as stack:
        sinks: dict[str, Any] = {}
        for name in TRACKS:
            path = folder / f"{name}.bedGraph{'.gz' * zipped}"
            file = stack.enter_context(open(path, "wb"))
            sinks[name] = bgzf.BgzfWriter(fileobj=file) if zipped else file
        try:
            for block in blocks:
                at = block.start + np.flatnonzero(block.known)
                places = pl.DataFrame({"start": at, "end": at + 1}).insert_column(
                    0, pl.repeat(block.contig, len(at), eager=True).alias("contig")
                )
                for name, kind in TRACKS.items():
                    values = pl.Series("value", kind.compute(block)[block.known], pl.Float32)
                    text = places.with_columns(values).write_csv(
                        separator="\t", include_header=False, float_precision=6
                    )
                    sinks[name].write(text.encode())
            if zipped:
                for sink in sinks.values():
                    sink.close()
        except OSError as fault:
            raise write_error(folder, fault) from None


def write_npz(path: Path, blocks: Blocks, intervals: Intervals) -> None:
    """Write the arrays of all intervals one after another. The same tracks give the same bytes."""
    total = sum(end - start for _, start, end in intervals)
    columns: dict[str, tuple[str, tuple[int, ...], Callable[[BaseTracks], NDArray[Any]]]] = {
        "p": ("<f4", (total, 4), lambda one: one.p),
        "entropy": ("<f4", (total,), lambda one: one.entropy),
        "information": ("<f4", (total,), lambda one: one.information),
        "surprisal": ("<f4", (total,), lambda one: one.surprisal),
        "letters": ("|S1", (total,), lambda one: np.frombuffer(one.letters.encode(), "S1")),
    }
    ends = np.cumsum([0, *(end - start for _, start, end in intervals)])
    small = {
        "contig": np.array([one[0] for one in intervals], dtype=np.str_),
        "start": np.array([one[1] for one in intervals], np.int64),
        "end": np.array([one[2] for one in intervals], np.int64),
        "offsets": ends.astype(np.int64),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as into:
        for name, (kind, shape, compute) in columns.items():
            with into.open(_member(name), "w", force_zip64=True) as member:
                head = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(member, head)
                for block in blocks():
                    member.write(np.ascontiguousarray(compute(block)).tobytes())
        for name, column in small.items():
            with into.open(_member(name), "w") as member:
                np.lib.format.write_array(_as_file(member), column, allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    """A member without the time of day."""
    about = zipfile.ZipInfo(f"{name}.npy")
    about.compress_type = zipfile.ZIP_DEFLATED
    return about


def _as_file(member: IO[bytes]) -> Any:
    return member


def write_parquet(path: Path, blocks: Iterable[BaseTracks]) -> None:
    """Write a row for each base with values, in parts that polars joins as a stream."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".genodiff-") as folder:
        plain = find_plain_path(folder)
        held: list[pl.DataFrame] = []
        size = parts = 0

        def put() -> None:
            nonlocal held, size, parts
            if held:
                pl.concat(held).write_parquet(f"{plain}/{parts:06d}.parquet")
                held, size, parts = [], 0, parts + 1

        for block in blocks:
            held.append(make_track_frame(block))
            size += held[-1].height
            if size >= _PART:
                put()
        put()
        found = sorted(Path(plain).iterdir())
        pl.scan_parquet(found).sink_parquet(
            find_plain_path(path), row_group_size=_PART, maintain_order=True
        )


def make_track_frame(block: BaseTracks) -> pl.DataFrame:
    """A row for each base with values: contig, pos (from 1), ref, and the tracks."""
    known = block.known
    at = np.flatnonzero(known)
    letters = np.frombuffer(block.letters.encode(), "S1").astype("U1")[known]
    return pl.DataFrame(
        {
            "contig": pl.repeat(block.contig, len(at), eager=True, dtype=pl.String),
            "pos": at + block.start + 1,
            "ref": pl.Series(letters.tolist(), dtype=pl.String),
            **{
                name: pl.Series(np.ascontiguousarray(TRACKS[name].compute(block)[known]))
                for name in _TABLE
            },
        }
    )
