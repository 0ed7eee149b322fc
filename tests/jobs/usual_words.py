"""A call of a verb that nothing is known of but its request: for laws over the registry."""

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from genodiff.jobs.request import Field, Request, list_fields


def list_usual_values(request: type[Request[Any]], run: Path, here: Path) -> dict[str, Any]:
    """A value of each field without a default: a run, a FASTA file, a new output, or a word.

    A verb that needs another value has a call of its own where this is asked.
    """
    (here / "usual.fa").write_text(f">chr1\n{'ACGTTGCAAC' * 20}\n")
    defaults = {one.name: one.default for one in fields(request)}
    return {
        one.name: _choose(one, run, here)
        for one in list_fields(request)
        if defaults[one.name] is MISSING
    }


def _choose(one: Field, run: Path, here: Path) -> Any:
    if one.name == "run":
        return run
    if one.name == "out":
        return here / "mine"
    return here / "usual.fa" if one.option.is_input else "word"


def list_usual_words(
    request: type[Request[Any]], run: Path, here: Path, *, leave_out: str = ""
) -> list[object]:
    """The same on the command line, without the field `leave_out`."""
    values, words = list_usual_values(request, run, here), list[object]()
    for one in list_fields(request):
        if one.name in values and one.name != leave_out:
            flag = [] if one.option.is_word else [one.flags[0]]
            words += [*flag, values[one.name]]
    return words
