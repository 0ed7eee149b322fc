"""Related genomes with an alignment to the target: its blocks in the places of both texts, cached.

An alignment is a file of `io/alignments.py`. Which of its two sequences is the target's is told by
the first pair, from names and lengths. A contig may be called as other files call it (`1`, `chr1`),
and `species.contig` as MAF writes it. What contradicts the FASTA files is refused with its line:
a contig that is not there or has another length, and bases that differ from those claimed.

A MAF may be given without a FASTA file: then the rows of a species, without gaps, are its genome.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, encode_bases
from genodiff.errors import DataError, did_you_mean, printable
from genodiff.io import atomic
from genodiff.io.alignments import AlignedPair, read_alignments, refuse_alignment
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.io.regions import find_contig
from genodiff.io.target import lock_folder
from genodiff.memory.aligned import AlignedBlocks, AlignedMemory, Locator
from genodiff.memory.memory import Memory, open_memory, write_memory
from genodiff.memory.text import NONE, MemoryText, TextWriter, turn_codes
from genodiff.runs.known_contigs import ContigRows, LetterSource

_VERSION = 1
_LETTERS = np.frombuffer(b"ACGTN", np.uint8)
_PIECE = 1 << 22
_NEAR = 1000
"""Rows of a MAF that lie nearer than this on a contig become one stretch, with N between them."""
_LEAST_EQUAL = 0.4
"""The share of equal bases under which an alignment cannot be of these genomes."""


class AlignmentTarget:
    """The target of alignments: a text of its letters, indexed once for all related genomes."""

    def __init__(self, genome: LetterSource, home: Path) -> None:
        self._genome, self._home = genome, home
        self._locator: Locator | None = None
        self.key = ""

    def open(self) -> Locator:
        """The locator of windows; the index is built where it is not there yet."""
        if self._locator is None:
            self.key = self._identify()
            folder = self._home / sha256_json({"target": self.key, "v": _VERSION})[:32]
            with lock_folder(folder, "indexes the same genome"):
                if not folder.exists():
                    memory = Memory.build_sampled(self._read_text())
                    write_memory(folder, memory, {"target": self.key})
            self._locator = Locator(open_memory(folder))
        return self._locator

    def _identify(self) -> str:
        known = getattr(self._genome, "sha256", None) or getattr(self._genome, "content", None)
        if known:
            return str(known)
        digest = hashlib.sha256()
        for name, length in self._genome.contigs.items():
            digest.update(f"{name}\t{length}\n".encode())
            for letters in self._read_pieces(name, length):
                digest.update(letters)
        return digest.hexdigest()

    def _read_text(self) -> MemoryText:
        writer = TextWriter()
        for name, length in self._genome.contigs.items():
            writer.begin(name)
            for letters in self._read_pieces(name, length):
                writer.add(encode_bases(DNA.encode(letters)))
        return writer.finish()

    def _read_pieces(self, name: str, length: int) -> Iterator[bytes]:
        for at in range(0, length, _PIECE):
            yield self._genome.fetch(name, at, min(at + _PIECE, length))


class AlignedGenome(NamedTuple):
    """A related genome as an alignment sees it.

    `memory`: its text. `names`: what its species may be called in a MAF. `lengths`: of its contigs;
    of a genome that is the rows of a MAF, those that the file says.
    """

    memory: Memory
    names: frozenset[str]
    lengths: Mapping[str, int]
    is_rows: bool


def align_memory(
    genome: AlignedGenome, path: Path, sha256: str, fingerprint: str, target: AlignmentTarget
) -> tuple[AlignedMemory, str]:
    """A memory with the diagonals of an alignment, and what tells it apart. Raises `DataError`."""
    locator = target.open()
    text = genome.memory.text
    key = sha256_json(
        {"v": _VERSION, "alignment": sha256, "genome": fingerprint, "target": target.key}
        | {"names": sorted(genome.names)},
        compact=True,
    )
    cached = target._home / "alignments" / f"{key[:32]}.npy"
    with lock_folder(cached, "reads the same alignment"):
        try:
            rows = np.load(cached, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            reader = _BlockReader(genome, locator.memory.text, str(path))
            rows = np.stack(AlignedBlocks.sort(reader.read(path)))
            cached.parent.mkdir(parents=True, exist_ok=True)
            with atomic.open_atomic(cached) as file:
                np.save(file, rows, allow_pickle=False)
    blocks = AlignedBlocks(*rows)
    return AlignedMemory(text, None, genome.memory.chain, blocks=blocks, locator=locator), key


class _BlockReader:
    """The pairs of a file as rows (N, 4) of `AlignedBlocks`, judged against both genomes."""

    def __init__(self, genome: AlignedGenome, target: MemoryText, shown: str) -> None:
        self.genome, self.target, self.shown = genome, target, shown
        self.text = genome.memory.text
        self.target_lengths = {s.contig: s.length for s in target.sources}
        self.turns: bool | None = None
        self.equal = self.columns = 0
        self.others: set[str] = set()

    def read(self, path: Path) -> NDArray[np.int64]:
        """All of a file. Raises `DataError`."""
        rows = [self._place(*one) for one in self._choose(read_alignments(path))]
        if not rows:
            what = f"has no row of {' or '.join(sorted(self.genome.names))}"
            fix = did_you_mean(min(self.genome.names), self.others)
            raise DataError(what, file=self.shown, fix=fix)
        if self.columns > 500 and self.equal < _LEAST_EQUAL * self.columns:
            share = 100 * self.equal / self.columns
            what = f"only {share:.0f} % of the aligned bases are equal, as by chance"
            fix = "give the FASTA files that were aligned"
            raise DataError(what, file=self.shown, fix=fix)
        return np.concatenate(rows)

    def _choose(self, pairs: Iterator[AlignedPair]) -> Iterator[tuple[AlignedPair, str, str]]:
        """The pairs of this genome, the target first, and the names of both contigs."""
        for pair in pairs:
            if self.turns is None and pair.rows == 2:
                self.turns = not self._fits(pair) and self._fits(pair.exchange())
            pair = pair.exchange() if self.turns else pair
            species = pair.low.name.split(".")[0]
            self.others.add(species)
            low = find_locus(pair.low.name, self.genome.lengths, self.genome.names)
            if low is None and species not in self.genome.names and pair.rows > 2:
                continue
            if self.genome.is_rows and species not in self.genome.names:
                continue
            top = find_locus(pair.top.name, self.target_lengths)
            for locus, name, lengths, whose in (
                (pair.top, top, self.target_lengths, "target"),
                (pair.low, low, self.genome.lengths, "related genome"),
            ):
                if name is None:
                    what = f"the {whose} has no contig '{printable(locus.name, 60)}'"
                    raise refuse_alignment(what, self.shown, pair.line)
                if lengths[name] != locus.size:
                    what = f"{name} has {locus.size:,} bases here, and {lengths[name]:,} in the "
                    raise refuse_alignment(f"{what}FASTA of the {whose}", self.shown, pair.line)
            assert top is not None
            assert low is not None
            yield pair, top, low

    def _fits(self, pair: AlignedPair) -> bool:
        top = find_locus(pair.top.name, self.target_lengths)
        low = find_locus(pair.low.name, self.genome.lengths, self.genome.names)
        return (
            top is not None and self.target_lengths[top] == pair.top.size
            and low is not None and self.genome.lengths[low] == pair.low.size
        )  # fmt: skip

    def _place(self, pair: AlignedPair, top: str, low: str) -> NDArray[np.int64]:
        t, q, n = pair.blocks.T
        begins = []
        for locus, start, text, name in (
            (pair.top, t, self.target, top), (pair.low, q, self.text, low),
        ):  # fmt: skip
            forward = locus.size - start - n if locus.strand else start
            begins.append(place_starts(text, name, forward))
        self._check(pair, begins)
        turned = np.full(len(n), pair.top.strand ^ pair.low.strand)
        return np.stack([*begins, n, turned], 1)[n > 0]

    def _check(self, pair: AlignedPair, begins: list[NDArray[np.int64]]) -> None:
        """Compare what a pair claims of its bases with the texts. Raises `DataError`."""
        found = []
        lengths = pair.blocks[:, 2].tolist()
        sides = (pair.top, self.target), (pair.low, self.text)
        for (locus, text), starts in zip(sides, begins, strict=True):
            ends = zip(starts.tolist(), lengths, strict=True)
            parts = [text.read_codes(a, a + n) for a, n in ends]
            parts = [turn_codes(one) for one in parts] if locus.strand else parts
            found.append(np.concatenate(parts) if parts else np.zeros(0, np.uint8))
        known = (found[0] < NONE) & (found[1] < NONE)
        same = known & (found[0] == found[1])
        self.equal, self.columns = self.equal + int(same.sum()), self.columns + int(known.sum())
        if pair.bases is not None:
            for i, locus in enumerate((pair.top, pair.low)):
                said = pair.bases[i]
                wrong = np.flatnonzero((said < NONE) & (found[i] < NONE) & (said != found[i]))
                if len(wrong):
                    at = int(wrong[0])
                    place, strand = _find_place(pair, i, at), ""
                    if locus.strand:
                        place, strand = locus.size - 1 - place, " (strand -)"
                    what = f"{locus.name}:{place + 1:,} is {'ACGT'[said[at]]} here, and "
                    what += f"{'ACGT'[found[i][at]]} in the FASTA{strand}"
                    raise refuse_alignment(what, self.shown, pair.line)
        if pair.equal is not None:
            wrong = np.flatnonzero(known & (pair.equal < 2) & (same != (pair.equal == 1)))
            if len(wrong):
                at = int(wrong[0])
                here = ("equal", "different")[:: 1 if pair.equal[at] else -1]
                what = f"bases are {here[0]} here, and {here[1]}"
                place = _find_place(pair, 0, at)
                what = f"{what} in the FASTA files, at {pair.top.name}:{place + 1:,}"
                raise refuse_alignment(what, self.shown, pair.line)


def _find_place(pair: AlignedPair, side: int, column: int) -> int:
    """The position of a column on the strand of one side."""
    ends = np.cumsum(pair.blocks[:, 2])
    i = int(np.searchsorted(ends, column, "right"))
    return int(pair.blocks[i, side] + column - (ends[i] - pair.blocks[i, 2]))


def find_locus(
    name: str, lengths: Mapping[str, int], species: frozenset[str] = frozenset()
) -> str | None:
    """The contig that `name` means: itself, an alias, or behind a prefix (of `species` first)."""
    prefix, dot, rest = name.partition(".")
    if dot and prefix in species and (found := find_contig(rest, lengths)):
        return found
    if found := find_contig(name, lengths):
        return found
    while dot:
        if found := find_contig(rest, lengths):
            return found
        _, dot, rest = rest.partition(".")
    return None


def place_starts(text: MemoryText, contig: str, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of a text where positions of a contig stand."""
    rows = text.list_stretches(contig)
    which = np.searchsorted(rows[:, 0], starts, "right") - 1
    return np.asarray(rows[which, 2] + starts - rows[which, 0])


