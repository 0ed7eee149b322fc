"""Dependency maps in a file: `genodiff.dependencies`."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.api.machine import choose_device
from genodiff.api.map_output import (
    MapTarget,
    check_gene_file,
    check_map_options,
    check_picture,
    finish_map,
    gather_rows,
    identify_genome,
    list_genes,
    name_memory,
    name_regions,
    plan_time,
    write_drawn,
)
from genodiff.api.run_paths import check_run
from genodiff.errors import UsageError
from genodiff.io.target import is_stream
from genodiff.kernels.defaults import own_defaults
from genodiff.scoring.map_format import DRAWN, find_map_format

if TYPE_CHECKING:
    from genodiff.api.model import Model
    from genodiff.io.genes import Gene
    from genodiff.scoring.dependency_map import CompanyCheck, DependencyMap
    from genodiff.scoring.map_files import PairMap
    from genodiff.scoring.map_regions import MapRegion
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.variant_windows import Contigs

EVERY = 16
_SCORE = "largest change of the log-odds of the target by substituting the source"
_log = logging.getLogger("genodiff")


@own_defaults()
def dependencies(
    run: str | Path,
    sequences: Any,
    *,
    out: str | Path,
    bed: str | Path | None = None,
    region: Sequence[str] = (),
    every: int = EVERY,
    exact: bool = False,
    context: int | None = None,
    unit: Literal["nats", "bits"] = "nats",
    memory: Literal["on", "off"] | None = None,
    genes: str | Path | None = None,
    batch_size: int = 8,
    device: str = "auto",
    plan: bool = False,
    fresh: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write the dependency maps of regions to `out`; what its sidecar says.

    `sequences` is a FASTA file, or strings and records. `region` (chr1:1,000-2,000, 1-based and
    inclusive) or `bed` say which part, at most 1,024 bases each; without them each sequence is a
    region. A row of `bed` on - is read as its reverse complement, as in `genodiff.ism`. `out` ends
    in .tsv, .parquet, .npz, .svg, .png, .pdf or .html; "-" is a table on stdout. `genes` (GFF3,
    GTF, BED or GenBank) are drawn below a picture.

    The dependency of target j on source i is the largest change of the log-odds of any base at j,
    with j masked, by putting another base at i, in `unit`. Targets `every` bases apart are masked
    together, and what that changes is measured and told; `exact` masks each by itself. `context` is
    in bases (default: the trained length). `memory` "on" mixes in what the training genome holds,
    but for each window's own locus.

    Rows are kept in OUT.partial until `out` is there, and the same call goes on after them; `fresh`
    starts anew. With `plan` nothing is computed, and evaluations are counted. `force` replaces a
    file that genodiff did not write. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.
    """
    apart = _check(unit, context, batch_size, every, exact)
    target = MapTarget(str(out), find_map_format(out), fresh, force)
    check_gene_file(genes, target.ending in DRAWN, f"give --out x{DRAWN[0]}")
    target.check((bed, genes, sequences if isinstance(sequences, str | Path) else None))
    run, device = check_run(run), choose_device(device)
    from genodiff.api.load import load
    from genodiff.scoring.dependency_map import LONGEST, count_pair_evaluations
    from genodiff.scoring.map_regions import list_map_regions, open_contigs
    from genodiff.scoring.variant_scores import check_model

    began = time.monotonic()
    with open_contigs(sequences) as genome:
        regions = list_map_regions(genome, region, bed, longest=LONGEST)
        check_picture(target.ending, regions)
        drawn = list_genes(genes, genome, regions)
        evaluations = count_pair_evaluations(regions, apart)
        bases = sum(len(one.letters) for one in regions)
        model = load(run, device=device)
        check_model(model.trained)
        if plan:
            files = [target.path] if is_stream(target.path) else [target.path, f"{out}.json"]
            return {
                "regions": len(regions), "bases": bases, "evaluations": evaluations,
                "exact_evaluations": count_pair_evaluations(regions, None),
                **plan_time(
                    model, genome, ((one.contig, one.start) for one in regions), evaluations,
                    context=context, memory=memory, batch_size=batch_size, every=apart,
                ),
                "files": files,
            }  # fmt: skip
        work = _MapWork(model, genome, regions, apart, context, batch_size, memory)
        about = {
            "checkpoint": model.digest, "every": apart,
            "context": context or model.config.data.seq_len,
            **name_memory(work.loci),
        }  # fmt: skip
        identity = identify_genome(genome)
        request = {"dependencies": about, "genome": identity, "regions": name_regions(regions)}
        kept = gather_rows(target, request, bases, work.rows, "bases")
        maps = work.split(kept, _scale(unit))
        check = work.check(maps, _scale(unit))
        told = {
            "model": str(run), **about, "genes": None if genes is None else str(genes),
            "score": _SCORE, "unit": unit, "bases": bases,
            "scored": sum(int((one.columns >= 0).sum()) for one in regions),
            "evaluations": evaluations, "company": None if check is None else asdict(check),
        }  # fmt: skip
        if check is not None:
            _log.info(
                "%s pairs read by themselves as well: the company of other masks moved them by "
                "%.3g nats in the middle and %.3g at most, where the strongest is %.3g",
                check.pairs, check.median, check.worst, check.strongest,
            )  # fmt: skip
        return finish_map(
            target, lambda: _write(target, maps, told, drawn), told, sequences=sequences,
            genome=identity, regions=regions, device=device, began=began,
        )  # fmt: skip


