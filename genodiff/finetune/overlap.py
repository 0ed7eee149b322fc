"""Intervals that share bases: for each query interval, does any target interval overlap it, and which one first.

Within a contig the targets are sorted by start, and a running maximum of their ends says whether any of those that
start before the query's end reaches past its start. O((n + m) log m), exact for any mixture of lengths.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.finetune.examples import Places


def overlaps_any(query: Places, target: Places) -> NDArray[np.bool_]:
    """True for each interval of `query` that shares a base with one of `target`. Strands do not matter."""
    found = np.zeros(len(query.contig), bool)
    names = np.unique(np.concatenate([query.contig, target.contig]))
    q_code, t_code = np.searchsorted(names, query.contig), np.searchsorted(names, target.contig)
    order = np.lexsort((target.start, t_code))
    t_start, t_end, t_code = target.start[order], target.end[order], t_code[order]
    first = np.searchsorted(t_code, np.arange(len(names) + 1))
    q_order = np.argsort(q_code, kind="stable")
    q_first = np.searchsorted(q_code[q_order], np.arange(len(names) + 1))
    for code in range(len(names)):
        rows = q_order[q_first[code] : q_first[code + 1]]
        starts, ends = t_start[first[code] : first[code + 1]], t_end[first[code] : first[code + 1]]
        if not len(rows) or not len(starts):
            continue
        reach = np.maximum.accumulate(ends)
        before = np.searchsorted(starts, query.end[rows], side="left")  # targets that start before the query ends
        found[rows] = (before > 0) & (reach[np.maximum(before - 1, 0)] > query.start[rows])
    return found
