"""Keeping freed memory: glibc gives large blocks back to the system at once, and every step of
training fetches them again, page by page.

On a CPU that is about a tenth of a training step. Within a run the same blocks are wanted in every
step, so that keeping them costs no memory at the peak. The largest still go back: at 131,072 bases,
where a block is hundreds of megabytes, those that are kept and fit nothing else would add
gigabytes.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_MOST = 2**31 - 1
_LARGE = 2**26  # bytes of a block that goes back


def keep_freed_memory() -> bool:
    """Let this process keep what it frees, from now on; whether its C library could be told so."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has none
        return False
    mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    return bool(mallopt(_MMAP_THRESHOLD, _LARGE)) and bool(mallopt(_TRIM_THRESHOLD, _MOST))
