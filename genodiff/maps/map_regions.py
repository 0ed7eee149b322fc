"""The regions of a map: of a genome by region strings or BED, or each sequence as a region.

A row of BED on - is read as its reverse complement: its map runs in the row's direction, from the
last base of contig[start:end] to the first, and its bases are those of that strand, as
`strand` says. Positions are those of the genome. As files, maps are tables and arrays:

.tsv, .parquet    a row for each substitution of a site, or for each pair of bases
.npz              an array for each quantity with a first axis of regions, padded with NaN (or
                  0) to the longest; sites lie on the last axis, as in one-hot arrays (N, 4, L)
"""

import logging
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from genodiff.errors import UsageError
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.file_kinds import sha256_json
from genodiff.io.genes import Gene, pick_genes, read_genes
from genodiff.io.input_file import is_file
from genodiff.io.places import Place, list_places
from genodiff.io.sequences import Sequences, read_sequences
from genodiff.scoring.variant_windows import Contigs, HeldContigs

BASES = "ACGT"
_AS_N = bytes(c if chr(c) in BASES else ord("N") for c in range(256))
Interval = tuple[str, int, int]


def spell_letters(letters: bytes) -> str:
    """The letters in upper case, N for any that is no base."""
    return letters.upper().translate(_AS_N).decode()


def find_columns(letters: str) -> NDArray[np.int64]:
    """(L,): the place of each letter in ACGT, -1 where it is none of them."""
    table = np.full(256, -1, np.int64)
    table[list(BASES.encode())] = np.arange(len(BASES))
    return table[np.frombuffer(letters.encode(), np.uint8)]


class MapRegion(NamedTuple):
    """contig[start:end] (0-based, half-open) and its letters in upper case, N for any other.

    On the strand `-` the letters are those of the reverse complement.
    """

    contig: str
    start: int
    end: int
    name: str
    letters: str
    strand: str = "+"

    @property
    def positions(self) -> NDArray[np.int64]:
        """(L,): where each letter stands on the contig, from 0."""
        places = np.arange(self.start, self.end)
        return places[::-1] if self.strand == "-" else places

    @property
    def first(self) -> int:
        """The number of the first letter, from 1, for an axis; below 0 where numbers fall."""
        return -self.end if self.strand == "-" else self.start + 1

    @property
    def columns(self) -> NDArray[np.int64]:
        """(L,): the place of each letter in ACGT, -1 where it is none of them."""
        return find_columns(self.letters)

    @property
    def label(self) -> str:
        """The region as samtools writes it, and whether it is on -."""
        turned = " (-)" if self.strand == "-" else ""
        return f"{self.contig}:{self.start + 1:,}-{self.end:,}{turned}"

    @property
    def title(self) -> str:
        """The label, after the region's own name where it has one."""
        plain = (self.contig, self.label.replace(",", "").replace(" ", ""))
        return self.label if self.name in plain else f"{self.name}, {self.label}"


@contextmanager
def open_contigs(sequences: Sequences) -> Iterator[Contigs]:
    """Random access to a FASTA file, or to sequences in memory (see `read_sequences`)."""
    if is_file(sequences):
        if str(sequences) == "-":
            raise UsageError("maps need a FASTA file, not a stream", fix="give the file itself")
        with Genome(sequences) as genome:
            yield genome
        return
    yield HeldContigs({one.name: one.sequence for one in read_sequences(sequences)})


def list_map_regions(
    genome: Contigs, regions: Sequence[str] = (), bed: str | Path | None = None, *, longest: int
) -> list[MapRegion]:
    """The regions, in their order; each contig where neither `regions` nor `bed` is given.

    Raises `UsageError` for a region of more than `longest` bases, and for both kinds at once;
    `DataError` for a faulty BED file.
    """
    if bed is not None or regions:
        places = list_places(genome.contigs, regions, bed)
    else:
        places = [Place(contig, 0, length, contig) for contig, length in genome.contigs.items()]
    for contig, start, end, *_ in places:
        if end - start > longest:
            what = f"{contig}:{start + 1:,}-{end:,} has {end - start:,} bases"
            fix = f"give regions of {longest:,} or fewer (--region chr1:1,000-1,200)"
            raise UsageError(f"{what}, more than {longest:,}", fix=fix)
    return [
        MapRegion(*one[:4], spell_letters(one.read(genome.fetch)), one.strand) for one in places
    ]


