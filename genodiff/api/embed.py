"""Embeddings of DNA windows in a file: `genodiff.embed`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.errors import UsageError
from genodiff.io.counts import format_count
from genodiff.io.target import check_new_folder, check_target, describe_file, set_aside
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_run
from genodiff.scoring.embedding_format import find_embedding_format
from genodiff.scoring.variant_request import Shard, parse_shard
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.alphabet import Alphabet
    from genodiff.backbones.backbone import Backbone
    from genodiff.io.progress import ProgressDisplay
    from genodiff.scoring.embed import Array, Reading, Window

Pool = Literal["mean", "max", "center", "none"]
Strand = Literal["average", "forward", "both"]


@own_defaults()
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
    shard: str | None = None,
    device: str = "auto",
    plan: bool = False,
    fresh: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write the embeddings of windows to `out`, streamed; what was written, as plain values.

    `run` is a run, a checkpoint or a published folder. `sequences` are strings, `SeqRecord`s or a
    FASTA, GenBank or EMBL file ("-" is stdin): each record is a window, unless `bed`, `regions`
    (chr1:1,000-2,000, 1-based and inclusive) or `features` (CDS, or CDS=dnaA) say otherwise. A row
    of `bed` on - is read as its reverse complement, and so is a feature; with `features`, `bed` is
    GTF or GFF3. `window` cuts into pieces of so many bases, one every `stride`. `layer`, `pool` and
    `strand` are those of `genodiff.Model.embed`, which gives arrays in memory.

    `out` ends in .npz, .parquet or .zarr; OUT.json beside it says where it comes from, and that is
    what is returned. With `shard`, "i/n", the i-th of n parts of the windows is written, and
    `genodiff.merge` puts the parts together. Of a file, what is done is kept in OUT.partial, and
    the same call goes on after it; `fresh` starts anew. Values do not depend on the batch size.
    With `plan` nothing is computed or written, and windows, bases, shape and bytes are returned.
    `force` replaces a file that genodiff did not write. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.
    """
    part = None if shard is None else parse_shard(shard)
    out = Path(out)
    kind = find_embedding_format(out)
    inputs = (bed, sequences if isinstance(sequences, str | Path) else None)
    if kind == ".zarr":
        check_new_folder(out, force=force)
    else:
        check_target(out, force=force, inputs=inputs)
    check_target(f"{out}.json", force=force, inputs=inputs)
    run, device = check_run(run), choose_device(device)
    from genodiff.io import atomic
    from genodiff.io.identity import sha256_json, stamp_time
    from genodiff.io.partial_output import SUFFIX
    from genodiff.io.progress import ProgressDisplay
    from genodiff.io.sequences import is_file
    from genodiff.jobs.journal import Journal
    from genodiff.kernels.allocator import keep_freed_memory
    from genodiff.models.opening import open_language
    from genodiff.scoring.embed import cut_windows, make_reading
    from genodiff.scoring.embed import embed as embeddings
    from genodiff.scoring.embedding_files import write_embeddings

    model = open_language(run, device)
    network = model.backbone
    layers = [layer] if isinstance(layer, int) else list(layer)
    how = make_reading(network, model.alphabet, layers, pool, strand)
    shape = how.shape(network.d_out, network.paired)
    began = time.monotonic()

    def cut_all() -> Iterator[Window]:
        return cut_windows(
            sequences, bed=bed, regions=regions, features=features, window=window, stride=stride
        )

    cut = None if part is None else _cut_shard(cut_all, part, sequences)

    def windows() -> Iterator[Window]:
        return cut_all() if cut is None else islice(cut_all(), *cut)

    if plan:
        rest = windows()
        some = list(_take_some(rest, batch_size))
        each = _time_base(some, network, model.alphabet, how, batch_size)
        told = _count_windows(chain(some, rest), how.pool, shape, out)
        files = told.pop("files")
        cost = {"seconds": round(told["bases"] * each, 1), "device": _name_of(device)}
        return {**told, **cost, "files": files}
    files = {"fasta": _identity(sequences), "bed": None if bed is None else _identity(Path(bed))}
    request = {
        "checkpoint": model.digest, "regions": list(regions), "features": list(features),
        "window": window, "stride": stride, "layers": list(how.layers), "pool": pool,
        "strand": strand, "format": kind[1:], "version": __version__,
        **{name: one and one["sha256"] for name, one in files.items()},
    }  # fmt: skip
    keep_freed_memory()
    with ExitStack() as stack:
        tick = _ticker(stack.enter_context(ProgressDisplay()))

        def read(some: Iterable[Window]) -> Iterator[tuple[Window, Array]]:
            return embeddings(network, model.alphabet, some, how, batch_size=batch_size, tick=tick)

        journal = None
        if is_file(sequences) and str(sequences) != "-":
            journal = Journal(f"{out}{SUFFIX}", sha256_json({**request, "cut": cut}))
            journal.check(fresh=fresh, force=force)
            if fresh:
                journal.start_anew()
            stack.callback(journal.close)
            for _, row in read(islice(windows(), journal.kept, None)):
                journal.append(row.tobytes())
            found = _read_journal(windows(), journal.rows(), shape, pool == "none")
        else:
            found = read(windows())
        if kind == ".zarr":
            set_aside(out)
        written = write_embeddings(out, found, how, shape)
    summary = {
        "out": str(out), "format": kind[1:], "windows": written.windows, "bases": written.bases,
        "shape": list(written.shape),
        "axes": how.axes(), "layers": list(how.layers), "pool": pool, "strand": strand,
        "run": str(run), "checkpoint": model.digest,
        "step": model.step, **files, "regions": list(regions) or None,
        "features": list(features) or None,
        "window": window, "stride": stride, "shard": None if part is None else list(part),
        "cut": cut and list(cut), "request": sha256_json(request),
        "genodiff": __version__, "device": _name_of(device),
        "argv": sys.argv,
        "seconds": round(time.monotonic() - began, 3), "created": stamp_time(),
        **({} if kind == ".zarr" else {"file": describe_file(out)}),
    }  # fmt: skip
    atomic.write_json(f"{out}.json", summary)
    if journal is not None:
        journal.remove()
    return summary


