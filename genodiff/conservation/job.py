"""The folder of `genodiff constraint`, or a shard of it. Its entries are the values of pieces."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.conservation.elements import find_elements, format_bed
from genodiff.conservation.maf import format_blocks
from genodiff.conservation.reader import CONTEXT, estimate_neutral_rate, read_constraint
from genodiff.conservation.request import HOLDS, SIDECAR, ConstraintRequest
from genodiff.conservation.run import ConstraintRun
from genodiff.conservation.values import COLUMNS, VALUES, list_constraint_kinds
from genodiff.errors import DataError, UsageError
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.places import list_places
from genodiff.io.published_text import hide_all_folders
from genodiff.io.target import check_new_folder, describe_file, is_own_folder
from genodiff.jobs.job import EmptyOutputError, Job, Rows
from genodiff.jobs.shards import ShardFile, describe_merge
from genodiff.maps.browser_names import name_contigs, rename_blocks
from genodiff.maps.map_regions import list_intervals, open_contigs
from genodiff.maps.track_files import TrackContent, write_format
from genodiff.maps.track_format import FORMATS, check_track_output
from genodiff.maps.track_hub import HubRequest, name_assembly, write_hub
from genodiff.maps.track_values import read_letters
from genodiff.memory.column_rates import NeutralRate
from genodiff.memory.text import NONE
from genodiff.memory.tree import format_newick
from genodiff.runs.related_genome import RelatedGenomes, relate_genome
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import guess_bases, is_built
from genodiff.scoring.track_tiles import cut_pieces

_DEFAULT = ("bigwig",)
_LEAST_SHARE = 0.001  # of bases; fewer are chance
_BASES_A_SECOND, _FIT_SECONDS = 45_000, 12.0
"""Measured on one core, about: bases of one related genome, and the fit of one, in seconds."""
_log = logging.getLogger("genodiff")


@dataclass(frozen=True)
class ConstraintForm:
    """How the folder is written."""

    formats: tuple[str, ...]
    assembly: str | None
    email: str
    fdr: float
    maf: bool

    @classmethod
    def of(cls, asked: ConstraintRequest) -> "ConstraintForm":
        """The form of a request."""
        wanted = set(asked.formats or _DEFAULT)
        formats = tuple(one for one in FORMATS.list_names() if one in wanted)
        drawn = [one for one in formats if FORMATS[one]().is_drawn]
        if drawn:
            what = f"constraint has no --format {drawn[0]}"
            raise UsageError(what, fix="draw its bigWigs: genodiff tracks --track NAME=FILE")
        return cls(formats, asked.assembly, asked.email, asked.fdr, asked.maf)

    def check(self) -> None:
        """Raises `MachineError` where a package is missing."""
        for one in self.formats:
            FORMATS[one]().check()

    def list_files(self, assembly: str) -> list[str]:
        """The names of all files."""
        found = {SIDECAR, "elements.bed"} | ({"alignment.maf"} if self.maf else set())
        for one in self.formats:
            found |= set(FORMATS[one]().list_files(list_constraint_kinds()))
        if "bigwig" in self.formats:
            found |= {"hub.txt", "genomes.txt", "trackDb.txt", "description.html"}
            found |= set() if self.assembly else {f"{assembly}.2bit"}
        return sorted(found)


class ConstraintJob(Job[ConstraintRequest]):
    """The job of `ConstraintRequest`."""

    noun = "bases"
    needs_torch = False

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        self.genome = stack.enter_context(open_contigs(asked.genome))
        path = getattr(self.genome, "path", None)
        if path is None:
            what = "constraint needs a FASTA file, whose bases related genomes are fitted to"
            raise UsageError(what, fix="write the sequences to a file")
        self.path: str = path
        assert isinstance(self.genome, Genome)
        self.hashes[str(asked.genome)] = self.genome.sha256
        wanted = list_intervals(self.genome, asked.region, asked.bed)
        self.run_of = ConstraintRun.make(self.genome, wanted, asked.part)
        self.form = ConstraintForm.of(asked)
        self.form.check()
        self.listed = list_genomes(asked.relatives)
        self.total = sum(one.end - one.start for one in self.run_of.pieces())

    def list_files(self) -> list[str]:
        if self.request.part is not None:
            return super().list_files()
        names = self.form.list_files(name_assembly(self.path))
        return [f"{str(self.request.out).rstrip('/')}/{name}" for name in names]

    def plan(self) -> dict[str, Any]:
        rows = self.listed.rows
        new = [row.name for row in rows if not is_built(row)]
        index = sum(guess_bases(row) for row in rows if row.name in new) / 7e6
        read = self.total * len(rows) / _BASES_A_SECOND
        return {
            "intervals": len(self.run_of.intervals), "bases": self.total,
            "relatives": [row.name for row in rows], "to_index": new,
            "formats": list(self.form.formats),
            "journal_bytes": self.total * (4 * COLUMNS + len(rows)),
            "fit_seconds": round(_FIT_SECONDS * len(rows) + index, 1),
            "seconds": round(read + _FIT_SECONDS * len(rows) + index, 1), "device": "cpu",
        }  # fmt: skip

    def identify(self) -> dict[str, Any]:
        asked = self.request
        assert isinstance(self.genome, Genome)
        self.related: RelatedGenomes = relate_genome(
            self.genome, asked.relatives, strains=asked.strains
        )
        self.neutral = self._estimate_neutral()
        self.about = {
            "context": CONTEXT, "relatives_digest": self.related.digest,
            "neutral": self.neutral._asdict(),
        }  # fmt: skip
        return self.about

    def _estimate_neutral(self) -> NeutralRate:
        asked, contigs = self.request, dict(self.genome.contigs)
        sites: dict[str, Any] | None = None
        tiles = list_intervals(self.genome)
        source = ""
        if asked.neutral is not None:
            places = list_places(contigs, (), asked.neutral)
            spans: dict[str, list[Any]] = {}
            for one in places:
                spans.setdefault(one.contig, []).append(np.arange(one.start, one.end))
            sites = {name: np.unique(np.concatenate(some)) for name, some in spans.items()}
            source = f"the sites of {Path(asked.neutral).name}"
        pieces = list(cut_pieces(tiles, contigs, CONTEXT))
        found = estimate_neutral_rate(self.genome, self.related.relatives, pieces, sites, source)
        if not found.sites:
            what = "no related genome lies over a neutral site"
            raise DataError(what, file=asked.neutral, fix="give other sites, or nearer genomes")
        _log.info("rate 1 is that of %s (%s positions)", found.source, f"{found.sites:,.0f}")
        return found

    def entries(self, first: int) -> Iterator[bytes]:
        rest = islice(self.run_of.pieces(), first, None)
        for one in read_constraint(self.genome, self.related.relatives, self.neutral, rest):
            yield one.pack()

    def weigh(self, entry: bytes) -> int:
        return len(entry) // (4 * COLUMNS + len(self.related.relatives.genomes))

    def write(self, rows: Rows) -> dict[str, Any]:
        asked = self.request
        assert isinstance(self.genome, Genome)
        self.rows = rows
        columns, told = self.related.relatives.columns, self.related.told
        assert columns is not None
        names = [name_assembly(self.path), *(one["name"] for one in told["genomes"])]
        return {
            **self.about, "relatives": told,
            "tree": format_newick(columns.tree, names, self.neutral.rate),
            "fasta": {"path": self.path, "sha256": self.genome.sha256},
            "bed": None if asked.bed is None else str(asked.bed), "region": list(asked.region),
            "shard": None if asked.part is None else list(asked.part),
        }  # fmt: skip

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        if self.request.part is not None:
            return self._finish_shard(told)
        return write_constraint(self.request.out, self.run_of, self.rows, self.form, told)

    def _finish_shard(self, told: dict[str, Any]) -> dict[str, Any]:
        out = str(self.request.out)
        width = 4 * COLUMNS + len(self.related.relatives.genomes)
        with atomic.open_atomic(out) as file:
            head = {"descr": "|u1", "fortran_order": False, "shape": (self.total * width,)}
            np.lib.format.write_array_header_1_0(file, head)
            for row in self.rows():
                file.write(row)
        told |= {
            "holds": HOLDS, "format": "npy", "form": asdict(self.form), "bases": self.total,
            "cut": list(self.run_of.cut), "intervals": [list(one) for one in self.run_of.intervals],
            "request": self.name_request(whole=True),
            "file": describe_file(out),
        }  # fmt: skip
        atomic.write_json(self.request.sidecar_file, told)
        return told


def write_constraint(
    out: str | Path, run: ConstraintRun, rows: Rows, form: ConstraintForm, told: dict[str, Any]
) -> dict[str, Any]:
    """Write all files of `out`, a folder that is complete or not there; what its sidecar says.

    Raises `DataError` where no base has a value, `MachineError`.
    """
    kinds, contigs = list_constraint_kinds(), dict(run.genome.contigs)
    genomes = [one["name"] for one in told["relatives"]["genomes"]]
    tally = _count(run, rows, genomes)
    if tally["scored"] <= _LEAST_SHARE * tally["known"]:
        n, of = tally["scored"], tally["bases"]
        what = f"no related genome lies over more than {n:,} of {of:,} bases"
        raise EmptyOutputError(
            what, file=told["fasta"]["path"], fix="give nearer species, or check the files"
        )
    elements = find_elements(run.stretches(rows()), fdr=form.fdr)
    names = name_contigs(contigs, form.assembly)
    lengths = {names[name]: length for name, length in contigs.items()}

    def blocks() -> Iterator[Any]:
        return run.blocks(rows())

    def renamed() -> Iterator[Any]:
        return rename_blocks(blocks, names, [one[0] for one in run.intervals])

    plain = TrackContent(blocks, contigs, run.intervals, lambda _: None, kinds)
    named = plain._replace(blocks=renamed, contigs=lengths)
    own = is_own_folder(out, SIDECAR)
    with atomic.atomic_directory(out, aside=not own, replace=own) as folder:
        for one in form.formats:
            write_format(folder, one, named if FORMATS[one].kind == "tracks" else plain)
        assembly = name_assembly(told["fasta"]["path"])
        if "bigwig" in form.formats:
            hub = HubRequest(
                form.assembly, assembly, form.email, told["relatives_digest"], run.intervals[0]
            )
            neutral = told["neutral"]
            facts = {"relatives": ", ".join(genomes), "rate 1": neutral["source"]}
            write_hub(folder, run.genome, hub, facts, kinds)
        renamed_elements = [one._replace(contig=names[one.contig]) for one in elements]
        atomic.write_text(folder / "elements.bed", format_bed(renamed_elements))
        if form.maf:
            lines = format_blocks(assembly, genomes, contigs, _read_letters(run, rows()))
            with open(folder / "alignment.maf", "w", encoding="utf-8") as file:
                file.writelines(lines)
        files = sorted(one.name for one in folder.iterdir())
        summary = {
            **asdict(form), **told, **tally,
            "elements": len(elements), "element_bases": sum(e.end - e.start for e in elements),
            "intervals": [list(one) for one in run.intervals],
            "names": {old: new for old, new in names.items() if old != new},
            "files": {name: describe_file(folder / name) for name in files},
        }  # fmt: skip
        atomic.write_json(folder / SIDECAR, hide_all_folders(summary))
    return summary


def _read_letters(run: ConstraintRun, rows: Iterable[bytes]) -> Iterator[Any]:
    for piece, one in run.read(rows):
        letters = read_letters(run.genome, piece.contig, piece.start, piece.end)
        yield piece.contig, piece.start, letters, one


def _count(run: ConstraintRun, rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    """Bases, those with values, the means of the tracks over these, and the bases that each related
    genome lies over.
    """
    bases = scored = known = 0
    sums, present = np.zeros(len(VALUES)), np.zeros(len(names), np.int64)
    for piece, one in run.read(rows()):
        letters = read_letters(run.genome, piece.contig, piece.start, piece.end)
        bases += len(letters)
        known += len(letters) - letters.count("N")
        there = ~np.isnan(one.values[:, 0])
        scored += int(there.sum())
        sums += one.values[there, : len(VALUES)].sum(0, dtype=np.float64)
        present += (one.bases[there] < NONE).sum(0)
    means = (sums / max(scored, 1)).round(6).tolist()
    covered = dict(zip(names, present.tolist(), strict=True))
    for name, n in covered.items():
        if n < _LEAST_SHARE * known:
            share = f"{n / max(known, 1):.3%}"
            _log.warning("%s lies over %s of the bases: is it a related species?", name, share)
    return {
        "bases": bases, "known": known, "scored": scored, "covered": covered,
        "means": dict(zip(VALUES, means, strict=True)),
    }  # fmt: skip


def merge_constraint(parts: list[ShardFile], out: str, *, force: bool) -> dict[str, Any]:
    """Write the folder that one run writes, from all shards.

    Raises `DataError` where the genome is not the one that was read; `UsageError`, `MachineError`.
    """
    check_track_output(out, shard=False)
    check_new_folder(out, force=force or is_own_folder(out, SIDECAR))
    told = parts[0].told
    given = told["form"]
    form = ConstraintForm(**{**given, "formats": tuple(given["formats"])})
    form.check()
    with Genome(told["fasta"]["path"]) as genome:
        if genome.sha256 != told["fasta"]["sha256"]:
            fix = "merge with the genome that was read"
            raise DataError("is not the genome of the shards", file=genome.path, fix=fix)
        intervals = [(str(one[0]), int(one[1]), int(one[2])) for one in told["intervals"]]
        run = ConstraintRun.make(genome, intervals, None)
        width = 4 * COLUMNS + len(told["relatives"]["genomes"])

        def rows() -> Iterator[bytes]:
            pieces = run.pieces()
            for part in parts:
                data, at = np.load(part.path, mmap_mode="r", allow_pickle=False), 0
                while at < len(data):
                    one = next(pieces)
                    n = width * (one.end - one.start)
                    yield data[at : at + n].tobytes()
                    at += n

        keys = (
            "context",
            "relatives_digest",
            "neutral",
            "relatives",
            "tree",
            "fasta",
            "bed",
            "region",
        )
        same = {key: told[key] for key in (*keys, "device")} | describe_merge(parts, out)
        return write_constraint(out, run, rows, form, same)
