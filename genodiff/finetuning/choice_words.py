"""How a choice by validation is said in one line, in cards and tables."""

from typing import Any


def describe_choice(choice: dict[str, Any], most: int = 6) -> str:
    """`parts 7: best on validation of seed 1 (mcc on 613: mean .52, parts 7 .80)`, in full."""
    last: dict[str, tuple[float, float | None]] = {}
    for trial in choice["trials"]:
        last[trial["candidate"]] = (trial["share"], trial["valid"])
    shown = [
        f"{name} {'failed' if valid is None else f'{valid:.4f}'}"
        + ("" if share == 1 else f" after {share:g} of the epochs")
        for name, (share, valid) in sorted(last.items(), key=lambda item: -item[1][0])
    ]
    more = [f"{len(shown) - most} more"] if len(shown) > most else []
    text = f"{choice['chosen']}: {choice['why']}"
    if shown:
        seeds = choice.get("by", "validation of seed 1").removeprefix("validation of ")
        what = f"{choice['metric']} on {choice['n_valid']:,} examples of {seeds}"
        text += f" ({what}: {', '.join(shown[:most] + more)})"
    minutes = choice.get("budget_minutes")
    return text if minutes is None else f"{text}; budget {minutes:g} min"
