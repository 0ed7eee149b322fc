"""A run folder made of numbers, for the report's tests: no training, no network."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

CONFIG = """recipe: toy
seed: 1
data:
  seq_len: 256
backbone:
  kind: caduceus
  d_model: 64
  n_layer: 2
train:
  max_steps: 300
"""
DIGEST = "0123456789ab"


def part(bits: float, tokens: int) -> dict[str, Any]:
    size = {"tokens": tokens, "windows": tokens // 256}
    figures = {"nelbo_nats": bits * math.log(2), "bits_per_base": bits, "perplexity": 2**bits}
    markov = {"markov_bits": {"0": 1.99, "5": 1.62}, "markov_perplexity": {"0": 3.97, "5": 3.07}}
    return {**size, **figures, "ci95_bits": [bits - 0.02, bits + 0.02], **markov}


def evaluation(bits: float = 1.372, source: float | None = 1.214) -> dict[str, Any]:
    """One split of eval.json, as its schema has it."""
    about = {"split": "test", "seed": 1, "repeats": 1, "checkpoint": DIGEST, "step": 300}
    data = {"recipe": "toy", "fasta": None, "seq_len": 256, "windows": 391, "windows_total": 391}
    markov = [1.993, 1.985, 1.94, 1.88, 1.75, 1.65, 1.62, 1.618, 1.63]
    figures = {"nelbo_nats_total": 95_100.0, "se_bits": 0.005, "mask_se_bits": None}
    lines = {
        "uniform_bits": 2.0,
        "markov_bits": {str(k): b for k, b in enumerate(markov)},
        "markov_minus_model_bits": {"8": {"bits": 0.26, "ci95": [0.25, 0.27]}},
        "source_bits": source,
        "source_ci95_bits": None,
        "model_minus_source_bits": None,
    }
    if source is not None:
        gap = bits - source
        lines["source_ci95_bits"] = [source - 0.01, source + 0.01]
        lines["model_minus_source_bits"] = {"bits": gap, "ci95": [gap - 0.01, gap + 0.01]}
    none = {"tokens": 0, "windows": 0, "bits_per_base": None}
    parts = {
        "soft_masked": 1,
        "soft_mask": {"trained_weight": 0.1, "scored_weight": 1, "bases": 512},
        "contigs": {"toy7": part(1.37, 60_000), "toy8": part(1.375, 40_000)},
        "regions": {"unique": part(1.372, 99_000), "soft_masked": none},
        "repeat_kmer": 24,
        "repeat_share": 0.01,
    }
    curve = [
        {"rate_lo": i / 10, "rate_hi": (i + 1) / 10, "nats": 0.6 + i / 20, "se": 0.01, "n": 39}
        for i in range(9)
    ]
    curve.append({"rate_lo": 0.9, "rate_hi": 1.0, "nats": None, "se": None, "n": 0})
    made = {"seconds": 12.0, "device": "cpu", "created": "2026-11-21T00:00:00Z"}
    whole = part(bits, 100_000)
    return {**whole, **about, **data, **figures, **lines, **parts, "curve": curve, **made}


def metrics(n: int = 300) -> str:
    """metrics.csv of a run that went well."""
    rows = ["step,tokens,seconds,loss_bits,loss_hex,grad_norm,lr,valid_bits,valid_ci,tokens_per_s"]
    for step in range(1, n + 1):
        bits = 1.37 + 0.62 * math.exp(-step / 60) + 0.02 * math.sin(step * 2.3)
        valid = f"{1.37 + 0.6 * math.exp(-step / 60):.4f},0.02" if step % 100 == 0 else ","
        rows.append(
            f"{step},{step * 8192},{step * 0.2:.2f},{bits:.5f},{bits.hex()},1.0,0.002,{valid},40000"
        )
    return "\n".join(rows) + "\n"


def fasta(n: int = 6, length: int = 300, header: str = "length=300 seed=1") -> str:
    rng = np.random.default_rng(1)
    bases = np.array(list("ACGT"))
    return "".join(
        f">genodiff_{i + 1:06d} {header}\n{''.join(bases[rng.integers(0, 4, length)])}\n"
        for i in range(n)
    )


def parts() -> dict[str, str]:
    """File name → content of a complete run folder."""
    provenance = {"version": "0.1.0", "command": "genodiff demo", "versions": {"torch": "2.13.0"}}
    provenance["data"] = {"dropped": {"too much N": 3}}
    return {
        "config.yaml": CONFIG,
        "metrics.csv": metrics(),
        "eval.json": json.dumps({"test": evaluation()}),
        "samples.fa": fasta(),
        "samples.fa.json": json.dumps({"seed": 1, "checkpoint": DIGEST, "records": []}),
        "provenance.json": json.dumps(provenance),
        "model.json": json.dumps({"weights_sha256": DIGEST * 5 + "0123"}),
    }


def make_run(folder: Path, **changed: str | None) -> Path:
    """A run folder at `folder`; a keyword such as eval_json=None leaves that part out, a text
    replaces it.
    """
    folder.mkdir(parents=True)
    known = {key.replace(".", "_"): key for key in parts()}
    for name, text in (parts() | {known[k]: v for k, v in changed.items()}).items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    return folder
