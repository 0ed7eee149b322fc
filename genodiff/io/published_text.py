"""Text for others to read: what tells of a machine's folders is left out of it.

A page or a card names files and runs; where they lay, and so the name of a user, is nobody's
business. A path from the root, from a home or upwards is cut down to its last name. Other paths,
such as runs/yeast, stay as they are.
"""

import re
from typing import Any

_FROM = r"(?:~[\w.-]*|\.\.)?/(?!/)"
_QUOTED = re.compile(rf"(['\"`]){_FROM}([^'\"`\n]*)\1")
_BARE = re.compile(rf"(?<![^\s'\"`=(\[,:]){_FROM}((?:[^\s'\"`,;()\[\]<>|]+/)[^\s'\"`,;()\[\]<>|]*)")
_HOME = re.compile(r"(?<![^\s'\"`=(\[,:])(?:~[\w.-]*|\.\.)/([^\s'\"`,;()\[\]<>|/]+)")


def hide_folders(text: str) -> str:
    """The text with such paths cut down to their last names.

    >>> hide_folders("genodiff eval /home/me/runs/yeast --out='../a b/x.json'")
    "genodiff eval yeast --out='x.json'"
    """
    text = _QUOTED.sub(lambda hit: f"{hit[1]}{_take_last(hit[2])}{hit[1]}", text)
    text = _BARE.sub(lambda hit: _take_last(hit[1]), text)
    return _HOME.sub(lambda hit: hit[1], text)


def hide_all_folders(value: Any) -> Any:
    """The same of all texts in lists and objects; keys stay."""
    if isinstance(value, str):
        return hide_folders(value)
    if isinstance(value, dict):
        return {key: hide_all_folders(inner) for key, inner in value.items()}
    return [hide_all_folders(inner) for inner in value] if isinstance(value, list) else value


def _take_last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
