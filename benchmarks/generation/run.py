"""How good generated DNA is: every sampler that fits a run, at several numbers of steps.

    python benchmarks/generation/run.py RUN [RUN ...] --threads 1

RUN is a run folder. Each (run, sampler, steps) is sampled by `genodiff.sample` and measured as
`genodiff scorecard` does, and is a row of results.jsonl; rows that are there are not made again, so
the same command goes on where it stopped. Cheap rows come first. RESULTS.md and one SVG for each
run are written after every row. FINDINGS.md, if there is one, is the end of RESULTS.md.
--only-write makes them again.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib
import torch

matplotlib.use("svg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import cpu  # noqa: E402

import genodiff  # noqa: E402
from genodiff.alphabet import DNA  # noqa: E402
from genodiff.data.dna_windows import DnaWindows  # noqa: E402
from genodiff.diffusion.registries import SAMPLERS  # noqa: E402
from genodiff.evaluation.eval_data import open_data  # noqa: E402
from genodiff.io.fasta import read_fasta  # noqa: E402
from genodiff.quality.real_sequence import RealSequence, open_real_of_run  # noqa: E402
from genodiff.quality.sample_quality import Measures, measure_sets  # noqa: E402
from genodiff.runs.folder import find_git_revision  # noqa: E402
from genodiff.runs.model import TrainedModel, load_model  # noqa: E402

STEPS = (32, 128, 1024)
FILE = "results.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="run folders")
    parser.add_argument("--n", type=int, default=1000, help="sequences of each set")
    parser.add_argument("--length", type=int, default=512, help="bases of each sequence")
    parser.add_argument("--steps", type=int, nargs="+", default=list(STEPS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cnn", action="store_true", help="a convolutional discriminator too")
    parser.add_argument("--out", type=Path, default=Path("runs/generation"), help="for samples")
    parser.add_argument("--results", type=Path, default=HERE, help="where tables go")
    parser.add_argument(
        "--remeasure", action="store_true", help="only measure the samples that are kept again"
    )
    parser.add_argument("--only-write", action="store_true", help="write the tables again")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    if not asked.only_write:
        opened = [Opened(path, asked) for path in asked.runs]
        if asked.remeasure:
            for one in opened:
                one.remeasure()
            write(asked.results)
            return
        for one in opened:
            one.add_references()
        for steps in [*asked.steps, None]:
            for one in opened:
                for name in one.find_samplers(steps):
                    one.add_samples(name, steps)
    write(asked.results)


class Opened:
    """A run with the real sequence beside it, opened when it is first needed."""

    def __init__(self, path: Path, asked: argparse.Namespace) -> None:
        self.path, self.asked = path, asked
        self.model: TrainedModel = load_model(path, device="cpu")
        self._real: RealSequence | None = None
        self.discriminators = ("kmers", "cnn") if asked.cnn else ("kmers",)

    @property
    def real(self) -> RealSequence:
        if self._real is None:
            config = self.model.config
            section = config.data.model_copy(update={"seq_len": self.asked.length})
            model = self.model._replace(config=config.model_copy(update={"data": section}))
            windows = open_data(model).windows
            assert isinstance(windows, DnaWindows)
            self._real = open_real_of_run(windows, self.asked.n, seed=self.asked.seed)
        return self._real

    def key(self, name: str, steps: int | None) -> dict[str, Any]:
        """What a row is known by."""
        return {
            "run": self.path.name, "checkpoint": self.model.digest, "set": name, "steps": steps,
            "n": self.asked.n, "length": self.asked.length, "seed": self.asked.seed,
            "discriminators": list(self.discriminators),
        }  # fmt: skip

    def find_samplers(self, steps: int | None) -> list[str]:
        """The samplers that fit this run and use steps, or, for None, those that do not."""
        kind = self.model.objective.kind
        found = {name: SAMPLERS[name] for name in SAMPLERS.list_names()}
        return [name for name, s in found.items() if kind in s.fits and s.uses_steps == bool(steps)]

    def add_references(self) -> None:
        """Rows of the floor and of Markov sequence, where they are not there yet."""
        if is_there(self.asked.results, self.key("real", None)):
            return
        how = Measures(self.discriminators, seed=self.asked.seed)
        references = {"real": self.real.floor, **self.real.markov}
        for name, quality in measure_sets(references, self.real, how).items():
            self.keep(self.key(name, None), quality, {})

    def add_samples(self, name: str, steps: int | None) -> None:
        """The row of a sampler, where it is not there yet."""
        key = self.key(name, steps)
        if is_there(self.asked.results, key):
            return
        out = self.find_file(name, steps)
        out.parent.mkdir(parents=True, exist_ok=True)
        began = time.process_time()
        told = genodiff.sample(
            self.path, out=out, n=self.asked.n, length=self.asked.length, sampler=name, steps=steps,
            seed=self.asked.seed, device="cpu", fresh=True, force=True,
        )  # fmt: skip
        seconds = time.process_time() - began
        evaluations = [record["nfe"] for record in told["records"]]
        took = {
            "process_seconds": round(seconds, 2),
            "evaluations": sum(evaluations) / len(evaluations),
        }
        self.keep(key, self.measure(out), took)

    def find_file(self, name: str, steps: int | None) -> Path:
        return self.asked.out / self.path.name / f"{name}-{steps or 'own'}.fa"

    def measure(self, samples: Path) -> dict[str, Any]:
        sequences = [DNA.encode(record.sequence) for record in read_fasta(samples)]
        how = Measures(self.discriminators, seed=self.asked.seed)
        return measure_sets({"samples": sequences}, self.real, how)["samples"]

    def remeasure(self) -> None:
        """Figures anew of this run's rows, from the samples that are kept; times stay."""
        how = Measures(self.discriminators, seed=self.asked.seed)
        sets = {"real": self.real.floor, **self.real.markov}
        references = measure_sets(sets, self.real, how)
        rows = read_rows(self.asked.results)
        for row in rows:
            if row["run"] != self.path.name or row["checkpoint"] != self.model.digest:
                continue
            samples = self.find_file(row["set"], row["steps"])
            if row["set"] in references:
                row["quality"] = references[row["set"]]
            elif samples.exists():
                row["quality"] = self.measure(samples)
            row["measured_at"] = find_git_revision()
        lines = [json.dumps(row, allow_nan=False) for row in rows]
        (self.asked.results / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def keep(self, key: dict[str, Any], quality: dict[str, Any], took: dict[str, Any]) -> None:
        """Append a row, and write the tables again."""
        row = {
            **key, **took, "step": self.model.step, "train_seed": self.model.config.seed,
            "target": len(self.real.target), "train_bases": self.real.bases, "quality": quality,
            "commit": find_git_revision(), "hardware": f"{cpu()}, {self.asked.threads} thread",
        }  # fmt: skip
        with (self.asked.results / FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
        print(f"{key['run']}: {key['set']}, {key['steps']} steps", file=sys.stderr, flush=True)
        write(self.asked.results)


def read_rows(folder: Path) -> list[dict[str, Any]]:
    path = folder / FILE
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def is_there(folder: Path, key: dict[str, Any]) -> bool:
    """Whether the row of this key is among the results."""
    return any(all(row[name] == key[name] for name in key) for row in read_rows(folder))


def write(folder: Path) -> None:
    """RESULTS.md and an SVG for each run, from results.jsonl."""
    rows = read_rows(folder)
    text = [
        "# Generated DNA",
        "",
        "Samples of each sampler beside held-out real sequence. `real` is other held-out sequence "
        "of the same size: the floor. Markov rows are drawn from interpolated models of the train "
        "split. What each figure is: `genodiff/quality/sample_quality.py`; `genodiff scorecard` "
        "gives the same for any file. Made by `benchmarks/generation/run.py`; all figures: "
        "`results.jsonl`.",
        "",
    ]
    for run in dict.fromkeys(row["run"] for row in rows):
        mine = [row for row in rows if row["run"] == run]
        text += section(run, mine)
        draw(folder, run, mine)
    findings = folder / "FINDINGS.md"
    text += [findings.read_text(encoding="utf-8")] if findings.exists() else []
    (folder / "RESULTS.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


def section(run: str, rows: list[dict[str, Any]]) -> list[str]:
    """A run's table, what it was made with, and its picture."""
    first = rows[0]
    compared = first["quality"]["sequences"]
    known = [row[name] for row in rows for name in ("commit", "measured_at") if name in row]
    commits = ", ".join(dict.fromkeys(str(commit)[:12] for commit in known))
    head = [
        "set", "steps", "evaluations", "CPU s", "3-mers", "4-mers", "5-mers", "6-mers", "AUROC",
        "GC %", "GC sd %", "CpG o/e", "runs ≥ 6 %", "open frame", "match p99", "match max",
        "≥ 20 %",
    ]  # fmt: skip
    body = [f"| {' | '.join(cells(row))} |" for row in sorted(rows, key=place)]
    return [
        f"## {run}",
        "",
        f"{compared:,} sequences of {first['length']} bases in each set, as many of the target; "
        f"step {first['step']} of training seed {first['train_seed']}, sampling seed "
        f"{first['seed']}; train split of {first['train_bases']:,} bases.",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
        *body,
        "",
        "k-mers: Jensen-Shannon distance ± 1.96 standard errors. AUROC: k-mer regression, 5-fold, "
        "± likewise; 0.5 is not told apart. Open frame: mean of the longest, codons. Match: the "
        "longest exact match in train, bases, and the share of sequences with 20 or more. CPU s: "
        "process time of `genodiff sample`, loading included. "
        f"Commit {commits}; {first['hardware']}.",
        "",
        f"Picture, drawn beside this page by `run.py`: `{run}.svg`.",
        "",
    ]


def place(row: dict[str, Any]) -> tuple[int, str, int]:
    """Where a row stands: the floor, Markov sequence, then samplers by name and steps."""
    kind = 0 if row["set"] == "real" else 1 if row["set"].startswith("Markov") else 2
    return kind, row["set"], row["steps"] or 0


def cells(row: dict[str, Any]) -> list[str]:
    quality = row["quality"]
    match, area = quality["match"], quality["auroc"].get("kmers")
    made = "evaluations" in row
    return [
        row["set"],
        str(row["steps"] or ("own" if made else "")),
        f"{row['evaluations']:.1f}" if made else "",
        f"{row['process_seconds']:.0f}" if made else "",
        *(with_error(figure, 4) for figure in quality["js"].values()),
        "" if area is None else with_error(area, 3),
        f"{100 * quality['gc']:.1f}",
        f"{100 * quality['gc_sd']:.1f}",
        f"{quality['cpg']:.3f}",
        f"{100 * quality['long_runs']:.2f}",
        f"{quality['open_frame']['mean']:.1f} ± {1.96 * quality['open_frame']['se']:.1f}",
        *(
            ["", "", ""]
            if match is None
            else [f"{match['p99']:.0f}", str(match["max"]), f"{100 * match['long']:.1f}"]
        ),
    ]


def with_error(figure: dict[str, Any], digits: int) -> str:
    return f"{figure['value']:.{digits}f} ± {1.96 * figure['se']:.{digits}f}"


def draw(folder: Path, run: str, rows: list[dict[str, Any]]) -> None:
    """RUN.svg: k-mer distances by word size, and the AUROC of each set."""
    plt.rcParams.update({"svg.hashsalt": run, "svg.fonttype": "none", "font.size": 8})
    height = max(2.8, 0.8 + 0.19 * len(rows))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, height), layout="constrained")
    ordered = sorted(rows, key=place)
    names = [
        " ".join([row["set"], *([str(row["steps"])] if row["steps"] else [])]) for row in ordered
    ]
    colours = plt.get_cmap("tab20")
    for i, (row, name) in enumerate(zip(ordered, names, strict=True)):
        js = row["quality"]["js"]
        style = {"real": "k--", "Markov": ":"}.get(row["set"].split()[0], ".-")
        colour = {} if row["set"] == "real" else {"color": colours(i % 20)}
        left.plot([int(k) for k in js], [js[k]["value"] for k in js], style, label=name, **colour)
        area = row["quality"]["auroc"].get("kmers")
        if area is not None:
            right.errorbar(
                area["value"], i, xerr=1.96 * area["se"], fmt="o", ms=4, color=colours(i % 20)
            )
    left.set(xlabel="k", ylabel="Jensen-Shannon distance to real", xticks=[3, 4, 5, 6])
    left.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    right.axvline(0.5, color="0.6", lw=0.8)
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.set(xlabel="AUROC of a k-mer discriminator (0.5: not told apart)")
    figure.savefig(folder / f"{run}.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
