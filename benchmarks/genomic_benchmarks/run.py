"""Fine-tuning on the real tasks that are here: a model pretrained on human pieces, the same network
from random weights, baselines.

    python benchmarks/genomic_benchmarks/run.py --data SHARED/data [--preset caduceus-ph-83k]
    [--minutes 40] [--seeds 5] [--jobs 2]

--data is a folder with genomes/, genomic_benchmarks/ and nt_tasks/GUE/. Everything is done through
the command line of genodiff, and the same command again goes on where it stopped. Pretraining reads
pieces of hg38 and hg19 (train: chr1, chr2, chr10, chr22, chr6, chrX; valid: other loci of chr6 and
chr9; test: chr21), without labels. The Genomic Benchmarks tasks are a local split of the official
test parts, not comparable with published numbers, with a train part so small that batches of 256
would leave 200 steps: 32, and half the epochs. The GUE tasks are complete and official. The
baselines' rows that baselines.py measured are taken over. Flags that are not listed below go to
`genodiff finetune`. `--only scratch` measures the models that need no pretraining; `--only-write`
makes RESULTS.md again. trials.jsonl holds the rows of single trials that FINDINGS.md speaks of,
each with its command.
"""

import argparse
import gzip
import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import cpu, genodiff, last_session, nameless, plain  # noqa: E402

from genodiff.statistics.comparisons import judge_differences, show_p  # noqa: E402
from genodiff.statistics.seeds import JointEstimate, estimate_difference  # noqa: E402

LOCAL = "human_nontata_promoters,human_enhancers_cohn"
GUE = "mouse/0,mouse/2,mouse/3,prom/prom_300_tata"
SHORT = ("--batch-size", 32, "--epochs", 5)
PIECES = {
    "hg38_regions": {
        "chr1:": "train",
        "chr2:": "train",
        "chr10:": "train",
        "chr21:24985581": "test",
    },
    "hg19_regions": {
        "chr22:": "train",
        "chr6:995529": "train",
        "chrX:": "train",
        "chr6:112323682": "valid",
        "chr9:": "valid",
    },
}
"""Records of the shared FASTA files, by the beginning of their names, and the split that they are
for.
"""


def pieces(data: Path, out: Path) -> tuple[Path, Path]:
    """One FASTA of the human pieces and a BED that says which split each is; written once."""
    fasta, bed = out / "human_pieces.fa", out / "human_pieces.bed"
    if fasta.exists() and bed.exists():
        return fasta, bed
    lengths: dict[str, int] = {}
    splits: dict[str, str] = {}
    with open(out / "human_pieces.part", "w") as file:
        for name, wanted in PIECES.items():
            record = None
            with gzip.open(data / "genomes" / f"{name}.fa.gz", "rt") as lines:
                for line in lines:
                    if line.startswith(">"):
                        title = line[1:].split()[0]
                        split = next(
                            (s for start, s in wanted.items() if title.startswith(start)), None
                        )
                        record = (
                            None
                            if split is None
                            else f"{name.split('_')[0]}_{title.replace(':', '_').replace('-', '_')}"
                        )
                        if record is not None and split is not None:
                            splits[record], lengths[record] = split, 0
                            file.write(f">{record}\n")
                    elif record is not None:
                        lengths[record] += len(line.strip())
                        file.write(line)
    bed.write_text(
        "".join(f"{record}\t0\t{n}\t{splits[record]}\n" for record, n in lengths.items())
    )
    (out / "human_pieces.part").rename(fasta)
    return fasta, bed


def measure(asked: argparse.Namespace, more: list[str]) -> None:
    """Pretrain, then both sweeps into one folder; `more` are flags of `genodiff finetune`."""
    out: Path = asked.out
    out.mkdir(parents=True, exist_ok=True)
    threads = ["--threads", asked.threads] if asked.threads else []
    fasta, bed = pieces(asked.data, out)
    models: list[object] = ["--model", f"scratch:{asked.preset}", "--model", "baselines"]
    if asked.only != "scratch":
        run = out / f"human-{asked.preset}"
        how = [
            "--preset",
            asked.preset,
            "--seq-len",
            512,
            "--batch-size",
            16,
            "--max-minutes",
            asked.minutes,
            "--seed",
            1,
        ]
        genodiff("train", "--fasta", fasta, "--bed", bed, *how, "--out", run, *threads)
        models = ["--model", f"pretrained={run}", *models]
    sweep = out / "sweep"
    sweep.mkdir(exist_ok=True)
    if not (sweep / "results.jsonl").exists():
        known = (
            (HERE / "baselines" / "results.jsonl")
            .read_text(encoding="utf-8")
            .splitlines(keepends=True)
        )
        tasks = {*asked.gue.split(","), *asked.local.split(",")}
        (sweep / "results.jsonl").write_text(
            "".join(row for row in known if json.loads(row)["task"] in tasks), encoding="utf-8"
        )
    common = [
        *models,
        "--head",
        "mean",
        "--seeds",
        asked.seeds,
        "--jobs",
        asked.jobs,
        "--out",
        sweep,
        *threads,
        *more,
    ]
    local = asked.data / "genomic_benchmarks"
    genodiff(
        "finetune", "gue", "--task", asked.gue, "--data", asked.data / "nt_tasks" / "GUE", *common
    )
    genodiff(
        "finetune",
        "genomic-benchmarks",
        "--task",
        asked.local,
        "--split",
        "local",
        "--data",
        local,
        *SHORT,
        *common,
    )


