"""Shards of an evaluation: `genodiff.evaluate(..., shard="i/n")`, and merging them."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.errors import DataError, UsageError
from genodiff.io.target import check_target, is_own_file
from genodiff.jobs.shards import parse_shard
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.jobs.shards import ShardFile
    from genodiff.runs.model import TrainedModel
    from genodiff.scoring.eval_options import EvalOptions

_log = logging.getLogger("genodiff")


def write_eval_shard(
    model: TrainedModel,
    options: EvalOptions,
    shard: str,
    out: str | Path | None,
    *,
    fresh: bool,
    force: bool,
) -> dict[str, Any]:
    """Write the draws of one shard to `out`, which ends in .npy; what its sidecar says.

    Raises `UsageError`, `MachineError`.
    """
    part, target = parse_shard(shard), str(out or "")
    if not target.endswith(".npy"):
        what = f"{target} does not end in .npy" if target else "--shard needs --out FILE.npy"
        raise UsageError(what, fix="give the name of a .npy file")
    from genodiff.io import atomic
    from genodiff.io.identity import sha256_json, stamp_time
    from genodiff.io.partial_output import SUFFIX
    from genodiff.io.progress import ProgressDisplay
    from genodiff.jobs.journal import Journal
    from genodiff.kernels.allocator import keep_freed_memory
    from genodiff.scoring.eval_shards import HOLDS, measure_shard, plan_shard, write_draws

    path = Path(f"{target}{SUFFIX}")

    def ours(_: Path) -> bool:
        return Journal.read_request(path) is not None or is_own_file(target)

    check_target(target, force=force, known=ours)
    check_target(f"{target}.json", force=force)
    began, plan = time.monotonic(), plan_shard(model, options, part)
    keep_freed_memory()
    key = {"request": plan.request, "shard": list(part), "version": __version__}
    journal = Journal(path, sha256_json(key))
    journal.check(fresh=fresh, force=force)
    if fresh:
        journal.start_anew()
    with ExitStack() as stack:
        stack.callback(journal.close)
        display = stack.enter_context(ProgressDisplay())
        if journal.kept:
            _log.info("%s: goes on after %s batches", path, f"{journal.kept:,}")
        draws = measure_shard(model, plan, journal, display.show_batches)
    told = {
        "genodiff": __version__, "holds": HOLDS, "out": target, "format": "npy",
        "run": str(model.run), "checkpoint": model.digest, "options": asdict(options),
        "shard": list(part), "cut": [plan.windows.start, plan.windows.stop],
        "windows": len(plan.windows), "request": plan.request, "argv": sys.argv,
        "seconds": round(time.monotonic() - began, 3), "created": stamp_time(),
        "file": write_draws(target, draws),
    }  # fmt: skip
    atomic.write_json(f"{target}.json", told)
    journal.remove()
    return told


def merge_evaluation(parts: list[ShardFile], target: str) -> dict[str, Any]:
    """The evaluation of all shards, written to `target` and added to RUN/eval.json.

    Raises `DataError` where the run is not the one that the shards are of.
    """
    from genodiff.io import atomic
    from genodiff.models.opening import open_language
    from genodiff.runs.checkpoint import is_run
    from genodiff.scoring.eval_shards import read_draws
    from genodiff.scoring.evaluation import evaluate
    from genodiff.scoring.evaluation_file import find_evaluation_file, write_evaluation

    told = parts[0].told
    model = open_language(told["run"], "cpu")
    if model.digest != told["checkpoint"]:
        what = f"is of the checkpoint {told['checkpoint']}, and {model.run} has {model.digest}"
        raise DataError(what, file=parts[0].path, fix="merge with the weights that were evaluated")
    options = dict(told["options"])
    draws = read_draws([one.path for one in parts])
    found = evaluate(model, options.pop("split"), draws=draws, **options)
    found["seconds"] = round(sum(one.told["seconds"] for one in parts), 3)
    if target == "-":
        import json

        print(json.dumps(found, allow_nan=False))
    else:
        atomic.write_json(target, found)
    kept = find_evaluation_file(model.run) if is_run(model.run) else None
    if kept is not None:
        _log.info("%s: %s", kept, write_evaluation(model.run, found, kept))
    return found
