"""What a model of yours thinks of samples: the work of `judge`."""

import json
from pathlib import Path
from typing import Any

from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.eval_options import EvalOptions
from genodiff.evaluation.generative import check_judge, figures
from genodiff.generate.samples_file import read_samples
from genodiff.io.input_file import is_file
from genodiff.io.sequences import read_records
from genodiff.jobs.machine import choose_device
from genodiff.quality.requests import JudgeRequest
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.run_paths import check_input

_TOLD = ("sampler", "steps", "temperature", "top_p", "run", "checkpoint")


def judge_samples(asked: JudgeRequest) -> dict[str, Any]:
    """What `genodiff.judge` returns."""
    file = str(asked.samples) if is_file(asked.samples) else None
    check_input(file)
    model = load_model(asked.judge, device=choose_device(asked.device))
    check_judge(model)
    if file is not None:
        sequences = read_samples(file, model)
    else:
        records = read_records(asked.samples)
        sequences = [model.alphabet.encode(record.sequence) for record in records]
    how: dict[str, Any] = {"repeats": asked.repeats, "seed": asked.seed}
    found = {"samples": figures(model, sequences, **how)}
    if asked.reference:
        real = _read_real(model, [len(ids) for ids in sequences], asked.offline)
        found["real"] = figures(model, real, **how)
    return {
        "file": file,
        "judge": model.digest,
        "run": model.run.name,
        "domain": model.alphabet.domain,
        "figure": model.objective.figure,
        "repeats": 1 if model.objective.figure == "exact" else asked.repeats,
        "sampling": None if file is None else _read_sidecar(Path(f"{file}.json")),
        **found,
    }


def _read_real(model: TrainedModel, lengths: list[int], offline: bool) -> list[Any]:
    """About as many tokens of the judge's test split, in windows that are evenly spread.

    None is longer than the longest sample.
    """
    data = open_data(model, EvalOptions(offline=offline))
    size = min(model.config.data.seq_len, max(lengths))
    windows = data.windows.spread(-(-sum(lengths) // size))
    return [
        windows.store.read_ids(a, a + min(n, size))
        for a, n in zip(windows.flat_start.tolist(), windows.length.tolist(), strict=True)
    ]


def _read_sidecar(path: Path) -> dict[str, Any] | None:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return {"precision": "float64", **{name: told[name] for name in _TOLD}}
    except (OSError, ValueError, KeyError, TypeError):
        return None
