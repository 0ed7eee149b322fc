"""A small task with a known answer: does a sequence hold TATAAAGC, on either strand? And genomes
with a label at each base that its letter decides.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from genodiff.alphabet import reverse_complement
from genodiff.finetuning.batches import EncodedPart
from genodiff.finetuning.fit import SequenceLesson
from genodiff.finetuning.fit_loop import FitLoop
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.protocol import FitSettings
from genodiff.tasks.examples import Examples
from genodiff.tasks.suite import Task
from genodiff.tasks.task import TaskData

MOTIF = b"TATAAAGC"


def examples(
    n: int, seed: int, lengths: tuple[int, int] = (40, 40), kind: str = "binary"
) -> Examples:
    rng = np.random.default_rng(seed)
    sequences, labels = [], []
    for i in range(n):
        length = int(rng.integers(lengths[0], lengths[1] + 1))
        sequence = bytearray(rng.choice(np.frombuffer(b"ACGT", np.uint8), length).tobytes())
        label = i % 2
        if label:
            at = int(rng.integers(0, length - len(MOTIF)))
            other = reverse_complement(MOTIF)
            assert isinstance(other, bytes)
            sequence[at : at + len(MOTIF)] = MOTIF if rng.random() < 0.5 else other
        sequences.append(bytes(sequence))
        labels.append(label)
    found = np.array(labels)
    if kind == "multiclass":
        found = np.where(found == 1, 2, np.arange(n) // 2 % 2)
    if kind == "multilabel":
        found = np.stack([found, 1 - found, np.arange(n) % 3 == 0], 1).astype(np.uint8)
    if kind == "regression":
        found = found * 3.0 + 10
    return Examples(sequences, found, [f"s{i}" for i in range(n)])


def write_tables(
    folder: Path,
    n: int = 24,
    n_test: int = 12,
    lengths: tuple[int, int] = (20, 30),
    labels: Sequence[str] = "01",
) -> Path:
    """Write train.csv and test.csv of names, sequences and labels; returns the folder."""
    for part, count, seed in (("train", n, 1), ("test", n_test, 2)):
        some = examples(count, seed, lengths)
        rows = zip(some.names, some.sequences, some.labels, strict=True)
        text = "".join(f"{name},{s.decode()},{labels[y]}\n" for name, s, y in rows)
        (folder / f"{part}.csv").write_text("name,seq,label\n" + text)
    return folder


def draw_letters(contigs: dict[str, int], seed: int = 1) -> dict[str, str]:
    draw = np.random.default_rng(seed)
    return {name: "".join(draw.choice(list("ACGT"), n)) for name, n in contigs.items()}


def write_genome(folder: Path, letters: dict[str, str]) -> None:
    """Write g.fa, and a.bed with each A as `a` on + and each T as `a` on -."""
    (folder / "g.fa").write_text("".join(f">{name}\n{text}\n" for name, text in letters.items()))
    ways = {"A": "+", "T": "-"}
    rows = (f"{name}\t{i}\t{i + 1}\ta\t0\t{ways[c]}\n"
            for name, text in letters.items() for i, c in enumerate(text) if c in ways)  # fmt: skip
    (folder / "a.bed").write_text("".join(rows))


def task_data(
    n: int = 64,
    n_test: int = 24,
    lengths: tuple[int, int] = (40, 40),
    kind: str = "binary",
    **more: object,
) -> TaskData:
    classes = {
        "binary": ("without", "with"),
        "multiclass": ("a", "b", "c"),
        "multilabel": ("x", "y", "z"),
        "regression": (),
    }[kind]
    metrics = ("pearson", "mse") if kind == "regression" else ("accuracy", "f1", "auroc")
    task = Task(
        suite="own",
        name="motif",
        kind=kind,
        classes=classes,
        metrics=metrics,
        max_length=200,
        **more,
    )  # type: ignore[arg-type]
    return TaskData(
        task, examples(n, 1, lengths, kind), examples(n_test, 2, lengths, kind), "official"
    )


def fit(
    classifier: Classifier,
    parts: tuple[EncodedPart, EncodedPart],
    settings: FitSettings,
    seed: int = 1,
    kind: str = "binary",
    metric: str = "accuracy",
    **how: object,
) -> FitLoop:
    """The loop of a fit, after it; `how` is of `FitLoop.run`."""
    loop = FitLoop(SequenceLesson(classifier, parts, kind, metric, settings, seed))
    list(loop.run(**how))  # type: ignore[arg-type]
    return loop
