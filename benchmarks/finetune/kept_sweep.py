"""A sweep without its weights, as one file in the tree: rows, choices and predictions.

From it the tables, their intervals and their comparisons are made again on any machine, and a sweep
that was cut off goes on elsewhere, since a unit that has its row is not run again.
"""

import io
import json
import shutil
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from commands import nameless

from genodiff.finetuning.results import FILE
from genodiff.finetuning.sweep import SESSIONS
from genodiff.finetuning.unit import TEST, UNITS
from genodiff.runs.sealed_files import encode_tensors, read_tensors

WEIGHTS = ("model.safetensors", "state.safetensors")
"""What stays on the machine that fitted. A trial's predictions travel: without them a choice that
goes on elsewhere could not tell noise from a difference."""


MANY, KEPT_BITS = 10_000, 10
"""Of more test examples than `MANY`, predictions keep so many bits of their mantissa in an archive:
noise of float32 does not shrink. They are cut towards 0, so the larger of two chances stays so."""


def pack_sweep(sweep: Path, archive: Path) -> int:
    """Write `archive` (.tar.xz), the same bytes for the same sweep; returns the number of files."""
    paths = sorted(p for p in sweep.rglob("*") if p.is_file() and _is_kept(p, sweep))
    part = archive.with_name(archive.name + ".part")
    with tarfile.open(part, "w:xz", preset=9) as file:
        for path in paths:
            about = tarfile.TarInfo(path.relative_to(sweep).as_posix())
            content = shorten_predictions(path) if path.name == TEST else path.read_bytes()
            about.size, about.mode = len(content), 0o644
            file.addfile(about, io.BytesIO(content))
    part.replace(archive)
    return len(paths)


def shorten_predictions(path: Path) -> bytes:
    """The content of a file of predictions, with fewer bits where there are many of them."""
    tensors = read_tensors(path)
    if len(tensors["predicted"]) <= MANY:
        return path.read_bytes()
    bits = tensors["predicted"].float().contiguous().view(torch.int32)
    cut = bits & ~((1 << (23 - KEPT_BITS)) - 1)
    return encode_tensors(tensors | {"predicted": cut.view(torch.float32)})


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
        elif path.name in ("sessions.json", "tasks.json"):
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
