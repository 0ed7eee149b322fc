"""Keep freed memory for the next step of training.

By default glibc returns large blocks to the system at once, and every step gets them again, page by
page. On a CPU that is about a tenth of a training step. A run needs the same blocks in every step,
so keeping them does not raise its peak. The largest are still returned: at 131,072 bases a block is
hundreds of megabytes, and blocks that fit nothing else would add gigabytes.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_MOST = 2**31 - 1
_LARGE = 2**26  # bytes; blocks from this size on are returned


def keep_freed_memory() -> bool:
    """Let this process keep what it frees, from now on; False if its C library cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has none
        return False
    mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    return bool(mallopt(_MMAP_THRESHOLD, _LARGE)) and bool(mallopt(_TRIM_THRESHOLD, _MOST))
