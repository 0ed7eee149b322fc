"""Scores of variants beside what was measured of them, and beside what counting gives.

    python benchmarks/variants/run.py --data SHARED/data --yeast RUN --human RUN --out FOLDER

RUN is a run folder of `genodiff train sacCer3` or `train hg38`. Each (data set, checkpoint, seed,
limit) is a row of results.jsonl and is not made again, so the same command goes on where it
stopped. RESULTS.md and overview.svg are written after every row; FINDINGS.md, if there is one, is
the end of RESULTS.md. --only-write makes them again.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from commands import cpu  # noqa: E402
from variant_measures import (  # noqa: E402
    auprc,
    auroc,
    bootstrap,
    gc_change,
    pearson,
    rank_within,
    ridge_left_out,
    spearman,
    word_changes,
)
from variant_page import FILE, read_rows, write  # noqa: E402
from variant_sets import SETS, Examples, VariantSet, cut_pairs  # noqa: E402
from yeast_laws import LAWS, draw_variants, is_of, mean_gap, read_genes  # noqa: E402

import genodiff  # noqa: E402
from genodiff.data.store import split_stretches  # noqa: E402
from genodiff.evaluation.eval_data import open_data  # noqa: E402
from genodiff.evaluation.lines import count_train_words  # noqa: E402
from genodiff.evaluation.markov import count, fit, fit_pseudo  # noqa: E402
from genodiff.io.faidx import Genome  # noqa: E402
from genodiff.runs.folder import find_git_revision  # noqa: E402
from genodiff.runs.model import load_model  # noqa: E402

LAW_SET, DEEPEST = "yeast_laws", 11
_CODE = np.full(256, 4, np.uint8)
_CODE[list(b"ACGT")] = range(4)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder with variants/, dms/, promoters/")
    parser.add_argument("--yeast", type=Path, help="a run of sacCer3")
    parser.add_argument("--human", type=Path, help="a run of hg38")
    parser.add_argument("--only", nargs="+", choices=[*SETS, LAW_SET], help="these sets alone")
    parser.add_argument("--limit", type=int, default=1500, help="variants of a set that is drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE, help="where tables go")
    parser.add_argument("--only-write", action="store_true", help="write the tables again")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    if not asked.only_write:
        if asked.data is None:
            parser.error("--data is needed")
        for name, run in (("yeast", asked.yeast), ("human", asked.human)):
            if run is not None:
                measure_run(name, run, asked)
    write(asked.out)


def measure_run(name: str, run: Path, asked: argparse.Namespace) -> None:
    """The rows of one run that are not there yet, cheap sets first."""
    counting: Counting | None = None
    digest = load_model(run, device="cpu").digest
    wanted = [n for n, one in SETS.items() if one.run == name]
    wanted += [LAW_SET] if name == "yeast" else []
    for set_name in wanted:
        key = {
            "set": set_name, "run": run.name, "checkpoint": digest, "limit": asked.limit,
            "seed": asked.seed,
        }  # fmt: skip
        skip = asked.only and set_name not in asked.only
        if skip or any(all(row[k] == key[k] for k in key) for row in read_rows(asked.out)):
            continue
        counting = counting or Counting(run)
        began = time.process_time()
        if set_name == LAW_SET:
            found = measure_laws(run, counting, asked)
        else:
            found = measure_set(SETS[set_name], run, counting, asked)
        row = {
            **key, **found, "step": counting.model.step, "train_seed": counting.model.config.seed,
            "commit": find_git_revision(), "hardware": f"{cpu()}, 1 thread",
            "process_seconds": round(time.process_time() - began, 1),
        }  # fmt: skip
        with (asked.out / FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{run.name}: {set_name}", file=sys.stderr, flush=True)
        write(asked.out)


class Counting:
    """What the run's train split gives by counting: a Markov line."""

    def __init__(self, run: Path) -> None:
        self.model = load_model(run, device="cpu")
        self.store = open_data(self.model).windows.store
        counts = count_train_words(self.store, DEEPEST)
        held_out = count(split_stretches(self.store, "valid"), DEEPEST)
        self.markov = fit(counts, fit_pseudo(counts, held_out))

    def score_pairs(self, before: list[str], after: list[str]) -> dict[str, np.ndarray]:
        """Change of log-likelihood in nats, the mean of both strands, for each pair."""
        texts = sorted({*before, *after})
        parts = [
            np.concatenate([_CODE[np.frombuffer(t.encode(), np.uint8)], [4]]).astype(np.uint8)
            for t in texts
        ]
        sizes = [len(part) for part in parts]
        owner = np.repeat(np.arange(len(texts)), sizes)
        total = np.zeros(len(texts))
        for strand in (1, -1):
            turned = parts
            if strand < 0:
                turned = [
                    np.append(np.where(p[:-1] < 4, 3 - p[:-1], 4)[::-1], 4).astype(np.uint8)
                    for p in parts
                ]
            codes = np.concatenate(turned)
            total += np.bincount(owner, self.markov.nll(codes)[-1], len(texts)) / 2
        known = dict(zip(texts, total.tolist(), strict=True))
        gain = [known[old] - known[new] for old, new in zip(before, after, strict=True)]
        return {f"Markov order {self.markov.order} Δ log p": np.array(gain)}

    def describe_overlap(self, places: list[tuple[str, int]]) -> str:
        """In which splits of the run's data the scored places lie, in percent."""
        if not places:
            return "no place in a genome"
        said = []
        taken = np.zeros(len(places), bool)
        for split in ("train", "valid", "test"):
            intervals = self.store.intervals_of(split)
            names = [self.store.names[i] for i in intervals.contig.tolist()]
            inside = np.zeros(len(places), bool)
            for name, start, end in zip(
                names, intervals.start.tolist(), intervals.end.tolist(), strict=True
            ):
                inside |= np.array([c == name and start <= p < end for c, p in places])
            taken |= inside
            if inside.any():
                said.append(f"{100 * inside.mean():.0f} % in {split}")
        if not taken.all():
            said.append(f"{100 * (~taken).mean():.0f} % outside the run's data")
        return ", ".join(said)


