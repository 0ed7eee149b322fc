"""Shards of scores, embeddings or an evaluation put together: `genodiff.merge`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.errors import UsageError
from genodiff.io.target import (
    check_new_folder,
    check_target,
    describe_file,
    is_stream,
    read_json_object,
    set_aside,
)
from genodiff.scoring.track_format import HOLDS
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.jobs.shards import ShardFile


def merge(shards: Sequence[str | Path], *, out: str | Path, force: bool = False) -> dict[str, Any]:
    """Write the shards of `score`, `embed`, `eval` or `tracks` as one; what its sidecar says.

    `out` has the bytes of a run without shards. `shards` may stand in any order; each has its
    sidecar beside it. "-" is stdout, for text. Of an evaluation `out` is JSON, it is added to
    RUN/eval.json too, and it is what is returned. Of tracks it is a folder. Raises
    `DataError` where one is missing, of another request, or was changed; `UsageError`,
    `MachineError`.
    """
    target = str(out)
    if _are_tracks(shards):
        from genodiff.jobs.shards import open_shards
        from genodiff.maps.track_folder import merge_tracks

        return merge_tracks(open_shards(shards), target, force=force)
    if not target.endswith(".zarr"):
        check_target(target, force=force, inputs=shards)
    if not is_stream(target):
        check_target(f"{target}.json", force=force, inputs=shards)
    from genodiff.io import atomic
    from genodiff.io.faidx import Genome
    from genodiff.io.identity import stamp_time
    from genodiff.jobs.shards import open_shards
    from genodiff.variants.merge import (
        join_frames,
        join_lines,
        join_tallies,
    )
    from genodiff.variants.output import (
        SortedWatch,
        find_output_form,
        write_frame,
        write_index,
        write_lines,
    )

    parts = open_shards(shards)
    if "holds" in parts[0].told:
        from genodiff.api.eval_shard import merge_evaluation

        return merge_evaluation(parts, target)
    if "axes" in parts[0].told:
        return _merge_embeddings(parts, target, force)
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


def _are_tracks(shards: Sequence[str | Path]) -> bool:
    """Whether the first shard is one of `genodiff tracks`."""
    return any(read_json_object(f"{one}.json").get("holds") == HOLDS for one in shards[:1])


def _merge_embeddings(parts: list[ShardFile], target: str, force: bool) -> dict[str, Any]:
    from genodiff.io import atomic
    from genodiff.io.identity import stamp_time
    from genodiff.scoring.embedding_format import find_embedding_format
    from genodiff.scoring.embedding_merge import join_embeddings

    told, out = parts[0].told, Path(target)
    kind = find_embedding_format(out)
    if kind != f".{told['format']}":
        what = f"the shards are {told['format']}, and the output is {kind}"
        raise UsageError(what, file=target, fix=f"give a name that ends in .{told['format']}")
    if kind == ".zarr":
        check_new_folder(out, force=force)
        set_aside(out)
    written = join_embeddings(out, [one.path for one in parts], told, told["format"])
    summary = {
        **told, "genodiff": __version__, "out": target, "windows": written.windows,
        "bases": sum(one.told["bases"] for one in parts), "shape": list(written.shape),
        "shard": None, "cut": None, "shards": [one.path for one in parts], "argv": sys.argv,
        "seconds": round(sum(one.told["seconds"] for one in parts), 3), "created": stamp_time(),
        **({} if kind == ".zarr" else {"file": describe_file(out)}),
    }  # fmt: skip
    atomic.write_json(f"{target}.json", summary)
    return summary
