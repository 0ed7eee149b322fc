"""What a sweep will take: units, steps, time, memory, disk, downloads.

Nothing is trained, and of large files the beginning is read. Time comes from two small steps of
each network, since its pace in bases hardly depends on their length; memory from what autograd
keeps of a pass. For a task whose data are not here, the published counts and the longest length are
used, and the files to fetch are listed.
"""

import math
import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from genodiff.domain import DOMAINS
from genodiff.errors import DataError, format_count
from genodiff.finetuning.batches import encode
from genodiff.finetuning.choosing import FEW, FINALISTS, count_choosing_seeds, find_shares
from genodiff.finetuning.cnn import count_weights
from genodiff.finetuning.count_regression import N_FEATURES
from genodiff.finetuning.fit import compute_loss
from genodiff.finetuning.head import Classifier, list_heads
from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.scored_unit import Keep
from genodiff.finetuning.sweep import SweepPlan, choose_settings
from genodiff.io.progress import format_duration
from genodiff.tasks.data_request import DataRequest
from genodiff.tasks.suite import Task, find_reference, load_suite
from genodiff.tasks.task import VALID_SHARE, TaskData

_FORWARD = 0.35  # of a training step's time
_TIMED = 2_048
"""Bases of a step that is timed."""
_ENCODED = 2_000
"""Texts whose length in tokens is taken."""


class TaskSize(NamedTuple):
    """A task's size: examples, typical and longest length; `data` is None if not here."""

    task: Task
    n_train: int
    n_test: int
    length: int
    longest: int
    data: TaskData | None = None


def measure_task(request: DataRequest, name: str) -> TaskSize:
    """The size of a task, from its data if they are here, otherwise from the published counts."""
    try:
        data = request.load(name)
    except DataError:
        if request.table is not None:
            raise
        task = load_suite(request.suite).find(name)
        train, dev, test = (sum(task.counts.get(part, ())) for part in ("train", "dev", "test"))
        return TaskSize(task, train + dev, test, task.max_length, task.max_length)
    lengths = data.train.lengths.clip(max=data.task.max_length)
    n, typical = data.train.forecast, round(float(lengths.mean()))
    if request.max_train is not None:
        valid = 0 if data.valid_index is None else len(data.valid_index)
        n = min(n, request.max_train + valid)
    return TaskSize(data.task, n, data.test.forecast, typical, int(lengths.max()), data)


def count_in_tokens(size: TaskSize, model: ModelSpec, settings: FitSettings) -> TaskSize:
    """The size of a task of text, with lengths in tokens of a network's tokenizer."""
    most = min(size.task.max_length, settings.max_length or size.task.max_length)
    if size.data is None:
        return size._replace(length=most, longest=most)
    some = size.data.train.take(np.arange(min(size.n_train, size.data.train.n))[:_ENCODED])
    lengths = encode(some, model.encoder(), most).lengths
    return size._replace(length=round(float(lengths.mean())), longest=int(lengths.max()))


def estimate(plan: SweepPlan, device: str, jobs: int) -> dict[str, Any]:
    """The plan as plain values; times in seconds, `seconds` with `jobs` units side by side."""
    plan = plan._replace(request=plan.request.model_copy(update={"offline": True}))
    domain = DOMAINS[plan.request.domain]
    sizes = [measure_task(plan.request, name) for name in plan.tasks]
    rows = []
    paces: dict[tuple[str, str], float] = {}  # of each model and method, timed at the first task
    for size in sizes:
        for model, method in plan.contenders():
            row: dict[str, Any] = {
                "task": size.task.name,
                "model": model.name,
                "method": method,
                "units": plan.seeds,
                "n_train": size.n_train or None,
                "n_test": size.n_test or None,
                "length": size.length,
                "data_here": size.data is not None,
            }
            if model.kind != "baseline":
                _, settings = choose_settings(plan, size.task, model, method, size.n_train)
                in_tokens = domain.unit != domain.size_unit
                seen = count_in_tokens(size, model, settings) if in_tokens else size
                row["length"] = seen.length
                backbone, alphabet = model.network(1, device)
                n_out, complement = size.task.n_out, alphabet.complement
                classifier = Classifier(backbone, n_out, settings, complement).to(device)
                key, tries = (model.name, method), _tries(plan, settings, seen)
                if key not in paces and seen.n_train:
                    paces[key] = time_base(classifier, seen.task, seen.length, settings)
                row |= _of_network(classifier, seen, settings, tries, paces.get(key, 0.0))
            row["disk_bytes"] = _disk_bytes(row, size, model, plan.keep)
            rows.append(row)
    seconds = sum((row.get("seconds") or 0.0) * row["units"] for row in rows)
    return {
        "suite": plan.request.suite, "domain": plan.request.domain,
        "split": plan.request.named_split,
        "device": device, "jobs": jobs,
        "threads": torch.get_num_threads(),
        "units": sum(row["units"] for row in rows), "cpu_seconds": seconds,
        "seconds": seconds / jobs,
        "memory_bytes": jobs * max((row.get("memory_bytes") or 0 for row in rows), default=0),
        "disk_bytes": sum((row.get("disk_bytes") or 0) * row["units"] for row in rows),
        "keep": plan.keep, "rows": rows, "downloads": list_downloads(plan, sizes),
    }  # fmt: skip


