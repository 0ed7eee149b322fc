"""How well a model knows its domain: one evaluator for each.

The keys of a result are described where it is made: of DNA in dna_evaluation.py, of text in
text_evaluation.py. How results are kept stands in evaluation_file.py.
"""

import logging
from pathlib import Path
from typing import Any

from genodiff.data.dna_windows import DnaWindows
from genodiff.errors import Interrupted
from genodiff.evaluation.bound import Progress, WindowDraws, time_window
from genodiff.evaluation.dna_evaluation import evaluate_dna
from genodiff.evaluation.eval_data import (
    choose_mixture,
    find_train_store,
    open_data,
    open_window_memory,
)
from genodiff.evaluation.evaluation_file import EVAL, find_evaluation_file, write_evaluation
from genodiff.evaluation.exact_order import read_order
from genodiff.evaluation.lines import plan_lines
from genodiff.evaluation.request import EvalOptions, EvalRequest
from genodiff.evaluation.text_evaluation import evaluate_text
from genodiff.io.progress import ProgressDisplay
from genodiff.jobs.job import say_stopped
from genodiff.models.opening import open_language
from genodiff.runs.checkpoint import is_run
from genodiff.runs.relatives_plan import describe_waiting
from genodiff.runs.trained_model import TrainedModel, name_relatives

_log = logging.getLogger("genodiff")
_EVALUATORS = {"dna": evaluate_dna, "text": evaluate_text}


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
