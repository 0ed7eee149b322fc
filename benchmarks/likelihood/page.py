"""RESULTS.md of the likelihood benchmark, from results.jsonl and lines.jsonl."""

import json
import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
LINES = ("fitted", "mixture", "adaptive_from_train", "adaptive")
NAMES = {
    "8": "order 8",
    "fitted": "fitted order",
    "mixture": "mixture 1–24",
    "adaptive_from_train": "adaptive, train alone",
    "adaptive": "adaptive, grows",
}
# Bits per base of GeCo3: from train alone, and adapting to what it has read.
GECO3 = {"sacCer3": (1.812, 1.802), "hg38": (1.689, 1.681)}
GECO3_NOTE = (
    "GeCo3 is a published compressor (Silva et al. 2020), run once by this project and not by its "
    "authors: version 6d5c4f4,",
    "eight reference models of orders 3 to 20, three of which tolerate substitutions, both "
    "strands, 64 hidden nodes, learning rate 0.01;",
    "one core, 50 to 70 s. The figure is the size of the compressed file. It is of all A, C, G and "
    "T of the test chromosome (yeast chrXIV;",
    "human chr21, 1.17 Mb), read as one text from left to right. The other columns are of the "
    "windows of 1,024 bases, which leave out the",
    "ends of intervals. The adaptive mixture, too, reads the chromosome as one text. Its weights "
    "are learned on the valid chromosome,",
    "which GeCo3 did not see. A network sees its window alone. GeCo3 gives no figures for classes "
    "of windows, and no interval is known for it.",
)


def read(name: str) -> list[dict[str, Any]]:
    path = HERE / name
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if path.exists()
        else []
    )


def line_bits(part: dict[str, Any], line: str) -> float | None:
    """Bits of a line on a class of windows, or on all."""
    of_all = part.get(f"markov_{line}") or part.get(line) or part.get(f"{line}_mixture") or {}
    found: float | None = part.get(f"{line}_bits", of_all.get("bits"))
    return found


def windows_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells whether two rows are of the same bases."""
    return row["fingerprint"], row["seq_len"], row["windows"]


def make_page() -> str:
    """RESULTS.md."""
    results = read("results.jsonl")
    text = [
        "# Likelihood",
        "",
        "Upper bounds on the cross-entropy of held-out DNA, with 95 % intervals over masks and "
        "windows (contiguous blocks),",
        "beside interpolated Markov models counted on the same train split and scored on the "
        "same bases. What is bounded,",
        "and how: `genodiff/evaluation/dna_evaluation.py`. Made by `benchmarks/likelihood/run.py`; "
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
    text += ["", *GECO3_NOTE, ""]
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
        for steps, one in found.get("t_steps", {}).items()
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
    return [*text, "", f"Picture, drawn beside this page when a run is trained: `{file}`."]


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
