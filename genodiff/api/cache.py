"""What the cache folder holds, and how it goes: `genodiff.list_cache`, `clean_cache`."""

import logging
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.errors import UsageError, did_you_mean, printable
from genodiff.io.cache import (
    KINDS,
    CachedThing,
    cache_dir,
    find_open,
    find_use,
    list_cached,
    remove_cached,
    remove_empty,
)
from genodiff.jobs.options import Plan
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb

_log = logging.getLogger("genodiff")
_DAY = 86_400


@verb(
    "cache list",
    function="list_cache",
    help="Print the kinds of cached data: number of entries, size and last use.",
)
@dataclass(frozen=True, kw_only=True)
class CacheListRequest(Request[dict[str, Any]]):
    """List the contents of the cache folder: "folder", "bytes", "kinds" and "foreign".

    "kinds" has one row per kind: its name ("kind"), a description ("about"), the number of entries
    ("number"), their "bytes", and the time of last use ("last_used", ISO 8601 in UTC). "foreign"
    are paths that genodiff did not create; they are not counted, and never removed. Everything else
    can be recreated.

    >>> list_cache()["kinds"][0]["kind"]                                # doctest: +SKIP
    'stores'
    """

    json_indent: ClassVar[int | None] = 2

    def answer(self, *given: Any) -> dict[str, Any]:
        """The kinds that are there."""
        folder = _find_folder()
        things, foreign = list_cached(folder)
        kinds = _sum_kinds(things)
        return {
            "folder": str(folder),
            "bytes": sum(row["bytes"] for row in kinds),
            "kinds": kinds,
            "foreign": [str(path) for path in foreign],
        }

    def show(self, answer: Any) -> None:
        """A line for each kind."""
        _print_kinds(answer["kinds"], answer["bytes"])
        what = "%s; remove old entries with: genodiff cache clean --older-than 30"
        _log.info(what, answer["folder"])
        if foreign := answer["foreign"]:
            what = (
                "%d paths were not created by genodiff; they are not counted and never removed: %s"
            )
            _log.info(what, len(foreign), ", ".join(foreign[:3]))


@verb(
    "cache clean",
    function="clean_cache",
    help="Remove selected entries of the cache; entries in use by a running process are kept.",
)
@dataclass(frozen=True, kw_only=True)
class CacheCleanRequest(Request[dict[str, Any]]):
    """Remove entries of the cache folder: `kinds` (default: all), not used for `older_than` days;
    or `everything`.

    Entries in use by a running process are kept, with a message. With `plan` nothing is removed.
    Returns "folder", "plan", "bytes" (freed), "removed" (rows as of `list_cache`) and "kept": the
    "path" of each entry kept, and "why". Raises `UsageError` if no selection is given.

    >>> clean_cache(older_than=30, plan=True)["bytes"]                  # doctest: +SKIP
    1250000
    """

    json_indent: ClassVar[int | None] = 2

    older_than: Annotated[float | None, Option("Remove entries not used for this many days.")] = (
        None
    )
    kinds: Annotated[
        Sequence[str],
        Option("A kind of entry, as printed by `cache list`; one or several.", ("--kind",)),
    ] = ()
    everything: Annotated[bool, Option("Remove all entries.", ("--all",))] = False
    plan: Plan = False

    def answer(self, *given: Any) -> dict[str, Any]:
        """What was removed, or would be."""
        _check(self.kinds, self.older_than, self.everything)
        folder, now = _find_folder(), time.time()
        opened = find_open(folder)
        gone, kept = [], []
        for thing in list_cached(folder)[0]:
            if self.kinds and thing.kind not in self.kinds:
                continue
            if self.older_than is not None and now - thing.used < self.older_than * _DAY:
                continue
            why = find_use(thing, opened) if self.plan else remove_cached(thing, opened)
            if why:
                _log.warning("%s stays: %s", printable(thing.path), why)
                kept.append({"path": str(thing.path), "why": why})
            else:
                gone.append(thing)
        if self.everything and not self.plan:
            remove_empty(folder)
        rows = _sum_kinds(gone)
        freed = sum(row["bytes"] for row in rows)
        return {
            "folder": str(folder), "plan": self.plan, "bytes": freed, "removed": rows, "kept": kept,
        }  # fmt: skip

    def show(self, answer: Any) -> None:
        """A line for each kind of which something was removed."""
        _print_kinds(answer["removed"], answer["bytes"])
        freed = "would free" if self.plan else "freed"
        _log.info("%s: %s %s bytes", answer["folder"], freed, f"{answer['bytes']:,}")


def _print_kinds(rows: list[dict[str, Any]], size: int) -> None:
    """The kinds as lines: name, number, size, day of the last use, what it is."""
    for row in rows:
        day = row["last_used"][:10]
        print(
            f"{row['kind']:<13} {row['number']:>7,} {row['bytes'] / 1e6:>10,.1f} MB  {day}  "
            f"{row['about']}"
        )
    print(f"{'in all':<13} {sum(row['number'] for row in rows):>7,} {size / 1e6:>10,.1f} MB")


def _find_folder() -> Path:
    return Path(os.path.realpath(cache_dir()))


def _check(kinds: Sequence[str], older_than: float | None, everything: bool) -> None:
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"--kind {printable(kind)}: {did_you_mean(kind, list(KINDS))}")
    if older_than is not None and not 0 <= older_than < math.inf:
        raise UsageError(f"--older-than {older_than:g}", fix="give a number of days, 0 or more")
    chosen = bool(kinds) or older_than is not None
    if everything and chosen:
        what = "--all cannot be combined with --kind or --older-than"
        raise UsageError(what, fix="leave --all out")
    if not everything and not chosen:
        what = "nothing is selected for removal"
        raise UsageError(what, fix="give --older-than DAYS, --kind KIND, or --all")


def _sum_kinds(things: list[CachedThing]) -> list[dict[str, Any]]:
    rows = []
    for kind, about in KINDS.items():
        some = [thing for thing in things if thing.kind == kind]
        if some:
            used = datetime.fromtimestamp(max(thing.used for thing in some), UTC)
            rows.append(
                {
                    "kind": kind,
                    "about": about.about,
                    "number": len(some),
                    "bytes": sum(thing.size for thing in some),
                    "last_used": used.isoformat(timespec="seconds"),
                }
            )
    return rows