def list_maf_species(path: Path) -> dict[str, int]:
    """The species of a MAF's rows but the first of each block, and how many bases they align."""
    found: dict[str, int] = {}
    for pair in read_alignments(path):
        species, dot, contig = pair.low.name.partition(".")
        if not (dot and contig):
            what = f"the row {printable(pair.low.name, 60)} does not say its species"
            fix = "name rows species.contig, or give the FASTA too: FASTA:MAF"
            raise DataError(what, file=path, line=pair.line, fix=fix)
        found[species] = found.get(species, 0) + int(pair.blocks[:, 2].sum())
    return found


def read_maf_text(path: Path, species: str) -> tuple[MemoryText, ContigRows, str]:
    """As `read_genome_text`, of a species' rows in a MAF. Raises `DataError` for contradictions."""
    sha256 = sha256_file(path)
    pieces: dict[str, list[tuple[int, NDArray[np.uint8], int]]] = {}
    lengths: dict[str, int] = {}
    for pair in read_alignments(path):
        name, _, contig = pair.low.name.partition(".")
        if name != species:
            continue
        if lengths.setdefault(contig, pair.low.size) != pair.low.size:
            what = f"{pair.low.name} has {pair.low.size:,} bases here, and {lengths[contig]:,}"
            raise refuse_alignment(f"{what} above", str(path), pair.line)
        assert pair.whole is not None
        start = pair.low.size - pair.low.end if pair.low.strand else pair.low.start
        codes = turn_codes(pair.whole) if pair.low.strand else pair.whole
        pieces.setdefault(contig, []).append((start, codes, pair.line))
    writer = TextWriter()
    for contig, some in sorted(pieces.items()):
        for start, codes in _join_pieces(some, path):
            writer.begin(contig, start)
            writer.add(codes)
    text, rows = writer.finish(), []
    for name, length in sorted(lengths.items()):
        digest = hashlib.sha256()
        for start, end, at in text.list_stretches(name).tolist():
            digest.update(f"{start}\n".encode())
            digest.update(_LETTERS[text.read_codes(at, at + end - start)].data)
        rows.append((name, length, digest.hexdigest()))
    return text, rows, sha256


def _join_pieces(
    some: list[tuple[int, NDArray[np.uint8], int]], path: Path
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    some.sort(key=lambda one: (one[0], one[2]))
    groups: list[list[tuple[int, NDArray[np.uint8], int]]] = []
    end = -1
    for one in some:
        if not groups or one[0] > end + _NEAR:
            groups.append([])
            end = one[0]
        groups[-1].append(one)
        end = max(end, one[0] + len(one[1]))
    for group in groups:
        first = group[0][0]
        codes = np.full(max(a + len(x) for a, x, _ in group) - first, NONE, np.uint8)
        for start, piece, line in group:
            here = codes[start - first : start - first + len(piece)]
            if ((here < NONE) & (piece < NONE) & (here != piece)).any():
                what = "has other bases than a row above has of the same positions"
                raise refuse_alignment(what, str(path), line)
            here[piece < NONE] = piece[piece < NONE]
        yield first, codes
