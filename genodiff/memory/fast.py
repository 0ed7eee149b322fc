"""Recall and alignment of a memory in C (`kernels/native/recall*.h`, `align.h`).

`search.py`, `copying.py` and `alignment.py` have the equations and the NumPy forms. A thread
takes a window.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call, is_loaded
from genodiff.memory.copying import Places, SeenWindow
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import count_sparse, list_least_hits
from genodiff.memory.tables import Floats, SampledTable
from genodiff.memory.text import NONE, Codes, MemoryText

if TYPE_CHECKING:
    from genodiff.memory.memory import Memory

CLASSES = 4
"""The most classes of divergence that a recall in C takes."""
ALIGN_CLASSES = 8
"""The most classes of divergence that an alignment in C takes."""
MOST_NEIGHBOURS = 192
"""Diagonals of a strand beside those that are kept: 12 centres, 16 neighbours each."""

Array = NDArray[Any]


def can_recall(memory: "Memory") -> bool:
    """Whether the library is here and takes the chain and the classes of a memory."""
    classes = len(memory.numbers.divergence)
    return is_loaded() and memory.chain.order >= 1 and classes <= CLASSES


class RecalledInC(NamedTuple):
    """`evidence` and `background` (B, L), `copy` (B, L, 4), and the diagonals of each window."""

    evidence: Floats
    background: Floats
    copy: Floats
    diagonals: list[tuple[Places, Places]]


def recall_in_c(
    memory: "Memory",
    windows: Codes,
    without: Sequence[tuple[int, int]],
    *,
    find: bool = False,
) -> RecalledInC:
    """What the memory says of windows. With `find`, it is searched only: background and copy are
    not worked out. Raises `MemoryError`.
    """
    text, table, chain = memory.text, memory.table, memory.chain
    numbers, effort = memory.numbers, memory.effort
    if not windows.size:
        shape = windows.shape
        nothing = [(np.zeros(0, np.int64), np.zeros(0, np.int64)) for _ in windows]
        return RecalledInC(np.ones(shape), np.ones(shape), np.zeros((*shape, 4)), nothing)
    is_sampled = isinstance(table, SampledTable)
    unused = CLASSES - len(numbers.divergence)
    arrays: dict[str, NDArray[Any]] = {
        "planes": text.planes,
        **({} if table is None else {n: x for n, x in table._asdict().items() if n != "k"}),
        **({"least_hits": list_least_hits(text.size)} if is_sampled else {}),
        "codes": np.minimum(windows, NONE).astype(np.uint8),
        "without": np.array(without, np.int64),
        "loci": np.array([text.count_loci(a, b) for a, b in without], np.int64),
        "next": chain.next,
        "first": chain.first,
        "divergence": np.array([*numbers.divergence, *[0.5] * unused]),
        "share": np.array([*numbers.share, *[0.0] * unused]),
        "chances": np.array(
            [numbers.start, numbers.end, numbers.shift, effort.least_odds, numbers.copies]
        ),
    }
    batch, length = windows.shape
    each = effort.most + MOST_NEIGHBOURS
    out: dict[str, Array] = {
        "evidence": np.ones((batch, length)),
        "background": np.ones((batch, length)),
        "copy": np.zeros((batch, length, 4)),
        "diagonals": np.zeros((batch, 2, each), np.int64),
        "counts": np.zeros((batch, 2), np.int64),
    }
    call(  # the arrays and numbers are fields of `recall_args` (native.c)
        "recall",
        {**arrays, **out},
        backward=find,
        batch=batch,
        L=length,
        most=effort.most,
        size=text.size,
        plane_bytes=text.planes.shape[1],
        k=1 if table is None else table.k,
        order=chain.order,
        scored=-1 if effort.scored is None else effort.scored,
        wild=effort.wild,
        sparse=count_sparse(text.size, length, effort.scored) if is_sampled else -1,
    )
    found = [
        (rows[0, : n[0]], rows[1, : n[1]])
        for rows, n in zip(out["diagonals"], out["counts"].tolist(), strict=True)
    ]
    return RecalledInC(out["evidence"], out["background"], out["copy"], found)


def can_align(numbers: MemoryNumbers) -> bool:
    """Whether the library is here and takes these classes."""
    return is_loaded() and len(numbers.divergence) <= ALIGN_CLASSES


def align_in_c(
    text: MemoryText,
    windows: Sequence[SeenWindow],
    found: Sequence[tuple[Places, Places]],
    numbers: MemoryNumbers,
    alike: NDArray[np.bool_] | None = None,
    *,
    over: bool = True,
    places: bool = False,
) -> tuple[NDArray[Any], Floats]:
    """Return over (B, L, E, 4), empty unless `over`, and ln of the likelihoods (B,) of windows of
    one length, with the diagonals that a search found. With `alike` (E,), in place of over its sums
    over all classes and over those that are alike (2, B, L, 4); with `places` those (B, L) that
    `alignment.place_window` tells. Raises `MemoryError`.
    """
    classes = len(numbers.share)
    diagonals, counts = stack_places(found)
    # Classes that are not used are never entered; backward they must not outweigh the others.
    emission, share = np.full((ALIGN_CLASSES, 4, 4), 1e-6), np.zeros(ALIGN_CLASSES)
    emission[:classes], share[:classes] = numbers.emission, numbers.share
    chances = [numbers.start, numbers.end, numbers.shift, numbers.turn, numbers.copies]
    arrays: dict[str, NDArray[Any]] = {
        **stack_windows(text, windows),
        "evidence": np.stack([w.evidence for w in windows]),
        "near": np.array([w.n_near for w in windows], np.int64),
        "diagonals": diagonals,
        "counts": counts,
        "emission": emission,
        "share": share,
        "chances": np.array(chances),
        **({} if alike is None else {"alike": alike.astype(np.float64)}),
    }
    batch, length = arrays["codes"].shape
    made: Array = np.empty(0)
    name = "places" if places else "over" if alike is None else "sums"
    if places:
        made = np.empty((batch, length), np.int64)
    elif over:
        made = np.empty((2, batch, length, 4) if name == "sums" else (batch, length, classes, 4))
    out = {"likelihood": np.empty(batch), **({name: made} if made.size else {})}
    call(  # the arrays and numbers are fields of `align_args` (native.c)
        "align", {**arrays, **out}, backward=False, batch=batch, L=length, classes=classes,
        size=text.size, plane_bytes=text.planes.shape[1], most=diagonals.shape[2],
        given=2 if any(w.n_near for w in windows) else all(w.is_aligned for w in windows),
    )  # fmt: skip
    return made, out["likelihood"]


def stack_windows(text: MemoryText, windows: Sequence[SeenWindow]) -> dict[str, Array]:
    """What every search of windows of one length is told."""
    return {
        "planes": text.planes,
        "codes": np.minimum(np.stack([w.codes for w in windows]), NONE).astype(np.uint8),
        "without": np.array([w.without for w in windows], np.int64),
        "loci": np.array([w.n_loci for w in windows], np.int64),
    }


def stack_places(found: Sequence[tuple[Places, Places]]) -> tuple[Places, Places]:
    """(B, 2, most): diagonals of each strand, filled up with 0; and (B, 2): how many there are."""
    counts = np.array([[len(a), len(b)] for a, b in found], np.int64).reshape(-1, 2)
    diagonals = np.zeros((len(found), 2, max(1, int(counts.max(initial=0)))), np.int64)
    for row, pair in zip(diagonals, found, strict=True):
        for strand, of in enumerate(pair):
            row[strand, : len(of)] = of
    return diagonals, counts