def _disk_bytes(row: dict[str, Any], size: TaskSize, model: ModelSpec, keep: Keep) -> int:
    """Bytes that a unit leaves: its test pass and, unless none are kept, its weights."""
    n_out = size.task.n_out
    test = (16 + 4 * n_out) * size.n_test
    if keep == "none":
        return test
    if model.kind != "baseline":
        return test + 4 * row["parameters"]
    kept = {"cnn": 4 * count_weights(size.longest, n_out), "kmer-lr": 8 * N_FEATURES * n_out}
    return test + kept.get(str(model.preset), 0)


def _tries(plan: SweepPlan, settings: FitSettings, size: TaskSize) -> float:
    """Whole fits for each seed, those of choosing shared among the seeds."""
    own, n_valid = 0.0, size.n_train // VALID_SHARE
    seeds = count_choosing_seeds(n_valid, plan.seeds)
    if plan.choose_head and seeds * n_valid >= FEW:
        n_fit = max(1, size.n_train - n_valid)
        first, *later = find_shares(settings.steps(n_fit))
        own = seeds * (first * len(list_heads()) + FINALISTS * sum(later))
        own -= 1.0 in (first, *later)  # one whole fit is that of seed 1
    return 1.0 + (plan.search + own) / plan.seeds


def _of_network(
    classifier: Classifier, size: TaskSize, settings: FitSettings, tries: float, pace: float
) -> dict[str, Any]:
    parameters = {"parameters": sum(p.numel() for p in classifier.parameters())}
    if not size.n_train:
        return parameters | {
            "steps": None, "seconds": None, "choice_seconds": 0.0, "memory_bytes": None
        }  # fmt: skip
    n_fit = size.n_train - size.n_train // VALID_SHARE
    average = 2 if classifier.strands == "average" else 1
    ahead = _FORWARD * pace * average * size.length
    steps = settings.steps(n_fit)
    epochs = steps / math.ceil(n_fit / settings.batch_size)
    each = pace * (1.0 if settings.method == "full" else _FORWARD)  # frozen: no pass back
    fit = epochs * (each * size.length * n_fit + ahead * (size.n_train - n_fit))
    return parameters | {
        "steps": steps,
        "seconds": fit * tries + ahead * size.n_test,
        "choice_seconds": fit * (tries - 1),
        "memory_bytes": estimate_memory(classifier, size.task, size.longest, settings),
    }


def _lose(classifier: Classifier, task: Task, rows: int, length: int) -> torch.Tensor:
    """The loss of a pass on sequences that stand for those of the task."""
    device = classifier.device
    x0 = torch.arange(rows * length, device=device).view(rows, length) % 7919 % 4 + 7
    scores = classifier(x0, torch.full((rows,), length, device=device))
    shape = (rows, len(task.classes)) if task.kind == "multilabel" else (rows,)
    targets = torch.zeros(shape, dtype=torch.int64, device=device)
    return compute_loss(task.kind, scores.float(), targets)


