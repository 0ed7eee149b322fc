"""Does an encoder keep what it understands when its masked language modelling goes on as masked
diffusion? SST-2 and CoLA, five seeds.

    python benchmarks/glue/run.py --data SHARED/data/text [--steps 20000] [--continued 4000]
    [--max-train 4000] [--seeds 5] [--plan]

Four encoders of one shape, on one text, with equal tokens:

    mlm         MLM for all of them                                  mlm-mdlm
    MLM, then MDLM for the last --continued steps (--init)
    mdlm        MDLM for all of them                                 scratch     random weights

Each is evaluated (the diffusion bound of the test split in bits per byte) and fine-tuned on GLUE
beside baselines; the difference that the question is about, mlm-mdlm − mlm, has an interval over
seeds. Everything is done through the command line of genodiff; the same command goes on where it
stopped. RESULTS.md holds FINDINGS.md. --data is a folder with glue/ and wikitext-2/. Where
wikitext-2/ lacks the train part, the valid part trains and the two halves of the test part validate
and test: such bounds stand beside no published ones. --plan says what the whole takes; --only-write
makes RESULTS.md again. Published settings: see benchmarks/gpu/QUEUE.md.
"""

import argparse
import gzip
import json
import math
import shlex
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import genodiff, nameless, write_kept  # noqa: E402

from genodiff.statistics.comparisons import JudgedDifference, judge_differences, show_p  # noqa: E402
from genodiff.statistics.seeds import estimate_difference  # noqa: E402

