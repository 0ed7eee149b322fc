"""What the maps of regions share: how they are read, planned, drawn and written."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import polars as pl

from genodiff.errors import UsageError
from genodiff.io import atomic
from genodiff.io.input_file import is_file
from genodiff.io.sequences import is_single
from genodiff.jobs.job import Job, Rows
from genodiff.jobs.request import find_named
from genodiff.maps.map_format import DRAWN, PICTURES
from genodiff.maps.map_regions import (
    MapRegion,
    identify_genome,
    list_genes,
    list_map_regions,
    open_contigs,
    write_arrays,
    write_frame,
)
from genodiff.maps.request import MapFields, MapFileRequest, TrackFields
from genodiff.models.opening import ModelHolder, open_model
from genodiff.runs.related_model import refit_model
from genodiff.runs.relatives_plan import describe_waiting
from genodiff.runs.run_paths import reads_network
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import open_loci
from genodiff.scoring.masked_reader import open_reader
from genodiff.scoring.plan_time import time_evaluations
from genodiff.scoring.variant_windows import Contigs

MOST_DRAWN, MOST_PAINTED = 20_000, 5_000
"""Bases of all regions of one page, and of a picture of pixels."""
WRITE_PICTURE = "genodiff.reports.paint:write_picture"
_log = logging.getLogger("genodiff")


class MapForms(NamedTuple):
    """A kind of map as a table and as arrays; and what draws it, by name."""

    frame: Callable[[Sequence[Any]], pl.DataFrame]
    arrays: Callable[[Sequence[Any]], dict[str, Any]]
    drawer: str


class MapReader(ABC):
    """A kind of map, read of regions of a genome by one model.

    `longest` is the most bases of a region. `open` raises `UsageError` where the model does not fit
    what is asked. `count` has the `evaluations` of all regions and what else a plan counts, `time`
    the `seconds` of so many, and `identify` what opening found that decides the rows, beside the
    genome. `rows` yields those of all bases after the first `skip`, `split` makes maps of them, and
    `describe` is what a sidecar says of the maps.
    """

    longest: ClassVar[int]
    forms: ClassVar[MapForms]

    def __init__(
        self, asked: Any, model: Any, genome: Contigs, regions: Sequence[MapRegion]
    ) -> None:
        self._asked, self._model, self._genome, self._regions = asked, model, genome, regions
        self.open()

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def count(self) -> dict[str, int]: ...

    @abstractmethod
    def time(self, evaluations: int) -> dict[str, Any]: ...

    @abstractmethod
    def identify(self) -> dict[str, Any]: ...

    @abstractmethod
    def rows(self, skip: int) -> Iterator[bytes]: ...

    @abstractmethod
    def split(self, rows: Sequence[bytes]) -> list[Any]: ...

    @abstractmethod
    def describe(self, maps: Sequence[Any]) -> dict[str, Any]: ...


def read_maps(
    kind: type[MapReader], asked: MapFields, holder: ModelHolder
) -> tuple[list[Any], bool]:
    """The maps of a request in memory, and whether one sequence was given by itself."""
    asked = replace(asked, memory=asked.memory or holder.memory)  # type: ignore[arg-type]
    given = asked.sequences
    with open_contigs(given) as genome:
        regions = list_map_regions(genome, asked.region, asked.bed, longest=kind.longest)
        model = holder.inner
        model = refit_model(model, genome) if isinstance(model, TrainedModel) else model
        reader = kind(asked, model, genome, regions)
        maps = reader.split(list(reader.rows(0)))
    alone = is_single(given) and asked.bed is None and not asked.region
    return maps, alone


class MapJob(Job[MapFileRequest]):
    """A file of maps. Its entries are the rows of its bases."""

    kind: ClassVar[type[MapReader]]

    @property
    def needs_torch(self) -> bool:
        return reads_network(self.request.run)

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        self.genome = stack.enter_context(open_contigs(asked.sequences))
        self.regions = list_map_regions(
            self.genome, asked.region, asked.bed, longest=self.kind.longest
        )
        _check_picture(asked.ending, self.regions)
        self.genes = list_genes(asked.genes, self.genome, self.regions)
        self.genome_hash, path = identify_genome(self.genome), getattr(self.genome, "path", None)
        if path is not None:
            self.hashes[str(path)] = self.genome_hash
        self.model = open_model(
            asked.run, self.device, asked.relatives, strains=asked.strains, fasta=path,
            plan=asked.plan,
        )  # fmt: skip
        self.reader = self.kind(asked, self.model, self.genome, self.regions)
        self.total = sum(len(one.letters) for one in self.regions)

    def plan(self) -> dict[str, Any]:
        counts = self.reader.count()
        cost = self.reader.time(counts["evaluations"])
        counts = {"regions": len(self.regions), self.noun: self.total, **counts}
        waiting = describe_waiting(getattr(self.model, "relatives", None))
        return {**counts, **cost, "device": self.device, **waiting}

    def identify(self) -> dict[str, Any]:
        return {**self.reader.identify(), "genome": self.genome_hash}

    def entries(self, first: int) -> Iterator[bytes]:
        return self.reader.rows(first)

    def write(self, rows: Rows) -> dict[str, Any]:
        asked, forms = self.request, self.kind.forms
        maps = self.reader.split(list(rows()))
        summary = {
            "format": asked.ending[1:], "model": str(asked.run), **self.reader.identify(),
            "genes": None if asked.genes is None else str(asked.genes), self.noun: self.total,
            "scored": sum(int((one.columns >= 0).sum()) for one in self.regions),
            "evaluations": self.reader.count()["evaluations"], **self.reader.describe(maps),
        }  # fmt: skip
        if asked.ending == ".npz":
            write_arrays(asked.out, forms.arrays(maps))
        elif asked.ending in (".tsv", ".parquet"):
            write_frame(asked.out, forms.frame(maps))
        elif asked.ending in PICTURES:
            picture = find_named(forms.drawer).list_picture(maps, summary, self.genes)
            find_named(WRITE_PICTURE)(asked.out, asked.ending, *picture)
        else:
            page = find_named(forms.drawer).render_page(maps, summary, self.genes)
            atomic.write_text(asked.out, page)
        path = str(asked.sequences) if is_file(asked.sequences) else None
        names = ("name", "contig", "start", "end", "strand")
        return summary | {
            "fasta": {"path": path, "sha256": self.genome_hash},
            "regions": [{name: getattr(one, name) for name in names} for one in self.regions],
        }


def _check_picture(ending: str, regions: Sequence[MapRegion]) -> None:
    """Raises `UsageError` for regions that one picture cannot hold."""
    bases = sum(len(region.letters) for region in regions)
    if ending in PICTURES and len(regions) > 1:
        what = f"a {ending} is of one region, and there are {len(regions):,}"
        raise UsageError(what, fix="give one region, or --out x.html for all on one page")
    most = MOST_PAINTED if ending == ".png" else MOST_DRAWN
    if ending in DRAWN and bases > most:
        what = f"{bases:,} bases are more than the {most:,} that a {ending} holds"
        other = ".svg" if bases <= MOST_DRAWN else ".npz, .parquet or .tsv"
        raise UsageError(what, fix=f"give fewer regions, or a {other}")


def tell_time(
    model: TrainedModel,
    genome: Contigs,
    places: Iterable[tuple[str, int]],
    evaluations: int,
    asked: MapFields | TrackFields,
    every: int | None = None,
) -> dict[str, Any]:
    """The `seconds` of so many evaluations, and on which `device`: a second of them is measured.

    `places` are bases (contig, from 0) that are masked, with `every` those so far apart.
    """
    width = asked.context or model.config.data.seq_len
    loci = open_loci(model, genome, asked.memory, longest=width)
    reader = open_reader(model, batch_size=asked.batch_size, loci=loci)
    each = time_evaluations(reader, genome, model.alphabet, places, width, every)
    return {"seconds": round(evaluations * each, 1), "device": str(reader.device)}
