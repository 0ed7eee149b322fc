"""Part of an evaluation's draws, measured apart and put together: `genodiff eval --shard i/n`.

What an evaluation draws is a function of the seed and of a window's number among all windows. A
shard has the i-th part of the batches that a whole evaluation would measure, so every batch is the
same, and with it every bit. The merged draws go through the same code as those of one run.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

from genodiff.data.loader import EvalBatches
from genodiff.errors import DataError, UsageError
from genodiff.evaluation.bound import WindowDraws, check_network, choose_windows, measure_batch
from genodiff.evaluation.eval_data import open_data, open_window_memory
from genodiff.evaluation.evaluate import evaluate, open_evaluated
from genodiff.evaluation.evaluation_file import find_evaluation_file, write_evaluation
from genodiff.evaluation.exact_order import OrderScorer, read_order
from genodiff.evaluation.request import EvalRequest
from genodiff.io.atomic import open_atomic, write_json
from genodiff.jobs.job import Job, Rows
from genodiff.jobs.shards import ShardFile
from genodiff.memory.memory import identify_memory
from genodiff.models.opening import open_language
from genodiff.runs.checkpoint import is_run
from genodiff.runs.trained_model import name_relatives, reopen_relatives

_log = logging.getLogger("genodiff")
HOLDS = "draws of an evaluation's shard"
_ROWS = 5  # of a batch: nats of upper case and soft-masked, their tokens, and the masked share;
# with a memory, two more: the nats without it
_ORDERED = -1  # in the place of a repeat: the exact likelihood under --order, three rows


class EvalShardJob(Job[EvalRequest]):
    """The file of a shard: its entries are the draws of a batch, of each repeat in turn."""

    noun = "batches"

    def open(self, stack: ExitStack) -> None:
        """Raises `UsageError` for options that need all windows at once, or an empty shard."""
        [asked] = self.request.list_evaluations()
        model, shard = open_evaluated(self.request), self.request.part
        asked.check_domain(model.alphabet.domain)
        for flag, given in (
            ("--context contig", asked.context != "window"),
            ("--max-minutes", asked.max_minutes is not None),
        ):
            if given:
                fix = "leave it out, or evaluate without shards"
                raise UsageError(f"--shard and {flag} exclude each other", fix=fix)
        data = open_data(model, asked)
        self.model, self.options, self.order = model, asked, read_order(model, asked)
        self.memory = open_window_memory(model, asked, data)
        windows, size = choose_windows(model, data.windows, asked, self.memory), asked.batch_size
        self.batches = EvalBatches(windows, size, asked.seed, asked.repeats)
        first, last = shard.cut(len(self.batches) // asked.repeats)
        if first == last:
            what = f"--shard {shard.number}/{shard.of} has no batch of {len(windows):,} windows"
            raise UsageError(what, fix="give fewer shards, or a smaller --batch-size")
        self.windows = range(first * size, min(last * size, len(windows)))
        self.whole: dict[str, Any] = {"checkpoint": model.digest}
        self.whole["fingerprint"] = data.store.fingerprint
        if self.memory is not None:
            self.whole["memory"] = identify_memory(self.memory.loci.told)
            self.memory = self.memory.of(windows)
        each = [*range(asked.repeats), *([] if self.order is None else [_ORDERED])]
        self.places = [(repeat, number) for repeat in each for number in range(first, last)]
        self.total = len(self.places)

    def plan(self) -> dict[str, Any]:
        return {"windows": len(self.windows), self.noun: self.total}

    def identify(self) -> dict[str, Any]:
        return self.whole

    @torch.no_grad()
    def entries(self, first: int) -> Iterator[bytes]:
        """Raises `GenodiffError` where they are not finite."""
        objective, backbone = self.model.objective, self.model.backbone
        device = next(backbone.parameters()).device
        check_network(objective, backbone, self.batches, device)
        scorer = None
        if self.order is not None:
            scorer = OrderScorer(self.model, self.order, self.options.batch_size, self.memory)
        for repeat, number in self.places[first:]:
            batch = self.batches.batch(max(repeat, 0), number)
            if repeat == _ORDERED:
                assert scorer is not None
                yield scorer.measure(batch).tobytes()
                continue
            draws = measure_batch(objective, backbone, batch, device, self.memory)
            yield np.stack(draws).tobytes()

    def write(self, rows: Rows) -> dict[str, Any]:
        asked, windows = self.request, self.windows
        write_draws(asked.out, self._join(rows()))
        return {
            "holds": HOLDS, "format": "npy", "run": str(self.model.run),
            "checkpoint": self.model.digest, "options": self.options.describe(),
            "shard": list(asked.part), "cut": [windows.start, windows.stop],
            "windows": len(windows), "request": self.name_request(whole=True),
            **name_relatives(self.model),
        }  # fmt: skip

    def _join(self, rows: Iterable[bytes]) -> WindowDraws:
        repeats, with_memory = self.batches.repeats, self.memory is not None
        draws = WindowDraws.empty(repeats, len(self.windows), memory=with_memory)
        ordered: list[Any] = []
        for (repeat, number), row in zip(self.places, rows, strict=True):
            height = 3 if repeat == _ORDERED else _ROWS + 2 * with_memory
            values = np.frombuffer(row).reshape(height, -1)
            if repeat == _ORDERED:
                ordered.append(values)
                continue
            at = number * self.batches.batch_size - self.windows.start
            draws.put(repeat, slice(at, at + values.shape[1]), list(values))
        return draws._replace(ordered=np.concatenate(ordered, 1)) if ordered else draws


def write_draws(path: str | Path, draws: WindowDraws) -> None:
    """Write the draws of a shard. Raises `MachineError`."""
    rows = [draws.nats, draws.rate[None]]
    with open_atomic(path) as file:
        np.save(file, np.concatenate(rows if draws.without is None else [*rows, draws.without]))
        np.save(file, draws.tokens)
        if draws.ordered is not None:
            np.save(file, draws.ordered)


def read_draws(paths: Sequence[str | Path]) -> WindowDraws:
    """The draws of all shards, in their order. Raises `DataError` for a file that is none."""
    values, tokens, ordered = [], [], []
    for path in paths:
        try:
            with open(path, "rb") as file:
                values.append(np.load(file, allow_pickle=False))
                tokens.append(np.load(file, allow_pickle=False))
                if file.peek(1):
                    ordered.append(np.load(file, allow_pickle=False))
        except (OSError, ValueError, EOFError) as fault:
            raise DataError(f"holds no draws: {fault}", file=path, fix="evaluate again") from None
    joined = np.concatenate(values, 2)
    without = joined[3:] if len(joined) > 3 else None
    of_order = np.concatenate(ordered, 1) if ordered else None
    return WindowDraws(joined[:2], np.concatenate(tokens, 1), joined[2], without, of_order)


def merge_evaluation(parts: Sequence[ShardFile], target: str) -> dict[str, Any]:
    """The evaluation of all shards, written to `target` and added to RUN/eval.json.

    Raises `DataError` where the run is not the one that the shards are of.
    """
    told = parts[0].told
    fasta = told["options"].get("fasta")
    model = open_language(told["run"], "cpu", **reopen_relatives(told), fasta=fasta)
    model = model.in_blocks(told["options"].get("block"))
    if model.digest != told["checkpoint"]:
        what = f"is of the checkpoint {told['checkpoint']}, and {model.run} has {model.digest}"
        raise DataError(what, file=parts[0].path, fix="merge with the weights that were evaluated")
    options = dict(told["options"])
    draws = read_draws([one.path for one in parts])
    found = evaluate(model, options.pop("split"), draws=draws, **options) | name_relatives(model)
    found["seconds"] = round(sum(one.told["seconds"] for one in parts), 3)
    if target == "-":
        print(json.dumps(found, allow_nan=False))
    else:
        write_json(target, found)
    own = is_run(model.run) and model.relatives is None
    kept = find_evaluation_file(model.run) if own else None
    if kept is not None:
        _log.info("%s: %s", kept, write_evaluation(model.run, found, kept))
    return found
