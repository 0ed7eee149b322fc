"""Independent parts of a computation, each on one thread from beginning to end.

torch divides every operation over its threads, and waits for all of them after it. For operations
as short as a block of a scan, waiting costs as much as dividing gains, and more on a machine with
other work. What is computed here, and the order of sums, do not depend on the number of threads.
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
    """`work(part)` of every part, in their order, without gradients.

    On a CPU they are divided over as many threads as torch may use.
    """
    threads = min(torch.get_num_threads(), len(parts))
    if threads < 2 or device.type != "cpu":
        return [work(part) for part in parts]
    inference = torch.is_inference_mode_enabled()

    def alone(part: Part) -> Result:
        with torch.inference_mode(inference), torch.no_grad():
            return work(part)

    return list(_pool(threads, os.getpid()).map(alone, parts))


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads in which torch does not divide its operations.

    Cached for each process: threads do not survive a fork.
    """
    before, all_here = torch.get_num_threads(), Barrier(threads)

    def start() -> None:
        # Asking first matters: a thread's first call sets its count to the last one set anywhere.
        torch.get_num_threads()
        torch.set_num_threads(1)
        all_here.wait()

    pool = ThreadPoolExecutor(threads, "genodiff-kernels", initializer=start)
    list(pool.map(abs, range(threads)))
    torch.set_num_threads(before)
    return pool
