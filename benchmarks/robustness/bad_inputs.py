"""A corpus of bad and odd inputs, graded case by case by the corpus's own runner.

    python benchmarks/robustness/bad_inputs.py DATA/badinput [--prefix FBVTGCK] [--out FOLDER]

A case is fully graded where the verdict is right, the message names file, place and remedy, what is
read is what the file holds, and nothing is left behind, hangs, tells a traceback or runs what a
file carries. The corpus's checkpoints are of a layout that stands for any tool's own; where such a
one must be accepted, the same damage is done to a run of ours, as the corpus asks.
Adds a row for each prefix to results.jsonl beside this file, or in --out.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from harness import TINY, await_end, begin_session, list_checkpoints, signal_at_step  # noqa: E402
from page import write_row  # noqa: E402

_US = f"{sys.executable} -m genodiff"
_TRAIN = (
    "--out _run --preset caduceus-ps-tiny --d-model 16 --n-layer 1 --seq-len 128 --batch-size 2 "
    "--max-steps 2 --device cpu"
)
VERBS = {
    "fasta-in": f"{_US} data check {{file}} --json",
    "fasta-train": f"{_US} data check {{file}} --json && {_US} train --fasta {{file}} {_TRAIN} >&2",
    "bed-in": f"{_US} data check {{file}} --fasta ref.fa --json",
    "vcf-in": f"{_US} data check {{file}} --fasta ref.fa --json",
    "text-in": f"{_US} data check {{file}} --domain text --seq-len 128 --json",
    "finetune-in": f"{_US} finetune check {{file}}",
    "train-config": f"{_US} config check {{file}}",
    "ckpt-load": f"if [ -e {{file}}/config.yaml ]; then {_US} checkpoint check {{file}}; "
    f"else {_US} checkpoint import {{file}} --out imported --threads 1; fi",
    "resume": f"{_US} train --resume {{file}} --threads 1",
    "sample": f"{_US} sample --checkpoint {{file}} --fasta _o.fa --n 1 --length 64 --threads 1",
}
PREFIXES = {
    "F": "FASTA", "B": "BED", "V": "VCF", "T": "text", "G": "data sets of fine-tuning",
    "C": "configurations", "K": "checkpoints",
}  # fmt: skip
_ABOUT = """The public cases of a corpus of bad files, graded by its own runner: the right verdict,
a message with file, place and remedy, the right data, nothing left, run or hung."""


def _add_modules(run: Path, case: Path) -> None:
    for path in case.rglob("*.py"):
        shutil.copy(path, run)


def _cut_weights_to_half(run: Path, _: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(run / "model.safetensors")
    save_file({k: t.to(torch.float16) for k, t in tensors.items()}, run / "model.safetensors")


def _spoil_newest(run: Path, _: Path) -> None:
    path = run / "checkpoints" / f"step_{list_checkpoints(run)[-1]:08d}" / "trainer.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def _begin_step(run: Path, _: Path) -> None:
    half = run / "checkpoints" / ".genodiff-99999-0.tmp"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half of a file")


MAPPED: dict[str, Callable[[Path, Path], object]] = {
    "K001": lambda run, case: None,
    "K014": _cut_weights_to_half,
    "K024": lambda run, case: [p.unlink() for p in run.rglob("manifest.json")],
    "K034": _add_modules,
    "K052": lambda run, case: shutil.rmtree(run / "checkpoints"),
    "K055": _begin_step,
    "K057": lambda run, case: (run / "LATEST").write_bytes(b""),
    "K058": _spoil_newest,
}
"""Cases of checkpoints that may be accepted: the damage, done to a run of ours."""


def map_cases(corpus: Path, work: Path) -> Path:
    """The list of cases, in which those of `MAPPED` name folders with runs of ours."""
    cases = json.loads((corpus / "cases.json").read_text())
    base = work / "base"
    pid = begin_session(TINY, base)
    signal_at_step(pid, base, 22, signal.SIGKILL, 0, 0)
    await_end(pid)
    for case in cases:
        if case["id"] in MAPPED:
            folder = work / "mapped" / case["id"]
            run = folder / case["target"]
            shutil.copytree(base, run)
            step = run / "checkpoints" / f"step_{list_checkpoints(run)[-1]:08d}"
            for name in ("model.json", "model.safetensors"):
                shutil.copy(step / name, run / name)
            MAPPED[case["id"]](run, corpus / case["dir"])
            case["dir"] = str(folder)
    listed = work / "cases.json"
    listed.write_text(json.dumps(cases))
    return listed


def grade(corpus: Path, prefix: str, listed: Path, work: Path) -> dict[str, Any]:
    """What the runner says of the cases of a prefix."""
    tool = work / "run_cases.py"  # it writes beside itself
    shutil.copy(corpus / "tools" / "run_cases.py", tool)
    verbs, out = work / "map.json", work / f"{prefix}.json"
    verbs.write_text(json.dumps(VERBS))
    subprocess.run(
        [sys.executable, tool, "--corpus", corpus, "--cases", listed, "--tool", "cmd", "--name",
         "genodiff", "--map", verbs, "--prefix", prefix, "--out", out, "--work", work / "runs"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--prefix", default="".join(PREFIXES))
    parser.add_argument("--out", type=Path, default=HERE)
    asked = parser.parse_args()
    bad = False
    with tempfile.TemporaryDirectory(prefix="bad-inputs-") as folder:
        work, corpus = Path(folder), asked.corpus.resolve()
        listed = map_cases(corpus, work)
        for prefix in asked.prefix:
            began = time.monotonic()
            found = grade(corpus, prefix, listed, work)
            results, total = found["results"], found["summary"]
            wrong = [r for r in results if not r["ok"]]
            figures = {
                "right verdicts": total["verdict_ok"], "silent accepts": total["silent_wrong"],
                "wrong data": total["truth_wrong"], "tracebacks": total["tracebacks"],
                "hangs": total["hangs"], "payloads run": total["canaries"],
                "rejections": f"{total['clear_rejects']} clear of {total['rejects']}",
            }  # fmt: skip
            write_row(
                asked.out, f"bad inputs: {PREFIXES[prefix]}", _ABOUT, len(results),
                len(results) - len(wrong), figures,
                faults=[f"{r['id']} {r['slug']}: {r['outcome']}; {r['message']}" for r in wrong],
                seconds=time.monotonic() - began,
                command="python benchmarks/robustness/bad_inputs.py DATA/badinput",
            )  # fmt: skip
            print(f"{prefix}: {len(results) - len(wrong)} of {len(results)}", figures, flush=True)
            for one in wrong:
                print("   ", json.dumps(one), flush=True)
            bad |= bool(wrong)
    sys.exit(int(bad))


if __name__ == "__main__":
    main()
