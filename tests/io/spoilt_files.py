"""Ways to spoil a good file in one thing, as programs do, and what may be read of it then."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.io.good_files import Good, GoodTable, GoodText, Kind, Rng, Row


@dataclass(frozen=True)
class Spoilt:
    """A spoilt file, and what may be read of it: nothing where `right` is None."""

    data: bytes
    right: Any = None
    also: Callable[[Any], bool] = lambda found: False

    def is_right(self, found: Any) -> bool:
        """Whether what was read is the content of the good file."""
        return (self.right is not None and found == self.right) or self.also(found)


@dataclass(frozen=True)
class Spoiler:
    """`spoil` gives None where a file has nothing to be spoilt so."""

    spoil: Callable[[Good, Rng], Spoilt | None]
    tables_only: bool = False


SPOILERS: dict[str, Spoiler] = {}


def _add(name: str, spoil: Callable[[Good, Rng], Spoilt | None], tables_only: bool = False) -> None:
    assert name not in SPOILERS
    SPOILERS[name] = Spoiler(spoil, tables_only)


def whole(name: str, change: Callable[[str, Rng], bytes | str], refuse: bool = False) -> None:
    """The text of the file is changed, what stands in it is not."""

    def spoil(good: Good, rng: Rng) -> Spoilt | None:
        data = change(good.text, rng)
        data = data.encode() if isinstance(data, str) else data
        if data == good.text.encode():
            return None
        return Spoilt(data, None if refuse else good.whole)

    _add(name, spoil)


def place(good: Good, rng: Rng, kinds: tuple[Kind, ...] | None) -> tuple[int, int] | None:
    """Where a value of one of these kinds stands in the text."""
    if isinstance(good, GoodText):
        some = [(a, b) for a, b, kind in good.values if kinds is None or kind in kinds]
        return some[rng.integers(len(some))] if some else None
    columns = [i for i, kind in enumerate(good.kinds) if kinds is None or kind in kinds]
    if not columns:
        return None
    row, column = int(rng.integers(len(good.rows))), columns[rng.integers(len(columns))]
    above = [good.header] if good.header is not None else []
    lines = [good.separator.join(line) for line in [*above, *good.rows[:row]]]
    start = len(good.above) + sum(len(line) + 1 for line in lines)
    start += sum(len(field) + 1 for field in good.rows[row][:column])
    return start, start + len(good.rows[row][column])


def value(
    name: str, kinds: tuple[Kind, ...] | None, change: Callable[[str, Rng], str | None],
    refuse: bool = False,
) -> None:  # fmt: skip
    """One value is written in another way, or, with `refuse`, is not there any more."""

    def spoil(good: Good, rng: Rng) -> Spoilt | None:
        at = place(good, rng, kinds)
        text = good.text
        new = change(text[slice(*at)], rng) if at is not None else None
        if at is None or new is None or new == text[slice(*at)]:
            return None
        if new in ("", ".") and isinstance(good, GoodTable) and good.defaults:
            return None
        data = (text[: at[0]] + new + text[at[1] :]).encode("utf-8", "surrogateescape")
        return Spoilt(data, None if refuse else good.whole)

    _add(name, spoil)


def column(name: str, kinds: tuple[Kind, ...], change: Callable[[str], str | None]) -> None:
    """All values of a column are written in another way."""

    def spoil(good: Good, rng: Rng) -> Spoilt | None:
        assert isinstance(good, GoodTable)
        columns = [i for i, kind in enumerate(good.kinds) if kind in kinds]
        if not columns:
            return None
        at = columns[rng.integers(len(columns))]
        rows = [list(row) for row in good.rows]
        for row in rows:
            new = change(row[at])
            if new is None:
                return None
            row[at] = new
        spoilt = good.with_rows(rows)
        if good.separator == "," and any("," in row[at] for row in rows):
            rows = [[f'"{f}"' if "," in f else f for f in row] for row in rows]
            spoilt = good.with_rows(rows)
        if spoilt.text == good.text:
            return None
        return Spoilt(spoilt.text.encode(), good.whole)

    _add(name, spoil, tables_only=True)


def rows(
    name: str, change: Callable[[GoodTable, Rng], tuple[str, list[Row] | None] | None]
) -> None:
    """The lines of a table are changed: to a text, in which these rows stand (None: none)."""

    def spoil(good: Good, rng: Rng) -> Spoilt | None:
        assert isinstance(good, GoodTable)
        found = change(good, rng)
        if found is None or found[0] == good.text:
            return None
        text, left = found
        return Spoilt(text.encode(), None if left is None else good.content(left))

    _add(name, spoil, tables_only=True)


def anywhere(text: str, rng: Rng, new: str) -> str:
    at = int(rng.integers(1, len(text)))
    return text[:at] + new + text[at:]


# Encodings, line ends and what editors and downloads do to a whole file.
whole("UTF-8 with BOM", lambda t, _: b"\xef\xbb\xbf" + t.encode())
whole("two BOMs", lambda t, _: b"\xef\xbb\xbf\xef\xbb\xbf" + t.encode())
whole("UTF-16 little endian", lambda t, _: b"\xff\xfe" + t.encode("utf-16-le"))
whole("UTF-16 big endian", lambda t, _: b"\xfe\xff" + t.encode("utf-16-be"))
whole("UTF-16 without a mark", lambda t, _: t.encode("utf-16-le"))
whole("UTF-32", lambda t, _: t.encode("utf-32"))
whole("CRLF", lambda t, _: t.replace("\n", "\r\n"))
whole("CR only", lambda t, _: t.replace("\n", "\r"))
whole("CRCRLF", lambda t, _: t.replace("\n", "\r\r\n"))
whole("one CRLF", lambda t, _: t.replace("\n", "\r\n", 1))
whole("LF at the end missing", lambda t, _: t.removesuffix("\n"))
whole("empty lines at the end", lambda t, _: t + "\n\n\n")
whole("empty lines at the beginning", lambda t, _: "\n\n" + t)
whole("an empty line after each", lambda t, _: t.replace("\n", "\n\n"))
whole("blanks at the ends of lines", lambda t, _: t.replace("\n", "  \n"))
whole("tabs at the ends of lines", lambda t, _: t.replace("\n", "\t\n"))
whole("blanks at the beginnings of lines", lambda t, _: " " + t.replace("\n", "\n "))
whole("a no-break space at the ends of lines", lambda t, _: t.replace("\n", "\xa0\n"))
whole("a no-break space at the end", lambda t, _: t.removesuffix("\n") + "\xa0\n")
whole("Ctrl-Z at the end", lambda t, _: t + "\x1a")
whole("NUL bytes at the end", lambda t, _: t + "\0" * 64)
whole("a comment above", lambda t, _: "# exported on 3 May\n" + t)
whole("sep=", lambda t, _: "sep=,\n" + t)
whole(
    "a web page", lambda t, _: f"<!DOCTYPE html>\n<html><body><pre>{t}</pre></body></html>\n", True
)
whole("not found", lambda t, _: "<html><head><title>404 Not Found</title></head></html>\n", True)
whole("an error in JSON", lambda t, _: '{"error": "not found"}\n', True)
whole("escaped for the web", lambda t, _: html.escape(t))
whole("empty", lambda t, _: "", True)
whole("only blank lines", lambda t, _: "\n \n\t\n", True)
whole("the file twice in quotes", lambda t, _: '"' + t + '"')
whole("typographic dashes", lambda t, _: t.replace("-", "–"))
whole("minus signs", lambda t, _: t.replace("-", "−"))
whole("non-ASCII blanks between", lambda t, _: t.replace(" ", "\xa0"))
whole("a zero-width space somewhere", lambda t, rng: anywhere(t, rng, "\u200b"))
whole("a BOM somewhere", lambda t, rng: anywhere(t, rng, "\ufeff"))
whole("a soft hyphen somewhere", lambda t, rng: anywhere(t, rng, "\xad"))
whole("tabs made blanks", lambda t, _: t.replace("\t", "    "))
whole("tabs made one blank", lambda t, _: t.replace("\t", " "))
whole("blanks made tabs", lambda t, _: t.replace(" ", "\t"))

# One value in another dress.
ALL: tuple[Kind, ...] = ("contig", "name", "text", "dna", "lines", "position", "float", "class",
                         "strand")  # fmt: skip
NUMBERS: tuple[Kind, ...] = ("position", "float")
TABLES: tuple[Kind, ...] = tuple(kind for kind in ALL if kind != "text")
SOLID: tuple[Kind, ...] = ("contig", "dna", "position", "float", "strand")
for title, before, behind in (
    ("a value in quotes", '"', '"'), ("a value in typographic quotes", "“", "”"),
    ("a value in single quotes", "'", "'"), ("an apostrophe before a value", "'", ""),
    ("a stray quote before a value", '"', ""), ("a stray quote behind a value", "", '"'),
    ("blanks around a value", " ", "  "), ("a no-break space before a value", "\xa0", ""),
    ("a no-break space behind a value", "", "\xa0"), ("a zero-width space behind", "", "\u200b"),
    ("a zero-width joiner before", "\u200d", ""), ("a soft hyphen behind", "", "\xad"),
    ("a left-to-right mark", "\u200e", ""), ("an equals sign", '="', '"'),
    ("a control character", "", "\x07"), ("a letter of Latin-1", "", "\udce9"),
):  # fmt: skip
    value(
        title,
        TABLES if set(before + behind) & set("\"'=“") else ALL,
        lambda v, _, a=before, b=behind: f"{a}{v}{b}",
    )  # type: ignore[misc]
value("a soft hyphen within", ALL, lambda v, _: v[:1] + "\xad" + v[1:])
value("a no-break space within", ALL, lambda v, _: v[:1] + "\xa0" + v[1:] if len(v) > 1 else None)
value("a blank within", SOLID, lambda v, _: v[:1] + " " + v[1:] if len(v) > 1 else None)
value("a line break within", SOLID, lambda v, _: v[:1] + "\n" + v[1:] if len(v) > 1 else None, True)
value("a separator within", ("position", "float"), lambda v, _: f"{v},5")
value("a date for a name", ("contig", "class"), lambda v, rng: str(rng.choice(["1-Sep", "Mar-01"])),
      True)  # fmt: skip
value("a spreadsheet's error for a contig", ("contig",),
      lambda v, rng: str(rng.choice(["#N/A", "#REF!", "#NAME?"])), True)  # fmt: skip
value("Greek or Cyrillic letters", ("dna",), lambda v, _: v.replace("A", "А", 1))
value("an O for a zero", NUMBERS, lambda v, _: v.replace("0", "O", 1) if "0" in v else None)
value("an l for a one", NUMBERS, lambda v, _: v.replace("1", "l", 1) if "1" in v else None)
for word in ("NA", "nan", "NaN", "N/A", "#N/A", "null", "", "#REF!", "#VALUE!"):
    value(f"'{word}' for a number", NUMBERS, lambda v, _, w=word: w, True)  # type: ignore[misc]
    value(f"'{word}' for letters", ("dna",), lambda v, _, w=word: w, True)  # type: ignore[misc]
    value(f"'{word}' for a class", ("class",), lambda v, _, w=word: w, True)  # type: ignore[misc]
for word in ("inf", "-inf", "-", ".", "?", "TRUE", "#DIV/0!", "1e999", "0x1F", "1_000", "١٢"):
    value(f"'{word}' for a number", NUMBERS, lambda v, _, w=word: w, True)  # type: ignore[misc]


def short(text: str) -> str:
    """A whole number as R writes it: with an exponent where that is exact and shorter."""
    power = f"{float(text):.0e}"
    return power if float(power) == float(text) and len(power) < len(text) else text


def thousands(mark: str) -> Callable[[str], str | None]:
    def change(text: str) -> str | None:
        integer, point, rest = text.partition(".")
        grouped = f"{int(integer):,}" if integer.isdecimal() else ""
        return grouped.replace(",", mark) + point + rest if "," in grouped else None

    return change


def scientific(form: str, exact: bool) -> Callable[[str], str | None]:
    def change(text: str) -> str | None:
        try:
            new = format(float(text), form)
        except ValueError:
            return None
        return new if not exact or float(new) == float(text) else None

    return change


for mark in (",", ".", " ", "'", "\xa0", "\u202f", "’"):
    value(f"thousands with {mark!a}", NUMBERS, lambda v, _, m=mark: thousands(m)(v))  # type: ignore[misc]
value("a decimal comma", ("float",), lambda v, _: v.replace(".", ",") if "." in v else None)
value("a trailing point and zero", ("position",), lambda v, _: f"{v}.0")
value("three zeros behind a point", ("position",), lambda v, _: f"{v}.000")
value("a plus sign", NUMBERS, lambda v, _: f"+{v}")
value("zeros before a number", ("position",), lambda v, _: f"00{v}")
value("a percentage", ("float",), lambda v, _: f"{v}%")
value("scientific, rounded by %g", ("position",), lambda v, _: scientific(".5e", False)(v))
value("scientific, by a spreadsheet", ("position",), lambda v, _: scientific(".2E", False)(v))
value("scientific, exact", NUMBERS, lambda v, _: scientific(".10e", True)(v))
value("capitals of a class", ("class",), lambda v, _: v.upper() if v.upper() != v else None)

# Columns.
column("decimal commas", ("float",), lambda v: v.replace(".", ",") if "." in v else None)
column("whole numbers as floats", ("position",), lambda v: f"{v}.0")
column("as R writes whole numbers", ("position",), lambda v: short(v))
column("scientific, two digits", ("position",), lambda v: f"{float(v):.2E}")
column("grouped thousands", ("position",), lambda v: f"{int(v):,}")
column("points for thousands", ("position",), lambda v: f"{int(v):,}".replace(",", "."))
column("blanks before values", ALL, lambda v: f" {v}")
column("quotes around a column", ALL, lambda v: f'"{v}"')
column("apostrophes before a column", ALL, lambda v: f"'{v}")
column("zeros and ones as floats", ("class",), lambda v: f"{v}.0" if v.isdecimal() else None)
column("lower-case letters", ("dna",), lambda v: v.lower() if len(v) > 5 else v)


# Rows and the layout of a table.
def lines_of(good: GoodTable) -> list[Row]:
    return [good.header, *good.rows] if good.header is not None else list(good.rows)


def written(good: GoodTable, lines: list[Row], separator: str | None = None) -> str:
    sep = good.separator if separator is None else separator
    return good.above + "".join(sep.join(line) + "\n" for line in lines)


def quoted(good: GoodTable, separator: str) -> str:
    lines = [[f'"{field}"' for field in line] for line in lines_of(good)]
    return written(good, lines, separator)


def indexed(good: GoodTable, title: str | None, first: int = 0) -> str:
    """With the numbers of rows in a first column, called `title`; None: R's, without a name."""
    body = [[str(i), *row] for i, row in enumerate(good.rows, first)]
    if good.header is None:
        return written(good, body)
    head = good.header if title is None else [title, *good.header]
    return written(good, [head, *body])


