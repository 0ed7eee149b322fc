"""Runs side by side: `genodiff.compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from genodiff.api.margin import check_margin
from genodiff.errors import UsageError, printable
from genodiff.evaluation.eval_options import EvalOptions
from genodiff.io.target import check_target
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_input, check_run, find_domain_of_run

_SPEC = (".yaml", ".yml")


@own_defaults()
def compare(
    runs: str | Path | Sequence[str | Path],
    *,
    fasta: str | Path | None = None,
    bed: str | Path | None = None,
    text: str | Path | None = None,
    split: Literal["test", "valid", "train", "all"] = "test",
    max_windows: int | None = None,
    repeats: int = 1,
    against: str | None = None,
    margin: float | None = None,
    tokens: int | None = None,
    seeds: Sequence[int] | None = None,
    out: str | Path | None = None,
    seed: int = 1,
    device: str = "auto",
    offline: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Two or more finished runs scored on the same bases, or the rows of a specification trained
    and scored; the results as plain values.

    `runs` are run folders, or one YAML file. Each row has bits per base (of text: per byte) with
    its interval, and its paired difference from the run `against` (default: the first); `pairs` has
    every two runs, with p values, Holm's correction and a verdict; runs are called equivalent only
    where their difference is shown to be within ±`margin` bits.

    Differences are paired by window. Runs of other lengths read the same bases in
    windows of their own; text of other tokens is refused. `tokens` and `seeds` are for a
    specification. `out` (default: under runs/) holds table.md, compare.html, results.json and the
    figures of all windows, so the same comparison again only reads; files there that genodiff did
    not write are replaced with `force` only. With `plan` nothing is scored
    or trained, and what it would take is returned. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.
    """
    check_margin(margin)
    paths = [Path(run) for run in ([runs] if isinstance(runs, str | Path) else runs)]
    specs = [path for path in paths if path.suffix.lower() in _SPEC]
    for file in (fasta, bed, text):
        check_input(file)
    if specs:
        if len(paths) > 1:
            what = f"{specs[0]} is a specification, and more is given"
            raise UsageError(what, fix="give one specification, or run folders only")
        given = {"bed": bed, "max_windows": max_windows, "against": against}
        _refuse(given, "is for finished runs", "write it into the specification")
        over = {
            name: str(Path(path).absolute())
            for name, path in (("fasta", fasta), ("text", text))
            if path is not None
        }
        over |= {} if tokens is None else {"tokens": tokens}  # type: ignore[dict-item]
        over |= {} if not seeds else {"seeds": list(seeds)}  # type: ignore[dict-item]
        folder = Path("runs") / paths[0].stem if out is None else Path(out)
        _check_folder(folder, (paths[0], fasta, text), force)
        return _compare_rows(paths[0], over, folder, margin, device, offline, plan)
    _refuse({"tokens": tokens, "seeds": seeds}, "is for a specification", "leave it out")
    paths = [check_run(path) for path in paths]
    names = _name_runs(paths)
    if against is not None and against not in names:
        raise UsageError(f"no run '{against}'", fix=f"give one of {', '.join(names)}")
    options = EvalOptions(
        split=split, fasta=_text(fasta), bed=_text(bed), text=_text(text), repeats=repeats,
        max_windows=max_windows, seed=seed, offline=offline,
    )  # fmt: skip
    options.check_domain(find_domain_of_run(paths[0]) or "dna")
    folder = Path("runs") / _name_folder(names) if out is None else Path(out)
    _check_folder(folder, (fasta, bed, text), force)
    return _compare_runs(
        dict(zip(names, paths, strict=True)), options, folder, against, margin, device, plan
    )


def _compare_runs(
    runs: dict[str, Path],
    options: EvalOptions,
    out: Path,
    against: str | None,
    margin: float | None,
    device: str,
    plan: bool,
) -> dict[str, Any]:
    device = choose_device(device)
    from genodiff.io.progress import ProgressDisplay
    from genodiff.studies.run_comparison import compare_runs, open_comparison, plan_comparison

    comparison = open_comparison(runs, options, device=device)
    if plan:
        return plan_comparison(comparison) | {"folder": str(out)}
    with ProgressDisplay() as display:
        found = compare_runs(
            comparison, out, against=against, margin=margin, progress=display.show_batches
        )
    return found | {"folder": str(out)}


def _compare_rows(
    file: Path,
    over: dict[str, Any],
    out: Path,
    margin: float | None,
    device: str,
    offline: bool,
    plan: bool,
) -> dict[str, Any]:
    device = choose_device(device)
    from genodiff.io.progress import ProgressDisplay
    from genodiff.studies.compare import compare_schedules, read_spec, run_comparison
    from genodiff.studies.compare import plan as plan_rows
    from genodiff.studies.compare_page import write_page
    from genodiff.training.estimate import estimate

    spec = read_spec(file, over)
    if plan:
        found = [
            {"name": row.name, "seed": seed, **estimate(config, out, device)}
            for row, seed, config in plan_rows(spec, file)
        ]
        seconds = sum(one["seconds"] or 0 for one in found)
        return {"runs": found, "seconds": seconds, "folder": str(out), "device": device}
    with ProgressDisplay() as display:
        entries = run_comparison(
            spec, file, out, device=device, offline=offline, progress=display.show_batches
        )
    rows = write_page(
        spec, entries, compare_schedules(spec, entries, device=device, offline=offline), out, margin
    )
    return {"title": spec.title, "rows": rows, "folder": str(out)}


def _name_runs(paths: Sequence[Path]) -> list[str]:
    """A name for each run: its folder's, or its path where two folders have one name.

    Raises `UsageError` for fewer than two runs, or one that stands twice.
    """
    if len(paths) < 2:
        what = "one run cannot be compared" if paths else "there is nothing to compare"
        raise UsageError(what, fix="give two runs or more, or a YAML file")
    places = [path.resolve() for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"{path} is given twice", fix="give different runs")
    names = [place.name for place in places]
    return [
        printable(path if names.count(name) > 1 else name)
        for path, name in zip(paths, names, strict=True)
    ]


def _name_folder(names: Sequence[str]) -> str:
    """The folder of a comparison under runs/: made of the names of its runs."""
    plain = [name.strip("/").replace("/", "-") for name in names]
    more = f"-and-{len(plain) - 3}-more" if len(plain) > 3 else ""
    return f"compare-{'-'.join(plain[:3])}{more}"


def _check_folder(out: Path, inputs: Sequence[str | Path | None], force: bool) -> None:
    for name in ("table.md", "compare.html", "results.json"):
        check_target(out / name, force=force, inputs=inputs)


def _refuse(given: dict[str, Any], why: str, fix: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')} {why}", fix=fix)


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)
