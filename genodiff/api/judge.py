"""What a model of yours thinks of samples: `genodiff.judge`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.errors import UsageError
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_input, check_run

if TYPE_CHECKING:
    from genodiff.runs.model import TrainedModel

_TOLD = ("sampler", "steps", "temperature", "top_p", "run", "checkpoint")


@own_defaults()
def judge(
    samples: Any,
    *,
    judge: str | Path,
    reference: bool = True,
    repeats: int = 8,
    seed: int = 1,
    device: str = "auto",
    offline: bool = False,
) -> dict[str, Any]:
    """Perplexity of samples under the model in `judge`, with entropy and diversity, plain values.

    `samples` is a file as `genodiff sample` writes it, or sequences of DNA as strings or records.
    `figure` is "exact" of an autoregressive judge, and "bound" of a masked one: perplexity is then
    at most so much, estimated from `repeats` masks for each window. `real` holds the same of as
    many real windows of the judge's test split, `sampling` what the samples' sidecar says. Raises
    `UsageError`, `DataError`, `CheckpointError`.
    """
    check_run(judge)
    from genodiff.io.sequences import is_file

    file = str(samples) if is_file(samples) else None
    if file is not None:
        check_input(file)
    if repeats < 1:
        raise UsageError(f"--repeats {repeats} is below 1", fix="give 1 or more")
    device = choose_device(device)
    from genodiff.evaluation.generative import check_judge, figures
    from genodiff.generate.samples_file import read_samples
    from genodiff.io.held_sequences import read_records
    from genodiff.runs.model import load_model

    model = load_model(judge, device=device)
    check_judge(model)
    if file is not None:
        sequences = read_samples(file, model)
    else:
        sequences = [model.alphabet.encode(record.sequence) for record in read_records(samples)]
    how: dict[str, Any] = {"repeats": repeats, "seed": seed}
    found = {"samples": figures(model, sequences, **how)}
    if reference:
        real = _read_real(model, [len(ids) for ids in sequences], offline)
        found["real"] = figures(model, real, **how)
    return {
        "file": file,
        "judge": model.digest,
        "run": model.run.name,
        "domain": model.alphabet.domain,
        "figure": model.objective.figure,
        "repeats": 1 if model.objective.figure == "exact" else repeats,
        "sampling": None if file is None else _read_sidecar(Path(f"{file}.json")),
        **found,
    }


def _read_real(model: TrainedModel, lengths: list[int], offline: bool) -> list[Any]:
    """About as many tokens of the judge's test split, in windows that are evenly spread.

    None is longer than the longest sample.
    """
    from genodiff.evaluation.eval_data import open_data
    from genodiff.evaluation.eval_options import EvalOptions

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
