"""Shards of scores, embeddings, tracks or an evaluation put together: `genodiff.merge`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.conservation.request import HOLDS as CONSTRAINT
from genodiff.errors import UsageError
from genodiff.finetuning.prediction_format import LABELS
from genodiff.io.target import (
    check_new_folder,
    check_target,
    describe_file,
    is_stream,
    read_json_object,
    set_aside,
)
from genodiff.maps.track_format import HOLDS

if TYPE_CHECKING:
    from genodiff.jobs.shards import ShardFile


def merge(shards: Sequence[str | Path], *, out: str | Path, force: bool = False) -> dict[str, Any]:
    """Write shards of `score`, `embed`, `eval`, `tracks`, `predict` as one; what its sidecar says.

    `out` has the bytes of a run without shards. `shards` may stand in any order; each has its
    sidecar beside it. "-" is stdout, for text. Of an evaluation `out` is JSON, it is added to
    RUN/eval.json too, and it is what is returned. Of tracks it is a folder. Raises
    `DataError` where one is missing, of another request, or was changed; `UsageError`,
    `MachineError`.
    """
    from genodiff.jobs.shards import open_shards

    target = str(out)
    if any(read_json_object(f"{one}.json").get("holds") == HOLDS for one in shards[:1]):
        from genodiff.maps.track_folder import merge_tracks

        return merge_tracks(open_shards(shards), target, force=force)
    if any(read_json_object(f"{one}.json").get("holds") == CONSTRAINT for one in shards[:1]):
        from genodiff.conservation.job import merge_constraint

        return merge_constraint(open_shards(shards), target, force=force)
    if any(read_json_object(f"{one}.json").get("holds") == LABELS for one in shards[:1]):
        from genodiff.finetuning.base_predict_job import merge_bases

        return merge_bases(open_shards(shards), target, force=force)
    if not target.endswith(".zarr"):
        check_target(target, force=force, inputs=shards)
    if not is_stream(target):
        check_target(f"{target}.json", force=force, inputs=shards)
    parts = open_shards(shards)
    if "holds" in parts[0].told:
        from genodiff.evaluation.eval_shards import merge_evaluation

        return merge_evaluation(parts, target)
    if "axes" in parts[0].told:
        return _merge_embeddings(parts, target, force)
    from genodiff.variants.merge import merge_scores

    return merge_scores(parts, target)


def _merge_embeddings(parts: list[ShardFile], target: str, force: bool) -> dict[str, Any]:
    from genodiff.embedding.embedding_format import find_embedding_format
    from genodiff.embedding.embedding_merge import join_embeddings
    from genodiff.io import atomic
    from genodiff.jobs.shards import describe_merge

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
        **told, **describe_merge(parts, target), "windows": written.windows,
        "bases": sum(one.told["bases"] for one in parts), "shape": list(written.shape),
        "cut": None, **({} if kind == ".zarr" else {"file": describe_file(out)}),
    }  # fmt: skip
    atomic.write_json(f"{target}.json", summary)
    return summary
