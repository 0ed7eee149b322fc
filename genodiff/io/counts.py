"""Numbers with what they count, in words: `1 design`, `2,000 designs`."""


def format_count(n: int, noun: str) -> str:
    """`n` and the noun, which is given in the singular and takes an s where `n` is not 1.

    >>> format_count(1, "design"), format_count(2000, "base")
    ('1 design', '2,000 bases')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
