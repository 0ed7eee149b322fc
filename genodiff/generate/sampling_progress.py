"""How far sampling is, shown on stderr."""

import time

from genodiff.generate.sample import Workload
from genodiff.io.progress import ProgressDisplay, format_duration


class SamplingProgress(ProgressDisplay):
    """Evaluations of the network done, of those that `n` times `work` is expected to take."""

    def __init__(self, work: Workload, n: int, units: str) -> None:
        super().__init__()
        self._units = units
        self._expected, self._bases = n * work.evaluations, n * work.bases
        self._done, self._start = 0, time.monotonic()

    def tick(self, windows: int) -> None:
        """After an evaluation of the network on this many windows."""
        self._done += windows
        passed = time.monotonic() - self._start
        part = min(1.0, self._done / max(self._expected, 1.0))
        pace, left = part * self._bases / max(passed, 1e-9), passed * (1 / part - 1)
        text = (
            f"sampling · {100 * part:.0f} % · {pace:,.0f} {self._units}/s · "
            f"{format_duration(left)} to go"
        )
        self.show(text, part, 1.0)
