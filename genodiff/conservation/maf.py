"""The alignment that was scored, as MAF: one block for each tile, for phyloFit, phyloP and others.

Rows are the columns that were tested (`memory/column_rates.py`): the target, then each genome that
is present in the tile, with `-` where it is not. Insertions in a related genome are not shown, and
its rows have no coordinates of its own, since a tile may be covered from several places of it: each
is a contig of its own, by the number of the block.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from genodiff.conservation.values import ConstraintPiece
from genodiff.memory.text import NONE

_LETTERS = np.frombuffer(b"ACGT-", np.uint8)


def format_blocks(
    target: str,
    names: Sequence[str],
    contigs: Mapping[str, int],
    pieces: Iterable[tuple[str, int, str, ConstraintPiece]],
) -> Iterator[str]:
    """The lines of a MAF; `pieces` are contig, start, letters of the reference, and the piece.

    `target` and `names` are the species of the rows, `contigs` the lengths of the target's.
    """
    yield "##maf version=1 scoring=none program=genodiff\n"
    for number, (contig, start, letters, piece) in enumerate(pieces):
        rows = [_row(f"{target}.{contig}", start, len(letters), contigs[contig], letters)]
        for g, name in enumerate(names):
            bases = piece.bases[:, g]
            n = int((bases < NONE).sum())
            if n:
                text = _LETTERS[np.minimum(bases, NONE)].tobytes().decode()
                rows.append(_row(f"{name}.aligned_{number}", 0, n, n, text))
        if len(rows) > 1:
            yield "a score=0\n" + "".join(rows) + "\n"


def _row(source: str, start: int, size: int, of: int, text: str) -> str:
    return f"s {source} {start} {size} + {of} {text}\n"
