"""The evaluations beside the headline's: of the run's own data, and of other data."""

from typing import Any

from genodiff.reports.blocks import format_interval
from genodiff.reports.evaluation import Evaluation
from genodiff.reports.findings import list_evaluation_findings
from genodiff.reports.folder import RunParts
from genodiff.statistics.reasons import TOO_FEW

_OWN = "Other evaluations of the run's own data"
_FOREIGN = "On other data"


def list_other_tables(folder: RunParts) -> list[dict[str, Any]]:
    """Title and rows of each table; other data never stand in a table with the run's own."""
    rows: dict[str, list[dict[str, Any]]] = {_OWN: [], _FOREIGN: []}
    for name, e in folder.evaluations.items():
        if name != folder.headline:
            rows[_OWN if folder.is_own(name) else _FOREIGN].append(_row(name, e, folder.weights))
    return [{"title": title, "rows": found} for title, found in rows.items() if found]


def _row(name: str, e: Evaluation, weights: str) -> dict[str, Any]:
    best = e.best_line()
    return {
        "name": name,
        "scored": f"{e.tokens:,}",
        "windows": _windows(e),
        "bits": f"{'=' if e.figure == 'exact' else '≤'} {e.bits_per_base:.3f}",
        "interval": format_interval(e.ci95_bits) or TOO_FEW,
        "best": "" if best is None else f"{best.bits:.3f} ({best.kind.title})",
        "notes": " ".join(_notes(e, weights)),
    }


def _windows(e: Evaluation) -> str:
    if e.windows is None or e.windows_total is None:
        return ""
    again = f", {e.repeats} masks each" if e.repeats and e.repeats > 1 else ""
    return f"{e.windows:,} of {e.windows_total:,}{again}"


def _notes(e: Evaluation, weights: str) -> list[str]:
    said = [finding.text for finding in list_evaluation_findings(e)]
    if e.checkpoint and weights and not weights.startswith(e.checkpoint):
        step = "" if e.step is None else f" (step {e.step:,})"
        said.append(f"Made from other weights than model.safetensors{step}.")
    return said
