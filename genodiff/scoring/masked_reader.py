"""What a denoiser says at the masks of many windows: log p(base | all that is visible).

A window that is asked for several times is evaluated once. Windows of the same length go to the
network together and are never padded, so a row's values do not depend on its company.

A network that reads one strand may be asked about both: the logarithms of x and of its reverse
complement are averaged, base by base.

With a memory of the training genome, a window that says where it is from does not read that place.

A model without a network is read in NumPy, a network by `MaskedDiffusion.read_masks`.
"""

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import GenodiffError, UsageError
from genodiff.memory.memory import NOWHERE
from genodiff.registry import find_named
from genodiff.runs.related_reader import RelatedReader
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import OwnLoci, Place
from genodiff.scoring.methods import AUTO, SCORE_METHODS
from genodiff.scoring.spelling_pair import Flags, Ids, Logs

_REMEMBERING = "genodiff.memory.remembering:remembering"  # imports torch
_Key = tuple[bytes, tuple[int, int]]

SEEN = np.uint8(0x80)
"""Set in the id of a base that a reader of visible bases is asked about."""
_MOST_BASES = 1 << 18  # of a batch
_BASES = 1 << 15  # of a batch of no given size: calls of the network cost little beside their work


@dataclass(eq=False)
class MaskedReader:
    """Reads masked windows with one denoiser and counts its evaluations.

    `complement` (ids by id) is the other strand of a window, or None where there are no strands;
    with `both_strands`, every window is read on both. An evaluation is one window, on one strand or
    on both. `batch_size` None makes batches of so many windows as one call is worth. `loci` is a
    memory that the denoiser is given. With `visible`, what a window asks about is seen by the
    network, and not masked. `diffusion` says which ids are targets, and which the mask;
    a network is given its noise.
    """

    denoiser: Any
    diffusion: Any
    _: KW_ONLY
    complement: Ids | None = None
    both_strands: bool = False
    batch_size: int | None = None
    device: str = "cpu"
    loci: OwnLoci | None = None
    visible: bool = False
    evaluations: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        diffusion, complement = self.diffusion, self.complement
        if self.both_strands and complement is None:
            raise ValueError("both strands need a complement")
        self._column = np.full(256, -1, np.int64)
        self._column[list(diffusion.targets)] = np.arange(len(diffusion.targets))
        if complement is not None:
            turned = self._column[complement[list(diffusion.targets)]]
            self._turned = turned  # the column of each target's complement
        if self.visible and complement is not None:
            self.complement = np.arange(256, dtype=np.uint8)
            self.complement[: len(complement)] = complement
            self.complement[SEEN : SEEN + len(complement)] = complement | SEEN

    @property
    def mask_id(self) -> int:
        """The id of the mask."""
        return self.diffusion.mask_id

    def hide(self, ids: Ids, where: Flags) -> Ids:
        """`ids` that ask about the marked places: with the mask there, or with `SEEN`."""
        if self.visible:
            return np.where(where, ids | SEEN, ids)
        return np.where(where, np.uint8(self.mask_id), ids)

    def asks(self, window: Ids) -> Flags:
        """Which places of what `hide` gave are asked about."""
        return window >= SEEN if self.visible else window == self.mask_id

    def are_targets(self, ids: Ids) -> NDArray[np.bool_]:
        """Which ids can be masked and scored: A, C, G and T."""
        found: NDArray[np.bool_] = self._column[ids] >= 0
        return found

    def columns(self, ids: Ids) -> NDArray[np.int64]:
        """The column of each id in what `read` gives."""
        return self._column[ids]

    @property
    def related(self) -> RelatedReader | None:
        """The relatives that its denoiser reads; None without any."""
        return self.denoiser if isinstance(self.denoiser, RelatedReader) else None

    def read(
        self, windows: Sequence[Ids], places: Sequence[Place | None] | None = None
    ) -> list[Logs]:
        """For each window the logarithms (M, K) at its M masks, over the K targets; float64.

        `places` say where windows are from, for a memory. A window without a mask gives (0, K) and
        costs nothing. Raises `GenodiffError` for values that are not finite.
        """
        none = np.zeros((0, len(self.diffusion.targets)))
        keys = self._name(windows, places)
        pairs = zip(keys, windows, strict=True)
        known = {key: window for key, window in pairs if self.asks(window).any()}
        alike: dict[tuple[int, int], list[_Key]] = {}
        for key, window in known.items():
            places_asked = np.flatnonzero(self.asks(window))
            only = int(places_asked[0]) if len(places_asked) == 1 else -1
            alike.setdefault((len(window), only), []).append(key)
        found: dict[_Key, Logs] = {}
        for (length, _), contents in sorted(alike.items()):
            rows = max(1, min(self.batch_size or _BASES // length, _MOST_BASES // length))
            for first in range(0, len(contents), rows):
                some = contents[first : first + rows]
                group = np.stack([known[key] for key in some])
                own = [interval for _, interval in some]
                found.update(zip(some, self._read_group(group, own), strict=True))
        self.evaluations += len(known)
        return [found.get(key, none) for key in keys]

    def _name(self, windows: Sequence[Ids], places: Sequence[Place | None] | None) -> list["_Key"]:
        """What tells windows apart: their ids, and the interval of a memory that they leave out."""
        if self.loci is None or places is None:
            return [(window.tobytes(), NOWHERE) for window in windows]
        pairs = zip(windows, places, strict=True)
        return [(window.tobytes(), self.loci.leave_out(place)) for window, place in pairs]

    def _read_group(self, group: Ids, own: list[tuple[int, int]]) -> list[Logs]:
        given = self._evaluate(group, own)
        if not self.both_strands or self.complement is None:
            return given
        other = self._evaluate(self.complement[group[:, ::-1]], own)
        return [(one + two[::-1, self._turned]) / 2 for one, two in zip(given, other, strict=True)]

    def _evaluate(self, group: Ids, own: list[tuple[int, int]]) -> list[Logs]:
        masked = self.asks(group)
        group = group & ~SEEN if self.visible else group
        if hasattr(self.denoiser, "read_logs"):
            logs: Logs = self.denoiser.read_logs(group, masked)
        else:
            denoiser = self.denoiser
            if self.loci is not None:
                denoiser = find_named(_REMEMBERING)(denoiser, self.loci.memory, without=own)
            logs = self.diffusion.read_masks(denoiser, group, masked, self.device)
        if not np.isfinite(logs).all():
            raise GenodiffError("the network's values are not finite", fix="use another checkpoint")
        return np.split(logs, np.cumsum(masked.sum(1))[:-1])


def open_reader(
    model: TrainedModel,
    method: str = AUTO,
    batch_size: int | None = None,
    loci: OwnLoci | None = None,
) -> MaskedReader:
    """A reader of a trained model of DNA, with a memory where `loci` is one.

    A network that reads both strands is asked once; any other is asked on both. With a method of
    scoring that is `visible` it sees what it is asked about. Raises `UsageError` where it was
    trained to copy what it sees.
    """
    network, complement = model.network, model.alphabet.complement
    visible = method != AUTO and SCORE_METHODS[method].visible
    if visible and (loci is not None or isinstance(network, RelatedReader)):
        what = f"--method {method} asks the network alone"
        raise UsageError(what, fix="leave --relatives and --memory out, or give another --method")
    if visible and model.config.teacher is None:
        what = "was trained without --teacher: it says nothing of a base that it sees"
        fix = "give another --method, or train a model with --teacher"
        raise UsageError(what, file=model.run, fix=fix)
    return MaskedReader(
        network,
        model.diffusion if model.reads_network else model.alphabet,
        complement=None if complement is None else np.array(complement, np.uint8),
        both_strands=complement is not None and not network.paired,
        batch_size=batch_size,
        device=model.device,
        loci=loci,
        visible=visible,
    )


def leave_relatives_out(reader: MaskedReader) -> MaskedReader:
    """The reader of a network without its relatives, whose part of a site's score is added.

    With a memory too, the reader itself: a memory is mixed with all else.
    """
    if reader.loci is None and reader.related is not None:
        alone = copy.copy(reader)
        alone.denoiser, alone.evaluations = reader.related.network, 0
        return alone
    return reader
