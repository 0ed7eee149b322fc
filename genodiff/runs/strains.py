"""Which relatives are strains of the genome that is judged: told by their bases.

With the same species at hand, a test of evolution is a look-up. So windows of the target are drawn
at even distances, searched in each relative, and their identities measured (`memory/identity.py`).
Where most windows are nearly identical, the relative is left out, unless strains are asked for.
A relative with a contig that is the target's, base for base, is refused whatever is asked for.
How near a relative is to a genome is kept in the cache folder.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import DNA
from genodiff.data.stretches import encode_bases
from genodiff.errors import DataError, MachineError
from genodiff.io import atomic
from genodiff.io.cache import cache_dir
from genodiff.io.identity import sha256_json
from genodiff.io.target import read_json_object
from genodiff.memory.identity import STRAIN, measure_identities
from genodiff.memory.text import NONE, Codes
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.relatives import Relative, identify_relatives

WINDOWS, LENGTH = 200, 1024
_MOST_GAPS = 0.1
_log = logging.getLogger("genodiff")


class Kinship(NamedTuple):
    """How near a relative is to a target: the share of the target's bases that are `homologous`,
    the `identity` of these, the share of windows that are the `same` (above 98 %), and whether it
    is a `strain`, of the same species.
    """

    name: str
    homologous: float
    identity: float
    same: float
    strain: bool

    def describe(self) -> dict[str, Any]:
        """As JSON has it."""
        return self._asdict()


def draw_windows(
    genome: LetterSource,
    n: int = WINDOWS,
    length: int = LENGTH,
    *,
    contigs: Mapping[str, int] | None = None,
) -> Codes:
    """(≤ n, length): windows at even distances over the contigs (default: all), those with many N
    left out.

    Of a genome of short contigs they are as long as the longest of them.
    """
    contigs = genome.contigs if contigs is None else contigs
    length = min(length, max(contigs.values(), default=0))
    fits = [(name, size) for name, size in contigs.items() if size >= length > 0]
    starts = np.cumsum([0, *(size - length + 1 for _, size in fits)])
    rows = []
    for place in np.unique((np.arange(n) + 0.5) / n * starts[-1] // 1).astype(np.int64).tolist():
        i = int(np.searchsorted(starts, place, "right")) - 1
        if i >= len(fits):
            continue
        at = place - int(starts[i])
        codes = encode_bases(DNA.encode(genome.fetch(fits[i][0], at, at + length)))
        if (codes == NONE).mean() <= _MOST_GAPS:
            rows.append(codes)
    return np.array(rows, np.uint8).reshape(-1, length)


def measure_kinship(relative: Relative, windows: Codes) -> Kinship:
    """How near a relative is to the genome that the windows are from."""
    found = measure_identities(relative.memory, windows)
    homologous = float(found.homologous.mean()) if len(windows) else 0.0
    return Kinship(relative.name, homologous, found.mean, found.share_same, found.is_strain)


def keep_kinships(relatives: Sequence[Relative], genome: LetterSource) -> list[Kinship]:
    """`measure_kinship` of each: what the cache holds of a genome that says its `content` or its
    `sha256`, or measured now.
    """
    windows: Codes | None = None
    content, found = getattr(genome, "content", None) or getattr(genome, "sha256", None), []
    for one, identity in zip(relatives, identify_relatives(relatives), strict=True):
        key = {"relative": identity, "genome": content, "windows": [WINDOWS, LENGTH, STRAIN]}
        path = cache_dir() / "relatives" / f"{sha256_json(key)[:32]}.json"
        told = read_json_object(path) if content else {}
        if set(told) == set(Kinship._fields):
            found.append(Kinship(**told))
            continue
        windows = draw_windows(genome) if windows is None else windows
        found.append(measure_kinship(one, windows))
        if content:
            with suppress(MachineError):
                atomic.write_json(path, found[-1].describe())
    return found


def leave_strains_out(
    relatives: Sequence[Relative], genome: LetterSource, *, strains: bool = False
) -> tuple[list[Relative], list[Kinship]]:
    """The relatives that are no strains of a genome (with `strains` all), and how near each is.

    Raises `DataError` where one of them has a contig of the genome itself, base for base.
    """
    kept = []
    relatives = [one for one in relatives if not _is_same(one, genome)]
    near = keep_kinships(relatives, genome)
    for relative, kinship in zip(relatives, near, strict=True):
        if kinship.strain and not strains:
            _log.warning(
                "%s is left out: %.0f %% of the windows have more than %.0f %% identity, so it is "
                "of the same species (--strains lets it in)",
                relative.name,
                100 * kinship.same,
                100 * STRAIN,
            )
        else:
            kept.append(relative)
    return kept, near


def _is_same(relative: Relative, genome: LetterSource) -> bool:
    """Whether one genome of a file with many is the genome itself; raises for other relatives."""
    for contig in genome.contigs:
        if relative.contigs.find(genome, contig) is not None:
            what = f"the relative {relative.name} holds {contig} of the genome itself"
            if relative.told.get("records"):
                _log.warning("%s is left out: %s", relative.name, what)
                return True
            fix = "leave it out: a genome cannot be its own relative"
            raise DataError(what, file=relative.told.get("source"), fix=fix)
    return False
