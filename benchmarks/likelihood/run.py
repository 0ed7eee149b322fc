"""Train for some minutes, evaluate, and write the figures down: RESULTS.md, results.jsonl and one
SVG for each run.

    python benchmarks/likelihood/run.py sacCer3-ps-470k --fasta sacCer3.fa.gz
    python benchmarks/likelihood/run.py sacCer3-ph-470k --trained RUN   a run that is trained
    python benchmarks/likelihood/run.py sacCer3-ph-470k --lines RUN     what counting gives, alone

Everything is done through the command line of genodiff. The same command again goes on where it
stopped: a finished training is not repeated, an evaluation is. A row of results.jsonl is replaced
by a newer one of the same run and seed.
"""

import argparse
import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import cpu, genodiff, last_session, plain  # noqa: E402
from page import LINES, line_bits, make_page, read, windows_of  # noqa: E402

from genodiff import evaluate  # noqa: E402
from genodiff.runs.folder import find_git_revision  # noqa: E402

RUNS = {
    "sacCer3-ps-470k": ("sacCer3", ["--preset", "caduceus-ps-470k"], 60),
    "sacCer3-ph-470k": ("sacCer3", ["--preset", "caduceus-ph-470k"], 60),
    "ecoli_k12-ps-470k": ("ecoli_k12", ["--preset", "caduceus-ps-470k"], 30),
    "hg38-pieces-ps-470k": ("hg38", ["--preset", "caduceus-ps-470k"], 60),
    "hg38-pieces-ph-470k": ("hg38", ["--preset", "caduceus-ph-470k"], 60),
    "toy-ps-tiny": ("toy", ["--preset", "caduceus-ps-tiny", "--seq-len", "256"], 5),
}
MOST_POINTS = 400


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=RUNS, help="which run")
    parser.add_argument("--fasta", type=Path, help="the recipe's FASTA file on this machine")
    parser.add_argument(
        "--minutes", type=float, help="minutes of training (default: the run's own)"
    )
    parser.add_argument(
        "--repeats", type=int, default=4, help="masks for each window in the evaluation"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/likelihood"), help="where run folders go"
    )
    parser.add_argument("--trained", type=Path, help="evaluate this run, and train nothing")
    parser.add_argument("--lines", type=Path, help="count the lines on this run's test split only")
    parser.add_argument(
        "--only-write", action="store_true", help="make RESULTS.md again from results.jsonl"
    )
    asked, more = parser.parse_known_args()
    if asked.lines:
        command = f"python benchmarks/likelihood/run.py NAME --lines {asked.lines.name}"
        keep_lines(lines_of(evaluate(asked.lines, keep=False), command))
    elif not asked.only_write:
        new = measure(asked, more)
        keep(new)
        keep_lines(lines_of(new["evaluation"], new["commands"][1]))
    (HERE / "RESULTS.md").write_text(make_page(), encoding="utf-8")


def measure(asked: argparse.Namespace, more: list[str]) -> dict[str, Any]:
    """Train and evaluate; `more` are further flags of `genodiff train`."""
    recipe, flags, minutes = RUNS[asked.name]
    out = asked.trained or asked.runs / f"{asked.name}-seed{asked.seed}"
    common = [
        "--seed",
        str(asked.seed),
        *(["--threads", str(asked.threads)] if asked.threads else []),
    ]
    fasta = ["--fasta", str(asked.fasta)] if asked.fasta else []
    length = ["--max-minutes", f"{asked.minutes or minutes:g}"]
    training = ["train", recipe, *fasta, *flags, *length, *more, "--out", str(out), *common]
    scoring = ["eval", str(out), "--repeats", str(asked.repeats), "--json", *common]
    if asked.trained:
        training = last_session(out)["argv"][1:]
    else:
        genodiff(*training)
    result = json.loads(genodiff(*scoring, capture=True))
    steps = metrics(out)
    draw(asked.name, asked.seed, result, steps)
    last = steps[-1]
    session = last_session(out)
    result["fasta"] = Path(result["fasta"]).name if result["fasta"] else None
    return {
        "name": asked.name,
        "commit": session.get("git"),
        "commands": [plain(*training), plain(*scoring)],
        "hardware": f"{cpu()}, {session.get('threads')} threads, {session.get('device')}",
        "versions": session.get("versions"),
        "train_seed": asked.seed,
        "steps": int(last["step"]),
        "train_tokens": int(last["tokens"]),
        "train_seconds": round(last["seconds"], 1),
        "valid": [
            [r["tokens"], r["seconds"], r["valid_bits"]]
            for r in steps
            if not math.isnan(r["valid_bits"])
        ],
        "evaluation": result,
    }


