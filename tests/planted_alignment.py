"""A target, a genome made of it with indels on both strands, and their alignment in each format."""

from itertools import groupby
from typing import NamedTuple

import numpy as np

LETTERS = np.frombuffer(b"ACGT", np.uint8)
TURN = bytes.maketrans(b"ACGT-", b"TGCA-")
GAP = ord("-")


class Planted(NamedTuple):
    """Sequences by contig, and pairs of aligned rows: target's contig and start, the relative's
    contig, start on its strand and strand, and both rows.
    """

    target: dict[str, bytes]
    relative: dict[str, bytes]
    rows: list[tuple[str, int, str, int, str, bytes, bytes]]


def turn(letters: bytes) -> bytes:
    return letters.translate(TURN)[::-1]


def plant(seed: int = 1, share: float = 0.08) -> Planted:
    """Two contigs of 3,000 bases; of each a stretch in the relative, the second turned."""
    rng = np.random.default_rng(seed)
    target, rows, pieces = {}, [], []
    for i in range(2):
        x = rng.integers(0, 4, 3000)
        target[f"chr{i + 1}"] = LETTERS[x].tobytes()
        top, low = [], []
        at, start = 200 + 100 * i, 200 + 100 * i
        while at < 2700:
            n = int(rng.integers(60, 300))
            some = x[at : at + n]
            other = (some + rng.integers(1, 4, len(some))) % 4
            mutated = np.where(rng.random(len(some)) < share, other, some)
            top.append(LETTERS[some].tobytes())
            low.append(LETTERS[mutated].tobytes())
            at += len(some)
            gap = int(rng.integers(1, 9))
            if rng.random() < 0.5:
                top.append(LETTERS[x[at : at + gap]].tobytes())
                low.append(b"-" * gap)
                at += gap
            else:
                top.append(b"-" * gap)
                low.append(LETTERS[rng.integers(0, 4, gap)].tobytes())
        top, low = top[:-1], low[:-1]
        pieces.append((start, b"".join(top), b"".join(low)))
    flank = [LETTERS[rng.integers(0, 4, n)].tobytes() for n in (311, 207, 150)]
    first, second = (low.replace(b"-", b"") for _, _, low in pieces)
    relative = {"A": flank[0] + first, "B": flank[1] + turn(second) + flank[2]}
    rows = [
        ("chr1", pieces[0][0], "A", 311, "+", *pieces[0][1:]),
        ("chr2", pieces[1][0], "B", 150, "-", *pieces[1][1:]),
    ]
    return Planted(target, relative, rows)


def write_maf(planted: Planted, names: tuple[str, str] = ("", "")) -> str:
    lines = ["##maf version=1"]
    for contig, start, other, q, strand, top, low in planted.rows:
        lines.append("a score=1")
        for prefix, name, at, sign, row, of in (
            (names[0], contig, start, "+", top, planted.target[contig]),
            (names[1], other, q, strand, low, planted.relative[other]),
        ):
            n = len(row) - row.count(b"-")
            lines.append(f"s {prefix}{name} {at} {n} {sign} {len(of)} {row.decode()}")
        lines.append("")
    return "\n".join(lines) + "\n"


def _steps(top: bytes, low: bytes) -> list[tuple[str, int]]:
    pairs = zip(top, low, strict=True)
    ops = ("I" if x == GAP else "D" if y == GAP else "M" for x, y in pairs)
    return [(op, len(list(run))) for op, run in groupby(ops)]


def _differences(top: bytes, low: bytes) -> str:
    """The cs tag of two rows."""

    def name(pair: tuple[str, str]) -> str:
        x, y = pair
        return "+" if x == "-" else "-" if y == "-" else ":" if x == y else "*"

    said = ""
    for kind, run in groupby(zip(top.decode().lower(), low.decode().lower(), strict=True), name):
        x, y = ("".join(letters) for letters in zip(*run, strict=True))
        changes = "".join(f"*{a}{b}" for a, b in zip(x, y, strict=True))
        said += {":": f":{len(x)}", "*": changes, "+": f"+{y}", "-": f"-{x}"}[kind]
    return said


def write_chain(planted: Planted) -> str:
    lines = []
    for i, (contig, start, other, q, strand, top, low) in enumerate(planted.rows):
        ends = start + len(top.replace(b"-", b"")), q + len(low.replace(b"-", b""))
        sizes = len(planted.target[contig]), len(planted.relative[other])
        lines.append(
            f"chain 100 {contig} {sizes[0]} + {start} {ends[0]} {other} {sizes[1]} {strand} "
            f"{q} {ends[1]} {i}"
        )
        block, gaps = 0, [0, 0]
        for op, n in _steps(top, low):
            if op == "M" and block:
                lines.append(f"{block}\t{gaps[0]}\t{gaps[1]}")
                block, gaps = n, [0, 0]
            elif op == "M":
                block = n
            else:
                gaps["DI".index(op)] += n
        lines += [str(block), ""]
    return "\n".join(lines)


def write_paf(planted: Planted, tag: str = "cg", *, turned: bool = False) -> str:
    """With `turned`, the target is the query."""
    lines = []
    for contig, start, other, q, strand, top, low in planted.rows:
        sizes = len(planted.target[contig]), len(planted.relative[other])
        n, m = len(top.replace(b"-", b"")), len(low.replace(b"-", b""))
        q = sizes[1] - q - m if strand == "-" else q
        rows = [top, low]
        sides = [(contig, sizes[0], start, start + n), (other, sizes[1], q, q + m)]
        if turned:
            rows = [turn(low), turn(top)] if strand == "-" else [low, top]
            sides = sides[::-1]
        said = "".join(f"{k}{op}" for op, k in _steps(*rows)) if tag == "cg" else (
            _differences(*rows))  # fmt: skip
        (t, t_size, a, b), (name, size, c, d) = sides
        fields = [name, size, c, d, strand, t, t_size, a, b, n, n, 60, f"{tag}:Z:{said}"]
        lines.append("\t".join(map(str, fields)))
    return "\n".join(lines) + "\n"
