"""Evaluations as tables to read on a terminal."""

import logging
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from genodiff.domain import DOMAINS
from genodiff.errors import format_count
from genodiff.evaluation.request import EvalRequest
from genodiff.io.progress import format_duration
from genodiff.jobs.options import print_relatives
from genodiff.statistics.counted_lines import LINES, find_best_line, markov_line
from genodiff.statistics.seeds import TOO_FEW

_log = logging.getLogger("genodiff")
_NARROWEST = 110  # columns where stdout is no terminal
_MOST_CONTIGS = 12
_REGIONS = {"unique": "unique", "touched": "touched, < 1/4", "repeat": "repeat, ≥ 1/4"}
_REGION_TITLE = "regions, by bases in 24-mers that the train split has"
_CASES = {"upper_case": "unmasked", "soft_masked": "soft-masked"}
_BY_CASE = (markov_line(8), *(line for line in LINES if line.name != "adaptive_from_train"))


def draw_suite(results: list[dict[str, Any]]) -> Table:
    """Evaluations of one checkpoint on several recipes of text as one table."""
    title = f"zero-shot, {results[0]['split']}, {results[0]['tokenizer']}"
    columns = "tokens", "bits/byte", "95 % interval", "perplexity/token", "95 % interval"
    table = _table(title, *columns, "packing")
    for result in results:
        sign = "=" if result["figure"] == "exact" else "≤"
        bits, perplexity = f"{sign} {result['bits_per_byte']:.4f}", f"{result['perplexity']:.4g}"
        ends = _interval(result["ci95_bits"], ".4f"), _interval(result["ci95_perplexity"], ".4g")
        size = f"{result['tokens']:,}"
        cells = result["recipe"], size, bits, ends[0], perplexity, ends[1], result["packing"]
        table.add_row(*cells)
    return table


def draw_dna(result: dict[str, Any]) -> list[Table]:
    """The split with its lines, its regions, its contigs."""
    named = Path(result["fasta"]).name if result["fasta"] else result["recipe"]
    columns = "bits per base", "95 % interval", "perplexity", "baseline − model"
    head = _table(f"{result['split']} of {named}: {_size(result)}", *columns)
    notes = [_explain_sources(result, named), result["seen_in_training"]["note"]]
    if (related := result.get("relatives")) is not None:
        alike = [
            f"{one['name']} ({one['identity']:.1%} alike{', a strain' if one['strain'] else ''})"
            for one in related["genomes"]
        ]
        notes.append(f"given the genomes of {', '.join(alike)}: not a result of the run alone")
    head.caption = "\n".join(filter(None, notes))

    def add(name: str, bits: float, gap: str = "", ends: str = "") -> None:
        head.add_row(name, f"{bits:.4f}", ends, f"{2**bits:.4f}", gap)

    bits = result["bits_per_base"]
    add(_name_model(result), bits, ends=_interval(result["ci95_bits"]))
    if (line := result.get("without_memory")) is not None:
        add("without memory, at most", line["bits"], _gap(line["minus_model_bits"]))
    if (line := result.get("order")) is not None:
        gap = _gap(line["minus_model_bits"])
        add(f"{line['name']}, exact", line["bits"], gap, _interval(line["ci95"]))
    if (truth := result["source_bits"]) is not None:
        gap = _gap(result["model_minus_source_bits"], -1)
        add("the source", truth, gap, _interval(result["source_ci95_bits"]))
    for k, value in result["markov_bits"].items():
        add(markov_line(k).label, value, _gap(result["markov_minus_model_bits"][k]))
    for kind in LINES:
        if (line := result.get(kind.key)) is not None:
            name = f"{kind.label}, order {line['order']}" if "order" in line else kind.label
            add(name, line["bits"], _gap(line["minus_model_bits"]))
    add("uniform", 2.0, f"{2 - bits:+.4f}")
    found = [head, *_draw_cases(result)]
    regions = {name: part for name, part in result["regions"].items() if name in _REGIONS}
    for title, parts, labels in (
        (_REGION_TITLE, regions, _REGIONS),
        ("contigs", result["contigs"], {}),
        ("genomes", result.get("genomes", {}), {}),
    ):
        if len(parts) > 1:
            found.append(_draw_parts(title, parts, labels))
    return found


def _explain_sources(result: dict[str, Any], named: str) -> str:
    """How much of the file is scored, and on what the lines are counted."""
    total, lines = result["bases_total"], result["baselines_from"]
    text = f"scored: {result['tokens'] / max(total, 1):.1%} of the {total:,} bases of {named}"
    if not result["soft_mask"]["bases"]:
        text += ", no soft-masked bases"
    if lines is None:
        return text
    source = Path(lines["source"]).name if lines["source"] else named
    whose = "" if lines["own"] else ", which the run was trained on"
    return f"{text}; baselines: train split of {source}{whose}, {lines['bases']:,} bases"


def _draw_cases(result: dict[str, Any]) -> list[Table]:
    """Bases in upper case and soft-masked ones, and what counts of them, beside counted lines."""
    soft = result["soft_mask"]
    parts = {label: result["regions"].get(name) for name, label in _CASES.items()}
    if not soft["bases"]:
        return []
    whole = "all" if soft["scored_weight"] else "counted"
    parts[whole] = result
    shown = {name: part for name, part in parts.items() if part is not None}
    lines = {"no memory": _bits_without} if _bits_without(result) is not None else {}
    lines |= {
        line.label.partition(",")[0]: line.bits_of
        for line in _BY_CASE
        if line.bits_of(result) is not None
    }
    table = _table("by case", "bases", "bits per base", "95 % interval", *lines)
    for name, part in shown.items():
        figures = f"{part['bits_per_base']:.4f}", _interval(part["ci95_bits"])
        beside = (f"{bits_of(part):.4f}" for bits_of in lines.values())
        table.add_row(name, f"{part['tokens']:,}", *figures, *beside)
    trained = "is not known" if soft["trained_weight"] is None else f"{soft['trained_weight']:g}"
    table.caption = (
        f"soft-masked (lower-case) bases: weight {trained} in training, "
        f"{soft['scored_weight']} in this evaluation"
    )
    return [table]


