"""DNA of 100,000 bases by a model of blocks: drawn and evaluated with kept states.

    python benchmarks/likelihood/long_dna.py RUN --fasta sacCer3.fa.gz --out FOLDER [--steps 16]

RUN is trained with --block and without chrXIV. FOLDER gets `long_dna.json` and `long_dna.svg`.

drawn      1,000, 10,000 and 100,000 bases by the command line: CPU seconds and peak memory.
           Evaluations a base are counted: the blocks' steps, and one reading of what was filled.
           Windows that slide by half their length are counted with as many bases a step.
bytes      The same records in batches of 1, 3 and 4, with 1 and 2 threads.
evaluated  chrXIV from 50,001 on. Each block comes after all that is before it, with kept states
           and by a whole pass for each. Or it comes after the 1,024 - L' bases before it, as
           windows that slide by a block. The masks are the same.
looks      GC by 1,000 bases, 24-mers that come twice, genes of ATG to stop, and 6-mers. They are
           of what was drawn, of chrXIV, and of a Markov chain of order 8 of the train split.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.blocks import BlockPast, read_by_pass, read_streams
from genodiff.counter import Purpose, generator, uniforms
from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import load_recipe
from genodiff.diffusion.objectives.block import mask_blocks
from genodiff.evaluation.lines import count_train_words
from genodiff.evaluation.markov import fit
from genodiff.io.fasta import read_fasta
from genodiff.quality.sample_quality import measure_genes
from genodiff.quality.scorecard import gc_fractions, js_distance, kmer_spectrum
from genodiff.runs.folder import find_git_revision
from genodiff.runs.model import load_model
from genodiff.words import find_whole, pack_kmers

WINDOW, PART = 1024, 1000


def run_command(words: list[str], threads: int = 1) -> dict[str, float]:
    """CPU seconds and peak memory of a process of the command line."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    process = subprocess.Popen([sys.executable, "-m", "genodiff", *words], env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"genodiff {' '.join(words)}: exit {os.waitstatus_to_exitcode(status)}")
    return {"cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


def draw(run: str, out: Path, length: int, steps: int, size: int) -> list[dict[str, Any]]:
    rows = []
    for n in (PART, 10 * PART, length):
        words = ["sample", run, "--fasta", str(out / f"{n}.fa"), "-n", "1", "--length", str(n),
                 "--steps", str(steps), "--threads", "1", "-q", "--force"]  # fmt: skip
        used = run_command(words)
        a_step = size / steps
        rows.append({"bases": n, **used, "evaluations": steps + 1,
                     "sliding_evaluations": WINDOW / a_step * 2})  # fmt: skip
    return rows


def compare_bytes(run: str, out: Path, steps: int) -> bool:
    """Whether four records of 2,000 bases are the same bytes in any batch, on any threads."""
    found = set()
    for batch, threads in ((1, 1), (4, 2), (3, 1)):
        path = out / f"batch{batch}.fa"
        run_command(["sample", run, "--fasta", str(path), "-n", "4", "--length", "2000", "--steps",
                     str(steps), "--batch-size", str(batch), "--threads", str(threads), "-q",
                     "--force"], threads)  # fmt: skip
        found.add(path.read_bytes())
    return len(found) == 1


@torch.inference_mode()
def evaluate(run: str, ids: np.ndarray, naive: int) -> dict[str, Any]:
    """Bits of the bases by three ways, and what each costs."""
    model = load_model(run)
    network, objective = model.backbone, model.objective
    size, x0 = objective.block, torch.from_numpy(ids.astype(np.int64))[None]
    u = torch.from_numpy(uniforms(1, Purpose.EVAL_MASK, 0, len(ids)))[None]
    t = torch.tensor([0.5], dtype=torch.float64)
    masked, scale = mask_blocks(torch.isin(x0, torch.tensor(DNA.targets)), t, u, size)
    xt = objective.diffusion.mask(x0, masked)
    answers: dict[str, list[torch.Tensor]] = {"kept": [], "sliding": []}
    seconds = dict.fromkeys(answers, 0.0)
    past = BlockPast(network, 1)
    for at in range(0, len(ids), size):
        here, first = slice(at, at + size), max(0, at + size - WINDOW)
        begun = time.process_time()
        answers["kept"].append(past.read(xt[:, here])[0])
        past.add(x0[:, here])
        seconds["kept"] += time.process_time() - begun
        begun = time.process_time()
        clean, noised = x0[:, first : at + size], xt[:, first : at + size]
        read = read_streams(network, clean, noised, size)
        answers["sliding"].append(read[0, at - first :])
        seconds["sliding"] += time.process_time() - begun
    whole = read_by_pass(network, x0[:, :naive], xt[:, :naive], size)[0]
    bits = {}
    for way, parts in answers.items():
        nll = objective.diffusion.nll(torch.cat(parts)[None], x0, masked)[0].double()
        bits[way] = float((nll * scale[0] * masked[0]).sum() / len(ids) / np.log(2))
    kept = torch.cat(answers["kept"])[:naive]
    targets = list(DNA.targets)
    return {
        "bases": len(ids), "bits": bits, "cpu_seconds": seconds,
        "evaluations": {"kept": 2, "sliding": WINDOW / size},
        "largest_difference": {
            "bases": naive,
            "logits": float((kept - whole)[:, targets].abs().max()),
            "log_probability": float((kept[:, targets].log_softmax(-1)
                                      - whole[:, targets].log_softmax(-1)).abs().max()),
        },
    }  # fmt: skip


def describe(ids: np.ndarray, real: np.ndarray) -> dict[str, Any]:
    """GC by parts, repeats, genes and the distance of 6-mers."""
    parts = [ids[at : at + PART] for at in range(0, len(ids) - PART + 1, PART)]
    gc = gc_fractions(parts)
    codes = (ids.astype(np.int64) - int(DNA.targets[0])).astype(np.uint8)
    words = pack_kmers((codes & 3).astype(np.uint64), 24)[find_whole(codes, 24)]
    genes = measure_genes([ids[at : at + 3 * PART] for at in range(0, len(ids), 3 * PART)])
    slope = np.polyfit(np.arange(len(gc)) / len(gc), gc, 1)[0]
    return {
        "gc": gc.tolist(), "gc_mean": float(gc.mean()), "gc_sd": float(gc.std(ddof=1)),
        "gc_change_over_all": float(slope),
        "repeated_24mers": 1 - len(np.unique(words)) / len(words),
        "longest_gene_codons": int(genes.max()), "genes_of_100_codons": int((genes >= 100).sum()),
        "js_6mers": js_distance(kmer_spectrum([ids], 6), kmer_spectrum([real], 6)),
    }  # fmt: skip


def draw_picture(looks: dict[str, Any], rows: list[dict[str, Any]], path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.4), width_ratios=(2, 1))
    for name, look in looks.items():
        left.plot(np.arange(len(look["gc"])) + 0.5, look["gc"], label=name, linewidth=1)
    left.set(xlabel="kilobases", ylabel="GC of 1,000 bases")
    left.legend(frameon=False)
    n = [row["bases"] for row in rows]
    right.loglog(n, [row["cpu_seconds"] for row in rows], "o-", label="CPU seconds")
    right.loglog(n, [row["peak_mb"] for row in rows], "o-", label="peak memory, MB")
    right.set(xlabel="bases drawn")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("--fasta", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--length", type=int, default=100 * PART)
    parser.add_argument("--naive", type=int, default=8 * WINDOW)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    size = load_model(asked.run).objective.block
    store = build_dna_store(load_recipe("sacCer3"), asked.fasta)
    number = store.names.index("chrXIV")
    contig = np.asarray(store.flat[store.offsets[number] : store.offsets[number + 1]]) & 15
    real = contig[50 * PART : 50 * PART + asked.length].astype(np.uint8)
    told: dict[str, Any] = {
        "commit": find_git_revision(), "run": Path(asked.run).name, "block": size,
        "steps": asked.steps, "drawn": draw(asked.run, asked.out, asked.length, asked.steps, size),
        "same_bytes": compare_bytes(asked.run, asked.out, asked.steps),
        "evaluated": evaluate(asked.run, real, min(asked.naive, asked.length)),
    }  # fmt: skip
    path = asked.out / f"{asked.length}.fa"
    drawn = DNA.encode(b"".join(bytes(record.sequence) for record in read_fasta(path)))
    markov = fit(count_train_words(store, 8))
    codes = markov.sample(1, asked.length, generator(1, Purpose.BASELINE, 8), 8)[0]
    chain = codes + int(DNA.targets[0])
    looks = {"drawn": drawn, "chrXIV": real, "Markov, order 8": np.asarray(chain)}
    told["looks"] = {name: describe(np.asarray(ids, np.uint8), real) for name, ids in looks.items()}
    draw_picture(told["looks"], told["drawn"], asked.out / "long_dna.svg")
    for look in told["looks"].values():
        del look["gc"]
    (asked.out / "long_dna.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
