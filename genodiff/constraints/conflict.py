"""The smallest set of constraints that cannot be met together, by deletion.

Each constraint in turn is left out: where the rest still cannot be met, it is not needed for the
proof. What is left is minimal: without any one of its members, the others can be met.
"""

from collections.abc import Sequence

from genodiff.constraints.constraint import Constraint
from genodiff.constraints.layers import MOST_STATES, is_feasible
from genodiff.constraints.space import DesignSpace


def find_conflict(
    constraints: Constraint | Sequence[Constraint],
    space: DesignSpace,
    *,
    most_states: int = MOST_STATES,
) -> list[Constraint]:
    """A minimal conflicting subset, in order; empty where all can be met.

    An empty list is also what kept letters alone give, which no constraint judges. Raises
    `UsageError` where a product is too large.
    """
    some = [constraints] if isinstance(constraints, Constraint) else list(constraints)
    parts = [part for one in some for part in one.parts()]
    if is_feasible(parts, space, most_states=most_states):
        return []
    for part in parts:  # most conflicts are with the kept bases alone
        if not is_feasible([part], space, most_states=most_states):
            return [part]
    at = 0
    while at < len(parts):
        rest = parts[:at] + parts[at + 1 :]
        if is_feasible(rest, space, most_states=most_states):
            at += 1
        else:
            parts = rest
    return parts
