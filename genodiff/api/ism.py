"""Saturation mutagenesis in a file: `genodiff.ism`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
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
    import numpy as np
    from numpy.typing import NDArray

    from genodiff.api.model import Model
    from genodiff.finetuning.oracle import FittedOracle
    from genodiff.io.genes import Gene
    from genodiff.runs.own_loci import OwnLoci
    from genodiff.scoring.map_files import SaturationMap
    from genodiff.scoring.map_regions import MapRegion
    from genodiff.scoring.variant_windows import Contigs

_WORDS = {
    None: "log p(base) − log p(reference), given all others",
    "regression": "change of the predicted value",
    "class": "change of the log-odds of {}",
}


@own_defaults()
def ism(
    run: str | Path,
    sequences: Any,
    *,
    out: str | Path,
    bed: str | Path | None = None,
    region: Sequence[str] = (),
    label: str | None = None,
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
    """Write the scores of every substitution of regions to `out`; what its sidecar says.

    `sequences` is a FASTA file, or strings and records. `region` (chr1:1,000-2,000, 1-based and
    inclusive) or `bed` say which part; without them each sequence is a region. A row of `bed` on -
    is read as its reverse complement: its scores run in the row's direction, and its bases are of
    that strand; positions are the genome's. `out` ends in .tsv, .parquet, .npz, .svg, .png, .pdf or
    .html; "-" is a table on stdout. `genes` (GFF3, GTF, BED or GenBank) are drawn below a picture.

    A score is log p(base | all others) − log p(reference | all others) in `unit`, what `genodiff
    score --exact` gives for the same SNV. `context` is in bases (default: the trained length).
    `memory` "on" mixes in what the training genome holds, but for each window's own locus. With
    a fine-tuned model it is the change of the log-odds of the class `label`, or of the value of a
    regression, of the region by itself.

    Rows are kept in OUT.partial until `out` is there, and the same call goes on after them; `fresh`
    starts anew. With `plan` nothing is computed, and evaluations are counted. `force` replaces a
    file that genodiff did not write. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.
    """
    check_map_options(unit, context, batch_size)
    target = MapTarget(str(out), find_map_format(out), fresh, force)
    check_gene_file(genes, target.ending in DRAWN, f"give --out x{DRAWN[0]}")
    target.check((bed, genes, sequences if isinstance(sequences, str | Path) else None))
    run, device = check_run(run), choose_device(device)
    from genodiff.api.load import load
    from genodiff.runs.own_loci import open_loci
    from genodiff.scoring.map_regions import list_map_regions, open_contigs
    from genodiff.scoring.saturation import LONGEST, count_saturation

    began = time.monotonic()
    with open_contigs(sequences) as genome:
        regions = list_map_regions(genome, region, bed, longest=LONGEST)
        check_picture(target.ending, regions)
        drawn = list_genes(genes, genome, regions)
        model = load(run, device=device)
        oracle = open_oracle(model, regions, label, context, batch_size, memory)
        evaluations = count_saturation(regions, oracle=oracle is not None)
        sites = sum(len(one.letters) for one in regions)
        if plan:
            files = [target.path] if is_stream(target.path) else [target.path, f"{out}.json"]
            if oracle is None:
                places = ((one.contig, at) for one in regions for at in range(one.start, one.end))
                cost = plan_time(
                    model, genome, places, evaluations, context=context, memory=memory,
                    batch_size=batch_size,
                )  # fmt: skip
            else:
                cost = _time_oracle(oracle, regions, evaluations, device)
            return {
                "regions": len(regions), "sites": sites, "evaluations": evaluations, **cost,
                "files": files,
            }  # fmt: skip

        loci = None if oracle else open_loci(model.trained, genome, memory, longest=context)

        def rows(skip: int) -> Iterator[bytes]:
            found = _score(model, oracle, genome, regions, context, batch_size, skip, loci)
            return (row.tobytes() for row in found)

        about = {
            "checkpoint": model.digest, "label": label,
            "context": None if oracle else context or model.config.data.seq_len,
            **name_memory(loci),
        }  # fmt: skip
        identity = identify_genome(genome)
        request = {"ism": about, "genome": identity, "regions": name_regions(regions)}
        kept = gather_rows(target, request, sites, rows, "sites")
        maps = _split(regions, kept, unit, oracle)
        score = describe_score(oracle, label)
        told = {
            "model": str(run), **about, "genes": None if genes is None else str(genes),
            "score": score, "unit": find_unit(oracle, unit), "sites": sites,
            "scored": sum(int((one.columns >= 0).sum()) for one in regions),
            "evaluations": evaluations,
        }  # fmt: skip
        return finish_map(
            target, lambda: _write(target, maps, told, drawn), told, sequences=sequences,
            genome=identity, regions=regions, device=device, began=began,
        )  # fmt: skip


def open_oracle(
    model: Model,
    regions: Sequence[MapRegion],
    label: str | None,
    context: int | None,
    batch_size: int,
    memory: str | None,
) -> FittedOracle | None:
    """The oracle of a fine-tuned model; None for a run, whose own score is taken.

    Raises `UsageError` for options of the other kind of model.
    """
    from genodiff.api.finetuned import FinetunedModel
    from genodiff.finetuning.oracle import FittedOracle
    from genodiff.scoring.variant_scores import check_model

    if not isinstance(model, FinetunedModel):
        check_model(model.trained)
        if label is not None:
            raise UsageError("--label is of a fine-tuned model", fix="leave it out")
        return None
    if context is not None:
        what = "a fine-tuned model reads the region by itself, without context"
        raise UsageError(what, fix="leave --context out, and give a longer region")
    if memory == "on":
        what = "a fine-tuned model has no memory of a training genome"
        raise UsageError(what, fix="leave --memory out")
    oracle = FittedOracle(model.fitted, label, batch_size=batch_size)
    oracle.check([len(one.letters) for one in regions])
    return oracle


def _time_oracle(
    oracle: FittedOracle, regions: Sequence[MapRegion], evaluations: int, device: str
) -> dict[str, Any]:
    from genodiff.scoring.plan_time import time_steps

    some = [one.letters.encode() for one in regions[:8]]
    each = time_steps(lambda: len(oracle(some))) if some else 0.0
    return {"seconds": round(evaluations * each, 1), "device": device}


def find_unit(oracle: FittedOracle | None, unit: str) -> str:
    """The unit of the scores: of a regression that of its labels."""
    return "label" if oracle is not None and oracle.is_regression else unit


def describe_score(oracle: FittedOracle | None, label: str | None) -> str:
    """What a score is, in words."""
    if oracle is None:
        return str(_WORDS[None])
    return _WORDS["regression" if oracle.is_regression else "class"].format(label)


def map_saturation(
    model: Model,
    sequences: Any,
    *,
    bed: str | Path | None,
    region: Sequence[str],
    label: str | None,
    context: int | None,
    unit: str,
    memory: str | None,
    batch_size: int,
) -> list[SaturationMap]:
    """What `genodiff.Model.ism` gives, for each region."""
    check_map_options(unit, context, batch_size)
    from genodiff.runs.own_loci import open_loci
    from genodiff.scoring.map_regions import list_map_regions, open_contigs
    from genodiff.scoring.saturation import LONGEST

    with open_contigs(sequences) as genome:
        regions = list_map_regions(genome, region, bed, longest=LONGEST)
        oracle = open_oracle(model, regions, label, context, batch_size, memory)
        loci = None if oracle else open_loci(model.trained, genome, memory, longest=context)
        rows = _score(model, oracle, genome, regions, context, batch_size, 0, loci)
        return _split(regions, [row.tobytes() for row in rows], unit, oracle)


def _score(
    model: Model,
    oracle: FittedOracle | None,
    genome: Contigs,
    regions: Sequence[MapRegion],
    context: int | None,
    batch_size: int,
    skip: int,
    loci: OwnLoci | None,
) -> Iterator[NDArray[np.float64]]:
    from genodiff.scoring.saturation import score_oracle, score_saturation

    if oracle is not None:
        return score_oracle(oracle, regions, skip=skip)
    return score_saturation(
        model.trained, genome, regions, context=context, batch_size=batch_size, skip=skip,
        loci=loci,
    )  # fmt: skip


def _split(
    regions: Sequence[MapRegion], rows: Sequence[bytes], unit: str, oracle: FittedOracle | None
) -> list[SaturationMap]:
    import numpy as np

    from genodiff.scoring.map_files import SaturationMap

    scores = np.frombuffer(b"".join(rows)).reshape(-1, 4)
    scale = math.log(2) if find_unit(oracle, unit) == "bits" else 1.0
    maps, at = [], 0
    for one in regions:
        n = len(one.letters)
        maps.append(SaturationMap(one, scores[at : at + n].T / scale))
        at += n
    return maps


def _write(
    target: MapTarget,
    maps: Sequence[SaturationMap],
    told: dict[str, Any],
    genes: Sequence[Sequence[Gene]],
) -> None:
    from genodiff.scoring.map_files import (
        make_saturation_frame,
        stack_saturation,
        write_arrays,
        write_frame,
    )

    if target.ending == ".npz":
        write_arrays(target.path, stack_saturation(maps))
    elif target.ending in (".tsv", ".parquet"):
        write_frame(target.path, make_saturation_frame(maps))
    else:
        from genodiff.reports.ism_page import list_ism_picture, render_ism_page

        write_drawn(target, maps, told, genes, picture=list_ism_picture, page=render_ism_page)
