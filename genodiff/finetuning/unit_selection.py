"""Select a saved unit by path: the unit's own folder, or a sweep's folder and a choice."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import CheckpointError, UsageError, did_you_mean, format_count
from genodiff.finetuning.predictor_files import (
    PredictorCard,
    UnitName,
    can_keep,
    read_predictor,
)
from genodiff.finetuning.unit import read_results
from genodiff.finetuning.unit_files import PREDICTOR, RESULT, RESUME, UNITS, check_fitted

_OPTIONS = {
    "task": "--task NAME",
    "model": "--model NAME",
    "method": "--method NAME",
    "setting": "--setting NAME",
    "seed": "--seed N, or --ensemble for the mean of the seeds",
}
_AGAIN = "give the same `genodiff finetune` command with --keep-weights"


class UnitChoice(NamedTuple):
    """The properties that the unit must have; None allows any value."""

    task: str | None = None
    model: str | None = None
    method: str | None = None
    setting: str | None = None
    seed: int | None = None


def find_units(
    path: str | Path, choice: UnitChoice = UnitChoice(), *, all_seeds: bool = False
) -> list[Path]:
    """Return the folder of the selected unit or, with `all_seeds`, of each of its seeds.

    Raises `UsageError`, listing the saved units, if several or none match, and `CheckpointError` if
    none was saved.
    """
    path = check_fitted(path)
    if (path / PREDICTOR).exists():
        found = {path: read_predictor(path)}
    elif (path / RESULT).exists():
        raise CheckpointError("holds no saved weights", file=path, fix=_AGAIN)
    else:
        found = _read_saved(path)
    chosen = dict(found)
    for name in UnitChoice._fields:
        wanted = getattr(choice, name)
        if wanted is None:
            continue
        known = sorted({str(getattr(card.unit, name)) for card in chosen.values()})
        chosen = {p: card for p, card in chosen.items() if getattr(card.unit, name) == wanted}
        if not chosen:
            near = did_you_mean(str(wanted), known)
            listed = f"known: {', '.join(known)}" if name == "seed" else near
            raise UsageError(f"no {name} '{wanted}' is saved here", file=path, fix=listed)
    missing = _find_missing([card.unit for card in chosen.values()], all_seeds)
    if missing:
        units = _list_units(chosen.values(), with_setting="setting" in missing)
        what = f"holds {len(chosen)} fitted models: {units}"
        fix = f"give {' and '.join(_OPTIONS[name] for name in missing)}"
        raise UsageError(what, file=path, fix=fix)
    return [p for p, card in sorted(chosen.items(), key=lambda item: item[1].unit.seed)]


def _find_missing(units: list[UnitName], all_seeds: bool) -> list[str]:
    """Find options, in the order of `UnitChoice`, that together single out one unit."""
    found: list[str] = []
    for name in UnitChoice._fields:
        groups: dict[tuple[Any, ...], set[Any]] = {}
        for unit in units:
            key = tuple(getattr(unit, earlier) for earlier in found)
            groups.setdefault(key, set()).add(getattr(unit, name))
        if any(len(values) > 1 for values in groups.values()):
            found.append(name)
    return [name for name in found if not (all_seeds and name == "seed")]


def _read_saved(path: Path) -> dict[Path, PredictorCard]:
    units = sorted(p.parent for p in (path / UNITS).glob(f"*/{PREDICTOR}"))
    if units:
        return {unit: read_predictor(unit) for unit in units}
    rows = read_results(path)
    begun = sum(not (unit / RESULT).exists() for unit in (path / UNITS).glob("*/"))
    if begun:
        what = f"was interrupted: {format_count(begun, 'fit')} begun, and no model is saved yet"
        raise CheckpointError(what, file=path, fix=RESUME)
    if rows and not any(can_keep(row.get("method", ""), row["model"]) for row in rows):
        names = ", ".join(dict.fromkeys(str(row["model"]) for row in rows))
        what = f"holds only baselines that cannot be saved ({names})"
        raise CheckpointError(what, file=path, fix="fine-tune a network, cnn or kmer-lr")
    raise CheckpointError("holds no saved weights", file=path, fix=_AGAIN)


def _list_units(cards: Iterable[PredictorCard], *, with_setting: bool) -> str:
    """List each task and model with its seeds."""
    seeds: dict[str, list[int]] = {}
    for card in cards:
        unit = card.unit
        how = "" if unit.method in ("full", "baseline") else f" ({unit.method})"
        how += f" with setting '{unit.setting}'" if with_setting else ""
        seeds.setdefault(f"{unit.task} {unit.model}{how}", []).append(unit.seed)
    named = [
        f"{name} seed{'s' * (len(numbers) > 1)} {', '.join(map(str, sorted(numbers)))}"
        for name, numbers in sorted(seeds.items())
    ]
    return "; ".join(named[:8]) + (f"; and {len(named) - 8} more" if len(named) > 8 else "")
