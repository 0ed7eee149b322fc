"""Shards of scored variants put together: the bytes of a run without shards."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from genodiff.errors import UsageError
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.input_file import open_input
from genodiff.io.target import describe_file, is_stream
from genodiff.io.text_lines import split_lines
from genodiff.jobs.shards import ShardFile, describe_merge
from genodiff.variants.output import SortedWatch, import_pysam, write_frame, write_lines
from genodiff.variants.request import find_ending


def merge_scores(parts: Sequence[ShardFile], out: str) -> dict[str, Any]:
    """Write the scores of all shards; what the sidecar says.

    Raises `UsageError` for another format, `MachineError`.
    """
    told = parts[0].told
    kind = str(told["format"]).removesuffix(".gz")
    ending = find_ending(out) or (f".{kind}" if out == "-" else "")
    if ending.removesuffix(".gz") != f".{kind}" or (out == "-" and kind == "parquet"):
        what = (
            f"the shards are {kind}, and the output is {'stdout' if out == '-' else ending or out}"
        )
        raise UsageError(what, file=out, fix=f"give a name that ends in .{kind}")
    indexed = False
    if kind == "parquet":
        files = [find_plain_path(one.path) for one in parts]
        write_frame(out, pl.concat([pl.scan_parquet(one) for one in files]))
    else:
        watch = SortedWatch()
        if ending.endswith(".gz"):
            import_pysam(out)
        write_lines(out, join_lines(parts, kind, watch), ending)
        if ending.endswith(".gz"):
            with Genome(told["fasta"]["path"]) as genome:
                indexed = watch.index(out, ending, genome)
    said = {
        **told, **describe_merge(parts, out), "format": ending[1:],
        "cut": [0, parts[-1].told["cut"][1]], **join_tallies([one.told for one in parts]),
        "indexed": indexed,
    }  # fmt: skip
    if not is_stream(out):
        said["file"] = describe_file(out)
        atomic.write_json(f"{out}.json", said)
    return said


def join_lines(shards: Sequence[ShardFile], kind: str, watch: SortedWatch) -> Iterator[str]:
    """The lines of all shards, the header once; `watch` sees each record's place."""
    places = kind in ("vcf", "tsv")
    for number, shard in enumerate(shards):
        with open_input(shard.path) as source:
            for _, line in split_lines(source.blocks(), kind, source.shown):
                if line.startswith("#"):
                    if number == 0:
                        yield line
                    continue
                if places:
                    chrom, pos, _ = line.split("\t", 2)
                    watch.note(chrom, int(pos))
                yield line


def join_tallies(told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The counts of all shards, by what their sidecars say."""
    found = _add_up(told, "records", "scored", "evaluations")
    if parts := [one["haplotypes"] for one in told if "haplotypes" in one]:
        sums = _add_up(parts, "alleles", "scored", "joint", "evaluations")
        found["haplotypes"] = {**parts[0], **sums}
    drawn = [one["background"] for one in told if one.get("background")]
    classes: dict[str, Any] = {}
    for name, one in (item for some in drawn for item in some["classes"].items()):
        known = classes.setdefault(name, one)
        rare = {**known.get("rare", {}), **one.get("rare", {})}
        classes[name] = {**known, "rare": dict(sorted(rare.items()))}
    background = {**drawn[0], "classes": dict(sorted(classes.items()))} if drawn else None
    return {**found, "background": background}


def _add_up(told: Sequence[Mapping[str, Any]], *keys: str) -> dict[str, Any]:
    """The sums of these counts, and of those by reason of what is unscored."""
    unscored: Counter[str] = Counter()
    for one in told:
        unscored.update(one["unscored"])
    sums = {key: sum(one[key] for one in told) for key in keys}
    return {**sums, "unscored": dict(sorted(unscored.items()))}
