"""Independent parts of a computation, each on a thread of its own.

torch divides every single operation over its threads and waits for all of them after each; where
operations are as short as a block of a scan, that waiting costs as much as it gains, and far more
on a machine with other work. Here a thread keeps its part from beginning to end. What is computed,
and in which order it is added up, does not depend on the number of threads.
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


def each(
    work: Callable[[Part], Result], parts: Sequence[Part], device: torch.device
) -> list[Result]:
    """`work(part)` of every part, in order; without gradients. On a CPU, over as many threads as
    torch may use.
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
    """Threads in which torch does not divide its operations any further. A forked process needs
    threads of its own.
    """
    before, all_here = torch.get_num_threads(), Barrier(threads)

    def start() -> None:
        # a thread's first question sets its count to the last one set anywhere
        torch.get_num_threads()
        torch.set_num_threads(1)
        all_here.wait()

    pool = ThreadPoolExecutor(threads, "genodiff-kernels", initializer=start)
    list(pool.map(abs, range(threads)))
    torch.set_num_threads(before)
    return pool