def _cut_shard(
    windows: Callable[[], Iterator[Window]], part: Shard, sequences: Any
) -> tuple[int, int]:
    """First and last + 1 of a shard's windows. Raises `UsageError` where it has none."""
    if str(sequences) == "-":
        raise UsageError("--shard needs a file, not a stream", fix="give the file itself")
    n = sum(1 for _ in windows())
    first, last = part.cut(n)
    if first == last:
        what = f"--shard {part.number}/{part.of} has none of {format_count(n, 'window')}"
        raise UsageError(what, fix="give fewer shards")
    return first, last


def _read_journal(
    windows: Iterator[Window], rows: Iterator[bytes], shape: tuple[int, ...], unpooled: bool
) -> Iterator[tuple[Window, Array]]:
    import numpy as np

    for window, row in zip(windows, rows, strict=True):
        numbers = np.frombuffer(row, np.float32)
        yield window, numbers.reshape(*((len(window.letters),) if unpooled else ()), *shape)


def _ticker(display: ProgressDisplay) -> Callable[[int, int], None]:
    began, windows, bases = time.monotonic(), 0, 0

    def tick(more_windows: int, more_bases: int) -> None:
        nonlocal windows, bases
        windows, bases = windows + more_windows, bases + more_bases
        pace = bases / (time.monotonic() - began)
        display.show(f"embedded {format_count(windows, 'window')} · {pace:,.0f} bases/s")

    return tick


def _take_some(windows: Iterator[Window], most: int) -> Iterator[Window]:
    """The first windows, to measure the time with."""
    from genodiff.scoring.plan_time import PROBE

    bases = 0
    for window in islice(windows, most):
        yield window
        bases += len(window.letters)
        if bases >= PROBE:
            return


def _time_base(
    some: Sequence[Window], network: Backbone, alphabet: Alphabet, how: Reading, batch_size: int
) -> float:
    """Seconds of a base: about a second of the work is measured."""
    from genodiff.scoring.embed import embed as embeddings
    from genodiff.scoring.plan_time import time_steps

    def step() -> int:
        read = embeddings(network, alphabet, some, how, batch_size=batch_size)
        return sum(len(window.letters) for window, _ in read)

    return time_steps(step) if some else 0.0


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
