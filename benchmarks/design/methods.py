"""The methods of the demonstration: each writes designs of one aim and one seed.

Guidances are those of `genodiff sample`. `best-of-n` takes the best of as many unguided samples,
the same ones for both aims: its law is that of `--guidance best-of-n`.
Editors begin from native cores of held-out chromosomes, drawn by the seed:

    ga       32 of them, 20 generations of 32: parents by tournaments of 3, uniform crossover, each
             base changed with chance 1/80, the best two stay; the best of the last is the design
    redesign `genodiff redesign --max-edits 12 --guidance smc` on the best of 32
    edit     rounds of editing by the generator (editing.py); edit-even fills evenly in its place
    ledidi   Ledidi's own settings on one of them, but for `max_iter`; the best of its 16
    greedy   tangermeme's greedy substitution on one of them

Ledidi and tangermeme are no dependencies of genodiff: without them their rows are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from editing import Editor, Fill, count_each, fill_by_network, fill_evenly, search_train
from promoter_oracles import Counting, score
from yeast import read_fasta, write_fasta

import genodiff
from genodiff.scoring.one_hot import encode_one_hot

LENGTH = 80
EDITS = 12
ENDS = {1: 16.0, -1: 1.6}  # Ledidi needs a value to reach: the 99th and first percentile measured


def decode(array: torch.Tensor) -> list[str]:
    """The letters of an (N, 4, L) array, N for a column of zeros."""
    columns = torch.where(array.sum(1) > 0, array.argmax(1), 4)
    return ["".join("ACGTN"[i] for i in row) for row in columns.tolist()]


@dataclass(frozen=True)
class Task:
    """What a method is given; `calls` is the oracle's sequences for each design."""

    generator: Path
    conditional: Path
    natives: list[str]
    oracle: Counting
    n: int
    calls: int
    steps: int
    seed: int
    folder: Path

    def draw(self, name: str, guide: dict[str, Any] | None = None, n: int | None = None) -> Path:
        """Samples of the generator, in a file."""
        path = self.folder / f"{name}.fa"
        given: dict[str, Any] = {"n": n or self.n, "length": LENGTH, "steps": self.steps}
        genodiff.sample(
            self.generator, out=path, **given, guide=guide, seed=self.seed, device="cpu"
        )
        return path

    def guide(self, name: str, strength: float, **options: float) -> list[str]:
        """Guided samples; the strength is per unit of expression."""
        guide = {"guidance": name, "strength": strength, "oracle": self.oracle, "options": options}
        guide["max_calls"] = self.calls
        label = f"{name}-{strength:g}-{'low' if self.oracle.sign < 0 else 'high'}"
        return read_fasta(self.draw(label, guide))


def particles(task: Task, drawn: int, spent: int = 0) -> int:
    """As many as the calls allow, in fours."""
    return (task.calls - spent) // (drawn * (task.steps - 1) + 1) // 4 * 4


def run_unguided(task: Task) -> list[str]:
    return read_fasta(task.draw("unguided"))


def run_cfg(task: Task) -> list[str]:
    aim = "low" if task.oracle.sign < 0 else "high"
    guide = {"guidance": "cfg", "strength": 2.0, "conditional": task.conditional}
    return read_fasta(task.draw(f"cfg-{aim}", guide))


def run_best(task: Task) -> list[str]:
    pool = task.draw(f"pool-{task.n}x{task.calls}", n=task.n * task.calls)
    texts = read_fasta(pool)
    found = score(task.oracle, texts).reshape(task.n, task.calls)
    return [texts[i * task.calls + j] for i, j in enumerate(found.argmax(1).tolist())]


