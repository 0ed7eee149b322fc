"""Small families of genomes for tests: copies of a few ancestors, with point changes."""

from pathlib import Path

import numpy as np

from genodiff.alphabet import reverse_complement
from tests.tiny_run import write_fasta

LETTERS = np.frombuffer(b"ACGT", np.uint8)


def change(sequence: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """A copy of which about 3/4 of `rate` of the bases differ."""
    out = sequence.copy()
    hit = rng.random(len(out)) < rate
    out[hit] = LETTERS[rng.integers(0, 4, int(hit.sum()))]
    return out


def turn(sequence: np.ndarray) -> np.ndarray:
    """The reverse complement."""
    return np.frombuffer(reverse_complement(sequence.tobytes()), np.uint8)


def write_contigs(path: Path, **contigs: str | np.ndarray) -> Path:
    return write_fasta(path, contigs)


def write_family(
    folder: Path, n: int = 12, ancestors: int = 6, bases: int = 12_000, rate: float = 0.02
) -> list[tuple[str, int]]:
    """`n` FASTA files of two contigs, of `ancestors` in turn; name and ancestor of each."""
    rng = np.random.default_rng(5)
    parents = [LETTERS[rng.integers(0, 4, bases)] for _ in range(ancestors)]
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for i in range(n):
        copy = change(parents[i % ancestors], rate, rng)
        halves = {f"c{c}": copy[c * bases // 2 : (c + 1) * bases // 2] for c in range(2)}
        write_contigs(folder / f"g{i:02d}.fa", **halves)
        made.append((f"g{i:02d}", i % ancestors))
    return made


def write_list(path: Path, rows: list[dict[str, str]]) -> Path:
    """A list of genomes; the columns are those of the rows."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["\t".join(columns), *("\t".join(row.get(c, "") for c in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` but locks, by its path."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.suffix != ".lock"
    }
