"""Shards of scored variants put together: the bytes of a run without shards."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from genodiff.io.file_names import find_plain_path
from genodiff.io.input_file import open_input
from genodiff.io.text_lines import split_lines
from genodiff.jobs.shards import ShardFile
from genodiff.variants.output import SortedWatch


def join_lines(shards: Sequence[ShardFile], watch: SortedWatch) -> Iterator[str]:
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


def join_frames(shards: Sequence[ShardFile]) -> pl.LazyFrame:
    """The rows of all shards of parquet."""
    return pl.concat([pl.scan_parquet(find_plain_path(shard.path)) for shard in shards])


def join_tallies(shards: Sequence[ShardFile]) -> dict[str, Any]:
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


def _join_haplotypes(shards: Sequence[ShardFile]) -> dict[str, Any]:
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


def _join_backgrounds(shards: Sequence[ShardFile]) -> dict[str, Any] | None:
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
