"""What a job says on the command line: its plan, and the line at its end."""

from collections.abc import Mapping
from typing import Any

from genodiff.io.progress import format_duration


def print_plan(told: Mapping[str, Any]) -> None:
    """A plan as lines, a key and its value each; a time is told in words."""
    shown = {}
    for key, value in told.items():
        most = told.get(f"{key}_at_most")
        if key == "seconds":
            shown["time"] = _say_time(value, most, told.get("device"))
        elif key != "device" and not key.endswith("_at_most"):
            shown[key] = _say(value) + (f" to {_say(most)}" if most is not None else "")
    wide = max(map(len, shown))
    print("\n".join(f"{key:<{wide}} {value}" for key, value in shown.items()))


def print_relatives(told: Mapping[str, Any]) -> None:
    """What relatives of a plan take, below lines of its own."""
    if "seconds_of_relatives" in told:
        print(f"relatives {told['relatives']}")


def describe_end(told: Mapping[str, Any], out: object, summary: str) -> str:
    """Where an output is, its summary, and how long it took."""
    took = f", in {format_duration(told['seconds'])}" if "seconds" in told else ""
    return f"{told.get('out', out)}: {summary}{took}"


def _say_time(seconds: float | None, most: float | None, device: str | None) -> str:
    if seconds is None:
        return "not known: the run is not there"
    upto = "" if most is None else f" to {format_duration(most)}"
    return f"about {format_duration(seconds)}{upto} on {device}"


def _say(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{n:,} {name}" for name, n in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(value) if all(isinstance(one, str) for one in value) else str(value)
    return f"{value:,}"
