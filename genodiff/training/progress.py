"""What a training run reports on stderr while it runs."""

import logging

from genodiff.io.progress import ProgressDisplay, format_duration

_log = logging.getLogger("genodiff")


class Reporter:
    """Shows step, loss in bits, pace and time to go."""

    def __init__(self, unit: str = "base") -> None:
        self._unit = unit
        self._display = ProgressDisplay()
        self._bits: float | None = None

    def step(
        self, step: int, horizon: int | None, bits: float, pace: float, left: float | None
    ) -> None:
        """After a step of `horizon`: `bits` per base, `pace` in bases per second, `left` in s."""
        self._bits = bits if self._bits is None else 0.9 * self._bits + 0.1 * bits
        of = f"/{horizon}" if horizon is not None else ""
        eta = f"{format_duration(left)} to go" if left is not None else "time to go not known yet"
        text = f"step {step}{of} · loss {self._bits:.4f} bits · {pace:,.0f} tok/s · {eta}"
        self._display.show(text, step, horizon)

    def valid(self, step: int, bits: float, interval: float) -> None:
        """After a validation."""
        _log.info("step %d · validation %.4f ± %.4f bits per %s", step, bits, interval, self._unit)

    def close(self) -> None:
        """Take the bar away."""
        self._display.close()
