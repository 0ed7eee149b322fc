"""The ready models, and what is known of each: `genodiff.list_models`, `genodiff.show_model`.

All of it comes from the model's own files. FOLDER/facts.json holds tables, each with "title",
"note", "columns" and "rows"; a row has a "name" and "cells", of which one is a figure with its 95 %
interval [value, low, high], a figure alone [value], or null. A table of laws says "law": true: a
law is met where the whole interval is above 0.
"""

import json
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar

from safetensors import SafetensorError, safe_open

from genodiff.errors import CheckpointError, UsageError, did_you_mean
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import SPLITS, find_ready_model, list_ready_models

FACTS, _WEIGHTS, _CARD = "facts.json", "model.safetensors", "model.json"
_SEALED = (
    _CARD, _WEIGHTS, "config.yaml", "config.json", "tokenizer_config.json",
    "special_tokens_map.json", SPLITS,
)  # fmt: skip

Name = Annotated[
    str, Option("Name of a model, as printed by `genodiff models list`.", ("NAME",), is_word=True)
]


@verb(
    "models list",
    function="list_models",
    help="List the pretrained models: names, parameters, size, and training data.",
)
@dataclass(frozen=True, kw_only=True)
class ModelListRequest(Request[list[dict[str, Any]]]):
    """List the pretrained models, as `show_model` describes them, sorted by name.

    >>> [one["name"] for one in genodiff.list_models()]                # doctest: +SKIP
    ['ecoli', 'yeast']
    """

    json_indent: ClassVar[int | None] = 2

    def answer(self, *given: Any) -> list[dict[str, Any]]:
        return [describe_model(name, folder) for name, folder in list_ready_models().items()]

    def show(self, answer: Any) -> None:
        if not answer:
            print("no pretrained model found; set GENODIFF_MODELS to your folder")
        for one in answer:
            size = f"{one['parameters']:>11,} weights {one['bytes'] / 1e6:>6.1f} MB"
            print(f"{one['name']:<16}{size}  {one['facts'].get('about', one['preset'] or '')}")


@verb(
    "models show",
    function="show_model",
    help="Show one model: data, licence, results beside baselines, and limits.",
)
@dataclass(frozen=True, kw_only=True)
class ModelShowRequest(Request[dict[str, Any]]):
    """Describe a pretrained model: name, folder, size in bytes, parameters, kind, and facts.

    "facts" is the content of FOLDER/facts.json (`api/models.py`): training data, licence,
    tables of results, limits, and how the model was made; empty for a model without. Raises
    `UsageError` for an unknown name, suggesting similar ones, and `CheckpointError` for a damaged
    file.

    >>> genodiff.show_model("yeast")["parameters"]                     # doctest: +SKIP
    470702
    """

    json_indent: ClassVar[int | None] = 2

    name: Name = field(kw_only=False)

    def answer(self, *given: Any) -> dict[str, Any]:
        return describe_model(self.name, find_model(self.name))

    def show(self, answer: Any) -> None:
        print(format_facts(answer), end="")


@verb(
    "models path",
    function="",
    help="""
Print the folder of a model: for `AutoModelForMaskedLM.from_pretrained`, after `import genodiff.hf`,
or to copy.
""",
)
@dataclass(frozen=True, kw_only=True)
class ModelPathRequest(Request[Path]):
    """Print the folder of a pretrained model."""

    json_help: ClassVar[str] = ""

    name: Name = field(kw_only=False)

    def answer(self, *given: Any) -> Path:
        return find_model(self.name)

    def show(self, answer: Any) -> None:
        print(answer)


def find_model(name: str) -> Path:
    """The folder of a ready model. Raises `UsageError` for an unknown name, and `CheckpointError`
    where its facts name files that are not as they were written.
    """
    folder = find_ready_model(name)
    if folder is None:
        raise UsageError(f"no pretrained model '{name}'; {did_you_mean(name, list_ready_models())}")
    read_facts(folder)
    return folder


