"""What the cache folder holds, and how it goes: `genodiff.list_cache`, `clean_cache`."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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

_log = logging.getLogger("genodiff")
_DAY = 86_400


def list_cache() -> dict[str, Any]:
    """What lies in the cache folder: "folder", "bytes", "kinds" and "foreign".

    "kinds" has of each kind that is there its name ("kind"), what it is ("about"), how many things
    ("number"), their "bytes", and when one was last used ("last_used", ISO 8601 in UTC). "foreign"
    are paths that genodiff did not name; they are not counted, and never removed. All can be made
    or fetched again.

    >>> list_cache()["kinds"][0]["kind"]                                # doctest: +SKIP
    'stores'
    """
    folder = _find_folder()
    things, foreign = list_cached(folder)
    kinds = _sum_kinds(things)
    return {
        "folder": str(folder),
        "bytes": sum(row["bytes"] for row in kinds),
        "kinds": kinds,
        "foreign": [str(path) for path in foreign],
    }


def clean_cache(
    *,
    kinds: Sequence[str] = (),
    older_than: float | None = None,
    everything: bool = False,
    plan: bool = False,
) -> dict[str, Any]:
    """Remove what the cache folder holds of `kinds` (none: of every kind), not used for
    `older_than` days; or `everything`.

    What a running process makes or has open stays, with a line. With `plan` nothing is removed.
    Returns "folder", "plan", "bytes" (freed), "removed" (rows as of `list_cache`) and "kept": each
    "path" that stays, and "why". Raises `UsageError` where it is not said what is to go.

    >>> clean_cache(older_than=30, plan=True)["bytes"]                  # doctest: +SKIP
    1250000
    """
    _check(kinds, older_than, everything)
    folder, now = _find_folder(), time.time()
    opened = find_open(folder)
    gone, kept = [], []
    for thing in list_cached(folder)[0]:
        if kinds and thing.kind not in kinds:
            continue
        if older_than is not None and now - thing.used < older_than * _DAY:
            continue
        why = find_use(thing, opened) if plan else remove_cached(thing, opened)
        if why:
            _log.warning("%s stays: %s", printable(thing.path), why)
            kept.append({"path": str(thing.path), "why": why})
        else:
            gone.append(thing)
    if everything and not plan:
        remove_empty(folder)
    rows = _sum_kinds(gone)
    freed = sum(row["bytes"] for row in rows)
    return {"folder": str(folder), "plan": plan, "bytes": freed, "removed": rows, "kept": kept}


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
        what = "--all is every kind of every age, and --kind or --older-than choose"
        raise UsageError(what, fix="leave --all out")
    if not everything and not chosen:
        what = "it is not said what is to go"
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
