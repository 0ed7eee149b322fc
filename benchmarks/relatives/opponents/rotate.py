"""Turn circular genomes to the target's origin and strand, by shared unique 15-mers.

python rotate.py TARGET.fa OUT.fa GENOMES.fa.gz ...
"""

import gzip
import sys
from collections import Counter, defaultdict
from pathlib import Path

K = 15
TURN = str.maketrans("ACGT", "TGCA")


def read_fasta(path: str) -> dict[str, str]:
    parts: dict[str, list[str]] = {}
    with gzip.open(path, "rt") if path.endswith("gz") else Path(path).open() as lines:
        for line in lines:
            if line[0] == ">":
                parts[line[1:].split()[0]] = rows = []
            else:
                rows.append(line.strip().upper())
    return {name: "".join(rows) for name, rows in parts.items()}


def turn(codes: str, at: dict[str, int]) -> str:
    """The record on the target's strand, cut at the target's origin."""
    strands = (codes, codes.translate(TURN)[::-1])
    hits = [
        [(at[q[j : j + K]], j) for j in range(len(q) - K + 1) if q[j : j + K] in at]
        for q in strands
    ]
    strand = len(hits[1]) > len(hits[0])
    best, q = hits[strand], strands[strand]
    # The offset away from the origin, so that lengths of the control region do not matter.
    apart = Counter(((j - i) % len(q)) // 50 for i, j in best if 500 < i < 4000)
    usual = apart.most_common(1)[0][0]
    i, j = min((i, j) for i, j in best if abs(((j - i) % len(q)) // 50 - usual) <= 2)
    cut = (j - i) % len(q)
    return q[cut:] + q[:cut] if min(cut, len(q) - cut) > 30 else q


def main() -> None:
    target = next(iter(read_fasta(sys.argv[1]).values()))
    places = defaultdict(list)
    for i in range(len(target) - K + 1):
        places[target[i : i + K]].append(i)
    at = {word: where[0] for word, where in places.items() if len(where) == 1}
    with Path(sys.argv[2]).open("w") as out:
        for path in sys.argv[3:]:
            for name, codes in read_fasta(path).items():
                out.write(f">{name}\n{turn(codes, at)}\n")


if __name__ == "__main__":
    main()
