"""The laws of a format of tracks, tried on two contigs with a gap."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from genodiff.laws.law import demand
from genodiff.maps.track_files import FORMATS, TrackContent, write_format
from genodiff.maps.track_values import BaseTracks

CONTIGS = {"chr10": 61, "chr2": 40}
INTERVALS = [("chr10", 0, 20), ("chr10", 33, 61), ("chr2", 3, 38)]
_KINDS = ("tracks", "table", "picture", "page")


def check_format(name: str) -> None:
    """Raises `BrokenLaw` for a format that breaks a law, `UsageError` where there is none.

    It writes the files that it lists and no other, each with its ending; the same content gives the
    same bytes, and a value that changes changes them.
    """
    form = FORMATS[name]()
    demand(form.kind in _KINDS, f"the kind of {name} is one of {', '.join(_KINDS)}")
    demand(re.fullmatch(r"(\.\w+)+", form.suffix), f"the suffix of {name} is an ending: .xyz")
    first = _write(name)
    listed = set(form.list_files())
    demand(set(first) == listed, f"{name} writes the files that it lists: {sorted(listed)}")
    ends = all(one.endswith(form.suffix) for one in listed - {"chrom.sizes"})
    demand(ends, f"the files of {name} end in {form.suffix}")
    demand(all(first.values()), f"no file of {name} is empty")
    demand(_write(name) == first, f"{name} gives the same bytes for the same content")
    if form.is_drawn:
        return
    other = _write(name, shift=0.01)
    changed = [one for one in listed - {"chrom.sizes"} if other[one] != first[one]]
    demand(changed, f"the files of {name} hold the values")


def make_blocks(shift: float = 0.0) -> Iterator[BaseTracks]:
    """The tracks of the intervals; one base of each has no value."""
    for number, (contig, start, end) in enumerate(INTERVALS):
        rng = np.random.default_rng(number)
        p = rng.dirichlet(np.ones(4), end - start).astype(np.float32)
        p = (1 - shift) * p + np.float32(shift / 4)
        letters = "".join(rng.choice(list("ACGT"), end - start))
        letters, p[5] = f"{letters[:5]}N{letters[6:]}", np.nan
        yield BaseTracks(contig, start, letters, p)


def _write(name: str, shift: float = 0.0) -> dict[str, bytes]:
    """The bytes of each file of the format."""

    def draw(path: Path) -> None:
        path.write_bytes(b"drawn")

    content = TrackContent(lambda: make_blocks(shift), CONTIGS, INTERVALS, draw)
    with tempfile.TemporaryDirectory() as folder:
        write_format(Path(folder), name, content)
        return {one.name: one.read_bytes() for one in Path(folder).iterdir()}