def doubled_row(good: GoodTable, rng: Rng) -> tuple[str, list[Row]]:
    at = int(rng.integers(len(good.rows)))
    more = [*good.rows[: at + 1], good.rows[at], *good.rows[at + 1 :]]
    return good.with_rows(more).text, more


def turned(good: GoodTable, rng: Rng) -> tuple[str, list[Row]]:
    order = [good.rows[i] for i in rng.permutation(len(good.rows))]
    return good.with_rows(order).text, order


def swapped_columns(
    good: GoodTable, rng: Rng, *, names: bool
) -> tuple[str, list[Row] | None] | None:
    """Two columns of different kinds change places, with their names or without."""
    pairs = [(i, j) for i, a in enumerate(good.kinds) for j, b in enumerate(good.kinds)
             if i < j and a != b and {i, j} <= set(good.needed)]  # fmt: skip
    if not pairs or (names and good.header is None):
        return None
    i, j = pairs[rng.integers(len(pairs))]
    order = list(range(len(good.kinds)))
    order[i], order[j] = j, i
    lines = lines_of(good)
    kept = [] if names or good.header is None else [good.header]
    moved = [[line[k] for k in order] for line in lines[len(kept) :]]
    return written(good, [*kept, *moved]), good.rows if names else None


def cut_row(good: GoodTable, rng: Rng) -> tuple[str, list[Row] | None] | None:
    """The last row ends after some of its fields, as a copy that was stopped does."""
    if good.defaults:
        return None
    n = int(rng.integers(1, len(good.kinds)))
    short = written(good, [*lines_of(good)[:-1], good.rows[-1][:n]]).removesuffix("\n")
    return short, None if max(good.needed) >= n else good.rows


