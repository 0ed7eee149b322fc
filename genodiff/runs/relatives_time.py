"""How long relatives take to become ready: what a plan says before, and a fit while it runs."""

import time
from collections.abc import Mapping
from typing import Any

from genodiff.data.genomes.build import is_genome_here
from genodiff.data.genomes.listing import GenomeList
from genodiff.errors import format_count
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.runs.relatives import guess_bases, is_built

FIT_SECONDS = 6.0
"""About what the numbers of a genome take, of one core, whatever its size."""
BUILD_SECONDS = 5e-8
"""About what the index of a genome takes, a base."""


def count_waiting(listed: GenomeList, *, fits: bool = False) -> dict[str, Any] | None:
    """What a plan remembers of relatives that are not ready: nothing is read but sizes.

    None where all are built, unless they wait for a fit alone (`fits`).
    """
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


def describe_waiting(relatives: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a plan says of relatives that are not ready; empty where they are, or without any.

    The time that a plan says beside it is that of the network alone.
    """
    if not relatives or "waiting" not in relatives:
        return {}
    work = [f"{format_count(len(relatives['genomes']), 'genome')} to fit"]
    if relatives["waiting"]:
        work.insert(0, f"{relatives['waiting']:,} to index")
    if relatives["to_fetch"]:
        work.insert(0, f"{relatives['to_fetch']:,} to download")
    about = f"{', '.join(work)}: about {format_duration(relatives['seconds'])} before the first use"
    return {"relatives": about, "seconds_of_relatives": relatives["seconds"]}


class FitClock:
    """Shows how far a fit of genomes is: which it is at, and about how long the rest takes."""

    def __init__(self, display: ProgressDisplay, genomes: int) -> None:
        self.display, self.genomes = display, genomes
        self.began, self.number, self.pace = time.monotonic(), 1, FIT_SECONDS

    def show(self, number: int, share: float) -> None:
        """Report that `share` of the work on genome `number` (from 1) is done."""
        passed = time.monotonic() - self.began
        done = number - 1 + share
        if done >= 0.25:  # the first rounds are quick, and say little
            self.pace = passed / done
        left = max(self.pace * (self.genomes - done), 1.0)
        text = f"Fitting related genome {number}/{self.genomes}"
        text += f" ... about {format_duration(left)} left"
        self.display.show(text, done, self.genomes)
