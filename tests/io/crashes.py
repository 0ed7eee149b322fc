"""Processes that die at every moment at which genodiff writes."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from genodiff.io import atomic


def kill_everywhere(work: Callable[[], None], folder: Path) -> Iterator[int]:
    """The exit code of a fork that does `work` and dies at its 1st, 2nd, ... operation; 0 ends it.

    What it left in `folder` is cleared before the next.
    """
    for n in count(1):
        child = os.fork()
        if child == 0:
            atomic._operations, os.environ["GENODIFF_CRASH_AT"] = 0, str(n)
            with suppress(BaseException):
                work()
                os._exit(0)
            os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (-9, 0)
        yield code
        if code == 0:
            return
        atomic.clear_leftovers(folder)
