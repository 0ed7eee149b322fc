"""Train for some minutes, evaluate, and write the figures down: RESULTS.md, results.jsonl and one
SVG for each run.

    python benchmarks/likelihood/run.py sacCer3-ps-470k --fasta sacCer3.fa.gz

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

RUNS = {
    "sacCer3-ps-470k": ("sacCer3", ["--preset", "caduceus-ps-470k"], 60),
    "sacCer3-ph-470k": ("sacCer3", ["--preset", "caduceus-ph-470k"], 60),
    "ecoli_k12-ps-470k": ("ecoli_k12", ["--preset", "caduceus-ps-470k"], 30),
    "hg38-pieces-ps-470k": ("hg38", ["--preset", "caduceus-ps-470k"], 60),
    "hg38-pieces-ph-470k": ("hg38", ["--preset", "caduceus-ph-470k"], 60),
    "toy-ps-tiny": ("toy", ["--preset", "caduceus-ps-tiny", "--seq-len", "256"], 5),
}
MOST_POINTS = 400
LINES = ("fitted", "mixture")


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
    parser.add_argument(
        "--only-write", action="store_true", help="make RESULTS.md again from results.jsonl"
    )
    asked, more = parser.parse_known_args()
    if not asked.only_write:
        keep(measure(asked, more))
    (HERE / "RESULTS.md").write_text(page(rows()), encoding="utf-8")


def measure(asked: argparse.Namespace, more: list[str]) -> dict[str, Any]:
    """Train and evaluate; `more` are further flags of `genodiff train`."""
    recipe, flags, minutes = RUNS[asked.name]
    out = asked.runs / f"{asked.name}-seed{asked.seed}"
    common = [
        "--seed",
        str(asked.seed),
        *(["--threads", str(asked.threads)] if asked.threads else []),
    ]
    fasta = ["--fasta", str(asked.fasta)] if asked.fasta else []
    length = ["--max-minutes", f"{asked.minutes or minutes:g}"]
    training = ["train", recipe, *fasta, *flags, *length, *more, "--out", str(out), *common]
    scoring = ["eval", str(out), "--repeats", str(asked.repeats), "--json", *common]
    genodiff(*training)
    result = json.loads(genodiff(*scoring, capture=True))
    steps = metrics(out)
    draw(asked.name, asked.seed, result, steps)
    last = steps[-1]
    session = last_session(out)
    result["fasta"] = asked.fasta.name if asked.fasta else None
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


def metrics(run: Path) -> list[dict[str, float]]:
    """Rows of metrics.csv; an empty cell is nan."""
    with (run / "metrics.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("step", "tokens", "seconds", "loss_bits", "valid_bits", "valid_ci")
    return [{name: float(row[name]) if row[name] else math.nan for name in names} for row in rows]


def rows() -> list[dict[str, Any]]:
    path = HERE / "results.jsonl"
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if path.exists()
        else []
    )


def keep(new: dict[str, Any]) -> None:
    """Put a row into results.jsonl, in place of an older one of the same run and seed."""
    others = [
        row
        for row in rows()
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


def page(results: list[dict[str, Any]]) -> str:
    """RESULTS.md."""
    text = [
        "# Likelihood",
        "",
        "Upper bounds on the cross-entropy of held-out DNA, with 95 % intervals over masks and "
        "windows (contiguous blocks),",
        "beside interpolated Markov models counted on the same train split and scored on the "
        "same bases. What is bounded,",
        "and how: `genodiff/scoring/dna_evaluation.py`. Made by `benchmarks/likelihood/run.py`; "
        "all figures: `results.jsonl`.",
        "",
        "| run | minutes | Mbases seen | bits per base | perplexity | Markov 0 | Markov 8 | "
        "mixture 1–24 | model better than 8 by (bits) "
        "| unique windows: model better than the mixture by (bits) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results:
        found = row["evaluation"]
        lines, better = found["markov_perplexity"], found["markov_minus_model_bits"].get("8")
        text.append(
            f"| {row['name']} | {row['train_seconds'] / 60:.0f} | {row['train_tokens'] / 1e6:.1f} "
            f"| {figure_of(found)} | {found['perplexity']:.4f} | {lines.get('0', math.nan):.4f} "
            f"| {lines.get('8', math.nan):.4f} | {mixture_of(found)} | "
            f"{'' if better is None else gap_of(better)} | {unique_gap(found)} |"
        )
    for recipe in dict.fromkeys(row["evaluation"]["recipe"] for row in results):
        drawn = [
            row for row in results if row["evaluation"]["recipe"] == recipe and row.get("valid")
        ]
        if len(drawn) > 1:
            text += [
                "",
                f"![bits of the valid split over training bases, "
                f"{recipe}]({draw_together(recipe, drawn)})",
            ]
    for row in results:
        text += ["", *section(row)]
    return "\n".join(text) + "\n"


def section(row: dict[str, Any]) -> list[str]:
    found = row["evaluation"]
    file = f"{row['name']}-seed{row['train_seed']}.svg"
    of = f"{found['windows']:,} of {found['windows_total']:,} windows"
    parts = {"all": found, **found["regions"]}
    text = [
        f"## {row['name']}, seed {row['train_seed']}",
        "",
        f"Commit {row['commit']}; {row['hardware']}; {row['steps']:,} steps, "
        f"{row['train_tokens']:,} bases, "
        f"{row['train_seconds']:,.0f} s of training. Evaluation: {found['tokens']:,} bases in "
        f"{of}, {found['repeats']} "
        f"masks each, seed {found['seed']}, {found['seconds']:,.0f} s, checkpoint "
        f"{found['checkpoint']}.",
        "",
        *(f"    {command}" for command in row["commands"]),
        "",
        "| bases | number | bits per base | best counted line there | fitted line − model | "
        "mixture − model |",
        "|---|---|---|---|---|---|",
    ]
    for name, part in parts.items():
        gaps = [
            part.get(f"{line}_minus_model_bits")
            or (part.get(f"markov_{line}") or {}).get("minus_model_bits")
            for line in LINES
        ]
        shown = " | ".join("" if gap is None else gap_of(gap) for gap in gaps)
        text.append(
            f"| {name} | {part['tokens']:,} | {figure_of(part)} | {best_line(part)} | {shown} |"
        )
    lines = " · ".join(f"{k}: {p:.4f}" for k, p in found["markov_perplexity"].items())
    text += ["", f"Perplexity of the Markov lines by order, over all: {lines}."]
    if fitted := found["markov_fitted"]:
        better = gap_of(fitted["minus_model_bits"])
        text.append(
            f"With order ({fitted['order']}) and pseudo-counts fitted on the valid split: "
            f"{fitted['perplexity']:.4f}; "
            f"the model is better by {better} bits."
        )
    if found["source_bits"] is not None:
        gap = gap_of(found["model_minus_source_bits"])
        text += [
            "",
            f"The source itself: {found['source_bits']:.4f} bits per base; the model is above "
            f"it by {gap}.",
        ]
    if found["repeat_share"] is not None:
        text += [
            "",
            f"Windows in which 24-mers of the train split cover a quarter of the bases or "
            f"more (repeat): "
            f"{found['repeat_share']:.1%}; in which they cover less (touched): "
            f"{found['touched_share']:.1%}.",
        ]
    return [*text, "", f"![bits over training bases; cost over mask rates]({file})"]


def draw_together(recipe: str, drawn: list[dict[str, Any]]) -> str:
    """RECIPE-curves.svg: the valid split's bits of several runs over the same axis of training
    bases, and of time.
    """
    plt.rcParams.update({"svg.hashsalt": recipe, "svg.fonttype": "none", "font.size": 8})
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained", sharey=True)
    for row in drawn:
        tokens, seconds, bits = zip(*row["valid"], strict=True)
        for axis, x in zip(
            axes, ([t / 1e6 for t in tokens], [t / 60 for t in seconds]), strict=True
        ):
            axis.plot(x, bits, ".-", lw=1, ms=3, label=f"{row['name']}, seed {row['train_seed']}")
    axes[0].set(xlabel="million training bases", ylabel="bits per base, valid split")
    axes[1].set(xlabel="minutes of training")
    axes[1].legend(loc="upper right")
    name = f"{recipe}-curves.svg"
    figure.savefig(HERE / name, metadata={"Date": None})
    plt.close(figure)
    return name


def mixture_of(found: dict[str, Any]) -> str:
    """Perplexity of the mixture of context orders."""
    return f"{found['markov_mixture']['perplexity']:.4f}" if found.get("markov_mixture") else ""


def unique_gap(found: dict[str, Any]) -> str:
    """What the model is better by than the mixture on windows that share no 24-mer with the train
    split.
    """
    gap = found["regions"].get("unique", {}).get("mixture_minus_model_bits")
    return gap_of(gap) if gap else ""


def figure_of(part: dict[str, Any]) -> str:
    ends = part["ci95_bits"]
    return f"{part['bits_per_base']:.4f}" + (f" [{ends[0]:.4f}, {ends[1]:.4f}]" if ends else "")


def best_line(part: dict[str, Any]) -> str:
    """The lowest Markov line on these bases: a choice made after the fact, in the lines' favour."""
    fitted = part.get("fitted_bits", (part.get("markov_fitted") or {}).get("bits"))
    mixed = part.get("mixture_bits", (part.get("markov_mixture") or {}).get("bits"))
    lines = {f"order {k}": bits for k, bits in part["markov_bits"].items()}
    lines |= {name: bits for name, bits in zip(LINES, (fitted, mixed), strict=True) if bits}
    name = min(lines, key=lines.__getitem__, default=None)
    return f"{lines[name]:.4f} ({name})" if name else ""


def gap_of(gap: dict[str, Any]) -> str:
    return f"{gap['bits']:.4f}" + (
        f" [{gap['ci95'][0]:.4f}, {gap['ci95'][1]:.4f}]" if gap["ci95"] else ""
    )


if __name__ == "__main__":
    main()
