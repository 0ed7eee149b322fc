"""Several training runs on one page: curves, bounds, and what differs between their settings.

Nothing is computed anew. Bounds of different runs stand in one table with their own intervals; what
pairs their windows is `genodiff compare`.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from genodiff.errors import printable
from genodiff.reports import blocks
from genodiff.reports.folder import RunParts, dump
from genodiff.reports.runs_figures import Axis, RunCurve, draw_runs
from genodiff.reports.svg import draw_both_widths
from genodiff.reports.template import render_template
from genodiff.statistics.reasons import TOO_FEW
from genodiff.version import __version__

_NOT_SETTINGS = ("out",)


def name_runs(paths: Sequence[Path]) -> list[str]:
    """A name for each run: its folder's, with as many folders above it as make it the only one."""
    parts = [path.resolve().parts for path in paths]
    names = [""] * len(parts)
    for i, own in enumerate(parts):
        for n in range(1, len(own) + 1):
            names[i] = printable("/".join(own[-n:]))
            if all(other[-n:] != own[-n:] for j, other in enumerate(parts) if j != i):
                break
    return names


def render_runs(runs: Sequence[RunParts]) -> str:
    """The page as text, of runs of one domain. It needs no network."""
    names = name_runs([run.path for run in runs])
    unit = runs[0].domain.size_unit
    figures: dict[str, Markup] = {}
    axes: tuple[Axis, ...] = ("tokens", "time")
    for axis in axes:
        curves = [read_curve(name, run, axis) for name, run in zip(names, runs, strict=True)]
        drawn = any(curve.at for curve in curves)
        figures[axis] = Markup(draw_both_widths(draw_runs, curves, axis, unit) if drawn else "")
    return render_template(
        "runs.html.jinja",
        {
            "version": __version__,
            "names": names,
            "unit": unit,
            "rows": [make_row(name, run) for name, run in zip(names, runs, strict=True)],
            "notes": list_notes(names, runs),
            "figures": figures,
            "settings": list_differences([run.config for run in runs]),
            "paths": " ".join(blocks.quote_path(run.path) for run in runs),
        },
    )


def read_curve(name: str, run: RunParts, axis: Axis) -> RunCurve:
    """Losses and validations of a run, by tokens or by seconds of training."""
    metrics = run.metrics or {}
    at = metrics.get("tokens" if axis == "tokens" else "seconds", [])
    if not at or "step" not in metrics or "loss_bits" not in metrics:
        return RunCurve(name, [], [], [])
    place = dict(zip(metrics["step"], at, strict=True))
    scale = 1.0 if run.evaluation is None else run.evaluation.tokens_per_byte
    valid = [
        (place[step], scale * bits, scale * half)
        for step, bits, half in blocks.read_validations(run)
    ]
    return RunCurve(name, at, [scale * bits for bits in metrics["loss_bits"]], valid)


def make_row(name: str, run: RunParts) -> dict[str, str]:
    """What the table says of a run; a cell is empty where nothing is known."""
    valid = blocks.read_validations(run)
    e = run.evaluation
    session = ((run.provenance or {}).get("sessions") or [{}])[-1]
    commit = str(session.get("git") or "")[:12]
    last = ""
    if valid:
        half = f" ± {valid[-1][2]:.4f}" if math.isfinite(valid[-1][2]) else ""
        last = f"{valid[-1][1]:.4f}{half}"
    return {
        "name": name,
        "what": blocks.subtitle(run),
        "training": blocks.describe_training(run),
        "valid": last,
        "test": "not evaluated" if e is None else f"{e.bits_per_base:.4f}",
        "interval": "" if e is None else blocks.format_interval(e.ci95_bits, 4) or TOO_FEW,
        "commit": commit,
    }


def list_notes(names: Sequence[str], runs: Sequence[RunParts]) -> list[str]:
    """What stands against setting the figures side by side, and what could not be read."""
    notes = []
    data = [((run.provenance or {}).get("data") or {}).get("fingerprint") for run in runs]
    if len(set(data) - {None}) > 1:
        notes.append("The runs were trained on different data or splits: their bits are not of "
                     "the same bases.")  # fmt: skip
    tested = {
        (e.fingerprint, e.split, e.context, e.soft_masked, e.tokens)
        for run in runs
        if (e := run.evaluation) is not None
    }
    if len(tested) > 1:
        notes.append("The test figures are not of the same bases.")
    for name, run in zip(names, runs, strict=True):
        notes += [f"{name}: {trouble}" for trouble in run.troubles]
    return notes


def list_differences(configs: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Settings that are not the same in all runs, by their dotted names, as short text."""
    flat = [dict(_flatten(config)) for config in configs]
    keys = [key for config in flat for key in config]
    found = []
    for key in dict.fromkeys(keys):
        cells = [dump(config[key]) if key in config else "" for config in flat]
        if len(set(cells)) > 1 and key not in _NOT_SETTINGS:
            found.append((key, cells))
    return found


def _flatten(value: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, inner in value.items():
        name = f"{above}{key}"
        found += _flatten(inner, f"{name}.") if isinstance(inner, Mapping) else [(name, inner)]
    return found
