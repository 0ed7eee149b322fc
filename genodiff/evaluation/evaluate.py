"""How well a model knows its domain: one evaluator for each.

The keys of a result are described where it is made: of DNA in dna_evaluation.py, of text in
text_evaluation.py. How results are kept stands in evaluation_file.py.
"""

from typing import Any

from genodiff.data.dna_windows import DnaWindows
from genodiff.evaluation.bound import Progress, WindowDraws, time_window
from genodiff.evaluation.dna_evaluation import evaluate_dna
from genodiff.evaluation.eval_data import choose_mixture, find_train_store, open_data
from genodiff.evaluation.eval_options import EvalOptions
from genodiff.evaluation.evaluation_file import EVAL
from genodiff.evaluation.line_costs import plan_lines
from genodiff.evaluation.text_evaluation import evaluate_text
from genodiff.evaluation.window_memory import open_window_memory
from genodiff.runs.model import TrainedModel

_EVALUATORS = {"dna": evaluate_dna, "text": evaluate_text}


def evaluate(
    model: TrainedModel,
    split: str = "test",
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
    chosen = EvalOptions(split=split, **options)
    domain = model.alphabet.domain
    chosen.check(domain)
    return _EVALUATORS[domain](model, chosen, progress, draws)


def plan_evaluation(model: TrainedModel, options: EvalOptions) -> dict[str, Any]:
    """What `evaluate` would take: network, windows, tokens, seconds, files."""
    options.check(model.alphabet.domain)
    data = open_data(model, options)
    windows, memory = data.windows, open_window_memory(model, options, data)
    if options.max_windows is not None:
        windows = windows.spread(options.max_windows)
    lines = None
    if options.baselines and isinstance(windows, DnaWindows):
        train = find_train_store(model, options, data.store)
        lines = plan_lines(windows, train, choose_mixture(data, options))
    repeats, passes = options.repeats, options.passes
    seconds = time_window(model, windows, options.batch_size, memory) * len(windows) * passes
    return {
        "parameters": sum(p.numel() for p in model.backbone.parameters()),
        "checkpoint": model.digest,
        "alphabet": model.alphabet.name,
        "domain": model.alphabet.domain,
        "repeats": repeats,
        "split": options.split,
        "windows": len(windows),
        "windows_total": data.total,
        "tokens": int(windows.length.sum()) * passes,
        "memory": None if memory is None else memory.told,
        "seconds": round(seconds, 1),
        "seconds_of_baselines": None if lines is None else round(lines.total, 1),
        "files": [str(model.run / EVAL)],
    }
