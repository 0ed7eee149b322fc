"""Genes of yeast at each base: networks and their rivals, one line of results.jsonl for each fit.

    python benchmarks/bases/run.py WORK OUT.jsonl --seeds 0 1 2 [--rows pretrained scratch ...]

Learned on chrV:1-300,000, tried out on chrXVI:1-60,000, tested on chrXIV:300,001-600,000.
A row that is in OUT is not made again; a fit that was stopped goes on. Times are of the process.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from augustus import find_predicted
from codon_hmm import CodonModel, find_orfs
from conserved_orfs import find_conserved
from torch import Tensor, nn
from yeast_genes import (
    DATA,
    GENOME,
    TEST,
    TRAIN,
    VALID,
    count_levels,
    read_ids,
    read_labels,
    write_files,
)

import genodiff
from genodiff.alphabet import DNA
from genodiff.annotation.gene_grammar import list_genes, mirror_states
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_lesson import BaseLesson, BaseTask, count_steps, score_cores
from genodiff.finetuning.base_windows import BaseWindows, Span
from genodiff.finetuning.fit_loop import FitLoop
from genodiff.finetuning.protocol import FitSettings
from genodiff.io.faidx import Genome

CORE, CONTEXT = 4096, 512
MORE = (("chrII", 0, 813_184), ("chrV", 0, 576_874))
RELATIVES = DATA.parent / "relatives/yeast"
SETTINGS: dict[str, Any] = {"epochs": 1, "batch_size": 1, "lr": 2e-3}
ROWS: dict[str, dict[str, Any]] = {
    "pretrained": {"chain": True},
    "scratch": {"chain": True, "scratch": True},
    "lora": {"chain": True, "adapter": "lora:r=4"},
    "relatives": {"chain": True, "relatives": True},
    "relatives, scratch": {"chain": True, "relatives": True, "scratch": True},
    "relatives, more labels": {"chain": True, "relatives": True, "more": True},
    "probe": {"method": "frozen", "head": "linear"},
    "frozen": {"chain": True, "method": "frozen"},
}


RULES: dict[str, list[Span]] = {
    "orf": [], "conserved orfs": [], "augustus": [], "hmm": [TRAIN], "hmm-all": []
}  # fmt: skip
"""Rivals without a network, with the labels of those that count them (none: all but held out)."""


class Letters(nn.Module):
    """Letters as they are, for a head that is the whole network; flipped, the complement."""

    paired, d_out = True, 4

    def __init__(self) -> None:
        super().__init__()
        first = int(DNA.encode(b"A")[0])
        self.register_buffer("table", torch.eye(len(DNA.complement))[:, first : first + 4])

    def features(self, x: Tensor, sigma: Tensor, lengths: Tensor | None) -> Tensor:
        """(B, L, 4)"""
        return self.table[x]  # type: ignore[index, no-any-return]


def build_cnn(seed: int) -> BaseLabeller:
    """Dilated convolutions with a chain, as many weights as the others: 9 bases, 8 layers."""
    sizes = {"channels": 94, "kernel": 9, "layers": 8}
    return BaseLabeller(Letters(), mirror_states(), complement=DNA.complement, head="conv",
                        options=sizes, seed=seed, chain=True)  # fmt: skip


def fit_cnn(seed: int, work: Path) -> tuple[BaseLabeller, FitLoop]:
    network = build_cnn(seed)
    labels = read_labels(work, (TRAIN, VALID))
    with Genome(GENOME) as genome:
        train, valid = (BaseWindows(genome, labels, [span], core=CORE, context=CONTEXT)
                        for span in (TRAIN, VALID))  # fmt: skip
        network.chain.begin(count_steps(train))  # type: ignore[union-attr]
        task = BaseTask("genes", labels.names)
        lesson = BaseLesson(network, (train, valid), task, FitSettings.parse(SETTINGS), seed)
        loop = FitLoop(lesson)
        list(loop.run(state=work / f"cnn-{seed}.safetensors", identity=f"cnn {seed} {SETTINGS}"))
    return network, loop


def fit_verb(row: str, seed: int, files: tuple[Path, Path], work: Path) -> Any:
    """The verb's model, and what it tells."""
    out = work / f"{row}-{seed}"
    genes, known = files
    how = SETTINGS | ROWS[row]
    if how.pop("more", False):
        (work / "more").mkdir(exist_ok=True)
        genes, known = write_files(work / "more", (*MORE, VALID))
    if "relatives" in how:
        how["relatives"] = [list_relatives(work)]
    told = genodiff.finetune_bases(
        "yeast", GENOME, genes=genes, within=known, out=out, core=CORE, context=CONTEXT, seed=seed,
        valid=[f"{VALID[0]}:{VALID[1] + 1}-{VALID[2]}"], **how,
    )  # fmt: skip
    model = genodiff.load(out).fitted
    with Genome(GENOME) as genome:
        model.relate(genome)
    return model.network, told


