"""Constraints inside a sampler: what a step reveals is drawn together, by forward–backward.

A piece of a contig may be longer than the network's window, and is then filled window by window.
Its masks outside the window have no probabilities yet: each base counts as equally likely there. So
whatever is drawn can be completed, in later windows too.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.alphabet import Alphabet
from genodiff.constraints.chain import DrawnBases, Weights, draw_bases, scale_rows
from genodiff.constraints.constraint import BASES
from genodiff.constraints.layers import Layers
from genodiff.errors import UsageError
from genodiff.generate.block_reading import Ids
from genodiff.generate.sampling import Sampling
from genodiff.kernels.library import call, is_loaded

Numbers = NDArray[np.int64]
REDRAWS = 100
"""Times that a piece is drawn until it is accepted."""
CONSTRAINED_SAMPLERS = ("ancestral", "confidence", "first-hitting")
"""Samplers that draw every token of a step by `Filling.reveal`, once and for good."""


class ConstrainedPiece(NamedTuple):
    """What the ids of a piece must satisfy; `places` (F,) are the free positions of its layers."""

    layers: Layers
    places: NDArray[np.int64]
    accepts: Callable[[Ids], bool] | None = None
    """Whether a finished piece satisfies what no automaton says; another is drawn again."""


class ConstrainedRows:
    """A `JointDraw` for windows (spans) of pieces, whose ids outside the windows are given."""

    def __init__(
        self, rows: Sequence[tuple[ConstrainedPiece | None, Ids, slice]], alphabet: Alphabet
    ) -> None:
        self._rows = rows
        self._symbol = np.full(256, -1)
        for symbol, base in enumerate(BASES):
            self._symbol[alphabet.encode(base)] = symbol
        self._placed: dict[int, tuple[Numbers | slice, Numbers | slice, Numbers]] = {}

    def __call__(
        self, row: int, x: Tensor, due: Tensor, logw: Tensor, u: Tensor, error: float
    ) -> tuple[Tensor, bool]:
        """The bases at the due positions, and whether errors of `logw` could change one."""
        piece, _, _ = self._rows[row]
        assert piece is not None
        inside, here, known = self._place(row)
        known[inside] = self._symbol[x.cpu().numpy()[here]]
        weights = np.zeros((len(known), 4))
        weights[inside] = logw.cpu().numpy()[here]
        given = np.flatnonzero(known >= 0)
        weights[given] = -np.inf
        weights[given, known[given]] = 0.0
        is_due, uniforms = np.zeros(len(known), bool), np.zeros(len(known))
        is_due[inside] = due.cpu().numpy()[here]
        uniforms[inside] = u.cpu().numpy()[here]
        drawn = draw_fast(piece.layers, weights, is_due, uniforms, error)
        return torch.from_numpy(drawn.symbols.astype(np.int64)).to(x.device), drawn.close

    def _place(self, row: int) -> tuple[Numbers | slice, Numbers | slice, Numbers]:
        """Of the free positions those in the window, their places in it, and all known symbols."""
        if row not in self._placed:
            piece, ids, span = self._rows[row]
            assert piece is not None
            inside = np.flatnonzero((piece.places >= span.start) & (piece.places < span.stop))
            known = self._symbol[ids[piece.places]]
            here = piece.places[inside] - span.start
            self._placed[row] = _span(inside), _span(here), known
        return self._placed[row]


def _span(places: Numbers) -> Numbers | slice:
    """A slice where the places are all of a stretch: no index is looked up then."""
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def draw_fast(
    layers: Layers, logp: Weights, due: NDArray[np.bool_], u: Weights, error: float
) -> DrawnBases:
    """As `draw_bases`, in C where the library is here and nothing underflows."""
    if is_loaded():
        found = draw_in_c(*layers.packed, scale_rows(logp), due, u, error)
        if found is not None:
            return DrawnBases(*found)
    return draw_bases(layers, logp, due, u, error)


def draw_in_c(
    tables: NDArray[np.int32],
    begin: NDArray[np.int64],
    first: NDArray[np.int64],
    gains: Weights | None,
    p: Weights,
    due: NDArray[np.bool_],
    u: Weights,
    error: float,
) -> tuple[NDArray[np.int8], bool] | None:
    """The bases at the due positions, and whether errors of log p by `error` could change one.

    `tables`, `begin`, `first` and `gains` are a `PackedLayers`; `p` is (F, 4), `due` and `u` (F,).
    None where a message may underflow. Raises `MemoryError`.
    """
    symbols, told = np.zeros(len(p), np.int8), np.zeros(2, np.int64)
    arrays: dict[str, NDArray[Any]] = {
        "tables": tables, "begin": begin, "first": first, "p": p.copy(), "due": due, "u": u,
        "error": np.array([error]), "symbols": symbols, "told": told,
    }  # fmt: skip
    arrays |= {} if gains is None else {"gains": gains}
    most = int((first[1:] - first[:-1]).max())
    call("chain", arrays, backward=False, F=len(p), most=most)
    return (symbols[due], bool(told[1])) if told[0] else None


def check_constrained(how: Sampling) -> None:
    """Raises `UsageError` for settings that do not go with constraints."""
    if how.sampler not in CONSTRAINED_SAMPLERS:
        what = f"sampler '{how.sampler}' does not go with constraints"
        raise UsageError(what, fix=f"choose {', '.join(CONSTRAINED_SAMPLERS)}")
    if not how.temperature > 0 or how.top_p < 1 or how.allow_n:
        what = "constraints need a temperature above 0, and all of A, C, G and T"
        raise UsageError(what, fix="leave --temperature 0, --top-p and --allow-n out")
