"""What goes wrong in a user's hands: one clear line, the right exit code, no traceback.

Every error a user can cause is a `GenodiffError`; anything else is a bug and may show a traceback.
This module imports nothing heavy, so that `genodiff --help` stays instant.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from pathlib import Path

_LONGEST_NAME = 80
_NEAR = 0.6  # of two names; less suggests what nobody meant


def printable(text: object, longest: int | None = None) -> str:
    """`text` with control and undecodable characters escaped, cut in the middle to at most
    `longest` characters.
    """
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii")
        for c in str(text)
    )
    if longest is not None and len(shown) > longest:
        keep = (longest - 1) // 2
        shown = f"{shown[:keep]}…{shown[-keep:]}"
    return shown


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What a message says after an unknown name: the nearest known one, else all of them."""
    known = sorted(known)
    near = get_close_matches(name, known, n=1, cutoff=_NEAR) or get_close_matches(
        name.lower(), known, n=1, cutoff=_NEAR
    )
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known) or 'none'}"


def format_count(n: int, noun: str) -> str:
    """`n` and the noun, which is given in the singular and takes an s where `n` is not 1.

    >>> format_count(1, "design"), format_count(2000, "base")
    ('1 design', '2,000 bases')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


class GenodiffError(Exception):
    """`FILE, line N (record R): what is wrong; what to do`. Exit code 1: the run failed."""

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        fix: str | None = None,
        file: str | Path | None = None,
        line: int | None = None,
        record: str | None = None,
    ) -> None:
        self.what, self.fix, self.file, self.line, self.record = what, fix, file, line, record
        super().__init__(str(self))

    def __reduce__(self) -> tuple[object, ...]:
        place = partial(type(self), file=self.file, line=self.line, record=self.record)
        return partial(place, fix=self.fix), (self.what,)

    def __str__(self) -> str:
        named = [] if self.file is None else [printable(self.file)]
        place = ", ".join([*named, *([] if self.line is None else [f"line {self.line}"])])
        if self.record is not None:
            place += f" (record {printable(self.record, _LONGEST_NAME)})"
        message = f"{place.lstrip()}: {printable(self.what)}" if place else printable(self.what)
        return f"{message}; {printable(self.fix)}" if self.fix else message


class UsageError(GenodiffError):
    """A flag, a name or a configuration that is unknown or contradicts another. Exit code 2."""

    exit_code = 2


class DataError(GenodiffError):
    """Input data that cannot be read exactly. Exit code 3."""

    exit_code = 3


class CheckpointError(GenodiffError):
    """A checkpoint or run folder that is broken, foreign or does not fit. Exit code 4."""

    exit_code = 4


class MachineError(GenodiffError):
    """Something this machine lacks: a device, a library, disk space, a permission to write. Exit
    code 5.
    """

    exit_code = 5


class Interrupted(GenodiffError):
    """A signal asked the run to stop; its state is saved. Exit code 128 + the signal's number."""

    def __init__(self, what: str, signum: int, *, fix: str | None = None) -> None:
        self.signum = signum
        super().__init__(what, fix=fix)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Interrupted, fix=self.fix), (self.what, self.signum)

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        return 128 + self.signum
