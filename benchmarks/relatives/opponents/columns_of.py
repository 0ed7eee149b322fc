"""Columns of a genome, by genodiff's search or by LAST's star alignment, and scores of them."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from genodiff.memory.columns import ColumnNumbers, combine
from genodiff.memory.profiles import ProfileScores, fit_profiles
from genodiff.memory.relatives_fit import fit_columns, measure_distances
from genodiff.memory.tree import (
    ProfileNumbers,
    count_votes,
    exchange,
    measure_change,
    measure_kappa,
    score_heads,
    score_votes,
    share_bases,
    weigh_relatives,
)

CODE = np.full(256, 4, np.uint8)
for _i, _c in enumerate("ACGT"):
    CODE[ord(_c)] = CODE[ord(_c.lower())] = _i
LENGTH, FIT_WINDOWS = 1024, 128
OURS = ("one score", "likelihood", "votes", "headcount")


class Contig(NamedTuple):
    """The target's codes, and `over` (G, L, 4) by genodiff and by LAST."""

    codes: np.ndarray
    ours: np.ndarray
    last: np.ndarray


def read_star(path: Path) -> tuple[np.ndarray, np.ndarray]:
    rows = [CODE[np.frombuffer(line.strip().encode(), np.uint8)]
            for line in path.open() if line[0] != ">"]  # fmt: skip
    return rows[0], np.eye(5, dtype=np.float16)[np.stack(rows[1:])][..., :4]


def open_contig(work: Path, genome: str, contig: str) -> Contig:
    star = {"yeast": "star_yeast", "ecoli": "star_ecoli", "chrM": "star_mt"}[genome]
    name = "target" if genome == "chrM" else contig
    codes, last = read_star(work / star / f"{name}.fa")
    with np.load(work / "ours" / genome / f"{contig}.npz") as kept:
        ours = kept["over"]
    ours = ours / np.maximum(ours.sum(-1, keepdims=True, dtype=np.float32), 1)
    return Contig(codes, ours.astype(np.float16), last)


class Fits(NamedTuple):
    """What is fitted to columns without any label."""

    weights: np.ndarray
    kappa: float
    columns: ColumnNumbers
    profiles: ProfileNumbers


def cut(values: np.ndarray, n: int, axis: int) -> np.ndarray:
    """Windows along the positions, at most n of them, evenly spread."""
    whole = values.shape[axis] // LENGTH
    some = np.linspace(0, whole - 1, min(n, whole)).astype(int)
    shape = (*values.shape[:axis], -1, LENGTH, *values.shape[axis + 1 :])
    values = np.take(values, np.arange(whole * LENGTH), axis).reshape(shape)
    return np.ascontiguousarray(np.take(values, some, axis))


def fit(codes: np.ndarray, over: np.ndarray, path: Path) -> Fits:
    """As `--relatives` does, on windows of one contig; the numbers are cached in `path`."""
    windows, over = cut(codes, FIT_WINDOWS, 0), cut(over, FIT_WINDOWS, 1).astype(np.float64)
    known = (windows < 4).all(1)
    windows, over = windows[known], over[:, known]
    distances = measure_distances(over, windows)
    weights, kappa = weigh_relatives(distances), measure_kappa(over, windows)
    if path.exists():
        kept = json.loads(path.read_text())
        profiles, columns = ProfileNumbers(**kept["profiles"]), ColumnNumbers(**kept["columns"])
        return Fits(weights, kappa, columns, profiles)
    every = slice(None, None, 4 if len(over) > 100 else 1)
    columns = fit_columns(
        np.ascontiguousarray(over[:, every]), windows[every], rounds=15 if len(over) > 100 else 40
    )
    profiles = fit_profiles(over, windows, distances, columns.tree, columns.gc)
    path.write_text(json.dumps(
        {"columns": columns.model_dump(mode="json"), "profiles": profiles.model_dump(mode="json")}
    ))  # fmt: skip
    return Fits(weights, kappa, columns, profiles)


