"""What a run will take: parameters, tokens, memory, time, files.

Reads no data, but the manifest of many genomes and the first blocks of a user's own file.
"""

import time
from pathlib import Path
from typing import Any

import torch

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import Backbone
from genodiff.data.genomes.mixing import describe_plan, plan_genomes
from genodiff.errors import format_count
from genodiff.io.input_file import count_letters
from genodiff.io.progress import format_duration
from genodiff.runs.checkpoint import list_steps
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import find_alphabet, find_recipe
from genodiff.runs.model import build_backbone, build_diffusion, build_objective
from genodiff.training.optimizer import adamw
from genodiff.training.settle import (
    count_footprint,
    measure_footprint,
    settle_config,
    spread_tokens,
)
from genodiff.training.teacher import SHOWN_EVERY
from genodiff.vocabulary import BYTES, TEXT8, Vocabulary

_FILES = (
    "config.yaml", "metrics.csv", "plan.json", "provenance.json", "checkpoints/",
    "model.safetensors", "model.json",
)  # fmt: skip
_PROBE_BASES = 8192
_PROBE_FLOP = 2e11  # of one measured step on a CPU: seconds, whatever the network
_LARGEST = 200_000_000
_MANY_PASSES = 100
"""Over the data: a plan with more of them says how many steps make these."""
_H100_FLOPS = 0.4 * 989e12
"""What training reaches of an H100's bf16 peak when it goes well: the yardstick of the line
"compute".
"""


def estimate(config: RunConfig, out: Path, device: str) -> dict[str, Any]:
    """The plan as plain values. Times come from a few real steps, memory from `measure_footprint`.

    What an objective's loss asks of the network twice, a reconstruction, counts twice.
    """
    asked, config = config.train.precision, settle_config(config, device, out)
    alphabet = find_alphabet(config)
    has_tokenizer = isinstance(alphabet, Vocabulary)
    parameters = config.backbone.n_parameters(alphabet.padded_size)
    rows = config.train.batch_size // config.train.accumulate
    tokens = config.train.batch_size * config.data.seq_len
    weights = 4 * parameters
    evaluations = build_objective(config, build_diffusion(config, alphabet)).evaluations
    found: dict[str, Any] = {
        "run": str(out),
        "recipe": config.recipe,
        "preset": config.preset,
        "parameters": parameters,
        "device": device,
        "threads": torch.get_num_threads(),
        "tokens_per_step": tokens,
        "evaluations_per_step": evaluations,
        "teacher": config.teacher,
        "steps": config.train.max_steps,
        "max_minutes": config.train.max_minutes,
        **dict.fromkeys(("tokens", "passes", "flop", "seconds_per_step", "seconds")),
        **dict.fromkeys(("memory_bytes", "gpu_memory_bytes")),
        "disk_bytes": (config.train.keep + 1) * 4 * weights + 2 * weights,
        "goes_on_from_step": next(iter(list_steps(out)), None),
        "files": list(_FILES),
    }
    if has_tokenizer:
        found["files"] += [] if alphabet in (BYTES, TEXT8) else ["tokenizer/"]
        found |= {
            "tokenizer": alphabet.name,
            "vocabulary_size": alphabet.size,
            "packing": config.data.packing,
        }
    if config.genomes is not None:
        recipe, share = find_recipe(config), config.data.temperature or 1.0
        found["genomes"] = plan_genomes(config.genomes, recipe, config.data.seq_len, share)
    if parameters <= _LARGEST:
        backbone = build_backbone(config, alphabet).to(device)
        reads = evaluations + (config.teacher is not None) / SHOWN_EVERY
        pace = reads * time_base(backbone, config, alphabet, device)
        found["seconds_per_step"] = pace * tokens
        footprint = measure_footprint(config, backbone, device)
        found["memory_bytes"] = footprint.count_bytes(rows)
    on_gpu = count_footprint(config, asked)
    if on_gpu is not None:
        found["gpu_memory_bytes"] = on_gpu.count_bytes(rows)
    steps, minutes = config.train.max_steps, config.train.max_minutes
    if found["seconds_per_step"] and minutes is not None:
        fitting = max(1, int(60 * minutes / found["seconds_per_step"]))
        steps = fitting if steps is None else min(steps, fitting)
    if steps is not None:
        found["steps"], found["tokens"] = steps, steps * tokens
        if config.fasta is not None and Path(config.fasta).is_file():
            found["passes"] = found["tokens"] / max(1, count_letters(config.fasta))
        found["flop"] = 6.0 * parameters * steps * tokens * evaluations
        if found["seconds_per_step"]:
            found["seconds"] = steps * found["seconds_per_step"]
    return found