def run_ga(task: Task) -> list[str]:
    draws = np.random.default_rng([task.seed, 1])
    size = 32
    found = []
    for _ in range(task.n):
        chosen = draws.choice(len(task.natives), size, replace=False)
        x = np.stack([np.frombuffer(task.natives[i].encode(), np.uint8) for i in chosen])
        value = ask(task.oracle, x)
        for _ in range(task.calls // size - 1):
            fathers, mothers = (_choose(value, size - 2, draws) for _ in range(2))
            child = np.where(draws.random((size - 2, LENGTH)) < 0.5, x[fathers], x[mothers])
            hit = draws.random(child.shape) < 1 / LENGTH
            child = np.where(hit, draws.choice(np.frombuffer(b"ACGT", np.uint8), hit.shape), child)
            best = value.argsort()[-2:]
            x = np.concatenate([x[best], child])
            value = np.concatenate([value[best], ask(task.oracle, child)])
        found.append(x[value.argmax()].tobytes().decode())
    return found


def ask(oracle: Counting, x: np.ndarray) -> np.ndarray:
    return score(oracle, [row.tobytes().decode() for row in x])


def _choose(value: np.ndarray, n: int, draws: np.random.Generator) -> np.ndarray:
    rivals = draws.integers(len(value), size=(n, 3))
    return rivals[np.arange(n), value[rivals].argmax(1)]


def run_edit(task: Task, fill: Fill | None = None) -> list[str]:
    """Editing in rounds, by the generator unless `fill` is given."""
    data = task.generator.parent / "data"
    words = count_each(read_fasta(data / "natives_train.fa")).sum(0)
    filling = fill or fill_by_network(task.generator)
    editor = Editor(task.natives, task.oracle, filling, search_train(data), words)
    return editor.run(task.n, task.calls, task.seed)


def run_redesign(task: Task) -> list[str]:
    """Of each of 32 natives the best is designed anew, at most `EDITS` bases of it."""
    model = genodiff.load(task.generator, device="cpu")
    draws = np.random.default_rng([task.seed, 5])
    size = particles(task, 2, spent=32)

    def rate(texts: list[str]) -> list[float]:
        return [float(x) for x in score(task.oracle, texts)]

    found = []
    for i in range(task.n):
        some = [task.natives[j] for j in draws.choice(len(task.natives), 32, False).tolist()]
        start = some[int(score(task.oracle, some).argmax())]
        guide = {"strength": 4.0, "options": {"particles": size, "drawn": 2}}
        rules = {"max_edits": EDITS}
        how: dict[str, Any] = {"steps": task.steps, "seed": 1000 * task.seed + i, "guide": guide}
        found += model.redesign(start, regions=[(0, LENGTH)], rules=rules, oracle=rate, **how)
    return found


def draw_starts(task: Task) -> list[str]:
    """A native core for each design: the same for all editors."""
    draws = np.random.default_rng([task.seed, 2])
    chosen = draws.choice(len(task.natives), task.n, replace=False)
    return [task.natives[i] for i in chosen.tolist()]


def run_ledidi(task: Task) -> list[str]:
    from ledidi import ledidi  # type: ignore[import-not-found]

    found, end = [], task.oracle.sign * ENDS[task.oracle.sign]
    for i, start in enumerate(draw_starts(task)):
        some = ledidi(
            task.oracle,
            encode_one_hot([start]),
            torch.tensor([[end]]),
            device="cpu",
            verbose=False,
            max_iter=task.calls // 16 - 2,  # one call for the start, and 16 for the choice
            random_state=1000 * task.seed + i,
        )
        texts = decode(some.detach())
        found.append(texts[int(score(task.oracle, texts).argmax())])
    return found


def run_greedy(task: Task) -> list[str]:
    from tangermeme.design import greedy_substitution  # type: ignore[import-not-found]

    found = []
    for start in draw_starts(task):
        edited = greedy_substitution(
            task.oracle,
            encode_one_hot([start]),
            max_iter=task.calls // (4 * LENGTH),
            batch_size=LENGTH,
            device="cpu",
        )
        found += decode(edited)
    return found


METHODS: dict[str, Callable[[Task], list[str]]] = {
    "unguided": run_unguided,
    "cfg": run_cfg,
    "smc": lambda task: task.guide("smc", 1.0, particles=particles(task, 2), drawn=2),
    "smc-strong": lambda task: task.guide("smc", 4.0, particles=particles(task, 2), drawn=2),
    "beam": lambda task: task.guide("beam", 4.0, particles=particles(task, 2), drawn=2),
    "exact": lambda task: task.guide("exact", 1.0, drawn=task.calls // (4 * LENGTH)),
    "redesign": run_redesign,
    "edit": run_edit,
    "edit-even": lambda task: run_edit(task, fill_evenly),
    "ga": run_ga,
    "ledidi": run_ledidi,
    "greedy": run_greedy,
    "first-order": lambda task: task.guide("first-order", 1.0, drawn=task.calls // task.steps),
    "best-of-n": run_best,
}
EXTERNAL = {"ledidi": "ledidi", "greedy": "tangermeme"}


def list_methods() -> list[str]:
    """Those that can run here."""
    return [m for m in METHODS if m not in EXTERNAL or find_spec(EXTERNAL[m]) is not None]


def write_designs(name: str, task: Task, path: Path) -> None:
    """The designs of a method."""
    write_fasta(path, METHODS[name](task))
