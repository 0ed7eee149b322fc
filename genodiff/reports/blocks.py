"""The parts of the page as plain rows and sentences, with their digits. No HTML, no files."""

import math
import shlex
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from genodiff import domain
from genodiff.alphabet import DNA
from genodiff.quality.scorecard import Summary
from genodiff.reports.comparison import Comparison
from genodiff.reports.evaluation import BestLine, Evaluation, Group
from genodiff.reports.figures import BitsLine, Series
from genodiff.reports.findings import BASES, measure_gap_closed
from genodiff.reports.folder import RunParts, SampleRecord, dump
from genodiff.statistics.seeds import TOO_FEW
from genodiff.vocabulary import BYTES

MOST_CONTIGS = 40
MOST_SAMPLES = 4
MOST_BASES = 1200
MOST_SESSIONS = 4
_LN2 = math.log(2)
_REGIONS = {
    "unique": "windows that share no {k}‑mer with the train split, on either strand",
    "touched": "windows with less than a quarter of their bases in shared {k}‑mers",
    "repeat": "windows with a quarter or more of their bases in shared {k}‑mers",
    "upper_case": "bases outside soft-masked repeats",
    "soft_masked": "bases in lower case in the reference: repeats",
}
_WHAT = {
    "uniform": "four equal letters",
    "composition": "single-base frequencies of the train split",
    "model": "this model: an upper bound on its −log₂ p",
    "source": "the true process that wrote the genome: no model can be better on average",
}

_WHAT_OF_TEXT = _WHAT | {
    "uniform": "all tokens of the vocabulary equally likely",
    "composition": "frequencies of single tokens in the train split",
    "source": "",
}


def list_commands(folder: RunParts) -> dict[str, str]:
    """The commands that make what a run lacks."""
    kind = folder.domain
    run, samples = (shlex.quote(str(path)) for path in (folder.path, folder.path / kind.samples))
    recipe = str(folder.config.get("recipe") or "RECIPE")
    return {
        "train": f"genodiff train {shlex.quote(recipe)} --out {run}",
        "eval": f"genodiff eval {run}",
        "sample": f"genodiff sample --checkpoint {run} {kind.output_flag} {samples}"
        + " --n 64" * (kind is domain.DNA),
    }


def subtitle(folder: RunParts) -> str:
    """Recipe and network in a few words."""
    parts = [str(folder.config.get("recipe") or "")]
    if folder.config.get("fasta"):
        parts.append(Path(str(folder.config["fasta"])).name)
    if folder.settings is not None:
        network = folder.settings.backbone
        shape = f"{network.kind} {network.d_model} × {network.n_layer}"
        parts.append(folder.settings.preset or shape)
        size = ((folder.model or {}).get("alphabet") or {}).get("padded_size")
        size = size if isinstance(size, int) else BYTES.padded_size
        rows = DNA.padded_size if folder.domain is domain.DNA else size
        parts.append(f"{network.n_parameters(rows):,} parameters")
        parts.append(f"windows of {folder.settings.data.seq_len:,} {folder.settings.unit}s")
    return " · ".join(p for p in parts if p)


def format_interval(pair: tuple[float, float] | None, digits: int = 3) -> str:
    """`1.401 to 1.423`, or nothing."""
    return "" if pair is None else f"{pair[0]:.{digits}f} to {pair[1]:.{digits}f}"


def list_lines(e: Evaluation) -> list[BitsLine]:
    """The lines of the number line, from the worst to the best that is possible."""
    found = [BitsLine("uniform", "uniform", e.uniform_bits)]
    markov = e.markov()
    if 0 in markov:
        found.append(BitsLine("composition", "order 0", markov[0]))
    if (best := e.best_line()) is not None:
        found.append(BitsLine("markov", best.kind.title, best.bits))
    low, high = e.ci95_bits if e.ci95_bits is not None else (None, None)
    found.append(BitsLine("model", "this model", e.bits_per_base, low, high))
    if e.source_bits is not None:
        found.append(BitsLine("source", "source", e.source_bits))
    return found


