"""Whether a run ends in the same bits: trained twice, stopped at three steps and gone on with, and
with its steps as CUDA graphs.

    python benchmarks/gpu/resume.py --out FILE --folder FOLDER [--steps 32] [--rehearse]

The toy genome, PS-470k in bfloat16. All runs go side by side, by default and with --deterministic;
the stopped one gets a SIGTERM at a quarter, a half and three quarters of its steps. Each writes a
checkpoint at every step. Of each run that differs from the first one, FILE names the first step
whose loss differs (`loss_hex`, all bits), and the first checkpoint that does, with the tensors: of
`exp_avg` after one step those whose gradients differ. Exits with 1 where a run failed or differs.
"""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

from machine import read_arguments, save
from safetensors.torch import load_file
from train import SMALL, TINY, command, digest_weights, read_metrics, wait

RUNS = ("first", "again", "stopped")
MODES = {"default": "", "deterministic": " --deterministic"}
SHOWN = 12  # names of tensors


def train(folder: Path, how: str, stops: list[int], end: float, **environment: str) -> list[Any]:
    """Train to the end, sent a SIGTERM at these steps; exit codes, with the step of each stop."""
    codes: list[Any] = []
    with folder.with_suffix(".log").open("ab") as sink:
        for stop in [*stops, None]:
            process = subprocess.Popen(
                command(["toy"], how, folder),
                stdout=sink, stderr=subprocess.STDOUT, env=os.environ | environment,
            )  # fmt: skip
            while stop is not None and process.poll() is None and time.monotonic() < end:
                if len(read_metrics(folder)) >= stop:
                    process.send_signal(signal.SIGTERM)
                    break
                time.sleep(0.02)
            code = wait(process, end - time.monotonic())
            codes.append([code, len(read_metrics(folder))])
            if stop is None or code != 128 + signal.SIGTERM:
                break
    return codes


def find_first_loss(run: Path, other: Path) -> dict[str, Any] | None:
    """The first step whose loss differs, with both; None if none does."""
    pairs = zip(read_metrics(run), read_metrics(other), strict=False)
    for a, b in pairs:
        if a["loss_hex"] != b["loss_hex"]:
            return {"step": int(a["step"]), "losses": [a["loss_hex"], b["loss_hex"]]}
    return None


def find_first_tensors(run: Path, other: Path) -> dict[str, Any] | None:
    """The first step after which a tensor of training differs, and which do; None if none does."""
    for folder in sorted((run / "checkpoints").glob("step_*")):
        files = [r / "checkpoints" / folder.name / "trainer.safetensors" for r in (run, other)]
        if not files[1].exists() or files[0].read_bytes() == files[1].read_bytes():
            continue
        a, b = map(load_file, files)
        names = [n for n in a if n not in b or not a[n].equal(b[n])]
        sizes = {n: float((a[n] - b[n]).norm() / a[n].norm().clamp(min=1e-30)) for n in names}
        first = sorted(names, key=lambda name: (not name.startswith("exp_avg."), -sizes[name]))
        shown = {name: sizes[name] for name in first[:SHOWN]}
        return {"step": int(folder.name[-8:]), "differing": len(names), "of": len(a)} | shown
    return None


def compare(run: Path, other: Path) -> dict[str, Any]:
    """What of another run is not as of this one."""
    found = {"loss": find_first_loss(run, other), "tensors": find_first_tensors(run, other)}
    weights = [digest_weights(run), digest_weights(other)]
    return found | {"same_bits": weights[0] is not None and weights[0] == weights[1]}


def read_pace(folder: Path) -> float | None:
    """Seconds of the median step but the first ones; they are side by side with other runs."""
    seconds = [float(row["seconds"]) for row in read_metrics(folder)]
    steps = sorted(b - a for a, b in pairwise(seconds[2:]))
    return steps[len(steps) // 2] if steps else None


def main() -> None:
    arguments = read_arguments(__doc__, folder=Path, steps=32, seconds=100.0)
    end, folder = time.monotonic() + arguments.seconds, arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    how = f"{TINY if arguments.rehearse else SMALL} --max-steps {arguments.steps}"
    how += f" --checkpoint-every 1 --keep {arguments.steps + 1}"
    stops = [max(1, arguments.steps * part // 4) for part in (1, 2, 3)]
    found: dict[str, Any] = {"command": " ".join(command(["toy"], how, folder)[1:])}
    found |= {"steps": arguments.steps, "runs": {}, "same": {}, "pace": {}}
    save(arguments.out, found)
    with ThreadPoolExecutor() as pool:
        waiting = {
            f"{mode} {run}": pool.submit(
                train,
                folder / f"{mode}-{run}",
                how + flag,
                stops * (run == "stopped"),
                end,
                GENODIFF_CUDA_GRAPH="off",
            )
            for mode, flag in list(MODES.items())[: 1 if arguments.rehearse else None]
            for run in RUNS
        }
        graphs = {"GENODIFF_CUDA_GRAPH": "on"}
        waiting["default graphs"] = pool.submit(
            train, folder / "default-graphs", how, [], end, **graphs
        )
        for name, run in waiting.items():
            found["runs"][name] = run.result()
            save(arguments.out, found)
    for name in waiting:
        mode, run = name.split()
        first, other = (folder / f"{mode}-{r}" for r in ("first", run))
        found["pace"][name] = read_pace(other)
        if run != "first":
            found["same"][name] = compare(first, other)
            print(name, found["same"][name], flush=True)
    text = (folder / "default-graphs.log").read_text(errors="replace")
    found["graphs_said"] = [line for line in text.splitlines() if "CUDA graph" in line]
    save(arguments.out, found)
    print({name: codes for name, codes in found["runs"].items()}, found["pace"])
    ended = all(codes[-1][0] == 0 for codes in found["runs"].values())
    sys.exit(0 if ended and all(row["same_bits"] for row in found["same"].values()) else 1)


if __name__ == "__main__":
    main()
