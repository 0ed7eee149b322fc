"""RESULTS.md, results.jsonl and a picture for each aim, of the designs that are there."""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from design_scores import NATIVES, PUBLISHED, Row, Scores, join_seeds, read_designs
from judges import rank
from yeast import read_table

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import cpu  # noqa: E402

from genodiff.runs.folder import find_git_revision  # noqa: E402

AIMS = {"high": 1, "low": -1}
ORDER = ["unguided", "cfg", "smc", "smc-strong", "beam", "best-of-n", "exact", "first-order"]
ORDER += ["redesign", "edit", "edit-even", "ga", "ledidi", "greedy"]
JUDGES = {"guided": "oracle A, which guided", "judge": "oracle B", "third": "ridge on C"}
LEAST_WORDS = 0.85


def write_results(out: Path, here: Path, seeds: list[int], n: int) -> None:
    """All files, from the folder of designs."""
    designs = read_designs(out, seeds)
    measured = read_measured(out)
    texts = [text for some, _ in designs.values() for text in some]
    scores = Scores(out, texts + [text for some, _ in measured.values() for text in some])
    stamp = {"commit": find_git_revision(), "cpu": f"{cpu()}, one thread"}
    rows, joined = [], []
    for aim, sign in AIMS.items():
        for method in ORDER:
            mine = [(s, *designs[aim, method, s]) for s in seeds if (aim, method, s) in designs]
            own = []
            for seed, some, cost in mine:
                row = scores.describe(some, n) | cost
                own.append(row)
                rows.append({"aim": aim, "method": method, "seed": seed} | row | stamp)
            if own:
                one = join_seeds(scores, own, [some for _, some, _ in mine], sign)
                joined.append({"aim": aim, "method": method} | one | stamp)
    floor = describe_natives(scores, n)
    published = {
        aim: {name: float(np.median(scores(name, some))) for name in JUDGES}
        | {"measured": float(np.median(values)), "n": len(some)}
        | {"words": scores.correlate(some), "longest match": int(scores("match", some).max())}
        for aim, (some, values) in measured.items()
    }
    ranks = rank_measured(scores, measured)
    everything = [*rows, *({"kind": "all seeds"} | row for row in joined)]
    everything += [{"kind": "natives"} | floor, {"kind": "published"} | published]
    everything += [{"kind": "rank of measured designs"} | ranks]
    (here / "results.jsonl").write_text("".join(json.dumps(x) + "\n" for x in everything))
    for aim in AIMS:
        draw(here / f"designs-{aim}.svg", [r for r in joined if r["aim"] == aim], floor, aim)
    lines = write_lines(joined, floor, published, ranks, find_fits(out), stamp, seeds)
    findings = HERE / "FINDINGS.md"
    said = "\n" + findings.read_text() if findings.exists() else ""
    (here / "RESULTS.md").write_text("\n".join(lines) + "\n" + said)


def read_measured(out: Path) -> dict[str, tuple[list[str], np.ndarray]]:
    """The designs that were measured, by their aim."""
    texts, values = read_table(out / "data" / "designs.csv")
    aims = [line.rsplit(",", 1)[1] for line in (out / "data" / "designs.csv").read_text().split()]
    chosen = {aim: [i for i, one in enumerate(aims[1:]) if one == aim] for aim in AIMS}
    return {aim: ([texts[i] for i in some], values[some]) for aim, some in chosen.items()}


def rank_measured(scores: Scores, measured: dict[str, Any]) -> Row:
    """How each judge ranks the measured designs."""
    groups = dict(measured) | {
        "all": (
            [text for some, _ in measured.values() for text in some],
            np.concatenate([values for _, values in measured.values()]),
        )
    }
    return {
        name: {
            group: rank(scores(name, some), values, 1) for group, (some, values) in groups.items()
        }
        for name in JUDGES
    }


def find_fits(out: Path) -> dict[str, float]:
    """Spearman's correlation of each oracle on third C."""
    found = {}
    for third in "AB":
        row = json.loads((out / third / "results.jsonl").read_text().splitlines()[-1])
        found[third] = float(row["metrics"]["spearman"])
    return found


