"""Embeddings of DNA windows in a file: `genodiff.embed`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff import __version__
from genodiff.api.machine import choose_device
from genodiff.io.target import check_new_folder, check_target, describe_file, set_aside
from genodiff.scoring.embedding_format import find_embedding_format

if TYPE_CHECKING:
    from genodiff.io.progress import ProgressDisplay
    from genodiff.scoring.embed import Window

Pool = Literal["mean", "max", "center", "none"]
Strand = Literal["average", "forward", "both"]


def embed(
    run: str | Path,
    sequences: Any,
    *,
    out: str | Path,
    bed: str | Path | None = None,
    regions: Sequence[str] = (),
    features: Sequence[str] = (),
    window: int | None = None,
    stride: int | None = None,
    layer: int | Sequence[int] = -1,
    pool: Pool = "mean",
    strand: Strand = "average",
    batch_size: int = 32,
    device: str = "auto",
    plan: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write the embeddings of windows to `out`, streamed; what was written, as plain values.

    `run` is a run, a checkpoint or a published folder. `sequences` are strings, `SeqRecord`s or a
    FASTA, GenBank or EMBL file ("-" is stdin): each record is a window, unless `bed`, `regions`
    (chr1:1,000-2,000, 1-based and inclusive) or `features` (CDS, or CDS=dnaA) say otherwise.
    `window` cuts into pieces of so many bases, one every `stride`. `layer`, `pool` and `strand` are
    those of `genodiff.Model.embed`, which gives arrays in memory.

    `out` ends in .npz, .parquet or .zarr; OUT.json beside it says where it comes from, and that is
    what is returned. Values do not depend on the batch size. With `plan` nothing is computed or
    written, and windows, bases, shape and bytes are returned. `force` replaces a file that genodiff
    did not write. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.
    """
    out = Path(out)
    kind = find_embedding_format(out)
    inputs = (bed, sequences if isinstance(sequences, str | Path) else None)
    if kind == ".zarr":
        check_new_folder(out, force=force)
    else:
        check_target(out, force=force, inputs=inputs)
    check_target(f"{out}.json", force=force, inputs=inputs)
    device = choose_device(device)
    from genodiff.api.load import load
    from genodiff.io import atomic
    from genodiff.io.identity import stamp_time
    from genodiff.io.progress import ProgressDisplay
    from genodiff.scoring.embed import cut_windows, make_reading
    from genodiff.scoring.embed import embed as embeddings
    from genodiff.scoring.embedding_files import write_embeddings

    model = load(run, device=device)
    step = model.step  # refused here of a fine-tuned model, before anything is written
    network = model.network.backbone
    layers = [layer] if isinstance(layer, int) else list(layer)
    how = make_reading(network, model.alphabet, layers, pool, strand)
    shape = how.shape(network.d_out, network.paired)
    began = time.monotonic()
    windows = cut_windows(
        sequences, bed=bed, regions=regions, features=features, window=window, stride=stride
    )
    if plan:
        return _count_windows(windows, how.pool, shape, out)
    if kind == ".zarr":
        set_aside(out)
    with ProgressDisplay() as display:
        tick = _ticker(display)
        found = embeddings(network, model.alphabet, windows, how, batch_size=batch_size, tick=tick)
        written = write_embeddings(out, found, how, shape)
    summary = {
        "out": str(out), "format": kind[1:], "windows": written.windows, "bases": written.bases,
        "shape": list(written.shape),
        "axes": how.axes(), "layers": list(how.layers), "pool": pool, "strand": strand,
        "run": str(run), "checkpoint": model.digest,
        "step": step, "fasta": _identity(sequences),
        "bed": None if bed is None else _identity(Path(bed)), "regions": list(regions) or None,
        "features": list(features) or None,
        "window": window, "stride": stride, "genodiff": __version__, "device": _name_of(device),
        "argv": sys.argv,
        "seconds": round(time.monotonic() - began, 3), "created": stamp_time(),
        **({} if kind == ".zarr" else {"file": describe_file(out)}),
    }  # fmt: skip
    atomic.write_json(f"{out}.json", summary)
    return summary


def _ticker(display: ProgressDisplay) -> Callable[[int, int], None]:
    began, windows, bases = time.monotonic(), 0, 0

    def tick(more_windows: int, more_bases: int) -> None:
        nonlocal windows, bases
        windows, bases = windows + more_windows, bases + more_bases
        pace = bases / (time.monotonic() - began)
        display.show(f"embedded {windows:,} windows · {pace:,.0f} bases/s")

    return tick


def _count_windows(
    windows: Iterable[Window], pool: str, shape: tuple[int, ...], out: Path
) -> dict[str, Any]:
    n = bases = 0
    for window in windows:
        n, bases = n + 1, bases + len(window.letters)
    rows = bases if pool == "none" else n
    size = 4 * rows
    for side in shape:
        size *= side
    return {
        "windows": n,
        "bases": bases,
        "shape": [rows, *shape],
        "bytes": size,
        "files": [str(out), f"{out}.json"],
    }


def _identity(given: Any) -> dict[str, Any] | None:
    """A file's name and hash; None for sequences in memory."""
    from genodiff.io.identity import sha256_file
    from genodiff.io.sequences import is_file

    if not is_file(given):
        return None
    path = str(given)
    return {"path": path, "sha256": None if path == "-" else sha256_file(path)}


def _name_of(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
