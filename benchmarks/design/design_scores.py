"""What each set of designs is worth: rows for seeds, and one for all seeds together.

    guided, judge, third   medians by oracle A, which guided, oracle B, and the ridge on words
    bits                   mean bits per base under the generator without guidance, at most
    difference             mean share of bases in which a design differs from the nearest other one
                           of its set, of as many designs in each set
    words                  correlation of 6-mer counts with native cores of the train chromosomes
    match                  longest stretch in common with what the generator read: median, longest

An interval over seeds is Student's t of the seeds' figures. That of `words` is a jackknife over
seeds. `hacked` is that of `genodiff scorecard --designs`.
"""

import json
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from promoter_oracles import OneHotOracle, Ridge, find_unit, score
from scipy.stats import t
from yeast import read_fasta

from genodiff.alphabet import DNA
from genodiff.counter import Purpose, generator
from genodiff.data.dna_windows import SequenceWindows
from genodiff.data.loader import EvalBatches
from genodiff.evaluation.bound import measure_bound
from genodiff.io.fasta import Record
from genodiff.quality.match_index import MatchIndex
from genodiff.quality.measured_scorecard import open_train
from genodiff.quality.scorecard import kmer_counts
from genodiff.runs.model import TrainedModel, load_model

Row = dict[str, Any]
RESAMPLED = 2000
NATIVES, PUBLISHED = "natives, held out", "published designs"


NAMES = ("guided", "judge", "third", "bits", "match")


class Scores:
    """Every figure of single sequences, asked once for each and kept in `scores.json`.

    `natives` are the held-out native cores.
    """

    def __init__(self, out: Path, texts: list[str]) -> None:
        self.natives = read_fasta(out / "data" / "natives_held.fa")
        self.read_words = count_words(read_fasta(out / "data" / "natives_train.fa"))
        kept = out / "scores.json"
        self.known: dict[str, list[float]] = json.loads(kept.read_text()) if kept.exists() else {}
        new = sorted({*texts, *self.natives} - set(self.known))
        if new:
            self.known |= zip(new, measure(out, new).tolist(), strict=True)
            kept.write_text(json.dumps(self.known))

    def __call__(self, name: str, texts: list[str]) -> np.ndarray:
        return np.array([self.known[text][NAMES.index(name)] for text in texts])

    def describe(self, texts: list[str], n: int) -> Row:
        """The row of a set; its difference is that of the first `n`."""
        row: Row = {"n": len(texts)}
        for name in ("guided", "judge", "third"):
            row[name] = float(np.median(self(name, texts)))
        row["bits"] = float(self("bits", texts).mean())
        some = [DNA.encode(text) for text in texts[:n]]
        identity = MatchIndex(some).measure_identity(some, skip_own=True)
        row["difference"] = float(1 - identity.mean())
        row["match"] = float(np.median(self("match", texts)))
        row["longest match"] = int(self("match", texts).max())
        return row

    def correlate(self, texts: list[str]) -> float:
        """Of 6-mer counts with those of natives that the generator could read."""
        return float(np.corrcoef(count_words(texts), self.read_words)[0, 1])

    def correlate_natives(self, n: int, draws: int = 50) -> list[float]:
        """The same of n held-out natives: the mean and the middle 95 % of draws."""
        order = np.random.default_rng(1)
        found = [
            self.correlate([self.natives[i] for i in order.choice(len(self.natives), n, False)])
            for _ in range(draws)
        ]
        return [float(np.mean(found)), *np.quantile(found, [0.025, 0.975]).tolist()]

    def judge_gains(self, texts: list[str], sign: int) -> Row:
        """Gains by oracle and judge over natives, in their standard deviations."""
        names = ("guided", "judge")
        made = np.stack([self(name, texts) for name in names])
        return measure_gains(made, np.stack([self(n, self.natives) for n in names]), sign=sign)


