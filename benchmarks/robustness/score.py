"""The score of one fault: how often it was tried, how often survived, what was measured."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from harness import TINY, contents, finish


class Score(NamedTuple):
    """`survived` of `tried`; `figures` are measured values, `faults` says of each failure."""

    tried: int
    survived: int
    figures: dict[str, Any]
    faults: list[str]


class Trial(NamedTuple):
    """What a fault is given: how often to try, a generator, and a folder of its own."""

    n: int
    draw: random.Random
    root: Path

    def calm(self, **changes: Any) -> dict[str, Any]:
        """What the run comes to when nothing disturbs it."""
        out = self.root / "calm"
        if finish(TINY | changes, out):
            raise SystemExit(f"the calm run failed, see {out}.log")
        return contents(out)

    def copy(self, source: Path, name: str) -> Path:
        """A copy of a run folder."""
        out = self.root / name
        shutil.copytree(source, out)
        return out


Fault = Callable[[Trial], Score]


def spread(values: list[float]) -> dict[str, float]:
    """Median and maximum."""
    ordered = sorted(values)
    return {"p50": round(ordered[len(ordered) // 2], 2), "max": round(ordered[-1], 2)}


def draw_kinds(trial: Trial, kinds: list[str]) -> list[str]:
    """`n` kinds in random order, each as often as the others or once more."""
    found = [kinds[i % len(kinds)] for i in range(trial.n)]
    trial.draw.shuffle(found)
    return found