def with_line(good: GoodTable, line: Row, at: int) -> str:
    lines = lines_of(good)
    return written(good, [*lines[:at], line, *lines[at:]])


HEADERS: dict[Kind, str] = {
    "contig": "chrom", "name": "name", "text": "name", "lines": "sequence", "dna": "sequence",
    "position": "start", "float": "value",
    "class": "label", "strand": "strand", "other": "score",
}  # fmt: skip
for other in ("\t", ",", ";", " ", "|"):
    rows(f"separated by {other!r}", lambda g, _, s=other: (written(g, lines_of(g), s), g.rows))  # type: ignore[misc]
    rows(f"quoted, separated by {other!r}", lambda g, _, s=other: (quoted(g, s), g.rows))  # type: ignore[misc]
    rows(f"a separator {other!r} behind each line", lambda g, _, s=other: (
        written(g, [[*line, ""] for line in lines_of(g)], s), g.rows))  # fmt: skip
rows("a separator behind each row", lambda g, _: (
    written(g, [*([] if g.header is None else [g.header]), *([*row, ""] for row in g.rows)]),
    g.rows))  # fmt: skip
rows("a separator behind one row", lambda g, _: (
    written(g, [*lines_of(g)[:-1], [*g.rows[-1], ""]]), g.rows))  # fmt: skip
