"""How well a model knows its domain: one evaluator for each, whole or in shards.

The keys of a result are described where it is made: of DNA in dna_evaluation.py, of text in
text_evaluation.py. How results are kept stands in evaluation_file.py.

Of `genodiff eval --shard i/n`, part of the draws is measured apart and put together. What an
evaluation draws is a function of the seed and of a window's number among all windows. A shard has
the i-th part of the batches that a whole evaluation would measure, so every batch is the same, and
with it every bit. The merged draws go through the same code as those of one run.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

from genodiff.data.dna_windows import DnaWindows
from genodiff.data.loader import EvalBatches
from genodiff.errors import DataError, Interrupted, UsageError
from genodiff.evaluation.bound import (
    Progress,
    WindowDraws,
    check_network,
    choose_windows,
    measure_batch,
    time_window,
)
from genodiff.evaluation.dna_evaluation import evaluate_dna
from genodiff.evaluation.eval_data import (
    choose_mixture,
    find_train_store,
    open_data,
    open_window_memory,
)
from genodiff.evaluation.evaluation_file import EVAL, find_evaluation_file, write_evaluation
from genodiff.evaluation.exact_order import OrderScorer, read_order
from genodiff.evaluation.lines import plan_lines
from genodiff.evaluation.request import EvalOptions, EvalRequest
from genodiff.evaluation.text_evaluation import evaluate_text
from genodiff.io.atomic import open_atomic, write_json
from genodiff.io.progress import ProgressDisplay
from genodiff.jobs.job import Job, Rows, say_stopped
from genodiff.jobs.shards import ShardFile
from genodiff.memory.memory import identify_memory
from genodiff.models.opening import open_language
from genodiff.runs.checkpoint import is_run
from genodiff.runs.relatives_plan import describe_waiting
from genodiff.runs.trained_model import TrainedModel, name_relatives, reopen_relatives

_log = logging.getLogger("genodiff")
_EVALUATORS = {"dna": evaluate_dna, "text": evaluate_text}
HOLDS = "draws of an evaluation's shard"
_ROWS = 5  # of a batch: nats of upper case and soft-masked, their tokens, and the masked share;
# with a memory, two more: the nats without it
_ORDERED = -1  # in the place of a repeat: the exact likelihood under --order, three rows


def evaluate(
    model: TrainedModel,
    split: Any = "test",
    *,
    progress: Progress | None = None,
    draws: WindowDraws | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The evaluation of `model` on a split, as plain values. `options` are those of `EvalOptions`.

    `draws` are those of all shards, in place of drawing here. The result depends on the seed, the
    split and the numbers of windows and repeats, but not on the batch size (up to float32 error).
    Raises `DataError` where the data are missing or have no usable
    window, `UsageError` for options that cannot be meant.
    """
    return _evaluate(model, EvalOptions(split=split, **options), progress, draws)


def _evaluate(
    model: TrainedModel,
    options: EvalOptions,
    progress: Progress | None = None,
    draws: WindowDraws | None = None,
) -> dict[str, Any]:
    options.check_domain(model.alphabet.domain)
    return _EVALUATORS[model.alphabet.domain](model, options, progress, draws)


def open_evaluated(asked: EvalRequest) -> TrainedModel:
    """The model of a request. Raises `CheckpointError` where it is of another domain."""
    if isinstance(asked.run, str | Path):
        how: dict[str, Any] = {"strains": asked.strains, "fasta": asked.fasta, "plan": asked.plan}
        model = open_language(asked.run, asked.device, asked.relatives, **how)
    else:
        model = getattr(asked.run, "inner", asked.run)
    asked.check_of(model.alphabet.domain)
    return model.in_blocks(asked.block)


def evaluate_request(asked: EvalRequest) -> dict[str, Any]:
    """The evaluation, or one for each recipe, added to its file; or the plan."""
    model, each = open_evaluated(asked), asked.list_evaluations()
    if asked.plan:
        return plan_evaluation(model, each[0])
    file = None
    # What is said with the genomes of relatives is no figure of the run itself.
    if asked.out or (asked.keep and is_run(model.run) and model.relatives is None):
        file = find_evaluation_file(model.run, asked.out or None, force=asked.force)
    results = []
    try:
        with ProgressDisplay() as display:
            for one in each:
                results.append(_evaluate(model, one, display.show_batches) | name_relatives(model))
                if file is not None:
                    _log.info("%s: %s", file, write_evaluation(model.run, results[-1], file))
    except (KeyboardInterrupt, Interrupted) as stop:
        fix = "run it again, or give --max-minutes for fewer windows"
        raise say_stopped(stop, "eval.json keeps finished evaluations only", fix) from None
    if len(results) == 1:
        return results[0]
    return {"suite": {result["recipe"]: result for result in results}}


def plan_evaluation(model: TrainedModel, options: EvalOptions) -> dict[str, Any]:
    """What `evaluate` would take: network, windows, tokens, seconds, files."""
    options.check_domain(model.alphabet.domain)
    data = open_data(model, options)
    windows, memory = data.windows, open_window_memory(model, options, data)
    total = round(len(windows) / getattr(data.store, "share", 1.0))
    n = total if options.max_windows is None else min(total, options.max_windows)
    if options.max_windows is not None:
        windows = windows.spread(options.max_windows)
    lines, times = None, n / max(1, len(windows))
    if options.baselines and isinstance(windows, DnaWindows):
        train = find_train_store(model, options, data.store)
        lines = plan_lines(windows, train, choose_mixture(data, options))
    order, repeats, passes = read_order(model, options), options.repeats, float(options.repeats)
    passes += 0.0 if order is None else order.expect(model, windows.seq_len)
    seconds = time_window(model, windows, options.batch_size, memory) * n * passes
    return {
        "parameters": sum(p.numel() for p in model.backbone.parameters()),
        "checkpoint": model.digest,
        "alphabet": model.alphabet.name,
        "domain": model.alphabet.domain,
        "repeats": repeats,
        "split": options.split,
        "windows": n,
        "windows_total": total,
        "tokens": int(int(windows.length.sum()) * times * passes),
        "memory": None if memory is None else memory.loci.told,
        "seconds": round(seconds, 1),
        "seconds_of_baselines": None if lines is None else round(lines.total * times, 1),
        **describe_waiting(model.relatives),
        "files": [str(model.run / EVAL)],
    }


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
