"""RESULTS.md and overview.svg of `benchmarks/variants`, from results.jsonl."""

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from variant_sets import PUBLISHED, SETS
from yeast_laws import LAWS

FILE = "results.jsonl"
MILLION = "million.json"
_WORDS = {"spearman": "Spearman", "pearson": "Pearson", "auroc": "AUROC", "auprc": "AUPRC"}


def read_rows(folder: Path) -> list[dict[str, Any]]:
    path = folder / FILE
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def write(folder: Path) -> None:
    """RESULTS.md and overview.svg, from results.jsonl."""
    rows = read_rows(folder)
    text = [
        "# Scores of variants beside what is measured",
        "",
        "A score is log p(ALT) − log p(REF) of `genodiff score`, or, of sequences with many "
        "mutations, the change of the pseudo-log-likelihood by `genodiff.substitution_effect`. "
        "Directions were written down in `variant_sets.py` before anything was scored; a figure "
        "on the wrong side of no information (0, or an AUROC of 0.5) is a failure and stays as it "
        "is. Brackets: 95 % percentile intervals of 1,000 bootstrap draws of whole blocks. They "
        "are not corrected for the number of figures, and hold one training seed. Made by "
        "`python benchmarks/variants/run.py --data SHARED/data --yeast RUN --human RUN --out "
        "benchmarks/variants`; all figures: `results.jsonl`.",
        "",
        "![overview](overview.svg)",
        "",
    ]
    for name in [*SETS, "yeast_laws"]:
        for row in (row for row in rows if row["set"] == name):
            text += make_section(row)
    if (folder / MILLION).exists():
        text += describe_million(json.loads((folder / MILLION).read_text(encoding="utf-8")))
    findings = folder / "FINDINGS.md"
    text += [findings.read_text(encoding="utf-8")] if findings.exists() else []
    (folder / "RESULTS.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    if rows:
        draw(folder, rows)


def describe_million(found: dict[str, Any]) -> list[str]:
    """What scoring very many variants takes, in one run and in shards, by million.py."""
    shards = found["shard_runs"]
    most = max(one["peak_mib"] for one in shards)
    same = "the same bytes as" if found["identical"] else "OTHER BYTES than"
    return [
        "## Scale",
        "",
        "| made-up SNVs of yeast, one run | seconds of CPU | wall seconds | peak memory, MiB |",
        "|---|---|---|---|",
        *(
            f"| {int(n):,} | {one['cpu_s']:.0f} | {one['wall_s']:.0f} | {one['peak_mib']:.0f} |"
            for n, one in found["whole"].items()
        ),
        "",
        f"In {found['shards']} shards, of which number {found['killed']['shard']} was killed after "
        f"{found['killed']['records_kept']:,} records and run again: "
        f"{sum(one['cpu_s'] for one in shards):.0f} s of CPU in all, at most {most:.0f} MiB each. "
        f"`genodiff merge` took {found['merge']['cpu_s']:.1f} s and gave {same} the one run. "
        "The network is very small "
        f"({found['model']}), so these are no times of a network that knows much. Wall times were "
        f"taken beside other work (load {found['load']}). `{found['command']}`, commit "
        f"{found['commit'][:12]}, {found['hardware']}, {found['threads']} thread.",
        "",
    ]


def make_section(row: dict[str, Any]) -> list[str]:
    """A table for one data set and run, and what it was made with."""
    name, figures = row["set"], row["figures"]
    made = (
        f"Run {row['run']}, step {row['step']} of training seed {row['train_seed']}; limit "
        f"{row['limit']}, seed {row['seed']}; {row['process_seconds']:.0f} s of process time "
        f"beside other work. Commit {str(row['commit'])[:12]}; {row['hardware']}."
    )
    where = f"Of the scored variants, {row['overlap']}."
    if name == "yeast_laws":
        head = ["law (mean score, nats; expected above 0)", "variants", *figures]
        body = [
            [law, " / ".join(map(str, next(iter(figures.values()))[law]["n"]))]
            + [show(figures[one][law]) for one in figures]
            for law, _, _ in LAWS
        ]
        about = (
            f"{row['n']:,} substitutions; {row['genes']:,} frames agree with the genome, "
            f"{row['introns']} of them with one intron that could be found. Codons and starts are "
            f"of {', '.join(row['held_out'])} (held out), introns of all chromosomes. {where} "
            "Genes are drawn whole. Controls have the same letters in the same gene."
        )
    else:
        one = SETS[name]
        kinds = [k for k in _WORDS if any(k in mine for mine in figures.values())]
        head = ["score", *(_WORDS[k] for k in kinds)]
        body = [
            [label, *(show(mine[k]) if k in mine else "" for k in kinds)]
            for label, mine in figures.items()
        ]
        blocks = next(iter(next(iter(figures.values())).values()))["blocks"]
        lost = f", {row['unscored']} without a score" if row["unscored"] else ""
        about = (
            f"{one.source}. {row['n']:,} variants in {blocks:,} blocks"
            f"{lost}. Expected: {one.expected}; GC change is given the sign "
            f"{'+' if one.gc_sign > 0 else '−'}. {one.note} {where}"
            + (f" Positives: {100 * row['prevalence']:.1f} %." if row["prevalence"] else "")
            + (f" Published: {PUBLISHED[name]}." if name in PUBLISHED else "")
        )
    lines = [f"| {' | '.join(cells)} |" for cells in body]
    return [
        f"## {name}", "", about, "", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines,
        "", made, "",
    ]  # fmt: skip


def show(figure: dict[str, Any]) -> str:
    return f"{figure['value']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"


def draw(folder: Path, rows: list[dict[str, Any]]) -> None:
    """overview.svg: a forest plot of every score on every data set, and of the laws."""
    plt.rcParams.update({"svg.hashsalt": "variants", "svg.fonttype": "none", "font.size": 7})
    lines, laws = [], []
    for row in rows:
        for label, mine in row["figures"].items():
            if row["set"] == "yeast_laws":
                laws += [(f"{law}: {label}", figure, label) for law, figure in mine.items()]
            else:
                kind = "spearman" if "spearman" in mine else "auroc"
                shift = 0.0 if kind == "spearman" else -1.0
                scale = 1.0 if kind == "spearman" else 2.0
                figure = {k: scale * mine[kind][k] + shift for k in ("value", "low", "high")}
                lines.append((f"{row['set']}: {label.split(' (')[0]}", figure, label))
    laws.sort(key=lambda one: [law for law, _, _ in LAWS].index(one[0].split(": ")[0]))
    height = max(3.0, 0.6 + 0.15 * max(len(lines), len(laws)))
    figure, panels = plt.subplots(1, 2, figsize=(11, height), layout="constrained")
    titles = ("Spearman; 2 AUROC − 1 of dbsnp", "yeast laws: gap of mean scores, nats")
    for panel, shown, title in zip(panels, (lines, laws), titles, strict=True):
        for i, (_, one, label) in enumerate(shown):
            colour = "C3" if label == "genodiff" else "0.4"
            panel.plot([one["low"], one["high"]], [i, i], color=colour, lw=1)
            panel.plot(one["value"], i, "o", ms=3, color=colour)
        panel.axvline(0, color="0.7", lw=0.8)
        panel.set_yticks(range(len(shown)), [name for name, _, _ in shown])
        panel.invert_yaxis()
        panel.set_title(title)
    figure.savefig(folder / "overview.svg", metadata={"Date": None})
    plt.close(figure)
