"""Independent parts of a computation, each on one thread from start to end.

torch splits every operation over its threads, and waits for all of them at the end. For operations
as short as a block of a scan, the wait costs as much as the split gains. It costs more on a busy
machine. The results here, and the order of sums, do not depend on the number of threads.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier
from typing import TypeVar

import torch

Part = TypeVar("Part")
Result = TypeVar("Result")


def map_parts(
    work: Callable[[Part], Result], parts: Sequence[Part], device: torch.device
) -> list[Result]:
    """`work(part)` of every part, in the order of `parts`, without gradients.

    On a CPU, the parts run on as many threads as torch may use.
    """
    threads = min(torch.get_num_threads(), len(parts))
    if threads < 2 or device.type != "cpu":
        return [work(part) for part in parts]
    inference = torch.is_inference_mode_enabled()

    def run_part(part: Part) -> Result:
        with torch.inference_mode(inference), torch.no_grad():
            return work(part)

    return list(_pool(threads, os.getpid()).map(run_part, parts))


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """A pool of threads in which torch does not split its operations.

    `process` is part of the cache key, because threads do not survive a fork.
    """
    before, all_here = torch.get_num_threads(), Barrier(threads)

    def start() -> None:
        # Read the count first: the first call in a thread resets it to the last one set anywhere.
        torch.get_num_threads()
        torch.set_num_threads(1)
        all_here.wait()

    pool = ThreadPoolExecutor(threads, "genodiff-kernels", initializer=start)
    list(pool.map(abs, range(threads)))  # starts every thread: the barrier holds each one
    torch.set_num_threads(before)
    return pool