def list_line_rows(e: Evaluation, shown: list[BitsLine]) -> list[dict[str, str]]:
    """The table under the number line."""
    pairs = {"model": e.ci95_bits, "source": e.source_ci95_bits}
    best = e.best_line()
    of_line = {} if best is None else {"markov": best.kind.what}
    what = (_WHAT_OF_TEXT if e.unit == "byte" else _WHAT) | of_line
    return [
        {
            "role": x.role,
            "name": x.name,
            "bits": f"{x.bits:.4f}",
            "perplexity": f"{2**x.bits:.3f}",
            "interval": format_interval(pairs.get(x.role), 4),
            "what": what[x.role],
        }
        for x in shown
    ]


def make_headline(e: Evaluation, with_memory: Evaluation | None = None) -> dict[str, str]:
    """The first thing a reader sees: of the network, and of the network with its memory."""
    size = f"{e.tokens:,} {e.unit}s"
    size += "" if e.windows is None else f" in {e.windows:,} windows"
    markov, share = e.markov(), measure_gap_closed(e)
    at_most = "" if e.figure == "exact" else "at most "
    perplexity = f"perplexity {at_most}{e.perplexity:.3f}"
    if e.token_perplexity is not None:
        perplexity = f"perplexity per token {at_most}{e.token_perplexity:.2f}"
    said = f"Measured on {size} of the held-out {e.split} split; {perplexity}."
    if share is not None and e.source_bits is not None:
        said += (
            f" That is {share:.0%} of the way from composition alone ({markov[0]:.3f} bits) to the "
            f"source itself ({e.source_bits:.3f} bits), which no model can beat on average."
        )
    elif (best := e.best_line()) is not None:
        said += f" {_beside(e, best)}"
    said += "" if e.order is None else f" {e.order.tell()}"
    said += "" if with_memory is None else f" {_tell_memory(with_memory)}"
    caption = f"Bits per {e.unit} on the same held-out {e.unit}s; further left is better."
    if e.ci95_bits is not None:
        caption += (
            " The line through the model is its 95 % interval (mask draws and the choice of "
            "windows)."
        )
    if e.source_bits is not None:
        caption += " Values left of the source are impossible on average."
    return {
        "bits": f"{e.bits_per_base:.3f}", "interval": format_interval(e.ci95_bits),
        "sentence": said, "line_caption": caption,
        "split": e.split, "size": size, "sign": "" if e.figure == "exact" else ", at most",
    }  # fmt: skip


def _tell_memory(e: Evaluation) -> str:
    """The figure with a memory of the training genome, beside the network alone."""
    windows = "" if e.windows is None else f" ({e.windows:,} windows)"
    said = f"With retrieval from its training genome it has at most {e.bits_per_base:.3f} bits"
    alone = e.without_memory
    if alone is None:
        return f"{said}{windows}."
    gap = alone.minus_model_bits
    ends = "" if gap is None or gap.ci95 is None else f", 95 % interval {format_interval(gap.ci95)}"
    gain = f"retrieval gains {alone.bits - e.bits_per_base:.3f}{ends}"
    return f"{said}, alone {alone.bits:.3f} on the same masks{windows}: {gain}."


def _beside(e: Evaluation, line: BestLine) -> str:
    """How far the model is from a counted line; the interval has the direction of that figure."""
    better = line.bits - e.bits_per_base
    pair = None if line.gap is None else line.gap.ci95
    if pair is not None and better < 0:
        pair = (-pair[1], -pair[0])
    sure = "" if pair is None else f"; paired 95 % interval {format_interval(pair)}"
    return (
        f"It is {abs(better):.3f} bits {'below' if better >= 0 else 'above'} {line.kind.named} "
        f"({line.bits:.3f} bits{sure}): {line.kind.what}."
    )