def time_base(classifier: Classifier, task: Task, length: int, settings: FitSettings) -> float:
    """Seconds of a pass and its gradient per base: the faster of two."""
    device, length = classifier.device, min(length, _TIMED)
    rows = classifier.split(np.full(settings.batch_size, length))[0].stop
    rows = min(rows, max(1, _TIMED // length))
    took = []
    for _ in range(2):
        began = time.perf_counter()
        with torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
            loss = _lose(classifier, task, rows, length)
        loss.backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
    return min(took) / (rows * length)


def estimate_memory(classifier: Classifier, task: Task, length: int, settings: FitSettings) -> int:
    """Bytes of weights, gradients, moments, the best epoch's copy, and activations.

    Activations are what autograd keeps of the largest pass, in proportion to its bases.
    """
    rows = classifier.split(np.full(settings.batch_size, length))[0].stop
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    some, read = min(rows, 2), min(length, _TIMED)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = _lose(classifier, task, some, read)
    weights = [p.untyped_storage() for p in classifier.parameters()]
    own = {weight.data_ptr(): weight.nbytes() for weight in weights}
    del loss
    activations = sum(size for at, size in kept.items() if at not in own)
    return 5 * sum(own.values()) + activations * rows * length // (some * read)


def list_downloads(plan: SweepPlan, sizes: list[TaskSize]) -> list[dict[str, str]]:
    """What would have to be fetched or given: {"what", "url"} of each file that is not here."""
    if plan.request.table is not None:
        return []
    suite = load_suite(plan.request.suite)
    given = {name: Path(path) for name, path in plan.request.references.items()}
    found: list[dict[str, str]] = []
    for size in sizes:
        if size.data is not None:
            continue
        for part, name in product(("train", "test"), size.task.classes if suite.url else ()):
            url = suite.url.format(task=size.task.name, part=part, **{"class": name})
            found.append({"what": f"{size.task.name} {part}", "url": url})
        for name in dict.fromkeys(size.task.references.values()):
            try:
                find_reference(name, suite.references[name], given, offline=True)
            except DataError:
                found.append({"what": f"genome {name}", "url": suite.references[name].url})
        if not suite.url:
            found.append({"what": size.task.name, "url": size.task.source})
    return list({row["url"]: row for row in found}.values())


def format_estimate(found: dict[str, Any]) -> list[str]:
    """The plan for a person to read."""
    threads = format_count(found["threads"], "thread")
    where = f"{found['jobs']} at a time on {found['device']} ({threads})"
    out = [
        f"{found['suite']}, split {found['split']}: {format_count(found['units'], 'unit')}, {where}"
    ]
    domain = DOMAINS[found["domain"]]
    for task in dict.fromkeys(row["task"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["task"] == task]
        absent = "" if rows[0]["data_here"] else "; data not here"
        for row in (row for row in rows if row["method"] != "baseline"):
            what = f"{row['model']} ({row['method']}) × {row['units']}: {_size(row, domain.units)}"
            if row.get("seconds") is not None:
                choice, n = row["choice_seconds"], row["units"]
                times = row["seconds"] - choice, choice * n, row["seconds"] * n
                each, choosing, in_all = map(format_duration, times)
                steps = f"{row['steps']:,} steps, " if row["steps"] else ""
                heads = f" and {choosing} for the choice of heads and settings" if choice else ""
                what += f"; {steps}{each} each{heads}, {in_all} in all, "
                what += f"{row['memory_bytes'] / 1e9:.2f} GB"
            out.append(f"  {task} · {what}{absent}")
        baselines = [row for row in rows if row["method"] == "baseline"]
        if baselines:
            names = ", ".join(row["model"] for row in baselines)
            first = baselines[0]
            what = f"{names} (baselines) × {first['units']}: {_size(first, domain.size_units)}"
            out.append(f"  {task} · {what}; seconds to minutes each{absent}")
    out.append(
        f"time     about {format_duration(found['seconds'])}, baselines not counted "
        f"({format_duration(found['cpu_seconds'])} one after another)"
    )
    out.append(
        f"memory   about {found['memory_bytes'] / 1e9:.2f} GB beyond the data and PyTorch itself"
    )
    what = "" if found["keep"] == "none" else ", with weights for predict (--no-keep: without)"
    out.append(f"disk     about {found['disk_bytes'] / 1e6:.1f} MB{what}")
    groups: dict[str, list[str]] = {}
    for row in found["downloads"]:
        what = row["what"] if row["what"].startswith("genome") else row["what"].split()[0]
        groups.setdefault(what, []).append(row["url"])
    for what, urls in groups.items():
        more = f" and {len(urls) - 1} more files" if len(urls) > 1 else ""
        out.append(f"fetch    {what}: {urls[0]}{more}")
    return out if groups else [*out, "fetch    nothing"]


def _size(row: dict[str, Any], unit: str) -> str:
    if row["n_train"]:
        return f"{row['n_train']:,} + {row['n_test']:,} examples of {row['length']:,} {unit}"
    return "size not known"
