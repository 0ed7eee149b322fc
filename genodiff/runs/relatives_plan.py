"""What it takes to fetch and build relatives: disk, memory, time; what is too large for a machine.

Measured on one core (benchmarks/relatives/INDEX.md): 1.12 to 1.15 bytes of index a base beside 3
bits of text, at most 1.9 bytes of memory, and 25 to 33 million bases a second.

How long relatives take to become ready: what a plan says before, and a fit while it runs.
"""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genodiff.data.genomes.build import is_genome_here
from genodiff.data.genomes.listing import GenomeList, GenomeRow
from genodiff.errors import MachineError, format_count
from genodiff.io.process import read_memory
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.io.target import find_existing, format_size
from genodiff.memory.memory import read_manifest
from genodiff.memory.text import MOST_TEXT
from genodiff.runs.relatives import (
    BYTES_A_BASE,
    find_home,
    find_memory,
    guess_bases,
    is_built,
    limit_jobs,
)

DISK_A_BASE = 1.55
"""Bytes of a built memory."""
FETCHED_A_BASE = 0.3
"""Bytes of a packed FASTA file."""
BASES_A_SECOND = 2e7


def plan_relatives(listed: GenomeList, *, home: str | Path | None, jobs: int) -> dict[str, Any]:
    """What building the relatives of a list would take, as JSON values. Nothing is fetched.

    Of each genome its `state` (built, here, to fetch), whether its URL is `tried`, its `bases`
    (null where neither the list nor a file says), and why it is `too_large`, if it is. Together:
    `fetch_bytes`, `disk_bytes` and `memory_bytes` that are needed, those that are free, `seconds`
    without fetching.
    """
    folder = find_home(home)
    free = read_memory()[1]
    rows = [_plan_row(row, home, free) for row in listed.rows]
    waiting = [row for row, told in zip(listed.rows, rows, strict=True) if told["state"] != "built"]
    sizes = sorted((guess_bases(row) for row in waiting), reverse=True)
    jobs = limit_jobs(waiting, max(1, min(jobs, len(waiting))))
    fetched = [row for row in rows if row["state"] == "to fetch"]
    return {
        "genomes": rows,
        "to_build": len(waiting),
        "folder": str(folder),
        "fetch_bytes": int(sum(row["bases"] or 0 for row in fetched) * FETCHED_A_BASE),
        "disk_bytes": int(sum(sizes) * DISK_A_BASE),
        "memory_bytes": int(sum(sizes[:jobs]) * BYTES_A_BASE),
        "jobs": jobs,
        "seconds": round(sum(sizes) / BASES_A_SECOND / jobs, 1),
        "unknown": [row["name"] for row in rows if row["bases"] is None],
        "free_disk_bytes": shutil.disk_usage(find_existing(folder)).free,
        "free_memory_bytes": free,
    }


def check_relatives_room(plan: dict[str, Any]) -> None:
    """Raises `MachineError` where the disk lacks what a plan needs, or a genome is too large."""
    large = [row for row in plan["genomes"] if row["too_large"] and row["state"] != "built"]
    if large:
        what = f"{large[0]['name']} is too large for this machine: {large[0]['too_large']}"
        fix = "leave it out (--only names the others), or use another machine"
        raise MachineError(what, fix=fix)
    needed, free = plan["fetch_bytes"] + plan["disk_bytes"], plan["free_disk_bytes"]
    if needed > free:
        what = f"about {format_size(needed)} are needed, and {format_size(free)} are free"
        raise MachineError(what, file=plan["folder"], fix="make room, or give another --out")


