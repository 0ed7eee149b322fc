"""Models fitted to tasks, seed by seed: the work of `finetune`."""

import shlex
import sys
from typing import Any

from genodiff.errors import UsageError
from genodiff.finetuning.adapters.adapter import parse_adapter
from genodiff.finetuning.estimate import estimate
from genodiff.finetuning.model_spec import parse_models
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.sweep import SweepPlan, sweep
from genodiff.io.target import set_aside
from genodiff.jobs.machine import choose_device
from genodiff.reports.benchmark import write_benchmark
from genodiff.studies.sweep_data import Judged
from genodiff.studies.sweep_request import FILES, SweepRequest, is_sweep


def finetune(asked: SweepRequest, judged: Judged) -> dict[str, Any]:
    """What `genodiff.finetune` returns."""
    if asked.adapter is not None:
        parse_adapter(asked.adapter)
    device, domain = choose_device(asked.device), judged.data.domain
    models = parse_models(asked.words, list_baselines(domain), domain)
    keep = "new" if asked.keep_weights is None else "all" if asked.keep_weights else "none"
    how: dict[str, Any] = {"keep": keep, "exclude": asked.exclude_overlap}
    how |= {"search": asked.search, "choose_head": asked.choose_head}
    fits = asked.methods, asked.seeds, asked.over
    plan = SweepPlan(judged.data, judged.tasks, models, *fits, **how)
    if asked.exclude_overlap and not any(m.kind == "checkpoint" for m in plan.models):
        what = "--exclude-overlap needs a pretrained model, and none is named"
        raise UsageError(what, fix="give --model RUN, or leave it out")
    if asked.plan:
        return estimate(plan, device, asked.jobs)
    folder = judged.folder
    if asked.force and not is_sweep(folder):
        for name in FILES:
            set_aside(folder / name)
    command = shlex.join(["genodiff", *sys.argv[1:]])
    rows = sweep(plan, folder, device=device, jobs=asked.jobs, command=command)
    written, keys = write_benchmark(folder, asked.margin), {row["key"] for row in rows}
    return {
        "out": str(folder),
        "rows": rows,
        "files": [str(path) for path in written.files],
        "comparisons": written.comparisons,
        "ensembles": [row for row in written.ensembles if keys & set(row["keys"])],
    }