def describe_natives(scores: Scores, n: int) -> Row:
    """Held-out native cores, as a method's row; `top` and `bottom` are their percentiles."""
    natives = scores.natives
    row = scores.describe(natives, len(natives))
    draws = np.random.default_rng(1)
    some = [
        scores.describe([natives[i] for i in draws.choice(len(natives), n, False)], n)["difference"]
        for _ in range(5)
    ]
    row["difference"] = float(np.mean(some))
    row["words"] = scores.correlate(natives)
    for end, q in (("top", 0.99), ("bottom", 0.01)):
        row[end] = {name: float(np.quantile(scores(name, natives), q)) for name in JUDGES}
    long = scores("match", natives)
    row["match quantiles"] = np.quantile(long, [0.5, 0.9, 0.99]).tolist()
    return row


def draw(path: Path, rows: list[Row], floor: Row, aim: str) -> None:
    """Naturalness beside the judge, and the judge's gain beside the oracle's."""
    style = {"svg.fonttype": "none", "svg.hashsalt": "genodiff", "font.size": 8}
    with plt.rc_context(style):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
        for row in rows:
            bad = row["gains"]["hacked"]
            colour = "#b3261e" if bad else "#1f5fa8"
            sides = (
                (left, row["bits"], row["judge"]),
                (right, *(_ends(row["gains"][name]) for name in ("guided", "judge"))),
            )
            for ax, x, y in sides:
                ax.plot(x[1:], [y[0]] * 2, color=colour, linewidth=0.8)
                ax.plot([x[0]] * 2, y[1:], color=colour, linewidth=0.8)
                ax.plot(x[0], y[0], "X" if bad else "o", color=colour, markersize=5)
                ax.annotate(row["method"], (x[0], y[0]), (4, 4), textcoords="offset points")
        left.plot(floor["bits"], floor["judge"], "s", color="#555", markersize=6)
        left.annotate(
            "natives", (floor["bits"], floor["judge"]), (4, 4), textcoords="offset points"
        )
        end = floor["top" if aim == "high" else "bottom"]["judge"]
        left.axhline(end, color="#555", linewidth=0.8, linestyle="--")
        left.set_xlabel("bits per base under the generator (natural: left)")
        left.set_ylabel("independent judge: expression, median")
        if aim == "low":
            left.invert_yaxis()
        most = max(row["gains"]["guided"]["value"] for row in rows)
        right.plot([0, most], [0, most], color="#999", linewidth=0.8, linestyle="--")
        right.set_xlabel("gain by the oracle that guided, sd of natives")
        right.set_ylabel("gain by the judge, sd of natives")
        for ax in (left, right):
            ax.margins(0.15)
            ax.spines[["top", "right"]].set_visible(False)
        figure.suptitle(
            f"Aim {aim}. Dashed left: 99 % of natives fall short of it. Right: crosses hacked."
        )
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _ends(gain: Row) -> list[float]:
    return [gain["value"], *gain["ci95"]]


def write_lines(
    joined: list[Row],
    floor: Row,
    published: Row,
    ranks: Row,
    fits: dict[str, float],
    stamp: dict[str, str],
    seeds: list[int],
) -> list[str]:
    """The page, without findings."""
    lines = [
        "# Designs of yeast promoters, judged by what did not guide them",
        "",
        "Cores of 80 bases, designed for high or for low expression. Oracle A guides; oracle B and "
        "a ridge on words judge. Each was fitted on its own third of 19,558 measured cores, whole "
        f"families. On third C the oracles have Spearman {fits['A']:.3f} and {fits['B']:.3f}.",
        "",
        f"`python benchmarks/design/run.py --data FOLDER --out FOLDER`; commit {stamp['commit']} "
        f"and this script; {stamp['cpu']}; seeds {', '.join(map(str, seeds))} of the designs, one "
        "of each network.",
        "",
        "Figures are the mean over seeds of the seeds' medians, of bits and difference means, with "
        "its 95 % interval (Student's t).",
        "",
        "- `calls`: sequences that oracle A was asked for, for each design, forwards or backwards",
        "- `transfer`: the gain by oracle B over that by oracle A, in standard deviations of "
        "held-out natives (bootstrap over designs); surely below 0.5, the oracle was hacked",
        "- `bits`: bits per base under the generator, at most",
        "- `difference`: the share of bases in which a design differs from the nearest other one, "
        "of the first 4 of a seed (2 of best-of-n)",
        "- `words`: correlation of 6-mer counts of all designs with native cores of the train "
        "chromosomes (jackknife over seeds); beside it as many held-out natives (95 % of draws)",
        "- `match`: the longest stretch in common with what the generator read: the mean over "
        "seeds of medians, and the longest of all",
    ]
    for aim in AIMS:
        end = "top" if aim == "high" else "bottom"
        lines += ["", f"## Aim: {aim}", "", f"Picture, drawn by `run.py`: `designs-{aim}.svg`."]
        rows = [row for row in joined if row["aim"] == aim]
        lines += ["", *_list_scores(rows, floor, published[aim])]
        lines += ["", *_list_nature(rows, floor, published[aim])]
        ends = ", ".join(f"{name} {floor[end][key]:.2f}" for key, name in JUDGES.items())
        lines += ["", f"{'99th' if aim == 'high' else '1st'} percentile of natives: {ends}."]
    lines += ["", "## What was asked for", "", *_check(joined, floor)]
    lines += [
        "",
        "## How the judges rank designs that were measured",
        "",
        "Spearman's correlation with measured expression, with 95 % percentile bootstrap intervals "
        "over designs, those that Vaishnav et al. 2022 made by a genetic algorithm with a model of "
        "theirs. JUDGES.md has more judges.",
        "",
        "| judge | all | high | low |",
        "|---|---|---|---|",
    ]
    for name, told in JUDGES.items():
        cells = [_ci(ranks[name][group], 3) for group in ("all", "high", "low")]
        lines.append(f"| {told} | {' | '.join(cells)} |")
    return lines