def weigh_chain(codes: np.ndarray, over: np.ndarray, at: np.ndarray, fits: Fits) -> np.ndarray:
    """(P, 4): log L by the chain of classes (`auto` without the network)."""
    step, n, out = LENGTH // 2, len(codes), np.zeros((len(at), 4))
    starts = np.clip(at // step * step - step // 2, 0, max(n - LENGTH, 0))
    for start in np.unique(starts).tolist():
        window = codes[None, start : start + LENGTH]
        prior = np.broadcast_to(share_bases(fits.columns.gc), (*window.shape, 4))
        some = np.ascontiguousarray(over[:, None, start : start + LENGTH], np.float64)
        mine = np.flatnonzero(starts == start)
        factor = combine(some, window, prior, fits.columns)[0, at[mine] - start]
        out[mine] = np.log(np.maximum(factor, 1e-300))
    return out


def weigh_profiles(
    scores: ProfileScores, codes: np.ndarray, over: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """(P, 4): log L by profiles, from the middle halves of windows that overlap by a half."""
    step, last, out = LENGTH // 2, max(len(codes) - LENGTH, 0), np.zeros((len(at), 4))
    starts = np.minimum(np.maximum(at - step // 2, 0) // step * step, last)
    every = np.unique(starts)
    batch = 32 if len(over) < 10 else 1
    for first in range(0, len(every), batch):
        some = every[first : first + batch]
        places = some[:, None] + np.arange(min(LENGTH, len(codes)))
        logs = scores.weigh(over[:, places].astype(np.float64), codes[places])
        for start, one in zip(some.tolist(), logs, strict=True):
            mine = np.flatnonzero(starts == start)
            out[mine] = one[at[mine] - start]
    return out


def score_ours(codes: np.ndarray, over: np.ndarray, at: np.ndarray, fits: Fits) -> dict:
    """(P, 4) by each method of ours."""
    ref = np.minimum(codes, 3)[at].astype(int)
    change = measure_change(over[:, None], codes[None])[0][at]
    here = over[:, at].astype(np.float64)
    chain = weigh_chain(codes, over, at, fits)
    profiles = ProfileScores(fits.columns.tree, fits.columns.gc, fits.profiles)
    logs = weigh_profiles(profiles, codes, over, at)
    return {
        "one score": profiles.compare(logs, here, ref, change),
        "likelihood": chain - np.take_along_axis(chain, ref[:, None], 1),
        "votes": score_votes(
            count_votes(here, fits.weights), ref, total=float(fits.weights.sum()), kappa=fits.kappa
        ),
        "headcount": score_heads(here, ref, change),
    }


def score_counts(codes: np.ndarray, over: np.ndarray, at: np.ndarray, fits: Fits) -> dict:
    """(P, 4) by plain counts and our formulas, on LAST's columns; NaN where no genome lies."""
    ref, rows = np.minimum(codes, 3)[at].astype(int), np.arange(len(at))
    counts = over[:, at].sum(0, dtype=np.float64)
    n, genomes = counts.sum(1), len(over)
    spectrum = exchange(np.array(0.3), np.array(fits.kappa), 0.5)[ref]
    added = 0.3 * max(genomes / 3, 1) * spectrum
    out = {"counts + 1/2": np.log(counts + 0.5), "counts + exchange prior": np.log(counts + added)}
    out = {name: v - v[rows, ref][:, None] for name, v in out.items()}
    out["share with REF"] = np.repeat((-counts[rows, ref] / np.maximum(n, 1))[:, None], 4, 1)
    ours = score_ours(codes, over, at, fits)
    out |= {f"formula of {name}": ours[name] for name in ("one score", "votes", "headcount")}
    missing = np.where(n > 0, 0.0, np.nan)[:, None]
    return {f"LAST: {name}": v + missing for name, v in out.items()}


def read_wig(path: Path, n: int) -> np.ndarray:
    """(L,): values of a fixedStep file, NaN where there is none."""
    out, at = np.full(n, np.nan), 0
    with path.open() as lines:
        for line in lines:
            if line.startswith("fixedStep"):
                at = int(line.split("start=")[1].split()[0]) - 1
            elif line[0] not in "vt#":
                out[at] = float(line.split()[0])
                at += 1
    return out


def score_phast(work: Path, genome: str, contig: str, codes: np.ndarray, at: np.ndarray,
                covered: np.ndarray) -> dict:  # fmt: skip
    """(P, 4), minus the conservation of the position."""
    folder = work / {"yeast": "phast_yeast", "ecoli": "phast_ecoli", "chrM": "phast_mt"}[genome]
    name, out = "target" if genome == "chrM" else contig, {}
    for kind, title in (("lrt", "phyloP LRT"), ("gerp", "phyloP GERP"), ("cons", "phastCons")):
        value = -read_wig(folder / f"{name}.{kind}.wig", len(codes))[at]
        out[title] = np.repeat(np.where(covered, value, np.nan)[:, None], 4, 1)
    return out
