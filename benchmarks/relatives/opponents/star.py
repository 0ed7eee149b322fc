"""Star alignments on a target from LAST's one-to-one MAFs, as FASTA: the target first, N elsewhere.

python star.py TARGET.fa OUT_FOLDER NAME.maf ...        a genome each; OUT_FOLDER/CONTIG.fa
python star.py TARGET.fa OUT_FOLDER NAME.maf ... --gaps         deleted bases as - (for indelFit)
python star.py TARGET.fa OUT_FOLDER records.maf --records RECORDS.fa      a record each
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

from rotate import read_fasta

N = ord("N")


def read_blocks(path: Path) -> Iterator[tuple[float, list[str], list[str]]]:
    """Score, target row and query row of each block."""
    rows: list[list[str]] = []
    score = 0.0
    with path.open() as lines:
        for line in lines:
            if line[0] == "a":
                rows, score = [], float(line.split("score=")[1].split()[0])
            elif line[0] == "s":
                rows.append(line.split())
                if len(rows) == 2:
                    yield score, rows[0], rows[1]


def lay(
    path: Path, target: dict[str, str], records: bool, gaps: bool = False
) -> dict[str, dict[str, np.ndarray]]:
    """Rows by contig, of each record or of the genome as a whole; where blocks overlap, the one
    with the higher score."""
    out: dict[str, dict[str, np.ndarray]] = {}
    best: dict[tuple[str, str], np.ndarray] = {}
    for score, top, low in read_blocks(path):
        contig, name = top[1], low[1] if records else path.stem
        x, y = (np.frombuffer(row[6].upper().encode(), np.uint8) for row in (top, low))
        y = y[x != ord("-")].copy()
        if not gaps:
            y[y == ord("-")] = N
        here = out.setdefault(name, {})
        if contig not in here:
            here[contig] = np.full(len(target[contig]), N, np.uint8)
            best[name, contig] = np.full(len(target[contig]), -np.inf, np.float32)
        some = slice(int(top[2]), int(top[2]) + int(top[3]))
        more = best[name, contig][some] < score
        here[contig][some][more] = y[more]
        best[name, contig][some][more] = score
    return out


def main() -> None:
    target, folder = read_fasta(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    records = "--records" in sys.argv
    paths, rows = [Path(p) for p in sys.argv[3:] if p.endswith(".maf")], {}
    for path in paths:
        rows |= lay(path, target, records, "--gaps" in sys.argv)
    names = read_fasta(sys.argv[-1]) if records else [path.stem for path in paths]
    none = {contig: np.full(len(codes), N, np.uint8) for contig, codes in target.items()}
    rows = {name: none | rows.get(name, {}) for name in names}
    for contig, codes in target.items():
        with (folder / f"{contig}.fa").open("w") as out:
            out.write(f">target\n{codes}\n")
            for name, of in rows.items():
                out.write(f">{name}\n{of[contig].tobytes().decode()}\n")
    for name, of in rows.items():
        lies = sum(int((row != N).sum()) for row in of.values())
        print(name, "covers", round(lies / sum(map(len, target.values())), 4))


if __name__ == "__main__":
    main()
