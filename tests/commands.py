"""Commands run in the process of the test, or in a fork of one that has imported all of genodiff: a
process of their own would start for seconds each time.
"""

import os

import pytest

from benchmarks.fork_server import ForkServer
from genodiff.cli import main

SERVER = ForkServer(folder=os.environ.get("GENODIFF_TEST_FORKS"))
"""`run` and `start` give a command a process; all processes of a run of pytest have one server."""


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
