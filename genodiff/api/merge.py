"""Shards of scores, embeddings, tracks or an evaluation put together: `genodiff.merge`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.conservation.request import ALIGNED
from genodiff.conservation.request import HOLDS as CONSTRAINT
from genodiff.errors import UsageError
from genodiff.finetuning.predict_request import LABELS
from genodiff.io.target import check_target, describe_file, is_stream, read_json_object
from genodiff.jobs.options import OUT, Force
from genodiff.jobs.request import Option, Request, find_named
from genodiff.jobs.shards import ShardFile
from genodiff.jobs.verbs import verb
from genodiff.maps.track_format import HOLDS

_MERGED: dict[object, str] = {
    HOLDS: "genodiff.maps.tracks:merge_tracks",
    ALIGNED: "genodiff.conservation.align_job:merge_alignment",
    CONSTRAINT: "genodiff.conservation.job:merge_constraint",
    LABELS: "genodiff.finetuning.base_predict_job:merge_bases",
}
"""What puts the shards of a kind together, by what their sidecars say that they hold."""


@verb(
    "merge",
    help="""
Merge the outputs of `--shard i/n` into the bytes of a run without shards.

Shards of `genodiff score`, `embed`, `eval`, `tracks` or, for a model that labels bases, `predict`.
An evaluation is written as JSON, and added to RUN/eval.json. Tracks become a folder.
""",
)
@dataclass(frozen=True, kw_only=True)
class MergeRequest(Request[dict[str, Any]]):
    """Merge shards of `score`, `embed`, `eval`, `tracks` or `predict`; returns the sidecar.

    `out` has the bytes of a run without shards. `shards` may be in any order; each has its sidecar
    beside it. "-" is stdout, for text. For an evaluation, `out` is JSON, the result is also added
    to RUN/eval.json, and is returned. For tracks, `out` is a folder. Raises `DataError` if a shard
    is missing, belongs to another request, or was changed; `UsageError`, `MachineError`.
    """

    holds: ClassVar[str] = "scores"

    shards: Annotated[
        Sequence[str | Path],
        Option("The shards, in any order, each with its sidecar.", ("--shards",), is_word=True),
    ] = field(default=(), kw_only=False)
    out: Annotated[
        str | Path,
        Option("Output file, in the format of the shards, - for stdout; for tracks a folder.", OUT),
    ]
    force: Force = False

    def answer(self, *given: Any) -> dict[str, Any]:
        from genodiff.jobs.shards import open_shards

        shards, target, force = self.shards, str(self.out), self.force
        held = next((read_json_object(f"{one}.json").get("holds") for one in shards[:1]), None)
        if held in _MERGED:
            merged: dict[str, Any] = find_named(_MERGED[held])(
                open_shards(shards), target, force=force
            )
            return merged
        check_target(target, force=force, inputs=shards)
        if not is_stream(target):
            check_target(f"{target}.json", force=force, inputs=shards)
        parts = open_shards(shards)
        if "holds" in parts[0].told:
            from genodiff.evaluation.evaluate import merge_evaluation

            return merge_evaluation(parts, target)
        if "axes" in parts[0].told:
            return _merge_embeddings(parts, target)
        from genodiff.variants.merge import merge_scores

        return merge_scores(parts, target)

    def conclude(self, answer: Any) -> str:
        noun = next(one for one in ("records", "windows", "bases") if one in answer)
        return f"{self.out}: {answer[noun]:,} {noun} of {len(self.shards)} shards"


def _merge_embeddings(parts: list[ShardFile], target: str) -> dict[str, Any]:
    from genodiff.embedding.embedding_files import join_embeddings
    from genodiff.embedding.request import find_embedding_format
    from genodiff.io import atomic
    from genodiff.jobs.shards import describe_merge

    told, out = parts[0].told, Path(target)
    kind = find_embedding_format(out)
    if kind != f".{told['format']}":
        what = f"the shards are {told['format']}, and the output is {kind}"
        raise UsageError(what, file=target, fix=f"give a name that ends in .{told['format']}")
    written = join_embeddings(out, [one.path for one in parts], told, told["format"])
    summary = {
        **told, **describe_merge(parts, target), "windows": written.windows,
        "bases": sum(one.told["bases"] for one in parts), "shape": list(written.shape),
        "cut": None, "file": describe_file(out),
    }  # fmt: skip
    atomic.write_json(f"{target}.json", summary)
    return summary
