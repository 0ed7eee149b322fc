"""Parts of a request that are done apart, and their files as they are put together.

Each shard's sidecar says which request it is part of, its number, and the digest of its file.
"""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import DataError, UsageError
from genodiff.io.file_kinds import stamp_time
from genodiff.io.target import is_own_file, read_json_object
from genodiff.version import __version__

_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class Shard(NamedTuple):
    """Part `number` of `of`, from 1."""

    number: int
    of: int

    def cut(self, records: int) -> tuple[int, int]:
        """First and last + 1 of the records that it has, of so many."""
        return records * (self.number - 1) // self.of, records * self.number // self.of


def parse_shard(text: str) -> Shard:
    """`i/n` as a `Shard`. Raises `UsageError`."""
    found = _SHARD.fullmatch(text)
    if found and 1 <= int(found[1]) <= int(found[2]):
        return Shard(int(found[1]), int(found[2]))
    raise UsageError(f"--shard {text} is no shard", fix="give i/n with i from 1 to n, such as 3/8")


class ShardFile(NamedTuple):
    """One shard: its file, and what its sidecar says."""

    path: str
    told: dict[str, Any]


def open_shards(paths: Sequence[str | Path]) -> list[ShardFile]:
    """The shards in their order. Raises `DataError` unless they are a whole, unchanged request."""
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
        several = len(missing or twice) > 1
        shown = f"shard{'s' * several} {', '.join(missing or twice)}"
        verb = "are" if several else "is"
        what = f"{shown} {verb} given more than once"
        what = f"{shown} of {of} {verb} missing" if missing else what
        raise DataError(what, file=first.path, fix=f"give each of 1/{of} to {of}/{of} once")
    return sorted(shards, key=lambda one: one.told["shard"][0])


def _open_shard(path: str) -> ShardFile:
    told = read_json_object(f"{path}.json")
    shard = told.get("shard")
    if not isinstance(shard, list) or "request" not in told or "format" not in told:
        what = "is no shard" if Path(path).exists() else "no such file"
        raise DataError(
            what, file=path, fix="give outputs of score, embed, eval, tracks or predict --shard i/n"
        )
    if not Path(path).is_dir() and not is_own_file(path):
        raise DataError("was changed since it was written", file=path, fix="make it again")
    return ShardFile(path, told)


def describe_merge(parts: Sequence[ShardFile], out: str) -> dict[str, Any]:
    """What the sidecar of every merged output says."""
    return {
        "genodiff": __version__, "out": out, "shard": None,
        "requested": {**parts[0].told["requested"], "shard": None},
        "shards": [one.path for one in parts], "argv": sys.argv,
        "seconds": round(sum(one.told["seconds"] for one in parts), 3), "created": stamp_time(),
    }  # fmt: skip
