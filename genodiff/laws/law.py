"""A law that a piece breaks, and how it is said."""


class BrokenLaw(AssertionError):
    """A piece does not hold a law of its registry."""


def demand(holds: object, law: str) -> None:
    """Raises `BrokenLaw` unless it holds."""
    if not holds:
        raise BrokenLaw(law)
