"""Training sessions that are killed, resumed and compared. It forks, and imports torch once.

    python benchmarks/robustness/harness.py ROOT < scenarios.json > results.json

A scenario: {"name", "config" (as `resolve_config` takes it), "kills": [...]}. Each entry of `kills`
is one session that is killed, {"step": n} by SIGKILL as soon as metrics.csv shows step n,
{"signal": "TERM", "step": n} by that signal, {"crash_at": n} by itself at the n-th I/O operation of
the one writer. A last session then runs to the end. The result says how sessions ended, from which
step each went on, and what stands in the folder.
"""

import hashlib
import json
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TINY: dict[str, Any] = {
    "recipe": "toy", "seq_len": 64, "preset": "caduceus-ps-tiny", "d_model": 16, "n_layer": 1,
    "d_state": 4, "batch_size": 4, "steps": 30, "checkpoint_every": 5, "validate_every": 8,
    "validate_windows": 8,
}  # fmt: skip
LIMIT = 180.0  # seconds of a session, after which it hangs


def log_path(out: Path) -> Path:
    """Where a run's sessions say what they do; not on a disk of its own, which may be full."""
    folder = out.parent.parent if os.path.ismount(out.parent) else out.parent
    return folder / f"{out.name}.log"


def begin_session(
    config: dict[str, Any],
    out: Path,
    *,
    crash_at: int | None = None,
    prepare: Callable[[], None] | None = None,
) -> int:
    """Fork a child that trains, after `prepare`; its pid. What it says goes to OUT.log."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        hear_signals()
        descriptor = os.open(log_path(out), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 2)
        if crash_at is not None:
            os.environ["GENODIFF_CRASH_AT"] = str(crash_at)
        from genodiff.errors import GenodiffError
        from genodiff.io import atomic
        from genodiff.runs.resolve import resolve_config
        from genodiff.training.run import train

        logging.basicConfig(level=logging.INFO, stream=sys.stderr)
        try:
            if prepare is not None:
                prepare()
            train(resolve_config(config), out, argv=["faults"])
            code = 0
        except GenodiffError as error:
            print(f"error: {error}", file=sys.stderr)
            code = error.exit_code
        print(f"operations: {atomic._operations}", file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def hear_signals() -> None:
    """Undo what a shell does to jobs in the background: it has them ignore SIGINT and SIGHUP."""
    for name in ("SIGINT", "SIGHUP", "SIGTERM", "SIGUSR1"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def await_end(pid: int, limit: float = LIMIT) -> int:
    """How a session ended: its exit code, or minus the signal that killed it."""
    started = time.monotonic()
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if time.monotonic() - started > limit:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise SystemExit(f"a session hangs (pid {pid})")
        time.sleep(0.002)


def finish(config: dict[str, Any], out: Path, limit: float = LIMIT) -> int:
    """A session that nothing disturbs."""
    return await_end(begin_session(config, out), limit)


def has_ended(pid: int) -> bool:
    """Whether a session has ended; its status stays to be waited for."""
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return found is not None


def count_operations(out: Path) -> int:
    """I/O operations of the last session, as it said itself."""
    said = log_path(out).read_text(errors="replace")
    return int(said.rpartition("operations: ")[2].split()[0])


def name_start(out: Path, config: dict[str, Any]) -> list[int]:
    """The step that a session has to go on from; nothing for a run that is new or has ended."""
    return [step for step in list_checkpoints(out)[-1:] if step < config["steps"]]


def read_resumed(out: Path) -> list[int]:
    """The steps that sessions went on from, as their log says; one that began anew is not there."""
    try:
        said = log_path(out).read_text(errors="replace")
    except OSError:
        return []
    return [int(step) for step in re.findall(r"resuming from step (\d+)", said)]


def count_resumed(out: Path) -> int:
    """Sessions that went on from a step that is not 0."""
    return sum(step > 0 for step in read_resumed(out))


def last_step(out: Path) -> int:
    """The last whole row of metrics.csv."""
    try:
        lines = (out / "metrics.csv").read_text().splitlines(keepends=True)
    except OSError:
        return 0
    whole = [line for line in lines[1:] if line.endswith("\n")]
    return int(whole[-1].split(",")[0]) if whole else 0


def list_checkpoints(out: Path) -> list[int]:
    """Steps that have a checkpoint, oldest first."""
    return sorted(int(p.name.split("_")[1]) for p in out.glob("checkpoints/step_*[0-9]"))


def run(scenario: dict[str, Any], root: Path) -> dict[str, Any]:
    """All sessions of a scenario."""
    out = root / scenario["name"]
    ends, begun = [], []
    changes = scenario.get("changes", {})
    for number, kill in enumerate([*scenario["kills"], {}]):
        config = scenario["config"] | changes.get(str(number), {})
        done = list_checkpoints(out)
        begun.append(done[-1] if done else 0)
        if kill.get("corrupt"):
            corrupt(out, done[-1], kill["corrupt"])
        before = last_step(out)
        pid = begin_session(config, out, crash_at=kill.get("crash_at"))
        if "step" in kill:
            name = f"SIG{kill.get('signal', 'KILL')}"
            signal_at_step(pid, out, kill["step"], getattr(signal, name), before, begun[-1])
        ends.append(await_end(pid))
    return {"name": scenario["name"], "ends": ends, "begun": begun} | contents(out)


def signal_at_step(pid: int, out: Path, step: int, number: int, before: int, begun: int) -> bool:
    """Send a signal as soon as the session, which goes on after `begun`, has logged `step`.

    `before` is the last step that was logged before it. False where the session ended earlier.
    """
    while not has_ended(pid):
        now = last_step(out)
        fresh = now != before or now == begun
        if fresh and now >= step and now > begun:
            os.kill(pid, number)
            return True
        time.sleep(0.002)
    return False


def corrupt(out: Path, step: int, how: str) -> None:
    """Damage a checkpoint: FILE:missing, FILE:empty, FILE:half, or FILE:PLACE to flip a bit."""
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


def find_ranks(launcher: int, word: str = "spawn_main") -> dict[int, int]:
    """Process ids of the ranks that a launcher has started, by rank; `word` is in their command."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                words = (folder / "cmdline").read_text()
            except OSError:
                continue
            if int(parent) == launcher and word in words:
                found.append(int(folder.name))
    return dict(enumerate(sorted(found)))


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


def is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two runs have the same losses and the same tensors, bit for bit."""
    return bool(
        one["losses"] == other["losses"] and one["hashes"] == other["hashes"] and one["losses"]
    )


if __name__ == "__main__":
    import torch

    import genodiff.training.run  # noqa: F401

    torch.set_num_threads(1)
    json.dump([run(s, Path(sys.argv[1])) for s in json.load(sys.stdin)], sys.stdout)