def list_intervals(
    genome: Contigs, regions: Sequence[str] = (), bed: str | Path | None = None
) -> list[Interval]:
    """The intervals (0-based, half-open) as they are asked for; all contigs where none is.

    The strand of a row is not used: tracks run along the genome. Raises `UsageError` for a region
    outside the genome and for both kinds at once, `DataError` for a faulty BED file.
    """
    if bed is None and not regions:
        return [(contig, 0, length) for contig, length in genome.contigs.items() if length]
    along = "tracks run along the genome"
    return [one[:3] for one in list_places(genome.contigs, regions, bed, along=along)]


Array = NDArray[Any]
_log = logging.getLogger("genodiff")


@dataclass(frozen=True)
class SaturationMap:
    """The scores (4, L) of one region; the reference's are 0, and NaN where it is N."""

    region: MapRegion
    score: NDArray[np.float64]


@dataclass(frozen=True)
class PairMap:
    """The dependencies of one region of R bases.

    `change` (R, 4, R) has source, substituted base and target; `base` (R, 4, R) is the base of the
    target whose odds moved most, −1 where there is none. `p` (4, R) are the chances of A, C, G and
    T at each base of the region as it stands, `window` is [start, end) of what the network reads.
    """

    region: MapRegion
    change: NDArray[np.float32]
    base: NDArray[np.int8]
    p: NDArray[np.float64]
    window: tuple[int, int]

    @property
    def dependency(self) -> NDArray[np.float32]:
        """(R, R), source and target."""
        found: NDArray[np.float32] = np.abs(self.change).max(1)
        return found


def make_saturation_frame(maps: Sequence[SaturationMap]) -> pl.DataFrame:
    """A row for each substitution: region, chrom, strand, pos (from 1), ref, alt, score; none of N.

    Letters are as the strand has them.
    """
    parts = []
    for one in maps:
        columns, letters = one.region.columns, np.array(list(BASES))
        place, alt = np.nonzero((columns[:, None] >= 0) & (columns[:, None] != np.arange(4)))
        pos, ref = one.region.positions[place] + 1, letters[columns[place]]
        score = one.score[alt, place]
        parts.append({"pos": pos, "ref": ref, "alt": letters[alt], "score": score})
    schema = {"pos": pl.Int64, "ref": pl.String, "alt": pl.String, "score": pl.Float64}
    return _join([one.region for one in maps], parts, schema)


def make_pair_frame(maps: Sequence[PairMap]) -> pl.DataFrame:
    """A row for each pair of two bases: source and target (from 1), their letters, the dependency.

    `alt` is the substitution that changes most, `base` the base of the target whose odds it moves
    most, and `change` the signed change of these.
    """
    parts = []
    for one in maps:
        size, strength = np.abs(one.change), one.dependency
        off = np.isfinite(strength) & ~np.eye(len(strength), dtype=bool)
        source, target = np.nonzero(off)
        alt = size[source, :, target].argmax(1)
        letters, own = np.array(list(BASES)), one.region.columns
        pos, base = one.region.positions + 1, one.base[source, alt, target]
        pair = {"source": pos[source], "source_ref": letters[own[source]]}
        pair |= {"target": pos[target], "target_ref": letters[own[target]]}
        pair |= {"dependency": strength[source, target], "alt": letters[alt]}
        parts.append(pair | {"base": letters[base], "change": one.change[source, alt, target]})
    schema = {
        "source": pl.Int64, "source_ref": pl.String, "target": pl.Int64, "target_ref": pl.String,
        "dependency": pl.Float32, "alt": pl.String, "base": pl.String, "change": pl.Float32,
    }  # fmt: skip
    return _join([one.region for one in maps], parts, schema)


def _join(
    regions: Sequence[MapRegion], parts: Sequence[Mapping[str, Array]], schema: dict[str, Any]
) -> pl.DataFrame:
    """The rows of all regions, after the name, contig and strand of each."""
    places = dict.fromkeys(("region", "chrom", "strand"), pl.String)
    frames = [pl.DataFrame(schema=places | schema)]
    for one, part in zip(regions, parts, strict=True):
        rows = pl.DataFrame({name: x.tolist() for name, x in part.items()}, schema=schema)
        named = (one.name, one.contig, one.strand)
        place = [pl.lit(text).alias(key) for key, text in zip(places, named, strict=True)]
        frames.append(rows.select(*place, *schema))
    return pl.concat(frames)


