"""Kill training runs, resume them, compare: a forking harness that imports torch once. Run as a
program by the tests.

    python kills.py ROOT < scenarios.json > results.json

A scenario: {"name", "config" (as train.config.resolve takes it), "kills": [...]}. Each entry of
`kills` is one session that is killed, {"step": n} by SIGKILL as soon as metrics.csv shows step n,
{"signal": "TERM", "step": n} by that signal, {"crash_at": n} by itself at the n-th I/O operation of
the one writer. A last session then runs to the end. The result says how sessions ended, from which
step each went on, and what stands in the folder.
"""

import hashlib
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def session(config: dict[str, Any], out: Path, crash_at: int | None, log: Path) -> int:
    """Fork a child that trains; its pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 2)
        if crash_at is not None:
            os.environ["GENODIFF_CRASH_AT"] = str(crash_at)
        from genodiff.errors import GenodiffError
        from genodiff.runs.resolve import resolve_config
        from genodiff.training.run import train

        logging.basicConfig(level=logging.INFO, stream=sys.stderr)
        try:
            train(resolve_config(config), out, argv=["kills"])
            code = 0
        except GenodiffError as error:
            print(f"error: {error}", file=sys.stderr)
            code = error.exit_code
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def last_step(out: Path) -> int:
    """The last whole row of metrics.csv."""
    try:
        lines = (out / "metrics.csv").read_text().splitlines(keepends=True)
    except OSError:
        return 0
    whole = [line for line in lines[1:] if line.endswith("\n")]
    return int(whole[-1].split(",")[0]) if whole else 0


def run(scenario: dict[str, Any], root: Path, limit: float = 120.0) -> dict[str, Any]:
    """All sessions of a scenario."""
    out, log = root / scenario["name"], root / f"{scenario['name']}.log"
    ends, begun = [], []
    changes = scenario.get("changes", {})
    for number, kill in enumerate([*scenario["kills"], {}]):
        config = scenario["config"] | changes.get(str(number), {})
        done = (
            sorted(int(p.name.split("_")[1]) for p in (out / "checkpoints").glob("step_*[0-9]"))
            if out.exists()
            else []
        )
        begun.append(done[-1] if done else 0)
        if kill.get("corrupt"):
            corrupt(out, done[-1], kill["corrupt"])
        before = last_step(out) if out.exists() else 0
        pid = session(config, out, kill.get("crash_at"), log)
        started, sent = time.monotonic(), False
        while True:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                break
            step = last_step(out)
            fresh = step != before or step == begun[-1]
            if "step" in kill and not sent and fresh and step >= kill["step"] and step > begun[-1]:
                os.kill(pid, getattr(signal, f"SIG{kill.get('signal', 'KILL')}"))
                sent = True
            if time.monotonic() - started > limit:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise SystemExit(f"{scenario['name']}: session {number} hangs")
            time.sleep(0.002)
        ends.append(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
    return {"name": scenario["name"], "ends": ends, "begun": begun} | contents(out)


def corrupt(out: Path, step: int, how: str) -> None:
    """Damage the newest checkpoint."""
    folder = out / "checkpoints" / f"step_{step:08d}"
    name, _, what = how.partition(":")
    path = folder / name
    raw = path.read_bytes()
    if what == "missing":
        path.unlink()
    elif what == "empty":
        path.write_bytes(b"")
    elif what == "half":
        path.write_bytes(raw[: len(raw) // 2])
    else:
        at = int(float(what) * (len(raw) - 1))
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 0x04]) + raw[at + 1 :])


def contents(out: Path) -> dict[str, Any]:
    """What a run has come to: losses and validations by step, hashes of all tensors."""
    rows = (out / "metrics.csv").read_text().splitlines()
    columns = rows[0].split(",")
    table = [dict(zip(columns, row.split(","), strict=True)) for row in rows[1:]]
    newest = max((out / "checkpoints").glob("step_*[0-9]"), default=None)
    files = [newest / n for n in ("model.safetensors", "trainer.safetensors")] if newest else []
    return {
        "losses": [
            [int(r["step"]), r["loss_hex"], r["lr"], r["grad_norm"], r["valid_bits"]] for r in table
        ],
        "hashes": {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files},
        "corrupt": sorted(p.name for p in out.glob("checkpoints/*.corrupt*")),
        "leftovers": sorted(p.name for p in out.rglob("*.tmp")),
    }


if __name__ == "__main__":
    import torch

    import genodiff.training.run  # noqa: F401

    torch.set_num_threads(1)
    json.dump([run(s, Path(sys.argv[1])) for s in json.load(sys.stdin)], sys.stdout)