rows("many separators behind each line", lambda g, _: (
    written(g, [[*line, "", "", ""] for line in lines_of(g)]), g.rows))  # fmt: skip
rows("rows of separators alone", lambda g, _: (
    written(g, [*lines_of(g), [""] * len(g.kinds), [""] * len(g.kinds)]), g.rows))  # fmt: skip
rows("blanks behind separators", lambda g, _: (written(g, lines_of(g), f"{g.separator} "), g.rows))
rows("an index column without a name", lambda g, _: (indexed(g, ""), g.rows))
rows("an index column of pandas", lambda g, _: (indexed(g, "Unnamed: 0"), g.rows))
rows("row names of R", lambda g, _: (indexed(g, None, 1), g.rows))
rows("no line of names", lambda g, _: None if g.header is None else (written(g, g.rows), None))
for title, at in (("twice", 1), ("again in the middle", 3), ("at the end", 999)):
    rows(f"the line of names {title}", lambda g, _, at=at: (
        None if g.header is None else (with_line(g, g.header, at), g.rows)))  # fmt: skip
for title, at in (("where none belongs", 0), ("in the middle", 2)):
    rows(f"a line of names {title}", lambda g, _, at=at: None if g.header is not None else (
        with_line(g, [HEADERS[k] for k in g.kinds], at), g.rows))  # fmt: skip