ENCODERS = {
    "mlm": "MLM, all tokens",
    "mlm-mdlm": "MLM, continued with MDLM",
    "mdlm": "MDLM, all tokens",
}
QUESTION = ("mlm-mdlm", "mlm")
PUBLISHED = (
    "MDLM's table 4 (arXiv 2406.07524), BERT-base on C4, eight tasks: AR 74.88, BERT "
    "81.62, BERT continued with MDLM 82.06."
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, help="folder with glue/ and, for wikitext2, wikitext-2/"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs/glue"), help="where runs and the sweep go"
    )
    parser.add_argument(
        "--recipe", default="wikitext2", help="recipe of the text that is pretrained on"
    )
    parser.add_argument("--text", type=Path, help="your copy of it, in place of DATA/wikitext-2")
    parser.add_argument("--preset", default="dit-tiny-bytes")
    parser.add_argument("--tokenizer", default="bytes")
    parser.add_argument("--seq-len", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20_000, help="of pretraining, in all")
    parser.add_argument(
        "--continued", type=int, default=4_000, help="the last so many of mlm-mdlm are MDLM"
    )
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--continue-lr", type=float, default=5e-4)
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--eval-windows", type=int, default=1000)
    parser.add_argument("--tasks", default="sst2,cola")
    parser.add_argument("--max-train", type=int, help="train examples of a task")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--finetune",
        default="",
        help="further flags of finetune, in one word: '--lr 3e-5 --epochs 3'",
    )
    parser.add_argument("--threads", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--plan", action="store_true", help="say what it takes, and stop")
    parser.add_argument("--only-write", action="store_true", help="make RESULTS.md again from OUT")
    parser.add_argument(
        "--results", type=Path, default=HERE, help="where RESULTS.md and results.jsonl.xz go"
    )
    asked = parser.parse_args()
    if asked.data is None and not asked.only_write:
        parser.error("--data is missing")
    if not 0 < asked.continued < asked.steps:
        parser.error(f"--continued {asked.continued} is not between 0 and --steps {asked.steps}")
    if asked.plan:
        plan(asked)
        return
    if not asked.only_write:
        measure(asked)
    write(asked)


def trainings(asked: argparse.Namespace, text: Path | None) -> dict[str, list[object]]:
    """The words of `genodiff train` for each run, in the order in which they are to run."""
    shape: list[object] = [
        "--preset",
        asked.preset,
        "--tokenizer",
        asked.tokenizer,
        "--seq-len",
        asked.seq_len,
    ]
    loop: list[object] = [
        "--batch-size",
        asked.batch_size,
        "--accumulate",
        asked.accumulate,
        "--precision",
        asked.precision,
    ]
    where = [] if text is None else ["--text", text]
    begin = [
        "train",
        asked.recipe,
        "--domain",
        "text",
        *where,
        *loop,
        "--warmup-steps",
        asked.warmup,
        "--seed",
        1,
    ]
    full = ["--lr", asked.lr, *shape]
    first = asked.steps - asked.continued
    return {
        "mlm-first": [*begin, *full, "--objective", "mlm", "--max-steps", first],
        "mlm-mdlm": [
            *begin, "--lr", asked.continue_lr, "--tokenizer", asked.tokenizer, "--seq-len",
            asked.seq_len, "--preset", asked.preset,
            "--objective", "mdlm", "--max-steps", asked.continued, "--init",
            asked.out / "mlm-first",
        ],
        "mlm": [*begin, *full, "--objective", "mlm", "--max-steps", asked.steps],
        "mdlm": [*begin, *full, "--objective", "mdlm", "--max-steps", asked.steps],
    }  # fmt: skip


def finetuning(asked: argparse.Namespace, models: list[str]) -> list[object]:
    """The words of `genodiff finetune glue` for these models."""
    named = [word for model in models for word in ("--model", model)]
    fewer = ["--max-train", asked.max_train] if asked.max_train else []
    words = [
        "finetune",
        "glue",
        "--data",
        asked.data / "glue",
        "--task",
        asked.tasks,
        *named,
        *fewer,
        "--head",
        "mean",
        "--seeds",
        asked.seeds,
    ]
    return [
        *words,
        "--jobs",
        asked.jobs,
        "--out",
        asked.out / "sweep",
        *shlex.split(asked.finetune),
    ]


def threads(asked: argparse.Namespace) -> list[object]:
    return ["--threads", asked.threads] if asked.threads else []


def text_of(asked: argparse.Namespace) -> Path | None:
    """The folder of the pretraining text: the user's, or WikiText-2 of DATA, re-split where it has
    no train part.
    """
    if asked.text is not None or asked.recipe != "wikitext2":
        return asked.text
    given: Path = asked.data / "wikitext-2"
    if any(path.name.startswith("wiki.train") for path in given.iterdir()):
        return given
    made = asked.out / "wikitext-2-valid-trains"
    if not (made / "wiki.test.tokens").exists():
        made.mkdir(parents=True, exist_ok=True)
        held = articles(given, "test")
        parts = {"train": articles(given, "valid"), "valid": held[::2], "test": held[1::2]}
        for part, of in parts.items():
            (made / f"wiki.{part}.tokens").write_text("".join(of), encoding="utf-8")
    return made


def articles(folder: Path, part: str) -> list[str]:
    """The articles of a part of WikiText-2: each begins with its "= Title =" line."""
    path = next(path for path in sorted(folder.iterdir()) if path.name.startswith(f"wiki.{part}"))
    text = (
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    ).decode()
    found: list[str] = [""]
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith("= ") and bare.endswith(" =") and not bare.startswith("= ="):
            found.append("")
        found[-1] += line
    return [article for article in found if article.strip()]


def measure(asked: argparse.Namespace) -> None:
    """Pretrain, evaluate, fine-tune."""
    asked.out.mkdir(parents=True, exist_ok=True)
    for name, words in trainings(asked, text_of(asked)).items():
        genodiff(*words, "--out", asked.out / name, *threads(asked))
        found = asked.out / f"eval-{name}.json"
        if name in ENCODERS and not found.exists():
            how = ["--json", "--max-windows", asked.eval_windows]
            found.write_text(
                genodiff("eval", asked.out / name, *how, *threads(asked), capture=True),
                encoding="utf-8",
            )
    models = [f"{name}={asked.out / name}" for name in ENCODERS]
    genodiff(*finetuning(asked, [*models, "scratch", "baselines"]), *threads(asked))


def plan(asked: argparse.Namespace) -> None:
    """What each step takes, as genodiff says it; nothing is trained and nothing written."""
    for name, words in trainings(asked, asked.text).items():
        print(f"\n## {name}", flush=True)
        at = words.index("--init") if "--init" in words else len(words)
        genodiff(*words[:at], "--plan", *threads(asked))
    print("\n## fine-tuning", flush=True)
    networks = [f"{name}=scratch:{asked.preset}" for name in (*ENCODERS, "scratch")]
    genodiff(*finetuning(asked, [*networks, "baselines"]), "--plan", *threads(asked))


def write(asked: argparse.Namespace) -> None:
    """RESULTS.md and results.jsonl.xz beside this file."""
    rows = [
        json.loads(line)
        for line in (asked.out / "sweep/results.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    sessions = json.loads((asked.out / "sweep/sessions.json").read_text(encoding="utf-8"))[
        "sessions"
    ]
    asked.results.mkdir(parents=True, exist_ok=True)
    kept = [*({"model": name, **bound} for name, bound in bounds(asked.out).items()), *rows]
    files = {
        "results.jsonl.xz": "".join(json.dumps(row) + "\n" for row in kept),
        "RESULTS.md": "\n".join(page(asked.out, rows, sessions)) + "\n",
    }
    for name, text in files.items():
        places = {"OUT": asked.out, "DATA": asked.data, "TEXT": asked.text}
        write_kept(asked.results / name, nameless(text, places))
    print(asked.results / "RESULTS.md", file=sys.stderr)


def bounds(out: Path) -> dict[str, dict[str, Any]]:
    """What `eval` says of each encoder's test split."""
    keys = (
        "split",
        "figure",
        "bits_per_byte",
        "ci95_bits",
        "bits_per_token",
        "perplexity",
        "windows",
        "checkpoint",
        "step",
        "tokens",
    )
    found = {}
    for name in ENCODERS:
        path = out / f"eval-{name}.json"
        if path.exists():
            values = json.loads(path.read_text(encoding="utf-8"))
            found[name] = {key: values[key] for key in keys if key in values}
    return found


def differences(rows: list[dict[str, Any]]) -> list[JudgedDifference]:
    """mlm-mdlm − mlm on each task, with an interval over seeds alone and Holm over the tasks."""
    pairs = []
    for task in dict.fromkeys(row["task"] for row in rows):
        one, other = (
            {r["seed"]: r["value"] for r in rows if (r["task"], r["model"]) == (task, name)}
            for name in QUESTION
        )
        seeds = sorted(one.keys() & other.keys())
        if len(seeds) < 2:
            continue
        a, b = (np.array([values[seed] for seed in seeds]) for values in (one, other))
        no_units = np.zeros((2 * len(seeds),) * 2)
        pairs.append((task, QUESTION[1], estimate_difference(a, b, no_units, 1, paired=True)))
    return judge_differences(pairs)


def page(out: Path, rows: list[dict[str, Any]], sessions: list[dict[str, Any]]) -> list[str]:
    """RESULTS.md as lines."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    metric = {row["task"]: row["metric"] for row in rows}
    models = list(
        dict.fromkeys(["majority", "length-tree", "bow-lr", "char-lr", "scratch", *ENCODERS])
    )
    known = bounds(out)
    lines = ["# GLUE: does masked diffusion keep what masked language modelling has learnt?", ""]
    lines += [
        "Mean over seeds ± (max − min). The official dev part tests, once for each line and "
        "seed; a tenth of train validates.",
        "",
    ]
    head = " | ".join(f"{task} ({metric[task]})" for task in tasks)
    lines += [
        f"| model | {head} | diffusion bound, bits per byte | steps |",
        f"|---|{'---|' * len(tasks)}---|---|",
    ]
    for model in models:
        cells = []
        for task in tasks:
            values = [
                r["value"]
                for r in rows
                if (r["task"], r["model"]) == (task, model) and r["value"] is not None
            ]
            cells.append(
                f"{statistics.fmean(values):.4f} ± {max(values) - min(values):.4f} ({len(values)})"
                if values
                else ""
            )
        if any(cells):
            bound, name = known.get(model), ENCODERS.get(model, model)
            figure = (
                f"{bound['bits_per_byte']:.4f} [{bound['ci95_bits'][0]:.4f}, "
                f"{bound['ci95_bits'][1]:.4f}]"
                if bound
                else ""
            )
            lines.append(f"| {name} | {' | '.join(cells)} | {figure} | {steps_of(out, model)} |")
    lines += [
        "",
        "In brackets the number of seeds; the bound's interval is over windows of the test split.",
        "",
    ]
    lines += ["| task | mlm-mdlm − mlm | p | Holm p | verdict |", "|---|---|---|---|---|"]
    for gap in differences(rows):
        low, high = gap.estimate.ci95 or (math.nan, math.nan)
        lines.append(
            f"| {gap.a} | {gap.estimate.value:+.4f} [{low:+.4f}, {high:+.4f}] "
            f"| {show_p(gap.estimate.p)} | {show_p(gap.p_holm)} | {gap.describe()} |"
        )
    lines += [
        "",
        "Mean over seeds and its 95 % t interval, over fine-tuning seeds alone: the test part and "
        "the pretrained networks are taken as fixed. Holm's correction is over these rows.",
    ]
    findings = HERE / "FINDINGS.md"
    lines += ["", *(findings.read_text(encoding="utf-8").splitlines() if findings.exists() else [])]
    lines += ["", PUBLISHED, "", "## How", ""]
    notes = dict.fromkeys((row["task"], note) for row in rows for note in row["notes"])
    lines += [f"- {task}: {note}" for task, note in notes]
    for session in sessions:
        where = f"{session['hardware']}, {counted(session['threads'])}"
        lines.append(
            f"- `{session['command']}`: commit {str(session['git'])[:12]}, genodiff "
            f"{session['genodiff']}, {where}"
        )
    for name in ("mlm-first", *ENCODERS):
        path = out / name / "provenance.json"
        if path.exists():
            lines.append(
                f"- pretraining of {name}: {told(json.loads(path.read_text(encoding='utf-8')))}"
            )
    return lines


def steps_of(out: Path, model: str) -> str:
    """The steps of a run, from its card; of the continued one both parts."""
    found = []
    for name in ("mlm-first", "mlm-mdlm") if model == "mlm-mdlm" else (model,):
        path = out / name / "model.json"
        if path.exists():
            found.append(f"{json.loads(path.read_text(encoding='utf-8'))['step']:,}")
    return " + ".join(found)


def told(provenance: dict[str, Any]) -> str:
    """A run's last command and the code that it ran."""
    last = provenance["sessions"][-1]
    return (
        f"`{shlex.join(['genodiff', *last['argv'][1:]])}`, commit {str(last['git'])[:12]}, "
        f"{last['cpu']}, {counted(last['threads'])}"
    )


def counted(threads: int) -> str:
    return f"{threads} thread{'s' * (threads != 1)}"


if __name__ == "__main__":
    main()