def list_relatives(work: Path) -> Path:
    """A list of whole genomes: one of coding sequences alone would tell where genes are."""
    path, rows = work / "relatives.tsv", ["name\tspecies\tpath"]
    for name, species, file in (
        ("CBS432", "paradoxus", "Spar_CBS432"),
        ("UFRJ50816", "paradoxus", "Spar_UFRJ50816"),
        ("Sarb", "arboricola", "Sarb_H6"),
    ):
        rows.append(f"{name}\tSaccharomyces {species}\t{RELATIVES / file}.fa.gz")
    path.write_text("\n".join(rows) + "\n")
    return path


def score_test(network: BaseLabeller, work: Path) -> np.ndarray:
    labels = read_labels(work, [TEST])
    with Genome(GENOME) as genome:
        windows = BaseWindows(genome, labels, [TEST], core=CORE, context=CONTEXT)
        task, found = BaseTask("genes", labels.names), np.zeros((TEST[2] - TEST[1], 13), np.float32)
        for (_, start, end), scores in score_cores(network, windows):
            found[start - TEST[1] : end - TEST[1]] = task.read(torch.from_numpy(scores)).numpy()
    return found


def count(genes: Any, path: np.ndarray) -> list[Any]:
    return count_levels(path, genes).tolist()


def make_network(row: str, seed: int, path: np.ndarray, work: Path) -> dict[str, Any]:
    begun = time.process_time()
    (work / "fit").mkdir(exist_ok=True)
    files = write_files(work / "fit", (TRAIN, VALID))
    told: dict[str, Any] = {}
    if row == "cnn":
        network, loop = fit_cnn(seed, work)
        told = {"trained": loop.trained, "valid": loop.history[-1].valid}
    else:
        network, told = fit_verb(row, seed, files, work)
        told = {"trained": told["trained"], "valid": told["history"][-1]["valid"]}
    fitted = time.process_time()
    scores = score_test(network, work)
    with Genome(GENOME) as genome:
        letters = genome.fetch(*TEST)
    return {
        **told, "fit_seconds": round(fitted - begun),
        "test_seconds": round(time.process_time() - fitted),
        "counts": count(list_genes(network.decode(scores, letters)), path),
        "without_codons": count(list_genes(network.decode(scores)), path),
    }  # fmt: skip


def tune_hmm(spans: Sequence[Span], work: Path) -> tuple[CodonModel, int, float]:
    """The model of the best f1 of whole genes on the validation part, its k and its cost."""
    labels = read_labels(work, spans)
    whole = {c: v for c, v in labels.contigs.items() if c not in (VALID[0], TEST[0])}
    ids = {c: read_ids((c, 0, len(v))) for c, v in whole.items()}
    truth = read_labels(work, [VALID]).cut(*VALID)
    found = []
    for k in (2, 3, 4, 5):
        model = CodonModel(k)
        for c, v in whole.items():
            model.learn(ids[c], v)
        for cost in (0.0, 5.0, 10.0, 20.0):
            total = count_levels(truth, model.predict(read_ids(VALID), cost)).sum(0)[2]
            found.append((2 * total[2] / max(1, total[0] + total[1]), -k, -cost, model))
    best = max(found, key=lambda one: one[:3])
    return best[3], -best[1], -best[2]


def make_rule(row: str, path: np.ndarray, work: Path) -> dict[str, Any]:
    begun, told = sum(os.times()[:4]), {}  # of this process and of those that it waited for
    genes: Any
    match row:
        case "orf":
            genes = find_orfs(read_ids(TEST))
        case "conserved orfs":
            told["cost"], genes = find_conserved(list_relatives(work), work)
        case "augustus":
            genes = find_predicted(TEST, work)
        case _:
            model, told["k"], told["cost"] = tune_hmm(RULES[row], work)
            genes = model.predict(read_ids(TEST), told["cost"])
    return told | {
        "counts": count(genes, path),
        "fit_seconds": round(sum(os.times()[:4]) - begun),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", default=[*ROWS, "cnn"])
    parser.add_argument("--rules", action="store_true")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    path = read_labels(asked.work, [TEST]).cut(*TEST)
    there = asked.out.read_text().splitlines() if asked.out.exists() else []
    done = {(one["row"], one["seed"]) for one in map(json.loads, there)}
    todo = [(row, seed) for seed in asked.seeds for row in asked.rows if (row, seed) not in done]

    def keep(row: str, seed: int, told: dict[str, Any]) -> None:
        with asked.out.open("a") as file:
            file.write(json.dumps({"row": row, "seed": seed, **told}) + "\n")

    if asked.rules:
        for row in (row for row in RULES if (row, 0) not in done):
            keep(row, 0, make_rule(row, path, asked.work))
    for row, seed in todo if not asked.rules else ():
        keep(row, seed, make_network(row, seed, path, asked.work))


if __name__ == "__main__":
    main()