def _bits_without(part: dict[str, Any]) -> float | None:
    """The bits of the network without its memory, of a part or of all."""
    whole = part.get("without_memory") or {}
    found: float | None = part.get("without_bits", whole.get("bits"))
    return found


def _draw_parts(title: str, parts: dict[str, Any], labels: dict[str, str]) -> Table:
    """The model on each part, beside the counted line that happens to be the best there."""
    lines = {name: find_best_line(part) for name, part in parts.items()}
    without = any(part.get("without_bits") is not None for part in parts.values())
    more = ["memory gains"] * without + ["best baseline"] * any(lines.values())
    table = _table(title, "bases", "bits per base", "95 % interval", *more)
    for name, part in list(parts.items())[:_MOST_CONTIGS]:
        beside = [_gap(part["without_minus_model_bits"])] if without else []
        if any(lines.values()):
            line = lines[name]
            beside.append(f"{line[1]:.4f} ({line[0].label})" if line else "")
        figures = (f"{part['bits_per_base']:.4f}", _interval(part["ci95_bits"]))
        table.add_row(labels.get(name, name), f"{part['tokens']:,}", *figures, *beside)
    if len(parts) > _MOST_CONTIGS:
        table.add_row(f"and {len(parts) - _MOST_CONTIGS} more", *[""] * (len(table.columns) - 1))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _size(result: dict[str, Any]) -> str:
    again = f", {result['repeats']} masks each" if result["repeats"] > 1 else ""
    windows = "window" if result["windows_total"] == 1 else "windows"
    return f"{result['tokens']:,} bases in {result['windows']:,}{_of(result)} {windows}{again}"


def _of(result: dict[str, Any]) -> str:
    return f" of {result['windows_total']:,}" if result["windows"] < result["windows_total"] else ""


def _interval(ends: list[float] | None, form: str = ".4f") -> str:
    return f"{TOO_FEW} windows" if ends is None else f"{ends[0]:{form}} – {ends[1]:{form}}"


def _gap(gap: dict[str, Any], sign: int = 1) -> str:
    reach = "" if gap["ci95"] is None else f" ± {(gap['ci95'][1] - gap['ci95'][0]) / 2:.4f}"
    return f"{sign * gap['bits']:+.4f}{reach}"


def _draw_text(result: dict[str, Any]) -> list[Table]:
    """The split with its n-grams."""
    named = result["recipe"] if result["recipe"] != "own" else Path(result["text"] or "own").name
    size = f"{result['tokens']:,} tokens, {result['bytes']:,} bytes in {result['windows']:,}"
    how = f"{result['tokenizer']}{'' if result['lossless'] else ', loses text'}"
    title = f"{result['split']} of {named}: {size}{_of(result)} {result['packing']} windows ({how})"
    columns = "bits/byte", "95 % interval", "perplexity/token", "95 % interval"
    table = _table(title, *columns, "baseline − model, bits")

    def add(name: str, bits: float, perplexity: float, gap: str = "", ends: Any = ("", "")) -> None:
        table.add_row(name, f"{bits:.4f}", ends[0], f"{perplexity:,.2f}", ends[1], gap)

    ends = _interval(result["ci95_bits"]), _interval(result["ci95_perplexity"], ",.2f")
    add(_name_model(result), result["bits_per_byte"], result["perplexity"], ends=ends)
    for k, bits in result["markov_bits"].items():
        gap = _gap(result["markov_minus_model_bits"][k])
        add(markov_line(k, text=True).label, bits, result["markov_perplexity"][k], gap)
    uniform = result["uniform_bits"]
    add("uniform", uniform, 2 ** (uniform * result["bytes"] / result["tokens"]))
    return [table]


def _name_model(result: dict[str, Any]) -> str:
    return "model" if result["figure"] == "exact" else "model, at most"


def show_evaluation(asked: EvalRequest, found: dict[str, Any]) -> None:
    """Print the tables of an evaluation or its plan, or say where the draws of a shard are."""
    if asked.plan:
        _print_plan(found)
        print_relatives(found)
    elif asked.is_shard:
        _log.info("%s: draws of %s windows", asked.out, f"{found['windows']:,}")
    elif "suite" in found:
        _print([draw_suite(list(found["suite"].values()))])
    else:
        _print((_draw_text if found.get("domain") == "text" else draw_dna)(found))


def _print(tables: list[Table]) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _NARROWEST)
    console.print(*tables)


def _print_plan(found: dict[str, Any]) -> None:
    units, lines = DOMAINS[found["domain"]].units, found["seconds_of_baselines"]
    of = f"of {found['windows_total']:,} of the split {found['split']}"
    masks, time = format_count(found["repeats"], "mask"), format_duration(found["seconds"])
    model = f"{found['parameters']:,} parameters, checkpoint {found['checkpoint']}"
    print(f"model    {model}, {found['alphabet']}")
    print(f"windows  {found['windows']:,} {of}, {masks} each")
    print(f"{units + ' ':<8} at most {found['tokens']:,} through the network")
    counted = "" if lines is None else f", and {format_duration(lines)} to count the baselines"
    print(f"time     about {time}{counted}")
    if (kept := found["memory"]) is not None:
        where = f"split {kept['split']}, {kept['folder']}"
        print(f"memory   {kept['bases']:,} bases of the {where}; the time is with it")
    print(f"files    {', '.join(found['files'])}")