def lines_of(found: dict[str, Any], command: str) -> dict[str, Any]:
    """What counting gives on the windows of an evaluation: bits of each line, by class.

    The network has no part in it.
    """
    return {
        **{key: found[key] for key in ("recipe", "fingerprint", "seq_len", "windows", "created")},
        "fasta": Path(found["fasta"]).name if found["fasta"] else None,
        "commit": find_git_revision(),
        "command": command,
        "hardware": cpu(),
        "parts": parts_of(found),
    }


def parts_of(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Bases and bits of each line: of all windows, and of each class."""
    parts = {}
    for name, part in {"all": found, **found["regions"]}.items():
        bits = dict(part["markov_bits"]) | {line: line_bits(part, line) for line in LINES}
        parts[name] = {"tokens": part["tokens"], "bits": {k: b for k, b in bits.items() if b}}
    return parts


def keep_lines(new: dict[str, Any]) -> None:
    """Put a row into lines.jsonl, in place of an older one of the same windows."""
    others = [row for row in read("lines.jsonl") if windows_of(row) != windows_of(new)]
    lines = [json.dumps(row, allow_nan=False) for row in [*others, new]]
    (HERE / "lines.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def metrics(run: Path) -> list[dict[str, float]]:
    """Rows of metrics.csv; an empty cell is nan."""
    with (run / "metrics.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("step", "tokens", "seconds", "loss_bits", "valid_bits", "valid_ci")
    return [{name: float(row[name]) if row[name] else math.nan for name in names} for row in rows]


def keep(new: dict[str, Any]) -> None:
    """Put a row into results.jsonl, in place of an older one of the same run and seed."""
    others = [
        row
        for row in read("results.jsonl")
        if (row["name"], row["train_seed"]) != (new["name"], new["train_seed"])
    ]
    lines = [json.dumps(row, allow_nan=False) for row in [*others, new]]
    (HERE / "results.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw(name: str, seed: int, result: dict[str, Any], steps: list[dict[str, float]]) -> None:
    """NAME-seedN.svg: loss over tokens with the lines, and the cost of a base over mask rates."""
    plt.rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 8})
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    size = max(1, len(steps) // MOST_POINTS)
    groups = [steps[i : i + size] for i in range(0, len(steps), size)]
    tokens = [g[-1]["tokens"] / 1e6 for g in groups]
    loss = [sum(r["loss_bits"] for r in g) / len(g) for g in groups]
    left.plot(tokens, loss, lw=0.5, color="0.7", label="training step")
    valid = [r for r in steps if not math.isnan(r["valid_bits"])]
    left.plot(
        [r["tokens"] / 1e6 for r in valid],
        [r["valid_bits"] for r in valid],
        ".-",
        lw=1,
        label="validation",
    )
    for order in ("0", "8"):
        if order in result["markov_bits"]:
            left.axhline(result["markov_bits"][order], ls="--", lw=0.8, color="C3")
            left.annotate(
                f"Markov {order}", (0, result["markov_bits"][order]), va="bottom", color="C3"
            )
    if result["source_bits"] is not None:
        left.axhline(result["source_bits"], ls="--", lw=0.8, color="C2")
    error = (result["ci95_bits"][1] - result["ci95_bits"][0]) / 2 if result["ci95_bits"] else None
    left.errorbar(
        tokens[-1:], [result["bits_per_base"]], error, fmt="ks", ms=3, capsize=3, label="test"
    )
    shown = [result["bits_per_base"], *result["markov_bits"].values(), result["source_bits"] or 2.0]
    left.set(
        xlabel="million training bases", ylabel="bits per base", ylim=(min(shown) - 0.02, 2.02)
    )
    left.legend(loc="upper right")
    points = [p for p in result["curve"] if p["nats"] is not None]
    rate = [(p["rate_lo"] + p["rate_hi"]) / 2 for p in points]
    bits = [p["nats"] / math.log(2) for p in points]
    errors = [1.96 * (p["se"] or 0) / math.log(2) for p in points]
    right.errorbar(rate, bits, errors, fmt=".-", lw=1, capsize=2)
    right.set(xlabel="share of bases masked, k / n", ylabel="bits per masked base, $C_k / k$")
    figure.savefig(HERE / f"{name}-seed{seed}.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