def measure_gains(
    made: np.ndarray, real: np.ndarray, *, sign: int = 1, seed: int = 1
) -> dict[str, Any]:
    """Gains of scores (2, n), guided and judge, over real ones (2, m), and the transfer.

    `transfer` is the judge's gain over the oracle's: 1 where the judge agrees, 0 where the oracle
    alone was pleased. Intervals are a bootstrap over designs and over real sequences.
    """
    draws = generator(seed, Purpose.BOOTSTRAP)

    def find(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        spread = np.maximum(b.std(1, ddof=1), 1e-12) if b.shape[1] > 1 else np.ones(2)
        gain: np.ndarray = sign * (a.mean(1) - b.mean(1)) / spread
        return gain

    guided, judge = find(made, real)
    again = np.stack(
        [
            find(*(part[:, draws.integers(part.shape[1], size=part.shape[1])] for part in pair))
            for pair in repeat((made, real), RESAMPLED)
        ]
    )
    ends = np.quantile(again, [0.025, 0.975], axis=0)
    found = {
        "guided": {"value": float(guided), "ci95": ends[:, 0].tolist()},
        "judge": {"value": float(judge), "ci95": ends[:, 1].tolist()},
        "transfer": None,
        "hacked": False,
    }
    if ends[0, 0] > 0:  # a ratio means something where the oracle's gain is sure
        ratio = again[:, 1] / np.maximum(again[:, 0], 1e-12)
        low, high = np.quantile(ratio, [0.025, 0.975]).tolist()
        found["transfer"] = {"value": float(judge / guided), "ci95": [low, high]}
        found["hacked"] = high < 0.5
    return found


def bound_nats(model: TrainedModel, texts: list[str]) -> np.ndarray:
    """An upper bound on -log p of each sequence under a masked model, in nats."""
    records = [Record(str(i), "", text.encode(), 0) for i, text in enumerate(texts)]
    windows = SequenceWindows(records, model.config.data.seq_len)
    batches = EvalBatches(windows, max(1, 8192 // windows.seq_len), 1, 8)
    nats = measure_bound(model.objective, model.backbone, batches, torch.device("cpu")).nats
    return np.bincount(windows.contig_index, nats.sum(0).mean(0), len(texts))


def measure(out: Path, texts: list[str]) -> np.ndarray:
    """The figures (n, 5) of sequences, in the order of `NAMES`."""
    train, _, _ = open_train(out / "generator", None, True)
    assert train is not None
    ids = [DNA.encode(text) for text in texts]
    nats = bound_nats(load_model(out / "generator", device="cpu"), texts)
    columns = [
        score(OneHotOracle(find_unit(out / "A")), texts),
        score(OneHotOracle(find_unit(out / "B")), texts),
        Ridge(out / "data" / "C.csv").score(texts),
        nats / [len(text) for text in texts] / np.log(2),
        train.search([ids])[0].longest.astype(float),
    ]
    return np.stack(columns, 1)


def count_words(texts: list[str]) -> np.ndarray:
    return kmer_counts([DNA.encode(text) for text in texts], 6)


def read_designs(out: Path, seeds: list[int]) -> dict[tuple[str, str, int], tuple[list[str], Row]]:
    """Designs and their costs by aim, method and seed."""
    found = {}
    for seed in seeds:
        for path in sorted((out / "designs" / f"seed{seed}").glob("*/*.json")):
            cost = json.loads(path.read_text())
            texts = read_fasta(path.with_suffix(".fa"))
            found[path.parent.name, path.stem, seed] = (texts, cost)
    return found


def join_seeds(scores: Scores, rows: list[Row], sets: list[list[str]], sign: int) -> Row:
    """One row for a method and an aim, of the rows and designs of its seeds."""
    joined: Row = {"n": sum(map(len, sets)), "seeds": len(rows)}
    for name in ("guided", "judge", "third", "bits", "difference", "match"):
        joined[name] = estimate([row[name] for row in rows])
    joined["longest match"] = max(row["longest match"] for row in rows)
    joined["calls"] = float(np.mean([row["calls"] for row in rows]))
    joined["cpu_seconds"] = float(np.mean([row["cpu_seconds"] for row in rows]))
    joined["words"] = jackknife(scores.correlate, sets)
    joined["words of natives"] = scores.correlate_natives(joined["n"])
    joined["gains"] = scores.judge_gains([text for some in sets for text in some], sign)
    return joined


def estimate(values: list[float]) -> list[float]:
    """The mean over seeds and its 95 % interval."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return [mean, mean, mean]
    reach = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5)
    return [mean, mean - reach, mean + reach]


def jackknife(measure: Callable[[list[str]], float], sets: list[list[str]]) -> list[float]:
    """A figure of all sets together, and its 95 % interval by leaving out one at a time."""
    whole, n = measure([text for some in sets for text in some]), len(sets)
    if n < 2:
        return [whole, whole, whole]
    less = [measure([x for j, some in enumerate(sets) if j != i for x in some]) for i in range(n)]
    reach = float(t.ppf(0.975, n - 1) * np.sqrt((n - 1) * np.var(less)))
    return [whole, whole - reach, whole + reach]
