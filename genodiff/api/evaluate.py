"""How well a run knows its data: `genodiff.evaluate`."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.evaluation.eval_options import EvalOptions
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_input, check_run, find_domain_of_run

if TYPE_CHECKING:
    from genodiff.api.model import Model
    from genodiff.jobs.shards import ShardFile
    from genodiff.runs.model import TrainedModel

_log = logging.getLogger("genodiff")

Split = Literal["test", "valid", "train", "all"]


@own_defaults()
def evaluate(
    run: str | Path | Model | TrainedModel,
    *,
    split: Split = "test",
    fasta: str | Path | None = None,
    bed: str | Path | None = None,
    text: str | Path | None = None,
    recipe: str | Sequence[str] | None = None,
    repeats: int = 1,
    t_steps: Sequence[int] | None = None,
    max_windows: int | None = None,
    max_minutes: float | None = None,
    soft_masked: bool = True,
    baselines: bool = True,
    mixture: bool | None = None,
    context: Literal["window", "contig"] = "window",
    memory: Literal["on", "off", "exhaustive"] | None = None,
    relatives: Sequence[str | Path] = (),
    strains: bool = False,
    batch_size: int = 32,
    seed: int = 1,
    domain: Literal["dna", "text"] | None = None,
    device: str = "auto",
    offline: bool = False,
    keep: bool = True,
    shard: str | None = None,
    out: str | Path | None = None,
    plan: bool = False,
    fresh: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Bits per base (of text: per byte) of a split, with interval and baselines, as plain values.

    The keys are those of `genodiff eval --json`; `nelbo_nats` is in nats per base. `fasta`, `bed`,
    `text` and `recipe` take the place of the run's own data; several recipes ("NAME" or
    "NAME=FILE") give {"suite": {recipe: values}}. Of another genome the test split is scored by
    default, so that the Markov lines are fitted on its train part and nothing has seen what is
    scored; `split="all"` scores every base, beside lines of the run's own train split.
    `memory` "on" mixes in what the training genome holds, and gives the network alone beside it;
    "exhaustive" tries every place of that genome, not only those that its index finds. None is
    "on" for a run that was trained with a memory.
    `t_steps` are numbers of sampling steps, few ones too, whose bounds are measured with masks of
    their own. `keep` adds the result to RUN/eval.json, unless `run` is a published folder or one
    that you may not write to; `out`, a .json file, takes its place. A file there that holds no JSON
    object is replaced with `force` only. With `shard`, "i/n", the draws of
    the i-th of n parts of the windows are written to `out`, and `genodiff.merge` makes the whole
    evaluation of them; what is done is kept in OUT.partial, and `fresh` starts anew. With `plan`
    nothing is scored, and what it would take is returned. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.
    """
    options: dict[str, Any] = {
        "fasta": _path(fasta), "bed": _path(bed), "text": _path(text), "repeats": repeats,
        "batch_size": batch_size, "seed": seed, "soft_masked": soft_masked,
        "max_windows": max_windows, "max_minutes": max_minutes, "baselines": baselines,
        "mixture": mixture, "context": context, "memory": memory, "offline": offline,
        "t_steps": None if t_steps is None else tuple(t_steps),
    }  # fmt: skip
    requests = _requests([recipe] if isinstance(recipe, str) else recipe, options)
    here = None if not isinstance(run, str | Path) else check_run(run)
    known = find_domain_of_run(here) if here is not None else run.alphabet.domain  # type: ignore[union-attr]
    if known is not None:
        if domain not in (None, known):
            raise CheckpointError(f"is a {known} model", file=here, fix=f"give a {domain} run")
        for request in requests:
            EvalOptions(split=split, **request).check(known)
    for file in (fasta, bed, text):
        check_input(file)
    if shard is None and out is not None and Path(out).suffix.lower() != ".json":
        raise UsageError("an evaluation is written as .json", file=out, fix="give --out FILE.json")
    model = _open(run, device, relatives, strains, fasta)
    if domain not in (None, model.alphabet.domain):
        what = f"is a {model.alphabet.domain} model"
        raise CheckpointError(what, file=here, fix=f"give a {domain} run")
    from genodiff.evaluation.evaluate import evaluate as score
    from genodiff.evaluation.evaluate import plan_evaluation
    from genodiff.evaluation.evaluation_file import find_evaluation_file, write_evaluation
    from genodiff.io.progress import ProgressDisplay
    from genodiff.runs.checkpoint import is_run
    from genodiff.runs.related_model import name_relatives

    if shard is not None and not plan:
        from genodiff.evaluation.eval_shards import EvalShardRequest

        if len(requests) > 1:
            raise UsageError("--shard takes one recipe", fix="evaluate each by itself")
        return EvalShardRequest(
            model.run, out=out or "", options=EvalOptions(split=split, **requests[0]),
            shard=shard, device=device, fresh=fresh, force=force,
        ).answer(model)  # fmt: skip
    if plan:
        return plan_evaluation(model, EvalOptions(split=split, **requests[0]))
    file = None
    # What is said with the genomes of relatives is no figure of the run itself.
    if out is not None or (keep and is_run(model.run) and model.relatives is None):
        file = find_evaluation_file(model.run, out, force=force)
    results = []
    with ProgressDisplay() as display:
        for request in requests:
            found = score(model, split, progress=display.show_batches, **request)
            results.append(found | name_relatives(model))
            if file is not None:
                _log.info("%s: %s", file, write_evaluation(model.run, results[-1], file))
    if len(results) == 1:
        return results[0]
    return {"suite": {result["recipe"]: result for result in results}}


