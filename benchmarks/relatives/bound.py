"""The bound with relatives, the network beside it: yeast chrXIV, everything fitted on chrXVI.

    python benchmarks/relatives/bound.py RUN 150 6 [chrXIV [Spar_CBS432 ...]]

RUN: a network trained without both chromosomes. Bits of a masked base, mean over k = 1..n in
strata, of windows evenly spread over the chromosome; and leave-one-out: each place under all
others, in one pass (the diagonals are those of the whole window; the network is left out).
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from yeast_setting import FOUR, cut, mask, open_relative

from genodiff.memory.columns import combine
from genodiff.memory.fitting import measure_bits
from genodiff.memory.relatives import Relatives
from genodiff.memory.relatives_fit import fit_columns, fit_relatives
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import share_bases
from genodiff.runs.memory_fit import read_network
from genodiff.runs.model import load_model


def say(
    name: str, values: np.ndarray, window: np.ndarray, beside: np.ndarray | None = None
) -> None:
    def summarise(v: np.ndarray) -> list[float]:
        each = np.array([v[window == w].mean() for w in np.unique(window)])
        return [round(float(each.mean()), 4), round(float(each.std(ddof=1) / len(each) ** 0.5), 4)]

    line = {"what": name, "bits": summarise(values)}
    if beside is not None:
        line["beside"] = summarise(values - beside)
    print(json.dumps(line), flush=True)


def leave_one_out(relatives: Relatives, over: np.ndarray, clean: Codes) -> np.ndarray:
    columns = relatives.columns
    assert columns is not None
    prior = np.broadcast_to(share_bases(columns.gc), (*clean.shape, 4))
    p = combine(over, clean, prior, columns) * prior
    p /= p.sum(-1, keepdims=True)
    return -np.log2(np.take_along_axis(p, clean[..., None].astype(int), -1)[..., 0]).mean(1)


def main() -> None:
    n, draws = int(sys.argv[2]), int(sys.argv[3])
    contig = sys.argv[4] if len(sys.argv) > 4 else "chrXIV"
    names = tuple(sys.argv[5:]) or FOUR
    model = load_model(Path(sys.argv[1]))
    clean = cut(contig, n)
    rows, window = mask(clean, draws, 2)
    truth, own = clean[window], np.arange(len(clean))
    network = read_network(model, rows)
    alone = measure_bits(network, rows, truth)
    say("network alone", alone, window)
    fit = cut("chrXVI", 60)
    begun = time.time()
    all_ = fit_relatives([open_relative(name) for name in names], fit)
    print(json.dumps({"fit_seconds": round(time.time() - begun)}), flush=True)
    begun = time.time()
    over = all_.align(rows)
    print(json.dumps({"ms_a_window_align": round(1e3 * (time.time() - begun) / len(rows), 1)}))
    of_fit, whole = all_.align(fit), all_.align(clean)
    before = alone
    for g in range(1, len(names) + 1):
        columns = fit_columns(of_fit[:g], fit)
        some = Relatives(all_.genomes[:g], columns)
        begun = time.time()
        p = network * combine(np.ascontiguousarray(over[:g]), rows, network, columns)
        spent = 1e3 * (time.time() - begun) / len(rows)
        p /= p.sum(-1, keepdims=True)
        bits = measure_bits(p, rows, truth)
        say(f"{g}: {names[:g]}", bits, window, before)
        say(
            f"{g}: leave-one-out, no network",
            leave_one_out(some, np.ascontiguousarray(whole[:g]), clean),
            own,
        )
        rate = (rows == NONE).mean(1)
        curve = [
            round(float(bits[(rate > a) & (rate <= a + 0.125)].mean()), 3)
            for a in np.arange(0, 1, 0.125)
        ]
        print(json.dumps({"by_rate": curve, "ms_a_window_combine": round(spent, 2)}), flush=True)
        before = bits


if __name__ == "__main__":
    main()
