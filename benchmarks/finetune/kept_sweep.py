"""A sweep in the tree without its units: rows, choices, commands and estimates, some kilobytes.

From it tables and pictures are made again on any machine, and new tasks and lines join them.
Weights and predictions stay in OUT: a sweep that is to go on elsewhere is copied from there, and
`--join` puts it together with another. The predictions behind the tables of today stand in the
history, with them SUITE.md, HEADS.md and all intervals are worked out again:

    git show 5d2acd6:benchmarks/finetune/gue.tar.xz | tar xJf - -C runs/finetune/gue
"""

import io
import json
import shutil
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from commands import nameless

from genodiff.finetuning.sweep import SESSIONS
from genodiff.finetuning.unit import FILE, TEST, UNITS, read_results
from genodiff.reports.sweep_results import ModelResult, TaskResult, read_sweep
from genodiff.statistics.seeds import JointEstimate

ESTIMATES = "estimates.json"
"""In a sweep's folder: the estimates of lines and gaps, by the keys of their units."""
WEIGHTS = ("model.safetensors", "state.safetensors")
"""What stays on the machine that fitted, also where a sweep joins another."""


def pack_sweep(sweep: Path, archive: Path) -> int:
    """Write `archive` (.tar.xz), the same bytes for the same sweep; returns the number of files."""
    paths = sorted(p for p in sweep.rglob("*") if p.is_file() and _is_kept(p, sweep))
    paths = [path for path in paths if path.relative_to(sweep).parts[0] != UNITS]
    part = archive.with_name(archive.name + ".part")
    with tarfile.open(part, "w:xz", preset=9) as file:
        for path in paths:
            about = tarfile.TarInfo(path.relative_to(sweep).as_posix())
            content = path.read_bytes()
            about.size, about.mode = len(content), 0o644
            file.addfile(about, io.BytesIO(content))
    part.replace(archive)
    return len(paths)


def recall_panels(sweep: Path) -> list[TaskResult]:
    """The tasks of a sweep; where predictions are not there, with the estimates that were kept."""
    panels = read_sweep(sweep)
    found = {name_line(x): x.estimate for p in panels for x in p.lines if not x.ensemble}
    known = keep_estimates(sweep, found)
    return [
        panel._replace(
            lines=[
                line._replace(estimate=line.estimate or known.get(name_line(line)))
                for line in panel.lines
            ]
        )
        for panel in panels
    ]


def name_line(line: ModelResult) -> str:
    """The key of its estimate: those of its units."""
    return " ".join(row["key"] for row in line.rows)


def keep_estimates(
    sweep: Path, found: Mapping[str, JointEstimate | None]
) -> dict[str, JointEstimate]:
    """Write what is worked out now over what was kept; returns all that is known."""
    known = read_estimates(sweep) | {key: one for key, one in found.items() if one is not None}
    text = json.dumps({key: one._asdict() for key, one in known.items()}, indent=1)
    (sweep / ESTIMATES).write_text(text + "\n", encoding="utf-8")
    return known


def read_estimates(sweep: Path) -> dict[str, JointEstimate]:
    """The estimates that are kept, by their keys."""
    path = sweep / ESTIMATES
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        key: JointEstimate(**{**one, "parts": tuple(map(tuple, one["parts"]))})
        for key, one in kept.items()
    }


def has_predictions(sweep: Path) -> bool:
    """Whether the predictions of every row are there."""
    return all((sweep / UNITS / row["key"] / TEST).exists() for row in read_results(sweep))


def forget_places(sweep: Path, places: Mapping[str, Path | None]) -> None:
    """Name folders in the commands of a sweep (`OUT`, `DATA`) in place of this machine's."""
    path = sweep / SESSIONS
    if path.exists():
        text = nameless(path.read_text(encoding="utf-8"), places)
        path.write_text(text, encoding="utf-8")


def unpack_sweep(archive: Path, sweep: Path) -> None:
    """Put the files of `archive` where `sweep` lacks them."""
    with tarfile.open(archive) as file:
        for about in file.getmembers():
            if about.isfile() and not (sweep / about.name).exists():
                file.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.11.4 on
                file.extract(about, sweep)


def join_sweep(sweep: Path, other: Path) -> None:
    """Add to `sweep` what `other` did: other tasks or models, or the same ones chosen anew.

    Trials are told apart by their text. A unit that both have is taken from `other`, with its row;
    any other file that stands there stays.
    """
    for path in sorted(p for p in other.rglob("*") if p.is_file() and _is_kept(p, other)):
        to = sweep / path.relative_to(other)
        if not to.exists() or UNITS in to.parts:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
        elif path.suffix == ".jsonl":
            there = to.read_text(encoding="utf-8").splitlines()
            more = path.read_text(encoding="utf-8").splitlines()
            lines = dict.fromkeys(there + more)
            if path.name == FILE:
                lines = dict.fromkeys({json.loads(line)["key"]: line for line in lines}.values())
            to.write_text("\n".join(lines) + "\n", encoding="utf-8")
        elif path.name in ("sessions.json", "tasks.json", ESTIMATES):
            here, there = (json.loads(p.read_text(encoding="utf-8")) for p in (to, path))
            for key, value in there.items():
                if isinstance(value, list):
                    here[key] = here[key] + [v for v in value if v not in here[key]]
                else:
                    here.setdefault(key, value)
            to.write_text(json.dumps(here, indent=2) + "\n", encoding="utf-8")


def take_sweep(sweep: Path, out: Path, data: Path | None) -> None:
    """Add the sweep of the same name in another --out; what was chosen anew there takes over."""
    join_sweep(sweep, out / sweep.name)
    forget_places(sweep, {"OUT": out, "DATA": data})
    drop_superseded(sweep)


def drop_superseded(sweep: Path) -> int:
    """Take out the rows of a line that was chosen anew; returns how many.

    A line is a model with its method on one task and its data. It has several choices where a
    later sweep chose with a larger budget or more candidates. The choice with the newest row
    stands once it has as many seeds as any before it; until then all of them stand. Units without
    a row go with their rows. Trials stay: they say what was looked at.
    """
    path = sweep / FILE
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines: dict[Any, dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        what = tuple(row[name] for name in ("suite", "task", "split", "data", "model", "method"))
        lines.setdefault(what, {}).setdefault(_choice_of(row), []).append(row)
    dropped: set[str] = set()
    for choices in lines.values():
        newest = max(choices, key=lambda choice: max(row["created"] for row in choices[choice]))
        seeds = {choice: len({row["seed"] for row in of}) for choice, of in choices.items()}
        if seeds[newest] == max(seeds.values()):
            dropped |= {json.dumps(r) for c, of in choices.items() if c != newest for r in of}
    kept = [row for row in rows if json.dumps(row) not in dropped]
    path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    for key in {row["key"] for row in rows} - {row["key"] for row in kept}:
        shutil.rmtree(sweep / UNITS / key, ignore_errors=True)
    return len(rows) - len(kept)


def _choice_of(row: dict[str, Any]) -> str:
    """What a row's settings are and how they were chosen, as text."""
    return json.dumps([row.get("settings"), row.get("choices")], sort_keys=True)


def _is_kept(path: Path, sweep: Path) -> bool:
    inside = path.relative_to(sweep)
    hidden = any(part.startswith(".") for part in inside.parts)
    page = path.parent == sweep and path.suffix in (".html", ".md")  # written anew
    return (
        not (hidden or page) and path.name not in WEIGHTS and path.suffix not in (".html", ".part")
    )