def score_examples(run: Path, found: Examples) -> np.ndarray:
    """The model's scores, nats: of variants, or of sequences as a pseudo-log-likelihood."""
    if found.fasta is not None:
        frame = genodiff.score_variants(run, found.rows, fasta=found.fasta, device="cpu")
        return frame["score"].cast(float).fill_null(float("nan")).to_numpy()
    edits = [
        (i, j, new)
        for i, (old_text, new_text) in enumerate(zip(found.before, found.after, strict=True))
        for j, (old, new) in enumerate(zip(old_text, new_text, strict=True))
        if old != new
    ]
    network = genodiff.one_hot_network(genodiff.load(run, device="cpu"))
    effect = genodiff.substitution_effect(network, found.before, edits)
    return (effect.y_after - effect.y_before).reshape(-1).double().numpy()


def measure_set(
    one: VariantSet, run: Path, counting: Counting, asked: argparse.Namespace
) -> dict[str, Any]:
    """Figures of the model and of every baseline, on the same variants."""
    with tempfile.TemporaryDirectory() as folder:
        found = one.read(asked.data, Path(folder), asked.limit, asked.seed)
        model = score_examples(run, found)
    keep = np.isfinite(model)
    columns = {"genodiff": model, "GC change": one.gc_sign * gc_change(found.before, found.after)}
    columns |= counting.score_pairs(found.before, found.after)
    features = np.hstack([word_changes(found.before, found.after, k) for k in (1, 2, 3, 4, 5)])
    columns["ridge on words of 1 to 5 (supervised, blocks left out)"] = ridge_left_out(
        features, found.truth, found.block, seed=asked.seed
    )
    columns |= found.known
    truth = found.truth
    rows = np.flatnonzero(keep)
    block = [found.block[i] for i in rows.tolist()]
    figures: dict[str, Any] = {}
    positive, sign = lose(one, truth)
    for name, column in columns.items():
        score, told = column[rows], truth[rows]
        if found.strata:
            strata = [found.strata[i] for i in rows.tolist()]
            score, told = rank_within(score, strata), rank_within(told, strata)
        mine: dict[str, Any] = {}
        if not one.classes:
            mine["spearman"] = bootstrap(spearman, (score, told), block, seed=asked.seed)
            mine["pearson"] = bootstrap(
                pearson, (column[rows], truth[rows]), block, seed=asked.seed
            )
        if positive is not None:
            for kind, measure in (("auroc", auroc), ("auprc", auprc)):
                pair = (sign * score, positive[rows])
                mine[kind] = bootstrap(measure, pair, block, seed=asked.seed)
        figures[name] = mine
    return {
        "n": len(rows), "unscored": int((~keep).sum()),
        "prevalence": None if positive is None else float(positive[rows].mean()),
        "overlap": counting.describe_overlap(found.places), "figures": figures,
    }  # fmt: skip


def lose(one: VariantSet, truth: np.ndarray) -> tuple[np.ndarray | None, int]:
    """Which variants are positives, and the sign that a score of a positive is expected to have."""
    if one.classes:
        return truth > 0.5, 1
    if one.name == "brca1":
        return truth < -1.328, -1  # the published threshold of loss of function
    return None, 1


def measure_laws(run: Path, counting: Counting, asked: argparse.Namespace) -> dict[str, Any]:
    """Gaps between kinds of variants, genes drawn whole; every gap is expected above 0."""
    fasta = asked.data / "genomes/sacCer3.fa.gz"
    bed = "genomes/annotation/sacCer3_nondubious_ORFs_and_blocked_reading_frames.bed.gz"
    test = counting.store.intervals_of("test")
    held_out = {counting.store.names[i] for i in test.contig.tolist()}
    with Genome(fasta) as genome:
        genes = read_genes(asked.data / bed, genome)
        drawn = draw_variants(genes, held_out, asked.limit, asked.seed)
        rows = [(v.contig, v.pos, v.ref, v.alt) for v in drawn]
        before, after = cut_pairs(genome, rows)
    frame = genodiff.score_variants(run, rows, fasta=fasta, device="cpu")
    columns = {"genodiff": frame["score"].cast(float).to_numpy()}
    columns |= counting.score_pairs(before, after)
    block = [v.gene for v in drawn]
    figures: dict[str, Any] = {}
    for name, score in columns.items():
        figures[name] = {}
        for law, high, low in LAWS:
            up = np.array([is_of(v, high) for v in drawn])
            down = np.array([is_of(v, low) for v in drawn])
            both = np.flatnonzero(up | down)
            names = [block[i] for i in both.tolist()]
            figure = bootstrap(
                mean_gap, (score[both], up[both], down[both]), names, seed=asked.seed
            )
            figures[name][law] = {**figure, "n": [int(up.sum()), int(down.sum())]}
    return {
        "n": len(drawn), "genes": len(genes), "held_out": sorted(held_out),
        "introns": sum(gene.intron is not None for gene in genes),
        "overlap": counting.describe_overlap([(v.contig, v.pos - 1) for v in drawn]),
        "figures": figures,
    }  # fmt: skip


if __name__ == "__main__":
    main()
