"""How the C kernels divide their work into tasks, for threads to take.

Sizes depend on shapes alone, and partial sums are added in the order of the tasks. The results are
then the same bits for any number of threads.
"""

from torch import Tensor

PIECE = 256  # least rows (or time steps) of a task
SUM_PIECE = 1024  # the same where a task also sums a share of a weight's gradient
SHARES = 64  # about the most shares of a gradient; each is as large as the weight


def rows_per_task(least: int, rows: int) -> int:
    """Rows of a task: `least`, or more where there would be over `SHARES` tasks."""
    return max(least, -(-rows // SHARES))


def pack_channels(x: Tensor) -> Tensor:
    """`x` (B, L, C) with its channels contiguous; copied only if they are not."""
    return x if x.stride(2) == 1 or x.shape[2] == 1 else x.contiguous()
