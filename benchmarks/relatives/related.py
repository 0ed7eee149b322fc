"""A run with relatives, any subset of them, and what they say of places of a genome.

The numbers are fitted as `--relatives` does, on the valid split: those of each genome on 128
windows, the tree and the classes of a subset on 64 of them.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from yeast_setting import FOUR, KEPT, LENGTH, SHARED

from genodiff.memory.columns import ColumnNumbers, combine, list_states, read_columns
from genodiff.memory.numbers import RELATIVE_SEARCH, RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.relatives_fit import fit_columns, fit_genome, measure_distances
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import (
    count_votes,
    measure_change,
    measure_kappa,
    score_heads,
    score_plainly,
    score_votes,
    share_bases,
    weigh_relatives,
)
from genodiff.runs.memory_fit import read_network
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.related_model import cut_fit_windows, list_genomes
from genodiff.runs.relatives import open_relatives
from genodiff.runs.training_memory import open_trained_store

SIX = (*FOUR, "Spar_N44", "Spar_YPS138")
STEP, APART = LENGTH // 2, 16


def list_files(names: Sequence[str], folder: str = "yeast") -> list[Path]:
    return [SHARED / "relatives" / folder / f"{name}.fa.gz" for name in names]


class Related(NamedTuple):
    """`network` alone, and all `relatives`, called `names`; `over_fit` lies over `fit`."""

    network: TrainedModel
    names: tuple[str, ...]
    relatives: Relatives
    fit: Codes
    over_fit: np.ndarray

    def choose(self, some: Sequence[str]) -> Relatives:
        """Of some of them, the tree and the classes fitted anew, and kept."""
        at = self.rows(some)
        names = " ".join(self.names[i] for i in at)
        path = KEPT / "columns" / f"{hashlib.sha256(names.encode()).hexdigest()[:20]}.json"
        if path.exists():
            columns = ColumnNumbers(**json.loads(path.read_text()))
        else:
            columns = fit_columns(np.ascontiguousarray(self.over_fit[at]), self.fit)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(columns.model_dump_json())
        return Relatives(tuple(self.relatives.genomes[i] for i in at), columns)

    def rows(self, some: Sequence[str]) -> list[int]:
        return [i for i, name in enumerate(self.names) if name in some]


def open_related(run: str | Path, names: Sequence[str] = SIX, folder: str = "yeast") -> Related:
    """A run and relatives, none of them chosen yet; their numbers fitted once, and kept."""
    network = load_model(Path(run), device="cpu")
    fit = cut_fit_windows(open_trained_store(network, False))
    genomes = []
    for one in open_relatives(list_genomes(list_files(sorted(names), folder))):
        memory = one.memory.with_numbers(RELATIVE_SEARCH)
        path = KEPT / "numbers" / f"{one.name.removesuffix('.fa')}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fit_genome(memory, fit, tell=print).numbers.model_dump_json())
        numbers = RelativeNumbers(**json.loads(path.read_text()))
        genomes.append(RelativeGenome.join(memory, numbers))
    relatives, fit = Relatives(tuple(genomes), None), fit[:: len(fit) // 64 or 1]
    return Related(network, tuple(sorted(names)), relatives, fit, relatives.align(fit))


def weigh_whole(
    relatives: Relatives, over: np.ndarray, clean: Codes, *, chain: bool = True
) -> np.ndarray:
    """(B, L, 4): the factor of each base by all bases but that of the place, nothing masked.

    Without the `chain` of classes a place is told nothing by its neighbours.
    """
    assert relatives.columns is not None
    if not chain:
        states = list_states(relatives.columns)
        column = read_columns(over.reshape(len(over), -1, 4), relatives.columns)
        rates = (states.share @ states.weights).mean(0)  # of the places of a codon, all frames
        return np.einsum("j,mjc->mc", rates, column).reshape(*clean.shape, 4)
    prior = np.broadcast_to(share_bases(relatives.columns.gc), (*clean.shape, 4))
    return combine(np.ascontiguousarray(over), clean, prior, relatives.columns)


def cover(n: int, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts of windows that have the places in their middle half, which one each place is in, and
    where it stands there.
    """
    blocks, window = np.unique(places // STEP, return_inverse=True)
    starts = np.clip(blocks * STEP - STEP // 2, 0, n - LENGTH)
    return starts, window, places - starts[window]


def align_places(
    relatives: Relatives, codes: Codes, places: np.ndarray, batch: int = 64
) -> tuple[np.ndarray, list[np.ndarray]]:
    """over (G, P, 4) at the places, and the windows and their `over`, for `weigh_places`."""
    starts, window, at = cover(len(codes), places)
    over = np.zeros((len(relatives.genomes), len(places), 4))
    kept = []
    for first in range(0, len(starts), batch):
        rows = np.stack([codes[a : a + LENGTH] for a in starts[first : first + batch]])
        found = relatives.align(rows)
        mine = np.flatnonzero((window >= first) & (window < first + batch))
        over[:, mine] = found[:, window[mine] - first, at[mine]]
        kept.append(found.astype(np.float32))
    return over, kept


def weigh_places(
    some: Relatives, rows: Sequence[int], codes: Codes, places: np.ndarray, kept: list[np.ndarray],
    *, chain: bool = True,
) -> np.ndarray:  # fmt: skip
    """(P, 4): ln of the factor of each base at the places, by the genomes `rows` of `kept`."""
    starts, window, at = cover(len(codes), places)
    out, first = np.zeros((len(places), 4)), 0
    for found in kept:
        n = found.shape[1]
        windows = np.stack([codes[a : a + LENGTH] for a in starts[first : first + n]])
        factors = weigh_whole(some, found[list(rows)].astype(float), windows, chain=chain)
        mine = np.flatnonzero((window >= first) & (window < first + n))
        out[mine] = np.log(factors[window[mine] - first, at[mine]])
        first += n
    return out


def read_places(
    model: TrainedModel, codes: Codes, places: np.ndarray, batch: int = 512
) -> np.ndarray:
    """(P, 4): ln p of a network at places, every `APART`-th base being masked at a time."""
    starts, window, at = cover(len(codes), places)
    row, which = np.unique(window * APART + at % APART, return_inverse=True)
    out = np.zeros((len(places), 4))
    for first in range(0, len(row), batch):
        some = row[first : first + batch]
        masked = np.stack([codes[starts[i] : starts[i] + LENGTH] for i in some // APART])
        for one, phase in zip(masked, some % APART, strict=True):
            one[phase::APART] = NONE
        p = read_network(model, masked)
        mine = np.flatnonzero((which >= first) & (which < first + batch))
        out[mine] = np.log(p[which[mine] - first, at[mine]])
    return out


def join(logs: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """ln p of a network times ln of the relatives' factors, summing to 1 again."""
    both = logs + factors
    return both - np.log(np.exp(both).sum(-1, keepdims=True))


def compare(logs: np.ndarray, ref: np.ndarray) -> np.ndarray:
    """(P, 4): log p(base) − log p(ref)."""
    return logs - np.take_along_axis(logs, ref[:, None].astype(int), 1)


def measure_places(
    rows: Sequence[int],
    codes: Codes,
    places: np.ndarray,
    kept: list[np.ndarray],
) -> np.ndarray:
    """(P,): how quickly the stretch around each place changes, by the genomes `rows` of `kept`."""
    starts, window, at = cover(len(codes), places)
    out, first = np.zeros(len(places)), 0
    for found in kept:
        n = found.shape[1]
        windows = np.stack([codes[a : a + LENGTH] for a in starts[first : first + n]])
        change = measure_change(found[list(rows)].astype(float), windows)
        mine = np.flatnonzero((window >= first) & (window < first + n))
        out[mine] = change[window[mine] - first, at[mine]]
        first += n
    return out


def vote(
    related: Related,
    rows: Sequence[int],
    over: np.ndarray,
    around: tuple[Codes, np.ndarray, list[np.ndarray]],
) -> dict:
    """Votes, heads and plain votes (P, 4), of the genomes `rows`; `over` (all of them, P, 4).

    `around`: the codes of a contig, the places there, and what `align_places` kept.
    """
    some, ref = list(rows), around[0][around[1]]
    distances = measure_distances(related.over_fit[some], related.fit)
    weights, kappa = weigh_relatives(distances), measure_kappa(related.over_fit[some], related.fit)
    votes, heads = (count_votes(over[some], each) for each in (weights, np.ones(len(some))))
    change = measure_places(some, *around)
    return {
        "votes": score_votes(votes, ref, total=float(weights.sum()), kappa=kappa),
        "headcount": score_heads(over[some], ref, change),
        "votes, plain": score_plainly(heads, ref),
    }