def time_base(backbone: Backbone, config: RunConfig, alphabet: Alphabet, device: str) -> float:
    """Seconds of forward, backward and update per base.

    The faster of two small steps counts, after one to warm up.
    """
    size = sum(p.numel() for p in backbone.parameters())
    kind = torch.device(device).type
    fits = max(64, min(_PROBE_BASES, int(_PROBE_FLOP / (6 * size))))
    probe = _PROBE_BASES if kind == "cuda" else fits
    length = min(config.data.seq_len, probe)
    rows = max(1, min(config.train.batch_size // config.train.accumulate, probe // length))
    x = spread_tokens(alphabet, rows, length, device)
    optimizer = adamw(backbone, config.optim)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        with torch.autocast(kind, torch.bfloat16, enabled=config.train.precision == "bf16"):
            backbone(x).float().logsumexp(-1).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if kind == "cuda":
            torch.cuda.synchronize(device)
        took.append(time.perf_counter() - began)
    return min(took[1:]) / (rows * length)


def format_estimate(found: dict[str, Any]) -> list[str]:
    """The plan for a person to read."""
    keys = ("goes_on_from_step", "tokens", "seconds", "memory_bytes")
    step, total, seconds, memory = (found[key] for key in keys)
    on_gpu, passes = found["gpu_memory_bytes"], found["passes"]
    threads = format_count(found["threads"], "thread")
    left_out = "validation and checkpoints"
    left_out = f"the teacher, {left_out}" if found["teacher"] else left_out
    where = f"on {found['device']} ({threads}), without {left_out}"
    amounts = {
        "run folder": found["run"] + (f" (goes on from step {step})" if step else ""),
        "network": f"{found['preset'] or 'custom'}, {found['parameters']:,} parameters",
        "tokens": f"{found['tokens_per_step']:,} per step"
        + (f", {total:,} in all" if total else "")
        + (f": each base is read {passes:,.0f} times" if passes and passes >= 2 else ""),
        "steps": f"{found['steps']:,}" if found["steps"] else "as many as fit",
        "quicker": _advise(found["steps"], passes),
        "time": "not measured" if seconds is None else f"about {format_duration(seconds)} {where}",
        "compute": _compute(found["flop"], found["evaluations_per_step"]),
        "memory": "not measured"
        if memory is None
        else f"about {memory / 1e9:.2f} GB beyond PyTorch itself",
        "on a GPU": None if on_gpu is None else f"about {on_gpu / 1e9:.2f} GB of its memory",
        "disk": f"about {found['disk_bytes'] / 1e6:.1f} MB",
        "files": ", ".join(found["files"]),
    }
    if "tokenizer" in found:
        amounts["network"] += (
            f"; {found['tokenizer']} ({found['vocabulary_size']:,} tokens), {found['packing']}"
        )
    lines = [f"{name:11s} {value}" for name, value in amounts.items() if value is not None]
    if "genomes" in found:
        lines += ["genomes", *(f"  {line}" for line in describe_plan(found["genomes"]))]
    return lines


def _advise(steps: int | None, passes: float | None) -> str | None:
    if not steps or not passes or passes <= _MANY_PASSES:
        return None
    enough = max(1, round(steps * _MANY_PASSES / passes))
    text = f"--max-steps {enough}: each base is then read {_MANY_PASSES} times; predictions for "
    return f"{text}held-out sequence rarely improve after that"


def _compute(flop: float | None, evaluations: int) -> str:
    if flop is None:
        return "not known before the number of steps is"
    times = "6 × parameters × tokens" + (f" × {evaluations} evaluations" if evaluations > 1 else "")
    reached = flop / _H100_FLOPS
    took = "less than a second" if reached < 1 else f"about {format_duration(reached)}"
    text = f"{flop:.2g} floating-point operations ({times}): {took} of an H100"
    return f"{text}, a data-centre GPU, at 40 % of its peak"
