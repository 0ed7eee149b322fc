"""A memory of the training genome in sampling: `--memory on|off|novel`.

    on      the network is given the memory (`memory/remembering.py`)
    novel   so too, and a record whose longest train match is above that of 9 in 10 held-out
            sequences of its length is drawn again, with draws of its own

Drawing again is exact: what comes out has the law of `on`, given that no match is longer. Of a
template, only matches that hold a filled base count, in records and in held-out sequence alike.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from genodiff.alphabet import ID_CODES
from genodiff.diffusion.masked import Denoiser
from genodiff.errors import DataError, GenodiffError
from genodiff.generate.block_reading import Ids
from genodiff.generate.sampling import Sampling
from genodiff.memory.matches import TrainMatch, find_longest_match
from genodiff.memory.memory import NOWHERE, identify_memory
from genodiff.memory.remembering import remembering
from genodiff.memory.text import Codes
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import Place, list_stretches, open_loci

TRIES = 100
"""Draws of a record before `novel` gives up."""
_QUANTILE = 0.9
_HELD_OUT = 200  # sequences that a limit is measured on, at most


class SampleMemory:
    """The memory of a model's training genome, for drawing and for telling what was copied."""

    def __init__(
        self, model: TrainedModel, how: Sampling, genome: LetterSource | None = None
    ) -> None:
        """`genome`: whose regions are filled; each leaves its own locus out.

        Raises `UsageError`, `DataError` and `CheckpointError` where there can be none.
        """
        loci = open_loci(model, genome, "on")
        assert loci is not None
        self.memory, self._store, self.told = loci.memory, loci.found.store, loci.told
        self._loci, self._run = loci, model.run
        self.novel = how.memory == "novel"
        self._held_out: dict[bytes, NDArray[np.int64]] = {}

    def leave_out(self, place: Place) -> tuple[int, int]:
        """The interval of the memory's text that the window at `place` must not read."""
        return self._loci.leave_out(place)

    def wrap(self, denoiser: Denoiser, own: tuple[int, int] = NOWHERE) -> Denoiser:
        """`denoiser` with the memory, but for the interval `own` of its text."""

        def remember(xt: Tensor, *more: Tensor) -> Tensor:
            return remembering(denoiser, self.memory, without=[own] * len(xt))(xt, *more)

        return remember

    def find_match(self, ids: Ids, drawn: NDArray[np.bool_]) -> TrainMatch | None:
        """The longest train match of a record that holds a drawn base."""
        return find_longest_match(self.memory, ID_CODES[ids], drawn)

    def is_novel(self, ids: Ids, drawn: NDArray[np.bool_]) -> bool:
        """Whether a record's longest train match is within the limit."""
        match = self.find_match(ids, drawn)
        return match is None or match.length <= self.find_limit(drawn)

    def find_limit(self, drawn: NDArray[np.bool_]) -> int:
        """The longest train match that 9 in 10 held-out sequences stay within, in bases.

        They are of the valid split, as long as `drawn`, and evenly spread. Raises `DataError` where
        it has none.
        """
        return int(np.quantile(self._match_held_out(drawn), _QUANTILE, method="higher"))

    def compare(self, matches: list[int], length: int) -> dict[str, Any]:
        """What a sidecar says of the longest train matches of new sequences of `length` bases.

        They stand beside those of held-out sequence, which is None where there is none so long.
        """
        told, whole = {"records": _describe_matches(matches)}, np.ones(length, np.bool_)
        try:
            held_out, limit = self._match_held_out(whole), self.find_limit(whole)
        except DataError:
            return {**told, "held_out": None}
        above = sum(one > limit for one in matches)
        told["held_out"] = _describe_matches(held_out)
        return told | {"limit": limit, "above_limit": above}

    def _match_held_out(self, drawn: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The longest train match of each held-out sequence as long as `drawn`, in bases."""
        key = np.packbits(drawn).tobytes() + len(drawn).to_bytes(8, "big")
        if key not in self._held_out:
            some = self._list_held_out(len(drawn))
            matches = (find_longest_match(self.memory, codes, drawn) for codes in some)
            lengths = [0 if match is None else match.length for match in matches]
            self._held_out[key] = np.array(lengths, np.int64)
        return self._held_out[key]

    def _list_held_out(self, length: int) -> list[Codes]:
        valid = [codes for _, _, codes in list_stretches(self._store, "valid")]
        places = [(c, at) for c in valid for at in range(0, len(c) - length + 1, length)]
        if not places:
            what = "--memory novel compares with held-out sequence, and the valid split has none of"
            file, fix = self._store.source.path, "give a smaller --length, or --memory on"
            raise DataError(f"{what} {length:,} bases", file=file, fix=fix)
        chosen = np.linspace(0, len(places) - 1, min(len(places), _HELD_OUT)).astype(int)
        return [codes[at : at + length] for codes, at in (places[i] for i in chosen.tolist())]

    def refuse(self, number: int, drawn: NDArray[np.bool_]) -> GenodiffError:
        """The error of a record that no draw made novel."""
        what = f"record {number + 1}: none of {TRIES} draws has a train match of at most "
        fix = "give --memory on, or --memory off"
        return GenodiffError(f"{what}{self.find_limit(drawn)} bases", fix=fix)

    def identify(self) -> dict[str, Any]:
        """What decides the records, as plain values."""
        return identify_memory(self.told)

    def describe(self) -> dict[str, Any]:
        """What a sidecar says of it."""
        return {"memory": {"mode": "novel" if self.novel else "on", **self.told}}

    def describe_record(self, ids: Ids, drawn: NDArray[np.bool_]) -> dict[str, Any]:
        """What a sidecar says of a record: its longest train match, and what it may be."""
        match = self.find_match(ids, drawn)
        found = {"train_match": None if match is None else match._asdict()}
        return found | ({"match_limit": self.find_limit(drawn)} if self.novel else {})


def _describe_matches(given: NDArray[np.int64] | list[int]) -> dict[str, Any]:
    n, lengths = len(given), np.array(given, np.int64)
    median, longest = (float(np.median(lengths)), int(lengths.max())) if n else (None, None)
    return {"sequences": n, "median": median, "longest": longest}
