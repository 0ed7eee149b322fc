"""Commands run in the process of the test, or in a fork of one that has imported all of genodiff: a
process of their own would start for seconds each time.
"""

import os
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App
from cyclopts.argument import ArgumentCollection
from rich.console import Console

from benchmarks.fork_server import ForkServer
from genodiff import cli
from genodiff.cli import main

ROOT = Path(__file__).resolve().parents[1]
SERVER = ForkServer(folder=os.environ.get("GENODIFF_TEST_FORKS"))
"""`run` and `start` give a command a process; all processes of a run of pytest have one server."""

cli.build_app = cache(cli.build_app)
App.console = property(lambda app: Console())  # as wide as the terminal is now
collect = cache(ArgumentCollection._from_callable)


def collect_again(call: Callable[..., Any], *parameters: Any, **how: Any) -> ArgumentCollection:
    """The flags of a command, which cyclopts collects anew each time that it is called."""
    how["reserved"] = tuple(how.get("reserved", ()))
    flags = {id(one): copy(one) for one in collect(call, *parameters, **how)}
    for one in flags.values():
        one.tokens = []
        one.children = ArgumentCollection(flags[id(child)] for child in one.children)
    return ArgumentCollection(flags.values())


ArgumentCollection._from_callable = collect_again


def exit_code(*words: object) -> int:
    """That of `genodiff WORDS`."""
    try:
        main([str(word) for word in words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def command(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of `genodiff WORDS`, which never shows a traceback."""
    capsys.readouterr()
    code = exit_code(*words)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def succeed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Return the stdout of `genodiff WORDS`, which must succeed."""
    code, out, err = command(capsys, *words)
    assert code == 0, err
    return out


def check_refused(
    capsys: pytest.CaptureFixture[str], words: Iterable[object], code: int, said: str
) -> str:
    """Check that `genodiff WORDS` prints a line with `said` on stderr and changes no file here.

    Returns the line.
    """
    before = read_here()
    found, out, err = command(capsys, *words)
    assert (found, out, err.count("\n")) == (code, "", 1), err
    assert err.startswith("genodiff: error: "), err
    assert said in err, err
    assert (after := read_here()) == before, set(after) ^ set(before)
    return err


def read_here() -> dict[Path, bytes | None]:
    """Read all files below the working folder; a folder has no content.

    Nothing of the repository, into which other tests write at the same time.
    """
    if Path.cwd() == ROOT:
        return {}
    paths = (one for one in Path().rglob("*") if "__pycache__" not in one.parts)
    return {one: one.read_bytes() if one.is_file() else None for one in paths}
