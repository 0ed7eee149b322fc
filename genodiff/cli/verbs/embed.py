"""Embeddings of DNA windows to .npz, .parquet or .zarr."""

import json as json_module
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from cyclopts import Parameter

from genodiff import __version__
from genodiff.cli.common import Common, whole
from genodiff.errors import UsageError
from genodiff.io import atomic
from genodiff.io.identity import sha256_file, time_stamp
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.runs.model import load_model
from genodiff.scoring.embed import Array, Window, reading, windows_of
from genodiff.scoring.embed import embed as embeddings
from genodiff.scoring.embedding_files import format_of, write_embeddings

_log = logging.getLogger("genodiff")


def embed(
    run: Annotated[Path, Parameter(help="Run folder or checkpoint.")],
    /,
    *,
    fasta: Annotated[
        str,
        Parameter(
            help="FASTA, GenBank or EMBL file, - for stdin; each record is a window unless --bed, "
            "--regions, --features or --window says otherwise."
        ),
    ],
    out: Annotated[Path, Parameter(help="File to write: .npz, .parquet or .zarr.")],
    bed: Annotated[
        str | None, Parameter(help="BED file of windows (its strand column is not applied).")
    ] = None,
    regions: Annotated[
        list[str] | None,
        Parameter(
            help="chr1:1,000-2,000, 1-based and inclusive; may be given several times.", negative=""
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        Parameter(
            help="CDS, or CDS=dnaA: features of a GenBank or EMBL file, by type and name, in their "
            "own direction, with joined parts as one; may be given several times.",
            negative="",
        ),
    ] = None,
    window: Annotated[
        int | None, Parameter(converter=whole, help="Cut into pieces of this many bases.")
    ] = None,
    stride: Annotated[
        int | None,
        Parameter(converter=whole, help="Bases from one piece to the next (default: --window)."),
    ] = None,
    layer: Annotated[
        list[int] | None,
        Parameter(
            help="Layer, 0 (embedding) to n_layer; -1 is the last; may be given "
            "several times [-1].",
            negative="",
        ),
    ] = None,
    pool: Annotated[
        Literal["mean", "max", "center", "none"],
        Parameter(help="Over the bases of a window; none keeps each base."),
    ] = "mean",
    strand: Annotated[
        Literal["average", "forward", "both"],
        Parameter(help="Both strands averaged, the window as it stands, or both apart."),
    ] = "average",
    batch_size: Annotated[
        int,
        Parameter(converter=whole, help="Windows at a time: changes the speed, not the figures."),
    ] = 32,
    plan: Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")] = False,
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Write the embeddings of windows, with their provenance beside them."""
    device = common.apply()
    kind = format_of(out)
    if kind == ".zarr" and out.exists():
        raise UsageError("exists already", file=out, fix="choose another --out or remove it")
    model = load_model(run, device=device)
    how = reading(model.backbone, model.alphabet, layer or [-1], pool, strand)
    shape = how.shape(model.backbone.d_out, model.config.backbone.paired)
    began = time.monotonic()
    windows = windows_of(
        Path(fasta),  # a string of DNA letters would be a sequence
        bed=bed,
        regions=regions or (),
        features=features or (),
        window=window,
        stride=stride,
    )
    if plan:
        _plan(windows, how.pool, shape, out, json)
        return
    found = embeddings(model.backbone, model.alphabet, windows, how, batch_size=batch_size)
    written = write_embeddings(out, _watch(found), how, shape)
    seconds = time.monotonic() - began
    summary = {
        "out": str(out), "format": kind[1:], "windows": written.windows, "bases": written.bases,
        "shape": list(written.shape),
        "axes": how.axes(), "layers": list(how.layers), "pool": pool, "strand": strand,
        "run": str(run), "checkpoint": model.digest,
        "step": model.step, "fasta": _identity(fasta),
        "bed": None if bed is None else _identity(bed), "regions": regions,
        "features": features,
        "window": window, "stride": stride, "genodiff": __version__, "device": _named(device),
        "argv": sys.argv,
        "seconds": round(seconds, 3), "created": time_stamp(),
    }  # fmt: skip
    atomic.write_json(f"{out}.json", summary)
    if json:
        print(json_module.dumps(summary))
    _log.info(
        "%s: %s windows, %s bases in %s",
        out,
        f"{written.windows:,}",
        f"{written.bases:,}",
        format_duration(seconds),
    )


def _plan(
    windows: Iterator[Window], pool: str, shape: tuple[int, ...], out: Path, json: bool
) -> None:
    n = bases = 0
    for window in windows:
        n, bases = n + 1, bases + len(window.letters)
    rows = bases if pool == "none" else n
    size = 4 * rows
    for side in shape:
        size *= side
    found = {
        "windows": n,
        "bases": bases,
        "shape": [rows, *shape],
        "bytes": size,
        "files": [str(out), f"{out}.json"],
    }
    print(
        json_module.dumps(found)
        if json
        else "\n".join(f"{key:<8} {value}" for key, value in found.items())
    )


def _identity(path: str) -> dict[str, Any]:
    return {"path": path, "sha256": None if path == "-" else sha256_file(path)}


def _named(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else device


def _watch(found: Iterator[tuple[Window, Array]]) -> Iterator[tuple[Window, Array]]:
    began, bases = time.monotonic(), 0
    with ProgressDisplay() as display:
        for n, (window, array) in enumerate(found, 1):
            yield window, array
            bases += len(window.letters)
            pace = bases / (time.monotonic() - began)
            display.show(f"embedded {n:,} windows · {pace:,.0f} bases/s")