def _list_scores(rows: list[Row], floor: Row, published: Row) -> list[str]:
    """What oracle and judges say."""
    lines = [
        "| method | designs | calls | CPU s | oracle A | oracle B | ridge C | transfer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        transfer = row["gains"]["transfer"]
        told = "–" if transfer is None else _ci([transfer["value"], *transfer["ci95"]], 2)
        told += " **hacked**" if row["gains"]["hacked"] else ""
        cells = [row["method"], str(row["n"]), f"{row['calls']:.0f}", f"{row['cpu_seconds']:.2f}"]
        cells += [*(_ci(row[name], 2) for name in JUDGES), told]
        lines.append("| " + " | ".join(cells) + " |")
    for name, n, some in (
        (NATIVES, floor["n"], floor),
        (f"{PUBLISHED}, measured {published['measured']:.2f}", published["n"], published),
    ):
        cells = " | ".join(f"{some[key]:.2f}" for key in JUDGES)
        lines.append(f"| {name} | {n} | – | – | {cells} | – |")
    return lines


def _list_nature(rows: list[Row], floor: Row, published: Row) -> list[str]:
    """How natural, various and new the designs are."""
    lines = [
        "| method | bits | difference | words | natives' words | match, longest |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row["method"], _ci(row["bits"], 3), _ci(row["difference"], 3)]
        cells += [_ci(row["words"], 3), _ci(row["words of natives"], 3)]
        cells.append(f"{row['match'][0]:.1f}, {row['longest match']}")
        lines.append("| " + " | ".join(cells) + " |")
    lines.append(
        f"| {NATIVES} | {floor['bits']:.3f} | {floor['difference']:.3f} | {floor['words']:.3f} | – "
        f"| {floor['match']:.1f}, {floor['longest match']} |"
    )
    words, longest = f"{published['words']:.3f}", published["longest match"]
    lines.append(f"| {PUBLISHED} | – | – | {words} | – | –, {longest} |")
    return lines


def _check(joined: list[Row], floor: Row) -> list[str]:
    """Three conditions of designs for high expression, each method."""
    lines = [
        f"For high designs: judge B at or above the natives' 99th percentile "
        f"({floor['top']['judge']:.2f}), words at least {LEAST_WORDS}, and no longer match than "
        f"held-out natives have (median {floor['match']:.0f}, longest {floor['longest match']}). "
        "Held where the whole interval is on the right side, open where it holds the limit.",
        "",
        "| method | judge | words | match |",
        "|---|---|---|---|",
    ]
    for row in joined:
        if row["aim"] != "high":
            continue
        told = [_tell(row["judge"], floor["top"]["judge"]), _tell(row["words"], LEAST_WORDS)]
        longer = row["match"][0] > floor["match"] or row["longest match"] > floor["longest match"]
        lines.append(f"| {row['method']} | {' | '.join(told)} | {'no' if longer else 'held'} |")
    return lines


def _tell(value: list[float], limit: float) -> str:
    word = "held" if value[1] >= limit else "no" if value[2] < limit else "open"
    return f"{word} ({value[0]:.2f})"


def _ci(value: list[float], digits: int) -> str:
    return f"{value[0]:.{digits}f} [{value[1]:.{digits}f}, {value[2]:.{digits}f}]"
