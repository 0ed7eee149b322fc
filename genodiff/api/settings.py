"""What the settings of a run are called, for whoever offers them as flags."""

from genodiff.runs.resolve import ALIASES as ALIASES
from genodiff.runs.resolve import list_sections as list_sections
from genodiff.runs.resolve import list_short_names as list_short_names
