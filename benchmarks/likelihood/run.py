"""Train for some minutes, evaluate, and write the figures down: RESULTS.md, results.jsonl and one
SVG for each run.

    python benchmarks/likelihood/run.py sacCer3-ps-470k --fasta sacCer3.fa.gz
    python benchmarks/likelihood/run.py sacCer3-ph-470k --trained RUN   a run that is trained already
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
LINES = ("fitted", "mixture", "adaptive_from_train", "adaptive")
T_STEPS = ("10", "20", "50", "100", "1000")
NAMES = {
    "8": "order 8",
    "fitted": "fitted order",
    "mixture": "mixture 1–24",
    "adaptive_from_train": "adaptive, train alone",
    "adaptive": "adaptive, grows",
}
# Bits per base of GeCo3, from train alone and also adapting to what it has read; see GECO3_NOTE.
GECO3 = {"sacCer3": (1.812, 1.802), "hg38": (1.689, 1.681)}
GECO3_NOTE = """GeCo3 is a published compressor (Silva et al. 2020), run once by this project and not \
by its authors: version 6d5c4f4, eight reference
models of orders 3 to 20, three of which tolerate substitutions, both strands, 64 hidden nodes, \
learning rate 0.01; one core, 50 to 70 s. The
figure is the size of the compressed file. It is of all A, C, G and T of the test chromosome (yeast \
chrXIV; human chr21, 1.17 Mb), read as one text
from left to right. The other columns are of the windows of 1,024 bases, which leave out the ends \
of intervals. The adaptive mixture, too, reads
the chromosome as one text. Its weights are learned on the valid chromosome, which GeCo3 did not \
see. A network sees its window alone. GeCo3 gives
no figures for classes of windows, and no interval is known for it."""


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
        keep_lines(measure_lines(asked.lines))
    elif not asked.only_write:
        keep(measure(asked, more))
    (HERE / "RESULTS.md").write_text(page(rows()), encoding="utf-8")


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
    scoring += ["--t-steps", *T_STEPS]
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


def measure_lines(run: Path) -> dict[str, Any]:
    """What counting gives on a run's test split: bits of each line, by class of windows.

    The network of the run has no part in it.
    """
    found = evaluate(run, keep=False)
    return {
        **{key: found[key] for key in ("recipe", "fingerprint", "seq_len", "windows", "created")},
        "fasta": Path(found["fasta"]).name if found["fasta"] else None,
        "commit": find_git_revision(),
        "command": f"python benchmarks/likelihood/run.py NAME --lines {run.name}",
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


def line_bits(part: dict[str, Any], line: str) -> float | None:
    """Bits of a line on a class of windows, or on all."""
    of_all = part.get(f"markov_{line}") or part.get(line) or part.get(f"{line}_mixture") or {}
    found: float | None = part.get(f"{line}_bits", of_all.get("bits"))
    return found


def keep_lines(new: dict[str, Any]) -> None:
    """Put a row into lines.jsonl, in place of an older one of the same windows."""
    others = [row for row in read("lines.jsonl") if windows_of(row) != windows_of(new)]
    lines = [json.dumps(row, allow_nan=False) for row in [*others, new]]
    (HERE / "lines.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def windows_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells whether two rows are of the same bases."""
    return row["fingerprint"], row["seq_len"], row["windows"]


def metrics(run: Path) -> list[dict[str, float]]:
    """Rows of metrics.csv; an empty cell is nan."""
    with (run / "metrics.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("step", "tokens", "seconds", "loss_bits", "valid_bits", "valid_ci")
    return [{name: float(row[name]) if row[name] else math.nan for name in names} for row in rows]


def rows() -> list[dict[str, Any]]:
    return read("results.jsonl")


def read(name: str) -> list[dict[str, Any]]:
    path = HERE / name
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
    text += ["", *opponents(results)]
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


def opponents(results: list[dict[str, Any]]) -> list[str]:
    """What counting and a compressor give on the same bases, classes of windows apart."""
    known = {windows_of(row): row for row in read("lines.jsonl")}
    text = [
        "## The opponents, in bits per base",
        "",
        "Exact likelihoods of the test split; no network has a part in them. Of a class, each line "
        "is over the bases of its windows. The adaptive mixture",
        "reads from left to right: with the train split alone as its memory, or also with what it "
        "has read (it grows).",
        "",
        f"| data | windows | bases | {' | '.join(NAMES.values())} | GeCo3, train alone | GeCo3, "
        "adapting | best network |",
        "|---" * (6 + len(NAMES)) + "|",
    ]
    for key, lines in known.items():
        of = [r for r in results if windows_of(r["evaluation"]) == key]
        for name, part in lines["parts"].items():
            bits = [f"{part['bits'][k]:.4f}" if k in part["bits"] else "" for k in NAMES]
            geco = [f"{b:.3f}" for b in GECO3[lines["recipe"]]] if name == "all" else ["", ""]
            found = [
                (r["evaluation"] if name == "all" else r["evaluation"]["regions"][name], r["name"])
                for r in of
            ]
            best = min(found, key=lambda one: one[0]["bits_per_base"], default=None)
            shown = "" if best is None else f"≤ {figure_of(best[0])} ({best[1]})"
            cells = [lines["recipe"], name, f"{part['tokens']:,}", *bits, *geco, shown]
            text.append(f"| {' | '.join(cells)} |")
    text += ["", GECO3_NOTE, ""]
    text += [
        f"- {row['recipe']}: `{row['command']}` at {row['commit']}, {row['hardware']}; no seed "
        "enters; windows as below."
        for row in known.values()
    ]
    return text


def steps_of(found: dict[str, Any]) -> str:
    """One line: the bounds of sampling in few steps."""
    shown = [
        f"{steps}: {one['bits']:.4f} [{one['ci95'][0]:.4f}, {one['ci95'][1]:.4f}], "
        f"{one['minus_model_bits']['bits']:+.4f} "
        f"[{one['minus_model_bits']['ci95'][0]:+.4f}, {one['minus_model_bits']['ci95'][1]:+.4f}]"
        for steps, one in found["t_steps"].items()
        if one.get("minus_model_bits") and one["ci95"]
    ]
    return (
        "Sampling in T steps, bits per base, and above one token at a time: " + " · ".join(shown)
        if shown
        else ""
    )


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
        "mixture − model | adaptive, train alone − model | adaptive, grows − model |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, part in parts.items():
        gaps = [
            part.get(f"{line}_minus_model_bits")
            or (
                part.get(f"markov_{line}") or part.get(line) or part.get(f"{line}_mixture") or {}
            ).get("minus_model_bits")
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
    soft = found.get("soft_mask")
    if soft is not None:
        text.append(
            f"Soft-masked bases: {soft['bases']:,}; weight {soft['trained_weight']} in training, "
            f"{soft['scored_weight']} here."
            if soft["bases"]
            else "No soft-masked bases."
        )
    if steps := steps_of(found):
        text += ["", steps]
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
    lines = {f"order {k}": bits for k, bits in part["markov_bits"].items()}
    lines |= {line: bits for line in LINES if (bits := line_bits(part, line))}
    name = min(lines, key=lines.__getitem__, default=None)
    return f"{lines[name]:.4f} ({name})" if name else ""


def gap_of(gap: dict[str, Any]) -> str:
    return f"{gap['bits']:.4f}" + (
        f" [{gap['ci95'][0]:.4f}, {gap['ci95'][1]:.4f}]" if gap["ci95"] else ""
    )


if __name__ == "__main__":
    main()
