"""Shards of scored variants put together: the bytes of a run without shards.

Each shard's sidecar says which request it is part of, its number, and the digest of its file.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from genodiff.errors import DataError, UsageError
from genodiff.io.file_names import find_plain_path
from genodiff.io.input_file import open_input
from genodiff.io.target import is_own_file, read_json_object
from genodiff.io.text_lines import split_lines
from genodiff.scoring.variant_output import SortedWatch


class ScoreShard(NamedTuple):
    """One shard: its file, and what its sidecar says."""

    path: str
    told: dict[str, Any]

    @property
    def kind(self) -> str:
        """vcf, tsv, parquet or jsonl."""
        return str(self.told["format"]).removesuffix(".gz")


def open_shards(paths: Sequence[str | Path]) -> list[ScoreShard]:
    """The shards in their order.

    Raises `DataError` for a file that is no shard or was changed, and where one is missing, there
    twice, or of another request.
    """
    shards = [_open_shard(str(path)) for path in paths]
    if not shards:
        raise UsageError("no shards", fix="give the outputs of --shard i/n")
    first = shards[0]
    for one in shards[1:]:
        for key, what in (("request", "request"), ("format", "format")):
            if one.told[key] != first.told[key]:
                fix = "give the shards of one request, each with the same settings"
                raise DataError(f"is of another {what} than {first.path}", file=one.path, fix=fix)
    of = first.told["shard"][1]
    numbers = Counter(one.told["shard"][0] for one in shards)
    missing = [str(i) for i in range(1, of + 1) if not numbers[i]]
    twice = [str(i) for i, n in numbers.items() if n > 1]
    if missing or twice:
        what = f"shards {', '.join(missing)} of {of} are missing" if missing else ""
        what = what or f"shards {', '.join(twice)} are there more than once"
        raise DataError(what, file=first.path, fix=f"give each of 1/{of} to {of}/{of} once")
    return sorted(shards, key=lambda one: one.told["shard"][0])


def _open_shard(path: str) -> ScoreShard:
    told = read_json_object(f"{path}.json")
    shard = told.get("shard")
    if not isinstance(shard, list) or "request" not in told or "format" not in told:
        what = "is no shard" if Path(path).exists() else "no such file"
        raise DataError(
            what, file=path, fix="give outputs of genodiff score, embed, eval or tracks --shard i/n"
        )
    if not Path(path).is_dir() and not is_own_file(path):
        raise DataError("was changed since it was written", file=path, fix="make it again")
    return ScoreShard(path, told)


def join_lines(shards: Sequence[ScoreShard], watch: SortedWatch) -> Iterator[str]:
    """The lines of all shards, the header once; `watch` sees each record's place."""
    places = shards[0].kind in ("vcf", "tsv")
    for number, shard in enumerate(shards):
        with open_input(shard.path) as source:
            for _, line in split_lines(source.blocks(), shard.kind, source.shown):
                if line.startswith("#"):
                    if number == 0:
                        yield line
                    continue
                if places:
                    chrom, pos, _ = line.split("\t", 2)
                    watch.note(chrom, int(pos))
                yield line


def join_frames(shards: Sequence[ScoreShard]) -> pl.LazyFrame:
    """The rows of all shards of parquet."""
    return pl.concat([pl.scan_parquet(find_plain_path(shard.path)) for shard in shards])


def join_tallies(shards: Sequence[ScoreShard]) -> dict[str, Any]:
    """The counts of all shards."""
    unscored: Counter[str] = Counter()
    for shard in shards:
        unscored.update(shard.told["unscored"])
    sums = {key: sum(s.told[key] for s in shards) for key in ("records", "scored", "evaluations")}
    return {
        **sums,
        "unscored": dict(sorted(unscored.items())),
        **_join_haplotypes(shards),
        "background": _join_backgrounds(shards),
    }


def _join_haplotypes(shards: Sequence[ScoreShard]) -> dict[str, Any]:
    told = [one.told["haplotypes"] for one in shards if "haplotypes" in one.told]
    if not told:
        return {}
    unscored: Counter[str] = Counter()
    for one in told:
        unscored.update(one["unscored"])
    sums = {key: sum(one[key] for one in told)
            for key in ("alleles", "scored", "joint", "evaluations")}  # fmt: skip
    return {
        "haplotypes": {**told[0], **sums, "unscored": dict(sorted(unscored.items()))},
    }


def _join_backgrounds(shards: Sequence[ScoreShard]) -> dict[str, Any] | None:
    """The random variants of all shards; each has those of its own records."""
    told = [one.told.get("background") for one in shards]
    if not told[0]:
        return None
    classes: dict[str, Any] = {}
    for name, one in (
        (name, one) for some in told if some for name, one in some["classes"].items()
    ):
        known = classes.setdefault(name, one)
        rare = {**known.get("rare", {}), **one.get("rare", {})}
        classes[name] = {**known, "rare": dict(sorted(rare.items()))}
    return {**told[0], "classes": dict(sorted(classes.items()))}