def map_dependencies(
    model: Model,
    sequences: Any,
    *,
    bed: str | Path | None,
    region: Sequence[str],
    every: int,
    exact: bool,
    context: int | None,
    unit: str,
    memory: str | None,
    batch_size: int,
) -> list[PairMap]:
    """What `genodiff.Model.dependencies` gives, for each region."""
    apart = _check(unit, context, batch_size, every, exact)
    from genodiff.scoring.dependency_map import LONGEST
    from genodiff.scoring.map_regions import list_map_regions, open_contigs

    with open_contigs(sequences) as genome:
        regions = list_map_regions(genome, region, bed, longest=LONGEST)
        work = _MapWork(model, genome, regions, apart, context, batch_size, memory)
        return work.split(list(work.rows(0)), _scale(unit))


def _check(unit: str, context: int | None, batch_size: int, every: int, exact: bool) -> int | None:
    """How far apart targets are that are masked together; None where each is by itself."""
    check_map_options(unit, context, batch_size)
    if every < 2:
        raise UsageError(f"--every {every} is below 2", fix="give 2 or more; larger is nearer")
    return None if exact else every


def _scale(unit: str) -> float:
    return math.log(2) if unit == "bits" else 1.0


class _MapWork:
    """The maps of regions of a genome by one model."""

    def __init__(
        self, model: Model, genome: Contigs, regions: Sequence[MapRegion], every: int | None,
        context: int | None, batch_size: int, memory: str | None,
    ) -> None:  # fmt: skip
        from genodiff.runs.own_loci import open_loci
        from genodiff.scoring.masked_reader import open_reader
        from genodiff.scoring.variant_scores import check_model

        trained = model.trained
        check_model(trained)
        self._genome, self._alphabet, self._regions = genome, trained.alphabet, regions
        self._targets, self._every = trained.diffusion.targets, every
        self._context = context or trained.config.data.seq_len
        self.loci = open_loci(trained, genome, memory, longest=self._context)
        self._reader: MaskedReader = open_reader(trained, batch_size=batch_size, loci=self.loci)
        self._maps: dict[tuple[MapRegion, int | None], DependencyMap] = {}

    def _open(self, region: MapRegion, every: int | None) -> DependencyMap:
        """The map of a region, kept: what it read of the region as it stands is read once."""
        from genodiff.scoring.dependency_map import DependencyMap, cut_map_window

        if (region, every) not in self._maps:
            window = cut_map_window(self._genome, self._alphabet, region, self._context)
            self._maps[region, every] = DependencyMap(self._reader, window, self._targets, every)
        return self._maps[region, every]

    def rows(self, skip: int) -> Iterator[bytes]:
        """The rows of all sources after the first `skip`, as bytes."""
        for region in self._regions:
            n = len(region.letters)
            if skip < n:
                for row in self._open(region, self._every).read_sources(skip):
                    yield row.change.tobytes() + row.base.tobytes()
            skip = max(0, skip - n)

    def split(self, rows: Sequence[bytes], scale: float) -> list[PairMap]:
        """The maps whose rows these are, divided by `scale`."""
        import numpy as np

        from genodiff.scoring.map_files import PairMap

        maps, at = [], 0
        for region in self._regions:
            n = len(region.letters)
            some = rows[at : at + n]
            at += n
            change = np.stack([np.frombuffer(row, np.float32, 4 * n).reshape(4, n) for row in some])
            base = np.stack([np.frombuffer(row[16 * n :], np.int8).reshape(4, n) for row in some])
            found = self._open(region, self._every)
            logs = found.read_given().T
            p = np.exp(logs - logs.max(0))
            window = (found.window.start, found.window.end)
            size = np.float32(scale)
            maps.append(PairMap(region, change / size, base, p / p.sum(0), window))
        return maps

    def check(self, maps: Sequence[PairMap], scale: float) -> CompanyCheck | None:
        """What the company of other masks changed, at pairs of the longest region, in nats."""
        from genodiff.scoring.dependency_map import check_pairs

        longest = max(maps, key=lambda one: len(one.region.letters))
        if self._every is None or len(longest.region.letters) <= self._every:
            return None
        return check_pairs(self._open(longest.region, None), longest.dependency * scale)


def _write(
    target: MapTarget,
    maps: Sequence[PairMap],
    told: dict[str, Any],
    genes: Sequence[Sequence[Gene]],
) -> None:
    from genodiff.scoring.map_files import make_pair_frame, stack_pairs, write_arrays, write_frame

    if target.ending == ".npz":
        write_arrays(target.path, stack_pairs(maps))
    elif target.ending in (".tsv", ".parquet"):
        write_frame(target.path, make_pair_frame(maps))
    else:
        from genodiff.reports.dependency_page import list_dependency_picture, render_dependency_page

        write_drawn(
            target, maps, told, genes, picture=list_dependency_picture, page=render_dependency_page
        )
