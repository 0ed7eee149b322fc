"""The smallest set of constraints that cannot be met together, by deletion.

Each constraint in turn is left out: where the rest still cannot be met, it is not needed for the
proof. What is left is minimal: without any one of its members, the others can be met.
"""

from collections.abc import Sequence

from genodiff.constraints.constraint import Constraint
from genodiff.constraints.layers import MOST_STATES, Judged, Rules, can_be_met, judge_in
from genodiff.constraints.space import DesignSpace


def find_conflict(
    rules: Rules, space: DesignSpace, *, most_states: int = MOST_STATES
) -> list[Constraint]:
    """A minimal conflicting subset, in order; empty where all can be met.

    Raises `UsageError` where a product is too large.
    """
    found = find_judged_conflict(judge_in(rules, space), space, most_states=most_states)
    return [rule for rule, _ in found]


def find_judged_conflict(
    judged: Sequence[Judged], space: DesignSpace, *, most_states: int = MOST_STATES
) -> list[Judged]:
    """As `find_conflict`, of constraints that judge intervals of their own."""
    parts = list(judged)
    for part in parts:  # most conflicts are with the kept bases alone
        if not can_be_met([part], space, most_states=most_states):
            return [part]
    if can_be_met(parts, space, most_states=most_states):
        return []
    at = 0
    while at < len(parts):
        rest = parts[:at] + parts[at + 1 :]
        if can_be_met(rest, space, most_states=most_states):
            at += 1
        else:
            parts = rest
    return parts
