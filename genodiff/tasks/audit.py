"""Audit of a benchmark: what its test part shares with train, and what needs no sequence at all.

Counted per class of the test part: sequences that train has too, as they are or as reverse
complements; intervals that train has or overlaps; sequences with half of their 24-mers in train.
Counted too: validation sequences of seed 1 that have half of their 24-mers in what is then fitted.
Beside the counts stands the accuracy of predictors that read no sequence: the commonest class, a
tree on the length, and a lookup of the interval in train. The audited split is the one that was
loaded, so an audit shows whether `dedup` and `chrom-holdout` are clean. Text has one strand and no
k-mers. Of text, equal sentences (whatever their case and blanks), repeats and conflicts count.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from genodiff.data.kmers import K, shared_kmer_fractions
from genodiff.domain import DNA, DOMAINS, TEXT
from genodiff.tasks.examples import (
    Coordinates,
    Examples,
    count_classes,
    count_equal,
    count_overlaps,
    find_known,
    find_overlaps,
    fingerprint_sequences,
)
from genodiff.tasks.homology import fingerprint_texts
from genodiff.tasks.metrics import align_columns, measure
from genodiff.tasks.task import TaskData, seed_split

HALF = 0.5
ALL = "all"


def audit(data: TaskData) -> dict[str, Any]:
    """The findings as plain values.

    Shares and accuracies are in [0, 1], and None where they cannot be known. Keys: suite, task,
    split, classes, counts, lengths, leaks (name → class → [found, of]), validation_near ([found,
    of]), repeats, conflicts, blank (sequences of N only), accuracy (name → value), notes.
    """
    task, train, test = data.task, data.train, data.test
    parts, known = {"train": train, "test": test}, _KEYS[task.domain]
    groups = _groups(test, task.classes, task.kind)
    leaks = _LEAKS[task.domain](train, test)
    lengths = {part: examples.lengths for part, examples in parts.items()}
    nothing = b"N" if DOMAINS[task.domain].blank == "N" else None
    return {
        "suite": task.suite,
        "task": task.name,
        "split": data.split,
        "classes": list(task.classes),
        "domain": task.domain,
        "counts": {
            part: count_classes(e.labels, task.classes) if task.classes else {ALL: e.n}
            for part, e in parts.items()
        },
        "lengths": {
            part: [int(x.min()), float(np.median(x)), int(x.max())] for part, x in lengths.items()
        },
        "leaks": {
            name: leak
            if leak is None
            else {group: [int(leak[of].sum()), int(of.sum())] for group, of in groups.items()}
            for name, leak in leaks.items()
        },
        "validation_near": _count_near_validation(data),
        "repeats": _repeats(parts, known),
        "conflicts": _conflicts(train, test, known),
        "blank": {
            part: sum(not s.strip(nothing) for s in examples.sequences)
            for part, examples in parts.items()
        },
        "accuracy": _trivial(data) if task.kind in ("binary", "multiclass") else {},
        "notes": list(data.notes),
    }


def _leaks(train: Examples, test: Examples) -> dict[str, NDArray[np.bool_] | None]:
    """For each kind of leak: which test examples it touches, or None where the data cannot tell."""
    leaks: dict[str, NDArray[np.bool_] | None] = dict.fromkeys(
        ("same", "reverse_complement", "shared_kmers", "same_place", "overlap")
    )
    if train.sequences and test.sequences:
        same, either = (
            find_known(
                fingerprint_sequences(test.sequences, both_strands=both),
                fingerprint_sequences(train.sequences, both_strands=both),
            )
            for both in (False, True)
        )
        with np.errstate(invalid="ignore"):
            kmers = shared_kmer_fractions(test.sequences, train.sequences) >= HALF
        leaks |= {"same": same, "reverse_complement": either & ~same, "shared_kmers": kmers}
    if train.coordinates is not None and test.coordinates is not None:
        zeros = np.zeros(train.n, np.int64)
        leaks["same_place"] = count_equal(test.coordinates, train.coordinates, zeros, 1)[:, 0] > 0
        leaks["overlap"] = find_overlaps(test.coordinates, train.coordinates)
    return leaks


def _count_near_validation(data: TaskData) -> list[int] | None:
    """How many validation sequences of seed 1 have half of their 24-mers in the fitted ones."""
    if data.task.domain != DNA.name or not data.train.sequences or data.train.n < 2:
        return None
    train, valid = (data.train.take(rows).sequences for rows in seed_split(data, 1))
    with np.errstate(invalid="ignore"):
        near = shared_kmer_fractions(valid, train) >= HALF
    return [int(near.sum()), len(valid)]


def _text_leaks(train: Examples, test: Examples) -> dict[str, NDArray[np.bool_] | None]:
    own, known = fingerprint_texts(test.sequences), fingerprint_texts(train.sequences)
    return {"same": find_known(own, known)}


_LEAKS = {DNA.name: _leaks, TEXT.name: _text_leaks}
_KEYS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    DNA.name: partial(fingerprint_sequences, both_strands=True), TEXT.name: fingerprint_texts,
}  # fmt: skip
"""Keys of sequences: two sequences of a domain are the same where their keys are equal."""


def _groups(test: Examples, classes: tuple[str, ...], kind: str) -> dict[str, NDArray[np.bool_]]:
    """Which test examples belong to each class, and to all of them."""
    groups = {ALL: np.ones(test.n, bool)}
    if kind == "multilabel":
        return groups | {name: test.labels[:, i] > 0 for i, name in enumerate(classes)}
    return groups | {name: test.labels == i for i, name in enumerate(classes)}


def _repeats(
    parts: dict[str, Examples], known: Callable[[list[bytes]], list[bytes]]
) -> dict[str, int | None]:
    """How many examples of each part repeat another one of that part, on either strand."""
    keys = {part: known(e.sequences) for part, e in parts.items() if e.sequences}
    return {
        part: len(keys[part]) - len(set(keys[part])) if part in keys else None for part in parts
    }


def _conflicts(
    train: Examples, test: Examples, known: Callable[[list[bytes]], list[bytes]]
) -> int | None:
    """How many sequences have different labels, in both parts together."""
    if not train.sequences or not test.sequences:
        return None
    labels: dict[bytes, set[bytes]] = {}
    for examples in (train, test):
        for key, label in zip(known(examples.sequences), examples.labels, strict=True):
            labels.setdefault(key, set()).add(label.tobytes())
    return sum(len(different) > 1 for different in labels.values())


def _trivial(data: TaskData) -> dict[str, float | None]:
    """Accuracy on the test part of what reads no sequence."""
    train, test, n, cap = data.train, data.test, len(data.task.classes), data.task.max_length
    scores: dict[str, NDArray[np.float64] | None] = {
        "majority": np.tile(np.bincount(train.labels, minlength=n) / train.n, (test.n, 1)),
        "length_tree": predict_by_length(train.lengths, train.labels, test.lengths, n),
        **dict.fromkeys(("lookup_same", "lookup_overlap")),
    }
    if DOMAINS[data.task.domain].unit == "base":  # texts are cut by tokens, whose number is unknown
        scores["length_tree_cut"] = predict_by_length(
            np.minimum(train.lengths, cap), train.labels, np.minimum(test.lengths, cap), n
        )
    if train.coordinates is not None and test.coordinates is not None:
        scores["lookup_same"] = predict_by_lookup(train, test.coordinates, n, exact=True)
        scores["lookup_overlap"] = predict_by_lookup(train, test.coordinates, n, exact=False)
    return {
        name: None if found is None else measure("accuracy", data.task.kind, test.labels, found)
        for name, found in scores.items()
    }


def predict_by_length(
    train: NDArray[np.int64], labels: NDArray[np.int64], test: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """(n_test, classes): a decision tree that sees nothing but the lengths of the sequences."""
    # Equal rows are put together under a weight: the same tree, many times faster.
    rows, weight = np.unique(np.stack([train, labels], axis=1), axis=0, return_counts=True)
    tree = DecisionTreeClassifier(random_state=0).fit(rows[:, :1], rows[:, 1], sample_weight=weight)
    return align_columns(tree.classes_, tree.predict_proba(test[:, None]), n_classes)


def predict_by_lookup(
    train: Examples, test: Coordinates, n_classes: int, *, exact: bool
) -> NDArray[np.float64]:
    """(n_test, classes): classes of the train intervals that a test interval equals or overlaps.

    `exact` asks for equal intervals. Where there is none, the classes of the train intervals that
    meet no other train interval: a class whose members are found again is then ruled out by not
    being found. Uses no label of the test part.
    """
    assert train.coordinates is not None
    count = count_equal if exact else count_overlaps
    labels = train.labels
    among = count(train.coordinates, train.coordinates, labels, n_classes)
    among[np.arange(train.n), labels] -= 1
    alone = labels[among.sum(axis=1) == 0]
    absent = np.bincount(alone if len(alone) else labels, minlength=n_classes)
    found = count(test, train.coordinates, labels, n_classes)
    scores = np.where(found.sum(axis=1, keepdims=True) > 0, found, absent).astype(np.float64)
    return scores / scores.sum(axis=1, keepdims=True)


_WORDS = {
    "same": "test sequences that train has too",
    "reverse_complement": "test sequences whose reverse complement train has",
    "shared_kmers": f"test sequences half of whose {K}-mers train has",
    "same_place": "test intervals that train has exactly",
    "overlap": "test intervals that overlap a train interval",
    "majority": "always the commonest class",
    "length_tree": "a tree on the length alone",
    "length_tree_cut": "the same, lengths cut to max_length",
    "lookup_same": "looking up the same interval in train",
    "lookup_overlap": "looking up an overlapping interval in train",
}


def audit_lines(found: dict[str, Any]) -> list[str]:
    """An audit in words, for a terminal or under a table."""
    counts = {
        part: " / ".join(f"{n:,}" for n in of.values()) for part, of in found["counts"].items()
    }
    spans = {
        part: f"{low:,} to {high:,} (median {middle:,.0f})"
        for part, (low, middle, high) in found["lengths"].items()
    }
    lines = [
        f"{found['suite']}/{found['task']}, split {found['split']}; classes: "
        f"{', '.join(found['classes']) or 'none (values)'}"
    ]
    lines += [f"  {part}: {counts[part]} examples, lengths {spans[part]}" for part in counts]
    for name, leak in found["leaks"].items():
        if leak is None:
            continue
        each = ", ".join(f"{c} {_percent(*leak[c])}" for c in leak if c != ALL)
        lines.append(
            f"  leak: {leak[ALL][0]:,} {_WORDS[name]} "
            f"({_percent(*leak[ALL])}{': ' + each if each else ''})"
        )
    if found.get("validation_near") is not None:
        near, of = found["validation_near"]
        lines.append(
            f"  leak: {near:,} validation sequences of seed 1 half of whose {K}-mers are fitted "
            f"({_percent(near, of)})"
        )
    for part, n in found["repeats"].items():
        lines += [f"  {part} repeats itself: {n:,} duplicate sequences"] if n else []
    for part, n in found["blank"].items():
        lines += [f"  {part} has {n:,} sequences of {_nothing(found)} only"] if n else []
    if found["conflicts"]:
        lines.append(f"  conflict: {found['conflicts']:,} sequences stand with different labels")
    for name, value in sorted(
        found["accuracy"].items(), key=lambda item: list(_WORDS).index(item[0])
    ):
        if value is not None:
            lines.append(f"  accuracy without reading: {value:.1%} by {_WORDS[name]}")
    if any(leak is None for leak in found["leaks"].values()):
        missing = [
            what
            for what, key in (("coordinates", "overlap"), ("sequences", "same"))
            if found["leaks"].get(key, ()) is None
        ]
        lines.append(f"  not looked at, for want of {' and '.join(missing)}: what needs them")
    return lines + [f"  note: {note}" for note in found["notes"]]


def _percent(n: int, of: int) -> str:
    return f"{n / of:.1%}" if of else "none"


def _nothing(found: dict[str, Any]) -> str:
    return DOMAINS[found.get("domain", DNA.name)].blank


def list_warnings(found: dict[str, Any]) -> list[str]:
    """What a user should know before training on these data: leaks, duplicates, conflicts, cuts."""
    warnings = []
    leaks = {name: leak[ALL] for name, leak in found["leaks"].items() if leak is not None}
    for name in ("same", "reverse_complement", "same_place", "overlap", "shared_kmers"):
        n, of = leaks.get(name, (0, 0))
        near = name == "shared_kmers"  # a few are found by chance
        if n > (max(1, of // 100) if near else 0):
            noun = "overlap" if near else "leak"
            warnings.append(f"{noun} between train and test: {n:,} {_WORDS[name]}, of {of:,}")
    warnings += [
        f"{n:,} duplicate sequences inside the {part} part"
        for part, n in found["repeats"].items()
        if n
    ]
    if found["conflicts"]:
        n = f"{found['conflicts']:,}"
        warnings.append(f"conflicting labels: {n} sequences stand with both, or several, labels")
    warnings += [
        f"{n:,} sequences of the {part} part are {_nothing(found)} only"
        for part, n in found["blank"].items()
        if n
    ]
    for part, counts in found["counts"].items():
        empty = [name for name, n in counts.items() if not n]
        warnings += [f"the {part} part has no example of class '{empty[0]}'"] if empty else []
    length, majority_share = found["accuracy"].get("length_tree"), found["accuracy"].get("majority")
    if length is not None and majority_share is not None and length > majority_share + 0.05:
        warnings.append(
            f"the length alone tells {length:.1%} of the test examples (the commonest class "
            f"{majority_share:.1%})"
        )
    return warnings + list(found["notes"])