def _open(
    run: str | Path | Model | TrainedModel,
    device: str,
    relatives: Sequence[str | Path],
    strains: bool,
    fasta: str | Path | None,
) -> TrainedModel:
    from genodiff.models.opening import open_language
    from genodiff.runs.model import TrainedModel

    if isinstance(run, str | Path):
        return open_language(run, device, relatives, strains=strains, fasta=fasta)
    return run if isinstance(run, TrainedModel) else run.trained


def _path(given: str | Path | None) -> str | None:
    return None if given is None else str(given)


def _requests(recipes: Sequence[str] | None, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The options of each evaluation: one, or one for each of `recipes` (NAME or NAME=PATH)."""
    if not recipes:
        return [options]
    named = [recipe.partition("=") for recipe in recipes]
    if options["text"] is not None:
        if len(named) > 1 or named[0][2]:
            raise UsageError(
                "--text stands for one recipe's file, and more is given",
                fix="write --recipe NAME=FILE for each",
            )
        return [options | {"recipe": recipes[0]}]
    return [options | {"recipe": name, "text": path or None} for name, _, path in named]


def merge_evaluation(parts: list[ShardFile], target: str) -> dict[str, Any]:
    """The evaluation of all shards, written to `target` and added to RUN/eval.json.

    Raises `DataError` where the run is not the one that the shards are of.
    """
    from genodiff.evaluation.eval_shards import read_draws
    from genodiff.evaluation.evaluate import evaluate
    from genodiff.evaluation.evaluation_file import find_evaluation_file, write_evaluation
    from genodiff.io import atomic
    from genodiff.models.opening import open_language
    from genodiff.runs.checkpoint import is_run
    from genodiff.runs.related_model import name_relatives, reopen_relatives

    told = parts[0].told
    fasta = told["options"].get("fasta")
    model = open_language(told["run"], "cpu", **reopen_relatives(told), fasta=fasta)
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
        atomic.write_json(target, found)
    own = is_run(model.run) and model.relatives is None
    kept = find_evaluation_file(model.run) if own else None
    if kept is not None:
        _log.info("%s: %s", kept, write_evaluation(model.run, found, kept))
    return found