def read_validations(folder: RunParts) -> list[tuple[float, float, float]]:
    """(step, bits, half-width of the interval) of each validation."""
    m = folder.metrics or {}
    steps = m.get("step", [])
    bits, half = (m.get(name, [math.nan] * len(steps)) for name in ("valid_bits", "valid_ci"))
    return [row for row in zip(steps, bits, half, strict=True) if math.isfinite(row[1])]


def describe_training(folder: RunParts) -> str:
    """How long and how fast, in one line."""
    m = folder.metrics or {}
    last = {
        name: next((x for x in reversed(column) if math.isfinite(x)), None)
        for name, column in m.items()
    }
    step, tokens, seconds = (last.get(name) for name in ("step", "tokens", "seconds"))
    parts = [
        "" if step is None else f"{step:,.0f} steps",
        "" if tokens is None else f"{tokens:,.0f} tokens",
        "" if seconds is None else describe_duration(seconds),
        f"{tokens / seconds:,.0f} tokens/s" if tokens and seconds and seconds > 0 else "",
    ]
    return " · ".join(filter(None, parts))


def describe_duration(seconds: float) -> str:
    """Seconds, minutes or hours as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def read_curve(e: Evaluation) -> list[tuple[float, float, float]]:
    """(mask rate, bits, half-width of a 95 % interval) of each bin that has a figure."""
    return [
        ((p.rate_lo + p.rate_hi) / 2, p.nats / _LN2, 1.96 * (p.se or 0.0) / _LN2)
        for p in e.curve
        if p.nats is not None
    ]


def _group_row(name: str, g: Group, what: str = "") -> dict[str, str]:
    markov = {
        int(k): b for k, b in (g.markov_bits or {}).items() if b is not None and k.isdecimal()
    }
    return {
        "name": name, "what": what, "tokens": f"{g.tokens:,}",
        "bits": "" if g.bits_per_base is None else f"{g.bits_per_base:.3f}",
        "interval": format_interval(g.ci95_bits) or TOO_FEW,
        "perplexity": "" if g.perplexity is None else f"{g.perplexity:.3f}",
        "zero": f"{markov[0]:.3f}" if 0 in markov else "",
        "markov": f"{min(markov.values()):.3f}" if markov else "",
    }  # fmt: skip


def list_region_rows(e: Evaluation) -> list[dict[str, str]]:
    """Bases by class; a class without bases is left out."""
    return [
        _group_row(name.replace("_", " "), g, _REGIONS.get(name, "").format(k=e.repeat_kmer or 24))
        for name, g in e.regions.items()
        if g is not None and g.tokens
    ]


def describe_soft_mask(e: Evaluation) -> str:
    """One sentence about the weights of soft-masked bases; empty where that is not recorded."""
    soft = e.soft_mask
    if soft is None:
        return ""
    if not soft.bases:
        return f"No soft-masked (lower-case) bases in the evaluated part of {e.split}."
    trained = "an unknown weight" if soft.trained_weight is None else f"{soft.trained_weight:g}"
    return (
        f"Soft-masked (lower-case) bases weigh {trained} in training and {soft.scored_weight} in "
        f"this evaluation; {soft.bases:,} of them are in the evaluated windows."
    )


def list_contig_rows(e: Evaluation) -> list[dict[str, str]]:
    """The contigs with the most bases."""
    scored = [(name, g) for name, g in e.contigs.items() if g is not None]
    return [
        _group_row(name, g)
        for name, g in sorted(scored, key=lambda item: -item[1].tokens)[:MOST_CONTIGS]
    ]


def sample(s: SampleRecord, kind: domain.Domain = domain.DNA) -> dict[str, Any]:
    """A record's title, its first bases as runs of one letter (class, text), and the rest."""
    shown, title, about = s.sequence[:MOST_BASES], s.name, s.description
    left = len(s.sequence) - len(shown)
    if kind is domain.TEXT:
        runs = [("text", shown)]
    else:
        groups = groupby(shown, key=lambda c: c.upper() if c in BASES else "N")
        runs = [(letter, "".join(run)) for letter, run in groups]
        title = about if about.startswith(title) else f"{title} {about}".strip()
    return {"title": title, "runs": runs, "left": f"{left:,}" if left else ""}