for title, change in (("capitals in", str.upper), ("blanks around", " {} ".format)):
    rows(f"{title} the names", lambda g, _, c=change: None if g.header is None else (
        written(g, [[*map(c, g.header)], *g.rows]), g.rows))  # fmt: skip
rows("a row twice", doubled_row)
rows("rows in another order", turned)
rows("rows backwards", lambda g, _: (g.with_rows(g.rows[::-1]).text, g.rows[::-1]))
rows("columns in another order, with their names", lambda g, r: swapped_columns(g, r, names=True))
rows("columns exchanged, without their names", lambda g, r: swapped_columns(g, r, names=False))
rows("the last row cut short", cut_row)
rows("the file twice", lambda g, _: (g.text + g.text, [*g.rows, *g.rows]))
rows("a sum below", lambda g, _: (
    written(g, [*lines_of(g), ["Total", *[""] * (len(g.kinds) - 2), str(len(g.rows))]]),
    None))  # fmt: skip


def cut(good: Good, rng: Rng) -> Spoilt | None:
    """The file ends somewhere, which no reader of a text can see where a whole value was cut."""
    if isinstance(good, GoodTable):
        return None
    at = int(rng.integers(len(good.text) // 2, len(good.text) - 1))
    return Spoilt(good.text[:at].encode(), good.whole, lambda read: good.cut(read, good.whole))


_add("cut somewhere", cut)
