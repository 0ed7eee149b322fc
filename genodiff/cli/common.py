"""The flags that every verb takes, and what they do before a verb runs."""

import logging
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from genodiff.errors import Interrupted, UsageError
from genodiff.io.cache import place_library_caches
from genodiff.io.process import cut_environment
from genodiff.io.progress import format_duration
from genodiff.jobs.file_request import ONLY_RUN, RUN, RUN_NAMES
from genodiff.jobs.machine import choose_device, prepare_machine
from genodiff.jobs.options import RELATIVES, STRAINS


def convert_whole_number(kind: Any, tokens: Sequence[Token]) -> int:
    """Convert a flag that takes a whole number; cyclopts would round 1.5 to 2 without a word."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not a whole number") from None


ModelPath = Annotated[
    Path,
    Parameter(
        name=RUN_NAMES,
        help=f"{RUN}.",
    ),
]
"""The model of a verb that takes one, by position or as `--model RUN`.

The parameter stands before `*` in the signature, without `/` after it. Where it may be left out, it
is `run: OptionalModelPath = None`.
"""
OptionalModelPath = Annotated[
    Path | None,
    Parameter(
        name=RUN_NAMES,
        help=ONLY_RUN,
    ),
]
OUTPUT = Parameter(name=["--out", "-o"], allow_leading_hyphen=True)
"""What is written; `out: Annotated[Path | None, OUTPUT, Parameter(help=...)]`."""
Force = Annotated[
    bool,
    Parameter(
        name="--force", negative="", help="Overwrite a file that genodiff did not write itself."
    ),
]
Margin = Annotated[
    float | None,
    Parameter(
        help="Call two models equivalent where their difference is shown to be within this margin."
    ),
]
Json = Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")]
JsonRows = Annotated[
    bool, Parameter(negative="", help="One JSON object per row on stdout in place of the table.")
]
Device = Annotated[Literal["auto", "cpu", "cuda"], Parameter(help="Where to compute.")]
Plan = Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")]

RelativeFiles = Annotated[list[str] | None, Parameter(help=RELATIVES, negative="")]
Strains = Annotated[bool, Parameter(help=STRAINS, negative="")]


def check_file(run: Path, file: str | None, usage: str) -> str:
    """The file of `usage`, such as "score RUN VARIANTS".

    Raises `UsageError` where one word is missing, or they stand the other way round.
    """
    if file is None:
        missing = usage.split()[2 if run.is_dir() else 1]
        raise UsageError(f"{missing} is missing", fix=f"give genodiff {usage}")
    if Path(file).is_dir() and not run.is_dir():
        what = f"{file} is a folder, and {run} is none: they stand the other way round"
        raise UsageError(what, fix=f"give genodiff {usage}")
    return file


def order_samples(values: dict[str, Any]) -> None:
    """Put samples and a run or judge, in whichever order they stood: a run is a folder.

    Raises `UsageError` for a judge without samples or samples without one.
    """
    other = "judge" if "reference" in values else "run"
    for name in ("samples", "judge") if other == "judge" else ():
        if values[name] is None:
            usage = "genodiff judge SAMPLES JUDGE"
            raise UsageError(f"{name.upper()} is missing", fix=f"give {usage}")
    samples, run = values["samples"], values[other]
    both = samples is not None and run is not None
    if both and Path(samples).is_dir() and not Path(run).is_dir():
        values["samples"], values[other] = run, samples


def read_files(flag: str, given: Sequence[str]) -> dict[str, Path]:
    """Files NAME=FASTA by name. Raises `UsageError` for what is none, and for a name twice."""
    files: dict[str, Path] = {}
    for one in given:
        name, _, path = one.partition("=")
        if not name or not path:
            what = f"{flag} {one}: expected NAME=FASTA"
            raise UsageError(what, fix=f"for example {flag} hg38=hg38.fa.gz")
        if name in files:
            raise UsageError(f"{flag} {name} stands twice", fix="give each its own name")
        files[name] = Path(path)
    return files


class _ToStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the `sys.stderr` of the moment, which a progress bar replaces with its own."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


@Parameter(name="*")
@dataclass(frozen=True)
class CommonBeside:
    """Flags shared by all verbs, beside a seed."""

    threads: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="CPU threads (default: OMP_NUM_THREADS, else all cores of this process).",
        ),
    ] = None
    device: Device = "auto"
    scan: Annotated[
        str | None,
        Parameter(help="Selective scan: auto, native, torch, ... (see `genodiff doctor`)."),
    ] = None
    offline: Annotated[bool, Parameter(help="Never touch the network.")] = False
    quiet: Annotated[
        bool, Parameter(name=["--quiet", "-q"], negative="", help="Only errors on stderr.")
    ] = False
    verbose: Annotated[
        bool, Parameter(name=["--verbose", "-v"], negative="", help="More on stderr.")
    ] = False

    def prepare(self) -> None:
        """Set threads, kernels and logging for the verb to come, without importing torch."""
        prepare_machine(self.threads, self.scan)
        place_library_caches()
        level = logging.ERROR if self.quiet else logging.DEBUG if self.verbose else logging.INFO
        log = logging.getLogger("genodiff")
        log.setLevel(level)
        if not log.handlers:
            log.addHandler(_ToStderr())
            log.handlers[0].setFormatter(logging.Formatter("genodiff: %(message)s"))
            log.propagate = False
        cut_environment()

    def apply(self) -> str:
        """`prepare`, and the device to use ("cpu" or "cuda"). Imports torch."""
        self.prepare()
        return choose_device(self.device)


@Parameter(name="*")
@dataclass(frozen=True)
class Common(CommonBeside):
    """Flags shared by the verbs that draw at random, and by all others that have no other seed."""

    seed: Annotated[
        int, Parameter(converter=convert_whole_number, help="Seed of every random draw.")
    ] = 1

    def prepare(self) -> None:
        """As `CommonBeside`. Raises `UsageError` for a negative seed."""
        if self.seed < 0:
            raise UsageError(f"--seed {self.seed} is negative", fix="give 0 or more")
        super().prepare()


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


@contextmanager
def stop_on_sigterm() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the work as an error does, with a line that says what is left."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise _interrupted("SIGTERM", signum)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        raise _interrupted("Ctrl-C", signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(by: str, signum: int) -> Interrupted:
    return Interrupted(f"stopped by {by}", signum, fix="run the same command again")
