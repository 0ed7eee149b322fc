"""The margin within which two models are called equivalent."""

import math

from genodiff.errors import UsageError


def check_margin(margin: float | None) -> None:
    """Raises `UsageError` for a margin that is no positive number."""
    if margin is not None and not (math.isfinite(margin) and margin > 0):
        raise UsageError(
            f"--margin {margin:g} is no difference", fix="give a number above 0, such as 0.01"
        )
