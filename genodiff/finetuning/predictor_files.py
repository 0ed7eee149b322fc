"""What a finished unit keeps for prediction, in its own folder (see `unit`).

`predictor.json` says how weights (and the tokenizer/ of a text network) are put together, and the
labels; it is sealed and written last, so a folder with it is complete. It needs nothing outside
itself, not the checkpoint that the fit began from either. Nothing in it is a pickle.

Forms: `network` (network and head), `cnn`, `kmer-lr`. Other baselines are not kept: a tree, a
dictionary of words and a table of intervals have no safe format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import BACKBONES, BackboneSettings
from genodiff.domain import DOMAINS, DomainName
from genodiff.errors import CheckpointError, GenodiffError, printable
from genodiff.finetuning.choosing import describe_choice
from genodiff.finetuning.fit import SavedPredictor
from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.unit import MODEL, PREDICTOR, README, Unit
from genodiff.io import atomic
from genodiff.runs.feed import write_tokenizer
from genodiff.runs.sealed_files import (
    AGAIN,
    FORMAT_VERSION,
    encode_tensors,
    read_alphabet,
    read_sealed,
    seal,
    to_utf8,
)
from genodiff.settings import OneOf, Settings
from genodiff.tasks.contamination import describe_contamination, describe_left_out
from genodiff.tasks.labels import Kind
from genodiff.tasks.suite import Task
from genodiff.version import __version__

_TAGS = {"dna": ("biology", "genomics", "dna"), "text": ("text",)}
_STRANDS = {
    "conjoin": "both, read together; their scores are averaged",
    "average": "both, read apart; their scores are averaged",
    "augment": "the given one; training showed both",
    "none": "the given one",
}


_EXAMPLES = {
    "dna": ("sequences.fa", '["ACGT...", "GATT..."]'),
    "text": ("sentences.csv", '["A sentence."]'),
}


def format_card(card: PredictorCard) -> str:
    """The text of the card, in Markdown."""
    tags = [f"- {tag}" for tag in (*_TAGS[card.domain], "sequence-classification")]
    given, example = _EXAMPLES[card.domain]
    limits = [
        "## Limits\n",
        "- Probabilities are as calibrated as the fit left them; nothing was recalibrated.",
        "- Sequences unlike the train part get an answer too, with no warning.",
        *(["- Not for clinical use."] if card.domain == "dna" else []),
    ]
    parts = [
        "\n".join(["---", "license: other", "tags:", *tags, "---"]),
        _what(card),
        f"## Use\n\n```console\ngenodiff predict THIS_FOLDER {given} --out predictions.csv\n```",
        '```python\nimport genodiff\n\nmodel = genodiff.load("THIS_FOLDER")\n'
        f"model.predict({example})\n```",
        _data(card),
        _metrics(card),
        "\n".join(limits),
    ]
    return "\n\n".join(parts) + "\n"


def _what(card: PredictorCard) -> str:
    unit, unit_of_length = card.unit, DOMAINS[card.domain].units
    rows = {
        "task": f"{unit.suite} {unit.task}, split {unit.split}",
        "answers": ", ".join(card.classes) if card.classes else "a value",
        "kind": card.kind,
        "model": f"{unit.model} ({unit.method}), seed {unit.seed}",
        "sequences": f"the first {card.max_length:,} {unit_of_length} are read",
    }
    if card.settings is not None and card.network is not None:
        net, parts = card.network.settings, card.settings.parts
        rows["strands"] = _STRANDS.get(card.settings.rc, card.settings.rc)
        rows["network"] = f"{net.kind}, {net.d_model} wide, {net.n_layer} layers"
        rows["head"] = card.settings.head + (f" ({parts} stretches)" if parts > 1 else "")
    rows |= {f"choice of {c['of']}": describe_choice(c) for c in card.choices}
    if card.pretraining.get("pretrained_on"):
        about = card.pretraining
        rows["pre-trained on"] = f"{about['pretrained_on']} ({about['checkpoint']})"
    rows["weights"] = f"{card.weights_sha256[:12]} (first 12 hex digits of their sha256)"
    rows["written by"] = f"genodiff {__version__}"
    lines = "\n".join(f"| {key} | {printable(value)} |" for key, value in rows.items())
    return f"# {printable(unit.task)}: {printable(unit.model)}\n\n| | |\n|---|---|\n{lines}"


def _data(card: PredictorCard) -> str:
    lines = [
        f"{card.n_train:,} sequences trained it, and {card.n_valid:,} others chose the epoch "
        f"(digest of the data: {card.unit.data}).",
        *(f"Note: {printable(note)}." for note in card.notes),
    ]
    if card.licence:
        lines.append(f"Licence of the data: {printable(card.licence)}.")
    if card.source:
        lines.append(f"Source: {printable(card.source)}.")
    return "## Data\n\n" + "\n".join(lines)


def _metrics(card: PredictorCard) -> str:
    rows = [f"| validation | {card.metric} | {_number(card.valid)} | {card.n_valid:,} |"]
    rows += [
        f"| test | {name} | {_number(value)} | {card.n_test:,} |"
        for name, value in card.test.items()
    ]
    text = "## Metrics\n\n| part | metric | value | examples |\n|---|---|---|---|\n"
    text += "\n".join(rows)
    if card.ci95 is not None:
        low, high = card.ci95
        text += f"\n\n95 % interval of the test {card.metric}: {low:.4f} to {high:.4f}."
    seen = []
    if "left_out" in card.seen:
        seen.append(describe_left_out(card.seen["left_out"]))
    if "pretraining" in card.seen:
        seen.append(describe_contamination(card.unit.model, card.seen["pretraining"]))
    text += "".join(f"\n\n{printable(line[0].upper() + line[1:])}." for line in seen)
    return text if card.test else f"{text}\n\nThese weights were not scored on the test part."


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.4f}"


class UnitName(Settings):
    """Which unit it is; `model` is what the sweep calls its model."""

    suite: str
    task: str
    split: str
    data: str
    model: str
    kind: str
    digest: str
    method: str
    setting: str
    seed: int
    key: str


class NetworkShape(Settings):
    """A network without its weights."""

    settings: Annotated[BackboneSettings, OneOf(lambda: dict(sorted(BACKBONES.items())))]
    alphabet: dict[str, Any]
    alphabet_sha256: str

    def read_alphabet(self) -> Alphabet:
        """Tokens and their ids. Raises `CheckpointError` where they are not whole."""
        alphabet = read_alphabet(self.alphabet)
        if alphabet.fingerprint() != self.alphabet_sha256:
            raise CheckpointError("the vocabulary differs from its fingerprint", fix=AGAIN)
        return alphabet


class PredictorCard(Settings):
    """The content of `predictor.json`.

    `scale` is (mean, standard deviation) of the values in train, for regression. `max_length` is
    how many bases (or tokens) of a sequence are read, `n_texts` how many sentences a text has.
    `test` is empty where the fit was not scored. `choices` says how validation chose the settings,
    `seen` what pretraining saw of the test part.
    """

    form: Literal["network", "cnn", "kmer-lr"]
    unit: UnitName
    domain: DomainName
    kind: Kind
    classes: tuple[str, ...]
    metric: str
    max_length: Annotated[int, Field(ge=1)]
    n_texts: int = 1
    scale: tuple[float, float] = (0.0, 1.0)
    settings: FitSettings | None = None
    network: NetworkShape | None = None
    pretraining: dict[str, Any] = Field(default_factory=dict)
    choices: tuple[dict[str, Any], ...] = ()
    seen: dict[str, Any] = Field(default_factory=dict)
    about: dict[str, Any] = Field(default_factory=dict)
    n_train: int = 0
    n_valid: int = 0
    n_test: int = 0
    valid: float | None = None
    test: dict[str, float | None] = Field(default_factory=dict)
    ci95: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    licence: str = ""
    source: str = ""
    created: str = ""
    weights_sha256: str


def can_keep(method: str, baseline: str | None) -> bool:
    """Whether a fit by this method, or this baseline, has a form in which it can be kept."""
    return method != "baseline" or baseline in list_baselines(is_kept=True)


def write_predictor(
    unit: Unit,
    task: Task,
    predictor: SavedPredictor,
    row: dict[str, Any],
    folder: Path,
    *,
    scored: bool = True,
) -> None:
    """Keep a fit in its unit's folder; `row` is the unit's row, of which `scored` test values.

    Raises `MachineError` where the disk is full; then there is no `predictor.json`.
    """
    raw = encode_tensors(predictor.tensors())
    digest = hashlib.sha256(raw).hexdigest()
    values = {
        "form": predictor.form,
        "unit": {
            **{k: getattr(unit, k) for k in ("suite", "task", "split", "data", "setting", "seed")},
            "model": unit.model.name, "kind": unit.model.kind, "digest": unit.model.digest,
            "method": unit.method, "key": unit.key,
        },
        "domain": task.domain, "kind": task.kind, "classes": list(task.classes),
        "metric": task.metrics[0], "max_length": predictor.longest,
        "n_texts": predictor.n_texts, "scale": list(predictor.scale),
        "settings": None if unit.method == "baseline" else unit.settings.model_dump(mode="json"),
        "network": None if unit.method == "baseline" else describe_network(unit.model),
        "pretraining": unit.model.describe(),
        "about": predictor.about(), "choices": unit.choices, "seen": unit.seen if scored else {},
        "n_train": row["n_train"], "n_valid": row["n_valid"],
        "n_test": row["n_test"] if scored else 0, "valid": row["valid"],
        "test": row["metrics"] if scored else {}, "ci95": row["ci95"] if scored else None,
        "notes": row["notes"], "licence": task.licence, "source": task.source,
        "created": row["created"], "weights_sha256": digest,
    }  # fmt: skip
    values = to_utf8(json.loads(json.dumps(values)))
    card = PredictorCard.parse(values)
    if unit.method != "baseline":
        write_tokenizer(folder, unit.model.tokenizer_files())
    atomic.write_bytes(folder / MODEL, raw)
    atomic.write_text(folder / README, format_card(card))
    about = {"format_version": FORMAT_VERSION, "genodiff": __version__}
    atomic.write_json(folder / PREDICTOR, seal(about | values))


def describe_network(model: ModelSpec) -> dict[str, Any]:
    """A model's `NetworkShape`, as JSON."""
    settings, alphabet = model.shape()
    return {
        "settings": settings.model_dump(mode="json"),
        "alphabet": alphabet.to_json(),
        "alphabet_sha256": alphabet.fingerprint(),
    }


def read_predictor(folder: Path) -> PredictorCard:
    """`predictor.json` of a unit's folder, after every check.

    Raises `CheckpointError`, naming the file and the fault.
    """
    return read_sealed(folder / PREDICTOR, PredictorCard)


@contextmanager
def rebuilding(folder: Path) -> Iterator[None]:
    """What is built of a saved description does not fit it: `CheckpointError` of the `folder`."""
    try:
        yield
    except CheckpointError as fault:
        raise CheckpointError(fault.what, file=fault.file or folder, fix=fault.fix) from None
    except (GenodiffError, LookupError, TypeError, ValueError, RuntimeError) as fault:
        what = f"does not fit together ({type(fault).__name__}: {str(fault)[:100]})"
        raise CheckpointError(what, file=folder, fix=AGAIN) from None