def make_series(comparison: Comparison, what: Literal["gc", "homopolymers"]) -> list[Series]:
    """One figure of each set: real first, so that the others are drawn over it."""
    card, named = comparison.card, {"markov": comparison.markov_name}
    sets: dict[Any, Summary | None] = {
        "real": card.real, "markov": card.markov, "samples": card.samples,
    }  # fmt: skip
    return [
        Series(role, named.get(role, role), getattr(one, what))
        for role, one in sets.items()
        if one is not None
    ]


def make_card(comparison: Comparison) -> dict[str, Any]:
    """The scorecard as a sentence and two tables."""
    c, name = comparison.card, comparison.markov_name
    sets = {"samples": c.samples, **({name: c.markov} if c.markov is not None else {})}
    sets["real"] = c.real
    rows = [
        ("sequences", [f"{s.n:,}" for s in sets.values()]),
        ("bases", [f"{s.bases:,}" for s in sets.values()]),
        ("length", [_lengths(s.lengths) for s in sets.values()]),
        ("GC", [f"{s.gc_mean:.2%}" for s in sets.values()]),
        ("CpG observed / expected", [f"{s.cpg:.3f}" for s in sets.values()]),
        *comparison.extra,
    ]
    markov = c.js_markov or [math.nan] * len(c.kmer_sizes)
    distances = [
        {"k": k, "samples": f"{a:.4f}", "markov": f"{b:.4f}", "floor": f"{f:.4f}"}
        for k, a, b, f in zip(c.kmer_sizes, c.js_samples, markov, c.js_floor, strict=True)
    ]
    return {
        "sentence": comparison.sentence, "has_markov": c.markov is not None,
        "distances": distances, "rows": rows, "columns": list(sets),
    }  # fmt: skip


def _lengths(lengths: list[int]) -> str:
    ends = sorted({min(lengths, default=0), max(lengths, default=0)})
    return " to ".join(f"{n:,}" for n in ends) if lengths else ""


FactTable = tuple[str, list[tuple[str, str]]]
"""The name of a table of facts, and its rows."""


def list_provenance(
    found: dict[str, Any] | None, windows: list[tuple[str, str]]
) -> list[FactTable]:
    """provenance.json as tables: plain values, and a table for each object in it.

    The last table says what was left out of the splits.
    """
    found = found or {}
    plain = [(_name(k), dump(v)) for k, v in found.items() if not _tables(k, v)]
    parts = [block for k, v in found.items() for block in _tables(k, v)]
    return [one for one in (("run", plain), *parts, ("windows", windows)) if one[1]]


def _tables(key: str, value: object) -> list[FactTable]:
    """An object as one table, a list of objects as one each; any other value as none."""
    if isinstance(value, dict):
        rows = [(_name(k), _cell(k, v)) for k, v in value.items()]
        return [(_name(key), rows)] if rows else []
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        name = _name(key).removesuffix("s")
        return [
            (
                f"{name} {i}" if len(value) > 1 else name,
                [(_name(k), _cell(k, x)) for k, x in v.items() if k != "host"],
            )
            for i, v in list(enumerate(value, 1))[-MOST_SESSIONS:]
        ]
    return []


def _name(key: object) -> str:
    return str(key).replace("_", " ")


def _cell(key: str, value: object) -> str:
    if key == "argv" and isinstance(value, list):
        return shlex.join(str(word) for word in value)
    if isinstance(value, dict):
        return ", ".join(f"{k} {dump(v)}" for k, v in value.items())
    return dump(value)