def describe_relatives(plan: dict[str, Any]) -> list[str]:
    """A plan for a person to read: a line a genome, and what they take."""
    rows = plan["genomes"]
    wide, species = (max(len(row[key]) for row in rows) for key in ("name", "species"))
    lines = []
    for row in rows:
        bases = "size not known" if row["bases"] is None else f"{row['bases'] / 1e6:,.2f} Mb"
        state = row["state"] + (", untried" if not row["tried"] else "")
        large = f"; too large for this machine: {row['too_large']}" if row["too_large"] else ""
        name = f"{row['name']:<{wide}} {row['species'].replace('_', ' '):<{species}}"
        lines.append(f"{name} {bases:>14}  {state}{large}")
    if not plan["to_build"]:
        return [*lines, f"all are built in {plan['folder']}"]
    fetched = sum(row["state"] == "to fetch" for row in rows)
    fetch = f"{format_size(plan['fetch_bytes'])} to fetch, " if fetched else ""
    needed, jobs = format_size(plan["memory_bytes"]), format_count(plan["jobs"], "genome")
    memory = plan["free_memory_bytes"]
    free = "" if memory is None else f" ({format_size(memory)} free)"
    more = ", and what fetching takes" if fetched else ""
    lines += [
        f"disk    {fetch}{format_size(plan['disk_bytes'])} to build in {plan['folder']} "
        f"({format_size(plan['free_disk_bytes'])} free)",
        f"memory  {needed} for {jobs} at a time{free}",
        f"time    about {format_duration(plan['seconds'])}{more}",
    ]
    if plan["unknown"]:
        lines.append(f"without {', '.join(plan['unknown'])}, whose size is known when it is here")
    untried = sum(not row["tried"] for row in rows)
    if untried:
        verb = "was" if untried == 1 else "were"
        what = f"untried: {format_count(untried, 'URL')} {verb} taken from public sources, and "
        lines.append(f"{what}could not be fetched where the list was written")
    return lines


def _plan_row(row: GenomeRow, home: str | Path | None, free: int | None) -> dict[str, Any]:
    bases, built = guess_bases(row), is_built(row, home)
    if built:
        contigs = read_manifest(find_memory(row, home))["contigs"]
        bases = sum(int(length) for _, length, _ in contigs)
    state = "built" if built else "here" if is_genome_here(row) else "to fetch"
    large = None
    if bases > MOST_TEXT:
        large = f"a memory holds at most {MOST_TEXT / 1e9:.1f} Gb"
    elif free is not None and bases * BYTES_A_BASE > free:
        needed = format_size(bases * BYTES_A_BASE)
        large = f"{needed} of memory are needed, and {format_size(free)} free"
    return {
        "name": row.name, "species": row.species, "path": row.path, "bases": bases or None,
        "state": state, "tried": row.is_tried or state != "to fetch", "too_large": large,
    }  # fmt: skip


FIT_SECONDS = 9.0
"""About what the numbers of a genome take, of one core, whatever its size."""
BUILD_SECONDS = 5e-8
"""About what the index of a genome takes, a base."""


def count_waiting(listed: GenomeList, *, fits: bool = False) -> dict[str, Any] | None:
    """What a plan says of relatives that are not ready (`fits`: built, not fitted), or None."""
    waiting = [row for row in listed.rows if not is_built(row, reads=False)]
    if not waiting and not fits:
        return None
    seconds = sum(map(guess_bases, waiting)) * BUILD_SECONDS + len(listed.rows) * FIT_SECONDS
    return {
        "genomes": [{"name": row.name, "species": row.species} for row in listed.rows],
        "waiting": len(waiting),
        "to_fetch": sum(not is_genome_here(row) for row in waiting),
        "seconds": round(seconds, 1),
    }


def describe_waiting(relatives: Mapping[str, Any] | None, of_method: float = 0.0) -> dict[str, Any]:
    """What a plan says of relatives that are not ready; empty where they are, or without any.

    `of_method`: seconds of what a method of scoring still fits. `seconds` of a plan are those of
    the network alone; the line that a person reads adds these.
    """
    work, seconds = [], of_method
    if relatives and "waiting" in relatives:
        kinds = ("to_fetch", "download"), ("waiting", "index")
        work = [f"{relatives[key]:,} to {verb}" for key, verb in kinds if relatives[key]]
        work.append(f"{format_count(len(relatives['genomes']), 'genome')} to fit")
        seconds += relatives["seconds"]
    if of_method:
        work.append("classes of positions to fit")
    if not work:
        return {}
    about = f"{', '.join(work)}: about {format_duration(seconds)} before the first use"
    return {"relatives": about, "seconds_of_relatives": seconds}


class FitClock:
    """Shows how far a fit of genomes is: which it is at, and about how long the rest takes."""

    def __init__(self, display: ProgressDisplay, genomes: int) -> None:
        self.display, self.genomes = display, genomes
        self.began = time.monotonic()

    def show(self, number: int, share: float) -> None:
        """Report that `share` of the work on genome `number` (from 1) is done."""
        done = number - 1 + share
        text = f"Fitting related genome {number}/{self.genomes}"
        if done >= 0.25:  # a guess before that says more of other machines than of this one
            left = (time.monotonic() - self.began) / done * (self.genomes - done)
            text += f" ... about {format_duration(max(left, 1.0))} left"
        self.display.show(text, done, self.genomes)
