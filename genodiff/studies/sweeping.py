"""Models fitted to tasks, seed by seed, and what is found of the tasks before: the work of
`finetune` and of `finetune audit`.
"""

import shlex
import sys
from pathlib import Path
from typing import Any

from genodiff.errors import DataError, UsageError
from genodiff.finetuning.adapters import parse_adapter
from genodiff.finetuning.estimate import estimate
from genodiff.finetuning.model_spec import parse_models
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.sweep import SweepPlan, sweep
from genodiff.io.target import set_aside
from genodiff.jobs.machine import choose_device
from genodiff.reports.benchmark import write_benchmark
from genodiff.runs.model import load_model
from genodiff.studies.audit_request import AuditRequest
from genodiff.studies.sweep_data import Judged
from genodiff.studies.sweep_request import FILES, SweepRequest, is_sweep
from genodiff.tasks.audit import audit as audit_parts
from genodiff.tasks.audit import audit_lines
from genodiff.tasks.contamination import describe_contamination, measure_contamination
from genodiff.tasks.data_request import TableFiles, load_own_data
from genodiff.tasks.suite import list_task_names
from genodiff.tasks.suite_files import list_suite_files
from genodiff.tasks.task import load_task


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
        "out": str(folder), "rows": rows, "files": list(map(str, written["files"])),
        "comparisons": written["comparisons"],
        "ensembles": [row for row in written["ensembles"] if keys & set(row["keys"])],
    }  # fmt: skip


def audit(asked: AuditRequest) -> dict[str, Any]:
    """What is found of one data set, or of each task of SUITE/all."""
    dataset = str(asked.dataset)
    suite, _, task = dataset.partition("/")
    if Path(dataset).exists() or suite not in list_suite_files():
        return _audit(asked)
    if not task:
        fix = f"give {dataset}/TASK; see `genodiff finetune list {dataset}`"
        raise UsageError(f"{dataset} is a suite: which of its tasks?", fix=fix)
    if task != "all":
        return _audit(asked, suite, task)
    return {"tasks": (_audit(asked, suite, name) for name in list_task_names(suite))}


def _audit(asked: AuditRequest, suite: str = "", task: str = "") -> dict[str, Any]:
    """What is found of one task of a suite, or of own sequences."""
    if suite:
        files = {name: Path(path) for name, path in (asked.reference or {}).items()}
        parts = load_task(
            suite, task, source=asked.data, split=asked.split, references=files, offline=True,
            sequences=bool(files), similarity=asked.similarity,
        )  # fmt: skip
    else:
        own = TableFiles.parse(asked.name_files(asked.dataset))
        parts = load_own_data(own, split=asked.split, similarity=asked.similarity)
    found = audit_parts(parts)
    if asked.model:
        if not parts.test.sequences:
            what = "the test part has coordinates but no sequences, which --model needs"
            raise DataError(what, fix="give the genome with --reference NAME=FASTA")
        found["pretraining"] = {
            one.run.resolve().name: measure_contamination(one, parts.test.sequences).to_json()
            for one in map(load_model, asked.model)
        }
    return found


def describe_audit(found: dict[str, Any]) -> list[str]:
    """An audit for a person to read, with what pretraining saw."""
    seen = found.get("pretraining", {})
    return audit_lines(found) + [f"  {describe_contamination(*each)}" for each in seen.items()]