def pretraining(run: Path) -> str:
    """One line: the command that pretrained, where and for how long."""
    made = last_session(run)
    how = (
        f"{made['training_seconds'] / 60:.0f} min on {cpu()}, {made['threads']} thread, "
        f"{made['to_step']:,} steps"
    )
    return (
        f"- pretraining: `{plain(*made['argv'][1:])}`: commit {str(made['git'])[:12]}, "
        f"{how}, {made['started']}\n"
    )


def differences(rows: list[dict[str, Any]]) -> str:
    """Pretrained minus the same network from random weights, and minus k-mers, seed by seed.

    Intervals and p values are Student's over seeds; Holm's correction is over the whole table.
    """
    found: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    kmers: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["model"] == "kmer-lr":
            kmers.setdefault(row["task"], {})[row["seed"]] = row["value"]
        elif row["kind"] in ("checkpoint", "scratch"):
            found.setdefault((row["task"], row["settings"]["rc"]), {}).setdefault(row["kind"], {})[
                row["seed"]
            ] = row["value"]
    pairs = [
        (f"{task} | {rc}", name, estimate)
        for (task, rc), of in found.items()
        for name, other in (("scratch", of.get("scratch", {})), ("kmer-lr", kmers.get(task, {})))
        if (estimate := _over_seeds(of.get("checkpoint", {}), other)) is not None
    ]
    lines = ["", "## Paired by seed", ""]
    lines += ["| task | rc | pretrained minus | difference | p | Holm p | pretrained is |"]
    lines += ["|---" * 7 + "|"]
    for gap in judge_differences(pairs):
        low, high = gap.estimate.ci95 or (math.nan, math.nan)
        lines.append(
            f"| {gap.a} | {gap.b} | {gap.estimate.value:+.3f} [{low:+.3f}, {high:+.3f}] "
            f"| {show_p(gap.estimate.p)} | {show_p(gap.p_holm)} | {gap.describe()} |"
        )
    told = (
        f"Mean over seeds and its 95 % t interval, over seeds alone: the one test part and the one "
        f"pretraining run are taken as fixed. Holm's correction is over all {len(pairs)} rows."
    )
    return "\n".join([*lines, "", told, ""])


def _over_seeds(one: dict[int, float], other: dict[int, float]) -> JointEstimate | None:
    seeds = sorted(one.keys() & other.keys())
    if len(seeds) < 2:
        return None
    a, b = (np.array([values[seed] for seed in seeds]) for values in (one, other))
    return estimate_difference(a, b, np.zeros((2 * len(seeds),) * 2), 1, paired=True)


def write(out: Path, data: Path) -> None:
    """Copy the rows and the tables here, with the places of this machine's folders left out."""
    genodiff("finetune", "report", out / "sweep")
    files = {
        name: (out / "sweep" / name).read_text(encoding="utf-8")
        for name in ("RESULTS.md", "results.jsonl")
    }
    files = {
        name: nameless(text, {"OUT": out, "SHARED/data": data}) for name, text in files.items()
    }
    files["RESULTS.md"] = (
        files["RESULTS.md"].rstrip("\n") + "\n"
        + "".join(pretraining(run) for run in sorted(out.glob("human-*")) if run.is_dir())
        + differences([json.loads(row) for row in files["results.jsonl"].splitlines()])
        + (HERE / "FINDINGS.md").read_text(encoding="utf-8")
    )  # fmt: skip
    for name, text in files.items():
        (HERE / name).write_text(text, encoding="utf-8")
    shutil.copy(out / "sweep" / "report.html", out / "report.html")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="folder with genomes/, genomic_benchmarks/ and nt_tasks/GUE/",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs/genomic-benchmarks"), help="where everything is kept"
    )
    parser.add_argument("--preset", default="caduceus-ph-83k", help="the network")
    parser.add_argument("--minutes", type=float, default=40, help="minutes of pretraining")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--gue", default=GUE, help="GUE tasks, with commas")
    parser.add_argument(
        "--local", default=LOCAL, help="Genomic Benchmarks tasks with a local split, with commas"
    )
    parser.add_argument(
        "--only",
        choices=["scratch", "all"],
        default="all",
        help="scratch: nothing that waits for pretraining",
    )
    parser.add_argument(
        "--only-write", action="store_true", help="make RESULTS.md again from what is there"
    )
    asked, more = parser.parse_known_args()
    if not asked.only_write:
        measure(asked, more)
    write(asked.out, asked.data)


if __name__ == "__main__":
    main()
