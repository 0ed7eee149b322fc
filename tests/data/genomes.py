"""Small genomes for the tests of the data room: written as FASTA, built as stores; and families of
them, copies of a few ancestors with point changes.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import reverse_complement
from genodiff.data.dna_store import DnaStore, build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.recipe import Recipe, SplitRule
from tests.tiny_run import write_fasta

LETTERS = np.frombuffer(b"ACGT", np.uint8)


def random_dna(length: int, seed: int = 0, letters: str = "ACGT") -> str:
    return "".join(np.random.default_rng(seed).choice(list(letters), length))


def write_contigs(path: Path, **contigs: str | np.ndarray) -> Path:
    return write_fasta(path, contigs)


def recipe_of(
    contigs: dict[str, str],
    *,
    valid: tuple = (),
    test: tuple = (),
    train: object = "rest",
    **more: object,
) -> Recipe:
    rule = SplitRule(train=train, valid=valid, test=test) if valid or test else None
    return Recipe(
        name="small", contigs={c: len(s) for c, s in contigs.items()}, splits=rule, **more
    )


def store_of(
    folder: Path, contigs: dict[str, str], recipe: Recipe | None = None
) -> tuple[DnaStore, Recipe]:
    recipe = recipe or recipe_of(contigs)
    return build_dna_store(recipe, write_fasta(folder / "in.fa", contigs)), recipe


def windows_of(
    folder: Path, contigs: dict[str, str], seq_len: int, recipe: Recipe | None = None, **rule: tuple
) -> DnaWindows:
    """The windows of train; without a recipe, of one that holds out the contigs of `rule`."""
    store, recipe = store_of(folder, contigs, recipe or recipe_of(contigs, **rule))
    return DnaWindows(store, recipe, "train", seq_len)


def covered(
    store: DnaStore, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How often each base of the store lies in a window."""
    count = np.zeros(len(store.flat) + 1, np.int64)
    np.add.at(count, starts, 1)
    np.add.at(count, starts + lengths, -1)
    return np.cumsum(count)[:-1]


def change(sequence: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """A copy of which about 3/4 of `rate` of the bases differ."""
    out = sequence.copy()
    hit = rng.random(len(out)) < rate
    out[hit] = LETTERS[rng.integers(0, 4, int(hit.sum()))]
    return out


def turn(sequence: np.ndarray) -> np.ndarray:
    """The reverse complement."""
    return np.frombuffer(reverse_complement(sequence.tobytes()), np.uint8)


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
        write_fasta(folder / f"g{i:02d}.fa", halves)
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
