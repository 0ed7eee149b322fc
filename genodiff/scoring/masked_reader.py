"""What a denoiser says at the masks of many windows: log p(base | all that is visible).

A window that is asked for several times is evaluated once. Windows of the same length go to the
network together and are never padded, so a row's values do not depend on its company.

A network that reads one strand may be asked about both: the logarithms of x and of its reverse
complement are averaged, base by base.

With a memory of the training genome, a window that says where it is from does not read that place.
"""

import copy
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.errors import GenodiffError
from genodiff.memory.memory import NOWHERE
from genodiff.memory.remembering import remembering
from genodiff.runs.model import TrainedModel
from genodiff.runs.related_model import RelatedBackbone
from genodiff.runs.training_memory import OwnLoci, Place
from genodiff.scoring.spelling_pair import Flags, Ids, Logs

_Key = tuple[bytes, tuple[int, int]]

_MOST_BASES = 1 << 18  # of a batch
_BASES = 1 << 15  # of a batch of no given size: calls of the network cost little beside their work


class MaskedReader:
    """Reads masked windows with one denoiser and counts its evaluations.

    `complement` (ids by id) is the other strand of a window, or None where there are no strands;
    with `both_strands`, every window is read on both. An evaluation is one window, on one strand or
    on both. `batch_size` None makes batches of so many windows as one call is worth. `loci` is a
    memory that the denoiser is given.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        diffusion: MaskedDiffusion,
        *,
        complement: Ids | None = None,
        both_strands: bool = False,
        batch_size: int | None = None,
        device: torch.device | str = "cpu",
        loci: OwnLoci | None = None,
    ) -> None:
        if both_strands and complement is None:
            raise ValueError("both strands need a complement")
        self.denoiser, self.diffusion, self.complement = denoiser, diffusion, complement
        self.both_strands, self.batch_size, self.device = both_strands, batch_size, device
        self.loci, self.evaluations = loci, 0
        self._column = np.full(256, -1, np.int64)
        self._column[list(diffusion.targets)] = np.arange(len(diffusion.targets))
        if complement is not None:
            turned = self._column[complement[list(diffusion.targets)]]
            self._turned = turned  # the column of each target's complement

    @property
    def mask_id(self) -> int:
        """The id of the mask."""
        return self.diffusion.mask_id

    def hide(self, ids: Ids, where: Flags) -> Ids:
        """`ids` with the mask at the marked places."""
        return np.where(where, np.uint8(self.mask_id), ids)

    def are_targets(self, ids: Ids) -> NDArray[np.bool_]:
        """Which ids can be masked and scored: A, C, G and T."""
        found: NDArray[np.bool_] = self._column[ids] >= 0
        return found

    def columns(self, ids: Ids) -> NDArray[np.int64]:
        """The column of each id in what `read` gives."""
        return self._column[ids]

    def with_denoiser(self, denoiser: Denoiser) -> Self:
        """A reader with another denoiser, all else being the same."""
        other = copy.copy(self)
        other.denoiser, other.evaluations = denoiser, 0
        return other

    @torch.inference_mode()
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
        known = {key: window for key, window in pairs if (window == self.mask_id).any()}
        alike: dict[tuple[int, int], list[_Key]] = {}
        for key, window in known.items():
            alike.setdefault((len(window), self._find_only_mask(window)), []).append(key)
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
        xt = torch.from_numpy(np.ascontiguousarray(group).astype(np.int64)).to(self.device)
        masked = group == self.mask_id
        denoiser = self.denoiser
        if self.loci is not None:
            denoiser = remembering(denoiser, self.loci.memory, without=own)
        chosen = self._ask(denoiser, xt, masked)
        logs: Logs = self.diffusion.target_logits(chosen).double().log_softmax(-1).cpu().numpy()
        if not np.isfinite(logs).all():
            raise GenodiffError("the network's values are not finite", fix="use another checkpoint")
        return np.split(logs, np.cumsum(masked.sum(1))[:-1])

    def _find_only_mask(self, window: Ids) -> int:
        """Where a window has its one mask; -1 where it has several."""
        at = int(window.tobytes().find(self.mask_id))
        return at if window.tobytes().find(self.mask_id, at + 1) < 0 else -1

    def _ask(self, denoiser: Denoiser, xt: Tensor, masked: NDArray[np.bool_]) -> Tensor:
        """The logits (M, V) of all masks, row after row; no more is computed than they need."""
        at = int(masked[0].argmax())
        logits_at = getattr(denoiser, "logits_at", None)
        if logits_at is not None and masked[:, at].all() and masked.sum() == len(masked):
            found: Tensor = logits_at(xt, at)
            return found
        sigma, rows = self._sigma(masked).to(self.device), torch.from_numpy(masked).to(self.device)
        if getattr(denoiser, "selects_rows", False):
            found = denoiser(xt, sigma, rows=rows)
            return found
        return denoiser(xt, sigma)[rows]

    def _sigma(self, masked: NDArray[np.bool_]) -> Tensor:
        """What the network is told of the noise: that of the time with this share of masks."""
        visible = 1 - torch.from_numpy(masked.mean(1))
        return self.diffusion.sigma(self.diffusion.schedule.inverse(visible))


def open_reader(
    model: TrainedModel, *, batch_size: int | None = None, loci: OwnLoci | None = None
) -> MaskedReader:
    """A reader of a trained model of DNA, with a memory where `loci` is one.

    A network that reads both strands is asked once; any other is asked on both.
    """
    backbone, complement = model.backbone, model.alphabet.complement
    return MaskedReader(
        backbone,
        model.diffusion,
        complement=None if complement is None else np.array(complement, np.uint8),
        both_strands=complement is not None and not backbone.paired,
        batch_size=batch_size,
        device=next(backbone.parameters()).device,
        loci=loci,
    )


def leave_relatives_out(reader: MaskedReader) -> MaskedReader:
    """The reader of a network without its relatives, whose part of a site's score is added.

    With a memory too, the reader itself: a memory is mixed with all else.
    """
    related = reader.denoiser
    if reader.loci is None and isinstance(related, RelatedBackbone):
        return reader.with_denoiser(related.network)
    return reader
