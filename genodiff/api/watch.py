"""How training runs stand: `genodiff watch`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from genodiff.errors import UsageError
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import locate

if TYPE_CHECKING:
    from genodiff.runs.progress_reader import Progress


@verb(
    "watch",
    help="Watch training runs: loss, speed and remaining time, live in the terminal.",
)
@dataclass(frozen=True, kw_only=True)
class WatchRequest(Request[Iterator[list["Progress"]]]):
    """Yield the state of training runs every `interval` seconds until none is training, or `once`.

    Each `Progress` has `steps`, `loss` and `valid` (bits), `seconds`, `tokens`, `horizon` and
    `state`. Folders are read, never locked. Raises `UsageError` for a folder without a run.
    """

    runs: Annotated[
        Sequence[str | Path], Option("Run folders.", ("RUN",), is_word=True, is_spread=True)
    ] = field(kw_only=False)
    interval: Annotated[float, Option("Seconds between updates.")] = 2.0
    once: Annotated[
        bool, Option("Print the state once; the default if stdout is not a terminal.")
    ] = False

    def answer(self, *given: Any) -> Iterator[list[Progress]]:
        """The looks."""
        import time

        from genodiff.runs.progress_reader import ProgressReader

        if not self.runs:
            fix = "give run folders: genodiff watch runs/x"
            raise UsageError("no run to watch", fix=fix)
        if self.interval <= 0:
            fix = "give seconds, such as 2"
            raise UsageError(f"--interval {self.interval:g} is not above 0", fix=fix)
        readers = [ProgressReader(locate(run, there=False)) for run in self.runs]
        while True:
            found = [reader.read() for reader in readers]
            yield found
            if self.once or not any(one.trainer for one in found):
                return
            time.sleep(self.interval)

    def list_rows(self, answer: Any) -> list[Any]:
        """How the runs stand now."""
        found = [one._asdict() | {"state": one.state} for one in next(answer)]
        return [json.loads(json.dumps(found, default=str), parse_constant=lambda _: None)]

    def show(self, answer: Any) -> None:
        """A line for each run, live where stdout is a terminal."""
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console()
        if self.once or not console.is_terminal:
            console.print(*(one.describe() for one in next(answer)), sep="\n", markup=False)
            return
        with Live(console=console, auto_refresh=False) as live:
            for found in answer:
                live.update(Text("\n".join(one.describe() for one in found)), refresh=True)
