"""What is known of a ready model, in words: for its card, its page, and `genodiff models show`.

All of it comes from the model's own files. FOLDER/facts.json holds tables, each with "title",
"note", "columns" and "rows"; a row has a "name" and "cells", of which one is a figure with its 95 %
interval [value, low, high], a figure alone [value], or null. A table of laws says "law": true: a
law is met where the whole interval is above 0.
"""

from collections.abc import Iterator
from typing import Any

Cell = list[float] | None
_USE = (
    'Where a model goes: `--model {name}`, `genodiff.load("{name}")`. With transformers, after '
    "`import genodiff.hf`: `AutoModelForMaskedLM.from_pretrained(FOLDER)`, FOLDER being what "
    "`genodiff models path {name}` prints."
)


def format_facts(told: dict[str, Any]) -> str:
    """The card in Markdown, of what `show_model` gives."""
    facts = told["facts"]
    name = told["name"]
    parts = [f"# {name}", facts.get("about", ""), _format_what(told), _USE.format(name=name)]
    parts += ["## Figures", facts.get("measured", "")] if facts.get("tables") else []
    for table in facts.get("tables", ()):
        parts += [f"### {table['title']}", table.get("note", ""), _format_table(table)]
    if facts.get("limits"):
        parts += ["## Limits", "\n".join(f"- {one}" for one in facts["limits"])]
    if facts.get("made_by"):
        parts += ["## How it was made", _format_origin(facts["made_by"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def list_facts(told: dict[str, Any]) -> list[str]:
    """The lines of `genodiff models show`."""
    facts = told["facts"]
    lines = [f"{key:<11} {value}" for key, value in _list_what(told).items()]
    if not facts:
        return [*lines, "nothing was measured of it: its folder has no facts.json"]
    for table in facts.get("tables", ()):
        lines += ["", table["title"], *_list_table(table)]
    return [*lines, "", "limits", *(f"  {one}" for one in facts.get("limits", ()))]


def format_cell(cell: Cell, digits: int = 3) -> str:
    """1.930 [1.927, 1.933]; the value alone where it has no interval."""
    if not cell:
        return ""
    value, *ends = (f"{one:.{digits}f}" for one in cell)
    return f"{value} [{', '.join(ends)}]" if ends else value


def is_met(cell: Cell) -> bool:
    """Whether a law holds: the interval is above 0."""
    return bool(cell) and len(cell or ()) == 3 and (cell or [0, 0, 0])[1] > 0


def _list_what(told: dict[str, Any]) -> dict[str, Any]:
    facts = told["facts"]
    rows = {
        "model": told["name"],
        "about": facts.get("about"),
        "folder": told["folder"],
        "weights": f"{told['parameters']:,} ({told['preset']})",
        "size": f"{told['bytes'] / 1e6:.1f} MB",
        "licence": facts.get("licence"),
        "trained on": facts.get("data"),
        "held out": facts.get("held_out"),
    }
    return {key: value for key, value in rows.items() if value}


def _format_what(told: dict[str, Any]) -> str:
    rows = {k: v for k, v in _list_what(told).items() if k not in ("model", "about", "folder")}
    return "| | |\n|---|---|\n" + "\n".join(f"| {key} | {value} |" for key, value in rows.items())


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
        lines.append(f"| met | {' | '.join(count for _, count in _count_met(table))} |")
    return "\n".join(lines)


def _list_table(table: dict[str, Any]) -> Iterator[str]:
    if table.get("law"):
        for column, count in _count_met(table):
            yield f"  {count}  {column}"
        return
    for row in table["rows"]:
        known = zip(table["columns"], row["cells"], strict=True)
        several = len(table["columns"]) > 1
        for column, cell in ((column, cell) for column, cell in known if cell):
            yield f"  {format_cell(cell)}  {row['name']}{f', {column}' if several else ''}"


def _count_met(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Of each column, how many of its laws are met: "6 of 7"."""
    for i, column in enumerate(table["columns"]):
        known = [row["cells"][i] for row in table["rows"] if row["cells"][i]]
        yield column, f"{sum(map(is_met, known))} of {len(known)}"


def _format_origin(made: dict[str, Any]) -> str:
    commands = "```console\n" + "\n".join(made.get("commands", ())) + "\n```"
    versions = ", ".join(f"{k} {v}" for k, v in (made.get("versions") or {}).items())
    rows = {
        "seconds of training": f"{made['seconds']:,.0f}" if "seconds" in made else None,
        "hardware": f"{made.get('device')}, {made.get('cpu')}, threads: {made.get('threads')}",
        "versions": versions,
        "commit": made.get("git"),
    }
    lines = [f"- {key}: {value}" for key, value in rows.items() if value]
    return "\n\n".join([commands, "\n".join(lines)])
