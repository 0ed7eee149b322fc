"""What `compare` is asked: finished runs on the same bases. No torch."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from genodiff.errors import UsageError, printable
from genodiff.evaluation.request import EvalOptions
from genodiff.io.progress import format_duration
from genodiff.io.target import check_target
from genodiff.jobs.options import Device, Force, Margin, Offline, Plan, Seed
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_input, find_domain_of_run, locate

_LONG, _FEW = 120, 200  # seconds, windows
_log = logging.getLogger("genodiff")


@verb("compare", help="Compare finished runs on the same bases.")
@dataclass(frozen=True, kw_only=True)
class CompareRequest(Request[dict[str, Any]]):
    """Evaluate two or more finished runs on the same bases and compare them.

    The row of a run has bits per base (for text: per byte) with its interval, and its paired
    difference from the run `against` (default: the first); `pairs` has every two runs, with p
    values, Holm's correction and a verdict; runs are called equivalent only if their difference is
    shown to be within ±`margin` bits.

    Differences are paired by window. Runs of other lengths read the same bases in windows of their
    own; text of other tokens is refused. `out` (default: under runs/) holds table.md, compare.html,
    results.json and the figures of all windows, so that the same comparison only reads them again;
    files there that genodiff did not write are replaced with `force` only. With `plan` nothing is
    evaluated, and the estimated cost is returned. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.

    >>> genodiff.compare(["runs/a", "runs/b"], margin=0.01)["pairs"]
    """

    work: ClassVar[str] = "genodiff.studies.run_comparison:compare"

    runs: Annotated[Sequence[str | Path], Option("Two or more run folders.", is_word=True)] = field(
        kw_only=False
    )
    fasta: Annotated[str | Path | None, Option("FASTA file instead of the first run's.")] = None
    bed: Annotated[
        str | Path | None,
        Option("BED file whose 4th column names the splits; the strand is not used."),
    ] = None
    text: Annotated[
        str | Path | None, Option("File or folder of text instead of the first run's.")
    ] = None
    split: Annotated[
        Literal["test", "valid", "train", "all"],
        Option("Split of the first run's data to evaluate."),
    ] = "test"
    max_windows: Annotated[
        int | None, Ge(1), Option("Maximum number of windows, evenly spread.")
    ] = None
    repeats: Annotated[int, Ge(1), Option("Masks per window.")] = 1
    against: Annotated[
        str | None, Option("Run to compare the others with (default: the first).")
    ] = None
    margin: Margin = None
    out: Annotated[
        str | Path | None,
        Option("Folder for the tables (default: runs/compare-RUN-RUN).", ("--out", "-o")),
    ] = None
    seed: Seed = 1
    device: Device = "auto"
    offline: Offline = False
    plan: Plan = False
    force: Force = False

    @cached_property
    def paths(self) -> list[Path]:
        """The runs."""
        given = [self.runs] if isinstance(self.runs, str | Path) else self.runs
        return [Path(run) for run in given]

    @property
    def options(self) -> EvalOptions:
        """How finished runs are scored."""
        names = "fasta bed text split repeats max_windows seed offline".split()
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        given |= {name: str(x) for name, x in given.items() if isinstance(x, Path)}
        return EvalOptions(**given)

    @cached_property
    def names(self) -> list[str]:
        """A name for each run: its folder's, with so many above it that no other has the name.

        Raises `UsageError` for fewer than two runs, or one that stands twice.
        """
        if len(self.paths) < 2:
            what = "one run cannot be compared" if self.paths else "there is nothing to compare"
            raise UsageError(what, fix="give two runs or more")
        places = [path.resolve() for path in map(locate, self.paths)]
        for path, place in zip(self.paths, places, strict=True):
            if places.count(place) > 1:
                raise UsageError(f"{path} is given twice", fix="give different runs")
        parts, names = [place.parts for place in places], []
        for own in parts:
            size = 1
            while sum(other[-size:] == own[-size:] for other in parts) > 1 and size < len(own):
                size += 1
            names.append(printable("/".join(own[-size:])))
        return names

    @property
    def folder(self) -> Path:
        """Where tables go."""
        if self.out is not None:
            return Path(self.out)
        plain = [name.strip("/").replace("/", "-") for name in self.names]
        more = f"-and-{len(plain) - 3}-more" if len(plain) > 3 else ""
        return Path("runs") / f"compare-{'-'.join(plain[:3])}{more}"

    def check(self) -> None:
        """Raises as the function, for all that can be told without torch."""
        inputs: list[str | Path | None] = [self.fasta, self.bed, self.text]
        for file in inputs:
            check_input(file)
        names = self.names
        if self.against is not None and self.against not in names:
            what = f"no run '{self.against}'"
            raise UsageError(what, fix=f"give one of {', '.join(names)}")
        self.options.check_domain(find_domain_of_run(locate(self.paths[0])) or "dna")
        for name in ("table.md", "compare.html", "results.json"):
            check_target(self.folder / name, force=self.force, inputs=inputs)

    def answer(self, *given: Any) -> dict[str, Any]:
        """The rows and their differences, or what they would take."""
        self.check()
        return super().answer(*given)

    def show(self, answer: Any) -> None:
        """The table, or what it would take."""
        if not self.plan:
            print((self.folder / "table.md").read_text(encoding="utf-8").partition("\n<!--")[0])
            _log.info("%s, %s", self.folder / "table.md", self.folder / "compare.html")
            return
        for one in answer["runs"]:
            minutes = f"{one['seconds'] / 60:8.1f} min"
            print(f"{one['name']:28s}  {one['parameters']:>12,} parameters  {minutes}")
        seconds = sum(one["seconds"] for one in answer["runs"])
        size = f"{answer['tokens']:,} tokens in {answer['windows']:,} windows"
        print(f"in all {format_duration(seconds)} for {size}; into {answer['folder']}")
        if seconds > _LONG and answer["windows"] > _FEW:
            print(f"quicker: --max-windows {_FEW}, with wider intervals")