def describe_model(name: str, folder: Path) -> dict[str, Any]:
    """What `show_model` gives of a folder."""
    card, facts = _read(folder / _CARD), read_facts(folder)
    return {
        "name": name,
        "folder": str(folder),
        "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        "parameters": _count_weights(folder / _WEIGHTS),
        "domain": card.get("domain"),
        "preset": (card.get("config") or {}).get("preset"),
        "genodiff": card.get("genodiff"),
        "facts": facts,
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(held, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError) as fault:
        what = f"cannot be read: missing, truncated or corrupt ({str(fault)[:80]})"
        raise CheckpointError(what, file=path, fix="install genodiff again") from None
    return held


def seal_facts(facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The facts of a model with the sha256 of its other files and of themselves, to be kept."""
    files = {name: sha256_file(folder / name) for name in _SEALED if (folder / name).is_file()}
    body = facts | {"files": files}
    return body | {"seal": sha256_json(body)}


def read_facts(folder: Path) -> dict[str, Any]:
    """What FOLDER/facts.json says, empty where there is none; it and the files that it names are
    as they were written. Raises `CheckpointError`.
    """
    path = folder / FACTS
    if not path.exists():
        return {}
    facts = _read(path)
    body = {key: value for key, value in facts.items() if key != "seal"}
    changed = [path] if "seal" in facts and facts["seal"] != sha256_json(body) else []
    files = body.pop("files", None) or {}
    for path in (folder / name for name in _SEALED if name in files):
        if not path.is_file() or sha256_file(path) != files[path.name]:
            changed.append(path)
    if changed:
        what = "was changed after it was written, or is missing (checksum differs)"
        raise CheckpointError(what, file=changed[0], fix="install genodiff again")
    return body


def _count_weights(path: Path) -> int:
    """The numbers in a safetensors file, from its header."""
    try:
        with safe_open(path, framework="np") as file:
            return sum(prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (OSError, SafetensorError):
        what = "is no safetensors file: missing, truncated or corrupt"
        raise CheckpointError(what, file=path, fix="install genodiff again") from None


Cell = list[float] | None
_USE = (
    'Use it by name: `--model {name}`, `genodiff.load("{name}")`. With transformers, after `import '
    "genodiff.hf`: `AutoModelForMaskedLM.from_pretrained(FOLDER)`, where FOLDER is the output of "
    "`genodiff models path {name}`."
)


def format_facts(told: dict[str, Any]) -> str:
    """Format the output of `show_model` as a Markdown card."""
    facts = told["facts"]
    name = told["name"]
    parts = [f"# {name}", facts.get("about", ""), _format_what(told), _USE.format(name=name)]
    if not facts:
        parts.append("No measurements: its folder has no facts.json.")
    parts += ["## Figures", facts.get("measured", "")] if facts.get("tables") else []
    for table in facts.get("tables", ()):
        parts += [f"### {table['title']}", table.get("note", ""), _format_table(table)]
    if facts.get("limits"):
        parts += ["## Limits", "\n".join(f"- {one}" for one in facts["limits"])]
    if facts.get("made_by"):
        parts += ["## How it was made", _format_origin(facts["made_by"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def format_cell(cell: Cell) -> str:
    """1.930 [1.927, 1.933]; the value alone where it has no interval."""
    if not cell:
        return ""
    value, *ends = (f"{one:.3f}" for one in cell)
    return f"{value} [{', '.join(ends)}]" if ends else value


def is_met(cell: Cell) -> bool:
    """Whether a check is passed: the interval is above 0."""
    return cell is not None and len(cell) == 3 and cell[1] > 0


def _format_what(told: dict[str, Any]) -> str:
    facts = told["facts"]
    rows = {
        "weights": f"{told['parameters']:,} ({told['preset']})",
        "size": f"{told['bytes'] / 1e6:.1f} MB",
        "licence": facts.get("licence"),
        "trained on": facts.get("data"),
        "held out": facts.get("held_out"),
    }
    lines = (f"| {key} | {value} |" for key, value in rows.items() if value)
    return "\n".join(["| | |", "|---|---|", *lines])


def _format_table(table: dict[str, Any]) -> str:
    columns, rows = table["columns"], table["rows"]
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = [format_cell(cell) for cell in row["cells"]]
        if table.get("law"):
            known = zip(cells, row["cells"], strict=True)
            cells = [f"**{text}**" if is_met(cell) else text for text, cell in known]
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    if table.get("law"):
        laws = [[row["cells"][i] for row in rows if row["cells"][i]] for i in range(len(columns))]
        counts = [f"{sum(map(is_met, known))} of {len(known)}" for known in laws]
        lines.append(f"| passed | {' | '.join(counts)} |")
    return "\n".join(lines)


def _format_origin(made: dict[str, Any]) -> str:
    commands = "```console\n" + "\n".join(made.get("commands", ())) + "\n```"
    versions = ", ".join(f"{k} {v}" for k, v in (made.get("versions") or {}).items())
    seconds = f"{made['seconds']:,.0f}" if "seconds" in made else None
    hardware = f"{made.get('device')}, {made.get('cpu')}, threads: {made.get('threads')}"
    rows = {"seconds of training": seconds, "hardware": hardware}
    rows |= {"versions": versions, "commit": made.get("git")}
    lines = [f"- {key}: {value}" for key, value in rows.items() if value]
    return "\n\n".join([commands, "\n".join(lines)])
