"""NumPy: the arrays of all intervals one after another, a member for each.

p (bases, 4), entropy, information and surprisal (bases,), NaN where there is none; letters of the
reference; contig, start, end and offsets of the intervals.
"""

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from genodiff.maps.map_regions import open_member
from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat
from genodiff.maps.track_values import BaseTracks


@FORMATS.register("npz")
class Npz(TrackFormat):
    """All arrays in one file. The same tracks give the same bytes."""

    suffix = ".npz"
    kind = "table"

    def write(self, folder: Path, content: TrackContent) -> None:
        intervals, path = content.intervals, folder / f"tracks{self.suffix}"
        total = sum(end - start for _, start, end in intervals)
        columns: dict[str, tuple[str, tuple[int, ...], Callable[[BaseTracks], NDArray[Any]]]] = {
            **({"p": ("<f4", (total, 4), attrgetter("p"))} if "p_A" in content.kinds else {}),
            **{
                name: ("<f4", (total,), kind.compute)
                for name, kind in content.kinds.items()
                if not name.startswith(("p_", "logo_"))
            },
            "letters": ("|S1", (total,), lambda one: np.frombuffer(one.letters.encode(), "S1")),
        }
        ends = np.cumsum([0, *(end - start for _, start, end in intervals)])
        small = {
            "contig": np.array([one[0] for one in intervals], dtype=np.str_),
            "start": np.array([one[1] for one in intervals], np.int64),
            "end": np.array([one[2] for one in intervals], np.int64),
            "offsets": ends.astype(np.int64),
        }
        with ZipFile(path, "w") as into:
            for name, (kind, shape, compute) in columns.items():
                with open_member(into, name) as member:
                    head = {"descr": kind, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(member, head)
                    for block in content.blocks():
                        member.write(np.ascontiguousarray(compute(block)).tobytes())
            for name, column in small.items():
                with open_member(into, name, long=False) as member:
                    np.lib.format.write_array(member, column, allow_pickle=False)
