"""Values in the cells of tables, as spreadsheets, R and pandas write them: which are whole numbers,
which say that a value is missing, and which names a program has spoilt.
"""

import re
from collections.abc import Iterable
from math import isfinite

from genodiff.io.diagnosis import Diagnosis

_MISSING = {
    *("", "na", "n/a", "#n/a", "nan", "<na>", "null"),
    *("#null!", "#value!", "#ref!", "#name?", "#div/0!", "#num!"),
}
_ERROR = re.compile(r"#(?:N/A|NULL!|VALUE!|REF!|NAME\?|DIV/0!|NUM!)")
_DIGITS = re.compile("[0-9]{1,13}")
_WHOLE_FLOAT = re.compile(r"([0-9]{1,13})\.0+")
_SHORT_POWER = re.compile(r"([1-9])(?:\.([0-9]+))?e\+([0-9]{2})")
_POWER = re.compile(r"[0-9]+(?:[.,][0-9]+)?[eE][+-]?[0-9]+")
_THOUSANDS = re.compile(
    "[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:[.][0-9]{3})+|(?:['’ \xa0\u202f][0-9]{3})+)"
)
_DATE = re.compile(
    r"\d{1,2}-(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:-\d\d(?:\d\d)?)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-\d\d"
)
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{1,6}|#x[0-9a-fA-F]{1,5});")
_QUOTES = "\"'‘’“”„«»`´="
_DASHES = "‐‑‒–—―−"
_PLAIN = "write the digits alone"


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value: empty, NA, NaN, null or a spreadsheet's error."""
    return cell.strip().lower() in _MISSING


def is_comment(line: str) -> bool:
    """Whether a line begins with #, and not with a spreadsheet's error, such as #REF!, in a row."""
    return line.startswith("#") and _ERROR.match(line) is None


def is_bed_comment(line: str) -> bool:
    """Whether a line without blanks at its end holds no row of BED."""
    return not line or is_comment(line) or line.split(None, 1)[0] in ("track", "browser")


def read_whole(text: str) -> int | None:
    """A whole number from 0, or None; at most 13 digits.

    `1000.0` is 1000. `1e+05` is 100000 where that is shorter than its digits: so R writes whole
    numbers, and then no digit is lost. Any other power (`1.23457e+06`) may be rounded, and `1.000`
    may be a thousand: neither is read.

    >>> read_whole("1000"), read_whole("1000.0"), read_whole("1e+05"), read_whole("1.000")
    (1000, 1000, 100000, None)
    """
    if _DIGITS.fullmatch(text):
        return int(text)
    if _THOUSANDS.fullmatch(text):
        return None
    if whole := _WHOLE_FLOAT.fullmatch(text):
        return int(whole[1])
    if power := _SHORT_POWER.fullmatch(text):
        digits = power[1] + (power[2] or "")
        zeros = int(power[3]) - len(digits) + 1
        if 0 <= zeros <= 13 and len(text) < len(digits) + zeros and digits[1:][-1:] != "0":
            return int(digits + "0" * zeros)
    return None


def explain_whole(text: str) -> Diagnosis:
    """Why `read_whole` does not read a text, and the remedy."""
    if is_missing(text):
        return "says that a value is missing", "give it, or remove the row"
    if _THOUSANDS.fullmatch(text):
        return "has thousands separators: not an integer", _PLAIN
    if _POWER.fullmatch(text):
        return (
            "is in scientific notation, which may have lost digits: not an integer",
            f"{_PLAIN} (R: options(scipen = 999); a spreadsheet: format the column as a number)",
        )
    return "is not an integer", _PLAIN


def read_number(text: str) -> float | None:
    """A finite number in plain digits and with a decimal point, or None."""
    if not text.isascii() or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def find_alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Two names that differ in nothing but capitals, or None."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            return other, name
    return None


def find_hidden(text: str) -> Diagnosis | None:
    """What a text has that nobody sees or wrote, and the remedy; None where there is nothing."""
    if not text.isprintable():
        hidden = next(c for c in text if not c.isprintable())
        return f"has an invisible or control character {hidden!a}", "remove it"
    if "&" in text and (entity := _ENTITY.search(text)):
        return f"holds {entity[0]}, a code of web pages", "write the character that it stands for"
    return None


def find_spoilt_name(name: str) -> Diagnosis | None:
    """What a program did to a name, and the remedy; None where it looks as a person wrote it."""
    if hidden := find_hidden(name):
        return hidden
    if name and (name[0] in _QUOTES or name[-1] == '"'):
        return "has a quotation mark or = at its edge", "remove what a program put around it"
    dash = None if name.isascii() else next((c for c in name if c in _DASHES), None)
    if dash is not None:
        return f"has the dash {dash!a}, which programs make of -", "write -"
    if _ERROR.fullmatch(name):
        return "is a spreadsheet's error", "write the name"
    if _DATE.fullmatch(name):
        return "is a date, as spreadsheets make of names such as SEPT1 or 3-1", "write the name"
    return None
