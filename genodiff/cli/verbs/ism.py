"""Saturation mutagenesis: every base of a region to every other, as table, arrays or picture.

The score of a substitution is log p(base) - log p(reference), given all other bases: positive where
the model finds the other base likelier. With a fine-tuned model it is the change of what the model
predicts. The same command goes on where an interrupted one was.
"""

from collections.abc import Mapping
from typing import Any

from genodiff.api.maps import ism as write_map
from genodiff.cli.request_flags import make_verb
from genodiff.errors import format_count


def _say(told: Mapping[str, Any]) -> str:
    return f"{told['scored']:,} sites of {format_count(len(told['regions']), 'region')}"


ism = make_verb(write_map, _say)
