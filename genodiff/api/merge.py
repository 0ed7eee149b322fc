"""Shards of scored variants put together: `genodiff.merge`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genodiff import __version__
from genodiff.errors import UsageError
from genodiff.io.target import check_target, is_stream


def merge(shards: Sequence[str | Path], *, out: str | Path, force: bool = False) -> dict[str, Any]:
    """Write the outputs of `genodiff score --shard i/n` as one file; what its sidecar says.

    `out` has the bytes of a run without shards. `shards` may stand in any order; each has its
    sidecar beside it. "-" is stdout, for text. Raises `DataError` where one is missing, of another
    request, or was changed; `UsageError`, `MachineError`.
    """
    target = str(out)
    check_target(target, force=force, inputs=shards)
    if not is_stream(target):
        check_target(f"{target}.json", force=force, inputs=shards)
    from genodiff.io import atomic
    from genodiff.io.faidx import Genome
    from genodiff.io.identity import stamp_time
    from genodiff.scoring.variant_merge import (
        join_frames,
        join_lines,
        join_tallies,
        open_shards,
    )
    from genodiff.scoring.variant_output import (
        SortedWatch,
        find_output_form,
        write_frame,
        write_index,
        write_lines,
    )

    parts = open_shards(shards)
    kind = parts[0].kind
    ending = f".{kind}" if target == "-" else find_output_form(target, "vcf")
    if ending.removesuffix(".gz") != f".{kind}" or (target == "-" and kind == "parquet"):
        what = f"the shards are {kind}, and the output is {'stdout' if target == '-' else ending}"
        raise UsageError(what, file=target, fix=f"give a name that ends in .{kind}")
    indexed = False
    if kind == "parquet":
        file: dict[str, Any] | None = write_frame(target, join_frames(parts))
    else:
        watch = SortedWatch()
        file = write_lines(target, join_lines(parts, watch), ending)
        if file is not None and ending.endswith(".gz") and watch.sorted:
            with Genome(parts[0].told["fasta"]["path"]) as genome:
                write_index(target, max(genome.contigs.values()))
            indexed = True
    told = {
        **parts[0].told, "genodiff": __version__, "out": target, "format": ending[1:],
        "shard": None, "cut": [0, parts[-1].told["cut"][1]], **join_tallies(parts),
        "shards": [one.path for one in parts], "indexed": indexed, "argv": sys.argv,
        "seconds": round(sum(one.told["seconds"] for one in parts), 3), "created": stamp_time(),
    }  # fmt: skip
    if file is not None and not is_stream(target):
        told["file"] = file
        atomic.write_json(f"{target}.json", told)
    return told