def stack_saturation(maps: Sequence[SaturationMap]) -> dict[str, Array]:
    """Arrays of an .npz: score (n, 4, L), one_hot (n, 4, L) int8, and where each region is."""
    regions = [one.region for one in maps]
    return {"score": _pad([one.score for one in maps], np.nan), **_describe(regions)}


def stack_pairs(maps: Sequence[PairMap]) -> dict[str, Array]:
    """Arrays of an .npz: dependency (n, R, R), change and base (n, R, 4, R), p and one_hot.

    The first axis after n is the source, the last the target.
    """
    return {
        "dependency": _pad([one.dependency for one in maps], np.nan),
        "change": _pad([one.change for one in maps], np.nan),
        "base": _pad([one.base for one in maps], -1),
        "p": _pad([one.p for one in maps], np.nan),
        **_describe([one.region for one in maps]),
    }


def _describe(regions: Sequence[MapRegion]) -> dict[str, Array]:
    one_hot = [np.arange(4)[:, None] == region.columns for region in regions]
    kinds: dict[str, Any] = {
        "contig": np.str_, "start": np.int64, "end": np.int64, "name": np.str_, "strand": np.str_,
    }  # fmt: skip
    return {
        "one_hot": _pad([one.astype(np.int8) for one in one_hot], 0),
        "length": np.array([len(region.letters) for region in regions], np.int64),
        **{key: np.array([getattr(x, key) for x in regions], kind) for key, kind in kinds.items()},
    }


def _pad(arrays: Sequence[Array], fill: float) -> Array:
    """All arrays in one, each axis as long as the longest."""
    shape = np.max([one.shape for one in arrays], axis=0)
    padded = np.full((len(arrays), *shape), fill, arrays[0].dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[tuple(slice(n) for n in array.shape)] = array
    return padded


def write_arrays(path: str | Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz atomically. The same arrays give the same bytes."""
    with atomic.open_atomic(path) as file, zipfile.ZipFile(file, "w") as into:
        for name, array in arrays.items():
            with open_member(into, name) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def open_member(into: zipfile.ZipFile, name: str, *, long: bool = True) -> Any:
    """An array's file in an .npz, to be written; it is of 1980, so that time changes no byte.

    It may have over 2 GiB if it is `long`.
    """
    about = zipfile.ZipInfo(f"{name}.npy")
    about.compress_type = zipfile.ZIP_DEFLATED
    return into.open(about, "w", force_zip64=long)


def write_frame(path: str | Path, frame: pl.DataFrame) -> None:
    """Write a table, .tsv or .parquet by its name; "-" is stdout."""
    if str(path) == "-":
        print(_format_table(frame), end="")
        return
    with atomic.open_atomic(path) as file:
        if Path(path).suffix.lower() == ".parquet":
            frame.write_parquet(file)
        else:
            file.write(_format_table(frame).encode())


def _format_table(frame: pl.DataFrame) -> str:
    return frame.write_csv(separator="\t", float_precision=6)


def list_genes(file: Any, genome: Contigs, places: Iterable[Sequence[Any]]) -> list[list[Gene]]:
    """The genes of each place (contig, start, end, ...), from a file; none without one.

    A place without genes is told. Raises `DataError` for a faulty file.
    """
    if file is None:
        return [[] for _ in places]
    wanted = list(places)
    genes = read_genes(file, genome.contigs, {one[0] for one in wanted})
    picked = [pick_genes(genes, *one[:3]) for one in wanted]
    if not any(picked):
        _log.warning("%s: no gene is in what is drawn", file)
    return picked


def identify_genome(genome: Contigs) -> str:
    """The sha256 of a FASTA file, or of sequences in memory."""
    known = getattr(genome, "sha256", None)
    if isinstance(known, str):
        return known
    letters = {
        name: genome.fetch(name, 0, n).decode("latin-1") for name, n in genome.contigs.items()
    }
    return sha256_json(letters)
